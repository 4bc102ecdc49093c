/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Keys that are completed. See varuna_ep.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ep.h"
#include "varuna_sm.h"
#include "varuna_lane.h"
#include "varuna_pending.h"
#include "varuna_ring.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>

#include <ucs/debug/log.h>

/* Answers that are kept. All are forgotten then, and asked for again */
#define UCT_VARUNA_KEYS_MAX          65536

/* How often the time between two questions for the same doubles at most */
#define UCT_VARUNA_KEY_BACKOFF       8

/* Tokens take no room that a read uses */
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_mlx5_read_t) <=
                         sizeof(((uct_varuna_req_t*)NULL)->user.others));

void uct_varuna_req_check_key(uct_varuna_req_t *req, const uct_varuna_rkey_t *rkey)
{
    uct_varuna_ep_t *ep = req->ep;
    unsigned link, nic;

    uct_varuna_ep_renew_keys(ep);
    ucs_for_each_bit(link, ep->peer->returned) {
        nic = ep->peer->links[link].nic;
        /* Another thread may complete it: the key after the generation */
        req->keys[nic] = (__atomic_load_n(&rkey->generations[nic], __ATOMIC_ACQUIRE) ==
                          uct_varuna_ep_generation(ep, nic)) ?
                         __atomic_load_n(&rkey->keys[nic], __ATOMIC_RELAXED) :
                         UCT_INVALID_RKEY;
    }
}

/* --- Questions --- */

/* @return Whether a question is due, and over which link: silence may mean that the last one is
 * dead. */
static int uct_varuna_key_is_due(uct_varuna_ep_t *ep, uct_varuna_retry_t *retry, ucs_time_t now,
                                 unsigned *link_p)
{
    const uct_varuna_retry_policy_t policy = {
        .interval = uct_varuna_ep_iface(ep)->config.ctl_timeout,
        .backoff  = UCT_VARUNA_KEY_BACKOFF
    };

    if (!retry->is_active) {
        uct_varuna_retry_start(retry, 0, now);
    }

    if (uct_varuna_retry_check(retry, &policy, now, now) != UCT_VARUNA_RETRY_SEND) {
        return 0;
    }

    *link_p = uct_varuna_retry_next(retry, &policy, uct_varuna_ep_select_link(ep),
                                    uct_varuna_ep_ctl_links(ep), now);
    return 1;
}

static void uct_varuna_ep_ask_key(uct_varuna_ep_t *ep, unsigned link, uint64_t token,
                                  uint64_t addr, unsigned nic)
{
    uct_varuna_ctl_key_req_t req = {
        .token      = token,
        .addr       = addr,
        .nic        = nic,
        .generation = uct_varuna_ep_generation(ep, nic)
    };

    uct_varuna_ep_ctl_send(ep, link, UCT_VARUNA_CTL_KEY_REQ, 0, &req, sizeof(req));
}

/* What was asked about a key. @return NULL if there is no memory. */
static uct_varuna_key_t *
uct_varuna_key_get(uct_varuna_requester_t *requester, uct_varuna_key_name_t name)
{
    khash_t(uct_varuna_keys) *keys = &requester->keys.table;
    uct_varuna_key_t *key;
    unsigned nic;
    khiter_t iter;
    int ret;

    iter = kh_get(uct_varuna_keys, keys, name);
    if (iter != kh_end(keys)) {
        return &kh_val(keys, iter);
    }

    if (kh_size(keys) >= UCT_VARUNA_KEYS_MAX) {
        kh_clear(uct_varuna_keys, keys);
    }

    iter = kh_put(uct_varuna_keys, keys, name, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        return NULL;
    }

    key = &kh_val(keys, iter);
    memset(key, 0, sizeof(*key));
    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        key->keys[nic] = UCT_INVALID_RKEY;
    }
    return key;
}

static void uct_varuna_keys_forget(uct_varuna_requester_t *requester, uct_varuna_key_name_t name)
{
    khiter_t iter = kh_get(uct_varuna_keys, &requester->keys.table, name);

    if (iter != kh_end(&requester->keys.table)) {
        kh_del(uct_varuna_keys, &requester->keys.table, iter);
    }
}

static uct_varuna_key_name_t uct_varuna_ep_logs_name(const uct_varuna_ep_t *ep)
{
    uct_varuna_key_name_t name = {.uuid = ep->peer->uuid, .token = ep->remote.opening};

    return name;
}

void uct_varuna_ep_complete_logs(uct_varuna_ep_t *ep, ucs_time_t now)
{
    unsigned missing, link, via;
    uct_varuna_key_t *key;

    if ((ep->peer->returned == 0) || (ep->hot.state == UCT_VARUNA_EP_FAILED)) {
        return;
    }

    uct_varuna_ep_renew_keys(ep);
    missing = uct_varuna_ep_logless_links(ep) & ep->peer->returned;
    key     = (missing == 0) ? NULL : uct_varuna_key_get(uct_varuna_ep_requester(ep),
                                                         uct_varuna_ep_logs_name(ep));
    if ((key == NULL) || !uct_varuna_key_is_due(ep, &key->retry, now, &via)) {
        return;
    }

    ucs_for_each_bit(link, missing) {
        uct_varuna_ep_ask_key(ep, via, 0, ep->remote.logs_addr, ep->peer->links[link].nic);
    }
}

/* Give a request what is known, and ask for the rest. @return Whether the peer has deregistered
 * its region. */
static int uct_varuna_req_learn_key(uct_varuna_req_t *req, unsigned missing)
{
    uct_varuna_ep_t *ep        = req->ep;
    ucs_time_t now             = uct_varuna_ctl_now(uct_varuna_ep_iface(ep)->ctl);
    uct_varuna_key_name_t name = {.uuid = ep->peer->uuid, .token = req->user.token};
    uct_varuna_key_t *key;
    unsigned nic, via;

    key = uct_varuna_key_get(uct_varuna_ep_requester(ep), name);
    if (key == NULL) {
        return 0; /* Asked when there is memory */
    }

    ucs_for_each_bit(nic, missing) {
        if (key->generations[nic] != uct_varuna_ep_generation(ep, nic)) {
            key->generations[nic] = uct_varuna_ep_generation(ep, nic);
            key->keys[nic]        = UCT_INVALID_RKEY;
            key->asked           &= ~UCS_BIT(nic);
        }

        req->keys[nic] = key->keys[nic];
        if (req->keys[nic] != UCT_INVALID_RKEY) {
            missing &= ~UCS_BIT(nic);
        }
    }

    if (missing & ~key->asked) {
        uct_varuna_retry_stop(&key->retry); /* Another NIC was opened again */
    }

    if ((missing != 0) && uct_varuna_key_is_due(ep, &key->retry, now, &via)) {
        key->asked |= missing;
        ucs_for_each_bit(nic, missing) {
            uct_varuna_ep_ask_key(ep, via, name.token, req->remote_addr, nic);
        }
    }

    return key->is_gone;
}

/* @return NICs of the peer that were opened again, and for which the request has no key. Requests
 * to the logs have no token. */
static unsigned uct_varuna_req_missing_nics(uct_varuna_req_t *req)
{
    const uct_varuna_peer_t *peer = req->ep->peer;
    unsigned missing              = 0;
    unsigned link, nic;

    ucs_for_each_bit(link, peer->returned) {
        nic = peer->links[link].nic;
        if ((req->user.token == 0) && (req->keys[nic] == UCT_INVALID_RKEY)) {
            req->keys[nic] = uct_varuna_rkey_inner(req->ep->remote.log_bundle.rkey, nic);
        } else if (req->keys[nic] == UCT_INVALID_RKEY) {
            missing |= UCS_BIT(nic);
        }
    }

    return missing;
}

/* Give a request what is known of its key, and ask for what is not. @return NICs of the peer that
 * were opened again, and for which it has no key.
 *
 * @param [out] learned_p  NICs for which it needs none any more, besides those that are there.
 */
static unsigned uct_varuna_req_learn_keys(uct_varuna_req_t *req, unsigned *learned_p)
{
    const uct_varuna_ep_t *ep = req->ep;
    unsigned missing, left;

    if (!uct_varuna_req_info(req)->user_key || (ep->peer->returned == 0) || (req->length == 0)) {
        return 0;
    }

    uct_varuna_ep_renew_keys(req->ep);
    missing = uct_varuna_req_missing_nics(req);
    if (missing == 0) {
        return 0;
    }

    /* To a region that is gone it fails as on any link */
    left        = uct_varuna_req_learn_key(req, missing) ? 0 : uct_varuna_req_missing_nics(req);
    *learned_p |= missing & ~left;
    return left;
}

int uct_varuna_ep_learn_keys(uct_varuna_ep_t *ep)
{
    unsigned learned = 0;
    uct_varuna_req_t *req;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        (void)uct_varuna_req_learn_keys(req, &learned);
    }

    return learned != 0;
}

int uct_varuna_req_complete_key(uct_varuna_req_t *req)
{
    uct_varuna_ep_t *ep = req->ep;
    unsigned learned    = 0;

    if (!(uct_varuna_req_learn_keys(req, &learned) & UCS_BIT(ep->hot.far_nic))) {
        return 1;
    }

    uct_varuna_ep_avoid_links(ep, UCS_BIT(ep->lane.link), UCS_BIT(ep->lane.link));
    uct_varuna_ep_raise_lane_failed(ep, "its key has nothing for a NIC that was opened again");
    return 0;
}

/* @return What is known of a key for the present life of a NIC, UCT_INVALID_RKEY: nothing. */
static uct_rkey_t uct_varuna_ep_known_key(const uct_varuna_ep_t *ep, uint64_t token,
                                          const uct_varuna_peer_link_t *far)
{
    const uct_varuna_requester_t *requester = uct_varuna_ep_requester(ep);
    uct_varuna_key_name_t name              = {.uuid = ep->peer->uuid, .token = token};
    khiter_t iter = kh_get(uct_varuna_keys, &requester->keys.table, name);
    const uct_varuna_key_t *key;

    if (iter == kh_end(&requester->keys.table)) {
        return UCT_INVALID_RKEY;
    }

    key = &kh_val(&requester->keys.table, iter);
    return (key->generations[far->nic] == far->generation) ? key->keys[far->nic] :
                                                             UCT_INVALID_RKEY;
}

int uct_varuna_ep_complete_rkey(uct_varuna_ep_t *ep, uct_rkey_t rkey)
{
    uct_varuna_rkey_t *user = (uct_varuna_rkey_t*)rkey;
    const uct_varuna_peer_link_t *far;
    unsigned link;

    ucs_for_each_bit(link, ep->peer->returned) {
        far = &ep->peer->links[link];
        uct_varuna_rkey_complete(user, ep->peer->uuid, far->nic, far->generation,
                                 uct_varuna_ep_known_key(ep, user->token, far));
    }

    return !(uct_varuna_ep_returned_nics(ep) & uct_varuna_rkey_lacks(rkey));
}


/* --- Answers --- */

/* For the time of the shortest distance, the endpoint finds out on other links which keys its
 * requests use */
static void uct_varuna_ep_logs_completed(uct_varuna_ep_t *ep, unsigned nic,
                                         uct_rkey_bundle_t *bundle)
{
    unsigned links = 0;
    unsigned link;

    uct_varuna_rkey_add((uct_varuna_rkey_t*)ep->remote.log_bundle.rkey, nic,
                        uct_varuna_ep_generation(ep, nic), bundle);
    uct_varuna_keys_forget(uct_varuna_ep_requester(ep), uct_varuna_ep_logs_name(ep));
    ucs_for_each_bit(link, ep->peer->link_map) {
        if (ep->peer->links[link].nic == nic) {
            links |= UCS_BIT(link);
        }
    }
    uct_varuna_ep_avoid_links(ep, links, 0);
    ucs_debug("rc_varuna: ep %p vqp=%u: the peer's log has a key for its NIC %u", ep, ep->id, nic);
}

static void uct_varuna_key_completed(uct_varuna_ep_t *ep, const uct_varuna_ctl_key_rep_t *rep,
                                     const uct_rkey_bundle_t *bundle)
{
    uct_varuna_requester_t *requester = uct_varuna_ep_requester(ep);
    uct_varuna_key_name_t name        = {.uuid = ep->peer->uuid, .token = rep->token};
    khiter_t iter                     = kh_get(uct_varuna_keys, &requester->keys.table, name);
    uct_varuna_key_t *key;

    if (iter == kh_end(&requester->keys.table)) {
        return; /* It was not asked */
    }

    key = &kh_val(&requester->keys.table, iter);
    if (bundle == NULL) {
        key->is_gone = (rep->status == UCS_ERR_NO_ELEM);
    } else if ((key->asked & UCS_BIT(rep->nic)) &&
               (key->generations[rep->nic] == rep->generation)) {
        key->keys[rep->nic] = bundle->rkey;
    }
}

void uct_varuna_ep_handle_key_rep(uct_varuna_ep_t *ep, const uct_varuna_ctl_key_rep_t *rep)
{
    uct_component_h ib = uct_varuna_ep_iface(ep)->md->ib;
    uint64_t packed    = rep->key; /* Aligned */
    uct_rkey_bundle_t bundle;

    if ((rep->status != UCS_OK) ||
        (uct_rkey_unpack(ib, &packed, &bundle) != UCS_OK)) {
        ucs_debug("rc_varuna: ep %p vqp=%u: a key has nothing for NIC %u: %s", ep, ep->id,
                  rep->nic, ucs_status_string((ucs_status_t)rep->status));
        uct_varuna_key_completed(ep, rep, NULL);
        return;
    }

    uct_varuna_ep_renew_keys(ep);
    if ((rep->token == 0) && (ep->remote.logs_addr != 0) &&
        (rep->generation == uct_varuna_ep_generation(ep, rep->nic)) &&
        (uct_varuna_rkey_inner(ep->remote.log_bundle.rkey, rep->nic) == UCT_INVALID_RKEY)) {
        uct_varuna_ep_logs_completed(ep, rep->nic, &bundle);
        return; /* It has the bundle */
    }

    /* A key of ib is a number, there is nothing to be kept */
    uct_varuna_key_completed(ep, rep, &bundle);
    uct_rkey_release(ib, &bundle);
}

void uct_varuna_keys_init(uct_varuna_requester_t *requester)
{
    kh_init_inplace(uct_varuna_keys, &requester->keys.table);
}

void uct_varuna_keys_cleanup(uct_varuna_requester_t *requester)
{
    kh_destroy_inplace(uct_varuna_keys, &requester->keys.table);
}
