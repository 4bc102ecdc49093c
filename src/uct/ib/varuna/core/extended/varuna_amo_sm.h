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
#include "varuna_uid.h"

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

#include "varuna_amo_sm.inl"

#endif
