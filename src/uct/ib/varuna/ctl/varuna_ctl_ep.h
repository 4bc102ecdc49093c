/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Inner endpoints of the control plane. Lock held in all.
 */
#ifndef UCT_VARUNA_CTL_EP_H_
#define UCT_VARUNA_CTL_EP_H_

#include "varuna_ctl.h"
#include "varuna_peer.h"

/** Create an inner endpoint that belongs to no peer, to addresses which were checked.
 * In the end it is put in ctl->dead_eps, or destroyed. */
ucs_status_t uct_varuna_ctl_ep_create(uct_varuna_ctl_t *ctl, unsigned link,
                                      const uct_device_addr_t *device_addr,
                                      const uct_iface_addr_t *iface_addr,
                                      uct_varuna_ctl_ep_t **ep_p);

/** Destroy an inner endpoint at once, which is not in ctl->dead_eps; see
 * uct_varuna_ctl_reap_eps() for when that is allowed. */
void uct_varuna_ctl_ep_destroy(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep);

/** Post on an inner endpoint. */
ucs_status_t uct_varuna_ctl_ep_post(uct_ep_h inner, const void *data,
                                    size_t length);

/** Post a message now. @return UCS_ERR_NO_RESOURCE if that is not possible yet, and
 * UCS_ERR_UNREACHABLE if our NIC is gone or seems to hang, or @a peer does not receive. */
ucs_status_t uct_varuna_ctl_post(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                 unsigned link, const void *data,
                                 size_t length);

/** Forget the control endpoint of @a peer on @a link. It is destroyed once no
 * callback runs and, unless it @a failed, its messages have left. */
void uct_varuna_ctl_drop_ep(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                            unsigned link, int failed);

/** Messages to @a peer, which is doubtful, may wait on @a link since before that link
 * worked again. They would fail, and all that follow with them: later messages do not wait
 * for them. Does nothing if none waits for longer than a link takes that works. */
void uct_varuna_ctl_renew_ep(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                             unsigned link);

/** The same for all peers to which messages fail, on all links but @a lost: it has
 * failed, so the others are what is left. */
void uct_varuna_ctl_renew_others(uct_varuna_ctl_t *ctl, unsigned lost);

/** Destroy the dropped endpoints for which that is true, or all by @a force. */
void uct_varuna_ctl_reap_eps(uct_varuna_ctl_t *ctl, int force);

/** Installed by varuna_ctl_open.c: a control endpoint has failed. */
ucs_status_t uct_varuna_ctl_err_handler(void *arg, uct_ep_h inner,
                                        ucs_status_t status);

/* --- Peers that are probably dead --- */

/* Limits what is sent to peers that are probably dead. Lock held in all. */

/** May a message be posted to @a peer on @a link now? */
int uct_varuna_doubt_may_post(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                              unsigned link);

/** May a message be posted to a stranger now? It is taken for posted. */
int uct_varuna_doubt_admit(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep);

/** @return Whether messages of that endpoint, to a doubtful peer, may wait. */
int uct_varuna_doubt_has_place(const uct_varuna_ctl_t *ctl,
                               const uct_varuna_ctl_ep_t *ep);

/** One was posted, or failed later, or the endpoint is about to be destroyed. */
void uct_varuna_doubt_posted(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                             unsigned link);
void uct_varuna_doubt_failed(uct_varuna_peer_t *peer, unsigned link);
void uct_varuna_doubt_forget(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep);

#endif
