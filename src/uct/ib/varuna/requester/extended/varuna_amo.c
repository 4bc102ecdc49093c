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
 * varuna_amo_lane.c carries the actions out, or the peer's home NIC does. And mode reread, which
 * has no driver.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_ext.h"
#include "varuna_amo_pair.inl"
#include <uct/ib/varuna/core/varuna_msg.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/requester/varuna_requester.h>
#include <uct/ib/varuna/requester/varuna_sm.h>
#include <uct/ib/varuna/requester/varuna_lane.h>

#include <ucs/debug/log.h>
#include <string.h>

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

static void uct_varuna_amo_learn_home(uct_varuna_ep_t *ep, uint8_t nic, uint32_t epoch);
static ucs_status_t uct_varuna_amo_post_home(uct_varuna_iface_t *iface,
                                             uct_varuna_amo_ext_t *amo);
static void uct_varuna_amo_check_home(uct_varuna_iface_t *iface,
                                      uct_varuna_ep_t *ep);
static void uct_varuna_amo_home_listen(uct_varuna_requester_t *requester);

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

/* Post the next actions of all atomics which have one. @return Nonzero if some
 * wait for resources, so that the endpoint must stay in the work list. */
static int uct_varuna_amo_progress(uct_varuna_ep_t *ep)
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
static void uct_varuna_amo_advance(uct_varuna_amo_ext_t *amo)
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
     UCT_VARUNA_REQ_FLAG_LOST | UCT_VARUNA_REQ_FLAG_ORPHAN)

/* It is usually the oldest request, and then no other one has to be looked at. */
void uct_varuna_amo_pair_completion(uct_completion_t *comp)
{
    uct_varuna_req_t *req = ucs_container_of(comp, uct_varuna_req_t, comp);
    uct_varuna_ep_t *ep   = req->ep;
    uct_varuna_amo_ext_t *amo;

    if (ucs_unlikely((req->flags & UCT_VARUNA_AMO_PAIR_UNUSUAL) ||
                     (comp->status != UCS_OK) || (ep->hot.reqs.tail != req))) {
        uct_varuna_req_completion(comp);
        return;
    }

    amo                = uct_varuna_amo_ext(req->atomic.amo);
    amo->value         = 0;
    uct_varuna_amo_copy_word(&amo->value, req->data, req->length);
    ep->lane.acked_psn = req->end_psn;
    --ep->hot.num_reqs;
    --uct_varuna_ep_requester(ep)->outstanding;
    uct_varuna_ring_pull_plain(&ep->hot.reqs, req);
    uct_varuna_amo_step(amo);
    uct_varuna_ep_finished_some(ep);
}

/* A request of an atomic is finished: take its result. */
static void uct_varuna_amo_collect(const uct_varuna_req_t *req)
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

    /* What a request takes of a key, uct_varuna_req_set_remote() */
    memcpy(amo->key.keys, rkey->keys, sizeof(amo->key.keys));
    amo->key.device = rkey->device;
    amo->key.token  = rkey->token;
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

/* The endpoint failed or is destroyed: finish all atomics with @a status. Their
 * requests must be finished already. */
static void uct_varuna_amo_fail_all(uct_varuna_ep_t *ep, ucs_status_t status)
{
    while (!ucs_list_is_empty(&ep->amo.all)) {
        uct_varuna_amo_finish(ucs_list_head(&ep->amo.all, uct_varuna_amo_ext_t, super.all),
                              status);
    }
    uct_varuna_amo_finish_flushes(ep, status); /* Those that no atomic precedes */
}


/* --- The table of mode extended --- */

/* Mode extended: two stages, occupy and confirm, on a lane to the peer's home NIC, by the
 * slots of an arena in the peer's memory (docs/ATOMICS.md). */

static ucs_status_t uct_varuna_amo_take_key(const char **tail_p,
                                            uct_rkey_bundle_t *bundle)
{
    ucs_status_t status;

    status = uct_rkey_unpack(&uct_varuna_component, *tail_p, bundle);
    *tail_p += uct_varuna_rkey_length(*tail_p);
    return status;
}

/* The message was checked: its keys are whole. */
static ucs_status_t
uct_varuna_amo_open_arena(uct_varuna_ep_t *ep, const char *tail,
                          const uct_varuna_ctl_open_rep_t *rep)
{
    uct_varuna_ep_arena_t *arena = &uct_varuna_ep_ext(ep)->arena;
    ucs_status_t status;

    status = uct_varuna_amo_take_key(&tail, &arena->read);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_amo_take_key(&tail, &arena->mark);
    if (status != UCS_OK) {
        goto err_release_read;
    }

    if (rep->num_slots > 0) {
        status = uct_varuna_amo_take_key(&tail, &arena->write);
        if (status != UCS_OK) {
            goto err_release_mark;
        }
    }

    arena->slots_addr = rep->slots_addr;
    arena->marks_addr = rep->marks_addr;
    arena->own_addr   = rep->own_addr;
    arena->num_slots  = rep->arena_slots;
    uct_varuna_slots_init(&uct_varuna_ep_ext(ep)->slots, rep->first_slot, rep->num_slots, tail,
                          ucs_get_time());
    return UCS_OK;

err_release_mark:
    uct_rkey_release(&uct_varuna_component, &arena->mark);
err_release_read:
    uct_rkey_release(&uct_varuna_component, &arena->read);
    return status;
}

static ucs_status_t
uct_varuna_amo_extended_open(uct_varuna_ep_t *ep,
                             const uct_varuna_ctl_open_rep_t *rep)
{
    uct_varuna_amo_learn_home(ep, rep->home_nic, rep->home_epoch);
    return (rep->arena_slots == 0) ? UCS_OK :
           uct_varuna_amo_open_arena(
                   ep, UCS_PTR_BYTE_OFFSET(rep + 1,
                                           rep->rkey_len + rep->addr_len), rep);
}

static void uct_varuna_amo_extended_close(uct_varuna_ep_t *ep)
{
    uct_varuna_ep_arena_t *arena = &uct_varuna_ep_ext(ep)->arena;

    if (arena->num_slots == 0) {
        return;
    }

    uct_rkey_release(&uct_varuna_component, &arena->read);
    uct_rkey_release(&uct_varuna_component, &arena->mark);
    if (arena->write.rkey != 0) {
        uct_rkey_release(&uct_varuna_component, &arena->write);
    }
}

/* A word may hold a UID: read it, and resolve that. Other modes write none. */
static ucs_status_t
uct_varuna_amo_extended_get(uct_varuna_ep_t *ep,
                            const uct_varuna_amo_args_t *args)
{
    const uct_varuna_rkey_t *rkey = (const uct_varuna_rkey_t*)args->rkey;

    return (((args->width == sizeof(uint64_t)) || (args->width == sizeof(uint32_t))) &&
            ((args->remote_addr & (args->width - 1)) == 0) &&
            (rkey->atomic_mode == UCT_VARUNA_ATOMIC_EXTENDED)) ?
           uct_varuna_amo_start(ep, args) : UCS_ERR_UNSUPPORTED;
}

static void uct_varuna_amo_extended_init(uct_varuna_ep_t *ep)
{
    uct_varuna_ep_ext(ep)->random   = (uint32_t)ucs_get_time();
    uct_varuna_ep_ext(ep)->home.nic = UCT_VARUNA_HOME_NONE;
}

static int uct_varuna_amo_extended_is_away(uct_varuna_ep_t *ep)
{
    return ep->hot.far_nic != uct_varuna_ep_ext(ep)->home.nic;
}

const uct_varuna_amo_ops_t uct_varuna_amo_extended_ops = {
    .start      = uct_varuna_amo_start,
    .get        = uct_varuna_amo_extended_get,
    .get_max    = sizeof(uint64_t),
    .init       = uct_varuna_amo_extended_init,
    .listen     = uct_varuna_amo_home_listen,
    .open       = uct_varuna_amo_extended_open,
    .close      = uct_varuna_amo_extended_close,
    .learn_home = uct_varuna_amo_learn_home,
    .is_away    = uct_varuna_amo_extended_is_away,
    .progress   = uct_varuna_amo_progress,
    .collect    = uct_varuna_amo_collect,
    .executed   = uct_varuna_amo_native_executed,
    .fail_all   = uct_varuna_amo_fail_all,
    .query      = uct_varuna_amo_query_all_ops,
    .size       = sizeof(uct_varuna_amo_ext_t)
};


/* --- Requests to the home NIC --- */

/* One atomic, or one access of it, at a time is sent to the peer's home NIC until it is
 * answered (rule 12). varuna_home.c is the peer's side. */

/* The peer has reported its home NIC. */
static void uct_varuna_amo_learn_home(uct_varuna_ep_t *ep, uint8_t nic, uint32_t epoch)
{
    uct_varuna_amo_home_learn(ep, &uct_varuna_ep_ext(ep)->home, nic, epoch);
}

static void uct_varuna_amo_send_home(uct_varuna_ep_t *ep)
{
    const uct_varuna_amo_ext_t *amo     = uct_varuna_ep_ext(ep)->at_home;
    const uct_varuna_amo_act_t *act = &amo->sm.act;
    uct_varuna_ctl_home_req_t req   = {0};
    unsigned link                   = uct_varuna_amo_retry_next(ep);
    unsigned nic;

    req.seq       = uct_varuna_ep_ext(ep)->seq;
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
        req.rkeys[nic] = uct_varuna_rkey_inner((uct_rkey_t)&amo->key, nic);
    }

    uct_varuna_ep_ctl_send(ep, link, UCT_VARUNA_CTL_HOME_REQ, ep->lanes.epoch, &req,
                           sizeof(req));
}

/* Rule 12: exactly once, because the peer keeps the answer to its number. */
static ucs_status_t uct_varuna_amo_post_home(uct_varuna_iface_t *iface,
                                             uct_varuna_amo_ext_t *amo)
{
    uct_varuna_ep_t *ep = amo->super.ep;

    if (uct_varuna_ep_ext(ep)->at_home != NULL) {
        return UCS_ERR_BUSY; /* It is tried again when that one is answered */
    }

    uct_varuna_ep_ext(ep)->at_home = amo;
    uct_varuna_amo_retry_start(ep);
    ++uct_varuna_ep_ext(ep)->seq;
    ++ep->amo.stats.proxied;
    uct_varuna_amo_send_home(ep);
    return UCS_OK;
}

/* Ask again. */
static void uct_varuna_amo_check_home(uct_varuna_iface_t *iface,
                                      uct_varuna_ep_t *ep)
{
    if (uct_varuna_amo_retry_is_due(ep)) {
        uct_varuna_amo_send_home(ep);
    }
}

static void uct_varuna_amo_handle_home_rep(uct_varuna_ep_t *ep,
                                           const uct_varuna_ctl_home_rep_t *rep)
{
    uct_varuna_amo_ext_t *amo = uct_varuna_ep_ext(ep)->at_home;

    uct_varuna_amo_learn_home(ep, rep->home_nic, rep->home_epoch);
    if ((amo == NULL) || (rep->seq != uct_varuna_ep_ext(ep)->seq)) {
        return; /* A repeated answer */
    }

    uct_varuna_ep_ext(ep)->at_home = NULL;
    uct_varuna_retry_stop(&ep->amo.retry);
    if (rep->status != UCS_OK) {
        ucs_diag("ep %p: the peer's home NIC failed to execute an atomic at "
                 "0x%lx: %s", ep, amo->sm.addr,
                 ucs_status_string((ucs_status_t)rep->status));
        uct_varuna_ep_raise_fatal(ep, (ucs_status_t)rep->status);
        return;
    }

    if (uct_varuna_amo_sm_is_free(&amo->sm)) {
        uct_varuna_amo_sm_executed(&amo->sm, rep->value);
    } else {
        uct_varuna_amo_sm_done(&amo->sm, rep->value, NULL);
    }

    uct_varuna_amo_advance(amo);
    uct_varuna_amo_progress(ep);
    uct_varuna_ep_finish_done(ep);
}

static void uct_varuna_amo_home_answer(void *arg, unsigned link,
                                       const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    uct_varuna_ep_t *ep = uct_varuna_answer_opened_ep(arg, hdr);

    if (ep != NULL) {
        uct_varuna_amo_handle_home_rep(ep, body);
    }
}

/* Register the handler of HOME_REP. */
static void uct_varuna_amo_home_listen(uct_varuna_requester_t *requester)
{
    static const uct_varuna_bus_reg_t row = {
        UCT_VARUNA_CTL_HOME_REP, UCT_VARUNA_BUS_MAIN, uct_varuna_amo_home_answer
    };

    uct_varuna_bus_register(&requester->super.ctl->bus, &row, 1, &requester->super);
}


/* --- The table of mode reread --- */

/* The paper's: as native, but a compare and swap that was executed when its
 * lane failed reads its target. If the value is unique, or there is no other writer,
 * the target shows whether it succeeded. */

/* What is left of a compare and swap that becomes a read of its target */
typedef struct uct_varuna_reread {
    uint64_t                   compare;
    uint64_t                   swap;
    void                       *result;
    size_t                     width;
} uct_varuna_reread_t;

static void uct_varuna_reread_unpack(void *arg, const void *data, size_t length)
{
    const uct_varuna_reread_t *reread = arg;
    const void *old                   =
            !memcmp(data, &reread->swap, reread->width) ? &reread->compare :
            data;

    memcpy(reread->result, old, reread->width);
}

static ucs_status_t uct_varuna_amo_reread_executed(uct_varuna_ep_t *ep,
                                                   uct_varuna_req_t *req)
{
    uct_varuna_reread_t *reread = (uct_varuna_reread_t*)req->data;

    if (req->type != UCT_VARUNA_REQ_CSWAP) {
        return uct_varuna_amo_native_executed(ep, req);
    }

    reread->compare = req->atomic.compare;
    reread->swap    = req->atomic.value;
    reread->result  = req->atomic.result;
    reread->width   = req->length;
    req->type       = UCT_VARUNA_REQ_GET_BCOPY;
    req->get.cb     = uct_varuna_reread_unpack;
    req->get.arg    = reread;
    ++ep->hot.num_reads;
    return UCS_INPROGRESS;
}

const uct_varuna_amo_ops_t uct_varuna_amo_reread_ops =
        UCT_VARUNA_AMO_NATIVE_OPS(uct_varuna_amo_reread_executed);
