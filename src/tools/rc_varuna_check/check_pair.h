/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The client's queue pair that is connected with the server's, and what it asks of the
 * server.
 */
#ifndef CHECK_PAIR_H_
#define CHECK_PAIR_H_

#include "check_def.h"

/** Connect our port @a port with the server's port @a peer_port; a previous connection
 *  of the server ends. @return 0 or errno; ENOTCONN if the server is gone. */
int check_pair_open(check_run_t *run, unsigned port, unsigned peer_port,
                    check_qp_t *qp);

/** Ask the server; @return 0 or errno, ENOTCONN if it is gone. */
int check_ask(check_run_t *run, check_msg_t type, const void *in, size_t in_length,
              void *out, size_t out_length);

/** "OURS -> THEIRS", in a static buffer. */
const char *check_pair_name(const check_run_t *run, unsigned port,
                            unsigned peer_port);

/** Fill slots of our memory, and write each to the server. @return 0 or errno. */
int check_pair_write_slots(check_qp_t *qp, const check_scan_t *scan,
                           uint32_t first, uint32_t count);

/** How many packets the requester has sent for writes of these sizes. */
uint32_t check_pair_packets(const check_qp_t *qp, uint32_t length);

/** Whether a link can be tested: both ports are active. */
int check_pair_is_up(const check_run_t *run, unsigned link);

#endif
