/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Creation and destruction of the vQP.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ep_life.h"
#include <uct/ib/varuna/ctl/varuna_path.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/md/varuna_component.h>
#include "varuna_compare.h"
#include "varuna_completion.h"
#include "varuna_eps.h"
#include "varuna_farewell.h"
#include "varuna_lane.h"
#include "varuna_pending.h"
#include <uct/ib/varuna/lanes/varuna_grave.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include "varuna_sm.h"
#include "varuna_stat.h"
#include "varuna_ring.h"
#include "varuna_verdict.h"

#include <ucs/debug/memtrack_int.h>

static UCS_CLASS_INIT_FUNC(uct_varuna_ep_t, const uct_ep_params_t *params)
{
    uct_varuna_iface_t *iface = ucs_derived_of(params->iface,
                                               uct_varuna_iface_t);
    ucs_status_t status;

    UCT_EP_PARAMS_CHECK_DEV_IFACE_ADDRS(params);
    UCS_CLASS_CALL_SUPER_INIT(uct_base_ep_t, &iface->super);

    memset(UCS_PTR_BYTE_OFFSET(self, sizeof(self->super)), 0,
           sizeof(*self) - sizeof(self->super));
    ucs_queue_head_init(&self->pend.queue);
    self->hot.log_next = 1; /* Nothing in a fresh completion log matches it */
    self->hot.gate     = 1;
    uct_varuna_ep_amo_init(&self->amo);
    self->lane.link  = UCT_VARUNA_LINK_NONE;
    self->fence_beat = uct_varuna_requester(iface)->fence_beat;
    self->lanes.path_index = UCT_EP_PARAMS_GET_PATH_INDEX(params);

    status = uct_varuna_peer_get(iface->ctl, params->dev_addr,
                                 params->iface_addr, SIZE_MAX, &self->peer);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_stat_init(self);
    if (status != UCS_OK) {
        goto err_put_peer;
    }

    status = uct_varuna_ep_add(iface, self);
    if (status != UCS_OK) {
        goto err_stat_cleanup;
    }

    self->instance    = ++uct_varuna_requester(iface)->ep_instances;
    uct_varuna_sm_start(self);
    return UCS_OK;

err_stat_cleanup:
    uct_varuna_stat_cleanup(self);
err_put_peer:
    uct_varuna_peer_put(iface->ctl, self->peer);
    return status;
}

/* The lane's completions must not find us any more. */
static void uct_varuna_ep_abandon_lane(uct_varuna_ep_t *ep,
                                       const uct_varuna_lane_t *lane)
{
    uct_varuna_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                               uct_varuna_iface_t);
    khiter_t iter;

    if (lane->ep == NULL) {
        return;
    }

    iter = kh_get(uct_varuna_inner_eps, &uct_varuna_requester(iface)->inner_eps, (uintptr_t)lane->ep);
    kh_del(uct_varuna_inner_eps, &uct_varuna_requester(iface)->inner_eps, iter);
    uct_varuna_tl_stop(lane->ep, lane->kind);
    uct_varuna_grave_bury(iface, lane->ep, lane->kind, uct_varuna_ep_take_reqs(ep),
                          uct_varuna_remains_release);
}

/* Over the link in use at first, unless it is known to be bad */
static void uct_varuna_ep_say_farewell(uct_varuna_ep_t *ep,
                                       const uct_varuna_lane_t *lane)
{
    unsigned usable                  = uct_varuna_peer_usable_links(ep->peer);
    const uct_varuna_ctl_hdr_t whose = {
        .secret  = ep->peer->secret,
        .opening = ep->remote.opening,
        .vqp     = ep->id,
        .epoch   = ep->instance
    };
    unsigned link;

    usable = (usable == 0) ? ep->peer->link_map : usable;
    link   = ((lane->link != UCT_VARUNA_LINK_NONE) &&
              (usable & UCS_BIT(lane->link))) ? lane->link :
             (unsigned)ucs_ffs64(usable);
    uct_varuna_farewell_say(uct_varuna_requester(uct_varuna_ep_iface(ep)), ep->peer, link,
                            &whose);
}

static UCS_CLASS_CLEANUP_FUNC(uct_varuna_ep_t)
{
    uct_varuna_iface_t *iface = ucs_derived_of(self->super.super.iface,
                                               uct_varuna_iface_t);
    uct_varuna_lane_t lane    = self->lane;

    if (self->hot.num_reqs > 0) {
        ucs_debug("ep %p: destroyed with %u unfinished requests", self,
                  self->hot.num_reqs);
    }

    if (self->lane.ep != NULL) {
        uct_varuna_ep_leave_inner_pending(self, self->lane.ep);
    }

    /* At most one lane has ever been given what is unfinished */
    uct_varuna_sm_end(self);
    self->lane.ep = NULL;
    uct_varuna_ep_settle(self);
    uct_varuna_compare_detach(self);
    uct_varuna_ep_detach_reqs(self);
    uct_varuna_ep_abandon_lane(self, &lane);
    uct_varuna_ep_abandon_lane(self, &self->recovery.dead);
    uct_varuna_ep_forget_left(self);
    uct_varuna_remains_release(uct_varuna_ep_take_reqs(self));
    uct_varuna_requester(iface)->amo->fail_all(self, UCS_ERR_CANCELED);
    uct_varuna_ep_drop_next(self);
    uct_varuna_ep_pending_purge(&self->super.super, NULL, NULL);

    if (self->sm.on_work) {
        ucs_list_del(&self->sm.work);
    }

    uct_varuna_requester(iface)->amo->close(self);
    if ((self->remote.logs_addr != 0) || (self->ask.retry.tries > 0)) {
        uct_varuna_ep_say_farewell(self, &lane);
    }

    if (self->remote.logs_addr != 0) {
        uct_rkey_release(&uct_varuna_component, &self->remote.log_bundle);
    }

    uct_varuna_ep_remove(iface, self);
    uct_varuna_peer_put(iface->ctl, self->peer);
    uct_varuna_stat_cleanup(self);
}

UCS_CLASS_DEFINE(uct_varuna_ep_t, uct_base_ep_t)

/* As UCS_CLASS_DEFINE_NEW_FUNC would define it, but what the posting path needs begins at
 * a cache line. */
ucs_status_t uct_varuna_ep_t_new(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    ucs_status_t status;
    void *ep;

    *ep_p = NULL;
    if (ucs_posix_memalign(&ep, UCS_SYS_CACHE_LINE_SIZE, sizeof(uct_varuna_ep_t),
                           "uct_varuna_ep_t") != 0) {
        return UCS_ERR_NO_MEMORY;
    }

    status = UCS_CLASS_INIT(uct_varuna_ep_t, ep, params);
    if (status != UCS_OK) {
        ucs_class_free(ep);
        return status;
    }

    *ep_p = ep;
    return UCS_OK;
}

UCS_CLASS_DEFINE_DELETE_FUNC(uct_varuna_ep_t, uct_ep_t);
