/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Any value in the word of an atomic with extended status, any bytes in slots of
 * others, and concurrent writers. The atomic must stay in the arena, end as soon as the
 * word does not change any more, and treat a value that is no UID as the user's.
 */
#include "fuzz.h"
#include "config.h"
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>

#define AMO_ADDR  0x7f0000001000ul
#define AMO_SLOTS 4
#define AMO_GEN   4711
#define AMO_STEPS 64 /* After the last change by others */

typedef struct {
    uct_varuna_amo_sm_t sm;
    uint64_t            target; /* And what follows a target of 4 bytes */
    uct_varuna_slot_t   *slots; /* AMO_SLOTS; 0 is ours */
    uint64_t            *marks;
    unsigned            width;
    unsigned            steps;
} amo_t;

static uint64_t amo_mask(const amo_t *amo)
{
    return (amo->width == 8) ? UINT64_MAX : UINT32_MAX;
}

/* The word that an access of @a width bytes at @a addr sees. Around a target of 4 bytes,
 * at AMO_ADDR, are 8 */
static uint64_t amo_load(const amo_t *amo, uint64_t addr, unsigned width)
{
    FUZZ_CHECK(((addr == AMO_ADDR) || (addr == AMO_ADDR + 4)) && !(addr % width));
    return (width == 8) ? amo->target : (uint32_t)(amo->target >> (8 * (addr % 8)));
}

static uint64_t amo_cas_target(amo_t *amo, uint64_t addr, unsigned width,
                               uint64_t compare, uint64_t swap)
{
    uint64_t old   = amo_load(amo, addr, width);
    unsigned shift = 8 * (addr % 8);

    if (old == compare) {
        amo->target = (width == 8) ? swap :
                      (amo->target & ~((uint64_t)UINT32_MAX << shift)) |
                      (swap << shift);
    }

    return old;
}

static uint64_t amo_cas(uint64_t *word, uint64_t compare, uint64_t swap)
{
    uint64_t old = *word;

    if (old == compare) {
        *word = swap;
    }

    return old;
}

/* An independent implementation of rule 4 of docs/ATOMICS.md */
static int amo_is_uid(const amo_t *amo, uint64_t value)
{
    const uct_varuna_slot_t *slot;
    uint64_t gen, mark, uid, half;
    unsigned index;

    for (index = 0; index < AMO_SLOTS; ++index) {
        slot = &amo->slots[index];
        mark = amo->marks[index];
        gen  = slot->gen_head & ((1ul << 43) - 1);
        if ((slot->gen_head != slot->gen_tail) || ((mark >> 2) != gen) ||
            ((mark & 3) == 3)) {
            continue;
        }

        uid  = (1ul << 31) | ((gen % (1ul << 19)) << 12) | index;
        half = (1ul << 31) | (((gen + (gen >> 19)) % (1ul << 19)) << 12) | index;
        if (!(slot->gen_head >> 63)) {
            /* Of a target of 4 bytes, the other half must match as well */
            if ((slot->addr == AMO_ADDR) && ((half << 32 | uid) ==
                ((amo->width == 8) ? value : amo->target))) {
                return 1;
            }
        } else if (((slot->addr == AMO_ADDR) && ((uint32_t)value == uid)) ||
                   ((slot->addr == AMO_ADDR + 4) && (amo->width == 8) &&
                    ((value >> 32) == uid))) {
            return 1;
        }
    }

    return 0;
}

static uint64_t amo_native(const amo_t *amo, unsigned op, uint64_t compare,
                           uint64_t value, uint64_t old)
{
    switch (op) {
    case UCT_ATOMIC_OP_ADD:
        return (old + value) & amo_mask(amo);
    case UCT_ATOMIC_OP_AND:
        return old & value;
    case UCT_ATOMIC_OP_OR:
        return (old | value) & amo_mask(amo);
    case UCT_ATOMIC_OP_XOR:
        return (old ^ value) & amo_mask(amo);
    case UCT_ATOMIC_OP_SWAP:
        return value & amo_mask(amo);
    default:
        return (old == (compare & amo_mask(amo))) ? value & amo_mask(amo) : old;
    }
}

/* One access. @a is_lost: the answer to an occupy is lost */
static void amo_step(amo_t *amo, int is_lost, int is_executed)
{
    uct_varuna_amo_sm_t *sm = &amo->sm;
    uct_varuna_slot_t copy  = {0};
    uint64_t value          = 0;
    uct_varuna_slot_t *slot;
    uint64_t *mark;

    FUZZ_CHECK(sm->act.slot < AMO_SLOTS);
    slot = &amo->slots[sm->act.slot];
    mark = &amo->marks[sm->act.slot];
    switch (sm->act.type) {
    case UCT_VARUNA_AMO_ACT_READ:
        value = amo_load(amo, sm->act.addr, sm->act.width);
        break;
    case UCT_VARUNA_AMO_ACT_READ_BODY:
        copy = *slot;
        break;
    case UCT_VARUNA_AMO_ACT_CAS_MARK:
        value = amo_cas(mark, sm->act.mark_from, sm->act.mark_to);
        break;
    case UCT_VARUNA_AMO_ACT_CONFIRM:
        FUZZ_CHECK(sm->act.slot == 0);
        amo_cas_target(amo, sm->act.addr, sm->act.width, sm->act.compare, sm->act.swap);
        value = amo_cas(mark, sm->act.mark_from, sm->act.mark_to);
        break;
    case UCT_VARUNA_AMO_ACT_OCCUPY:
        FUZZ_CHECK(sm->act.slot == 0);
        uct_varuna_amo_sm_body(sm, slot);
        if (is_lost) {
            if (is_executed) {
                amo_cas_target(amo, sm->act.addr, sm->act.width, sm->act.compare,
                               sm->act.swap);
            }
            uct_varuna_amo_sm_lost(sm);
            return;
        }
        /* Fall through */
    default:
        FUZZ_CHECK(sm->act.type != UCT_VARUNA_AMO_ACT_EXECUTE);
        value = amo_cas_target(amo, sm->act.addr, sm->act.width, sm->act.compare,
                               sm->act.swap);
        break;
    }

    uct_varuna_amo_sm_done(sm, value, &copy);
}

/* The contents of another client's slot */
static void amo_fill_slot(amo_t *amo, fuzz_input_t *in, unsigned slot)
{
    fuzz_take(in, &amo->slots[slot], UCT_VARUNA_SLOT_BODY_SIZE);
    amo->marks[slot] = fuzz_u64(in, 8);
}

/* Other clients put any value, or write any slot. @return Whether they did */
static int amo_disturb(amo_t *amo, fuzz_input_t *in, unsigned what)
{
    switch (what & 7) {
    case 1:
        amo->target = fuzz_u64(in, 8);
        return 1;
    case 2:
        amo_fill_slot(amo, in, 1 + (what % (AMO_SLOTS - 1)));
        return 1;
    case 3: /* A UID of this slot, or a similar value */
        amo->target = uct_varuna_uid(1 + (what % (AMO_SLOTS - 1)),
                                     amo->slots[1].gen_head, (what & 0x80) ? 4 : 8);
        return 1;
    default:
        return 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input_t in  = {data, size};
    unsigned head    = fuzz_u64(&in, 2);
    unsigned op      = (head >> 1) % (UCT_ATOMIC_OP_CSWAP + 1);
    amo_t amo        = {.width = (head & 1) ? 4 : 8};
    uint64_t compare = fuzz_u64(&in, 8);
    uint64_t value   = fuzz_u64(&in, 8);
    int is_quiet     = 1;
    uint64_t first, next;
    unsigned what, slot;
    int is_lost;

    amo.slots = calloc(AMO_SLOTS, sizeof(*amo.slots));
    amo.marks = calloc(AMO_SLOTS, sizeof(*amo.marks));
    FUZZ_CHECK((amo.slots != NULL) && (amo.marks != NULL));
    amo.target = fuzz_u64(&in, 8);
    for (slot = 1; slot < AMO_SLOTS; ++slot) {
        amo_fill_slot(&amo, &in, slot);
    }
    amo.marks[0] = uct_varuna_mark(AMO_GEN, UCT_VARUNA_MARK_PENDING);
    first        = amo_load(&amo, AMO_ADDR, amo.width);
    next         = (amo.target >> 32);
    is_quiet     = !amo_is_uid(&amo, first) &&
                   !((op == UCT_ATOMIC_OP_CSWAP) &&
                     amo_is_uid(&amo, compare & amo_mask(&amo)));

    uct_varuna_amo_sm_start(&amo.sm, op, amo.width, AMO_ADDR, compare, value,
                            AMO_SLOTS);
    uct_varuna_amo_sm_set_slot(&amo.sm, 0, AMO_GEN);
    while (amo.sm.act.type != UCT_VARUNA_AMO_ACT_NONE) {
        what = fuzz_u64(&in, 1);
        if (amo_disturb(&amo, &in, what)) {
            is_quiet  = 0;
            amo.steps = 0;
        }

        is_lost = (amo.sm.act.type == UCT_VARUNA_AMO_ACT_OCCUPY) &&
                  ((what & 0x30) == 0x10);
        if (is_lost && (amo_load(&amo, AMO_ADDR, amo.width) ==
                        uct_varuna_uid(0, amo.sm.gen, amo.width))) {
            is_quiet = 0; /* Not distinguishable from that of a lost CAS */
        }
        amo_step(&amo, is_lost, what & 0x40);
        amo.steps = (what != 0) ? 0 : amo.steps + 1;
        FUZZ_CHECK(amo.steps < AMO_STEPS);
    }

    /* No other writer and no UID: the result is that of a native atomic */
    if (is_quiet) {
        FUZZ_CHECK(amo.sm.result == first);
        FUZZ_CHECK(amo_load(&amo, AMO_ADDR, amo.width) ==
                   amo_native(&amo, op, compare, value, first));
        FUZZ_CHECK((amo.width == 8) || ((amo.target >> 32) == next));
    }

    free(amo.marks);
    free(amo.slots);
    return 0;
}

void fuzz_seeds(void (*add)(const void *data, size_t size))
{
    struct {
        uint16_t          head;
        uint64_t          compare, value, target;
        struct {
            uint64_t      gen_head, addr, compare, swap, unused, gen_tail, mark;
        } slots[AMO_SLOTS - 1];
        uint8_t           steps[40];
    } __attribute__((packed)) seed = {0};
    unsigned op, state;

    for (op = 0; op <= 2 * UCT_ATOMIC_OP_CSWAP + 1; ++op) {
        for (state = 0; state < 4; ++state) {
            seed.head              = op;
            seed.value             = 7;
            seed.compare           = 5;
            seed.target            = uct_varuna_uid(1, 99, (op & 1) ? 4 : 8);
            seed.slots[0].gen_head = 99 | ((op & 1) ? 1ul << 63 : 0);
            seed.slots[0].gen_tail = seed.slots[0].gen_head;
            seed.slots[0].addr     = AMO_ADDR;
            seed.slots[0].compare  = 3;
            seed.slots[0].swap     = 5;
            seed.slots[0].mark     = (99 << 2) | state;
            add(&seed, sizeof(seed));
            seed.steps[state] = 0x50; /* A lost occupy */
            add(&seed, sizeof(seed));
            seed.steps[state] = 0;
            seed.target       = uct_varuna_uid(0, AMO_GEN + (state & 1),
                                               (op & 1) ? 4 : 8);
            add(&seed, sizeof(seed));
            seed.steps[0] = (state & 2) ? 0x10 : 0; /* With the next generation */
            add(&seed, sizeof(seed));
            seed.steps[0] = 0;
            /* The other width: half of it, or in one half */
            seed.target            = uct_varuna_uid(1, 99, (op & 1) ? 8 : 4);
            seed.slots[0].gen_head = 99 | ((op & 1) ? 0 : 1ul << 63);
            seed.slots[0].gen_tail = seed.slots[0].gen_head;
            add(&seed, sizeof(seed));
            seed.target = (op & 1) ? seed.target ^ (1ul << 50) :
                          (seed.target << 32) | 5;
            seed.slots[0].addr += (op & 1) ? 0 : 4;
            add(&seed, sizeof(seed));
        }
    }
}
