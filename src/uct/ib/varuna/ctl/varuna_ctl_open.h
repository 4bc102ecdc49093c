/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opening and closing of the control plane. Called by the interface.
 */
#ifndef UCT_VARUNA_CTL_OPEN_H_
#define UCT_VARUNA_CTL_OPEN_H_

#include "varuna_ctl.h"

/**
 * Open the control plane: worker, inner interfaces, the rows of its own messages. The
 * rooms above register theirs before it listens.
 */
ucs_status_t uct_varuna_ctl_create(uct_varuna_iface_t *iface,
                                   uct_varuna_ctl_t **ctl_p);

/** The part of that which opens nothing: no links, no peers, no rows. */
void uct_varuna_ctl_init(uct_varuna_ctl_t *ctl, uct_varuna_iface_t *iface);

/** Its counterpart: releases messages, peers and endpoints. Lock not held. */
void uct_varuna_ctl_cleanup(uct_varuna_ctl_t *ctl);

/** Start calls from the async context. Lock held. */
ucs_status_t uct_varuna_ctl_listen(uct_varuna_ctl_t *ctl);

/** Let the last messages, CLOSE among them, leave; for a short time, as a peer may be
 *  dead. It does not listen any more; lock not held. */
void uct_varuna_ctl_linger(uct_varuna_ctl_t *ctl);

/** Stop all calls from the async context, for good. The lock must not be held. */
void uct_varuna_ctl_unlisten(uct_varuna_ctl_t *ctl);

/** Close everything. It does not listen any more, and the rooms above are closed. */
void uct_varuna_ctl_destroy(uct_varuna_ctl_t *ctl);

/** Open the interface of one link; its other fields stay as they are. */
ucs_status_t uct_varuna_ctl_link_init(uct_varuna_ctl_t *ctl, unsigned index);

/** Close it. */
void uct_varuna_ctl_link_cleanup(uct_varuna_ctl_link_t *link);

/** Let the async context handle the events of a descriptor. */
ucs_status_t uct_varuna_ctl_listen_fd(uct_varuna_ctl_t *ctl, int fd);

/* --- Opening again --- */

/* Opens the control plane's interface of a link once more. */

/**
 * Open the control interface of a link once more, and close the one that was open: its
 * messages on their way are lost, as on a link that fails. Main thread, lock held.
 *
 * @return UCS_ERR_BUSY if a room above has an endpoint there; other errors are logged.
 *         The one that was open stays then.
 */
ucs_status_t uct_varuna_ctl_link_reopen(uct_varuna_ctl_t *ctl, unsigned link);

/* --- One more link --- */

/**
 * Open the control interface of the next link, ctl->num_links, whose lanes are open. It is not
 * used before uct_varuna_ctl_join(). Main thread, lock held.
 *
 * @param [in] dev_name  Its port.
 */
ucs_status_t uct_varuna_ctl_link_open_next(uct_varuna_ctl_t *ctl, const char *dev_name);

/** The link is there: ++ctl->num_links. Peers that @a former reached are reached over it, and
 *  get to know its address. Main thread, lock held. */
void uct_varuna_ctl_join(uct_varuna_ctl_t *ctl, unsigned former);

#endif
