/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics as the job (ft_atom_job) and its driver (ft_atom_sweep) write them:
 * KIND:COMPARE:VALUE[:RESULT], with hexadecimal numbers.
 */
#ifndef FT_ATOM_H_
#define FT_ATOM_H_

#include <stdint.h>

#define FT_ATOM_MAX       8   /* Of one client in a run */
#define FT_ATOM_TEXT_MAX  96
#define FT_ATOM_LAST_SEEN "*" /* COMPARE: the last known value of the word */

typedef enum {
    FT_ATOM_ADD, FT_ATOM_AND, FT_ATOM_OR, FT_ATOM_XOR, FT_ATOM_SWAP,
    FT_ATOM_CSWAP
} ft_atom_op_t;

typedef struct {
    ft_atom_op_t op;
    int          fetch;      /* It has a result */
    int          last_seen;  /* Compare with the last known value */
    uint64_t     compare;
    uint64_t     value;
    uint64_t     result;
} ft_atom_t;

/** Read "KIND:COMPARE:VALUE[:RESULT],...". @return Their number, or -1. */
int ft_atoms_parse(const char *text, ft_atom_t *atoms);

/** Write one of them, with its result. */
void ft_atom_format(const ft_atom_t *atom, char *text);

/** @return The value after the operation on @a value, in a word of @a width bytes. */
uint64_t ft_atom_apply(const ft_atom_t *atom, uint64_t value, unsigned width);

/** @return Whether some order of the operations of @a num clients, each executed once,
 *  explains their results and the final value @a last. */
int ft_atoms_explain(ft_atom_t atoms[][FT_ATOM_MAX], const int *counts,
                     unsigned num, uint64_t first, uint64_t last,
                     unsigned width);

/** @return Whether CPUs execute atomics in this UCX_RC_VARUNA_ATOMIC_MODE, so that the
 *  emulator's trace contains none. */
int ft_atom_is_by_cpu(void);

#endif
