/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UIDs: composing them, and judging what may be one. Called by the state machine
 * of an atomic and by the responder's worker.
 */
#include "varuna_uid.h"

#include <ucs/debug/assert.h>

uint64_t uct_varuna_uid(uint32_t slot, uint64_t gen, unsigned width)
{
    if (width == sizeof(uint64_t)) {
        ucs_assert(slot < UCS_BIT(UCT_VARUNA_UID64_SLOT_BITS));
        return UCS_BIT(63) |
               ((gen & UCT_VARUNA_UID_GEN_MASK) << UCT_VARUNA_UID64_SLOT_BITS) |
               slot;
    }

    ucs_assert(slot < UCS_BIT(UCT_VARUNA_UID32_SLOT_BITS));
    return UCS_BIT(31) |
           ((gen & UCT_VARUNA_UID32_GEN_MASK) << UCT_VARUNA_UID32_SLOT_BITS) |
           slot;
}

int uct_varuna_uid_parse(uint64_t value, unsigned width, uint32_t num_slots,
                         uint32_t *slot_p)
{
    uint32_t slot;

    if (width == sizeof(uint64_t)) {
        if (!(value & UCS_BIT(63))) {
            return 0;
        }
        slot = value & UCS_MASK(UCT_VARUNA_UID64_SLOT_BITS);
    } else {
        if (!(value & UCS_BIT(31)) || (value >> 32)) {
            return 0;
        }
        slot = value & UCS_MASK(UCT_VARUNA_UID32_SLOT_BITS);
    }

    if (slot >= num_slots) {
        return 0; /* Outside of the arena: nothing there is ever read */
    }

    *slot_p = slot;
    return 1;
}

static uint64_t uct_varuna_uid_gen_bits(uint64_t value, unsigned width)
{
    return (width == sizeof(uint64_t)) ?
           ((value >> UCT_VARUNA_UID64_SLOT_BITS) & UCT_VARUNA_UID_GEN_MASK) :
           ((value >> UCT_VARUNA_UID32_SLOT_BITS) & UCT_VARUNA_UID32_GEN_MASK);
}

int uct_varuna_uid_is_of(uint64_t value, unsigned width, uint64_t addr,
                         const uct_varuna_slot_t *slot)
{
    uint64_t gen      = uct_varuna_slot_gen(slot);
    uint64_t gen_mask = (width == sizeof(uint64_t)) ? UCT_VARUNA_UID_GEN_MASK :
                        UCT_VARUNA_UID32_GEN_MASK;

    /* Rule 4: both generations and the address must match */
    return (slot->gen_head == slot->gen_tail) && (slot->addr == addr) &&
           (!!(slot->gen_head & UCT_VARUNA_SLOT_WIDTH32) ==
            (width == sizeof(uint32_t))) &&
           ((gen & gen_mask) == uct_varuna_uid_gen_bits(value, width));
}

uct_varuna_uid_verdict_t uct_varuna_mark_check(uint64_t mark, uint64_t gen)
{
    /* Rule 4: what has been confirmed is over, and its body is a leftover */
    if (uct_varuna_mark_gen(mark) != gen) {
        return UCT_VARUNA_UID_FOREIGN;
    }

    switch (uct_varuna_mark_state(mark)) {
    case UCT_VARUNA_MARK_PENDING:
        return UCT_VARUNA_UID_PENDING;
    case UCT_VARUNA_MARK_DONE:
        return UCT_VARUNA_UID_DONE;
    case UCT_VARUNA_MARK_ABORTED:
        return UCT_VARUNA_UID_ABORTED;
    default:
        return UCT_VARUNA_UID_FOREIGN;
    }
}
