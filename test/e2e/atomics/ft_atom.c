/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics as text, and the search for an order that explains their results.
 */
#include "ft_atom.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FT_ATOM_CLIENTS 4

/* Posted kinds begin with "p", and have no result */
static const struct {
    const char   *name;
    ft_atom_op_t op;
    int          fetch;
} ft_atom_kinds[] = {
    {"padd", FT_ATOM_ADD, 0}, {"pand", FT_ATOM_AND, 0},
    {"por", FT_ATOM_OR, 0},   {"pxor", FT_ATOM_XOR, 0},
    {"fadd", FT_ATOM_ADD, 1}, {"fand", FT_ATOM_AND, 1},
    {"for", FT_ATOM_OR, 1},   {"fxor", FT_ATOM_XOR, 1},
    {"swap", FT_ATOM_SWAP, 1}, {"cswap", FT_ATOM_CSWAP, 1}
};

#define FT_ATOM_NUM_KINDS (sizeof(ft_atom_kinds) / sizeof(ft_atom_kinds[0]))


static int ft_atom_parse(const char *text, ft_atom_t *atom)
{
    char name[16], compare[24];
    unsigned i;

    memset(atom, 0, sizeof(*atom));
    if (sscanf(text, "%15[^:]:%23[^:]:%" SCNx64 ":%" SCNx64, name, compare,
               &atom->value, &atom->result) < 3) {
        return -1;
    }

    atom->last_seen = !strcmp(compare, FT_ATOM_LAST_SEEN);
    atom->compare   = strtoull(compare, NULL, 16);
    for (i = 0; i < FT_ATOM_NUM_KINDS; ++i) {
        if (!strcmp(name, ft_atom_kinds[i].name)) {
            atom->op    = ft_atom_kinds[i].op;
            atom->fetch = ft_atom_kinds[i].fetch;
            return 0;
        }
    }

    return -1;
}

int ft_atoms_parse(const char *text, ft_atom_t *atoms)
{
    int num = 0;

    for (;;) {
        if ((num == FT_ATOM_MAX) || (ft_atom_parse(text, &atoms[num++]) != 0)) {
            return -1;
        }

        text = strchr(text, ',');
        if (text == NULL) {
            return num;
        }

        ++text;
    }
}

void ft_atom_format(const ft_atom_t *atom, char *text)
{
    unsigned i = 0;

    while ((ft_atom_kinds[i].op != atom->op) ||
           (ft_atom_kinds[i].fetch != atom->fetch)) {
        ++i;
    }

    snprintf(text, FT_ATOM_TEXT_MAX, "%s:%" PRIx64 ":%" PRIx64 ":%" PRIx64,
             ft_atom_kinds[i].name, atom->compare, atom->value, atom->result);
}

uint64_t ft_atom_apply(const ft_atom_t *atom, uint64_t value, unsigned width)
{
    uint64_t mask = (width == 8) ? UINT64_MAX : UINT32_MAX;

    switch (atom->op) {
    case FT_ATOM_ADD:
        return (value + atom->value) & mask;
    case FT_ATOM_AND:
        return value & atom->value & mask;
    case FT_ATOM_OR:
        return (value | atom->value) & mask;
    case FT_ATOM_XOR:
        return (value ^ atom->value) & mask;
    case FT_ATOM_SWAP:
        return atom->value & mask;
    default:
        return (value == (atom->compare & mask)) ? (atom->value & mask) : value;
    }
}

static int ft_atoms_search(ft_atom_t atoms[][FT_ATOM_MAX], const int *counts,
                           unsigned num, int *done, uint64_t value,
                           uint64_t last, unsigned width)
{
    const ft_atom_t *atom;
    int finished = 1;
    unsigned i;
    int found;

    for (i = 0; i < num; ++i) {
        if (done[i] == counts[i]) {
            continue;
        }

        finished = 0;
        atom     = &atoms[i][done[i]];
        if (atom->fetch && (atom->result != value)) {
            continue;
        }

        ++done[i];
        found = ft_atoms_search(atoms, counts, num, done,
                                ft_atom_apply(atom, value, width), last, width);
        --done[i];
        if (found) {
            return 1;
        }
    }

    return finished && (value == last);
}

int ft_atoms_explain(ft_atom_t atoms[][FT_ATOM_MAX], const int *counts,
                     unsigned num, uint64_t first, uint64_t last,
                     unsigned width)
{
    int done[FT_ATOM_CLIENTS] = {0};

    return ft_atoms_search(atoms, counts, num, done, first, last, width);
}

int ft_atom_is_by_cpu(void)
{
    const char *mode = getenv("UCX_RC_VARUNA_ATOMIC_MODE");

    return (mode == NULL) || !strcmp(mode, "proxy");
}
