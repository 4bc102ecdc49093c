/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Sending of control messages. Lock held in all but uct_varuna_ctl_send().
 */
#ifndef UCT_VARUNA_CTL_SEND_H_
#define UCT_VARUNA_CTL_SEND_H_

#include "varuna_ctl.h"
#include "varuna_peer.h"

/**
 * Send one control message on @a link (a local link index). Main thread or
 * async context. No resource: queued inside. Without a reference to @a peer of its
 * own, the caller must not use it afterwards.
 *
 * @param [in] whose  Its secret, vqp, epoch and opening are sent; nothing else of
 *                    it.
 */
ucs_status_t uct_varuna_ctl_send(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                 unsigned link, uct_varuna_ctl_type_t type,
                                 const uct_varuna_ctl_hdr_t *whose,
                                 const void *body, size_t length);

/** Answer the request @a hdr, which came over @a link. */
void uct_varuna_ctl_reply(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                          unsigned link, const uct_varuna_ctl_hdr_t *hdr,
                          uct_varuna_ctl_type_t type, const void *body,
                          size_t length);

/** Try again what waits in the queue. One peer which can't be sent to doesn't hold
 * up the others; messages to one peer stay in order on a link. */
void uct_varuna_ctl_flush_queue(uct_varuna_ctl_t *ctl);

void uct_varuna_ctl_msg_free(uct_varuna_ctl_t *ctl,
                             uct_varuna_ctl_msg_t *msg);

/** Append our address, for a receiver that has to refuse the message. There is room for
 * UCT_VARUNA_CTL_MAX_FROM bytes. @return The number of bytes used. */
size_t uct_varuna_ctl_append_from(const uct_varuna_ctl_t *ctl, unsigned link,
                                  uct_varuna_ctl_hdr_t *hdr);

/** Local link over which to answer: @a link if it reaches the peer, and its NIC is not gone
 *  since. */
unsigned uct_varuna_ctl_reply_link(const uct_varuna_ctl_t *ctl,
                                   const uct_varuna_peer_t *peer, unsigned link);

#endif
