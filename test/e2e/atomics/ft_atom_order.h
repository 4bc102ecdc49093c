/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the job (ft_atom_job) does for the tests of order: flushes and fences among
 * atomics and others.
 */
#ifndef FT_ATOM_ORDER_H_
#define FT_ATOM_ORDER_H_

#include "ft_atom_load.h"

/**
 * Run a story on words at @a addr. Ends the program if the order is wrong.
 *
 * @param [in] name  flushes  A flush from each callback of atomics, and from each
 *                            callback of flushes.
 *                   read     The word is read, behind a fence the next one is added
 *                            1 to, and then the word is put: it must be 1, and the
 *                            read must not see the put.
 *                   refused  Atomics that are not aligned, or are none, among good
 *                            ones.
 *                   pending  A pending request which fails each time.
 *                   puts     Behind a fence a word is added 1 to, while the next one
 *                            is put all the time.
 *
 * @return 0, or -1 if there is no such story.
 */
int ft_atom_order(const ft_atom_load_t *load, uint64_t addr, const char *name);

#endif
