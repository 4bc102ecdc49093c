/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The two stages of an atomic with a slot, each posted as one saved request: body and
 * occupy, target's and mark's confirm. A stage has one doorbell and one completion. Nobody
 * needs its parts apart: after a failure the atomic asks whether an occupy was executed, and
 * carries a confirm out again (rule 6), whatever part of it was executed before. Main thread
 * only.
 *
 * Both functions return UCS_ERR_UNSUPPORTED if nothing was posted: the parts must be posted
 * one by one.
 */
#ifndef UCT_VARUNA_AMO_PAIR_INL_
#define UCT_VARUNA_AMO_PAIR_INL_

#include <uct/ib/varuna/requester/varuna.inl>
#include <uct/ib/varuna/requester/varuna_baseline.h>
#include "varuna_amo_ext.h"

/* A baseline posts saved requests again, each as what it is: so it needs the parts. Only UCX
 * posts a fence. */
static UCS_F_ALWAYS_INLINE int uct_varuna_amo_can_pair(const uct_varuna_amo_ext_t *amo)
{
    return (amo->super.ep->lane.kind == UCT_VARUNA_LANE_RC) && !amo->super.fence &&
           (uct_varuna_ep_baseline(amo->super.ep) == NULL);
}

/* The saved request of a stage, for the two of them. It names the target, which it may
 * change (varuna_compare.c), and gives a value of @a length bytes. */
static UCS_F_ALWAYS_INLINE uct_varuna_req_t *
uct_varuna_amo_pair_req(uct_varuna_amo_ext_t *amo, uct_varuna_req_type_t type, size_t length)
{
    uct_varuna_req_t *req = amo->super.ep->hot.reqs.head;

    if (ucs_unlikely(req == NULL)) {
        req = uct_varuna_req_new(amo->super.ep);
        if (req == NULL) {
            return NULL;
        }
    }

    uct_varuna_req_init(amo->super.ep, req, type, &amo->super.comp);
    req->comp.func   = uct_varuna_amo_pair_completion;
    req->comp.count  = 1;
    req->comp.status = UCS_OK;
    req->remote_addr = amo->sm.addr;
    req->device      = UCT_VARUNA_DEVICE_HOST; /* This mode registers no other memory */
    req->length      = length;
    req->atomic.amo  = &amo->super;

    amo->super.comp.func   = uct_varuna_amo_step_completion;
    amo->super.comp.count  = 1;
    amo->super.comp.status = UCS_OK;
    return req;
}

/* Both are posted */
static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_pair_push(uct_varuna_iface_t *iface, uct_varuna_amo_ext_t *amo,
                         uct_varuna_req_t *req, uct_varuna_req_type_t type)
{
    uct_varuna_ep_t *ep = amo->super.ep;

    uct_varuna_lane_advance_psn(&ep->lane, 1);
    uct_varuna_req_posted(ep, req, type, req->length, &req->comp);
    uct_varuna_req_push(iface, ep, req, type);
}

/* The compare and swap of the target */
static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_pair_target(const uct_varuna_amo_ext_t *amo, uct_varuna_mlx5_cas_t *cas)
{
    cas->remote_addr = amo->sm.addr;
    cas->rkey        = amo->key.keys[amo->super.ep->hot.far_nic];
    cas->compare     = amo->sm.act.compare;
    cas->swap        = amo->sm.act.swap;
    cas->width       = amo->sm.width;
    cas->is_add      = 0;
}

/** Post ACT_OCCUPY. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_amo_pair_occupy(uct_varuna_iface_t *iface, uct_varuna_amo_ext_t *amo)
{
    uct_varuna_ep_t *ep                = amo->super.ep;
    const uct_varuna_ep_arena_t *arena = &uct_varuna_ep_ext(ep)->arena;
    uct_varuna_mlx5_cas_t cas;
    uct_varuna_slot_t body;
    uct_varuna_req_t *req;
    ucs_status_t status;

    if (ucs_unlikely(!uct_varuna_amo_can_pair(amo))) {
        return UCS_ERR_UNSUPPORTED;
    }

    req = uct_varuna_amo_pair_req(amo, UCT_VARUNA_REQ_AMO_OCCUPY, amo->sm.width);
    if (ucs_unlikely(req == NULL)) {
        return UCS_ERR_UNSUPPORTED;
    }

    uct_varuna_amo_sm_body(&amo->sm, &body);
    uct_varuna_amo_pair_target(amo, &cas);
    status = uct_varuna_mlx5_write_cas(
            ep->lane.ep, &body, UCT_VARUNA_SLOT_BODY_SIZE,
            uct_varuna_amo_own_slot_addr(ep, amo->sm.slot),
            uct_varuna_rkey_inner(arena->write.rkey, ep->hot.far_nic), &cas, req->data,
            &req->comp);
    if (ucs_likely(status == UCS_OK)) {
        uct_varuna_amo_pair_push(iface, amo, req, UCT_VARUNA_REQ_AMO_OCCUPY);
    }

    return status;
}

/** Post ACT_CONFIRM. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_amo_pair_confirm(uct_varuna_iface_t *iface, uct_varuna_amo_ext_t *amo)
{
    uct_varuna_ep_t *ep                = amo->super.ep;
    const uct_varuna_ep_arena_t *arena = &uct_varuna_ep_ext(ep)->arena;
    const uct_varuna_amo_act_t *act    = &amo->sm.act;
    uct_varuna_mlx5_cas_t target, mark;
    uct_varuna_req_t *req;
    ucs_status_t status;

    if (ucs_unlikely(!uct_varuna_amo_can_pair(amo))) {
        return UCS_ERR_UNSUPPORTED;
    }

    req = uct_varuna_amo_pair_req(amo, UCT_VARUNA_REQ_AMO_CAS, sizeof(uint64_t));
    if (ucs_unlikely(req == NULL)) {
        return UCS_ERR_UNSUPPORTED;
    }

    uct_varuna_amo_pair_target(amo, &target);
    mark.remote_addr = arena->marks_addr + (act->slot * sizeof(uint64_t));
    mark.rkey        = uct_varuna_rkey_inner(arena->mark.rkey, ep->hot.far_nic);
    mark.compare     = act->mark_from;
    mark.swap        = act->mark_to;
    mark.width       = sizeof(uint64_t);
    mark.is_add      = 0;
    status           = uct_varuna_mlx5_cas_cas(ep->lane.ep, &target, &mark, req->data,
                                               &req->comp);
    if (ucs_likely(status == UCS_OK)) {
        uct_varuna_amo_pair_push(iface, amo, req, UCT_VARUNA_REQ_AMO_CAS);
    }

    return status;
}

#endif
