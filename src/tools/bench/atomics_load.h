/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics on words of the other process: their names, how they are posted, and the
 * expected words. Both benchmarks use it.
 */
#ifndef ATOMICS_LOAD_H
#define ATOMICS_LOAD_H

#include "cost_uct.h"


/* Words to use in turn. If no more operations are in flight, each one on a word follows
 * the result of the last one on this word */
#define ATOMICS_WORDS 64


typedef struct {
    const char      *name;
    uct_atomic_op_t op;
    int             is_posted;  /* It has no result */
} atomics_op_t;


typedef struct atomics_words atomics_words_t;


/* One word: its value, and the result of the operation in flight */
typedef struct {
    uct_completion_t comp;
    atomics_words_t  *words;
    uint64_t         value;
    uint64_t         result;
    int              is_pending;
} atomics_word_t;


struct atomics_words {
    const atomics_op_t *op;
    unsigned           pending;   /* Operations without a result yet */
    unsigned long      wrong;     /* Wrong results */
    atomics_word_t     words[ATOMICS_WORDS];
};


/** @return The operation @a name, or NULL. */
const atomics_op_t *atomics_op_find(const char *name);

/** @return Whether the transport has the operation. */
int atomics_op_is_offered(const cost_uct_t *uct, const atomics_op_t *op);

/** Set all words of a new buffer to the same value. */
void atomics_words_init(atomics_words_t *words);

/**
 * Post operation number @a i, on a word that depends on it. Results are checked when
 * they arrive. A compare and swap succeeds.
 *
 * @return As UCT's operations do. UCS_ERR_NO_RESOURCE also if the last operation on that
 *         word is in flight.
 */
ucs_status_t atomics_post(cost_uct_t *uct, atomics_words_t *words, unsigned long i);

#endif
