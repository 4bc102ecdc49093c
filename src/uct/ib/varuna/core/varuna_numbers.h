/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Objects by random numbers, which other processes send us: only a process that was
 * given a number can name the object. Pure; the caller brings the numbers. Used by the
 * targets of vQPs, whose numbers are in the headers of active messages.
 *
 *     number  | random bits         | index |     index: as many bits as the table has
 *
 * A number is chosen so that its index is free, so a look-up is one load and one
 * comparison. Numbers whose lower bits differ also differ in one bit more, so a larger
 * table has no collisions either.
 *
 * One thread finds and removes; another one may add at the same time. The caller's lock is
 * held to add and to remove.
 */
#ifndef UCT_VARUNA_NUMBERS_H_
#define UCT_VARUNA_NUMBERS_H_

#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

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

/** @return The object, or NULL. */
static inline uct_varuna_numbered_t *
uct_varuna_numbers_find(const uct_varuna_numbers_t *numbers, uint32_t number)
{
    const uct_varuna_number_table_t *table =
            __atomic_load_n(&numbers->table, __ATOMIC_ACQUIRE);
    uct_varuna_numbered_t *object          =
            __atomic_load_n(&table->objects[number & table->mask],
                            __ATOMIC_ACQUIRE);

    return ((object != NULL) && (object->number == number)) ? object : NULL;
}

#endif
