/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the NICs of a memory domain are short of. All interfaces of the memory domain share
 * that: together they ask a NIC no more often than one would. Any thread.
 */
#ifndef UCT_VARUNA_MD_SHORT_H_
#define UCT_VARUNA_MD_SHORT_H_

#include "varuna_md.h"

/** @return Whether a NIC is to be asked for one more at @a now. */
int uct_varuna_md_may_ask(uct_varuna_md_t *md, unsigned nic, uct_varuna_short_t what,
                          ucs_time_t now);

/** It has answered with @a status: see uct_varuna_shortage_note(). */
void uct_varuna_md_note_answer(uct_varuna_md_t *md, unsigned nic, uct_varuna_short_t what,
                               ucs_status_t status, ucs_time_t now);

/**
 * The same for an address handle, which depends on the peer: others may get theirs.
 *
 * @param [in] backoff  The peer's own, by which it asks.
 */
void uct_varuna_md_note_handle(uct_varuna_md_t *md, unsigned nic,
                               uct_varuna_backoff_t *backoff, ucs_status_t status,
                               ucs_time_t now);

#endif
