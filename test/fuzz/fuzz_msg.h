/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Bodies of control messages that pass the check of their type, made from its row
 * (uct_varuna_msg_infos): the members of the fixed part are random within their bounds, and
 * what the row says follows. Both fuzzers use it: a type that is added to the table is a
 * message of theirs.
 */
#ifndef FUZZ_MSG_H_
#define FUZZ_MSG_H_

#include <uct/ib/varuna/core/varuna_msg.h>
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>

#include <string.h>

#define FUZZ_MSG_MAX_BODY  1024

typedef uint64_t (*fuzz_msg_next_t)(void *arg);

/* Often at a bound, or not far from it */
static inline uint64_t
fuzz_msg_value(const uct_varuna_msg_field_t *field, fuzz_msg_next_t next, void *arg)
{
    uint64_t range = field->max - field->min;

    switch (next(arg) % 4) {
    case 0:
        return field->min;
    case 1:
        return field->max;
    case 2:
        return field->min + (next(arg) % (((range < 64) ? range : 64) + 1));
    default:
        return (range == UINT64_MAX) ? next(arg) : field->min + (next(arg) % (range + 1));
    }
}

/* A whole message with random data after the fixed part. @return its length */
static inline size_t
fuzz_msg_try(const uct_varuna_msg_info_t *info, fuzz_msg_next_t next, void *arg,
             uint8_t *body)
{
    size_t length = info->size;
    uint64_t value;
    unsigned i;

    for (i = 0; i < FUZZ_MSG_MAX_BODY; ++i) {
        body[i] = (next(arg) % 2) ? next(arg) : 0;
    }

    for (i = 0; (i < UCT_VARUNA_MSG_MAX_FIELDS) && (info->fields[i].size > 0); ++i) {
        value = fuzz_msg_value(&info->fields[i], next, arg);
        memcpy(body + info->fields[i].offset, &value, info->fields[i].size);
        length += value * info->fields[i].unit;
    }

    return length;
}

/* What the rows do not say: three types have parts of their own */

static inline size_t fuzz_msg_atomics(uint8_t *body, fuzz_msg_next_t next, void *arg)
{
    uct_varuna_ctl_atomic_req_t *req = (uct_varuna_ctl_atomic_req_t*)body;
    uct_varuna_ctl_atomic_op_t *ops  = (uct_varuna_ctl_atomic_op_t*)(req + 1);
    unsigned i;

    req->count = 1 + (next(arg) % 8);
    req->acked = 1 + (next(arg) % 8);
    req->first = req->acked + (next(arg) % 8);
    for (i = 0; i < req->count; ++i) {
        ops[i].width = (next(arg) % 2) ? 4 : 8;
        ops[i].addr -= ops[i].addr % ops[i].width;
        ops[i].op    = next(arg) % UCT_ATOMIC_OP_LAST;
    }

    return sizeof(*req) + (req->count * sizeof(*ops));
}

static inline void fuzz_msg_word(uct_varuna_ctl_home_req_t *req)
{
    req->width = (req->width < 8) ? 4 : 8;
    req->addr -= req->addr % req->width;
}

/* With an arena, or without one */
static inline size_t fuzz_msg_opened(uint8_t *body, fuzz_msg_next_t next, void *arg)
{
    uct_varuna_ctl_open_rep_t *rep      = (uct_varuna_ctl_open_rep_t*)body;
    const uct_varuna_packed_rkey_t rkey = {
        .num_keys = 1,
        .key_size = sizeof(uct_varuna_packed_key_t)
    };
    size_t length                       = sizeof(*rep);
    unsigned i, keys;

    rep->rkey_len    = sizeof(rkey) + rkey.key_size;
    rep->addr_len    = 1 + (next(arg) % 64);
    rep->home_nic    = next(arg) % UCT_VARUNA_MAX_LINKS;
    rep->num_slots   = 0;
    rep->arena_slots = 0;
    keys             = 1;
    if (next(arg) % 2) {
        rep->slots_addr |= 1;
        rep->marks_addr |= 1;
        rep->own_addr   |= 1;
        rep->arena_slots = UCT_VARUNA_SLOTS_MAX;
        rep->num_slots   = next(arg) % 3;
        rep->first_slot  = next(arg) % (UCT_VARUNA_SLOTS_MAX - 2);
        keys             = (rep->num_slots > 0) ? 4 : 3;
    }

    for (i = 0; i < keys; ++i) {
        memcpy(body + length, &rkey, sizeof(rkey));
        length += rep->rkey_len + ((i == 0) ? rep->addr_len : 0);
    }

    return length + (rep->num_slots * sizeof(uint64_t));
}

/**
 * Make a body of @a type.
 *
 * @param [in]  next      Gives random numbers.
 * @param [in]  arg       For @a next.
 * @param [out] body      FUZZ_MSG_MAX_BODY bytes.
 * @param [out] length_p  How many of them are the body.
 *
 * @return 0; -1 if the row refuses what is made by it: it needs a part of its own here.
 */
static inline int fuzz_msg_make(unsigned type, fuzz_msg_next_t next, void *arg,
                                uint8_t *body, size_t *length_p)
{
    const uct_varuna_msg_info_t *info = uct_varuna_msg_info(type);
    unsigned i;

    for (i = 0; i < 1000; ++i) {
        *length_p = fuzz_msg_try(info, next, arg, body);
        if (type == UCT_VARUNA_CTL_ATOMIC_REQ) {
            *length_p = fuzz_msg_atomics(body, next, arg);
        } else if (type == UCT_VARUNA_CTL_OPEN_REP) {
            *length_p = fuzz_msg_opened(body, next, arg);
        } else if (type == UCT_VARUNA_CTL_HOME_REQ) {
            fuzz_msg_word((uct_varuna_ctl_home_req_t*)body);
        }

        if ((*length_p <= FUZZ_MSG_MAX_BODY) &&
            uct_varuna_msg_check_body(type, body, *length_p)) {
            return 0;
        }
    }

    return -1;
}

#endif
