/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An endpoint's slots.
 */
#include "varuna_slots.h"

#include <string.h>

void uct_varuna_slots_init(uct_varuna_slots_t *slots, uint32_t first,
                           unsigned num, const void *marks)
{
    ucs_time_t now = ucs_get_time();
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

static int uct_varuna_slots_is_time(const uct_varuna_slots_t *slots, unsigned i)
{
    return (ucs_get_time() - slots->entered[i]) >
           ucs_time_from_sec(UCT_VARUNA_SLOT_HALF_TIME);
}

static int uct_varuna_slots_is_new_half(const uct_varuna_slots_t *slots,
                                        unsigned i)
{
    return (slots->gens[i] & UCT_VARUNA_SLOT_HALF_MASK) == 0;
}

uint32_t uct_varuna_slots_take_timed(uct_varuna_slots_t *slots, uint64_t *gen_p)
{
    unsigned i;

    ucs_for_each_bit(i, slots->free_map) {
        /* Rule 1: refuse to come round early. The clock is asked once in a half. */
        if (uct_varuna_slots_is_new_half(slots, i)) {
            if (!uct_varuna_slots_is_time(slots, i)) {
                continue;
            }
            slots->entered[i] = ucs_get_time();
        }

        slots->free_map &= ~UCS_BIT(i);
        *gen_p           = slots->gens[i];
        return slots->first + i;
    }

    return UCT_VARUNA_SLOT_NONE;
}
