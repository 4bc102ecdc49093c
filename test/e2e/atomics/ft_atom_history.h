/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Check whether some order explains a history of atomics on words. Pure. Used by the
 * chaos test of atomics.
 */
#ifndef FT_ATOM_HISTORY_H_
#define FT_ATOM_HISTORY_H_

#include "ft_atom.h"

#include <stddef.h>

#define FT_ATOM_WORDS        8
#define FT_ATOM_WORDS_STRIDE 4096 /* Between words, the first one at this offset */
#define FT_ATOM_LOAD_CLIENTS 4

/* Use of each word */
enum {
    FT_ATOM_WORD_FADD,      /* Fetched adds of 1 */
    FT_ATOM_WORD_ADD,       /* Posted and fetched adds */
    FT_ATOM_WORD_CHAIN,     /* Compare and swap, a new value each time */
    FT_ATOM_WORD_ABA,       /* Compare and swap of four values */
    FT_ATOM_WORD_SWAP,      /* Swaps of new values */
    FT_ATOM_WORD_BITS,      /* AND, OR, XOR, posted and fetched */
    FT_ATOM_WORD_ALL,       /* All operations on a few bits */
    FT_ATOM_WORD_HIGH       /* As ABA, with values that look like UIDs */
};

/* One operation, in a client's file. Those of one client and word are in the order in
 * which they were posted. */
typedef struct {
    uint8_t   client;
    uint8_t   word;
    uint8_t   width;
    uint64_t  start;        /* Before it was posted, ns */
    uint64_t  end;          /* After its completion, or that of a later flush */
    ft_atom_t atom;
} ft_atom_record_t;

/** @return The offset of a word. */
uint64_t ft_atom_word_first(unsigned word, unsigned width);

/**
 * Check the history of one word; sorts the records.
 *
 * @param [in] last  The final value of the word.
 *
 * @return NULL if some order of the operations, each executed once between its start
 *         and its end, explains all results and @a last; otherwise the reason (static).
 */
const char *ft_atom_history_check(ft_atom_record_t *records, size_t num,
                                  uint64_t last);

#endif
