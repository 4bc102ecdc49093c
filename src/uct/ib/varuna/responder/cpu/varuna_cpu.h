/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode proxy, the target's side: this process's CPU executes the atomics that peers
 * request, each once and in the order of their numbers, and keeps the results
 * (varuna_amo_sm.h). Lock held.
 */
#ifndef UCT_VARUNA_CPU_H_
#define UCT_VARUNA_CPU_H_

#include <uct/ib/varuna/core/varuna_amo_sm.h>
#include <uct/ib/varuna/core/varuna_wire.h>
#include <uct/ib/varuna/responder/extended/varuna_home.h>

/** What is kept for a requester; a part of its target. */
typedef struct uct_varuna_cpu_client {
    uct_varuna_peer_t          *peer;
    uct_varuna_amo_kept_t      *kept;     /* NULL: it has requested none */
    struct {
        uint64_t               end;       /* Requests before this number were there */
        ucs_time_t             since;     /* ... at this time */
    } detour;                             /* Owner: varuna_cpu.c */
} uct_varuna_cpu_client_t;

void uct_varuna_cpu_client_init(uct_varuna_cpu_client_t *client,
                                uct_varuna_peer_t *peer);

void uct_varuna_cpu_client_cleanup(uct_varuna_cpu_client_t *client);

/** ATOMIC_REQ of a requester, over @a link; the message has been checked. */
void uct_varuna_cpu_request(uct_varuna_ctl_t *ctl,
                            uct_varuna_cpu_client_t *client, unsigned link,
                            const uct_varuna_ctl_hdr_t *hdr,
                            const uct_varuna_ctl_atomic_req_t *req);

/* --- One atomic --- */

/* It is executed by this process's CPU: coherent with its other threads, with other processes that map
 * the memory, and with UCX's transports over shared memory. */

/**
 * Execute @a op, after uct_varuna_fault_init().
 *
 * @param [out] value_p  The word's previous value; 4 bytes are extended by zeros.
 *
 * @return UCS_ERR_INVALID_ADDR if the memory is not there, or cannot be written.
 */
ucs_status_t uct_varuna_cpu_op(const uct_varuna_ctl_atomic_op_t *op,
                               uint64_t *value_p);

/* --- The detour --- */

/* Mode proxy: what flushes of any process have covered is in memory before the CPU executes
 * an atomic. Our home NIC has accepted it, or it is there already: a flush over another NIC
 * places it (requester/varuna_placed.h). When a message arrives, what its NIC had accepted
 * before is in memory. So a request that has come over another NIC makes a detour: it is sent
 * once more, to ourselves, over the home NIC.
 *
 *   requester --ATOMIC_REQ--> home NIC ------------------------------> executed
 *   requester --ATOMIC_REQ--> other NIC --(the same)--> home NIC ----> executed
 *
 * Nothing is kept for it: a request that gets lost is sent again by its requester. A home
 * NIC that does not work accepts nothing either; then time takes the place of the detour.
 * Called by varuna_target.c, lock held. */

/**
 * Send the request on its detour if it needs one.
 *
 * @param [in]  link    Over which it came.
 * @param [out] link_p  Over which the requester sent it.
 *
 * @return Nonzero if it may be executed now. Otherwise it comes again.
 */
int uct_varuna_detour_is_over(uct_varuna_home_t *home,
                              uct_varuna_cpu_client_t *client, unsigned link,
                              const uct_varuna_ctl_hdr_t *hdr,
                              const uct_varuna_ctl_atomic_req_t *req,
                              unsigned *link_p);

/** The port of some link went down, or came back. */
void uct_varuna_detour_port_changed(uct_varuna_home_t *home);

#endif
