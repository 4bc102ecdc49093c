/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UCX's async thread and fork(). A child has no such thread, but UCX in it believes that there
 * is one, and uses the parent's set of events (epoll), which both share:
 *
 *     parent                               child
 *     --- rest: the thread waits in a
 *         handler of ours, where it
 *         holds no lock of UCX
 *     fork()
 *     --- the thread goes on               at once: a set of events of its own takes the
 *                                          place of the parent's
 *                                          when it opens UCX: all handlers that it has
 *                                          inherited are removed, so UCX starts a thread
 *
 * Called by the handlers of pthread_atfork() (iface/varuna_module.c).
 */
#ifndef UCT_VARUNA_UCX_FORK_H_
#define UCT_VARUNA_UCX_FORK_H_

#include <ucs/type/status.h>

/** A memory domain is opened: from now on the thread rests around each fork(). */
void uct_varuna_ucx_fork_get(void);

/** A memory domain was closed. */
void uct_varuna_ucx_fork_put(void);

/** Before fork(). The thread may be the one that forks. Waits for at most 3 seconds for another
 *  one, as it may wait for something that we hold. */
void uct_varuna_ucx_fork_prepare(void);

/** After fork(), in the parent and in the child. */
void uct_varuna_ucx_fork_parent(void);
void uct_varuna_ucx_fork_child(void);

/** UCX is opened, perhaps in a child: forget what it has inherited.
 *  @return UCS_ERR_UNSUPPORTED, after a message, if that is not possible: the thread was busy
 *          in the parent. */
ucs_status_t uct_varuna_ucx_fork_renew(void);

#endif
