/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mutations of messages: of header fields, and of any bytes.
 */
#include "ft_fuzz.h"

#include <ucs/sys/math.h>
#include <stddef.h>
#include <string.h>

static uint64_t ft_mutate_number(ft_rng_t *rng, uint64_t old)
{
    static const uint64_t numbers[] = {
        0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000,
        0xffffffff, 0x7ffffffffffffffful, 0x8000000000000000ul, UINT64_MAX
    };

    switch (ft_rng_below(rng, 4)) {
    case 0:
        return old + 1;
    case 1:
        return old - 1;
    case 2:
        return ft_rng_next(rng);
    default:
        return numbers[ft_rng_below(rng, ucs_static_array_size(numbers))];
    }
}

/* Overwrite a field, or bytes that may be one. */
static void ft_mutate_place(ft_rng_t *rng, ft_shot_t *shot, size_t offset,
                            size_t size)
{
    uint64_t value = 0;

    if (((offset + size) > shot->msg.length) || (size > sizeof(value))) {
        return;
    }

    memcpy(&value, shot->msg.data + offset, size);
    value = ft_mutate_number(rng, value);
    memcpy(shot->msg.data + offset, &value, size);
}

#define FT_FIELD(_name) \
    {offsetof(uct_varuna_ctl_hdr_t, _name), \
     sizeof(((uct_varuna_ctl_hdr_t*)NULL)->_name)}

static void ft_mutate_header(ft_rng_t *rng, ft_shot_t *shot)
{
    static const struct {
        size_t offset;
        size_t size;
    } fields[] = {
        FT_FIELD(magic), FT_FIELD(version), FT_FIELD(type), FT_FIELD(length),
        FT_FIELD(dest), FT_FIELD(uuid), FT_FIELD(secret), FT_FIELD(vqp),
        FT_FIELD(epoch), FT_FIELD(opening), FT_FIELD(from_device_len),
        FT_FIELD(from_ctl_len), FT_FIELD(from_nic), FT_FIELD(from_generation)
    };
    unsigned i = ft_rng_below(rng, ucs_static_array_size(fields));

    ft_mutate_place(rng, shot, fields[i].offset, fields[i].size);
}

/* A field of the body, or a part of the data after it */
static void ft_mutate_body(ft_rng_t *rng, ft_shot_t *shot)
{
    static const size_t sizes[] = {1, 2, 4, 8};
    size_t size                 = sizes[ft_rng_below(rng, 4)];
    size_t start                = (shot->am_id == UCT_VARUNA_AM_ID_CTL) ?
                                  sizeof(uct_varuna_ctl_hdr_t) :
                                  sizeof(uct_varuna_am_hdr_t);

    if (shot->msg.length > start) {
        ft_mutate_place(rng, shot,
                        start + ft_rng_below(rng, shot->msg.length - start), size);
    }
}

static void ft_mutate_bits(ft_rng_t *rng, ft_shot_t *shot)
{
    unsigned count = 1 + ft_rng_below(rng, 8);

    for (; (count > 0) && (shot->msg.length > 0); --count) {
        shot->msg.data[ft_rng_below(rng, shot->msg.length)] ^=
                UCS_BIT(ft_rng_below(rng, 8));
    }
}

/* @a is_told: the header contains the new length. */
static void ft_mutate_length(ft_rng_t *rng, ft_shot_t *shot, int is_told)
{
    size_t old = shot->msg.length;
    size_t length, i;

    length = ft_rng_one_in(rng, 2) ? ft_rng_below(rng, old + 1) :
             ft_rng_one_in(rng, 4) ? sizeof(shot->msg.data) :
             ucs_min(old + ft_rng_below(rng, 600), sizeof(shot->msg.data));
    for (i = old; i < length; ++i) {
        shot->msg.data[i] = ft_rng_next(rng);
    }

    shot->msg.length = length;
    if (is_told && (length >= sizeof(uct_varuna_ctl_hdr_t)) &&
        (shot->am_id == UCT_VARUNA_AM_ID_CTL)) {
        ft_ctl_hdr(&shot->msg)->length += length - old;
    }
}

/* Another destination */
static void ft_mutate_way(const ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    switch (ft_rng_below(rng, 3)) {
    case 0:
        shot->am_id = ft_rng_below(rng, 32);
        break;
    case 1:
        shot->to_data = fuzz->has_data && !shot->to_data;
        break;
    default:
        shot->link = ft_rng_below(rng, fuzz->ctl.num_links);
        break;
    }
}

/* The name of another process's vQP, similar to ours or not, and the number that would
 * be its next one if it counted from 0 */
static void ft_mutate_target(ft_rng_t *rng, ft_shot_t *shot)
{
    uct_varuna_am_hdr_t *hdr = (uct_varuna_am_hdr_t*)shot->msg.data;

    if ((shot->am_id != UCT_VARUNA_AM_ID_DATA) ||
        (shot->msg.length < sizeof(*hdr))) {
        return;
    }

    hdr->target ^= (ft_rng_one_in(rng, 4) ? ft_rng_next(rng) :
                    1 + ft_rng_below(rng, 15)) << UCT_VARUNA_AM_ID_BITS;
    if (ft_rng_one_in(rng, 2)) {
        hdr->seq = ft_rng_below(rng, 64);
    }
}

void ft_fuzz_mutate(const ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    unsigned count = 1 + ft_rng_below(rng, 3);

    if (ft_rng_one_in(rng, 2)) {
        ft_mutate_target(rng, shot);
    }

    for (; count > 0; --count) {
        switch (ft_rng_below(rng, 8)) {
        case 0:
        case 1:
            ft_mutate_header(rng, shot);
            break;
        case 2:
        case 3:
            ft_mutate_body(rng, shot);
            break;
        case 4:
            ft_mutate_bits(rng, shot);
            break;
        case 5:
            ft_mutate_length(rng, shot, 0);
            break;
        case 6:
            ft_mutate_length(rng, shot, 1);
            break;
        default:
            ft_mutate_way(fuzz, rng, shot);
            break;
        }
    }
}
