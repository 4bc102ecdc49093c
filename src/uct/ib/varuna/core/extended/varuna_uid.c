/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UIDs: composing them, and judging what may be one. Called by the state machine
 * of an atomic and by the responder's worker.
 */
#include "varuna_uid.h"
#include <string.h>

static int uct_varuna_uid_parse_half(uint32_t value, uint32_t num_slots,
                                     uint32_t *slot_p)
{
    uint32_t slot = value & UCS_MASK(UCT_VARUNA_UID32_SLOT_BITS);

    if (!(value & UCS_BIT(31)) || (slot >= num_slots)) {
        return 0; /* Outside of the arena: nothing there is ever read */
    }

    *slot_p = slot;
    return 1;
}

int uct_varuna_uid_parse(uint64_t value, unsigned width, uint32_t num_slots,
                         unsigned half, uint32_t *slot_p)
{
    uint32_t lower = UCT_VARUNA_SLOT_NONE;
    uint32_t upper;

    if (uct_varuna_uid_parse_half(value, num_slots, &lower) && (half == 0)) {
        *slot_p = lower;
        return 0;
    }

    if ((width == sizeof(uint64_t)) && (half <= 1) &&
        uct_varuna_uid_parse_half(value >> 32, num_slots, &upper) &&
        (upper != lower)) {
        *slot_p = upper;
        return 1;
    }

    return -1;
}

int uct_varuna_uid_find(uint64_t value, unsigned width, uint64_t addr,
                        uint32_t index, const uct_varuna_slot_t *slot,
                        uct_varuna_uid_place_t *place_p)
{
    unsigned uid_width = (slot->gen_head & UCT_VARUNA_SLOT_WIDTH32) ?
                         sizeof(uint32_t) : sizeof(uint64_t);
    uint64_t uid       = uct_varuna_uid(index, uct_varuna_slot_gen(slot),
                                        uid_width);
    uint64_t part      = uid;

    /* Rule 4: both generations and the address must match */
    if ((slot->gen_head != slot->gen_tail) || (slot->addr % uid_width)) {
        return 0;
    }

    if (uid_width > width) {
        if ((addr & ~UCS_MASK(3)) != slot->addr) {
            return 0;
        }
        part = (addr == slot->addr) ? (uint32_t)uid : (uid >> 32);
    } else if (uid_width < width) {
        if ((slot->addr & ~UCS_MASK(3)) != addr) {
            return 0;
        }
        value = (addr == slot->addr) ? (uint32_t)value : (value >> 32);
    } else if (addr != slot->addr) {
        return 0;
    }

    place_p->addr  = slot->addr;
    place_p->uid   = uid;
    place_p->width = uid_width;
    return value == part;
}

uint64_t uct_varuna_uid_replace(uint64_t value, unsigned width, uint64_t addr,
                                const uct_varuna_uid_place_t *place,
                                uint64_t by)
{
    if (place->width == width) {
        return by;
    }

    if (place->width > width) {
        return (addr == place->addr) ? (uint32_t)by : (by >> 32);
    }

    return (addr == place->addr) ? ((value & ~(uint64_t)UINT32_MAX) | (uint32_t)by) :
           ((value & UINT32_MAX) | (by << 32));
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

/* --- Slots --- */

/* An endpoint's slots. */

void uct_varuna_slots_init(uct_varuna_slots_t *slots, uint32_t first,
                           unsigned num, const void *marks, ucs_time_t now)
{
    uint64_t mark;
    unsigned i;

    ucs_assert(num <= UCT_VARUNA_SLOT_BLOCK);
    memset(slots, 0, sizeof(*slots));
    slots->first = first;
    slots->num   = num;
    for (i = 0; i < num; ++i) {
        memcpy(&mark, UCS_PTR_BYTE_OFFSET(marks, i * sizeof(mark)),
               sizeof(mark));
        slots->gens[i]    = uct_varuna_mark_gen(mark);
        slots->entered[i] = now; /* It is unknown when its last owner used it */
        if (uct_varuna_mark_state(mark) == UCT_VARUNA_MARK_PENDING) {
            slots->free_map |= UCS_BIT(i);
        }
    }
}

static int uct_varuna_slots_is_time(const uct_varuna_slots_t *slots, unsigned i,
                                    ucs_time_t now)
{
    return (now - slots->entered[i]) > ucs_time_from_sec(UCT_VARUNA_SLOT_HALF_TIME);
}

uint32_t uct_varuna_slots_take_timed(uct_varuna_slots_t *slots, ucs_time_t now,
                                     uint64_t *gen_p)
{
    unsigned i;

    ucs_for_each_bit(i, slots->free_map) {
        /* Rule 1: refuse to come round early */
        if (uct_varuna_slots_is_new_half(slots, i)) {
            if (!uct_varuna_slots_is_time(slots, i, now)) {
                continue;
            }
            slots->entered[i] = now;
        }

        slots->free_map &= ~UCS_BIT(i);
        *gen_p           = slots->gens[i];
        return slots->first + i;
    }

    return UCT_VARUNA_SLOT_NONE;
}
