/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The requester's driver of atomics. An atomic has one action at a time. The action
 * waits in the list of ready ones for resources, for a slot or for the proxy; then its
 * requests are in the ring, like any other; then the state machine gets the result.
 *
 *   start -> ready -> lane, or proxy -> completion -> state machine -+-> finished
 *              ^                                                     |
 *              +-----------------------------------------------------+
 *
 * varuna_amo_lane.c and varuna_amo_home.c carry the actions out.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo.h"
#include "varuna_amo_priv.h"
#include <uct/ib/varuna/core/varuna_amo_backoff.h>
#include <uct/ib/varuna/requester/varuna.inl>
#include <uct/ib/varuna/requester/varuna_lane.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>

/* --- Choosing a way --- */

void uct_varuna_amo_pass_fence(uct_varuna_amo_t *amo)
{
    amo->ep->amo.fences -= amo->fence;
    amo->fence           = 0;
}

/*
 * Rule 9: no atomic passes a fence before all earlier ones are decided: neither the one
 * that the fence precedes nor later ones.
 *
 * Atomics of one vQP on one word take turns: a loop of a read and a CAS would only
 * contend with itself. The value that the previous one has left is a good guess. Reads
 * contend with nobody.
 */
static int uct_varuna_amo_may_begin(uct_varuna_amo_t *amo)
{
    int undecided = 0;
    uct_varuna_amo_t *older;

    ucs_list_for_each(older, &amo->ep->amo.all, all) {
        if (older == amo) {
            break;
        }

        if (older->fence) {
            return 0;
        }

        undecided |= !(older->sm.flags & UCT_VARUNA_AMO_FLAG_DECIDED);

        if ((older->sm.addr != amo->sm.addr) || older->is_get || amo->is_get) {
            continue;
        }

        if (!(older->sm.flags & UCT_VARUNA_AMO_FLAG_DECIDED)) {
            return 0;
        }

        if ((older->sm.state == UCT_VARUNA_AMO_CONFIRM) &&
            (older->sm.width == amo->sm.width)) {
            uct_varuna_amo_sm_hint(&amo->sm, older->sm.desired);
        }
    }

    return !(amo->fence && undecided);
}

/* Whether requests before its fence that are no atomics are still in its way. A read is
 * complete when its data has arrived (uct_varuna_ep_can_post()), and the proxy does not
 * know what is under way on the lane. */
static int uct_varuna_amo_is_fenced_off(const uct_varuna_amo_t *amo)
{
    const uct_varuna_ep_t *ep = amo->ep;

    if (!amo->fence) {
        return 0;
    }

    return (uct_varuna_amo_lane_is_home(ep) ? ep->hot.num_reads :
            ep->hot.num_reqs) > 0;
}

static ucs_status_t uct_varuna_amo_post(uct_varuna_iface_t *iface,
                                        uct_varuna_amo_t *amo)
{
    uct_varuna_ep_t *ep = amo->ep;
    uct_varuna_post_t why;
    ucs_status_t status;
    int is_read;

    why = uct_varuna_amo_lane_check(iface, ep);
    if (why != UCT_VARUNA_POST_OK) {
        uct_varuna_ep_raise_post(ep, why);
        return UCS_ERR_NO_RESOURCE;
    }

    if (ucs_unlikely(amo->not_before != 0)) {
        if (ucs_get_time() < amo->not_before) {
            return UCS_ERR_BUSY;
        }
        amo->not_before = 0;
    }

    if (!amo->begun) {
        if (!uct_varuna_amo_may_begin(amo)) {
            return UCS_ERR_BUSY; /* It is tried again when that one is decided */
        }
        amo->begun = 1;
    }

    if (ucs_unlikely(uct_varuna_amo_is_fenced_off(amo))) {
        if (!uct_varuna_amo_lane_is_home(ep)) {
            uct_varuna_ep_signal(ep); /* The requests in the way may have no
                                         completion */
        }
        return UCS_ERR_BUSY;
    }

    /* Any NIC can read. But an atomic that has not begun goes to the proxy as a whole */
    is_read = (amo->sm.act.type == UCT_VARUNA_AMO_ACT_READ);
    status  = (uct_varuna_amo_lane_is_home(ep) ||
               (is_read && (amo->is_get || !uct_varuna_amo_sm_is_free(&amo->sm)))) ?
              uct_varuna_amo_post_lane(iface, amo) :
              uct_varuna_amo_post_proxy(iface, amo);
    if (status == UCS_OK) {
        uct_varuna_amo_pass_fence(amo);
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
            uct_varuna_ep_raise_lane_failed(ep, ucs_status_string(status));
            break;
        } else if (amo->fence || (amo->not_before != 0) ||
                   uct_varuna_slots_wait_for_time(&ep->amo.slots)) {
            waiting = 1; /* No event says when it may go on */
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

    if (uct_varuna_ep_requester(amo->ep)->amo->progress(amo->ep)) {
        uct_varuna_ep_add_work(amo->ep);
    }
}

/* --- Flushes --- */

/* Whether an atomic before @a flush is unfinished. */
static int uct_varuna_amo_is_before(uct_varuna_ep_t *ep,
                                    const uct_varuna_req_t *flush)
{
    const uct_varuna_amo_t *oldest;

    if (ucs_list_is_empty(&ep->amo.all)) {
        return 0;
    }

    oldest = ucs_list_head(&ep->amo.all, uct_varuna_amo_t, all);
    return UCS_CIRCULAR_COMPARE32(oldest->sn, <=, flush->log_sn);
}

/* The flush waits for the requests on the lane */
static int uct_varuna_amo_move_flush(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                                     uct_varuna_req_t *flush)
{
    uct_varuna_req_t *req = uct_varuna_req_new(ep);

    ep->hot.want_signal = 1;
    uct_varuna_ep_add_work(ep);
    if (req == NULL) {
        return 0; /* No memory */
    }

    ucs_queue_pull_non_empty(&ep->amo.flushes);
    uct_varuna_req_init(ep, req, UCT_VARUNA_REQ_FLUSH, flush->user_comp);
    uct_varuna_req_push(iface, ep, req, UCT_VARUNA_REQ_FLUSH);
    ucs_mpool_put(flush);
    return 1;
}

/* Rule 9: a flush covers the confirms of all atomics before it. Both lists are in order
 * of age, and there are no counters, because a user's callback may add atomics and
 * flushes at any point. */
static void uct_varuna_amo_finish_flushes(uct_varuna_ep_t *ep,
                                          ucs_status_t status)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_req_t *flush;
    uct_completion_t *comp;

    while (!ucs_queue_is_empty(&ep->amo.flushes)) {
        flush = ucs_queue_head_elem_non_empty(&ep->amo.flushes,
                                              uct_varuna_req_t, queue);
        if (uct_varuna_amo_is_before(ep, flush)) {
            return;
        }

        if ((status == UCS_OK) && uct_varuna_ep_is_busy(ep)) {
            if (!uct_varuna_amo_move_flush(iface, ep, flush)) {
                return;
            }
            continue;
        }

        ucs_queue_pull_non_empty(&ep->amo.flushes);
        comp = flush->user_comp;
        ucs_mpool_put(flush);
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
    if ((status == UCS_OK) && (amo->unpack != NULL)) {
        amo->unpack(amo->unpack_arg, &amo->sm.result, amo->sm.width);
    } else if ((status == UCS_OK) && (amo->result != NULL)) {
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

    uct_varuna_amo_give_slot(amo);
    uct_varuna_amo_pass_fence(amo);
    ucs_list_del(&amo->all);
    if (amo->is_ready) {
        ucs_list_del(&amo->ready);
    }

    if (ep->amo.proxied == amo) {
        ep->amo.proxied = NULL;
    }

    --ep->hot.num_amos;
    --uct_varuna_requester(iface)->outstanding;
    ep->amo.stats.helped    += amo->sm.helped;
    ep->amo.stats.retries   += amo->sm.retries;
    ep->amo.stats.recovered += !!(amo->sm.flags &
                                  UCT_VARUNA_AMO_FLAG_RECOVERED);
    uct_varuna_amo_tell(amo, status);
    ucs_mpool_put_inline(amo);
    uct_varuna_amo_finish_flushes(ep, status);
    if (!ucs_list_is_empty(&ep->amo.ready)) {
        uct_varuna_ep_add_work(ep); /* A slot, or the proxy, is free */
    }
}

void uct_varuna_amo_refused(uct_varuna_amo_t *amo, ucs_status_t status)
{
    uct_varuna_ep_t *ep = amo->ep;

    ucs_diag("ep %p: the peer has not executed an atomic at 0x%lx: %s", ep,
             amo->sm.addr, ucs_status_string(status));
    if (amo->user_comp == NULL) {
        uct_varuna_ep_raise_fatal(ep, status);
        return; /* It is finished with all others */
    }

    uct_varuna_amo_tell(amo, status);
    uct_varuna_amo_finish(amo, UCS_OK);
}

/* Rule 10: a client that has lost several races waits for a random time, so that others
 * can finish. An atomic that is decided, or is being recovered, does not wait: others
 * may wait for it. */
static void uct_varuna_amo_back_off(uct_varuna_amo_t *amo)
{
    uct_varuna_ep_t *ep = amo->ep;
    unsigned ns;

    amo->races     = amo->sm.retries;
    ep->amo.random = (ep->amo.random * 1103515245u) + 12345u;
    ns             = uct_varuna_amo_sm_backoff(&amo->sm, ep->amo.random >> 8);
    if (ns > 0) {
        amo->not_before = ucs_get_time() + ucs_time_from_usec(ns * 1e-3);
        ++ep->amo.stats.backoffs;
    }
}

/* The state machine has a next action. */
void uct_varuna_amo_advance(uct_varuna_amo_t *amo)
{
    if (amo->sm.act.type == UCT_VARUNA_AMO_ACT_NONE) {
        uct_varuna_amo_finish(amo, UCS_OK);
        return;
    }

    if (ucs_unlikely(amo->sm.retries != amo->races)) {
        uct_varuna_amo_back_off(amo);
    }

    /* The confirm is on the lane before the user gets the result, so later requests of
     * the user find no UID of their own */
    uct_varuna_amo_set_ready(amo);
    if (amo->sm.flags & UCT_VARUNA_AMO_FLAG_DECIDED) {
        uct_varuna_amo_tell(amo, UCS_OK);
    }
}

void uct_varuna_amo_step_completion(uct_completion_t *comp)
{
    uct_varuna_amo_t *amo = ucs_container_of(comp, uct_varuna_amo_t, comp);

    if (ucs_unlikely(comp->status != UCS_OK)) {
        uct_varuna_amo_finish(amo, comp->status);
        return;
    }

    if (ucs_likely(!amo->lost)) {
        uct_varuna_amo_sm_done(&amo->sm, amo->value, &amo->slot);
    } else if (amo->sm.act.type == UCT_VARUNA_AMO_ACT_OCCUPY) {
        uct_varuna_amo_sm_lost(&amo->sm);
    } /* Else the same once more */

    amo->lost = 0;
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

/* --- Taking one --- */

/* It waits in a list of ours for what it needs, so it is accepted even when other
 * requests cannot be posted. */
static int uct_varuna_amo_can_take(uct_varuna_iface_t *iface,
                                   uct_varuna_ep_t *ep)
{
    if (ep->hot.num_amos >= UCT_VARUNA_MAX_AMOS) {
        return 0;
    }

    return (ep->hot.state == UCT_VARUNA_EP_ACTIVE) || uct_varuna_ep_takes(ep);
}

ucs_status_t uct_varuna_amo_start(uct_varuna_ep_t *ep,
                                  const uct_varuna_amo_args_t *args,
                                  uint32_t num_slots)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_amo_t *amo;

    if (!uct_varuna_amo_can_take(iface, ep) || uct_varuna_ep_has_pending(ep)) {
        if (ep->hot.silent > 0) {
            uct_varuna_ep_signal(ep);
        }
        return uct_varuna_ep_unavailable(ep);
    }

    amo = ucs_mpool_get_inline(&uct_varuna_requester(iface)->amo_mp);
    if (amo == NULL) {
        return uct_varuna_ep_unavailable(ep);
    }

    amo->ep        = ep;
    amo->user_comp = args->comp;
    amo->result    = args->result;
    amo->unpack    = args->unpack;
    amo->unpack_arg = args->unpack_arg;
    amo->key       = *(const uct_varuna_rkey_t*)args->rkey;
    amo->sn        = ++ep->amo.sn;
    amo->is_ready  = 0;
    amo->is_told   = 0;
    amo->lost      = 0;
    amo->begun     = 0;
    amo->is_get    = (args->type == UCT_VARUNA_REQ_GET_BCOPY) ||
                     (args->type == UCT_VARUNA_REQ_GET_ZCOPY);
    amo->races     = 0;
    amo->not_before = 0;
    amo->fence     = uct_varuna_ep_is_fenced(iface, ep);
    if ((ep->amo.order.flush_beat != uct_varuna_requester(iface)->flush_beat) ||
        amo->fence) {
        ep->amo.order.flush_beat = uct_varuna_requester(iface)->flush_beat;
        ep->amo.order.flushed    = ep->stats.posted;
    }

    amo->number    = 0;
    amo->order     = ep->amo.order.flushed;
    if (amo->fence) {
        ++ep->amo.fences;
        ep->hot.fence_next = 0;
        ep->fence_beat     = uct_varuna_requester(iface)->fence_beat;
    }

    if (amo->is_get) {
        uct_varuna_amo_sm_start_get(&amo->sm, args->width, args->remote_addr,
                                    num_slots);
    } else {
        uct_varuna_amo_sm_start(&amo->sm, args->op, args->width,
                                args->remote_addr, args->compare, args->value,
                                num_slots);
        ++ep->amo.stats.started;
    }

    ucs_list_add_tail(&ep->amo.all, &amo->all);
    ++ep->hot.num_amos;
    ep->hot.gate = 1;
    ++ep->amo.undecided;
    ++uct_varuna_requester(iface)->outstanding;
    uct_varuna_amo_set_ready(amo);
    return (args->type == UCT_VARUNA_REQ_ATOMIC_POST) ? UCS_OK :
           UCS_INPROGRESS;
}

void uct_varuna_amo_fail_all(uct_varuna_ep_t *ep, ucs_status_t status)
{
    uct_varuna_amo_t *amo;

    while (!ucs_list_is_empty(&ep->amo.all)) {
        amo = ucs_list_head(&ep->amo.all, uct_varuna_amo_t, all);
        uct_varuna_amo_finish(amo, status);
    }
}

size_t uct_varuna_amo_size(void)
{
    return sizeof(uct_varuna_amo_t);
}
