/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Changes of a word.
 */
#include "ft_atom_chain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ft_atom_chain_clear(ft_atom_chain_t *chain)
{
    free(chain->written);
    free(chain->replaced);
    memset(chain, 0, sizeof(*chain));
}

void ft_atom_chain_add(ft_atom_chain_t *chain, uint64_t replaced,
                       uint64_t written)
{
    size_t size;

    if (chain->num == chain->max) {
        chain->max      = (2 * chain->max) + 64;
        size            = chain->max * sizeof(uint64_t);
        chain->written  = realloc(chain->written, size);
        chain->replaced = realloc(chain->replaced, size);
        if ((chain->written == NULL) || (chain->replaced == NULL)) {
            fprintf(stderr, "out of memory\n");
            abort();
        }
    }

    chain->replaced[chain->num]  = replaced;
    chain->written[chain->num++] = written;
}

static int ft_compare_values(const void *a, const void *b)
{
    const uint64_t *v1 = a, *v2 = b;

    return (*v1 > *v2) - (*v1 < *v2);
}

const char *ft_atom_chain_check(ft_atom_chain_t *chain, uint64_t first,
                                uint64_t last)
{
    static char text[160];
    const char *wrong = NULL;
    size_t i;

    ft_atom_chain_add(chain, last, first);
    qsort(chain->written, chain->num, sizeof(uint64_t), ft_compare_values);
    qsort(chain->replaced, chain->num, sizeof(uint64_t), ft_compare_values);
    for (i = 0; (i < chain->num) && (wrong == NULL); ++i) {
        if (chain->written[i] != chain->replaced[i]) {
            snprintf(text, sizeof(text), "the chain of %zu values is broken: 0x%"
                     PRIx64 " written, 0x%" PRIx64 " replaced", chain->num,
                     chain->written[i], chain->replaced[i]);
            wrong = text;
        }
    }

    return wrong;
}
