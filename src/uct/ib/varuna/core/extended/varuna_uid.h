/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Extended status of atomics: UIDs, slots and marks (docs/ATOMICS.md). Pure:
 * bits in, verdict out. Used by the requester's driver, by the responder's worker
 * and by the state machine of one atomic.
 *
 *    64-bit UID                                                32-bit UID
 *     63  62         44 43    32  31  30         12 11     0
 *    +---+-------------+--------+---+-------------+--------+   +---+-------------+--------+
 *    | 1 | high + low  | slot   | 1 | low 19 bits | slot   |   | 1 | low 19 bits | slot   |
 *    +---+-------------+--------+---+-------------+--------+   +---+-------------+--------+
 *
 * "low" and "high" are bits 0 to 18 and 19 to 37 of the generation. Words of 4 and of 8
 * bytes may overlap, so each half of a 64-bit UID names its slot, and has bits that differ
 * from those of the generations near it: an atomic that sees only this half finds the
 * slot, and the slot's body tells where its UID is, and how wide (uct_varuna_uid_find()).
 *
 * The top bit of each half is set, so no half that is positive as a signed number costs a
 * look at a slot.
 */
#ifndef UCT_VARUNA_UID_H_
#define UCT_VARUNA_UID_H_

#include <uct/ib/varuna/core/varuna_wire.h>

#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>
#include <ucs/sys/compiler_def.h>
#include <stddef.h>
#include <ucs/arch/bitops.h>
#include <ucs/time/time.h>

#define UCT_VARUNA_SLOT_NONE         UINT32_MAX

/* Of a generation in bodies and marks. A UID has fewer bits of it */
#define UCT_VARUNA_UID_GEN_BITS      43
#define UCT_VARUNA_UID_GEN_MASK      UCS_MASK(UCT_VARUNA_UID_GEN_BITS)

/* Of a 32-bit UID, and of each half of a 64-bit one */
#define UCT_VARUNA_UID32_SLOT_BITS   12
#define UCT_VARUNA_UID32_GEN_BITS    19
#define UCT_VARUNA_UID32_GEN_MASK    UCS_MASK(UCT_VARUNA_UID32_GEN_BITS)

/*
 * The body of one slot, in the responder's memory and in a cache line of its own: written
 * by the owner alone, with one plain write (rule 2). Its mark, a word which is changed by
 * CAS only (rule 3), is in another array, as the two have different keys.
 *
 * So what a reader gets of the two is from two moments. It relies on this:
 *
 *   While the UID (slot, gen) is in its target, and as long as the mark is of gen,
 *   the body is that of the occupy which has put it there. For the owner writes a body of
 *   gen only before that occupy, and one of the next generation only when the mark has
 *   left gen, which it does after the confirm.
 *
 * Therefore: the body is read first, after the UID, and it names the generation; then its
 * mark is changed, or found out, by a CAS that expects this generation. If the mark is
 * still of it, then what was read is the body of that occupy. The mark alone is never
 * read and believed: it would be older than what is done by it.
 */
typedef struct uct_varuna_slot {
    uint64_t                   gen_head;  /* Generation, and the width above */
    uint64_t                   addr;      /* Target */
    uint64_t                   compare;
    uint64_t                   swap;      /* The value that the UID represents */
    uint64_t                   unused;
    uint64_t                   gen_tail;  /* = gen_head */
    uint64_t                   reserved[2];
} uct_varuna_slot_t;

#define UCT_VARUNA_SLOT_BODY_SIZE    offsetof(uct_varuna_slot_t, reserved)

/* In gen_head and gen_tail: the operation is on 32 bits */
#define UCT_VARUNA_SLOT_WIDTH32      UCS_BIT(63)


/* State of a generation, in the low bits of a mark */
typedef enum {
    UCT_VARUNA_MARK_PENDING = 0,
    UCT_VARUNA_MARK_DONE    = 1,
    UCT_VARUNA_MARK_ABORTED = 2
} uct_varuna_mark_state_t;

#define UCT_VARUNA_MARK_BITS         2

static inline uint64_t uct_varuna_mark(uint64_t gen,
                                       uct_varuna_mark_state_t state)
{
    return (gen << UCT_VARUNA_MARK_BITS) | state;
}

static inline uint64_t uct_varuna_mark_gen(uint64_t mark)
{
    return mark >> UCT_VARUNA_MARK_BITS;
}

static inline unsigned uct_varuna_mark_state(uint64_t mark)
{
    return mark & UCS_MASK(UCT_VARUNA_MARK_BITS);
}

/** @return The generation after @a gen. */
static inline uint64_t uct_varuna_gen_next(uint64_t gen)
{
    return (gen + 1) & UCT_VARUNA_UID_GEN_MASK;
}

/* Of the sum, so that the same bits come again only after almost as many generations as
 * in the lower half (rule 1) */
static inline uint32_t uct_varuna_uid_upper_gen(uint64_t gen)
{
    return (gen + (gen >> UCT_VARUNA_UID32_GEN_BITS)) & UCT_VARUNA_UID32_GEN_MASK;
}

static inline uint32_t uct_varuna_uid_half(uint32_t slot, uint64_t gen)
{
    return UCS_BIT(31) |
           ((gen & UCT_VARUNA_UID32_GEN_MASK) << UCT_VARUNA_UID32_SLOT_BITS) |
           slot;
}

/**
 * Compose a UID.
 *
 * @param [in] slot   Index in the responder's arena.
 * @param [in] gen    Generation of the slot.
 * @param [in] width  Of the target, 4 or 8 bytes.
 */
static inline uint64_t uct_varuna_uid(uint32_t slot, uint64_t gen, unsigned width)
{
    uint64_t uid = uct_varuna_uid_half(slot, gen);

    ucs_assert(slot < UCT_VARUNA_SLOTS_MAX);
    if (width == sizeof(uint64_t)) {
        uid |= (uint64_t)uct_varuna_uid_half(slot, uct_varuna_uid_upper_gen(gen)) << 32;
    }

    return uid;
}

/**
 * Check whether a value from user memory may be a UID, or contain one, or be half of one.
 * It can be anything (rule 4), so a possible UID must still be compared with its slot.
 *
 * @param [in]  value      The value.
 * @param [in]  width      Bytes of it, 4 or 8.
 * @param [in]  num_slots  Slots of the responder's arena.
 * @param [in]  half       Begin with this half: 0 with the lower one, 1 with the upper
 *                         one, which is skipped if it names the same slot.
 * @param [out] slot_p     Index of the slot, within the arena.
 *
 * @return The half that names the slot, or -1 if there is none.
 */
int uct_varuna_uid_parse(uint64_t value, unsigned width, uint32_t num_slots,
                         unsigned half, uint32_t *slot_p);

/** @return The generation of a body. */
static inline uint64_t uct_varuna_slot_gen(const uct_varuna_slot_t *slot)
{
    return slot->gen_head & UCT_VARUNA_UID_GEN_MASK;
}

/** A UID, and the word that holds it. */
typedef struct uct_varuna_uid_place {
    uint64_t                   addr;
    uint64_t                   uid;
    unsigned                   width;     /* 4 or 8 */
} uct_varuna_uid_place_t;

/**
 * Compare a value with a copy of a slot's body: both generations must be the same, and the
 * body's UID must be where the value was found: as the value itself, in one of its halves,
 * or around it. The mark says whether it is over.
 *
 * @param [in]  value    The value, of which uct_varuna_uid_parse() gave the slot.
 * @param [in]  width    Bytes of it, 4 or 8.
 * @param [in]  addr     Address where it was found.
 * @param [in]  index    Of the slot.
 * @param [in]  slot     Copy of the body.
 * @param [out] place_p  The body's UID. If it is wider than the value, the other half
 *                       remains to be compared.
 *
 * @return Nonzero if they match; if not, the value is the user's data, or over.
 */
int uct_varuna_uid_find(uint64_t value, unsigned width, uint64_t addr,
                        uint32_t index, const uct_varuna_slot_t *slot,
                        uct_varuna_uid_place_t *place_p);

/**
 * @return @a value, which was found at @a addr, if the UID at @a place is replaced by the
 *         value @a by: all of it, one half of it, or the half that it is of @a by.
 */
uint64_t uct_varuna_uid_replace(uint64_t value, unsigned width, uint64_t addr,
                                const uct_varuna_uid_place_t *place,
                                uint64_t by);

/** What a mark says of a generation. */
typedef enum {
    UCT_VARUNA_UID_FOREIGN,   /* It is over, or has not come */
    UCT_VARUNA_UID_PENDING,
    UCT_VARUNA_UID_DONE,
    UCT_VARUNA_UID_ABORTED
} uct_varuna_uid_verdict_t;

uct_varuna_uid_verdict_t uct_varuna_mark_check(uint64_t mark, uint64_t gen);

UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_slot_t) == 64);
UCT_VARUNA_STATIC_ASSERT(UCT_VARUNA_SLOTS_MAX == UCS_BIT(UCT_VARUNA_UID32_SLOT_BITS));
UCT_VARUNA_STATIC_ASSERT(2 * UCT_VARUNA_UID32_GEN_BITS <= UCT_VARUNA_UID_GEN_BITS);
UCT_VARUNA_STATIC_ASSERT(UCT_VARUNA_UID32_SLOT_BITS +
                         UCT_VARUNA_UID32_GEN_BITS == 31);

/* --- Slots --- */

/* The slots which an endpoint has in its peer's arena, and when a generation of
 * one may be used (docs/ATOMICS.md, rules 1 and 7). Pure; the caller brings the time.
 * Used by the driver of atomics.
 *
 * A 32-bit UID, and half of a 64-bit one, has few bits of its slot's generation, so it
 * returns. Rule 1 wants nothing of its last use to be under way then. The circle of generations is
 * walked in two halves, and a half is entered only UCT_VARUNA_SLOT_HALF_TIME after
 * the other one was: so at least that lies between two uses of any value. */

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
 * @param [in] now    The time.
 */
void uct_varuna_slots_init(uct_varuna_slots_t *slots, uint32_t first,
                           unsigned num, const void *marks, ucs_time_t now);

/** @return Whether the next generation of a slot begins a half. */
static inline int uct_varuna_slots_is_new_half(const uct_varuna_slots_t *slots,
                                               unsigned i)
{
    return (slots->gens[i] & UCT_VARUNA_SLOT_HALF_MASK) == 0;
}

/**
 * Take a free slot, also one that comes to a new half: the time is needed once in a half.
 *
 * @param [in]  now    The time.
 * @param [out] gen_p  Its generation.
 *
 * @return Its index in the arena, or UCT_VARUNA_SLOT_NONE: wait.
 */
uint32_t uct_varuna_slots_take_timed(uct_varuna_slots_t *slots, ucs_time_t now,
                                     uint64_t *gen_p);

/** As uct_varuna_slots_take_timed(), but UCT_VARUNA_SLOT_NONE as well if the first free slot
 *  comes to a new half: then uct_varuna_slots_wait_for_time(). */
static inline uint32_t
uct_varuna_slots_take(uct_varuna_slots_t *slots, uint64_t *gen_p)
{
    unsigned i;

    if (ucs_unlikely(slots->free_map == 0)) {
        return UCT_VARUNA_SLOT_NONE;
    }

    i = ucs_ffs32(slots->free_map);
    if (ucs_unlikely(uct_varuna_slots_is_new_half(slots, i))) {
        return UCT_VARUNA_SLOT_NONE;
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
