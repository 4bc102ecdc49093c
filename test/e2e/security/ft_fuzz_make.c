/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The messages of a hostile peer: valid messages in any order, and repetitions of
 * messages that it has sent or received.
 */
#include "ft_fuzz.h"

#include "../../fuzz/fuzz_msg.h"

#include <ucs/sys/math.h>
#include <string.h>

/* --- As a requester --- */

/* Select one of our vQPs, and its identity */
static ft_ctl_vqp_t *ft_make_vqp(ft_fuzz_t *fuzz, ft_rng_t *rng)
{
    unsigned i = ft_rng_below(rng, FT_FUZZ_VQPS);

    fuzz->ctl.uuid = fuzz->identities[i % FT_FUZZ_IDENTITIES];
    return &fuzz->vqps[i];
}

static int ft_make_open(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    ft_ctl_vqp_t *vqp = ft_make_vqp(fuzz, rng);

    if (ft_rng_one_in(rng, 3)) {
        ++vqp->instance;
    }
    ft_ctl_open_req(&fuzz->ctl, &fuzz->victim, shot->link, vqp, &shot->msg);
    return 1;
}

static int ft_make_connect(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    ft_ctl_vqp_t *vqp = ft_make_vqp(fuzz, rng);
    ft_ctl_rc_t *rc   = &fuzz->rc_addrs[ft_rng_below(rng, fuzz->ctl.num_links)];

    ft_ctl_connect_req(&fuzz->ctl, &fuzz->victim, shot->link, vqp, rc, &shot->msg);
    if (ft_rng_one_in(rng, 2)) {
        ++vqp->epoch;
    }
    return 1;
}

static int ft_make_fence(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    ft_ctl_vqp_t *vqp              = ft_make_vqp(fuzz, rng);
    uct_varuna_ctl_fence_req_t req = {
        .newest   = vqp->epoch + ft_rng_below(rng, 2),
        .round    = ft_rng_below(rng, 2),
        .am_acked = ft_rng_one_in(rng, 8) ? ft_rng_next(rng) : vqp->seq
    };

    ft_ctl_fence_req(&fuzz->ctl, &fuzz->victim, shot->link, vqp, &req, &shot->msg);
    ++vqp->epoch;
    return 1;
}

/* Several in one message, some of them repeated */
static int ft_make_atomics(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    ft_ctl_vqp_t *vqp = ft_make_vqp(fuzz, rng);
    uct_varuna_ctl_atomic_op_t ops[4];
    uct_varuna_ctl_atomic_req_t req = {
        .first = vqp->atomic,
        .acked = vqp->atomic - ft_rng_below(rng, 1 + ucs_min(vqp->atomic, 3)),
        .count = 1 + ft_rng_below(rng, ucs_static_array_size(ops))
    };
    unsigned i;

    for (i = 0; i < req.count; ++i) {
        ft_ctl_atomic_fill(&fuzz->address, 8 * ft_rng_below(rng, 500), &ops[i]);
        ops[i].op      = ft_rng_below(rng, UCT_ATOMIC_OP_LAST);
        ops[i].compare = ft_rng_below(rng, 4);
        ops[i].value   = ft_rng_below(rng, 4);
    }

    ft_ctl_atomic_req(&fuzz->ctl, &fuzz->victim, shot->link, vqp, &req, ops,
                      &shot->msg);
    if (!ft_rng_one_in(rng, 4)) {
        vqp->atomic += req.count;
    }
    return 1;
}

static int ft_make_close(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    ft_ctl_vqp_t *vqp = ft_make_vqp(fuzz, rng);

    ft_ctl_close_vqp(&fuzz->ctl, &fuzz->victim, shot->link, vqp, &shot->msg);
    return 1;
}

static int ft_make_ping(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    ft_make_vqp(fuzz, rng);
    ft_ctl_ping(&fuzz->ctl, &fuzz->victim, shot->link,
                1 + ft_rng_below(rng, 1000), &shot->msg);
    return 1;
}

static int ft_make_data(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    ft_ctl_vqp_t *vqp = ft_make_vqp(fuzz, rng);
    uint64_t word;
    unsigned i;

    if (!fuzz->has_data) {
        return 0;
    }

    /* With a gap, repeated, or correct */
    vqp->seq += ft_rng_one_in(rng, 4) ? ft_rng_below(rng, 4) : 0;
    vqp->seq -= ft_rng_one_in(rng, 8) ? ft_rng_below(rng, 8) : 0;
    ft_ctl_data(vqp, ft_rng_below(rng, 32), &shot->msg);
    for (i = ft_rng_below(rng, 8); i > 0; --i) {
        word = ft_rng_next(rng);
        ft_ctl_append(&shot->msg, &word, sizeof(word));
    }

    shot->am_id   = UCT_VARUNA_AM_ID_DATA;
    shot->to_data = 1;
    return 1;
}

static uint64_t ft_make_next(void *rng)
{
    return ft_rng_next(rng);
}

/* The body of a message of any type, made by its row */
static size_t ft_make_body(ft_rng_t *rng, unsigned type, uint8_t *body)
{
    size_t length;

    if (fuzz_msg_make(type, ft_make_next, rng, body, &length) != 0) {
        ft_die("no valid %s was made", uct_varuna_ctl_type_name(type));
    }

    return length;
}

/* Of any type */
static int ft_make_any(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    ft_ctl_vqp_t *vqp = ft_make_vqp(fuzz, rng);
    unsigned type     = ft_rng_below(rng, UCT_VARUNA_CTL_LAST);
    uint8_t body[FUZZ_MSG_MAX_BODY];

    if (uct_varuna_msg_info(type) == NULL) {
        return 0;
    }

    ft_ctl_begin_vqp(&fuzz->ctl, &fuzz->victim, type, vqp, vqp->epoch, &shot->msg);
    ft_ctl_append(&shot->msg, body, ft_make_body(rng, type, body));
    ft_ctl_end(&fuzz->ctl, shot->link, &shot->msg);
    return 1;
}

/* --- As a responder --- */

static void ft_make_open_rep(ft_fuzz_t *fuzz, ft_rng_t *rng,
                             const uct_varuna_ctl_hdr_t *req, ft_shot_t *shot)
{
    ft_ctl_open_rep(&fuzz->ctl, &fuzz->victim, shot->link, req, ++fuzz->openings,
                    fuzz->memory + (FT_FUZZ_MEMORY / 2), fuzz->memhs, &shot->msg);
}

static void ft_make_fence_rep(ft_fuzz_t *fuzz, ft_rng_t *rng,
                              const uct_varuna_ctl_hdr_t *req, ft_shot_t *shot)
{
    uint64_t log[UCT_VARUNA_LOG_SIZE];
    unsigned i;

    memcpy(log, fuzz->memory + (FT_FUZZ_MEMORY / 2), sizeof(log));
    for (i = ft_rng_below(rng, 2) * ft_rng_below(rng, UCT_VARUNA_LOG_SIZE); i > 0;
         --i) {
        log[ft_rng_below(rng, UCT_VARUNA_LOG_SIZE)] = ft_rng_next(rng);
    }

    ft_ctl_fence_rep(&fuzz->ctl, &fuzz->victim, shot->link, req, ft_rng_next(rng),
                     log, &shot->msg);
}

static void ft_make_pong(ft_fuzz_t *fuzz, ft_rng_t *rng,
                         const uct_varuna_ctl_hdr_t *req, ft_shot_t *shot)
{
    uct_varuna_ctl_pong_t pong = {
        .ports.number = ft_rng_next(rng),
        .ports.down   = ft_rng_one_in(rng, 8) ? ft_rng_next(rng) : 0,
        .beat         = ft_rng_next(rng)
    };

    ft_ctl_reply(&fuzz->ctl, &fuzz->victim, shot->link, req, UCT_VARUNA_CTL_PONG,
                 &pong, sizeof(pong), &shot->msg);
}

static void ft_make_atomic_rep(ft_fuzz_t *fuzz, ft_rng_t *rng,
                               const uct_varuna_ctl_hdr_t *req, ft_shot_t *shot)
{
    const uct_varuna_ctl_atomic_req_t *asked = (const void*)(req + 1);
    struct {
        uct_varuna_ctl_atomic_rep_t    rep;
        uct_varuna_ctl_atomic_result_t result;
    } UCS_S_PACKED body = {
        .rep.first     = asked->first,
        .rep.count     = 1,
        .result.value  = ft_rng_next(rng),
        .result.status = ft_rng_one_in(rng, 8) ? UCS_ERR_CANCELED : UCS_OK
    };

    ft_ctl_reply(&fuzz->ctl, &fuzz->victim, shot->link, req,
                 UCT_VARUNA_CTL_ATOMIC_REP, &body, sizeof(body), &shot->msg);
}

/* Its body is made by its row, not by what we have */
static void ft_make_other_rep(ft_fuzz_t *fuzz, ft_rng_t *rng,
                              const uct_varuna_ctl_hdr_t *req, ft_shot_t *shot)
{
    unsigned type = uct_varuna_msg_info(req->type)->answer;
    uint8_t body[FUZZ_MSG_MAX_BODY];

    ft_ctl_reply(&fuzz->ctl, &fuzz->victim, shot->link, req, type, body,
                 ft_make_body(rng, type, body), &shot->msg);
}

int ft_fuzz_make_answer(ft_fuzz_t *fuzz, ft_rng_t *rng, const ft_shot_t *ask,
                        ft_shot_t *shot)
{
    const uct_varuna_ctl_hdr_t *req = (const void*)ask->msg.data;

    fuzz->ctl.uuid = fuzz->identities[0];
    shot->am_id    = UCT_VARUNA_AM_ID_CTL;
    shot->to_data  = 0;
    shot->link     = ask->link;
    if (ft_rng_one_in(rng, 32)) {
        ft_ctl_reject(&fuzz->ctl, &fuzz->victim, shot->link, req,
                      ft_rng_one_in(rng, 2) ? UCS_ERR_NO_ELEM :
                      UCS_ERR_CONNECTION_RESET, &shot->msg);
        return 1;
    }

    switch (req->type) {
    case UCT_VARUNA_CTL_OPEN_REQ:
        ft_make_open_rep(fuzz, rng, req, shot);
        return 1;
    case UCT_VARUNA_CTL_CONNECT_REQ:
        ft_ctl_connect_rep(&fuzz->ctl, &fuzz->victim, shot->link, req,
                           &fuzz->rc_addrs[shot->link], &shot->msg);
        return 1;
    case UCT_VARUNA_CTL_FENCE_REQ:
        ft_make_fence_rep(fuzz, rng, req, shot);
        return 1;
    case UCT_VARUNA_CTL_PING:
        ft_make_pong(fuzz, rng, req, shot);
        return 1;
    case UCT_VARUNA_CTL_ATOMIC_REQ:
        ft_make_atomic_rep(fuzz, rng, req, shot);
        return 1;
    default:
        ft_make_other_rep(fuzz, rng, req, shot);
        return 1;
    }
}

/* Repeated, and late */
static int ft_make_late_answer(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    unsigned count = ucs_min(fuzz->num_asks, FT_FUZZ_RECORDS);

    return (count > 0) &&
           ft_fuzz_make_answer(fuzz, rng, &fuzz->asks[ft_rng_below(rng, count)],
                               shot);
}


/* --- All kinds --- */

static int ft_make_replay(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    unsigned count = ucs_min(fuzz->num_records, FT_FUZZ_RECORDS);

    if (count == 0) {
        return 0;
    }

    *shot = fuzz->records[ft_rng_below(rng, count)];
    return !shot->to_data || fuzz->has_data;
}

static int ft_make_garbage(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    size_t i;

    shot->am_id      = ft_rng_below(rng, 32);
    shot->to_data    = fuzz->has_data && ft_rng_one_in(rng, 2);
    shot->msg.length = ft_rng_below(rng, 600);
    for (i = 0; i < shot->msg.length; ++i) {
        shot->msg.data[i] = ft_rng_next(rng);
    }
    return 1;
}

int ft_fuzz_make(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot)
{
    static const struct {
        unsigned weight;
        int      (*make)(ft_fuzz_t *fuzz, ft_rng_t *rng, ft_shot_t *shot);
    } kinds[] = {
        {20, ft_make_open},   {12, ft_make_connect}, {12, ft_make_fence},
        {15, ft_make_atomics},  {6, ft_make_close},    {5, ft_make_ping},
        {20, ft_make_data},   {10, ft_make_replay},  {8, ft_make_late_answer},
        {8, ft_make_any},
        {2, ft_make_garbage}
    };
    unsigned total = 0;
    unsigned i, pick;

    for (i = 0; i < ucs_static_array_size(kinds); ++i) {
        total += kinds[i].weight;
    }

    pick = ft_rng_below(rng, total);
    for (i = 0; pick >= kinds[i].weight; ++i) {
        pick -= kinds[i].weight;
    }

    memset(shot, 0, sizeof(*shot));
    shot->used  = 1;
    shot->am_id = UCT_VARUNA_AM_ID_CTL;
    shot->link  = ft_rng_below(rng, fuzz->ctl.num_links);
    return kinds[i].make(fuzz, rng, shot);
}

static void ft_learn_opened(ft_fuzz_t *fuzz, const void *data)
{
    const uct_varuna_ctl_hdr_t *hdr = data;
    const void *addr;
    size_t length;
    unsigned i;

    for (i = 0; i < FT_FUZZ_VQPS; ++i) {
        if ((fuzz->vqps[i].id == hdr->vqp) &&
            (fuzz->vqps[i].opening != hdr->opening)) {
            ++fuzz->opened;
            addr = ft_ctl_opened(&fuzz->vqps[i], data, &length);
            if (!fuzz->has_data) {
                fuzz->has_data = (ft_ctl_meet_data(&fuzz->data, addr, length) == 0);
            }
        }
    }
}

int ft_fuzz_learn(ft_fuzz_t *fuzz, const void *data, size_t length)
{
    const uct_varuna_ctl_hdr_t *hdr = data;
    const char *reason;

    if (uct_varuna_parse_ctl(data, length, &reason) != UCS_OK) {
        ft_die("the victim sent a wrong message: %s", reason);
    }

    if (hdr->type == UCT_VARUNA_CTL_OPEN_REP) {
        ft_learn_opened(fuzz, data);
    }

    return uct_varuna_msg_info(hdr->type)->answer != 0;
}
