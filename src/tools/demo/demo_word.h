/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checked contents: each 8-byte word identifies its operation, endpoint and place. So a
 * lost, repeated, misplaced or torn word is detected, and a fragment of an operation
 * identifies itself. Used by both sides, and by the judge of the trace
 * (demo_trace_check.c).
 *
 *      63      56 55 54 53    48 47                      17 16            0
 *     +----------+-----+--------+--------------------------+---------------+
 *     |   0xa7   | kind|   ep   |         sequence         |  word index   |
 *     +----------+-----+--------+--------------------------+---------------+
 */
#ifndef DEMO_WORD_H
#define DEMO_WORD_H

#include "demo_def.h"


#define DEMO_WORD_MAGIC 0xa7ull
#define DEMO_WORD_SEQ   0x7fffffffull


typedef enum {
    DEMO_WORD_PUT,
    DEMO_WORD_AM,
    DEMO_WORD_SRC
} demo_word_kind_t;


static inline uint64_t
demo_word(demo_word_kind_t kind, unsigned ep, uint64_t seq, uint64_t index)
{
    return (DEMO_WORD_MAGIC << 56) | ((uint64_t)kind << 54) |
           ((uint64_t)ep << 48) | ((seq & DEMO_WORD_SEQ) << 17) | index;
}


/**
 * Fill @a length bytes (a multiple of 8) with words from @a first on.
 */
void demo_word_fill(void *buffer, size_t length, uint64_t first);


/**
 * Compare @a length bytes with words from @a first on.
 *
 * @param [out] error_p  A description of the first difference, if any.
 *
 * @return Nonzero if all of them are correct.
 */
int demo_word_check(const void *buffer, size_t length, uint64_t first,
                    char error_p[DEMO_TEXT_LEN]);

#endif
