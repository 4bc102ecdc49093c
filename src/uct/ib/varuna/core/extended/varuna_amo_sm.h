/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The protocol of one atomic with extended status, as a state machine without any I/O:
 * it names the next access to remote memory, and gets the result (docs/ATOMICS.md has
 * the rules). The driver (varuna_amo.c) executes the accesses on a lane or by request;
 * the tests do so in a simulated memory, in random orders.
 *
 *   READ ----> OCCUPY ---------------------> CONFIRM -> (ADVANCE) -> FINISHED
 *    ^  ^        |  foreign UID                 ^
 *    |  |        v                              |  it was executed
 *    |  |     BODY -> MARK -> HELP              |
 *    |  |        |              |            LOST_READ -> LOST_ABORT
 *    |  +--------+--------------+                              |  it was not
 *    +------------------------------------- RENEW <- LOST_UNDO <-+
 */
#ifndef UCT_VARUNA_AMO_SM_H_
#define UCT_VARUNA_AMO_SM_H_

#include <uct/ib/varuna/core/varuna_wire.h>

#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>
#include <ucs/sys/compiler_def.h>
#include <stddef.h>
#include <ucs/arch/bitops.h>
#include <ucs/time/time.h>
#include <ucs/sys/compiler.h>

/* --- UIDs --- */

/* Extended status of atomics: UIDs, slots and marks (docs/ATOMICS.md). Pure:
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
 * look at a slot. */

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
 *                    is left alone; if it is so with all, there are none.
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

/* --- The state machine --- */

typedef enum {
    UCT_VARUNA_AMO_READ,         /* Read the target */
    UCT_VARUNA_AMO_OCCUPY,       /* Write the body, CAS target -> UID; or the
                                    plain CAS of one which has no slot */
    UCT_VARUNA_AMO_CONFIRM,      /* CAS UID -> value, advance the mark */
    UCT_VARUNA_AMO_ADVANCE,      /* Advance a mark that a client set to DONE */
    UCT_VARUNA_AMO_BODY,         /* Met a UID: read its slot's body */
    UCT_VARUNA_AMO_WHOLE,        /* ... it is wider than our target: read all of it */
    UCT_VARUNA_AMO_REREAD,       /* ... it was none: look again at the target */
    UCT_VARUNA_AMO_MARK,         /* ... mark it DONE, if it is not over */
    UCT_VARUNA_AMO_HELP,         /* ... and replace it by its value */
    UCT_VARUNA_AMO_UNDO,         /* ... it is ABORTED: replace it by compare */
    UCT_VARUNA_AMO_LOST_READ,    /* Lane failed at OCCUPY: look at the target */
    UCT_VARUNA_AMO_LOST_ABORT,   /* ... then at our mark; not DONE: forbid it */
    UCT_VARUNA_AMO_LOST_UNDO,    /* ... undo what may have slipped in */
    UCT_VARUNA_AMO_RENEW,        /* Next generation, start again: after LOST_UNDO,
                                    or the target's data looks like our UID */
    UCT_VARUNA_AMO_FINISHED,
    UCT_VARUNA_AMO_LAST
} uct_varuna_amo_state_t;

extern const char *uct_varuna_amo_state_names[];

/* An access to remote memory */
typedef enum {
    UCT_VARUNA_AMO_ACT_NONE,     /* FINISHED */
    UCT_VARUNA_AMO_ACT_READ,     /* width bytes at addr -> value; these, too, are
                                    of the action */
    UCT_VARUNA_AMO_ACT_READ_BODY,/* Body of the slot -> copy */
    UCT_VARUNA_AMO_ACT_CAS,      /* At addr, width bytes -> old value */
    UCT_VARUNA_AMO_ACT_CAS_MARK, /* Mark of the slot -> old value */
    UCT_VARUNA_AMO_ACT_OCCUPY,   /* Body to the slot, then CAS at addr, on one
                                    lane -> old value of the CAS */
    UCT_VARUNA_AMO_ACT_EXECUTE,  /* By request only: the whole operation; its opcode
                                    is in slot -> old value */
    UCT_VARUNA_AMO_ACT_CONFIRM   /* CAS at addr, then CAS_MARK of our slot from
                                    mark_from to mark_to, on one lane -> old
                                    value of the mark */
} uct_varuna_amo_act_type_t;

typedef struct uct_varuna_amo_act {
    uct_varuna_amo_act_type_t  type;
    uint32_t                   slot;
    uint64_t                   addr;       /* The target, or another word that overlaps
                                              it: see seen */
    uint8_t                    width;
    uint64_t                   compare;
    uint64_t                   swap;
    uint64_t                   mark_from;
    uint64_t                   mark_to;
} uct_varuna_amo_act_t;

enum {
    UCT_VARUNA_AMO_FLAG_UIDS    = UCS_BIT(0), /* The target may hold UIDs */
    UCT_VARUNA_AMO_FLAG_SLOT    = UCS_BIT(1), /* It has a slot, occupies */
    UCT_VARUNA_AMO_FLAG_DECIDED = UCS_BIT(2), /* result is valid */
    UCT_VARUNA_AMO_FLAG_RECOVERED = UCS_BIT(3), /* Result of a lost OCCUPY */
    UCT_VARUNA_AMO_FLAG_CMP_UID = UCS_BIT(4), /* Resolves the user's compare */
    UCT_VARUNA_AMO_FLAG_GET     = UCS_BIT(5)  /* Reads only, also instead of helping */
};

typedef struct uct_varuna_amo_sm {
    uint8_t                    state;      /* uct_varuna_amo_state_t */
    uint8_t                    op;         /* uct_atomic_op_t */
    uint8_t                    width;      /* 4 or 8 */
    uint8_t                    flags;
    uint8_t                    half;       /* Of met, which is being looked at */
    uint32_t                   slot;       /* Ours */
    uint32_t                   num_slots;  /* Of the arena */
    uint32_t                   seen_slot;
    uint32_t                   retries;    /* Lost races, for the back-off */
    uint32_t                   helped;     /* Foreign UIDs which we resolved */
    uint64_t                   addr;
    uint64_t                   gen;        /* Of our slot */
    uint64_t                   compare;    /* The user's; if that is a UID, the
                                              value that it resolves to */
    uint64_t                   user_compare; /* As the user gave it */
    uint64_t                   value;      /* The user's operand or swap */
    uint64_t                   expect;     /* Of the current OCCUPY */
    uint64_t                   desired;
    uint64_t                   result;     /* Value before the operation */
    uint64_t                   met;        /* What the target held, with a UID */
    uint64_t                   value_met;  /* What that represents, of a GET */
    uint64_t                   whole;      /* The word of 8 bytes around it, or 0 */
    uct_varuna_uid_place_t     seen;       /* UID which is being resolved */
    uct_varuna_slot_t          body;       /* Of its slot */
    uct_varuna_amo_act_t       act;        /* What is to be done next */
} uct_varuna_amo_sm_t;

/** Begin an attempt, which is its first one: for uct_varuna_amo_sm_start(). */
void uct_varuna_amo_sm_begin(uct_varuna_amo_sm_t *sm);

/** Begin a read of the target that resolves a UID and writes no more than its mark. */
void uct_varuna_amo_sm_start_get(uct_varuna_amo_sm_t *sm, unsigned width,
                                 uint64_t addr, uint32_t num_slots);

/** Before the first action: the target is likely to hold @a value, which spares the
 *  read. */
void uct_varuna_amo_sm_hint(uct_varuna_amo_sm_t *sm, uint64_t value);

/** The peer's process has executed all of it, exactly once. Not after an OCCUPY. */
void uct_varuna_amo_sm_executed(uct_varuna_amo_sm_t *sm, uint64_t result);

/** @return Nonzero if no OCCUPY of it is in flight or decided: it may be started
 *  again, and be executed by the peer's process. */
int uct_varuna_amo_sm_is_free(const uct_varuna_amo_sm_t *sm);

/**
 * The action was executed, exactly once if it is an OCCUPY.
 *
 * @param [in] value  What it gave.
 * @param [in] slot   For ACT_READ_BODY, what it gave.
 */
void uct_varuna_amo_sm_done(uct_varuna_amo_sm_t *sm, uint64_t value,
                            const uct_varuna_slot_t *slot);

/**
 * The lane failed while an OCCUPY was on it, which may have been executed. Actions of
 * other types are simply executed again.
 */
void uct_varuna_amo_sm_lost(uct_varuna_amo_sm_t *sm);

/* --- Back-off --- */

/* How long an atomic waits before its next access, after it has lost races for its
 * target (docs/ATOMICS.md, rule 10). */

/**
 * @param [in] random  A random number.
 *
 * @return Nanoseconds to wait before the next action, 0: do not wait.
 */
unsigned uct_varuna_amo_sm_backoff(const uct_varuna_amo_sm_t *sm,
                                   uint32_t random);

/* --- The usual way --- */

/* A compare and swap that meets no UID. What these functions do, those of varuna_amo_sm.c
 * would do too; here they are inline.
 *
 *    start, set_slot -> OCCUPY -> won -> CONFIRM -> confirmed -> FINISHED */

static UCS_F_ALWAYS_INLINE uint64_t uct_varuna_amo_mask(const uct_varuna_amo_sm_t *sm)
{
    return (sm->width == sizeof(uint64_t)) ? UINT64_MAX : UINT32_MAX;
}

static UCS_F_ALWAYS_INLINE uint64_t uct_varuna_amo_uid(const uct_varuna_amo_sm_t *sm)
{
    return uct_varuna_uid(sm->slot, sm->gen, sm->width);
}

static UCS_F_ALWAYS_INLINE int uct_varuna_amo_is_cswap(const uct_varuna_amo_sm_t *sm)
{
    return sm->op == UCT_ATOMIC_OP_CSWAP;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_act(uct_varuna_amo_sm_t *sm, uct_varuna_amo_state_t state,
                   uct_varuna_amo_act_type_t type)
{
    sm->state     = state;
    sm->act.type  = type;
    sm->act.addr  = sm->addr;
    sm->act.width = sm->width;
}

/* A compare and swap has succeeded if it returns the very compare that its caller
 * passed. That may be a UID, which a GET has shown (rule 8). */
static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_decide(uct_varuna_amo_sm_t *sm, uint64_t result)
{
    sm->result = (uct_varuna_amo_is_cswap(sm) && (result == sm->compare)) ?
                 sm->user_compare : result;
    sm->flags |= UCT_VARUNA_AMO_FLAG_DECIDED;
}

/*
 * Rule 2: the body is written before the CAS, on the same lane (ACT_OCCUPY), and
 * by us alone. Rule 3: the mark is (gen, PENDING) already, since the driver hands
 * a slot out only when that CAS has returned.
 */
static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_occupy(uct_varuna_amo_sm_t *sm, uint64_t expect, uint64_t desired)
{
    sm->expect  = expect & uct_varuna_amo_mask(sm);
    sm->desired = desired & uct_varuna_amo_mask(sm);
    if (sm->flags & UCT_VARUNA_AMO_FLAG_UIDS) {
        uct_varuna_amo_act(sm, UCT_VARUNA_AMO_OCCUPY,
                           (sm->flags & UCT_VARUNA_AMO_FLAG_SLOT) ?
                           UCT_VARUNA_AMO_ACT_OCCUPY : UCT_VARUNA_AMO_ACT_CAS);
    } else {
        uct_varuna_amo_act(sm, UCT_VARUNA_AMO_OCCUPY, UCT_VARUNA_AMO_ACT_CAS);
    }

    sm->act.slot    = sm->slot;
    sm->act.compare = sm->expect;
    sm->act.swap    = (sm->act.type == UCT_VARUNA_AMO_ACT_OCCUPY) ?
                      uct_varuna_amo_uid(sm) : sm->desired;
}

/* Off the critical path: the result is known already. The mark's advance
 * directly follows the target's CAS, on the same lane, so that a UID which is still
 * in its target always has its generation's mark. */
static UCS_F_ALWAYS_INLINE void uct_varuna_amo_confirm(uct_varuna_amo_sm_t *sm)
{
    uct_varuna_amo_act(sm, UCT_VARUNA_AMO_CONFIRM, UCT_VARUNA_AMO_ACT_CONFIRM);
    sm->act.slot      = sm->slot;
    sm->act.compare   = uct_varuna_amo_uid(sm);
    sm->act.swap      = sm->desired;
    sm->act.mark_from = uct_varuna_mark(sm->gen, UCT_VARUNA_MARK_PENDING);
    sm->act.mark_to   = uct_varuna_mark(uct_varuna_gen_next(sm->gen),
                                        UCT_VARUNA_MARK_PENDING);
}

/**
 * Begin. The first action is in sm->act.
 *
 * @param [in] op         uct_atomic_op_t.
 * @param [in] width      Bytes of the target, 4 or 8.
 * @param [in] addr       Target.
 * @param [in] compare    Of a compare and swap.
 * @param [in] value      Operand; the new value of a swap.
 * @param [in] num_slots  Slots of the responder's arena, 0 if the target never
 *                        holds UIDs.
 */
static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_sm_start(uct_varuna_amo_sm_t *sm, unsigned op, unsigned width, uint64_t addr,
                        uint64_t compare, uint64_t value, uint32_t num_slots)
{
    /* What is not set here is set before it is looked at. All of the action may be sent */
    sm->op            = op;
    sm->width         = width;
    sm->flags         = (num_slots > 0) ? UCT_VARUNA_AMO_FLAG_UIDS : 0;
    sm->half          = 0;
    sm->slot          = 0;
    sm->num_slots     = num_slots;
    sm->seen_slot     = UCT_VARUNA_SLOT_NONE;
    sm->retries       = 0;
    sm->helped        = 0;
    sm->addr          = addr;
    sm->gen           = 0;
    sm->compare       = compare & uct_varuna_amo_mask(sm);
    sm->user_compare  = sm->compare;
    sm->value         = value & uct_varuna_amo_mask(sm);
    sm->met           = 0;
    sm->value_met     = 0;
    sm->whole         = 0;
    sm->act.slot      = 0;
    sm->act.compare   = 0;
    sm->act.swap      = 0;
    sm->act.mark_from = 0;
    sm->act.mark_to   = 0;

    /* A value without the bits of a UID needs no look at it */
    if (ucs_likely(uct_varuna_amo_is_cswap(sm) && (sm->compare != sm->value) &&
                   !(sm->compare & (UCS_BIT(31) | UCS_BIT(63))))) {
        sm->met       = sm->compare;
        sm->value_met = sm->compare;
        uct_varuna_amo_occupy(sm, sm->compare, sm->value);
    } else {
        uct_varuna_amo_sm_begin(sm);
    }
}

/** Give it a slot whose mark is (gen, PENDING). Before the first OCCUPY. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_sm_set_slot(uct_varuna_amo_sm_t *sm, uint32_t slot, uint64_t gen)
{
    sm->slot   = slot;
    sm->gen    = gen;
    sm->flags |= UCT_VARUNA_AMO_FLAG_SLOT;
    if (sm->state == UCT_VARUNA_AMO_OCCUPY) {
        uct_varuna_amo_occupy(sm, sm->expect, sm->desired);
    }
}

/** Body to be written by ACT_OCCUPY. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_sm_body(const uct_varuna_amo_sm_t *sm, uct_varuna_slot_t *slot)
{
    slot->gen_head = sm->gen | ((sm->width == sizeof(uint32_t)) ?
                                UCT_VARUNA_SLOT_WIDTH32 : 0);
    slot->addr     = sm->addr;
    slot->compare  = sm->expect;
    slot->swap     = sm->desired;
    slot->unused   = 0;
    slot->gen_tail = slot->gen_head;
}

/** Whether @a value, what an OCCUPY has found, shows that it has succeeded. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_amo_sm_has_won(const uct_varuna_amo_sm_t *sm, uint64_t value)
{
    return (sm->act.type == UCT_VARUNA_AMO_ACT_OCCUPY) && (value == sm->expect);
}

/** As uct_varuna_amo_sm_done(), if uct_varuna_amo_sm_has_won(). */
static UCS_F_ALWAYS_INLINE void uct_varuna_amo_sm_won(uct_varuna_amo_sm_t *sm)
{
    uct_varuna_amo_decide(sm, sm->expect);
    uct_varuna_amo_confirm(sm);
}

/** Whether @a value, what a CONFIRM has found, shows that nobody has changed the mark. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_amo_sm_is_confirmed(const uct_varuna_amo_sm_t *sm, uint64_t value)
{
    return (sm->act.type == UCT_VARUNA_AMO_ACT_CONFIRM) && (value == sm->act.mark_from);
}

/** As uct_varuna_amo_sm_done(), if uct_varuna_amo_sm_is_confirmed(). */
static UCS_F_ALWAYS_INLINE void uct_varuna_amo_sm_confirmed(uct_varuna_amo_sm_t *sm)
{
    sm->gen = uct_varuna_gen_next(sm->gen);
    uct_varuna_amo_act(sm, UCT_VARUNA_AMO_FINISHED, UCT_VARUNA_AMO_ACT_NONE);
}

#endif
