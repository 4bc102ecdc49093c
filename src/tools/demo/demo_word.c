/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Contents that identify their place, see demo_word.h.
 */
#include "demo_word.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>


static void demo_word_describe(uint64_t word, char *buffer, size_t max)
{
    static const char *names[] = {"put", "message", "source", "?"};

    if ((word >> 56) != DEMO_WORD_MAGIC) {
        snprintf(buffer, max, "0x%" PRIx64 " (not a put of the demo)", word);
        return;
    }

    snprintf(buffer, max, "%s, endpoint %u, sequence %u, word %u",
             names[(word >> 54) & 3], (unsigned)(word >> 48) & 63,
             (unsigned)((word >> 17) & DEMO_WORD_SEQ),
             (unsigned)(word & 0x1ffff));
}

void demo_word_fill(void *buffer, size_t length, uint64_t first)
{
    uint64_t *words = buffer;
    size_t i;

    for (i = 0; i < length / sizeof(*words); ++i) {
        words[i] = first + i;
    }
}

int demo_word_check(const void *buffer, size_t length, uint64_t first,
                    char error_p[DEMO_TEXT_LEN])
{
    const char *bytes = buffer;
    char wanted[96], found[96];
    uint64_t word;
    size_t i;

    for (i = 0; i < length / sizeof(word); ++i) {
        /* A received payload may be unaligned */
        memcpy(&word, bytes + (i * sizeof(word)), sizeof(word));
        if (word != first + i) {
            demo_word_describe(first + i, wanted, sizeof(wanted));
            demo_word_describe(word, found, sizeof(found));
            snprintf(error_p, DEMO_TEXT_LEN, "expected [%s], found [%s]",
                     wanted, found);
            return 0;
        }
    }

    return 1;
}
