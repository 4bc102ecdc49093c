/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Secrets. See varuna_secret.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_secret.h"

#include <string.h>

static inline uint64_t uct_varuna_secret_rotate(uint64_t value, unsigned bits)
{
    return (value << bits) | (value >> (64 - bits));
}

static void uct_varuna_secret_rounds(uint64_t *v, unsigned count)
{
    while (count-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1]  = uct_varuna_secret_rotate(v[1], 13) ^ v[0];
        v[3]  = uct_varuna_secret_rotate(v[3], 16) ^ v[2];
        v[0]  = uct_varuna_secret_rotate(v[0], 32) + v[3];
        v[2] += v[1];
        v[1]  = uct_varuna_secret_rotate(v[1], 17) ^ v[2];
        v[2]  = uct_varuna_secret_rotate(v[2], 32);
        v[3]  = uct_varuna_secret_rotate(v[3], 21) ^ v[0];
    }
}

static inline void uct_varuna_secret_word(uint64_t *v, uint64_t word)
{
    v[3] ^= word;
    uct_varuna_secret_rounds(v, 2);
    v[0] ^= word;
}

uint64_t uct_varuna_secret_digest(const uct_varuna_secret_key_t *key, const void *data,
                                  size_t size)
{
    const char *pos = data;
    size_t left     = size;
    /* "somepseudorandomlygeneratedbytes" */
    uint64_t v[4]   = {
        key->words[0] ^ 0x736f6d6570736575ul,
        key->words[1] ^ 0x646f72616e646f6dul,
        key->words[0] ^ 0x6c7967656e657261ul,
        key->words[1] ^ 0x7465646279746573ul
    };
    uint64_t word;

    for (; left >= sizeof(word); left -= sizeof(word), pos += sizeof(word)) {
        memcpy(&word, pos, sizeof(word));
        uct_varuna_secret_word(v, word);
    }

    /* The rest, and the length */
    word = 0;
    memcpy(&word, pos, left);
    uct_varuna_secret_word(v, word | ((uint64_t)size << 56));
    v[2] ^= 0xff;
    uct_varuna_secret_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t uct_varuna_secret_hash(const uct_varuna_secret_key_t *key,
                                uint64_t number)
{
    return uct_varuna_secret_digest(key, &number, sizeof(number));
}

uint64_t uct_varuna_secret_of(const uct_varuna_secret_key_t *key, uint64_t uuid)
{
    uint64_t secret = uct_varuna_secret_hash(key, uuid);

    return (secret == 0) ? 1 : secret;
}
