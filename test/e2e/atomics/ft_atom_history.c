/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The search for an order (Wing and Gong, "Testing and verifying concurrent objects",
 * 1993, with Lowe's cache of visited states): the next operation must have started before
 * the end of each remaining operation. Each client's own order is known, so a state is the
 * value and the number of operations of each client that were executed.
 *
 * Some words have a faster check besides: sorted results of adds, and values that are
 * unique.
 */
#include "ft_atom_chain.h"
#include "ft_atom_history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint32_t done[FT_ATOM_LOAD_CLIENTS];
    uint64_t value;
    unsigned next;          /* Client to be tried */
} ft_state_t;

typedef struct {
    const ft_atom_record_t *records[FT_ATOM_LOAD_CLIENTS];
    uint32_t               counts[FT_ATOM_LOAD_CLIENTS];
    ft_state_t             *stack;
    uint64_t               *seen;     /* Hash table of states */
    size_t                 seen_size; /* A power of two */
    size_t                 num_seen;
} ft_search_t;

static char ft_text[256];


uint64_t ft_atom_word_first(unsigned word, unsigned width)
{
    return (word != FT_ATOM_WORD_HIGH) ? 0 :
           (width == 8) ? 0x8000000000000000ul : 0x80000000ul;
}

static int ft_compare_clients(const void *a, const void *b)
{
    const ft_atom_record_t *r1 = a, *r2 = b;

    if (r1->client != r2->client) {
        return (int)r1->client - (int)r2->client;
    }

    return (r1->start > r2->start) - (r1->start < r2->start);
}

static int ft_compare_values(const void *a, const void *b)
{
    const uint64_t *v1 = a, *v2 = b;

    return (*v1 > *v2) - (*v1 < *v2);
}

static void *ft_alloc(size_t count, size_t size)
{
    void *ptr = calloc(count, size);

    if (ptr == NULL) {
        fprintf(stderr, "out of memory\n");
        abort();
    }

    return ptr;
}

/* --- The search --- */

static uint64_t ft_state_hash(const ft_state_t *state)
{
    uint64_t hash = (state->value + 1) * 0x94d049bb133111ebul;
    unsigned i;

    for (i = 0; i < FT_ATOM_LOAD_CLIENTS; ++i) {
        hash = (hash ^ (hash >> 29) ^ state->done[i]) * 0xbf58476d1ce4e5b9ul;
    }

    hash ^= hash >> 32;
    return (hash == 0) ? 1 : hash;
}

static void ft_seen_put(uint64_t *seen, size_t size, uint64_t hash)
{
    size_t i = hash & (size - 1);

    while (seen[i] != 0) {
        i = (i + 1) & (size - 1);
    }

    seen[i] = hash;
}

/* @return whether the state was not there */
static int ft_search_note(ft_search_t *search, const ft_state_t *state)
{
    uint64_t hash = ft_state_hash(state);
    size_t i, size;
    uint64_t *seen;

    for (i = hash & (search->seen_size - 1); search->seen[i] != 0;
         i = (i + 1) & (search->seen_size - 1)) {
        if (search->seen[i] == hash) {
            return 0;
        }
    }

    search->seen[i] = hash;
    if (++search->num_seen * 2 > search->seen_size) {
        size = search->seen_size * 2;
        seen = ft_alloc(size, sizeof(*seen));
        for (i = 0; i < search->seen_size; ++i) {
            if (search->seen[i] != 0) {
                ft_seen_put(seen, size, search->seen[i]);
            }
        }

        free(search->seen);
        search->seen      = seen;
        search->seen_size = size;
    }

    return 1;
}

static const ft_atom_record_t *ft_search_head(const ft_search_t *search,
                                              const ft_state_t *state,
                                              unsigned client)
{
    return (state->done[client] == search->counts[client]) ? NULL :
           &search->records[client][state->done[client]];
}

/* Apply the next operation of a client. @return whether it can be the next one */
static int ft_search_apply(const ft_search_t *search, const ft_state_t *state,
                           unsigned client, ft_state_t *next)
{
    const ft_atom_record_t *head = ft_search_head(search, state, client);
    const ft_atom_record_t *other;
    unsigned i;

    if ((head == NULL) ||
        (head->atom.fetch && (head->atom.result != state->value))) {
        return 0;
    }

    for (i = 0; i < FT_ATOM_LOAD_CLIENTS; ++i) {
        other = ft_search_head(search, state, i);
        if ((i != client) && (other != NULL) && (other->end < head->start)) {
            return 0;
        }
    }

    *next       = *state;
    next->next  = 0;
    next->value = ft_atom_apply(&head->atom, state->value, head->width);
    ++next->done[client];
    return 1;
}

/* @return The maximum number of explained operations; *found_p: whether these are all, and
 * result in @a last */
static size_t ft_search_run(ft_search_t *search, size_t num, uint64_t first,
                            uint64_t last, int *found_p)
{
    size_t depth = 0, deepest = 0;
    ft_state_t *state;

    memset(&search->stack[0], 0, sizeof(search->stack[0]));
    search->stack[0].value = first;
    *found_p               = 0;
    for (;;) {
        state = &search->stack[depth];
        if ((depth == num) && (state->value == last)) {
            *found_p = 1;
            return depth;
        }

        if (state->next == FT_ATOM_LOAD_CLIENTS) {
            if (depth-- == 0) {
                return deepest;
            }
            continue;
        }

        if (ft_search_apply(search, state, state->next++, state + 1) &&
            ft_search_note(search, state + 1)) {
            ++depth;
            deepest = (depth > deepest) ? depth : deepest;
        }
    }
}

static const char *ft_check_order(const ft_atom_record_t *records, size_t num,
                                  uint64_t first, uint64_t last)
{
    ft_search_t search = {.seen_size = 1024};
    size_t deepest, i;
    int found;

    for (i = num; i-- > 0;) {
        search.records[records[i].client] = &records[i];
        ++search.counts[records[i].client];
    }

    search.seen  = ft_alloc(search.seen_size, sizeof(*search.seen));
    search.stack = ft_alloc(num + 2, sizeof(*search.stack));
    deepest      = ft_search_run(&search, num, first, last, &found);
    free(search.seen);
    free(search.stack);
    if (found) {
        return NULL;
    }

    snprintf(ft_text, sizeof(ft_text), "no order explains it; one explains %zu of"
             " %zu operations at most, 0x%" PRIx64 " is left", deepest, num,
             last);
    return ft_text;
}

/* --- Conclusions from values --- */

/* Adds of 1: all results and the last value, sorted, have no gap */
static const char *ft_check_sorted(const ft_atom_record_t *records, size_t num,
                                   uint64_t last)
{
    uint64_t *results = ft_alloc(num + 1, sizeof(*results));
    const char *wrong = NULL;
    size_t i;

    for (i = 0; i < num; ++i) {
        results[i] = records[i].atom.result;
    }

    results[num] = last;
    qsort(results, num, sizeof(*results), ft_compare_values);
    for (i = 0; (i <= num) && (wrong == NULL); ++i) {
        if (results[i] != i) {
            snprintf(ft_text, sizeof(ft_text), "sorted result %zu of %zu is"
                     " 0x%" PRIx64, i, num, results[i]);
            wrong = ft_text;
        }
    }

    free(results);
    return wrong;
}

static int ft_is_success(const ft_atom_record_t *record)
{
    return (record->atom.op == FT_ATOM_SWAP) ||
           ((record->atom.op == FT_ATOM_CSWAP) &&
            (record->atom.result == record->atom.compare));
}

/* New values: each except the last is replaced once, by the operation that returned
 * it */
static const char *ft_check_chain(const ft_atom_record_t *records, size_t num,
                                  uint64_t first, uint64_t last)
{
    ft_atom_chain_t chain = {0};
    const char *wrong;
    size_t i;

    for (i = 0; i < num; ++i) {
        if (ft_is_success(&records[i])) {
            ft_atom_chain_add(&chain, records[i].atom.result,
                              records[i].atom.value);
        }
    }

    wrong = ft_atom_chain_check(&chain, first, last);
    ft_atom_chain_clear(&chain);
    return wrong;
}

const char *ft_atom_history_check(ft_atom_record_t *records, size_t num,
                                  uint64_t last)
{
    const char *wrong = NULL;
    uint64_t first;

    if (num == 0) {
        return NULL;
    }

    first = ft_atom_word_first(records[0].word, records[0].width);
    if (records[0].word == FT_ATOM_WORD_FADD) {
        wrong = ft_check_sorted(records, num, last);
    } else if ((records[0].word == FT_ATOM_WORD_CHAIN) ||
               (records[0].word == FT_ATOM_WORD_SWAP)) {
        wrong = ft_check_chain(records, num, first, last);
    }

    if (wrong != NULL) {
        return wrong;
    }

    qsort(records, num, sizeof(*records), ft_compare_clients);
    return ft_check_order(records, num, first, last);
}
