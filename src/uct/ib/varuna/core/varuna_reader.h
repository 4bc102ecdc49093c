/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the checks of addresses and of messages have in common. Used by varuna_parse.c
 * and varuna_msg.c.
 */
#ifndef UCT_VARUNA_READER_H_
#define UCT_VARUNA_READER_H_

#include <stddef.h>

#define UCT_VARUNA_REASON_VERSION \
    "it speaks another wire version of rc_varuna: install the same rc_varuna " \
    "on all hosts"

#define UCT_VARUNA_REASON_MAGIC \
    "it is not of rc_varuna, or of a host of the other byte order"

/* A cursor over bytes that are not trusted. */
typedef struct uct_varuna_reader {
    const char                 *pos;
    size_t                     left;
} uct_varuna_reader_t;

/** Take @a size bytes. @return NULL if there are fewer. */
static inline const void *
uct_varuna_reader_take(uct_varuna_reader_t *reader, size_t size)
{
    const char *pos = reader->pos;

    if (size > reader->left) {
        return NULL;
    }

    reader->pos  += size;
    reader->left -= size;
    return pos;
}

#endif
