/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Changes of a word: each replaces one value by another. In any order, the replaced
 * values are the first value and all written values except the last one. Pure.
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

/** Remove all changes. The structure is first zero. */
void ft_atom_chain_clear(ft_atom_chain_t *chain);

/** Add a change. */
void ft_atom_chain_add(ft_atom_chain_t *chain, uint64_t replaced,
                       uint64_t written);

/** @return NULL if the changes lead from @a first to @a last, otherwise the reason
 *  (static). */
const char *ft_atom_chain_check(ft_atom_chain_t *chain, uint64_t first,
                                uint64_t last);

#endif
