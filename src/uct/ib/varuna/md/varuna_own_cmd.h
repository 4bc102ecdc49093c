/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A registration of memory of our own on one NIC, begun or ended on that NIC's thread.
 * The caller waits for a limited time, and then leaves it to that thread, which ends a
 * registration that nobody takes. Used by varuna_own.c.
 */
#ifndef UCT_VARUNA_OWN_CMD_H_
#define UCT_VARUNA_OWN_CMD_H_

#include "varuna_md.h"

typedef struct uct_varuna_own_cmd uct_varuna_own_cmd_t;

/** @return The command, which is under way; NULL if there is no memory. */
uct_varuna_own_cmd_t *uct_varuna_own_cmd_reg(uct_varuna_md_t *md, unsigned nic,
                                             void *address, size_t length,
                                             unsigned rights, ucs_time_t deadline);

/** The same: end a registration. */
uct_varuna_own_cmd_t *uct_varuna_own_cmd_dereg(uct_varuna_md_t *md, unsigned nic,
                                               void *mr);

/**
 * Wait for a command, and release it.
 *
 * @param [out] mr_p   Of a registration. NULL if it is to be ended.
 * @param [out] key_p  The same.
 *
 * @return UCS_ERR_TIMED_OUT if the NIC has not answered until the deadline. A command that
 *         ends a registration will do so later.
 */
ucs_status_t uct_varuna_own_cmd_wait(uct_varuna_own_cmd_t *cmd, ucs_time_t deadline,
                                     void **mr_p, uint64_t *key_p);

#endif
