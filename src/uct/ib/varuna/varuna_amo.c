/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The requester's driver of atomics. One atomic has one action at a time: it waits
 * in the list of ready ones for resources, for a slot or for the proxy; then its
 * requests are in ep->reqs, as any other; then the state machine is told.
 *
 *   start -> ready -> lane, or proxy -> completion -> state machine -+-> finished
 *              ^                                                     |
 *              +-----------------------------------------------------+
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo.h"
#include "varuna.inl"
#include "varuna_amo_sm.h"
#include "varuna_compat.h"
#include "varuna_mlx5.h"

#include <ucs/debug/log.h>

/* Rule 1: a slot's 32-bit generations are not used up in less than this
 * (seconds), which is longer than any retry and packet lives. */
#define UCT_VARUNA_WRAP_TIME         10.0

struct uct_varuna_amo {
    uct_completion_t           comp;      /* Of the action on the lane */
    ucs_list_link_t            all;       /* In ep->amo.all */
    ucs_list_link_t            ready;     /* In ep->amo.ready, if is_ready */
    uct_varuna_ep_t            *ep;
    uct_completion_t           *user_comp;
    void                       *result;
    uct_rkey_t                 rkey;      /* Outer */
    uint32_t                   sn;
    uint8_t                    is_ready;
    uint8_t                    is_told;   /* The user has the result */
    uint8_t                    fence;     /* A fence stands before it */
    uint8_t                    lost;      /* Its OCCUPY's lane failed */
    uint8_t                    begun;     /* Its first action was posted */
    uint64_t                   value;     /* What the action gave */
    uct_varuna_slot_t          slot;      /* READ_SLOT: what is there */
    uct_varuna_amo_sm_t        sm;
};

static void uct_varuna_amo_step_completion(uct_completion_t *comp);

/* --- Slots --- */

/* @return a free slot for this width, or -1. */
static int uct_varuna_amo_find_slot(uct_varuna_ep_t *ep, unsigned width)
{
    unsigned i;

    ucs_for_each_bit(i, ep->amo.free_map) {
        if ((width == sizeof(uint64_t)) ||
            ((ep->amo.gens[i] & UCT_VARUNA_UID32_GEN_MASK) != 0) ||
            ((ucs_get_time() - ep->amo.wrapped_at[i]) >
             ucs_time_from_sec(UCT_VARUNA_WRAP_TIME))) {
            return i;
        }
    }

    return -1;
}

static ucs_status_t uct_varuna_amo_take_slot(uct_varuna_amo_t *amo)
{
    uct_varuna_ep_t *ep = amo->ep;
    int i               = uct_varuna_amo_find_slot(ep, amo->sm.width);

    if (i < 0) {
        return UCS_ERR_BUSY; /* Comes again when one is given back */
    }

    if ((ep->amo.gens[i] & UCT_VARUNA_UID32_GEN_MASK) == 0) {
        ep->amo.wrapped_at[i] = ucs_get_time();
    }

    ep->amo.free_map &= ~UCS_BIT(i);
    uct_varuna_amo_sm_set_slot(&amo->sm, ep->amo.first_slot + i,
                               ep->amo.gens[i]);
    return UCS_OK;
}

/* Rule 7: by its owner, when the state machine is through with it. */
static void uct_varuna_amo_give_slot(uct_varuna_amo_t *amo)
{
    uct_varuna_ep_t *ep = amo->ep;
    unsigned i;

    if (!(amo->sm.flags & UCT_VARUNA_AMO_FLAG_SLOT)) {
        return;
    }

    i                  = amo->sm.slot - ep->amo.first_slot;
    ep->amo.gens[i]    = amo->sm.gen;
    ep->amo.free_map  |= UCS_BIT(i);
    amo->sm.flags     &= ~UCT_VARUNA_AMO_FLAG_SLOT;
}

/* --- Posting on the lane --- */

/* Rule 12: an action on a word is for the home NIC. What is more, an OCCUPY needs a
 * lane that can be fenced: on DC, too, atomics go by proxy. */
static int uct_varuna_amo_lane_is_home(const uct_varuna_ep_t *ep)
{
    return (ep->amo.mode == UCT_VARUNA_ATOMIC_EXTENDED) &&
           (ep->amo.num_slots > 0) && (ep->lane.kind == UCT_VARUNA_LANE_RC) &&
           (ep->peer->links[ep->lane.link].nic == ep->amo.home_nic);
}

static int uct_varuna_amo_lane_is_open(uct_varuna_iface_t *iface,
                                       uct_varuna_ep_t *ep)
{
    if ((ep->state != UCT_VARUNA_EP_ACTIVE) || (ep->owed != NULL) ||
        (ep->num_reqs + 2 > UCT_VARUNA_MAX_REQS)) {
        return 0;
    }

    if (ucs_unlikely(uct_varuna_ep_lane_is_stale(iface, ep))) {
        uct_varuna_recovery_start(ep, "link down");
        return 0;
    }

    return 1;
}

static uct_varuna_req_t *
uct_varuna_amo_req(uct_varuna_iface_t *iface, uct_varuna_amo_t *amo,
                   uct_varuna_req_type_t type, uint64_t addr, uct_rkey_t rkey,
                   size_t length, int is_last)
{
    uct_varuna_req_t *req = ucs_mpool_get_inline(&iface->req_mp);

    if (ucs_unlikely(req == NULL)) {
        return NULL;
    }

    uct_varuna_req_init(amo->ep, req, type, is_last ? &amo->comp : NULL);
    uct_varuna_req_set_remote(req, addr, rkey);
    req->length = length;
    if (ucs_unlikely(amo->fence)) {
        req->flags = UCT_VARUNA_REQ_FLAG_FENCE;
    }

    if (is_last) {
        amo->comp.func   = uct_varuna_amo_step_completion;
        amo->comp.count  = 1;
        amo->comp.status = UCS_OK;
    }

    return req;
}

static ucs_status_t uct_varuna_amo_post_req(uct_varuna_iface_t *iface,
                                            uct_varuna_amo_t *amo,
                                            uct_varuna_req_t *req)
{
    ucs_status_t status = uct_varuna_req_post(req, 1);

    if (ucs_unlikely(status != UCS_OK)) {
        uct_varuna_req_release(req);
        return status;
    }

    amo->fence = 0;
    uct_varuna_req_push(iface, amo->ep, req);
    return UCS_OK;
}

static void uct_varuna_amo_unpack(void *arg, const void *data, size_t length)
{
    uct_varuna_amo_t *amo = arg;

    if (amo->sm.act.type == UCT_VARUNA_AMO_ACT_READ_SLOT) {
        memcpy(&amo->slot, data, ucs_min(length, sizeof(amo->slot)));
    } else {
        amo->value = 0;
        memcpy(&amo->value, data, ucs_min(length, sizeof(amo->value)));
    }
}

static ucs_status_t uct_varuna_amo_post_read(uct_varuna_iface_t *iface,
                                             uct_varuna_amo_t *amo,
                                             uint64_t addr, uct_rkey_t rkey,
                                             size_t length)
{
    uct_varuna_req_t *req;

    req = uct_varuna_amo_req(iface, amo, UCT_VARUNA_REQ_GET_BCOPY, addr, rkey,
                             length, 1);
    if (req == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    req->get.cb  = uct_varuna_amo_unpack;
    req->get.arg = amo;
    return uct_varuna_amo_post_req(iface, amo, req);
}

static ucs_status_t
uct_varuna_amo_post_cas(uct_varuna_iface_t *iface, uct_varuna_amo_t *amo,
                        uct_varuna_req_type_t type, uint64_t addr,
                        uct_rkey_t rkey, unsigned width, uint64_t compare,
                        uint64_t swap, int is_last)
{
    uct_varuna_req_t *req;

    req = uct_varuna_amo_req(iface, amo, type, addr, rkey, width, is_last);
    if (req == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    req->flags         |= (width == sizeof(uint64_t)) ? UCT_VARUNA_REQ_FLAG_64 :
                          0;
    req->atomic.compare = compare;
    req->atomic.value   = swap;
    req->atomic.result  = req->data;
    req->atomic.amo     = is_last ? amo : NULL;
    return uct_varuna_amo_post_req(iface, amo, req);
}

static uint64_t uct_varuna_amo_slot_addr(const uct_varuna_ep_t *ep,
                                         uint32_t slot)
{
    return ep->amo.arena_addr + (slot * sizeof(uct_varuna_slot_t));
}

static ucs_status_t uct_varuna_amo_post_mark(uct_varuna_iface_t *iface,
                                             uct_varuna_amo_t *amo)
{
    const uct_varuna_amo_act_t *act = &amo->sm.act;

    return uct_varuna_amo_post_cas(
            iface, amo, UCT_VARUNA_REQ_AMO_CAS,
            uct_varuna_amo_slot_addr(amo->ep, act->slot) +
            ucs_offsetof(uct_varuna_slot_t, mark), amo->ep->amo.arena.rkey,
            sizeof(uint64_t), act->mark_from, act->mark_to, 1);
}

static ucs_status_t uct_varuna_amo_post_body(uct_varuna_iface_t *iface,
                                             uct_varuna_amo_t *amo)
{
    uct_varuna_ep_t *ep = amo->ep;
    uct_varuna_req_t *req;

    req = uct_varuna_amo_req(iface, amo, UCT_VARUNA_REQ_AMO_BODY,
                             uct_varuna_amo_slot_addr(ep, amo->sm.slot),
                             ep->amo.arena.rkey, UCT_VARUNA_SLOT_BODY_SIZE, 0);
    if (req == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    req->atomic.amo = NULL;
    uct_varuna_amo_sm_body(&amo->sm, (uct_varuna_slot_t*)req->data);
    return uct_varuna_amo_post_req(iface, amo, req);
}

/* Rule 2: the body, then the CAS, on one QP; with one doorbell. If the second one
 * finds no resources, both come again later. */
static ucs_status_t uct_varuna_amo_post_occupy(uct_varuna_iface_t *iface,
                                               uct_varuna_amo_t *amo)
{
    const uct_varuna_amo_act_t *act = &amo->sm.act;
    uct_varuna_mlx5_bell_t bell;
    ucs_status_t status;

    uct_varuna_mlx5_bell_hold(amo->ep->lane.ep, &bell);
    status = uct_varuna_amo_post_body(iface, amo);
    if (status != UCS_OK) {
        uct_varuna_mlx5_bell_restore(&bell, 0);
        return status;
    }

    uct_varuna_mlx5_bell_join(&bell);
    status = uct_varuna_amo_post_cas(iface, amo, UCT_VARUNA_REQ_AMO_OCCUPY,
                                     amo->sm.addr, amo->rkey, amo->sm.width,
                                     act->compare, act->swap, 1);
    uct_varuna_mlx5_bell_restore(&bell, status != UCS_OK);
    return status;
}

static ucs_status_t uct_varuna_amo_post_confirm(uct_varuna_iface_t *iface,
                                                uct_varuna_amo_t *amo)
{
    const uct_varuna_amo_act_t *act = &amo->sm.act;
    ucs_status_t status;

    status = uct_varuna_amo_post_cas(iface, amo, UCT_VARUNA_REQ_AMO_CAS,
                                     amo->sm.addr, amo->rkey, amo->sm.width,
                                     act->compare, act->swap, 0);
    if (status != UCS_OK) {
        return status;
    }

    return uct_varuna_amo_post_mark(iface, amo);
}

static ucs_status_t uct_varuna_amo_post_lane(uct_varuna_iface_t *iface,
                                             uct_varuna_amo_t *amo)
{
    const uct_varuna_amo_act_t *act = &amo->sm.act;

    switch (act->type) {
    case UCT_VARUNA_AMO_ACT_READ:
        return uct_varuna_amo_post_read(iface, amo, amo->sm.addr, amo->rkey,
                                        amo->sm.width);
    case UCT_VARUNA_AMO_ACT_READ_SLOT:
        return uct_varuna_amo_post_read(
                iface, amo, uct_varuna_amo_slot_addr(amo->ep, act->slot),
                amo->ep->amo.arena.rkey, sizeof(uct_varuna_slot_t));
    case UCT_VARUNA_AMO_ACT_CAS:
        return uct_varuna_amo_post_cas(iface, amo, UCT_VARUNA_REQ_AMO_CAS,
                                       amo->sm.addr, amo->rkey, amo->sm.width,
                                       act->compare, act->swap, 1);
    case UCT_VARUNA_AMO_ACT_CAS_MARK:
        return uct_varuna_amo_post_mark(iface, amo);
    case UCT_VARUNA_AMO_ACT_OCCUPY:
        return uct_varuna_amo_post_occupy(iface, amo);
    case UCT_VARUNA_AMO_ACT_CONFIRM:
        return uct_varuna_amo_post_confirm(iface, amo);
    default:
        ucs_assertv(0, "action=%d", act->type);
        return UCS_OK;
    }
}

/* --- The peer's proxy --- */

static void uct_varuna_amo_send_proxy(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface       = uct_varuna_ep_iface(ep);
    const uct_varuna_amo_t *amo     = ep->amo.proxied;
    const uct_varuna_amo_act_t *act = &amo->sm.act;
    uct_varuna_ctl_proxy_req_t req  = {0};
    uint8_t link                    = uct_varuna_ep_select_link(ep);
    unsigned map                    = ep->peer->link_map;
    unsigned nic;

    if ((link == UCT_VARUNA_LINK_NONE) || (ep->amo.proxy_sent != 0)) {
        /* The first one over the best link, then round robin */
        link = (link == UCT_VARUNA_LINK_NONE) ? 0 : ep->amo.proxy_link;
        do {
            link = (link + 1) % UCT_VARUNA_MAX_LINKS;
        } while (!(map & UCS_BIT(link)));
    }

    req.seq       = ep->amo.proxy_seq;
    req.addr      = amo->sm.addr;
    req.compare   = act->compare;
    req.swap      = act->swap;
    req.mark_from = act->mark_from;
    req.mark_to   = act->mark_to;
    req.slot      = act->slot;
    req.type      = act->type;
    req.width     = amo->sm.width;
    if (uct_varuna_amo_sm_is_free(&amo->sm)) {
        req.type    = UCT_VARUNA_AMO_ACT_EXECUTE;
        req.slot    = amo->sm.op;
        req.compare = amo->sm.compare;
        req.swap    = amo->sm.value;
    }

    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        req.rkeys[nic] = uct_varuna_rkey_inner(amo->rkey, nic);
    }

    ep->amo.proxy_link = link;
    ep->amo.proxy_sent = ucs_get_time();
    uct_varuna_ctl_send(iface->ctl, ep->peer, link, UCT_VARUNA_CTL_PROXY_REQ,
                        iface->uuid, ep->id, ep->epoch, &req, sizeof(req));
}

/* Rule 12: exactly once, since the peer remembers the answer to its number. */
static ucs_status_t uct_varuna_amo_post_proxy(uct_varuna_iface_t *iface,
                                              uct_varuna_amo_t *amo)
{
    uct_varuna_ep_t *ep = amo->ep;

    if (ep->amo.proxied != NULL) {
        return UCS_ERR_BUSY; /* Comes again when that one is answered */
    }

    ep->amo.proxied     = amo;
    ep->amo.proxy_sent  = 0;
    ep->amo.proxy_since = ucs_get_time();
    ++ep->amo.proxy_seq;
    ++ep->amo.stats.proxied;
    uct_varuna_amo_send_proxy(ep);
    return UCS_OK;
}

/* Ask again. */
static void uct_varuna_amo_check_proxy(uct_varuna_iface_t *iface,
                                       uct_varuna_ep_t *ep)
{
    ucs_time_t now = ucs_get_time();

    if (now - ep->amo.proxy_sent < iface->config.ctl_timeout) {
        return;
    }

    if (now - ep->amo.proxy_since > iface->config.give_up) {
        ucs_diag("ep %p: vQP %u: no answer of the peer's proxy for %.1f s: "
                 "giving up", ep, ep->id,
                 ucs_time_to_sec(now - ep->amo.proxy_since));
        uct_varuna_ep_fail(ep, UCS_ERR_ENDPOINT_TIMEOUT);
        return;
    }

    uct_varuna_amo_send_proxy(ep);
}

/* --- Choosing a way --- */

/*
 * Atomics of one vQP on one word take turns: a loop of a read and a CAS would only
 * contend with itself. What the one before has left is a good guess.
 */
static int uct_varuna_amo_may_begin(uct_varuna_amo_t *amo)
{
    uct_varuna_amo_t *older;

    ucs_list_for_each(older, &amo->ep->amo.all, all) {
        if (older == amo) {
            break;
        }

        if (older->sm.addr != amo->sm.addr) {
            continue;
        }

        if (!(older->sm.flags & UCT_VARUNA_AMO_FLAG_DECIDED)) {
            return 0;
        }

        if (older->sm.state == UCT_VARUNA_AMO_CONFIRM) {
            uct_varuna_amo_sm_hint(&amo->sm, older->sm.desired);
        }
    }

    return 1;
}

static ucs_status_t uct_varuna_amo_post(uct_varuna_iface_t *iface,
                                        uct_varuna_amo_t *amo)
{
    uct_varuna_ep_t *ep = amo->ep;
    ucs_status_t status;
    int is_read;

    if (!uct_varuna_amo_lane_is_open(iface, ep)) {
        return UCS_ERR_NO_RESOURCE;
    }

    if (!amo->begun) {
        if (!uct_varuna_amo_may_begin(amo)) {
            return UCS_ERR_BUSY; /* Comes again when that one is decided */
        }
        amo->begun = 1;
    }

    is_read = (amo->sm.act.type == UCT_VARUNA_AMO_ACT_READ) ||
              (amo->sm.act.type == UCT_VARUNA_AMO_ACT_READ_SLOT);
    if (uct_varuna_amo_lane_is_home(ep)) {
        if ((amo->sm.state == UCT_VARUNA_AMO_OCCUPY) &&
            !(amo->sm.flags & UCT_VARUNA_AMO_FLAG_SLOT)) {
            status = uct_varuna_amo_take_slot(amo);
            if (status != UCS_OK) {
                return status;
            }
        }
        return uct_varuna_amo_post_lane(iface, amo);
    }

    /* Any NIC can read. But what is not begun goes to the proxy as a whole */
    if (is_read && !uct_varuna_amo_sm_is_free(&amo->sm)) {
        return uct_varuna_amo_post_lane(iface, amo);
    }

    if (amo->fence && (ep->num_reqs > 0)) {
        /* The proxy knows nothing of what is under way on the lane */
        uct_varuna_ep_signal(ep);
        return UCS_ERR_NO_RESOURCE;
    }

    status = uct_varuna_amo_post_proxy(iface, amo);
    if (status == UCS_OK) {
        amo->fence = 0;
    }
    return status;
}

int uct_varuna_amo_progress(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    int waiting               = 0;
    uct_varuna_amo_t *amo, *tmp;
    ucs_status_t status;

    ucs_list_for_each_safe(amo, tmp, &ep->amo.ready, ready) {
        status = uct_varuna_amo_post(iface, amo);
        if (status == UCS_OK) {
            ucs_list_del(&amo->ready);
            amo->is_ready = 0;
        } else if (status == UCS_ERR_NO_RESOURCE) {
            waiting = 1;
            break;
        } else if (status != UCS_ERR_BUSY) {
            uct_varuna_recovery_start(ep, ucs_status_string(status));
            break;
        }
    }

    if (ucs_unlikely(ep->amo.proxied != NULL)) {
        uct_varuna_amo_check_proxy(iface, ep);
        waiting = 1;
    }

    return waiting;
}

static void uct_varuna_amo_set_ready(uct_varuna_amo_t *amo)
{
    if (!amo->is_ready) {
        amo->is_ready = 1;
        ucs_list_add_tail(&amo->ep->amo.ready, &amo->ready);
    }

    if (uct_varuna_amo_progress(amo->ep)) {
        uct_varuna_ep_add_work(amo->ep);
    }
}

/* --- Flushes --- */

void uct_varuna_amo_add_flush(uct_varuna_ep_t *ep, uct_varuna_req_t *flush)
{
    flush->log_sn = ep->amo.sn;
    flush->length = ep->amo.num;
    ucs_queue_push(&ep->amo.flushes, &flush->queue);
}

/* Rule 9: a flush covers the confirms of all atomics before it. */
static void uct_varuna_amo_count_flushes(uct_varuna_ep_t *ep, uint32_t sn,
                                         ucs_status_t status)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    ucs_queue_iter_t iter;
    uct_varuna_req_t *flush;
    uct_completion_t *comp;

    ucs_queue_for_each_safe(flush, iter, &ep->amo.flushes, queue) {
        if (UCS_CIRCULAR_COMPARE32(sn, >, flush->log_sn) ||
            (--flush->length > 0)) {
            continue;
        }

        ucs_queue_del_iter(&ep->amo.flushes, iter);
        if ((status == UCS_OK) && (ep->num_reqs > 0)) {
            uct_varuna_req_push(iface, ep, flush);
            ep->want_signal = 1;
            uct_varuna_ep_add_work(ep);
            continue;
        }

        comp = flush->user_comp;
        uct_varuna_req_release(flush);
        uct_invoke_completion(comp, status);
    }
}

/* --- Completion --- */

static void uct_varuna_amo_tell(uct_varuna_amo_t *amo, ucs_status_t status)
{
    uct_completion_t *comp = amo->user_comp;

    if (amo->is_told) {
        return;
    }

    amo->is_told = 1;
    --amo->ep->amo.undecided;
    if ((status == UCS_OK) && (amo->result != NULL)) {
        memcpy(amo->result, &amo->sm.result, amo->sm.width);
    }

    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}

static void uct_varuna_amo_finish(uct_varuna_amo_t *amo, ucs_status_t status)
{
    uct_varuna_ep_t *ep       = amo->ep;
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uint32_t sn               = amo->sn;

    uct_varuna_amo_give_slot(amo);
    ucs_list_del(&amo->all);
    if (amo->is_ready) {
        ucs_list_del(&amo->ready);
    }

    if (ep->amo.proxied == amo) {
        ep->amo.proxied = NULL;
    }

    --ep->amo.num;
    --iface->outstanding;
    ep->amo.stats.helped    += amo->sm.helped;
    ep->amo.stats.retries   += amo->sm.retries;
    ep->amo.stats.recovered += !!(amo->sm.flags &
                                  UCT_VARUNA_AMO_FLAG_RECOVERED);
    uct_varuna_amo_tell(amo, status);
    ucs_mpool_put_inline(amo);
    uct_varuna_amo_count_flushes(ep, sn, status);
    if (!ucs_list_is_empty(&ep->amo.ready)) {
        uct_varuna_ep_add_work(ep); /* A slot, or the proxy, is free */
    }
}

/* The state machine has been told, and has a next action. */
static void uct_varuna_amo_advance(uct_varuna_amo_t *amo)
{
    if (amo->sm.act.type == UCT_VARUNA_AMO_ACT_NONE) {
        uct_varuna_amo_finish(amo, UCS_OK);
        return;
    }

    /* The confirm is on the lane before the user hears of the result: what he
     * posts then finds no UID of his own */
    uct_varuna_amo_set_ready(amo);
    if (amo->sm.flags & UCT_VARUNA_AMO_FLAG_DECIDED) {
        uct_varuna_amo_tell(amo, UCS_OK);
    }
}

static void uct_varuna_amo_step_completion(uct_completion_t *comp)
{
    uct_varuna_amo_t *amo = ucs_container_of(comp, uct_varuna_amo_t, comp);

    if (ucs_unlikely(comp->status != UCS_OK)) {
        uct_varuna_amo_finish(amo, comp->status);
        return;
    }

    if (ucs_unlikely(amo->lost)) {
        amo->lost = 0;
        uct_varuna_amo_sm_lost(&amo->sm);
    } else {
        uct_varuna_amo_sm_done(&amo->sm, amo->value, &amo->slot);
    }

    uct_varuna_amo_advance(amo);
}

void uct_varuna_amo_collect(const uct_varuna_req_t *req)
{
    uct_varuna_amo_t *amo = req->atomic.amo;

    if ((amo == NULL) || (req->ep == NULL)) {
        return;
    }

    amo->lost  = !!(req->flags & UCT_VARUNA_REQ_FLAG_LOST);
    amo->value = 0;
    memcpy(&amo->value, req->data, req->length);
}

void uct_varuna_amo_handle_proxy_rep(uct_varuna_ep_t *ep,
                                     const uct_varuna_ctl_proxy_rep_t *rep)
{
    uct_varuna_amo_t *amo = ep->amo.proxied;

    if (UCS_CIRCULAR_COMPARE32(rep->home_epoch, >, ep->amo.home_epoch)) {
        ep->amo.home_epoch = rep->home_epoch;
        ep->amo.home_nic   = rep->home_nic;
    }

    if ((amo == NULL) || (rep->seq != ep->amo.proxy_seq)) {
        return; /* A repeated answer */
    }

    ep->amo.proxied = NULL;
    if (rep->status != UCS_OK) {
        ucs_diag("ep %p: the peer's home NIC failed to execute an atomic at "
                 "0x%lx: %s", ep, amo->sm.addr,
                 ucs_status_string((ucs_status_t)rep->status));
        uct_varuna_ep_fail(ep, (ucs_status_t)rep->status);
        return;
    }

    UCS_STATIC_ASSERT(sizeof(rep->slot) == sizeof(amo->slot));
    memcpy(&amo->slot, rep->slot, sizeof(amo->slot));
    if (uct_varuna_amo_sm_is_free(&amo->sm)) {
        uct_varuna_amo_sm_executed(&amo->sm, rep->value);
    } else {
        uct_varuna_amo_sm_done(&amo->sm, rep->value, &amo->slot);
    }

    uct_varuna_amo_advance(amo);
    uct_varuna_amo_progress(ep);
    uct_varuna_ep_finish_done(ep);
}

/* --- Taking one --- */

ucs_status_t uct_varuna_amo_start(uct_varuna_ep_t *ep, unsigned op,
                                  unsigned width, uint64_t compare,
                                  uint64_t value, uint64_t remote_addr,
                                  uct_rkey_t rkey, void *result,
                                  uct_completion_t *comp)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_amo_t *amo;

    if (!uct_varuna_ep_can_post(iface, ep) || uct_varuna_ep_has_pending(ep)) {
        if (ep->silent > 0) {
            uct_varuna_ep_signal(ep);
        }
        return uct_varuna_ep_unavailable(ep);
    }

    amo = ucs_mpool_get_inline(&iface->amo_mp);
    if (amo == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    amo->ep        = ep;
    amo->user_comp = comp;
    amo->result    = result;
    amo->rkey      = rkey;
    amo->sn        = ++ep->amo.sn;
    amo->is_ready  = 0;
    amo->is_told   = 0;
    amo->lost      = 0;
    amo->begun     = 0;
    amo->fence     = uct_varuna_ep_is_fenced(iface, ep);
    if (amo->fence) {
        ep->fence_next = 0;
        ep->fence_beat = iface->fence_beat;
    }

    uct_varuna_amo_sm_start(&amo->sm, op, width, remote_addr, compare, value,
                            (iface->md->atomic_mode ==
                             UCT_VARUNA_ATOMIC_EXTENDED) ?
                            UCT_VARUNA_SLOTS_MAX : 0);
    ucs_list_add_tail(&ep->amo.all, &amo->all);
    ++ep->amo.num;
    ++ep->amo.undecided;
    ++ep->amo.stats.started;
    ++iface->outstanding;
    uct_varuna_amo_set_ready(amo);
    return UCS_OK;
}

void uct_varuna_amo_fail_all(uct_varuna_ep_t *ep, ucs_status_t status)
{
    uct_varuna_amo_t *amo;

    while (!ucs_list_is_empty(&ep->amo.all)) {
        amo = ucs_list_head(&ep->amo.all, uct_varuna_amo_t, all);
        uct_varuna_amo_finish(amo, status);
    }
}

/* --- Opening and closing --- */

ucs_status_t uct_varuna_amo_open(uct_varuna_ep_t *ep,
                                 const uct_varuna_ctl_open_rep_t *rep)
{
    const char *tail = UCS_PTR_BYTE_OFFSET(rep + 1,
                                           rep->rkey_len + rep->addr_len);
    ucs_status_t status;
    uint64_t mark;
    unsigned i;

    ep->amo.mode       = rep->atomic_mode;
    ep->amo.home_nic   = rep->home_nic;
    ep->amo.home_epoch = rep->home_epoch;
    if (rep->arena_slots == 0) {
        return UCS_OK;
    }

    status = uct_rkey_unpack(&uct_varuna_component, tail, &ep->amo.arena);
    if (status != UCS_OK) {
        return status;
    }

    ep->amo.arena_addr  = rep->arena_addr;
    ep->amo.arena_slots = rep->arena_slots;
    ep->amo.first_slot  = rep->first_slot;
    ep->amo.num_slots   = rep->num_slots;
    for (i = 0; i < rep->num_slots; ++i) {
        memcpy(&mark, tail + rep->rkey_len + (i * sizeof(mark)), sizeof(mark));
        ep->amo.gens[i] = uct_varuna_mark_gen(mark);
        if (uct_varuna_mark_state(mark) == UCT_VARUNA_MARK_PENDING) {
            ep->amo.free_map |= UCS_BIT(i);
        }
    }

    return UCS_OK;
}

void uct_varuna_amo_ep_init(uct_varuna_ep_t *ep)
{
    ucs_list_head_init(&ep->amo.all);
    ucs_list_head_init(&ep->amo.ready);
    ucs_queue_head_init(&ep->amo.flushes);
}

void uct_varuna_amo_ep_cleanup(uct_varuna_ep_t *ep)
{
    if (ep->amo.arena_slots > 0) {
        uct_rkey_release(&uct_varuna_component, &ep->amo.arena);
    }
}

static ucs_mpool_ops_t uct_varuna_amo_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
    .obj_init      = NULL,
    .obj_cleanup   = NULL,
    .obj_str       = NULL
};

ucs_status_t uct_varuna_amo_iface_init(uct_varuna_iface_t *iface)
{
    return uct_varuna_compat_mpool_init(&iface->amo_mp,
                                        sizeof(uct_varuna_amo_t), 64,
                                        &uct_varuna_amo_mpool_ops,
                                        "varuna_amo");
}

void uct_varuna_amo_iface_cleanup(uct_varuna_iface_t *iface)
{
    ucs_mpool_cleanup(&iface->amo_mp, 1);
}
