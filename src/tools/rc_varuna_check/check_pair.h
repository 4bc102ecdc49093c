/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The client's queue pair, which is connected with the server's, and requests to the
 * server.
 */
#ifndef CHECK_PAIR_H_
#define CHECK_PAIR_H_

#include "check_def.h"

#define CHECK_SOAK 60 /* Seconds for all links; at least one round each */

/** Connect local port @a port with the server's port @a peer_port, in place of the
 *  server's previous connection. @return 0 or errno; ENOTCONN without an answer. */
int check_pair_open(check_run_t *run, unsigned port, unsigned peer_port,
                    check_qp_t *qp);

/** The same with queue pairs of another kind, see CHECK_OPEN_x. */
int check_pair_open_as(check_run_t *run, unsigned port, unsigned peer_port, unsigned how,
                       check_qp_t *qp);

/** @return Whether UCX makes queue pairs of a link by DEVX, on both hosts. */
int check_pair_is_devx(const check_run_t *run, unsigned link);

/** Send a request; @return 0 or errno; ENOTCONN without an answer. */
int check_ask(check_run_t *run, check_msg_t type, const void *in, size_t in_length,
              void *out, size_t out_length);

/** "OURS -> THEIRS", in a static buffer. */
const char *check_pair_name(const check_run_t *run, unsigned port,
                            unsigned peer_port);

/** Fill slots of local memory, and write each to the server. @return 0 or errno. */
int check_pair_write_slots(check_qp_t *qp, const check_scan_t *scan,
                           uint32_t first, uint32_t count);

/** @return The number of packets that writes of these sizes take. */
uint32_t check_pair_packets(const check_qp_t *qp, uint32_t length);

/** @return Whether a link can be tested: both ports are active. */
int check_pair_is_up(const check_run_t *run, unsigned link);

#endif
