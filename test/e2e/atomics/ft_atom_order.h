/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The part of the job (ft_atom_job) for the tests of order: flushes and fences between
 * atomics and other operations.
 */
#ifndef FT_ATOM_ORDER_H_
#define FT_ATOM_ORDER_H_

#include "ft_atom_load.h"

/**
 * Run a story on words at @a addr. Ends the program if the order is wrong.
 *
 * @param [in] name  flushes  A flush from each callback of atomics, and from each
 *                            callback of flushes.
 *                   read     Read a word that is 1, add 1 to the next word after a
 *                            fence, then put to the first word: the read must not see
 *                            the put.
 *                   refused  Misaligned and unknown atomics among valid ones.
 *                   pending  A pending request that fails each time.
 *                   puts     After a fence, add 1 to a word, while the next one is put
 *                            all the time.
 *                   placed   Put, then add after a fence or a flush: the add must find
 *                            the put, and must not be overwritten by it.
 *
 * @return 0, or -1 if there is no such story.
 */
int ft_atom_order(const ft_atom_load_t *load, uint64_t addr, const char *name);

#endif
