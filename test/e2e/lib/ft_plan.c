/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The plans. Memory is divided into slots, and all operations on a slot cover it as a
 * whole: its contents are those of one operation.
 */
#include "ft_plan.h"
#include "ft_clock.h"

#include <stdlib.h>
#include <string.h>

#define FT_NUM_SMALL   16           /* Slots of one or a few words */
#define FT_SMALL_SIZE  64
#define FT_NUM_MEDIUM  8            /* One packet */
#define FT_MEDIUM_SIZE 1024
#define FT_LARGE_SIZE  (20 * 1024)  /* Several packets */
#define FT_BATCH       64

const ft_kind_info_t ft_kinds[FT_KIND_LAST] = {
    [FT_PUT_SHORT] = {"put_short", FT_KIND_WRITES},
    [FT_PUT_BCOPY] = {"put_bcopy", FT_KIND_WRITES},
    [FT_PUT_ZCOPY] = {"put_zcopy", FT_KIND_WRITES | FT_KIND_COMPLETES},
    [FT_GET_BCOPY] = {"get_bcopy", FT_KIND_READS | FT_KIND_COMPLETES},
    [FT_GET_ZCOPY] = {"get_zcopy", FT_KIND_READS | FT_KIND_COMPLETES},
    [FT_AM_SHORT]  = {"am_short", FT_KIND_MESSAGE},
    [FT_AM_BCOPY]  = {"am_bcopy", FT_KIND_MESSAGE},
    [FT_AM_ZCOPY]  = {"am_zcopy", FT_KIND_MESSAGE | FT_KIND_COMPLETES},
    [FT_FLUSH]     = {"flush", FT_KIND_COMPLETES},
    [FT_FENCE]     = {"fence", 0}
};


void ft_fill(void *buffer, uint32_t length, uint32_t run, int index)
{
    uint64_t *words = buffer;
    uint32_t k;

    for (k = 0; k < length / sizeof(*words); ++k) {
        words[k] = ft_word(run, index, k);
    }
}

int ft_check(const void *buffer, uint32_t length, uint32_t run, int index)
{
    const uint64_t *words = buffer;
    uint32_t k;

    for (k = 0; k < length / sizeof(*words); ++k) {
        if (words[k] != ft_word(run, index, k)) {
            return 0;
        }
    }

    return 1;
}

int ft_plan_writer(const ft_plan_t *plan, unsigned index, unsigned end)
{
    int writer = -1;
    unsigned i;

    for (i = 0; i < end; ++i) {
        if ((ft_kinds[plan->ops[i].kind].flags & FT_KIND_WRITES) &&
            (plan->ops[i].offset == plan->ops[index].offset)) {
            writer = i;
        }
    }

    return writer;
}

static void ft_slot(unsigned slot, uint32_t *offset_p, uint32_t *length_p)
{
    if (slot < FT_NUM_SMALL) {
        *offset_p = slot * FT_SMALL_SIZE;
        *length_p = (slot % 2) ? FT_SMALL_SIZE : sizeof(uint64_t);
        return;
    }

    slot -= FT_NUM_SMALL;
    if (slot < FT_NUM_MEDIUM) {
        *offset_p = (FT_NUM_SMALL * FT_SMALL_SIZE) + (slot * FT_MEDIUM_SIZE);
        *length_p = FT_MEDIUM_SIZE;
        return;
    }

    slot     -= FT_NUM_MEDIUM;
    *offset_p = (FT_NUM_SMALL * FT_SMALL_SIZE) +
                (FT_NUM_MEDIUM * FT_MEDIUM_SIZE) + (slot * FT_LARGE_SIZE);
    *length_p = FT_LARGE_SIZE;
}

static void ft_add(ft_plan_t *plan, ft_kind_t kind, unsigned slot)
{
    ft_op_t *op = &plan->ops[plan->num];

    op->kind = kind;
    ft_slot(slot, &op->offset, &op->length);
    op->value_of = ft_plan_writer(plan, plan->num, plan->num);
    ++plan->num;
}

#define FT_SMALL(_n)  (_n)
#define FT_MEDIUM(_n) (FT_NUM_SMALL + (_n))
#define FT_LARGE(_n)  (FT_NUM_SMALL + FT_NUM_MEDIUM + (_n))

/* A, B, C into one slot, between others, so that a repeated A is visible. Kinds without
 * a completion end with the flush that the client adds to all plans. */
#define FT_PUTS(_kind, _slot) \
    {_kind, _slot}, {_kind, _slot}, {_kind, (_slot) + 1}, {_kind, _slot}, {_kind, (_slot) + 2}
#define FT_GETS(_kind, _slot) \
    {_kind, _slot}, {FT_PUT_BCOPY, (_slot) + 1}, {_kind, (_slot) + 1}, {FT_FENCE, _slot}, \
    {FT_PUT_BCOPY, _slot}, {_kind, _slot}
#define FT_AMS(_kind, _slot) \
    {_kind, _slot}, {_kind, _slot}, {_kind, _slot}, {_kind, _slot}, {_kind, _slot}

/* Plans of few operations */
static const struct {
    const char *name;
    struct {
        ft_kind_t kind;
        unsigned  slot;
    } steps[9]; /* Up to FT_KIND_LAST */
} ft_short_plans[] = {
    {"put_short", {FT_PUTS(FT_PUT_SHORT, FT_SMALL(0)), {FT_KIND_LAST}}},
    {"put_bcopy", {FT_PUTS(FT_PUT_BCOPY, FT_MEDIUM(0)), {FT_KIND_LAST}}},
    {"put_zcopy", {FT_PUTS(FT_PUT_ZCOPY, FT_MEDIUM(0)), {FT_KIND_LAST}}},
    {"put_large", {{FT_PUT_ZCOPY, FT_LARGE(0)}, {FT_PUT_ZCOPY, FT_LARGE(0)},
                   {FT_PUT_ZCOPY, FT_LARGE(1)}, {FT_KIND_LAST}}},
    /* To different slots, so that the memory is the same in any order in which a network
     * without order places them */
    {"put_apart", {{FT_PUT_SHORT, FT_SMALL(0)}, {FT_PUT_ZCOPY, FT_MEDIUM(0)},
                   {FT_PUT_BCOPY, FT_MEDIUM(1)}, {FT_PUT_ZCOPY, FT_LARGE(0)},
                   {FT_PUT_BCOPY, FT_SMALL(1)}, {FT_AM_SHORT, FT_SMALL(2)},
                   {FT_PUT_SHORT, FT_SMALL(3)}, {FT_PUT_ZCOPY, FT_MEDIUM(2)},
                   {FT_KIND_LAST}}},
    {"get_bcopy", {FT_GETS(FT_GET_BCOPY, FT_SMALL(1)), {FT_KIND_LAST}}},
    {"get_zcopy", {FT_GETS(FT_GET_ZCOPY, FT_MEDIUM(1)), {FT_KIND_LAST}}},
    {"get_large", {{FT_GET_ZCOPY, FT_LARGE(0)}, {FT_FENCE, 0}, {FT_PUT_ZCOPY, FT_LARGE(0)},
                   {FT_GET_ZCOPY, FT_LARGE(0)}, {FT_KIND_LAST}}},
    {"am_short",  {FT_AMS(FT_AM_SHORT, FT_SMALL(1)), {FT_KIND_LAST}}},
    {"am_bcopy",  {FT_AMS(FT_AM_BCOPY, FT_MEDIUM(0)), {FT_KIND_LAST}}},
    {"am_zcopy",  {FT_AMS(FT_AM_ZCOPY, FT_MEDIUM(0)), {FT_KIND_LAST}}},
    {"flush",     {{FT_PUT_SHORT, FT_SMALL(0)}, {FT_PUT_BCOPY, FT_MEDIUM(0)}, {FT_FLUSH, 0},
                   {FT_PUT_SHORT, FT_SMALL(0)}, {FT_AM_SHORT, FT_SMALL(1)}, {FT_FLUSH, 0},
                   {FT_FLUSH, 0}, {FT_KIND_LAST}}},
    {"fence",     {{FT_GET_BCOPY, FT_SMALL(1)}, {FT_FENCE, 0}, {FT_PUT_SHORT, FT_SMALL(1)},
                   {FT_FENCE, 0}, {FT_PUT_SHORT, FT_SMALL(3)}, {FT_GET_BCOPY, FT_SMALL(3)},
                   {FT_FENCE, 0}, {FT_PUT_BCOPY, FT_SMALL(3)}, {FT_KIND_LAST}}}
};

#define FT_NUM_SHORT_PLANS (sizeof(ft_short_plans) / sizeof(ft_short_plans[0]))

static int ft_is_read_since_fence(const ft_plan_t *plan, unsigned slot)
{
    uint32_t offset, length;
    unsigned i;

    ft_slot(slot, &offset, &length);
    for (i = plan->num; i > 0; --i) {
        if (plan->ops[i - 1].kind == FT_FENCE) {
            return 0;
        }

        if ((ft_kinds[plan->ops[i - 1].kind].flags & FT_KIND_READS) &&
            (plan->ops[i - 1].offset == offset)) {
            return 1;
        }
    }

    return 0;
}

/* A batch of everything. A slot that is read is written later only after a fence;
 * otherwise the read may return either value. */
static void ft_build_mixed(ft_plan_t *plan, uint64_t seed)
{
    uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15ul;
    ft_kind_t kind;
    unsigned slot;

    while (plan->num < FT_BATCH) {
        kind = ft_random(&state, FT_KIND_LAST);
        switch (kind) {
        case FT_PUT_SHORT:
        case FT_AM_SHORT:
            slot = FT_SMALL(ft_random(&state, 4));
            break;
        case FT_PUT_ZCOPY:
        case FT_GET_ZCOPY:
            slot = ft_random(&state, 4) ? FT_MEDIUM(ft_random(&state, 3)) :
                   FT_LARGE(ft_random(&state, 2));
            break;
        case FT_FLUSH:
        case FT_FENCE:
            slot = 0;
            if (ft_random(&state, 2)) {
                continue;
            }
            break;
        default:
            slot = ft_random(&state, 2) ? FT_MEDIUM(ft_random(&state, 3)) :
                   FT_SMALL(ft_random(&state, 4));
            break;
        }

        if ((ft_kinds[kind].flags & FT_KIND_WRITES) &&
            ft_is_read_since_fence(plan, slot)) {
            kind = FT_FENCE;
        }

        ft_add(plan, kind, slot);
    }
}

/* More messages than fit into a short receive queue */
static void ft_build_am_flood(ft_plan_t *plan)
{
    unsigned i;

    ft_add(plan, FT_PUT_SHORT, FT_SMALL(0));
    for (i = 0; i < 100; ++i) {
        ft_add(plan, FT_AM_SHORT, FT_SMALL(i % 4));
    }
    ft_add(plan, FT_GET_BCOPY, FT_SMALL(0));
    ft_add(plan, FT_PUT_BCOPY, FT_MEDIUM(0));
}

int ft_plan_make(const char *name, ft_plan_t *plan)
{
    unsigned i, k;

    plan->num = 0;
    if (!strncmp(name, "mixed", 5)) {
        ft_build_mixed(plan, strtoul(name + 5, NULL, 10));
        return 0;
    } else if (!strcmp(name, "am_flood")) {
        ft_build_am_flood(plan);
        return 0;
    }

    for (i = 0; i < FT_NUM_SHORT_PLANS; ++i) {
        if (!strcmp(ft_short_plans[i].name, name)) {
            for (k = 0; ft_short_plans[i].steps[k].kind != FT_KIND_LAST; ++k) {
                ft_add(plan, ft_short_plans[i].steps[k].kind, ft_short_plans[i].steps[k].slot);
            }
            return 0;
        }
    }

    return -1;
}

const char *ft_plan_name(unsigned n)
{
    static const char *const others[] = {"am_flood", "mixed"}; /* mixedN: one for each N */

    if (n < FT_NUM_SHORT_PLANS) {
        return ft_short_plans[n].name;
    }

    n -= FT_NUM_SHORT_PLANS;
    return (n < sizeof(others) / sizeof(others[0])) ? others[n] : NULL;
}
