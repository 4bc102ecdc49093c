/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What is done for those whom our application does not know: its limits, and answers
 * to messages that are not for us. Lock held in all of it.
 */
#ifndef UCT_VARUNA_STRANGER_H_
#define UCT_VARUNA_STRANGER_H_

#include "varuna_ctl_priv.h"

/**
 * Refuse what has come over @a link from somebody who is no peer here, if it tells
 * where he is: a restarted process knows nobody, and its peers must learn that.
 * Nothing is kept of it, and nothing is done again.
 *
 * @param [in] hdr  Message that has passed uct_varuna_parse_ctl(), with its body.
 */
void uct_varuna_stranger_refuse(uct_varuna_ctl_t *ctl, unsigned link,
                                const uct_varuna_ctl_hdr_t *hdr,
                                ucs_status_t status);

/** The same for a message of an older version, which is told ours. */
void uct_varuna_stranger_refuse_old(uct_varuna_ctl_t *ctl, unsigned link,
                                    const void *data, size_t length);

/**
 * May UCX be given the device address of a remote port for one who has told it
 * himself? Each costs an address handle, which UCX keeps for good.
 *
 * @param [in] is_guest  He knows our address.
 */
int uct_varuna_stranger_may_reach(uct_varuna_ctl_t *ctl, unsigned link,
                                  const void *device_addr, size_t length,
                                  int is_guest);

void uct_varuna_strangers_init(uct_varuna_ctl_t *ctl);

/** Drops the endpoints, before all that are dropped are destroyed. */
void uct_varuna_strangers_cleanup(uct_varuna_ctl_t *ctl);

#endif
