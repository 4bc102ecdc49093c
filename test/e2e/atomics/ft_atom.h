/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics as the job (ft_atom_job) and its driver (ft_atom_sweep) write them:
 * KIND:COMPARE:VALUE[:RESULT], with hexadecimal numbers.
 */
#ifndef FT_ATOM_H_
#define FT_ATOM_H_

#include <stdint.h>

#define FT_ATOM_MAX       8   /* Of one client in one run */
#define FT_ATOM_TEXT_MAX  96
#define FT_ATOM_LAST_SEEN "*" /* COMPARE: what is in the word, as far as we know */

typedef enum {
    FT_ATOM_ADD, FT_ATOM_AND, FT_ATOM_OR, FT_ATOM_XOR, FT_ATOM_SWAP,
    FT_ATOM_CSWAP
} ft_atom_op_t;

typedef struct {
    ft_atom_op_t op;
    int          fetch;      /* It has a result */
    int          last_seen;  /* The job chooses what to compare with */
    uint64_t     compare;
    uint64_t     value;
    uint64_t     result;
} ft_atom_t;

/** Read "KIND:COMPARE:VALUE[:RESULT],...". @return how many, or -1. */
int ft_atoms_parse(const char *text, ft_atom_t *atoms);

/** Write one of them, with its result. */
void ft_atom_format(const ft_atom_t *atom, char *text);

/** @return What the operation leaves of @a value in a word of @a width bytes. */
uint64_t ft_atom_apply(const ft_atom_t *atom, uint64_t value, unsigned width);

/** @return Whether the results of @a num clients can be had, and @a last be left,
 *  by some order of their operations, each one executed once. */
int ft_atoms_explain(ft_atom_t atoms[][FT_ATOM_MAX], const int *counts,
                     unsigned num, uint64_t first, uint64_t last,
                     unsigned width);

/** @return Whether UCX_RC_VARUNA_ATOMIC_MODE lets CPUs execute atomics, so that none is in
 *  the emulator's trace. */
int ft_atom_is_by_cpu(void);

#endif
