/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Changes of a word: each replaces one value by another. Whatever their order was, the
 * values that were replaced are those that were written and the first one, but for the
 * last one. Pure.
 */
#ifndef FT_ATOM_CHAIN_H_
#define FT_ATOM_CHAIN_H_

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t *written;
    uint64_t *replaced;
    size_t   num;
    size_t   max;
} ft_atom_chain_t;

/** Forget all. Begin with zeros. */
void ft_atom_chain_clear(ft_atom_chain_t *chain);

/** Add a change. */
void ft_atom_chain_add(ft_atom_chain_t *chain, uint64_t replaced,
                       uint64_t written);

/** @return NULL if the changes lead from @a first to @a last, else what is wrong
 *  (static). */
const char *ft_atom_chain_check(ft_atom_chain_t *chain, uint64_t first,
                                uint64_t last);

#endif
