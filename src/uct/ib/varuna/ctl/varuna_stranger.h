/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Refuses messages: those of peers, and those of processes that our application does
 * not know. Lock held in all of it.
 */
#ifndef UCT_VARUNA_STRANGER_H_
#define UCT_VARUNA_STRANGER_H_

#include "varuna_ctl.h"

/**
 * Refuse a message that has come over @a link from a process that is not a peer here, if
 * the message has its address: a restarted process has no peers, and its former peers must
 * learn that. Nothing of the message is kept.
 *
 * @param [in] hdr  Message that has passed uct_varuna_parse_ctl(), with its body.
 */
void uct_varuna_stranger_refuse(uct_varuna_ctl_t *ctl, unsigned link,
                                const uct_varuna_ctl_hdr_t *hdr,
                                ucs_status_t status);

/** The same for a message of an older version; the answer has ours. */
void uct_varuna_stranger_refuse_old(uct_varuna_ctl_t *ctl, unsigned link,
                                    const void *data, size_t length);

void uct_varuna_strangers_init(uct_varuna_ctl_t *ctl);

/** Drops the endpoints, before all that are dropped are destroyed. */
void uct_varuna_strangers_cleanup(uct_varuna_ctl_t *ctl);

/** Refuse the request @a hdr. Its body follows it, and its sender's address unless the
 *  sender is a known peer. */
void uct_varuna_ctl_reject(uct_varuna_ctl_t *ctl, unsigned link,
                           const uct_varuna_ctl_hdr_t *hdr,
                           ucs_status_t status);

/** Forget the endpoint to the last stranger on a link: it is in ctl->dead_eps then. */
void uct_varuna_stranger_drop(uct_varuna_ctl_t *ctl, unsigned link);

#endif
