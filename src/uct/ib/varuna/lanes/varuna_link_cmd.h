/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An interface's commands to the NICs of its links: varuna_cmd.h, whose results come to the
 * interface's async context.
 */
#ifndef UCT_VARUNA_LINK_CMD_H_
#define UCT_VARUNA_LINK_CMD_H_

#include "varuna_lanes.h"
#include <uct/ib/varuna/md/varuna_cmd.h>

#include <ucs/async/async_fwd.h>

/** Results come to this async context, in which done() is called with the lock held. */
ucs_status_t uct_varuna_link_cmds_open(uct_varuna_iface_t *iface,
                                       ucs_async_context_t *async);

/** Wait for commands in progress for a bounded time. @return Links whose NIC hangs: nothing
 *  of ours on them can be released. The lock must not be held. */
unsigned uct_varuna_link_cmds_close(uct_varuna_iface_t *iface);

/**
 * Give a command on the thread of a link's NIC. The sink is filled in here. Without such a
 * thread, done() is called before this returns. The lock is held.
 */
void uct_varuna_link_submit(uct_varuna_iface_t *iface, unsigned link,
                            uct_varuna_cmd_t *cmd);

/** The same for the creation of an address handle, which may take a second. It uses nothing
 *  of the interface. */
void uct_varuna_link_submit_handle(uct_varuna_iface_t *iface, unsigned link,
                                   uct_varuna_cmd_t *cmd);

/** @ref uct_varuna_cmds_may_answer for a command given here that has not come back. */
int uct_varuna_link_may_answer(const uct_varuna_iface_t *iface, unsigned link,
                               const uct_varuna_cmd_t *cmd, ucs_time_t patience);

#endif
