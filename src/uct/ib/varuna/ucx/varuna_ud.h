/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The bus of NICs without DC: an interface of UCT that sends control messages as
 * datagrams of one UD queue pair. UCX's ud_verbs makes connections of its own, repeats
 * what was lost silently for 30 s, and remembers each process that ever wrote to it;
 * control messages are repeated by whoever asks (varuna_retry.h), so nothing is kept
 * here but what is on its way to the NIC.
 */
#ifndef UCT_VARUNA_UD_H_
#define UCT_VARUNA_UD_H_

#include <uct/api/uct.h>

/**
 * Open the bus of a link.
 *
 * @param [in]  data     Inner interface of a data lane on the same port, which stays open
 *                       for longer: its address, service level and partition are used.
 * @param [in]  worker   Its progress calls ours.
 * @param [in]  params   As for uct_iface_open().
 * @param [out] iface_p  To be closed by uct_iface_close().
 */
ucs_status_t uct_varuna_ud_open(uct_iface_h data, uct_worker_h worker,
                                const uct_iface_params_t *params,
                                uct_iface_h *iface_p);

/** @return Whether all datagrams of an endpoint have left. */
int uct_varuna_ud_is_drained(uct_ep_h ep, unsigned kind);

/** Its queue cannot be looked at without the lock of its worker. @return 1 */
int uct_varuna_ud_has_input(uct_iface_h iface);

#endif
