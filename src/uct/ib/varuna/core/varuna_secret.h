/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Numbers that cannot be guessed: a process that knows one has received it from its
 * owner. They are random (ucx/varuna_random.h), or computed from what is. An interface has
 * a uuid, which is in its address; a secret for each remote interface, which proves that a
 * message is from one of the two; and one for each opening of a vQP.
 *
 * Secrets are not stored but computed from a key that never leaves the interface
 * (SipHash-2-4), so that the answer to a question is recognized even when everything
 * else about it is forgotten.
 */
#ifndef UCT_VARUNA_SECRET_H_
#define UCT_VARUNA_SECRET_H_

#include <ucs/datastruct/khash.h>
#include <stddef.h>
#include <stdint.h>

typedef struct uct_varuna_secret_key {
    uint64_t                   words[2];
} uct_varuna_secret_key_t;

/** @return Our secret for the interface @a uuid, never 0. */
uint64_t uct_varuna_secret_of(const uct_varuna_secret_key_t *key, uint64_t uuid);

/** @return SipHash-2-4 of @a size bytes. */
uint64_t uct_varuna_secret_digest(const uct_varuna_secret_key_t *key, const void *data,
                                  size_t size);

/** @return The same of the 8 bytes of @a number, lowest first. */
uint64_t uct_varuna_secret_hash(const uct_varuna_secret_key_t *key,
                                uint64_t number);

/* --- Hashes --- */

/* Hashes for UCS's tables. */

/** Of a pointer. The low bits of pointers are alike, and those are what a table with
 *  khash's own function uses: thousands of endpoints meet in few of its places. */
static inline khint_t uct_varuna_hash_pointer(uint64_t key)
{
    return (key * 0x9e3779b97f4a7c15ul) >> 32;
}

/** A table by pointers, as KHASH_MAP_INIT_INT64(). */
#define UCT_VARUNA_HASH_MAP_INIT_POINTER(_name, _value) \
    KHASH_INIT(_name, uint64_t, _value, 1, uct_varuna_hash_pointer, \
               kh_int64_hash_equal)

#endif
