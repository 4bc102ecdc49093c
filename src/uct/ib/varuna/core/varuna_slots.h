/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The slots which an endpoint has in its peer's arena, and when a generation of
 * one may be used (docs/ATOMICS.md, rules 1 and 7). Pure, but for the clock. Used
 * by the driver of atomics.
 *
 * A 32-bit UID, and half of a 64-bit one, has few bits of its slot's generation, so it
 * returns. Rule 1 wants nothing of its last use to be under way then. The circle of generations is
 * walked in two halves, and a half is entered only UCT_VARUNA_SLOT_HALF_TIME after
 * the other one was: so at least that lies between two uses of any value.
 */
#ifndef UCT_VARUNA_SLOTS_H_
#define UCT_VARUNA_SLOTS_H_

#include "varuna_uid.h"

#include <ucs/arch/bitops.h>
#include <ucs/debug/assert.h>
#include <ucs/time/time.h>

/* Seconds; longer than any retry and packet lives */
#define UCT_VARUNA_SLOT_HALF_TIME    10.0

#define UCT_VARUNA_SLOT_HALF_MASK    (UCT_VARUNA_UID32_GEN_MASK >> 1)

typedef struct uct_varuna_slots {
    uint32_t                   first;     /* In the arena */
    uint32_t                   num;       /* 0: the peer has none for us */
    uint32_t                   free_map;
    uint64_t                   gens[UCT_VARUNA_SLOT_BLOCK];
    ucs_time_t                 entered[UCT_VARUNA_SLOT_BLOCK]; /* The half */
} uct_varuna_slots_t;

/**
 * Take over a block of slots.
 *
 * @param [in] first  Index of the first one.
 * @param [in] num    How many, at most UCT_VARUNA_SLOT_BLOCK.
 * @param [in] marks  The mark of each, unaligned. A slot whose mark is not PENDING
 *                    is left alone.
 */
void uct_varuna_slots_init(uct_varuna_slots_t *slots, uint32_t first,
                           unsigned num, const void *marks);

/** As uct_varuna_slots_take(), if the first free slot has come to a new half. */
uint32_t uct_varuna_slots_take_timed(uct_varuna_slots_t *slots, uint64_t *gen_p);

/**
 * Take a free slot.
 *
 * @param [out] gen_p  Its generation.
 *
 * @return Its index in the arena, or UCT_VARUNA_SLOT_NONE: wait.
 */
static inline uint32_t
uct_varuna_slots_take(uct_varuna_slots_t *slots, uint64_t *gen_p)
{
    unsigned i;

    if (ucs_unlikely(slots->free_map == 0)) {
        return UCT_VARUNA_SLOT_NONE;
    }

    i = ucs_ffs32(slots->free_map);
    if (ucs_unlikely((slots->gens[i] & UCT_VARUNA_SLOT_HALF_MASK) == 0)) {
        return uct_varuna_slots_take_timed(slots, gen_p); /* A half begins */
    }

    slots->free_map &= slots->free_map - 1;
    *gen_p           = slots->gens[i];
    return slots->first + i;
}

/** Return a slot; @a gen is the next generation to be used. */
static inline void
uct_varuna_slots_give(uct_varuna_slots_t *slots, uint32_t slot, uint64_t gen)
{
    unsigned i = slot - slots->first;

    ucs_assert((slot >= slots->first) && (i < slots->num) &&
               !(slots->free_map & UCS_BIT(i)));
    slots->gens[i]   = gen;
    slots->free_map |= UCS_BIT(i);
}

/** @return Nonzero if a caller that finds no slot must ask again later: some are
 *  free, but their time has not come. */
static inline int uct_varuna_slots_wait_for_time(const uct_varuna_slots_t *slots)
{
    return slots->free_map != 0;
}

UCT_VARUNA_STATIC_ASSERT(UCT_VARUNA_SLOT_BLOCK <= 32);

#endif
