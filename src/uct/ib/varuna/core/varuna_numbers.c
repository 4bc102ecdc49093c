/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Numbers that cannot be guessed. See varuna_numbers.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_numbers.h"

#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <string.h>

#define UCT_VARUNA_NUMBERS_MIN       64

static uct_varuna_number_table_t *uct_varuna_numbers_alloc(uint32_t size)
{
    uct_varuna_number_table_t *table;

    table = ucs_calloc(1, sizeof(*table) + (size * sizeof(*table->objects)),
                       "varuna_numbers");
    if (table != NULL) {
        table->mask = size - 1;
    }

    return table;
}

ucs_status_t uct_varuna_numbers_init(uct_varuna_numbers_t *numbers,
                                     unsigned bits)
{
    numbers->limit = UCS_BIT(bits);
    numbers->count = 0;
    numbers->table = uct_varuna_numbers_alloc(UCT_VARUNA_NUMBERS_MIN);
    return (numbers->table == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void uct_varuna_numbers_cleanup(uct_varuna_numbers_t *numbers)
{
    uct_varuna_number_table_t *table;

    while ((table = numbers->table) != NULL) {
        numbers->table = table->smaller;
        ucs_free(table);
    }
}

static ucs_status_t uct_varuna_numbers_grow(uct_varuna_numbers_t *numbers)
{
    uct_varuna_number_table_t *old = numbers->table;
    uct_varuna_number_table_t *table;
    uint32_t i;

    if (old->mask + 1 >= numbers->limit) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    table = uct_varuna_numbers_alloc(2 * (old->mask + 1));
    if (table == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    table->smaller = old;
    for (i = 0; i <= old->mask; ++i) {
        if (old->objects[i] != NULL) {
            table->objects[old->objects[i]->number & table->mask] =
                    old->objects[i];
        }
    }

    __atomic_store_n(&numbers->table, table, __ATOMIC_RELEASE);
    return UCS_OK;
}

ucs_status_t uct_varuna_numbers_add(uct_varuna_numbers_t *numbers,
                                    uct_varuna_numbered_t *object,
                                    uint32_t random)
{
    uint32_t number = random & (numbers->limit - 1);
    ucs_status_t status;

    if (2 * (numbers->count + 1) > numbers->table->mask + 1) {
        status = uct_varuna_numbers_grow(numbers);
        if (status != UCS_OK) {
            return status;
        }
    }

    if ((number == 0) ||
        (numbers->table->objects[number & numbers->table->mask] != NULL)) {
        return UCS_ERR_ALREADY_EXISTS;
    }

    object->number = number;
    ++numbers->count;
    __atomic_store_n(&numbers->table->objects[number & numbers->table->mask],
                     object, __ATOMIC_RELEASE);
    return UCS_OK;
}

void uct_varuna_numbers_remove(uct_varuna_numbers_t *numbers,
                               uct_varuna_numbered_t *object)
{
    __atomic_store_n(&numbers->table->objects[object->number &
                                              numbers->table->mask],
                     NULL, __ATOMIC_RELEASE);
    --numbers->count;
}

/* --- Secrets --- */

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
