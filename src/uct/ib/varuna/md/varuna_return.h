/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A NIC that was reset and works again. Its device is opened once more, beside the old context,
 * under a new number. So no key, address or handle of the old context can be mistaken for a new
 * one.
 *
 *   the device answers      the NIC's thread           the thread of the new number
 *   again            -----> opens it, and      ------> registers the existing regions, one in
 *                           registers a spare          each command
 *                               |                          |
 *                   new regions are registered             v
 *                   there too                          it is ready: interfaces open lanes
 *
 * A region that is not registered there yet uses the spare, as on a NIC that is short of regions.
 * The old number stays: regions have keys of it, and lanes are open on it.
 */
#ifndef UCT_VARUNA_RETURN_H_
#define UCT_VARUNA_RETURN_H_

#include "varuna_md.h"

/** A NIC that is dead answers: open it anew, unless that was begun. What fails is tried again,
 *  less and less often. @param [in] owner  The first port of the device. Any thread. */
void uct_varuna_return_begin(uct_varuna_md_t *md, unsigned owner, ucs_time_t now);

/** @return The number of a port in its next life, in which all memory is registered there; or
 *          UCT_VARUNA_MAX_LINKS, if there is none yet. Any thread. */
unsigned uct_varuna_return_nic(const uct_varuna_md_t *md, unsigned nic);

/** @return The number that a port has in its last life in which all memory is registered; @a nic
 *          if it was not reset. Any thread. */
unsigned uct_varuna_return_latest(const uct_varuna_md_t *md, unsigned nic);

/** The memory domain is closed: nothing is opened or registered any more. Never waits. */
void uct_varuna_returns_stop(uct_varuna_md_t *md);

/* --- What exists --- */

/** A region is registered, on all NICs that were there when it was begun. */
void uct_varuna_return_add_mem(uct_varuna_md_t *md, uct_varuna_mem_t *mem);

/** It is about to be deregistered: it is registered nowhere else from now on. */
void uct_varuna_return_remove_mem(uct_varuna_md_t *md, uct_varuna_mem_t *mem);

#endif
