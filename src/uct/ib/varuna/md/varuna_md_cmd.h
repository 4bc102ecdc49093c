/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The queues of commands to the NICs of a memory domain.
 */
#ifndef UCT_VARUNA_MD_CMD_H_
#define UCT_VARUNA_MD_CMD_H_

#include "varuna_md.h"

ucs_status_t uct_varuna_md_cmds_init(uct_varuna_md_t *md);

/** End the threads. The memory domain of a NIC that hangs is not closed afterwards, see
 *  uct_varuna_cmds_destroy(). */
void uct_varuna_md_cmds_cleanup(uct_varuna_md_t *md);

/** @return The queue of a NIC, NULL if there is none. */
uct_varuna_cmds_t *uct_varuna_md_cmds(const uct_varuna_md_t *md, unsigned nic);

#endif
