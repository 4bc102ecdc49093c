/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Responder's side of vQPs: opens, fences and closes them at the requester's
 * wish, and owns their completion logs (varuna_connect.c connects them). It may
 * never call its progress function, so what recovery needs runs in the async
 * context.
 *
 * Incarnation e writes its log into ring (e % UCT_VARUNA_LOG_COUNT). A ring is cleared
 * when the incarnation before is fenced, and when it is connected: entries of an older
 * incarnation would prove nothing.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/ctl/varuna_addr.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/ctl/varuna_ctl_priv.h>
#include "varuna_gap.h"
#include <uct/ib/varuna/ucx/varuna_mlx5.h>
#include <uct/ib/varuna/core/varuna_mutate.h>
#include "varuna_orphan.h"
#include <uct/ib/varuna/ctl/varuna_stranger.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>
#include <string.h>

/* More completions than the receive queues of all links hold */
#define UCT_VARUNA_TARGET_MAX_POLL   (2 * UCT_VARUNA_MAX_LINKS * 8192)


uct_varuna_target_t *
uct_varuna_target_by_name(uct_varuna_ctl_t *ctl,
                          const uct_varuna_ctl_hdr_t *hdr, khiter_t *iter_p)
{
    uct_varuna_target_key_t key = {
        .peer = {.uuid = hdr->uuid, .secret = hdr->secret},
        .vqp  = hdr->vqp
    };

    *iter_p = kh_get(uct_varuna_targets, &ctl->targets.by_name, key);
    return (*iter_p == kh_end(&ctl->targets.by_name)) ? NULL :
           kh_val(&ctl->targets.by_name, *iter_p);
}

uct_varuna_target_t *uct_varuna_target_of(uct_varuna_ctl_t *ctl,
                                          const uct_varuna_ctl_hdr_t *hdr,
                                          khiter_t *iter_p)
{
    uct_varuna_target_t *target = uct_varuna_target_by_name(ctl, hdr, iter_p);

    if ((target == NULL) || ((target->opening != hdr->opening) &&
                             !uct_varuna_mutate(ANY_OPENING))) {
        ++ctl->iface->target_stats.mismatched;
        return NULL;
    }

    return target;
}


/* --- OPEN_REQ, async context --- */

/* Takes over the reference to @a peer in case of success. */
static ucs_status_t uct_varuna_target_create(uct_varuna_ctl_t *ctl,
                                             uct_varuna_peer_t *peer,
                                             uint32_t vqp, uint32_t instance,
                                             uct_varuna_target_t **target_p)
{
    uct_varuna_target_key_t key = {
        .peer = {.uuid = peer->uuid, .secret = peer->secret},
        .vqp  = vqp
    };
    uct_varuna_target_t *target;
    ucs_status_t status;
    khiter_t iter;
    uint32_t id;
    int ret;

    target = ucs_calloc(1, sizeof(uct_varuna_target_impl_t), "varuna_target");
    if (target == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err;
    }

    status = uct_varuna_secret_number(&target->opening);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_varuna_target_id_get(ctl, &id);
    if (status != UCS_OK) {
        goto err_free;
    }

    iter = kh_put(uct_varuna_targets, &ctl->targets.by_name, key, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        status = UCS_ERR_NO_MEMORY;
        goto err_put_id;
    }

    target->peer     = peer;
    target->vqp      = vqp;
    target->instance = instance;
    target->id       = id;
    target->logs     = uct_varuna_target_log(ctl, id);
    uct_varuna_target_impl(target)->first_slot = UCT_VARUNA_SLOT_NONE;
    uct_varuna_held_init(&target->held, &peer->num_held, &ctl->iface->received.num_held);
    memset(target->logs, 0, UCT_VARUNA_TARGET_LOG_BYTES);

    kh_val(&ctl->targets.by_name, iter) = target;
    ++ctl->iface->target_stats.open;
    ++ctl->targets.count;
    uct_varuna_orphan_open(peer);
    uct_varuna_target_publish(ctl, id, target);
    ucs_debug("rc_varuna: opened target %u for vqp=%u of peer 0x%lx", id, vqp,
              peer->uuid);
    *target_p = target;
    return UCS_OK;

err_put_id:
    uct_varuna_target_id_put(ctl, id);
err_free:
    ucs_free(target);
err:
    return status;
}

/* @param [in] peer  The requester, NULL if it is not known yet. */
static int uct_varuna_target_may_open(const uct_varuna_ctl_t *ctl,
                                      const uct_varuna_peer_t *peer)
{
    const uct_varuna_iface_t *iface = ctl->iface;

    return (ctl->targets.count < iface->config.max_targets) &&
           ((peer == NULL) ||
            (peer->orphan.targets < iface->config.max_peer_targets));
}

static void uct_varuna_target_reply_open(uct_varuna_ctl_t *ctl, unsigned link,
                                         const uct_varuna_ctl_hdr_t *hdr,
                                         uct_varuna_target_t *target)
{
    const uct_varuna_own_t *own = uct_varuna_target_log_key(ctl, target->id);
    char body[UCT_VARUNA_CTL_MAX_MSG - sizeof(*hdr)];
    uct_varuna_ctl_open_rep_t *rep = (uct_varuna_ctl_open_rep_t*)body;
    size_t length                  = sizeof(*rep);
    uct_varuna_ctl_hdr_t whose;

    memset(rep, 0, sizeof(*rep));
    rep->log_addr  = (uintptr_t)target->logs;
    rep->target    = target->id ^ ctl->targets.salt;
    rep->log_size  = UCT_VARUNA_LOG_SIZE;
    rep->log_count = UCT_VARUNA_LOG_COUNT;
    rep->rkey_len  = own->key_len;
    memcpy(body + length, own->key, own->key_len);
    length        += rep->rkey_len;
    rep->addr_len  = uct_varuna_iface_pack_full_address(ctl->iface,
                                                        body + length,
                                                        sizeof(body) - length);
    length        += rep->addr_len;
    length        += uct_varuna_proxy_fill_open(ctl->proxy, target, rep,
                                                body + length);

    whose         = *hdr;
    whose.opening = target->opening;
    uct_varuna_ctl_reply(ctl, target->peer, link, &whose,
                         UCT_VARUNA_CTL_OPEN_REP, body, length);
}

static void uct_varuna_target_handle_open(void *arg, unsigned link,
                                          const uct_varuna_ctl_hdr_t *hdr,
                                          const void *body)
{
    uct_varuna_ctl_t *ctl                = arg;
    const uct_varuna_ctl_open_req_t *req = body;
    uct_varuna_parsed_addr_t parsed;
    uct_varuna_target_t *target;
    uct_varuna_peer_t *peer;
    ucs_status_t status;
    const char *reason;
    khiter_t iter;

    status = uct_varuna_parse_addr(NULL, req + 1, req->addr_len, &parsed,
                                   &reason);
    if ((status == UCS_OK) && (parsed.uuid != hdr->uuid)) {
        reason = "its address is another peer's";
        status = UCS_ERR_INVALID_ADDR;
    }

    if (status != UCS_OK) {
        uct_varuna_ctl_complain(ctl, hdr->uuid, "a request to open an endpoint",
                                reason);
        return;
    }

    target = uct_varuna_target_by_name(ctl, hdr, &iter);
    if ((target != NULL) && (target->instance == hdr->epoch)) {
        uct_varuna_target_reply_open(ctl, link, hdr, target);
        return;
    } else if ((target != NULL) &&
               UCS_CIRCULAR_COMPARE32(hdr->epoch, <, target->instance)) {
        ucs_debug("dropped OPEN_REQ of vqp %u instance %u: there is %u",
                  hdr->vqp, hdr->epoch, target->instance);
        return;
    } else if (target != NULL) {
        /* The id is used again, and the last one's CLOSE was lost */
        uct_varuna_target_drop(ctl, iter);
    }

    if (!uct_varuna_target_may_open(ctl, uct_varuna_peer_find(ctl, hdr->uuid,
                                                              hdr->secret))) {
        uct_varuna_ctl_complain(ctl, hdr->uuid, "a request to open an endpoint",
                                "MAX_TARGETS or MAX_PEER_TARGETS are open");
        uct_varuna_ctl_reject(ctl, link, hdr, UCS_ERR_EXCEEDS_LIMIT);
        return;
    }

    status = uct_varuna_peer_open(ctl, &parsed, hdr->secret, &peer);
    if (status != UCS_OK) {
        uct_varuna_ctl_complain(ctl, hdr->uuid, "a request to open an endpoint",
                                "none of its links can be reached from here");
        return;
    }

    status = uct_varuna_target_create(ctl, peer, hdr->vqp, hdr->epoch,
                                      &target);
    if (status != UCS_OK) {
        uct_varuna_ctl_reject(ctl, link, hdr, status);
        uct_varuna_peer_put(ctl, peer);
        return;
    }

    uct_varuna_target_reply_open(ctl, link, hdr, target);
}


/* --- FENCE_REQ, async context --- */

/*
 * Move a QP to ERR and note what it leaves. After this nothing of its incarnation
 * is executed here. The expected PSN is asked for only now, as before it may
 * still move. If the NIC doesn't obey, the next request tries again.
 */
void uct_varuna_target_fence_qp(const uct_varuna_target_t *target,
                                uct_varuna_target_qp_t *qp)
{
    ucs_status_t status;

    if ((qp->ep == NULL) || (qp->flags & UCT_VARUNA_FENCE_FLAG_QP)) {
        return; /* Once */
    }

    status = uct_varuna_mutate(NO_FENCE) ? UCS_OK :
             uct_varuna_compat_ep_invalidate(qp->ep);
    if (status != UCS_OK) {
        ucs_diag("target %u: failed to fence incarnation %u: %s", target->id,
                 qp->epoch, ucs_status_string(status));
        return;
    }

    qp->flags = UCT_VARUNA_FENCE_FLAG_QP;
    status    = uct_varuna_mlx5_ep_query_epsn(qp->ep, &qp->epsn);
    if (status == UCS_OK) {
        qp->epsn  &= UCS_MASK(24);
        qp->flags |= UCT_VARUNA_FENCE_FLAG_PSN;
    } else {
        qp->epsn   = 0;
    }

    ucs_debug("rc_varuna: target %u: fenced epoch=%u, expected psn %s%u",
              target->id, qp->epoch, (status == UCS_OK) ? "" : "unknown ",
              qp->epsn);
}

/* Leftovers of an older incarnation in the ring prove nothing. */
void uct_varuna_target_clear_ring(uct_varuna_target_t *target, uint32_t epoch)
{
    unsigned ring = uct_varuna_log_ring(epoch);

    memset(target->logs + (ring * UCT_VARUNA_LOG_SIZE), 0,
           UCT_VARUNA_LOG_SIZE * sizeof(uint64_t));
}

static void uct_varuna_target_handle_fence(void *arg, unsigned link,
                                           const uct_varuna_ctl_hdr_t *hdr,
                                           const void *req_body)
{
    uct_varuna_ctl_t *ctl                 = arg;
    const uct_varuna_ctl_fence_req_t *req = req_body;
    char body[sizeof(uct_varuna_ctl_fence_rep_t) +
              (UCT_VARUNA_LOG_SIZE * sizeof(uint64_t))];
    uct_varuna_ctl_fence_rep_t *rep = (uct_varuna_ctl_fence_rep_t*)body;
    unsigned ring                   = uct_varuna_log_ring(hdr->epoch);
    uct_varuna_target_t *target;
    uct_varuna_target_qp_t *qp;
    khiter_t iter;
    unsigned i;

    target = uct_varuna_target_of(ctl, hdr, &iter);
    if (target == NULL) {
        uct_varuna_ctl_reject(ctl, link, hdr, UCS_ERR_NO_ELEM);
        return;
    }

    if (hdr->epoch > target->fenced) {
        /* The next incarnation logs in the other ring, which has been read */
        uct_varuna_target_clear_ring(target, hdr->epoch + 1);
        /* A connection that was asked for before is given up as well: made
         * later, it would clear the ring of an incarnation which is in use */
        target->fenced = ucs_max(hdr->epoch, req->newest);
    }

    for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
        qp = &uct_varuna_target_impl(target)->qps[i];
        if (qp->epoch <= target->fenced) {
            uct_varuna_target_fence_qp(target, qp);
        }
    }

    memset(rep, 0, sizeof(*rep));
    rep->log_size = UCT_VARUNA_LOG_SIZE;
    rep->round    = req->round;
    qp            = uct_varuna_target_qp(target, hdr->epoch);
    if (qp->epoch == hdr->epoch) {
        rep->flags = qp->flags;
        rep->epsn  = qp->epsn;
    }

    /* Behind the fence, so that nothing lands between */
    ucs_memory_cpu_load_fence();
    memcpy(rep + 1, target->logs + (ring * UCT_VARUNA_LOG_SIZE),
           sizeof(body) - sizeof(*rep));
    uct_varuna_ctl_reply(ctl, target->peer, link, hdr, UCT_VARUNA_CTL_FENCE_REP,
                         body, sizeof(body));

    if ((rep->flags & UCT_VARUNA_FENCE_FLAG_QP) || (req->round > 0)) {
        /* Nothing comes on the old lane any more: the main thread looks whether
         * all has come that was acknowledged */
        uct_varuna_ctl_defer(ctl, link, hdr, req_body);
    }
}

/* Main thread: all messages which FENCE_REQ says are acknowledged must come. */
static void uct_varuna_target_handle_acked(void *arg, unsigned link,
                                           const uct_varuna_ctl_hdr_t *hdr,
                                           const void *body)
{
    uct_varuna_ctl_t *ctl                 = arg;
    const uct_varuna_ctl_fence_req_t *req = body;
    uct_varuna_target_t *target;
    khiter_t iter;

    uct_varuna_ctl_lock(ctl);
    target = uct_varuna_target_of(ctl, hdr, &iter);
    uct_varuna_ctl_unlock(ctl);
    if (target != NULL) {
        uct_varuna_gap_watch(ctl->iface, target, req->am_acked);
    }
}


/* --- CLOSE --- */

void uct_varuna_target_drop(uct_varuna_ctl_t *ctl, khiter_t iter)
{
    uct_varuna_target_t *target = kh_val(&ctl->targets.by_name, iter);

    --target->peer->orphan.targets;
    --ctl->iface->target_stats.open;
    kh_del(uct_varuna_targets, &ctl->targets.by_name, iter);
    ucs_list_add_tail(&ctl->targets.closed,
                      &uct_varuna_target_impl(target)->list);
    uct_varuna_ctl_notify(ctl);
}

/* An endpoint that was closed before it knew of the opening names its instance. */
static int uct_varuna_target_is_closed_by(const uct_varuna_target_t *target,
                                          const uct_varuna_ctl_hdr_t *hdr)
{
    return (hdr->opening == 0) ? (target->instance == hdr->epoch) :
           ((target->opening == hdr->opening) ||
            uct_varuna_mutate(ANY_OPENING));
}

/* Take the target out of the table of names, and answer that it is gone, or was before. */
static void uct_varuna_target_handle_close(void *arg, unsigned link,
                                           const uct_varuna_ctl_hdr_t *hdr,
                                           const void *body)
{
    uct_varuna_ctl_t *ctl = arg;
    uct_varuna_target_t *target;
    uct_varuna_peer_t *peer;
    khiter_t iter;

    target = uct_varuna_target_by_name(ctl, hdr, &iter);
    if ((target != NULL) && !uct_varuna_target_is_closed_by(target, hdr)) {
        ++ctl->iface->target_stats.mismatched;
        return;
    }

    /* It is sent again if our answer is lost. A peer that has no other endpoint here is
     * not known then, gets no answer, and gives up in the end. */
    peer = (target != NULL) ? target->peer :
           uct_varuna_peer_find(ctl, hdr->uuid, hdr->secret);
    if (peer != NULL) {
        uct_varuna_ctl_reply(ctl, peer, link, hdr, UCT_VARUNA_CTL_CLOSE_REP,
                             NULL, 0);
    } else {
        ++ctl->iface->target_stats.mismatched;
    }

    if (target != NULL) {
        uct_varuna_target_drop(ctl, iter);
    }
}

void uct_varuna_target_disconnect(uct_varuna_ctl_t *ctl,
                                  uct_varuna_target_t *target)
{
    uct_varuna_target_qp_t *qp;
    unsigned i;

    uct_varuna_gap_forget(target);
    uct_varuna_held_clear(&target->held);

    /* Its name is gone, so the async context doesn't find it any more */
    for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
        qp = &uct_varuna_target_impl(target)->qps[i];
        if (qp->ep != NULL) {
            uct_varuna_target_destroy_ep(ctl, qp->ep);
            qp->ep = NULL;
        }
    }
}

void uct_varuna_target_destroy(uct_varuna_ctl_t *ctl,
                               uct_varuna_target_t *target)
{
    ucs_debug("rc_varuna: closed target %u of peer 0x%lx", target->id,
              target->peer->uuid);
    uct_varuna_target_publish(ctl, target->id, NULL);
    uct_varuna_target_disconnect(ctl, target);

    uct_varuna_ctl_lock(ctl);
    uct_varuna_proxy_close_target(ctl->proxy, target);
    uct_varuna_target_id_put(ctl, target->id);
    uct_varuna_peer_put(ctl, target->peer);
    --ctl->targets.count;
    uct_varuna_ctl_unlock(ctl);
    ucs_free(target);
}

/* Messages which were acknowledged before CLOSE was sent are in our completion
 * queues: they are delivered before their vQP is forgotten. */
static void uct_varuna_targets_poll_lanes(uct_varuna_ctl_t *ctl)
{
    unsigned count = 0;
    unsigned polled;

    do {
        polled = uct_varuna_lanes_progress(ctl->iface);
        count += polled;
    } while ((polled > 0) && (count < UCT_VARUNA_TARGET_MAX_POLL));
}

void uct_varuna_targets_progress(uct_varuna_ctl_t *ctl)
{
    uct_varuna_target_impl_t *impl;
    ucs_list_link_t closed;

    uct_varuna_spares_progress(ctl);
    uct_varuna_target_logs_progress(ctl);

    ucs_list_head_init(&closed);
    uct_varuna_ctl_lock(ctl);
    ucs_list_splice_tail(&closed, &ctl->targets.closed);
    ucs_list_head_init(&ctl->targets.closed);
    uct_varuna_ctl_unlock(ctl);
    if (ucs_list_is_empty(&closed)) {
        return;
    }

    uct_varuna_targets_poll_lanes(ctl);
    while (!ucs_list_is_empty(&closed)) {
        impl = ucs_list_extract_head(&closed, uct_varuna_target_impl_t, list);
        if (impl->super.orphan) {
            uct_varuna_orphan_keep(ctl, &impl->super);
        } else {
            uct_varuna_target_destroy(ctl, &impl->super);
        }
    }
}

static const uct_varuna_bus_reg_t uct_varuna_target_rows[] = {
    {UCT_VARUNA_CTL_OPEN_REQ,  UCT_VARUNA_BUS_ASYNC, uct_varuna_target_handle_open},
    {UCT_VARUNA_CTL_FENCE_REQ, UCT_VARUNA_BUS_ASYNC, uct_varuna_target_handle_fence},
    {UCT_VARUNA_CTL_FENCE_REQ, UCT_VARUNA_BUS_MAIN,  uct_varuna_target_handle_acked},
    {UCT_VARUNA_CTL_CLOSE,     UCT_VARUNA_BUS_ASYNC, uct_varuna_target_handle_close}
};

ucs_status_t uct_varuna_targets_init(uct_varuna_ctl_t *ctl)
{
    uct_varuna_target_table_t *table = &ctl->targets;
    ucs_status_t status;

    status = uct_varuna_target_logs_init(ctl);
    if (status != UCS_OK) {
        return status;
    }

    table->salt = ((ctl->iface->uuid ^ (ctl->iface->uuid >> 23) ^
                    (ctl->iface->uuid >> 46)) *
                   UCT_VARUNA_TARGET_ID_LIMIT) &
                  UCS_MASK(32 - UCT_VARUNA_AM_ID_BITS);
    kh_init_inplace(uct_varuna_targets, &table->by_name);
    kh_init_inplace(uct_varuna_rc_eps, &table->rc_eps);
    ucs_list_head_init(&table->closed);
    ucs_list_head_init(&table->orphans);
    uct_varuna_bus_register(&ctl->bus, uct_varuna_target_rows,
                            ucs_static_array_size(uct_varuna_target_rows), ctl);
    uct_varuna_connect_init(ctl);
    return UCS_OK;
}

void uct_varuna_targets_cleanup(uct_varuna_ctl_t *ctl)
{
    uct_varuna_target_table_t *table = &ctl->targets;
    uct_varuna_target_impl_t *impl;
    uct_varuna_target_t *target;

    kh_foreach_value(&table->by_name, target, {
        uct_varuna_target_destroy(ctl, target);
    });
    while (!ucs_list_is_empty(&table->closed)) {
        impl = ucs_list_extract_head(&table->closed, uct_varuna_target_impl_t,
                                     list);
        uct_varuna_target_destroy(ctl, &impl->super);
    }
    uct_varuna_orphans_cleanup(ctl);
    kh_destroy_inplace(uct_varuna_targets, &table->by_name);
    kh_destroy_inplace(uct_varuna_rc_eps, &table->rc_eps);
    uct_varuna_target_logs_cleanup(ctl);
}
