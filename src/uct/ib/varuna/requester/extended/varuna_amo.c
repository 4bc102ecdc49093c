/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The driver of atomics of mode extended. One of them has one action at a time. The action
 * waits in the list of ready ones for resources, for a slot or for the home NIC; then its
 * requests are in the ring, like any other; then the state machine gets the result.
 *
 *   start -> ready -> lane, or request -> completion -> state machine -+-> finished
 *              ^                                                       |
 *              +-------------------------------------------------------+
 *
 * varuna_amo_lane.c and varuna_amo_home.c carry the actions out.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_ext.h"
#include "varuna_amo_pair.inl"

/* --- Choosing a way --- */

/* How many unfinished atomics have their targets in the same class of words as this one:
 * 1 if no other has the same target */
static UCS_F_ALWAYS_INLINE uint8_t *uct_varuna_amo_word(const uct_varuna_amo_ext_t *amo)
{
    UCS_STATIC_ASSERT(UCT_VARUNA_MAX_AMOS <= UINT8_MAX);
    return &uct_varuna_ep_ext(amo->super.ep)->words[(amo->sm.addr / sizeof(uint64_t)) %
                                                    UCT_VARUNA_AMO_WORDS];
}

/*
 * Rule 9: no atomic passes a fence before all earlier ones are decided: neither the one
 * that the fence precedes nor later ones.
 *
 * Atomics of one vQP on one word take turns: a loop of a read and a CAS would only
 * contend with itself. The value that the previous one has left is a good guess. Reads
 * contend with nobody.
 */
static int uct_varuna_amo_may_begin(uct_varuna_amo_ext_t *amo)
{
    int undecided = 0;
    uct_varuna_amo_ext_t *older;

    if (ucs_likely((amo->super.ep->amo.fences == 0) && (*uct_varuna_amo_word(amo) == 1))) {
        return 1;
    }

    ucs_list_for_each(older, &amo->super.ep->amo.all, super.all) {
        if (older == amo) {
            break;
        }

        if (older->super.fence) {
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

    return !(amo->super.fence && undecided);
}

/* Whether requests before its fence that are no atomics are still in its way. A read is
 * complete when its data has arrived (uct_varuna_ep_can_post()), and the home NIC does not
 * know what is under way on the lane. */
static int uct_varuna_amo_is_fenced_off(const uct_varuna_amo_ext_t *amo)
{
    uct_varuna_ep_t *ep = amo->super.ep;

    if (!amo->super.fence) {
        return 0;
    }

    return (uct_varuna_amo_lane_is_home(ep) ? ep->hot.num_reads :
            ep->hot.num_reqs) > 0;
}

/* The next action, if something may be in its way */
static UCS_F_NOINLINE ucs_status_t
uct_varuna_amo_post_slow(uct_varuna_iface_t *iface, uct_varuna_amo_ext_t *amo)
{
    uct_varuna_ep_t *ep = amo->super.ep;
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

    /* Any NIC can read. But an atomic that has not begun is requested as a whole */
    is_read = (amo->sm.act.type == UCT_VARUNA_AMO_ACT_READ);
    status  = (uct_varuna_amo_lane_is_home(ep) ||
               (is_read && (amo->is_get || !uct_varuna_amo_sm_is_free(&amo->sm)))) ?
              uct_varuna_amo_post_lane(iface, amo) :
              uct_varuna_amo_post_home(iface, amo);
    if (status == UCS_OK) {
        uct_varuna_amo_pass_fence(&amo->super);
    }

    return status;
}

/* Post the next action of an atomic, by whatever way. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_amo_post(uct_varuna_iface_t *iface, uct_varuna_amo_ext_t *amo)
{
    uct_varuna_ep_t *ep = amo->super.ep;

    if (ucs_unlikely((uct_varuna_amo_lane_check(iface, ep) != UCT_VARUNA_POST_OK) ||
                     !uct_varuna_amo_lane_is_home(ep) || (amo->not_before != 0) ||
                     amo->super.fence)) {
        return uct_varuna_amo_post_slow(iface, amo);
    }

    if (!amo->begun) {
        if (!uct_varuna_amo_may_begin(amo)) {
            return UCS_ERR_BUSY; /* It is tried again when that one is decided */
        }
        amo->begun = 1;
    }

    return uct_varuna_amo_post_lane(iface, amo);
}

uint32_t uct_varuna_amo_take_slot_timed(uct_varuna_amo_ext_t *amo, uint64_t *gen_p)
{
    return uct_varuna_slots_take_timed(&uct_varuna_ep_ext(amo->super.ep)->slots,
                                       ucs_get_time(), gen_p);
}

/* It could not be posted. @return Whether no event says when it may be. */
static int uct_varuna_amo_must_wait(uct_varuna_amo_ext_t *amo, ucs_status_t status)
{
    uct_varuna_ep_t *ep = amo->super.ep;

    if (status == UCS_ERR_BUSY) {
        return amo->super.fence || (amo->not_before != 0) ||
               uct_varuna_slots_wait_for_time(&uct_varuna_ep_ext(ep)->slots);
    } else if (status != UCS_ERR_NO_RESOURCE) {
        uct_varuna_ep_raise_lane_failed(ep, ucs_status_string(status));
        return 0;
    }

    return 1;
}

int uct_varuna_amo_progress(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    int waiting               = 0;
    uct_varuna_amo_ext_t *amo, *tmp;
    ucs_status_t status;

    ucs_list_for_each_safe(amo, tmp, &ep->amo.ready, super.ready) {
        status = uct_varuna_amo_post(iface, amo);
        if (status == UCS_OK) {
            ucs_list_del(&amo->super.ready);
            amo->super.is_ready = 0;
            continue;
        }

        waiting |= uct_varuna_amo_must_wait(amo, status);
        if (status != UCS_ERR_BUSY) {
            break;
        }
    }

    if (ucs_unlikely(uct_varuna_ep_ext(ep)->at_home != NULL)) {
        uct_varuna_amo_check_home(iface, ep);
        waiting = 1;
    }

    if (ucs_unlikely(!ucs_queue_is_empty(&ep->amo.flushes))) {
        waiting |= uct_varuna_amo_retry_flushes(ep);
    }

    return waiting;
}

/* Whether it is the only one to be posted */
static UCS_F_ALWAYS_INLINE int uct_varuna_amo_is_next(uct_varuna_amo_ext_t *amo)
{
    uct_varuna_ep_t *ep = amo->super.ep;

    return ucs_list_is_empty(&ep->amo.ready) && (uct_varuna_ep_ext(ep)->at_home == NULL);
}

/* Whether nothing at all is in the way of its next action on the lane */
static UCS_F_ALWAYS_INLINE int
uct_varuna_amo_is_clear(uct_varuna_iface_t *iface, uct_varuna_amo_ext_t *amo)
{
    return uct_varuna_amo_is_next(amo) && uct_varuna_amo_lane_is_home(amo->super.ep) &&
           (uct_varuna_amo_lane_check(iface, amo->super.ep) == UCT_VARUNA_POST_OK) &&
           (amo->not_before == 0) && !amo->super.fence;
}

/* Post the occupy with which a compare and swap begins. @return 0 if it was not posted:
 * uct_varuna_amo_set_ready() finds out why. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_amo_quick_occupy(uct_varuna_iface_t *iface, uct_varuna_amo_ext_t *amo)
{
    if (ucs_unlikely((amo->sm.state != UCT_VARUNA_AMO_OCCUPY) ||
                     !uct_varuna_amo_is_clear(iface, amo) ||
                     !uct_varuna_amo_may_begin(amo) || !uct_varuna_amo_take_slot(amo))) {
        return 0;
    }

    amo->begun = 1;
    return uct_varuna_amo_pair_occupy(iface, amo) == UCS_OK;
}

/* Post the confirm of an atomic that has just been decided, or return 0. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_amo_quick_confirm(uct_varuna_iface_t *iface, uct_varuna_amo_ext_t *amo)
{
    return ucs_likely(uct_varuna_amo_is_clear(iface, amo)) &&
           (uct_varuna_amo_pair_confirm(iface, amo) == UCS_OK);
}

static void uct_varuna_amo_set_ready(uct_varuna_amo_ext_t *amo)
{
    uct_varuna_ep_t *ep = amo->super.ep;
    ucs_status_t status;
    int waiting;

    if (ucs_likely(uct_varuna_amo_is_next(amo))) {
        status = uct_varuna_amo_post(uct_varuna_ep_iface(ep), amo);
        if (ucs_likely(status == UCS_OK)) {
            waiting = (uct_varuna_ep_ext(ep)->at_home != NULL); /* Its request may get lost */
        } else {
            uct_varuna_amo_add_ready(&amo->super);
            waiting = uct_varuna_amo_must_wait(amo, status);
        }
    } else {
        if (!amo->super.is_ready) {
            uct_varuna_amo_add_ready(&amo->super);
        }
        waiting = uct_varuna_amo_progress(ep);
    }

    if (waiting) {
        uct_varuna_ep_add_work(ep);
    }
}

/* --- Completion --- */

static UCS_F_ALWAYS_INLINE void uct_varuna_amo_tell_result(uct_varuna_amo_ext_t *amo)
{
    uct_varuna_amo_tell(&amo->super, UCS_OK, &amo->sm.result, amo->sm.width);
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_finish(uct_varuna_amo_ext_t *amo, ucs_status_t status)
{
    uct_varuna_ep_t *ep = amo->super.ep;

    uct_varuna_amo_give_slot(amo);
    if (uct_varuna_ep_ext(ep)->at_home == amo) {
        uct_varuna_ep_ext(ep)->at_home = NULL;
    }

    --*uct_varuna_amo_word(amo);
    ep->amo.stats.helped    += amo->sm.helped;
    ep->amo.stats.retries   += amo->sm.retries;
    ep->amo.stats.recovered += !!(amo->sm.flags &
                                  UCT_VARUNA_AMO_FLAG_RECOVERED);
    uct_varuna_amo_end(&amo->super, status, &amo->sm.result, amo->sm.width);
}

/* Rule 10: a client that has lost several races waits for a random time, so that others
 * can finish. An atomic that is decided, or is being recovered, does not wait: others
 * may wait for it. */
static void uct_varuna_amo_back_off(uct_varuna_amo_ext_t *amo)
{
    uct_varuna_ep_ext_t *ext = uct_varuna_ep_ext(amo->super.ep);
    unsigned ns;

    amo->races  = amo->sm.retries;
    ext->random = (ext->random * 1103515245u) + 12345u;
    ns          = uct_varuna_amo_sm_backoff(&amo->sm, ext->random >> 8);
    if (ns > 0) {
        amo->not_before = ucs_get_time() + ucs_time_from_usec(ns * 1e-3);
        ++amo->super.ep->amo.stats.backoffs;
    }
}

/* The state machine has a next action. */
void uct_varuna_amo_advance(uct_varuna_amo_ext_t *amo)
{
    if (amo->sm.act.type == UCT_VARUNA_AMO_ACT_NONE) {
        uct_varuna_amo_finish(amo, UCS_OK);
        return;
    }

    if (ucs_unlikely(amo->sm.retries != amo->races)) {
        uct_varuna_amo_back_off(amo);
    }

    uct_varuna_amo_set_ready(amo);
    if ((amo->sm.flags & UCT_VARUNA_AMO_FLAG_DECIDED) && !amo->super.is_told) {
        uct_varuna_amo_tell_result(amo);
    }
}

/* Its occupy has succeeded. The confirm is on the lane before the user gets the result, so
 * later requests of the user find no UID of their own. */
static UCS_F_ALWAYS_INLINE void uct_varuna_amo_won(uct_varuna_amo_ext_t *amo)
{
    uct_varuna_amo_sm_won(&amo->sm);
    if (ucs_unlikely(!uct_varuna_amo_quick_confirm(uct_varuna_ep_iface(amo->super.ep), amo))) {
        uct_varuna_amo_set_ready(amo);
    }

    uct_varuna_amo_tell_result(amo);
}

/* Its action on the lane was executed, or was lost with the lane. */
static UCS_F_ALWAYS_INLINE void uct_varuna_amo_step(uct_varuna_amo_ext_t *amo)
{
    if (ucs_likely(!amo->lost)) {
        if (uct_varuna_amo_sm_has_won(&amo->sm, amo->value)) {
            uct_varuna_amo_won(amo);
            return;
        } else if (uct_varuna_amo_sm_is_confirmed(&amo->sm, amo->value)) {
            uct_varuna_amo_sm_confirmed(&amo->sm);
            uct_varuna_amo_finish(amo, UCS_OK);
            return;
        }

        uct_varuna_amo_sm_done(&amo->sm, amo->value, &amo->slot);
    } else if (amo->sm.act.type == UCT_VARUNA_AMO_ACT_OCCUPY) {
        uct_varuna_amo_sm_lost(&amo->sm);
    } /* Else the same once more */

    amo->lost = 0;
    uct_varuna_amo_advance(amo);
}

void uct_varuna_amo_step_completion(uct_completion_t *comp)
{
    uct_varuna_amo_ext_t *amo = ucs_container_of(comp, uct_varuna_amo_ext_t, super.comp);

    if (ucs_unlikely(comp->status != UCS_OK)) {
        uct_varuna_amo_finish(amo, comp->status);
    } else {
        uct_varuna_amo_step(amo);
    }
}

/* What a completed request needs more than to be taken from the ring, or the end of a slab */
#define UCT_VARUNA_AMO_PAIR_UNUSUAL \
    (UCT_VARUNA_REQ_FLAG_FIRST | UCT_VARUNA_REQ_FLAG_BCOPY | UCT_VARUNA_REQ_FLAG_LAST | \
     UCT_VARUNA_REQ_FLAG_LOST)

/* It is usually the oldest request, and then no other one has to be looked at. */
void uct_varuna_amo_pair_completion(uct_completion_t *comp)
{
    uct_varuna_req_t *req = ucs_container_of(comp, uct_varuna_req_t, comp);
    uct_varuna_ep_t *ep   = req->ep;
    uct_varuna_amo_ext_t *amo;

    if (ucs_unlikely((ep == NULL) || (comp->status != UCS_OK) ||
                     (ep->hot.reqs.tail != req) ||
                     (req->flags & UCT_VARUNA_AMO_PAIR_UNUSUAL))) {
        uct_varuna_req_completion(comp);
        return;
    }

    amo                = uct_varuna_amo_ext(req->atomic.amo);
    amo->value         = 0;
    uct_varuna_amo_copy_word(&amo->value, req->data, req->length);
    ep->lane.acked_psn = req->end_psn;
    --ep->hot.num_reqs;
    --uct_varuna_ep_requester(ep)->outstanding;
    uct_varuna_ring_pull_plain(&ep->hot.reqs);
    uct_varuna_amo_step(amo);
    uct_varuna_ep_finished_some(ep);
}

void uct_varuna_amo_collect(const uct_varuna_req_t *req)
{
    uct_varuna_amo_ext_t *amo;

    if ((req->atomic.amo == NULL) || (req->ep == NULL)) {
        return;
    }

    amo        = uct_varuna_amo_ext(req->atomic.amo);
    amo->lost  = !!(req->flags & UCT_VARUNA_REQ_FLAG_LOST);
    amo->value = 0;
    uct_varuna_amo_copy_word(&amo->value, req->data, req->length);
}

/* --- Taking one --- */

static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_init_ext(uct_varuna_amo_ext_t *amo, const uct_varuna_amo_args_t *args)
{
    const uct_varuna_rkey_t *rkey = (const uct_varuna_rkey_t*)args->rkey;

    memcpy(amo->key.keys, rkey->keys, sizeof(amo->key.keys));
    amo->lost       = 0;
    amo->begun      = 0;
    amo->is_get     = uct_varuna_req_is_read(args->type);
    amo->races      = 0;
    amo->not_before = 0;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_start_sm(uct_varuna_amo_ext_t *amo, const uct_varuna_amo_args_t *args)
{
    if (amo->is_get) {
        uct_varuna_amo_sm_start_get(&amo->sm, args->width, args->remote_addr,
                                    UCT_VARUNA_SLOTS_MAX);
    } else {
        uct_varuna_amo_sm_start(&amo->sm, args->op, args->width,
                                args->remote_addr, args->compare, args->value,
                                UCT_VARUNA_SLOTS_MAX);
        ++amo->super.ep->amo.stats.started;
    }

    ++*uct_varuna_amo_word(amo);
}

ucs_status_t uct_varuna_amo_start(uct_varuna_ep_t *ep, const uct_varuna_amo_args_t *args)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_amo_ext_t *amo;
    uct_varuna_amo_t *base;

    base = uct_varuna_amo_take(iface, ep, args);
    if (ucs_unlikely(base == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    amo = uct_varuna_amo_ext(base);
    uct_varuna_amo_init_ext(amo, args);
    uct_varuna_amo_start_sm(amo, args);
    if (!uct_varuna_amo_quick_occupy(iface, amo)) {
        uct_varuna_amo_set_ready(amo);
    }

    return uct_varuna_req_infos[args->type].has_answer ? UCS_INPROGRESS : UCS_OK;
}

void uct_varuna_amo_fail_all(uct_varuna_ep_t *ep, ucs_status_t status)
{
    while (!ucs_list_is_empty(&ep->amo.all)) {
        uct_varuna_amo_finish(ucs_list_head(&ep->amo.all, uct_varuna_amo_ext_t, super.all),
                              status);
    }
}
