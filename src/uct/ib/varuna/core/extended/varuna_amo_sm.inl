/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The state machine of one atomic: its usual way, which is a compare and swap that meets no
 * UID. What these functions do, those of varuna_amo_sm.c would do too; here they are
 * inline.
 *
 *    start, set_slot -> OCCUPY -> won -> CONFIRM -> confirmed -> FINISHED
 */
#ifndef UCT_VARUNA_AMO_SM_INL_
#define UCT_VARUNA_AMO_SM_INL_

#include "varuna_amo_sm.h"

#include <ucs/sys/compiler.h>

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
