/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The part of the job (ft_atom_job) for the benchmark of atomics: measures single
 * atomics, and posts batches of compare and swap.
 */
#ifndef FT_ATOM_BATCH_H_
#define FT_ATOM_BATCH_H_

#include "ft_atom_load.h"

#define FT_ATOM_BATCH_MAX   16
#define FT_ATOM_MANY_MAX    64
#define FT_ATOM_MANY_OFFSET 1024
/* In the pages of the words of a load, see ft_atom_history.h */
#define FT_ATOM_BATCH_OFFSET(_i) \
    (FT_ATOM_WORDS_STRIDE + ((_i) * (FT_ATOM_WORDS_STRIDE / 2)))

/** Execute an atomic repeatedly, one after the other; if @a alone, with an unmeasured
 *  flush after each. @return The median and the shortest time, in nanoseconds. */
double ft_atom_time(const ft_atom_load_t *load, const ft_atom_t *atom,
                    uint64_t addr, unsigned count, int alone,
                    double *shortest_p);

/** Post one compare and swap on each word, all at once, and wait for all and a flush.
 *  @a words contains the last known values; then the results. */
void ft_atom_batch(const ft_atom_load_t *load, unsigned num, uint64_t *words,
                   uint64_t value);

/** Add 1 to words at the start of the memory, all at once, and wait for the results. */
void ft_atom_many(const ft_atom_load_t *load, unsigned num);

/** Repeat an atomic, a put and a read of the same word, with fences between. Ends the
 *  program if an operation passes a fence. The word is first 0. */
void ft_atom_fenced(const ft_atom_load_t *load, uint64_t addr, unsigned count);

#endif
