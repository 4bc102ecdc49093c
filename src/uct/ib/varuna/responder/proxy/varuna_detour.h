/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode proxy: what flushes of any process have covered is in memory before the CPU executes
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
 * Called by varuna_atomic_req.c, lock held.
 */
#ifndef UCT_VARUNA_DETOUR_H_
#define UCT_VARUNA_DETOUR_H_

#include "varuna_cpu.h"
#include "varuna_proxy.h"

/**
 * Send the request on its detour if it needs one.
 *
 * @param [in]  link    Over which it came.
 * @param [out] link_p  Over which the requester sent it.
 *
 * @return Nonzero if it may be executed now. Otherwise it comes again.
 */
int uct_varuna_detour_is_over(uct_varuna_proxy_t *proxy,
                              uct_varuna_cpu_client_t *client, unsigned link,
                              const uct_varuna_ctl_hdr_t *hdr,
                              const uct_varuna_ctl_atomic_req_t *req,
                              unsigned *link_p);

/** The port of some link went down, or came back. */
void uct_varuna_detour_port_changed(uct_varuna_proxy_t *proxy);

#endif
