/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * vQPs between two friends: each runs rounds of operations, and all results and
 * messages must be correct. See ft_victim.h.
 */
#include "ft_victim.h"
#include "ft_clock.h"

#include <ucs/sys/math.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FT_CHECK_TIMEOUT 60.0
#define FT_CHECK_TAIL    128  /* Read of the counter of messages: get_zcopy has a
                                 minimum */

/* A message */
typedef struct {
    uint64_t index;  /* Of the sender's vQP */
    uint64_t number;
} ft_check_am_t;

static void *ft_check_alloc(ft_uct_t *uct, size_t length, uct_mem_h *memh_p)
{
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        ft_die("mmap of %zu bytes", length);
    }

    *memh_p = ft_uct_reg(uct, memory, length);
    return memory;
}

/* UCT does not report the sender of a message, but the token identifies it */
static ucs_status_t ft_check_received(void *arg, void *data, size_t length,
                                      unsigned flags)
{
    ft_check_t *check = arg;
    ft_check_am_t am;
    uint64_t token;

    if (length != (sizeof(token) + sizeof(am))) {
        ++check->foreign;
        return UCS_OK;
    }

    memcpy(&token, data, sizeof(token));
    memcpy(&am, UCS_PTR_BYTE_OFFSET(data, sizeof(token)), sizeof(am));
    if (token != check->token) {
        ++check->foreign;
    } else if ((am.index >= FT_CHECK_MAX_VQPS) ||
               (am.number != check->slots[am.index].received)) {
        ft_die("message %" PRIu64 " of vQP %" PRIu64 " came out of order", am.number,
               am.index);
    } else {
        ++check->slots[am.index].received;
    }

    return UCS_OK;
}

/* Receive other messages: UCX would log a backtrace for each */
static ucs_status_t ft_check_drop(void *arg, void *data, size_t length,
                                  unsigned flags)
{
    ++((ft_check_t*)arg)->foreign;
    return UCS_OK;
}

void ft_check_init(ft_check_t *check, ft_uct_t *uct, uint64_t token)
{
    unsigned id;

    memset(check, 0, sizeof(*check));
    check->uct   = uct;
    check->token = token;
    check->slots = ft_check_alloc(uct, FT_CHECK_MAX_VQPS * sizeof(*check->slots),
                                  &check->slots_memh);
    check->buffers = ft_check_alloc(uct, (2 * FT_CHECK_MAX_VQPS * FT_CHECK_AREA) +
                                         FT_CHECK_TAIL,
                                    &check->buffers_memh);
    check->sent    = (uint64_t*)(check->buffers +
                                 (2 * FT_CHECK_MAX_VQPS * FT_CHECK_AREA));
    for (id = 0; id < UCT_AM_ID_MAX; ++id) {
        if (uct_iface_set_am_handler(uct->iface, id,
                                     (id == FT_CHECK_AM_ID) ? ft_check_received :
                                     ft_check_drop, check, 0) != UCS_OK) {
            ft_die("a handler can't be set");
        }
    }
}

void ft_check_connect(ft_check_t *check, const ft_address_t *friend,
                      uint64_t token, unsigned num_vqps)
{
    ft_check_vqp_t *vqp;
    unsigned i;

    check->friend       = *friend;
    check->friend_token = token;
    check->num_vqps     = num_vqps;
    if (uct_rkey_unpack(check->uct->component, friend->rkey, &check->rkey) !=
        UCS_OK) {
        ft_die("the friend's key can't be unpacked");
    }

    for (i = 0; i < num_vqps; ++i) {
        vqp         = &check->vqps[i];
        vqp->index  = i;
        vqp->source = check->buffers + (2 * i * FT_CHECK_AREA);
        vqp->result = vqp->source + FT_CHECK_AREA;
        vqp->ep     = ft_uct_connect(check->uct, friend);
    }
}


/* --- A round --- */

/* One count is ours, so it is not called before we release it */
static void ft_check_done(uct_completion_t *comp)
{
}

static uint64_t ft_check_place(const ft_check_t *check, const ft_check_vqp_t *vqp,
                               size_t offset)
{
    return check->friend.base + (vqp->index * sizeof(ft_check_slot_t)) + offset;
}

static ucs_status_t ft_check_put(ft_check_t *check, ft_check_vqp_t *vqp)
{
    uct_iov_t iov = {
        .buffer = vqp->source,
        .length = FT_CHECK_AREA,
        .memh   = check->buffers_memh,
        .count  = 1
    };
    unsigned i;

    for (i = 0; i < FT_CHECK_AREA; ++i) {
        vqp->source[i] = (vqp->round * 31) + (vqp->index * 7) + i;
    }

    return uct_ep_put_zcopy(vqp->ep, &iov, 1,
                            ft_check_place(check, vqp,
                                           offsetof(ft_check_slot_t, area)),
                            check->rkey.rkey, &vqp->comp);
}

static ucs_status_t ft_check_read(ft_check_t *check, ft_check_vqp_t *vqp,
                                  void *buffer, size_t length, size_t offset)
{
    uct_iov_t iov = {
        .buffer = buffer,
        .length = length,
        .memh   = check->buffers_memh,
        .count  = 1
    };

    return uct_ep_get_zcopy(vqp->ep, &iov, 1, ft_check_place(check, vqp, offset),
                            check->rkey.rkey, &vqp->comp);
}

static ucs_status_t ft_check_send(ft_check_t *check, ft_check_vqp_t *vqp)
{
    ft_check_am_t am = {.index = vqp->index, .number = vqp->round};

    return uct_ep_am_short(vqp->ep, FT_CHECK_AM_ID, check->friend_token, &am,
                           sizeof(am));
}

static ucs_status_t ft_check_post(ft_check_t *check, ft_check_vqp_t *vqp)
{
    switch (vqp->step) {
    case FT_CHECK_PUT:
        return ft_check_put(check, vqp);
    case FT_CHECK_ADD:
        return uct_ep_atomic64_fetch(vqp->ep, UCT_ATOMIC_OP_ADD, 1, &vqp->added,
                                     ft_check_place(check, vqp,
                                                    offsetof(ft_check_slot_t,
                                                             counter)),
                                     check->rkey.rkey, &vqp->comp);
    case FT_CHECK_SEND:
        return ft_check_send(check, vqp);
    case FT_CHECK_FLUSH:
        return uct_ep_flush(vqp->ep, 0, &vqp->comp);
    default:
        memset(vqp->result, 0xff, FT_CHECK_AREA);
        return ft_check_read(check, vqp, vqp->result, FT_CHECK_AREA,
                             offsetof(ft_check_slot_t, area));
    }
}

static void ft_check_compare(ft_check_t *check, ft_check_vqp_t *vqp)
{
    if (vqp->comp.status != UCS_OK) {
        ft_die("vQP %u: round %" PRIu64 " failed: %s", vqp->index, vqp->round,
               ucs_status_string(vqp->comp.status));
    }

    if (memcmp(vqp->source, vqp->result, FT_CHECK_AREA)) {
        ft_die("vQP %u: round %" PRIu64 ": the data is wrong", vqp->index,
               vqp->round);
    }

    if (vqp->added != vqp->round) {
        ft_die("vQP %u: round %" PRIu64 ": fetch and add gave %" PRIu64, vqp->index,
               vqp->round, vqp->added);
    }

    ++vqp->round;
}

/* @return Whether the next step was posted */
static int ft_check_step(ft_check_t *check, ft_check_vqp_t *vqp)
{
    ucs_status_t status;

    if ((vqp->step == FT_CHECK_PUT) && check->is_ending) {
        return 0;
    }

    if (vqp->step == FT_CHECK_PUT) {
        vqp->comp.func   = ft_check_done;
        vqp->comp.count  = 1;
        vqp->comp.status = UCS_OK;
    }

    /* A get must not overtake a put: all earlier operations are complete */
    if (((vqp->step == FT_CHECK_GET) || (vqp->step == FT_CHECK_COMPARE)) &&
        (vqp->comp.count > 1)) {
        return 0;
    }

    if (vqp->step == FT_CHECK_COMPARE) {
        ft_check_compare(check, vqp);
        vqp->step = FT_CHECK_PUT;
        return 1;
    }

    ++vqp->comp.count; /* The operation may complete in this call */
    status = ft_check_post(check, vqp);
    if (status != UCS_INPROGRESS) {
        --vqp->comp.count;
    }

    if (status == UCS_ERR_NO_RESOURCE) {
        return 0;
    } else if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
        ft_die("vQP %u: step %d of round %" PRIu64 ": %s", vqp->index, vqp->step,
               vqp->round, ucs_status_string(status));
    }

    ++vqp->step;
    return 1;
}

int ft_check_progress(ft_check_t *check)
{
    int is_busy = 0;
    unsigned i;

    for (i = 0; i < check->num_vqps; ++i) {
        while (ft_check_step(check, &check->vqps[i])) {
        }
        is_busy |= (check->vqps[i].step != FT_CHECK_PUT);
    }

    return is_busy;
}

uint64_t ft_check_rounds(const ft_check_t *check)
{
    uint64_t rounds = UINT64_MAX;
    unsigned i;

    for (i = 0; i < check->num_vqps; ++i) {
        rounds = ucs_min(rounds, check->vqps[i].round);
    }

    return (check->num_vqps == 0) ? 0 : rounds;
}

/* Read the friend's counter of messages until it is right */
static void ft_check_finish_vqp(ft_check_t *check, ft_check_vqp_t *vqp)
{
    double end = ft_now() + FT_CHECK_TIMEOUT;
    ucs_status_t status;

    do {
        vqp->comp.func   = ft_check_done;
        vqp->comp.count  = 2;
        vqp->comp.status = UCS_OK;
        status           = ft_check_read(check, vqp, check->sent, FT_CHECK_TAIL,
                                         offsetof(ft_check_slot_t, received));
        if (status == UCS_OK) {
            --vqp->comp.count;
        } else if ((status != UCS_INPROGRESS) && (status != UCS_ERR_NO_RESOURCE)) {
            ft_die("vQP %u: get_zcopy: %s", vqp->index, ucs_status_string(status));
        }

        do {
            uct_worker_progress(check->uct->worker);
        } while ((status == UCS_INPROGRESS) && (vqp->comp.count > 1) &&
                 (ft_now() < end));
    } while ((*check->sent != vqp->round) && (ft_now() < end));

    if ((*check->sent != vqp->round) || (vqp->comp.status != UCS_OK)) {
        ft_die("vQP %u: %" PRIu64 " of %" PRIu64 " messages came", vqp->index,
               *check->sent, vqp->round);
    }
}

void ft_check_finish(ft_check_t *check)
{
    unsigned i;

    for (i = 0; i < check->num_vqps; ++i) {
        ft_check_finish_vqp(check, &check->vqps[i]);
    }
}

void ft_check_cleanup(ft_check_t *check)
{
    unsigned i;

    for (i = 0; i < check->num_vqps; ++i) {
        uct_ep_destroy(check->vqps[i].ep);
    }

    if (check->num_vqps > 0) {
        uct_rkey_release(check->uct->component, &check->rkey);
    }

    uct_md_mem_dereg(check->uct->md, check->slots_memh);
    uct_md_mem_dereg(check->uct->md, check->buffers_memh);
}
