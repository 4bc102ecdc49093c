/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Responder's side of connecting RC: CONNECT_REQ takes a spare queue pair
 * (varuna_spare.c), connects it to the requester's and makes it the target's.
 * This happens in the async context, so that a process which computes is
 * connected to, too. It only falls to the main thread, which alone can make
 * queue pairs, when there is no spare one.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_connect.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include "varuna_spare.h"
#include "varuna_fence.h"
#include "varuna_target.h"
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/lanes/varuna_ib_addr.h>

#include <ucs/debug/log.h>
#include <string.h>

#define UCT_VARUNA_TARGET_ADDR_ROOM  64


static ucs_status_t
uct_varuna_target_find_link(const uct_varuna_iface_t *iface, unsigned nic,
                            unsigned *link_p)
{
    unsigned i;

    for (i = 0; i < iface->num_links; ++i) {
        if (iface->links[i].nic == nic) {
            *link_p = i;
            return UCS_OK;
        }
    }

    ucs_debug("nic %u is not a link of this process", nic);
    return UCS_ERR_NO_DEVICE;
}

/* Tell the requester, lock held. */
static void uct_varuna_target_reply_connect(uct_varuna_responder_t *resp,
                                            unsigned link,
                                            const uct_varuna_ctl_hdr_t *hdr,
                                            uct_varuna_target_t *target,
                                            uint8_t nic, ucs_status_t status)
{
    const uct_varuna_target_qp_t *qp = uct_varuna_target_qp(target, hdr->epoch);
    const uct_varuna_link_t *rc_link;
    char body[sizeof(uct_varuna_ctl_connect_t) +
              (2 * UCT_VARUNA_TARGET_ADDR_ROOM)];
    uct_varuna_ctl_connect_t *rep = (uct_varuna_ctl_connect_t*)body;
    size_t length                 = sizeof(*rep);
    uint32_t home_epoch;
    uint8_t home_nic;

    memset(rep, 0, sizeof(*rep));
    /* Rule 12: what the requester has believed may be wrong now */
    uct_varuna_target_tell_home(resp, &home_nic, &home_epoch);
    rep->home_nic   = home_nic;
    rep->home_epoch = home_epoch;
    if (status == UCS_OK) {
        rc_link         = &resp->iface->links[qp->link];
        rep->device_len = rc_link->device_addr_len;
        rep->ep_len     = uct_varuna_link_rc(rc_link)->attr.ep_addr_len;
        ucs_assert((rep->device_len + rep->ep_len) <= (sizeof(body) - length));
        memcpy(body + length, rc_link->device_addr, rep->device_len);
        length += rep->device_len;
        status  = uct_ep_get_address(qp->ep,
                                     (uct_ep_addr_t*)(body + length));
        length += rep->ep_len;
    }

    rep->link = nic;
    if (status != UCS_OK) {
        length          = sizeof(*rep);
        rep->device_len = 0;
        rep->ep_len     = 0;
        rep->status     = -status;
    }

    uct_varuna_ctl_reply(resp->ctl, target->peer, link, hdr,
                         UCT_VARUNA_CTL_CONNECT_REP, body, length);
}

/* Lock held. @return UCS_INPROGRESS if a QP is to be made, else what to answer. */
static ucs_status_t uct_varuna_target_check_connect(uct_varuna_target_t *target,
                                                    uint32_t epoch)
{
    const uct_varuna_target_qp_t *qp = uct_varuna_target_qp(target, epoch);

    if ((epoch <= target->fenced) || (epoch < qp->epoch) ||
        ((epoch == qp->epoch) && (qp->stopped_at != 0))) {
        return UCS_ERR_REJECTED;
    }

    return ((epoch == qp->epoch) && (qp->ep != NULL)) ? UCS_OK : UCS_INPROGRESS;
}

void uct_varuna_connect_forget(uct_varuna_responder_t *resp, uct_ep_h ep)
{
    khiter_t iter = kh_get(uct_varuna_rc_eps, &resp->targets.rc_eps, (uintptr_t)ep);

    if (iter != kh_end(&resp->targets.rc_eps)) {
        kh_val(&resp->targets.rc_eps, iter) = NULL;
    }
}

/* Make the QP of incarnation @a epoch the target's. Lock held. */
static ucs_status_t
uct_varuna_target_attach_ep(uct_varuna_responder_t *resp, uct_varuna_target_t *target,
                            uct_ep_h ep, unsigned link, uint32_t epoch)
{
    uct_varuna_target_qp_t *qp = uct_varuna_target_qp(target, epoch);
    khiter_t iter;
    int ret;

    iter = kh_put(uct_varuna_rc_eps, &resp->targets.rc_eps, (uintptr_t)ep, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        return UCS_ERR_NO_MEMORY;
    }

    if (qp->ep != NULL) {
        /* Of an incarnation whose ring is needed: it is over */
        uct_varuna_target_fence_qp(resp, target, qp);
        uct_varuna_connect_forget(resp, qp->ep);
        if (!uct_varuna_fence_disown(resp, qp)) {
            uct_varuna_spare_drop(resp, qp->ep, qp->is_reset);
        }
    }

    kh_val(&resp->targets.rc_eps, iter) = target;
    qp->ep                             = ep;
    qp->epoch                          = epoch;
    uct_varuna_target_clear_ring(target, epoch);
    qp->flags                          = 0;
    qp->epsn                           = 0;
    qp->is_reset                       = 0;
    qp->stopped_at                     = 0;
    qp->link                           = link;
    qp->attached_at                    = uct_varuna_ctl_now(resp->ctl);
    ucs_debug("rc_varuna: target %u: connected epoch=%u on %s", target->id,
              epoch, uct_varuna_link_name(resp->iface, link));
    return UCS_OK;
}

/* Lock held. @return UCS_ERR_NO_RESOURCE, and nothing is answered, if there is no
 * spare queue pair. */
static ucs_status_t
uct_varuna_target_try_connect(uct_varuna_responder_t *resp, unsigned link,
                              const uct_varuna_ctl_hdr_t *hdr,
                              const uct_varuna_ctl_connect_t *req)
{
    uct_varuna_target_t *target;
    ucs_status_t status;
    unsigned rc_link;
    khiter_t iter;
    uct_ep_h ep;

    target = uct_varuna_target_of(resp, hdr, &iter);
    if (target == NULL) {
        uct_varuna_ctl_reject(resp->ctl, link, hdr, UCS_ERR_NO_ELEM);
        return UCS_OK;
    }

    uct_varuna_fence_end_older(resp, link, hdr, req, target);
    status = uct_varuna_target_check_connect(target, hdr->epoch);
    if (status != UCS_INPROGRESS) {
        goto out_reply;
    }

    status = uct_varuna_target_find_link(resp->iface, req->link, &rc_link);
    if (status != UCS_OK) {
        goto out_reply;
    }

    /* Before it costs a queue pair */
    status = uct_varuna_rc_addr_check(&resp->iface->links[rc_link], req);
    if (status != UCS_OK) {
        goto out_reply;
    }

    if (!uct_varuna_reach_allow(resp->ctl, rc_link, req + 1,
                                       req->device_len, 1)) {
        status = UCS_ERR_EXCEEDS_LIMIT;
        goto out_reply;
    }

    ep = uct_varuna_spare_take(resp, rc_link);
    if (ep == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    status = uct_varuna_rc_connect(&resp->iface->links[rc_link], ep, req);
    if (status == UCS_OK) {
        uct_varuna_lane_read_rx_order(resp->iface, rc_link, ep);
        status = uct_varuna_target_attach_ep(resp, target, ep, rc_link,
                                             hdr->epoch);
    }

    if (status != UCS_OK) {
        uct_varuna_spare_drop(resp, ep, 0);
    }

out_reply:
    uct_varuna_target_reply_connect(resp, link, hdr, target, req->link, status);
    return UCS_OK;
}

static void uct_varuna_target_handle_connect(void *arg, unsigned link,
                                             const uct_varuna_ctl_hdr_t *hdr,
                                             const void *body)
{
    uct_varuna_responder_t *resp = arg;

    if (uct_varuna_target_try_connect(resp, link, hdr, body) != UCS_OK) {
        uct_varuna_ctl_defer(resp->ctl, link, hdr, body);
    }
}

/* There was no spare queue pair: make one first. Main thread, lock not held. */
static void uct_varuna_target_connect(void *arg, unsigned link,
                                      const uct_varuna_ctl_hdr_t *hdr,
                                      const void *body)
{
    uct_varuna_responder_t *resp               = arg;
    const uct_varuna_ctl_connect_t *req = body;
    unsigned rc_link;

    if (uct_varuna_target_find_link(resp->iface, req->link, &rc_link) ==
        UCS_OK) {
        uct_varuna_spares_make(resp, rc_link, 1);
    }

    /* If another request took the spare one meanwhile, the requester asks again */
    uct_varuna_ctl_lock(resp->ctl);
    uct_varuna_target_try_connect(resp, link, hdr, req);
    uct_varuna_ctl_unlock(resp->ctl);
}

static const uct_varuna_bus_reg_t uct_varuna_connect_rows[] = {
    {UCT_VARUNA_CTL_CONNECT_REQ, UCT_VARUNA_BUS_ASYNC,
     uct_varuna_target_handle_connect},
    {UCT_VARUNA_CTL_CONNECT_REQ, UCT_VARUNA_BUS_MAIN, uct_varuna_target_connect}
};

void uct_varuna_connect_init(uct_varuna_responder_t *resp)
{
    uct_varuna_bus_register(&resp->ctl->bus, uct_varuna_connect_rows,
                            ucs_static_array_size(uct_varuna_connect_rows), resp);
}

int uct_varuna_target_ep_failed(uct_varuna_responder_t *resp, uct_ep_h inner)
{
    int found = 0;
    uct_varuna_target_t *target;
    khiter_t iter;

    uct_varuna_ctl_lock(resp->ctl);
    iter = kh_get(uct_varuna_rc_eps, &resp->targets.rc_eps, (uintptr_t)inner);
    if (iter != kh_end(&resp->targets.rc_eps)) {
        /* The requester finds out by itself, and decides */
        found = 1;
        target = kh_val(&resp->targets.rc_eps, iter);
        ucs_debug("target %d: endpoint %p failed",
                  (target == NULL) ? -1 : (int)target->id, inner);
    }

    uct_varuna_ctl_unlock(resp->ctl);
    return found;
}
