/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics on words of the other process: their names, how they are posted, and what
 * they should leave. Both benchmarks use it.
 */
#ifndef ATOMICS_LOAD_H
#define ATOMICS_LOAD_H

#include "cost_uct.h"


/* Words that are worked on, one after the other. An operation on a word comes after the
 * result of the last one there, if no more than that are under way */
#define ATOMICS_WORDS 64


typedef struct {
    const char      *name;
    uct_atomic_op_t op;
    int             is_posted;  /* It has no result */
} atomics_op_t;


typedef struct atomics_words atomics_words_t;


/* One word: what it holds, and what the operation under way returned */
typedef struct {
    uct_completion_t comp;
    atomics_words_t  *words;
    uint64_t         value;
    uint64_t         result;
    int              is_pending;
} atomics_word_t;


struct atomics_words {
    const atomics_op_t *op;
    unsigned           pending;   /* Operations whose result has not come */
    unsigned long      wrong;     /* ... and was wrong */
    atomics_word_t     words[ATOMICS_WORDS];
};


/** @return The operation @a name, or NULL. */
const atomics_op_t *atomics_op_find(const char *name);

/** @return Whether the transport has the operation. */
int atomics_op_is_offered(const cost_uct_t *uct, const atomics_op_t *op);

/** All words of a new buffer hold the same. */
void atomics_words_init(atomics_words_t *words);

/**
 * Post operation number @a i, on a word that follows from it. Results are checked when
 * they come. A compare and swap succeeds.
 *
 * @return As UCT's operations do. UCS_ERR_NO_RESOURCE also if the last operation on that
 *         word is under way.
 */
ucs_status_t atomics_post(cost_uct_t *uct, atomics_words_t *words, unsigned long i);

#endif
