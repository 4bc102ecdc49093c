/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Numbers that cannot be guessed, secrets, and objects by random numbers. Pure; the caller
 * brings the random ones (ucx/varuna_random.h).
 */
#ifndef UCT_VARUNA_NUMBERS_H_
#define UCT_VARUNA_NUMBERS_H_

#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>
#include <ucs/datastruct/khash.h>

/* --- Objects by numbers --- */

/* Objects by random numbers, which other processes send us: only a process that was given a
 * number can name the object. Used by the targets of vQPs, whose numbers are in the headers
 * of active messages.
 *
 *     number  | random bits         | index |     index: as many bits as the table has
 *
 * A number is chosen so that its index is free, so a look-up is one load and one
 * comparison. Numbers whose lower bits differ also differ in one bit more, so a larger
 * table has no collisions either.
 *
 * One thread finds and removes; another one may add at the same time. The caller's lock is
 * held to add and to remove. */

/* Embedded in the object */
typedef struct uct_varuna_numbered {
    uint32_t                   number;    /* Never 0 */
} uct_varuna_numbered_t;

typedef struct uct_varuna_number_table {
    struct uct_varuna_number_table *smaller; /* Replaced by this one; may be read
                                             until the end */
    uint32_t                   mask;      /* Of indices */
    uct_varuna_numbered_t      *objects[];
} uct_varuna_number_table_t;

typedef struct uct_varuna_numbers {
    uct_varuna_number_table_t  *table;
    uint32_t                   limit;     /* Numbers are less than this */
    uint32_t                   count;
} uct_varuna_numbers_t;

/** Numbers have @a bits bits. @return UCS_ERR_NO_MEMORY. */
ucs_status_t uct_varuna_numbers_init(uct_varuna_numbers_t *numbers,
                                     unsigned bits);

void uct_varuna_numbers_cleanup(uct_varuna_numbers_t *numbers);

/**
 * Give an object its number, by which it is found from now on.
 *
 * @param [in] random  The number will be its lower bits.
 *
 * @return UCS_ERR_ALREADY_EXISTS if that is no number, or its index is in use: try another
 *         one, at least every second is free; UCS_ERR_EXCEEDS_LIMIT if half of the numbers
 *         are in use; UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_varuna_numbers_add(uct_varuna_numbers_t *numbers,
                                    uct_varuna_numbered_t *object,
                                    uint32_t random);

/** The object is not found any more. */
void uct_varuna_numbers_remove(uct_varuna_numbers_t *numbers,
                               uct_varuna_numbered_t *object);

/** @return The only object that may have this number, or NULL. */
static inline uct_varuna_numbered_t *
uct_varuna_numbers_peek(const uct_varuna_numbers_t *numbers, uint32_t number)
{
    const uct_varuna_number_table_t *table =
            __atomic_load_n(&numbers->table, __ATOMIC_ACQUIRE);
    size_t index                           = number & table->mask;

    return __atomic_load_n(&table->objects[index], __ATOMIC_ACQUIRE);
}

/** @return The object, or NULL. */
static inline uct_varuna_numbered_t *
uct_varuna_numbers_find(const uct_varuna_numbers_t *numbers, uint32_t number)
{
    uct_varuna_numbered_t *object = uct_varuna_numbers_peek(numbers, number);

    return ((object != NULL) && (object->number == number)) ? object : NULL;
}

/* --- Secrets --- */

/* Numbers that cannot be guessed: a process that knows one has received it from its
 * owner. They are random (ucx/varuna_random.h), or computed from what is. An interface has
 * a uuid, which is in its address; a secret for each remote interface, which proves that a
 * message is from one of the two; and one for each opening of a vQP.
 *
 * Secrets are not stored but computed from a key that never leaves the interface
 * (SipHash-2-4), so that the answer to a question is recognized even when everything
 * else about it is forgotten. */

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
