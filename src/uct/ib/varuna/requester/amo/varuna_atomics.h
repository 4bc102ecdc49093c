/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics of the endpoint, as UCT calls them.
 */
#ifndef UCT_VARUNA_ATOMICS_H_
#define UCT_VARUNA_ATOMICS_H_

#include <uct/ib/varuna/requester/varuna_ep.h>

/** Take the table of operations of the memory domain's mode. The lanes are open. */
ucs_status_t uct_varuna_atomics_init(uct_varuna_requester_t *requester,
                                     const uct_varuna_amo_ops_t *ops);

/** Register the handlers of the peers' answers. The control plane is open. */
void uct_varuna_atomics_listen(uct_varuna_requester_t *requester);

void uct_varuna_atomics_cleanup(uct_varuna_requester_t *requester);

ucs_status_t uct_varuna_ep_atomic_cswap64(uct_ep_h tl_ep, uint64_t compare,
                                          uint64_t swap, uint64_t remote_addr,
                                          uct_rkey_t rkey, uint64_t *result,
                                          uct_completion_t *comp);
ucs_status_t uct_varuna_ep_atomic_cswap32(uct_ep_h tl_ep, uint32_t compare,
                                          uint32_t swap, uint64_t remote_addr,
                                          uct_rkey_t rkey, uint32_t *result,
                                          uct_completion_t *comp);
ucs_status_t uct_varuna_ep_atomic64_post(uct_ep_h tl_ep, unsigned opcode,
                                         uint64_t value, uint64_t remote_addr,
                                         uct_rkey_t rkey);
ucs_status_t uct_varuna_ep_atomic32_post(uct_ep_h tl_ep, unsigned opcode,
                                         uint32_t value, uint64_t remote_addr,
                                         uct_rkey_t rkey);
ucs_status_t uct_varuna_ep_atomic64_fetch(uct_ep_h tl_ep, unsigned opcode,
                                          uint64_t value, uint64_t *result,
                                          uint64_t remote_addr, uct_rkey_t rkey,
                                          uct_completion_t *comp);
ucs_status_t uct_varuna_ep_atomic32_fetch(uct_ep_h tl_ep, unsigned opcode,
                                          uint32_t value, uint32_t *result,
                                          uint64_t remote_addr, uct_rkey_t rkey,
                                          uct_completion_t *comp);

#endif
