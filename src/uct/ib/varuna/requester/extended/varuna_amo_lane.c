/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Posts the actions of atomics on the lane, as saved requests: bodies, compare and
 * swaps, reads. Main thread only.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/requester/varuna.inl>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include "varuna_amo_ext.h"
#include "varuna_amo_pair.inl"
#include <uct/ib/varuna/ucx/varuna_mlx5.h>

static uct_varuna_req_t *
uct_varuna_amo_req(uct_varuna_iface_t *iface, uct_varuna_amo_ext_t *amo,
                   uct_varuna_req_type_t type, uint64_t addr, uct_rkey_t rkey,
                   size_t length, int is_last)
{
    uct_varuna_req_t *req = uct_varuna_req_new(amo->super.ep);

    if (ucs_unlikely(req == NULL)) {
        return NULL;
    }

    uct_varuna_req_init(amo->super.ep, req, type, is_last ? &amo->super.comp : NULL);
    uct_varuna_req_set_remote(req, addr, rkey);
    req->length = length;
    if (ucs_unlikely(amo->super.fence)) {
        req->flags |= UCT_VARUNA_REQ_FLAG_FENCE;
    }

    if (is_last) {
        amo->super.comp.func   = uct_varuna_amo_step_completion;
        amo->super.comp.count  = 1;
        amo->super.comp.status = UCS_OK;
    }

    return req;
}

static ucs_status_t uct_varuna_amo_post_req(uct_varuna_iface_t *iface,
                                            uct_varuna_amo_ext_t *amo,
                                            uct_varuna_req_t *req)
{
    ucs_status_t status = uct_varuna_req_post(req, 1);

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }

    uct_varuna_req_push(iface, amo->super.ep, req, req->type);
    return UCS_OK;
}

static void uct_varuna_amo_unpack(void *arg, const void *data, size_t length)
{
    uct_varuna_amo_ext_t *amo = arg;

    if (amo->sm.act.type == UCT_VARUNA_AMO_ACT_READ_BODY) {
        memcpy(&amo->slot, data, ucs_min(length, sizeof(amo->slot)));
    } else {
        amo->value = 0;
        memcpy(&amo->value, data, ucs_min(length, sizeof(amo->value)));
    }
}

static ucs_status_t uct_varuna_amo_post_read(uct_varuna_iface_t *iface,
                                             uct_varuna_amo_ext_t *amo,
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
uct_varuna_amo_post_cas(uct_varuna_iface_t *iface, uct_varuna_amo_ext_t *amo,
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
    req->atomic.amo     = is_last ? &amo->super : NULL;
    return uct_varuna_amo_post_req(iface, amo, req);
}

static uint64_t uct_varuna_amo_slot_addr(uct_varuna_ep_t *ep, uint32_t slot)
{
    return uct_varuna_ep_ext(ep)->arena.slots_addr + (slot * sizeof(uct_varuna_slot_t));
}

static ucs_status_t uct_varuna_amo_post_mark(uct_varuna_iface_t *iface,
                                             uct_varuna_amo_ext_t *amo)
{
    const uct_varuna_ep_arena_t *arena = &uct_varuna_ep_ext(amo->super.ep)->arena;
    const uct_varuna_amo_act_t *act    = &amo->sm.act;

    return uct_varuna_amo_post_cas(
            iface, amo, UCT_VARUNA_REQ_AMO_CAS,
            arena->marks_addr + (act->slot * sizeof(uint64_t)),
            arena->mark.rkey, sizeof(uint64_t), act->mark_from, act->mark_to, 1);
}

static ucs_status_t uct_varuna_amo_post_body(uct_varuna_iface_t *iface,
                                             uct_varuna_amo_ext_t *amo)
{
    uct_varuna_ep_t *ep = amo->super.ep;
    uct_varuna_req_t *req;

    req = uct_varuna_amo_req(iface, amo, UCT_VARUNA_REQ_AMO_BODY,
                             uct_varuna_amo_own_slot_addr(ep, amo->sm.slot),
                             uct_varuna_ep_ext(ep)->arena.write.rkey,
                             UCT_VARUNA_SLOT_BODY_SIZE, 0);
    if (req == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    req->atomic.amo = NULL;
    uct_varuna_amo_sm_body(&amo->sm, (uct_varuna_slot_t*)req->data);
    return uct_varuna_amo_post_req(iface, amo, req);
}

/* Rule 2: the body, then the CAS, on one QP; with one doorbell. If there are no
 * resources for the second one, both are posted again later. */
static ucs_status_t uct_varuna_amo_post_occupy(uct_varuna_iface_t *iface,
                                               uct_varuna_amo_ext_t *amo)
{
    const uct_varuna_amo_act_t *act = &amo->sm.act;
    uct_varuna_mlx5_bell_t bell;
    ucs_status_t status;

    (void)uct_varuna_mlx5_bell_hold(amo->super.ep->lane.ep, UCT_VARUNA_LANE_RC, &bell);
    status = uct_varuna_amo_post_body(iface, amo);
    if (status != UCS_OK) {
        uct_varuna_mlx5_bell_restore(&bell, 0);
        return status;
    }

    uct_varuna_mlx5_bell_join(&bell);
    status = uct_varuna_amo_post_cas(iface, amo, UCT_VARUNA_REQ_AMO_OCCUPY,
                                     amo->sm.addr, (uct_rkey_t)&amo->key, amo->sm.width,
                                     act->compare, act->swap, 1);
    uct_varuna_mlx5_bell_restore(&bell, status != UCS_OK);
    return status;
}

static ucs_status_t uct_varuna_amo_post_confirm(uct_varuna_iface_t *iface,
                                                uct_varuna_amo_ext_t *amo)
{
    const uct_varuna_amo_act_t *act = &amo->sm.act;
    ucs_status_t status;

    status = uct_varuna_amo_post_cas(iface, amo, UCT_VARUNA_REQ_AMO_CAS,
                                     amo->sm.addr, (uct_rkey_t)&amo->key, amo->sm.width,
                                     act->compare, act->swap, 0);
    if (status != UCS_OK) {
        return status;
    }

    return uct_varuna_amo_post_mark(iface, amo);
}

/* One request after the other */
static ucs_status_t uct_varuna_amo_post_parts(uct_varuna_iface_t *iface,
                                              uct_varuna_amo_ext_t *amo)
{
    const uct_varuna_amo_act_t *act = &amo->sm.act;

    switch (act->type) {
    case UCT_VARUNA_AMO_ACT_READ:
        return uct_varuna_amo_post_read(iface, amo, act->addr, (uct_rkey_t)&amo->key,
                                        act->width);
    case UCT_VARUNA_AMO_ACT_READ_BODY:
        return uct_varuna_amo_post_read(
                iface, amo, uct_varuna_amo_slot_addr(amo->super.ep, act->slot),
                uct_varuna_ep_ext(amo->super.ep)->arena.read.rkey, UCT_VARUNA_SLOT_BODY_SIZE);
    case UCT_VARUNA_AMO_ACT_CAS:
        return uct_varuna_amo_post_cas(iface, amo, UCT_VARUNA_REQ_AMO_CAS,
                                       act->addr, (uct_rkey_t)&amo->key, act->width,
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

ucs_status_t uct_varuna_amo_post_lane(uct_varuna_iface_t *iface,
                                      uct_varuna_amo_ext_t *amo)
{
    const uct_varuna_amo_act_t *act = &amo->sm.act;
    ucs_status_t status;

    if ((amo->sm.state == UCT_VARUNA_AMO_OCCUPY) &&
        !(amo->sm.flags & UCT_VARUNA_AMO_FLAG_SLOT)) {
        if (!uct_varuna_amo_take_slot(amo)) {
            return UCS_ERR_BUSY;
        }
    }

    /* The usual ones first */
    status = UCS_ERR_UNSUPPORTED;
    if (act->type == UCT_VARUNA_AMO_ACT_OCCUPY) {
        status = uct_varuna_amo_pair_occupy(iface, amo);
    } else if (act->type == UCT_VARUNA_AMO_ACT_CONFIRM) {
        status = uct_varuna_amo_pair_confirm(iface, amo);
    }

    return ucs_likely(status != UCS_ERR_UNSUPPORTED) ? status :
           uct_varuna_amo_post_parts(iface, amo);
}
