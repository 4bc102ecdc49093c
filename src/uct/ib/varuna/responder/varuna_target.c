/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Responder's side of vQPs: opens and closes them at the requester's wish, and
 * owns their completion logs (varuna_connect.c connects them, varuna_fence.c stops
 * them). It may never call its progress function, so what recovery needs runs in the
 * async context.
 *
 * Incarnation e writes its log into ring (e % UCT_VARUNA_LOG_COUNT). A ring is cleared
 * when the incarnation before is fenced, and when it is connected: entries of an older
 * incarnation would prove nothing.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_ports.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_bus.h>
#include <uct/ib/varuna/core/varuna_oplog.h>
#include "varuna_responder.h"
#include "varuna_fence.h"
#include "varuna_target.h"
#include <uct/ib/varuna/core/varuna_held.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/ucx/varuna_random.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>
#include <string.h>

/* Lock held. @return The target of that name, maybe of another opening. */
static uct_varuna_target_t *
uct_varuna_target_by_name(uct_varuna_responder_t *resp,
                          const uct_varuna_ctl_hdr_t *hdr, khiter_t *iter_p)
{
    uct_varuna_target_key_t key = {
        .peer = {.uuid = hdr->uuid, .secret = hdr->secret},
        .vqp  = hdr->vqp
    };

    *iter_p = kh_get(uct_varuna_targets, &resp->targets.by_name, key);
    return (*iter_p == kh_end(&resp->targets.by_name)) ? NULL :
           kh_val(&resp->targets.by_name, *iter_p);
}

uct_varuna_target_t *uct_varuna_target_of(uct_varuna_responder_t *resp,
                                          const uct_varuna_ctl_hdr_t *hdr,
                                          khiter_t *iter_p)
{
    uct_varuna_target_t *target = uct_varuna_target_by_name(resp, hdr, iter_p);

    if ((target == NULL) || (target->opening != hdr->opening)) {
        ++resp->ctl->stats.mismatched;
        return NULL;
    }

    target->is_used = 1;
    return target;
}

uct_varuna_target_t *uct_varuna_target_asked(uct_varuna_responder_t *resp, unsigned link,
                                             const uct_varuna_ctl_hdr_t *hdr)
{
    uct_varuna_target_t *target;
    khiter_t iter;

    target = uct_varuna_target_of(resp, hdr, &iter);
    if (target == NULL) {
        uct_varuna_ctl_reject(resp->ctl, link, hdr, UCS_ERR_NO_ELEM);
    } else if (__atomic_load_n(&target->broken, __ATOMIC_RELAXED)) {
        /* That it is was said before, maybe while no link worked */
        uct_varuna_ctl_reject(resp->ctl, link, hdr, UCS_ERR_CONNECTION_RESET);
        return NULL;
    }

    return target;
}


/* --- OPEN_REQ, async context --- */

/* The number in headers of active messages */
static ucs_status_t uct_varuna_target_add_number(uct_varuna_responder_t *resp,
                                                 uct_varuna_target_t *target)
{
    ucs_status_t status;
    uint32_t random;

    do {
        status = uct_varuna_random(&random, sizeof(random));
        if (status == UCS_OK) {
            status = uct_varuna_numbers_add(&resp->targets.numbers, &target->am,
                                            random);
        }
    } while (status == UCS_ERR_ALREADY_EXISTS);

    return status;
}

/* Its id and opening are known */
static void uct_varuna_target_init(uct_varuna_responder_t *resp,
                                   uct_varuna_target_t *target,
                                   uct_varuna_peer_t *peer)
{
    target->peer     = peer;
    target->logs     = uct_varuna_target_log(resp, target->id);
    target->next_seq = uct_varuna_am_seq_first(target->opening);
    target->expected = UCT_VARUNA_TARGET_EXPECTS_NONE;
    if (resp->amo != NULL) {
        resp->amo->open_target(target);
    }
    uct_varuna_held_init(&target->held, &uct_varuna_responder_peer(resp, peer)->num_held,
                         &resp->received.num_held);
    memset(target->logs, 0, UCT_VARUNA_LOG_BYTES);
}

/* One more of a peer */
static void uct_varuna_target_count(uct_varuna_responder_t *resp,
                                    uct_varuna_peer_t *peer)
{
    ++resp->stats.open;
    ++resp->targets.count;
    ++resp->unused.num;
    ++uct_varuna_responder_peer(resp, peer)->targets;
}

static uct_varuna_target_t *uct_varuna_target_alloc(const uct_varuna_responder_t *resp)
{
    size_t part = (resp->amo == NULL) ? 0 : resp->amo->target_part;

    return ucs_calloc(1, sizeof(uct_varuna_target_t) + part, "varuna_target");
}

/* Takes over the reference to @a peer in case of success. */
static ucs_status_t uct_varuna_target_create(uct_varuna_responder_t *resp,
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

    target = uct_varuna_target_alloc(resp);
    if (target == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err;
    }

    status = uct_varuna_random_number(&target->opening);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_varuna_target_id_get(resp, &id);
    if (status != UCS_OK) {
        goto err_free;
    }

    iter = kh_put(uct_varuna_targets, &resp->targets.by_name, key, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        status = UCS_ERR_NO_MEMORY;
        goto err_put_id;
    }

    target->vqp      = vqp;
    target->instance = instance;
    target->id       = id;
    uct_varuna_target_init(resp, target, peer);
    status = uct_varuna_target_add_number(resp, target);
    if (status != UCS_OK) {
        goto err_del_name;
    }

    kh_val(&resp->targets.by_name, iter) = target;
    uct_varuna_target_count(resp, peer);
    uct_varuna_peer_heard(peer, uct_varuna_ctl_now(resp->ctl));
    ucs_debug("rc_varuna: opened target %u for vqp=%u of peer 0x%lx", id, vqp,
              peer->uuid);
    *target_p = target;
    return UCS_OK;

err_del_name:
    kh_del(uct_varuna_targets, &resp->targets.by_name, iter);
err_put_id:
    uct_varuna_target_id_put(resp, id);
err_free:
    ucs_free(target);
err:
    return status;
}

/* One peer may have this part of MAX_TARGETS, so that it leaves some to others. */
#define UCT_VARUNA_TARGET_PEER_SHARE 10

/* @param [in] peer  The requester, NULL if it is not known yet. */
static int uct_varuna_target_may_open(const uct_varuna_responder_t *resp,
                                      const uct_varuna_peer_t *peer)
{
    unsigned max      = resp->iface->config.max_targets;
    unsigned peer_max = ucs_max(1, max / UCT_VARUNA_TARGET_PEER_SHARE);

    return (resp->targets.count < max) &&
           ((peer == NULL) ||
            (uct_varuna_responder_peer(resp, peer)->targets < peer_max));
}

void uct_varuna_target_tell_home(const uct_varuna_responder_t *resp, uint8_t *nic_p,
                                 uint32_t *epoch_p)
{
    *nic_p   = UCT_VARUNA_HOME_NONE;
    *epoch_p = 0;
    if (resp->amo != NULL) {
        resp->amo->tell_home(nic_p, epoch_p);
    }
}

static size_t uct_varuna_target_fill_amo(uct_varuna_responder_t *resp,
                                         uct_varuna_target_t *target,
                                         uct_varuna_ctl_open_rep_t *rep, void *tail)
{
    size_t length = (resp->amo == NULL) ? 0 :
                    resp->amo->fill_open(resp, target, rep, tail);
    uint32_t epoch;
    uint8_t nic;

    uct_varuna_target_tell_home(resp, &nic, &epoch);
    rep->atomic_mode = resp->iface->md->atomic_mode;
    rep->home_nic    = nic;
    rep->home_epoch  = epoch;
    return length;
}

void uct_varuna_target_reply_open(uct_varuna_responder_t *resp, unsigned link,
                                  const uct_varuna_ctl_hdr_t *hdr,
                                  uct_varuna_target_t *target)
{
    const uct_varuna_own_t *own = uct_varuna_target_log_key(resp, target->id);
    char body[UCT_VARUNA_CTL_MAX_MSG - sizeof(*hdr)];
    uct_varuna_ctl_open_rep_t *rep = (uct_varuna_ctl_open_rep_t*)body;
    size_t length                  = sizeof(*rep);
    uct_varuna_ctl_hdr_t whose;

    memset(rep, 0, sizeof(*rep));
    rep->log_addr  = own->address;
    rep->target    = target->am.number;
    rep->log_size  = UCT_VARUNA_LOG_SIZE;
    rep->log_count = UCT_VARUNA_LOG_COUNT;
    rep->rkey_len  = own->key_len;
    memcpy(body + length, own->key, own->key_len);
    length        += rep->rkey_len;
    rep->addr_len  = uct_varuna_iface_pack_full_address(resp->iface,
                                                        body + length,
                                                        sizeof(body) - length);
    length        += rep->addr_len;
    length        += uct_varuna_target_fill_amo(resp, target, rep, body + length);

    whose         = *hdr;
    whose.opening = target->opening;
    uct_varuna_ctl_reply(resp->ctl, target->peer, link, &whose,
                         UCT_VARUNA_CTL_OPEN_REP, body, length);
}

static ucs_status_t uct_varuna_target_parse_open(uct_varuna_responder_t *resp,
                                                 const uct_varuna_ctl_hdr_t *hdr,
                                                 const uct_varuna_ctl_open_req_t *req,
                                                 uct_varuna_parsed_addr_t *parsed)
{
    ucs_status_t status;
    const char *reason;

    status = uct_varuna_parse_addr(NULL, req + 1, req->addr_len, parsed,
                                   &reason);
    if ((status == UCS_OK) && (parsed->uuid != hdr->uuid)) {
        reason = "its address is another peer's";
        status = UCS_ERR_INVALID_ADDR;
    }

    if (status != UCS_OK) {
        uct_varuna_ctl_complain(resp->ctl, hdr->uuid, "a request to open an endpoint",
                                reason);
    }

    return status;
}

/* There is no target of this name. */
static void uct_varuna_target_open(uct_varuna_responder_t *resp, unsigned link,
                                   const uct_varuna_ctl_hdr_t *hdr,
                                   const uct_varuna_parsed_addr_t *parsed)
{
    uct_varuna_target_t *target;
    uct_varuna_peer_t *peer;
    ucs_status_t status;

    if (!uct_varuna_target_may_open(resp, uct_varuna_peer_find(resp->ctl, hdr->uuid,
                                                              hdr->secret))) {
        uct_varuna_ctl_complain(resp->ctl, hdr->uuid, "a request to open an endpoint",
                                "MAX_TARGETS are open, or a tenth of them by one peer");
        uct_varuna_ctl_reject(resp->ctl, link, hdr, UCS_ERR_EXCEEDS_LIMIT);
        return;
    }

    status = uct_varuna_peer_open(resp->ctl, parsed, hdr->secret, &peer);
    if (status != UCS_OK) {
        uct_varuna_ctl_complain(resp->ctl, hdr->uuid, "a request to open an endpoint",
                                "none of its links can be reached from here");
        return;
    }

    status = uct_varuna_target_create(resp, peer, hdr->vqp, hdr->epoch,
                                      &target);
    if (status != UCS_OK) {
        /* NICs that are late or short now may register the log when the request comes
         * again */
        if (status != UCS_ERR_BUSY) {
            uct_varuna_ctl_reject(resp->ctl, link, hdr, status);
        }
        uct_varuna_peer_put(resp->ctl, peer);
        return;
    }

    uct_varuna_ports_greet(resp->ctl, peer,
                           uct_varuna_ctl_reply_link(resp->ctl, peer, link));
    uct_varuna_target_reply_open(resp, link, hdr, target);
}

static void uct_varuna_target_handle_open(void *arg, unsigned link,
                                          const uct_varuna_ctl_hdr_t *hdr,
                                          const void *body)
{
    uct_varuna_responder_t *resp = arg;
    uct_varuna_parsed_addr_t parsed;
    uct_varuna_target_t *target;
    khiter_t iter;

    if (uct_varuna_target_parse_open(resp, hdr, body, &parsed) != UCS_OK) {
        return;
    }

    target = uct_varuna_target_by_name(resp, hdr, &iter);
    if ((target != NULL) && (target->instance == hdr->epoch)) {
        uct_varuna_target_reply_open(resp, link, hdr, target);
        return;
    } else if ((target != NULL) &&
               UCS_CIRCULAR_COMPARE32(hdr->epoch, <, target->instance)) {
        ucs_debug("dropped OPEN_REQ of vqp %u instance %u: there is %u",
                  hdr->vqp, hdr->epoch, target->instance);
        return;
    } else if (target != NULL) {
        /* The id is used again, and the last one's CLOSE was lost */
        uct_varuna_target_drop(resp, iter);
    }

    uct_varuna_target_open(resp, link, hdr, &parsed);
}


/* --- CLOSE --- */

void uct_varuna_target_drop(uct_varuna_responder_t *resp, khiter_t iter)
{
    uct_varuna_target_t *target = kh_val(&resp->targets.by_name, iter);

    --uct_varuna_responder_peer(resp, target->peer)->targets;
    --resp->stats.open;
    kh_del(uct_varuna_targets, &resp->targets.by_name, iter);
    ucs_list_add_tail(&resp->targets.closed, &target->list);
    uct_varuna_ctl_notify(resp->ctl);
}

/* An endpoint that was closed before it knew of the opening names its instance. */
static int uct_varuna_target_is_closed_by(const uct_varuna_target_t *target,
                                          const uct_varuna_ctl_hdr_t *hdr)
{
    return (hdr->opening == 0) ? (target->instance == hdr->epoch) :
           (target->opening == hdr->opening);
}

/* Take the target out of the table of names, and answer that it is gone, now or since
 * before. */
static void uct_varuna_target_handle_close(void *arg, unsigned link,
                                           const uct_varuna_ctl_hdr_t *hdr,
                                           const void *body)
{
    uct_varuna_responder_t *resp = arg;
    uct_varuna_target_t *target;
    uct_varuna_peer_t *peer;
    khiter_t iter;

    target = uct_varuna_target_by_name(resp, hdr, &iter);
    if ((target != NULL) && !uct_varuna_target_is_closed_by(target, hdr)) {
        ++resp->ctl->stats.mismatched;
        return;
    }

    /* It is sent again if our answer is lost. A peer that has no other endpoint here is
     * not known then, gets no answer, and gives up in the end. */
    peer = (target != NULL) ? target->peer :
           uct_varuna_peer_find(resp->ctl, hdr->uuid, hdr->secret);
    if (peer != NULL) {
        uct_varuna_ctl_reply(resp->ctl, peer, link, hdr, UCT_VARUNA_CTL_CLOSE_REP,
                             NULL, 0);
    } else {
        ++resp->ctl->stats.mismatched;
    }

    if (target != NULL) {
        uct_varuna_target_drop(resp, iter);
    }
}

void uct_varuna_target_disconnect(uct_varuna_responder_t *resp,
                                  uct_varuna_target_t *target)
{
    uct_varuna_target_qp_t *qp;
    unsigned i;

    uct_varuna_gap_forget(target);
    uct_varuna_held_clear(&target->held);

    /* Its name is gone, so the async context doesn't find it any more */
    for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
        qp = &target->qps[i];
        uct_varuna_ctl_lock(resp->ctl);
        uct_varuna_connect_forget(resp, qp->ep);
        uct_varuna_fence_disown(resp, qp);
        resp->spares.stopping[qp->link] += (qp->ep != NULL);
        uct_varuna_ctl_unlock(resp->ctl);
        if (qp->ep != NULL) {
            uct_varuna_spare_end(resp, qp->ep, qp->link, qp->is_reset);
            qp->ep = NULL;
        }
    }
}

void uct_varuna_target_close_amo(uct_varuna_responder_t *resp, uct_varuna_target_t *target)
{
    if (resp->amo != NULL) {
        resp->amo->close_target(resp, target);
    }
}

void uct_varuna_target_destroy(uct_varuna_responder_t *resp,
                               uct_varuna_target_t *target)
{
    ucs_debug("rc_varuna: closed target %u of peer 0x%lx", target->id,
              target->peer->uuid);
    uct_varuna_ctl_lock(resp->ctl);
    uct_varuna_numbers_remove(&resp->targets.numbers, &target->am);
    uct_varuna_ctl_unlock(resp->ctl);
    uct_varuna_target_disconnect(resp, target);

    uct_varuna_ctl_lock(resp->ctl);
    uct_varuna_target_close_amo(resp, target);
    uct_varuna_target_id_put(resp, target->id);
    uct_varuna_peer_put(resp->ctl, target->peer);
    --resp->targets.count;
    uct_varuna_ctl_unlock(resp->ctl);
    ucs_free(target);
}


/* --- KEY_REQ --- */

/* A requester has keys from before a NIC of ours was opened again. It gets nothing that the owner
 * of a key that is packed now would not have: the target or the token proves that it owns one. */
static void uct_varuna_target_handle_key(void *arg, unsigned link,
                                         const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    uct_varuna_responder_t *resp        = arg;
    const uct_varuna_ctl_key_req_t *req = body;
    uct_varuna_ctl_key_rep_t rep        = {
        .token      = req->token,
        .nic        = req->nic,
        .generation = req->generation
    };
    uct_varuna_target_t *target;
    ucs_status_t status;
    khiter_t iter;
    uint64_t key;

    target = uct_varuna_target_of(resp, hdr, &iter);
    if (target == NULL) {
        uct_varuna_ctl_reject(resp->ctl, link, hdr, UCS_ERR_NO_ELEM);
        return;
    }

    status = (req->token == 0) ?
             uct_varuna_target_log_add(resp, target->id, req->nic, req->generation, &key) :
             uct_varuna_md_find_key(resp->iface->md, req->token, req->addr, req->nic,
                                    req->generation, &key);
    if (status == UCS_OK) {
        rep.key = key;
    }

    rep.status = status;
    uct_varuna_ctl_reply(resp->ctl, target->peer, link, hdr, UCT_VARUNA_CTL_KEY_REP, &rep,
                         sizeof(rep));
}

static const uct_varuna_bus_reg_t uct_varuna_target_rows[] = {
    {UCT_VARUNA_CTL_OPEN_REQ, UCT_VARUNA_BUS_ASYNC, uct_varuna_target_handle_open},
    {UCT_VARUNA_CTL_CLOSE,    UCT_VARUNA_BUS_ASYNC, uct_varuna_target_handle_close},
    {UCT_VARUNA_CTL_KEY_REQ,  UCT_VARUNA_BUS_ASYNC, uct_varuna_target_handle_key}
};

ucs_status_t uct_varuna_targets_init(uct_varuna_responder_t *resp)
{
    uct_varuna_target_table_t *table = &resp->targets;
    ucs_status_t status;

    status = uct_varuna_target_logs_init(resp);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_numbers_init(&table->numbers, UCT_VARUNA_TARGET_BITS);
    if (status != UCS_OK) {
        uct_varuna_target_logs_cleanup(resp);
        return status;
    }

    kh_init_inplace(uct_varuna_targets, &table->by_name);
    kh_init_inplace(uct_varuna_rc_eps, &table->rc_eps);
    ucs_list_head_init(&table->closed);
    ucs_list_head_init(&table->orphans);
    uct_varuna_bus_register(&resp->ctl->bus, uct_varuna_target_rows,
                            ucs_static_array_size(uct_varuna_target_rows), resp);
    return UCS_OK;
}

void uct_varuna_targets_cleanup(uct_varuna_responder_t *resp)
{
    uct_varuna_target_table_t *table = &resp->targets;
    uct_varuna_target_t *target;

    kh_foreach_value(&table->by_name, target, {
        uct_varuna_target_destroy(resp, target);
    });
    while (!ucs_list_is_empty(&table->closed)) {
        target = ucs_list_extract_head(&table->closed, uct_varuna_target_t, list);
        uct_varuna_target_destroy(resp, target);
    }
    kh_destroy_inplace(uct_varuna_targets, &table->by_name);
    kh_destroy_inplace(uct_varuna_rc_eps, &table->rc_eps);
    uct_varuna_numbers_cleanup(&table->numbers);
    uct_varuna_target_logs_cleanup(resp);
}
