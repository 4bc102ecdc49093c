/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Inner endpoints of the control plane, to peers and to others. The next message replaces
 * one that failed.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ctl.h"
#include "varuna_peer.h"
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/lanes/varuna_link_cmd.h>
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include <uct/ib/varuna/ucx/varuna_ud.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>

/* A link that works takes less time for a message (seconds) */
#define UCT_VARUNA_CTL_STALE         5e-3

/* After a pause of this many times the time of an answer, earlier tries do not count */
#define UCT_VARUNA_CTL_FULL_PAUSE    4

/* What a thread of the NIC finds out of a port */
typedef struct uct_varuna_ctl_seeker {
    uct_varuna_cmd_t           super;
    uct_varuna_ctl_t           *ctl;
    uct_varuna_peer_key_t      whose;     /* The peer may be gone when it ends */
    char                       stranger[64]; /* ... or this device address, if uuid is 0 */
    unsigned                   link;
    uct_varuna_ah_t            ah;
} uct_varuna_ctl_seeker_t;

static ucs_status_t uct_varuna_ctl_seeker_run(uct_varuna_cmd_t *cmd)
{
    return uct_varuna_ah_try(&ucs_derived_of(cmd, uct_varuna_ctl_seeker_t)->ah);
}

static void uct_varuna_ctl_seeker_init_ah(const uct_varuna_ctl_t *ctl, unsigned link,
                                          const uct_device_addr_t *device_addr,
                                          uct_varuna_ah_t *ah)
{
    memset(ah, 0, sizeof(*ah));
    uct_varuna_ah_init(ah, uct_varuna_link_base(&ctl->iface->links[link])->inner,
                       device_addr);
}

/* The peer was sought on a link */
static void uct_varuna_ctl_found(const uct_varuna_ctl_seeker_t *seeker, ucs_status_t status)
{
    uct_varuna_ctl_t *ctl   = seeker->ctl;
    unsigned link           = seeker->link;
    uct_varuna_peer_t *peer = uct_varuna_peer_find(ctl, seeker->whose.uuid,
                                                   seeker->whose.secret);
    uct_varuna_ah_t ah;

    if (peer == NULL) {
        return;
    }

    peer->sought &= ~UCS_BIT(link);
    uct_varuna_ctl_seeker_init_ah(ctl, link, peer->links[link].device_addr, &ah);
    if (memcmp(&ah, &seeker->ah, sizeof(ah))) {
        status = UCS_OK; /* It has another address, which the next message asks for */
    } else if (status == UCS_OK) {
        peer->found |= UCS_BIT(link);
        uct_varuna_md_note_handle(ctl->iface->md, ctl->iface->links[link].nic,
                                  &peer->no_ctl_ep[link], status, uct_varuna_ctl_now(ctl));
    } else {
        ucs_debug("rc_varuna: no address handle for peer 0x%lx on %s: %s", peer->uuid,
                  uct_varuna_link_name(ctl->iface, link), ucs_status_string(status));
        (void)uct_varuna_backoff_failed(&peer->no_ctl_ep[link], status,
                                        uct_varuna_ctl_now(ctl));
        uct_varuna_ctl_count_lost(peer, link);
    }
}

/* UCS_ERR_CANCELED: the interface is being closed, or is closed */
static void uct_varuna_ctl_seeker_done(uct_varuna_cmd_t *cmd, ucs_status_t status)
{
    uct_varuna_ctl_seeker_t *seeker = ucs_derived_of(cmd, uct_varuna_ctl_seeker_t);
    uct_varuna_ctl_t *ctl           = seeker->ctl;
    uct_varuna_ctl_link_t *own;

    if (status == UCS_ERR_CANCELED) {
        ucs_free(seeker);
        return;
    }

    own = &ctl->links[seeker->link];
    --own->seek.count;
    if (seeker->whose.uuid != 0) {
        uct_varuna_ctl_found(seeker, status);
    } else {
        own->seek.is_on = 0;
        if (status == UCS_OK) {
            memcpy(own->seek.device_addr, seeker->stranger, sizeof(seeker->stranger));
        }
    }

    if (cmd->sink != NULL) { /* Later than it was asked for */
        uct_varuna_ctl_flush_queue(ctl);
        uct_varuna_ctl_reap_eps(ctl, 0);
        uct_varuna_ctl_notify(ctl); /* Endpoints may wait for it */
    }

    ucs_free(seeker);
}

/* @return UCS_ERR_NO_MEMORY, or UCS_OK: it is under way, or over. */
static ucs_status_t uct_varuna_ctl_seek_start(uct_varuna_ctl_t *ctl, unsigned link,
                                              const uct_varuna_peer_key_t *whose,
                                              const uct_device_addr_t *device_addr,
                                              const void *stranger)
{
    uct_varuna_ctl_seeker_t *seeker;

    seeker = ucs_calloc(1, sizeof(*seeker), "varuna_ctl_seeker");
    if (seeker == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    seeker->super.run  = uct_varuna_ctl_seeker_run;
    seeker->super.done = uct_varuna_ctl_seeker_done;
    seeker->ctl        = ctl;
    seeker->whose      = *whose;
    seeker->link       = link;
    if (stranger != NULL) {
        memcpy(seeker->stranger, stranger, sizeof(seeker->stranger));
    }

    uct_varuna_ctl_seeker_init_ah(ctl, link, device_addr, &seeker->ah);
    ++ctl->links[link].seek.count;
    uct_varuna_link_submit_handle(ctl->iface, link, &seeker->super);
    return UCS_OK;
}

static void uct_varuna_ctl_seek_peer(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                     unsigned link)
{
    const uct_varuna_peer_key_t whose = {.uuid = peer->uuid, .secret = peer->secret};

    if (!uct_varuna_backoff_is_due(&peer->no_ctl_ep[link], uct_varuna_ctl_now(ctl)) ||
        (ctl->links[link].inner == NULL) || uct_varuna_ctl_is_nic_gone(ctl, link)) {
        return;
    }

    peer->sought |= UCS_BIT(link);
    if (uct_varuna_ctl_seek_start(ctl, link, &whose, peer->links[link].device_addr, NULL) !=
        UCS_OK) {
        peer->sought &= ~UCS_BIT(link);
    }
}

ucs_status_t uct_varuna_ctl_seek(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                 unsigned link)
{
    unsigned other;

    if (!ctl->links[link].seeks || (peer->found & UCS_BIT(link))) {
        return UCS_OK;
    }

    /* A failover to another link must not wait for that */
    ucs_for_each_bit(other, peer->link_map & ~(peer->found | peer->sought)) {
        if (ctl->links[other].seeks) {
            uct_varuna_ctl_seek_peer(ctl, peer, other);
        }
    }

    return (peer->found & UCS_BIT(link)) ? UCS_OK :
           (peer->sought & UCS_BIT(link)) ? UCS_ERR_NO_RESOURCE : UCS_ERR_UNREACHABLE;
}

void uct_varuna_ctl_seek_anew(uct_varuna_peer_t *peer, unsigned link)
{
    peer->found &= ~UCS_BIT(link);
    (void)uct_varuna_backoff_succeeded(&peer->no_ctl_ep[link]);
    (void)uct_varuna_backoff_succeeded(&peer->no_dc_ep[link]);
}

int uct_varuna_ctl_seek_stranger(uct_varuna_ctl_t *ctl, unsigned link, const void *device_addr,
                                 size_t length)
{
    const uct_varuna_peer_key_t nobody = {0};
    uct_varuna_ctl_link_t *own         = &ctl->links[link];

    ucs_assert(length == sizeof(own->seek.device_addr));
    if (!own->seeks || (own->inner == NULL)) {
        return !own->seeks;
    }

    if (!own->seek.is_on && memcmp(own->seek.device_addr, device_addr, length)) {
        own->seek.is_on = 1;
        if (uct_varuna_ctl_seek_start(ctl, link, &nobody, device_addr, device_addr) !=
            UCS_OK) {
            own->seek.is_on = 0;
        }
    }

    return !memcmp(own->seek.device_addr, device_addr, length);
}

ucs_status_t uct_varuna_ctl_ep_create(uct_varuna_ctl_t *ctl, unsigned link,
                                      const uct_device_addr_t *device_addr,
                                      const uct_iface_addr_t *iface_addr,
                                      uct_varuna_ctl_ep_t **ep_p)
{
    uct_varuna_ctl_ep_t *ep;
    uct_ep_params_t params;
    ucs_status_t status;
    khiter_t iter;
    int ret;

    if (ctl->links[link].inner == NULL) {
        return UCS_ERR_UNREACHABLE; /* Its NIC is away */
    }

    ep = ucs_malloc(sizeof(*ep), "varuna_ctl_ep");
    if (ep == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                        UCT_EP_PARAM_FIELD_DEV_ADDR |
                        UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface      = ctl->links[link].inner;
    params.dev_addr   = device_addr;
    params.iface_addr = iface_addr;
    status            = uct_ep_create(&params, &ep->inner);
    if (status != UCS_OK) {
        ucs_debug("failed to create a control endpoint on link %u: %s", link,
                  ucs_status_string(status));
        goto err_free;
    }

    iter = kh_put(uct_varuna_ctl_eps, &ctl->eps, (uintptr_t)ep->inner, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        status = UCS_ERR_NO_MEMORY;
        goto err_destroy;
    }

    ep->peer                = NULL;
    ep->link                = link;
    ep->failed              = 0;
    ep->is_used             = 0;
    kh_val(&ctl->eps, iter) = ep;
    *ep_p                   = ep;
    return UCS_OK;

err_destroy:
    uct_varuna_tl_destroy(ep->inner);
err_free:
    ucs_free(ep);
    return status;
}

static ucs_status_t uct_varuna_ctl_open_ep(uct_varuna_ctl_t *ctl,
                                           uct_varuna_peer_t *peer,
                                           unsigned link)
{
    ucs_time_t now = uct_varuna_ctl_now(ctl);
    uct_varuna_ctl_ep_t *ep;
    ucs_status_t status;

    if (!uct_varuna_backoff_is_due(&peer->no_ctl_ep[link], now)) {
        return UCS_ERR_UNREACHABLE; /* UCX logs an error at each try */
    }

    status = uct_varuna_ctl_seek(ctl, peer, link);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_ctl_ep_create(ctl, link, peer->links[link].device_addr,
                                      peer->links[link].ctl_addr, &ep);
    if (status == UCS_OK) {
        ep->peer            = peer;
        peer->ctl_eps[link] = ep->inner;
    }

    /* These are not about the NIC: an address, or a message that waits */
    if ((status != UCS_ERR_UNREACHABLE) && (status != UCS_ERR_NO_RESOURCE)) {
        uct_varuna_md_note_handle(ctl->iface->md, ctl->iface->links[link].nic,
                                  &peer->no_ctl_ep[link], status, now);
    }

    return status;
}

/* The endpoint to a peer on a link, NULL if it has none */
static uct_varuna_ctl_ep_t *
uct_varuna_ctl_ep_of(const uct_varuna_ctl_t *ctl, const uct_varuna_peer_t *peer,
                     unsigned link)
{
    khiter_t iter;

    if (peer->ctl_eps[link] == NULL) {
        return NULL;
    }

    iter = kh_get(uct_varuna_ctl_eps, &ctl->eps, (uintptr_t)peer->ctl_eps[link]);
    ucs_assert(iter != kh_end(&ctl->eps));
    return kh_val(&ctl->eps, iter);
}

void uct_varuna_ctl_drop_ep(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                            unsigned link, int failed)
{
    uct_varuna_ctl_ep_t *ep = uct_varuna_ctl_ep_of(ctl, peer, link);

    if (ep == NULL) {
        return;
    }

    /* UD creates a handle for each endpoint, and the system forgets addresses */
    if (failed && (uct_varuna_link_set(ctl->iface, link)->bus == UCT_VARUNA_LANE_UD)) {
        peer->found &= ~UCS_BIT(link);
    }

    ep->peer            = NULL;
    ep->failed          = failed;
    peer->ctl_eps[link] = NULL;
    ucs_list_add_tail(&ctl->dead_eps, &ep->list);
}

void uct_varuna_ctl_count_lost(uct_varuna_peer_t *peer, unsigned link)
{
    __atomic_store_n(&peer->num_lost[link], peer->num_lost[link] + 1,
                     __ATOMIC_RELAXED);
}

static void uct_varuna_ctl_lose_ep(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                   unsigned link)
{
    uct_varuna_ctl_count_lost(peer, link);
    uct_varuna_ctl_drop_ep(ctl, peer, link, 1);
}

static int uct_varuna_doubt_may_post(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                     unsigned link);
static void uct_varuna_doubt_posted(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                    unsigned link);
static void uct_varuna_doubt_failed(uct_varuna_peer_t *peer, unsigned link);
static int uct_varuna_doubt_has_place(const uct_varuna_ctl_t *ctl,
                                      const uct_varuna_ctl_ep_t *ep);
static void uct_varuna_doubt_forget(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep);

void uct_varuna_ctl_renew_ep(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                             unsigned link)
{
    uct_varuna_ctl_ep_t *ep = uct_varuna_ctl_ep_of(ctl, peer, link);

    if ((ep == NULL) || uct_varuna_ctl_ep_is_drained(ctl, ep) ||
        !uct_varuna_doubt_has_place(ctl, ep) ||
        ((uct_varuna_ctl_now(ctl) - ep->since) <
         ucs_time_from_sec(UCT_VARUNA_CTL_STALE))) {
        return;
    }

    ucs_debug("rc_varuna: control messages to peer 0x%lx on %s begin anew", peer->uuid,
              uct_varuna_link_name(ctl->iface, link));
    uct_varuna_doubt_forget(ctl, ep);
    (void)uct_varuna_tl_stop(ep->inner, uct_varuna_link_set(ctl->iface, link)->bus);
    uct_varuna_ctl_lose_ep(ctl, peer, link);
}

void uct_varuna_ctl_renew_others(uct_varuna_ctl_t *ctl, unsigned lost)
{
    uct_varuna_ctl_ep_t *ep;
    unsigned link, i;

    for (link = 0; link < ctl->num_links; ++link) {
        for (i = 0; (link != lost) && (i < UCT_VARUNA_CTL_MAX_DOUBTFUL); ++i) {
            ep = ctl->links[link].doubtful[i];
            if ((ep != NULL) && (ep->peer != NULL)) {
                uct_varuna_ctl_renew_ep(ctl, ep->peer, link);
            }
        }
    }
}

void uct_varuna_ctl_ep_destroy(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep)
{
    khiter_t iter = kh_get(uct_varuna_ctl_eps, &ctl->eps, (uintptr_t)ep->inner);

    kh_del(uct_varuna_ctl_eps, &ctl->eps, iter);
    uct_varuna_doubt_forget(ctl, ep);
    uct_varuna_tl_destroy(ep->inner);
    ucs_free(ep);
}

void uct_varuna_ctl_reap_eps(uct_varuna_ctl_t *ctl, int force)
{
    uct_varuna_ctl_ep_t *ep, *tmp;

    if (ctl->progressing) {
        return; /* A callback of such an endpoint may be running */
    }

    ucs_list_for_each_safe(ep, tmp, &ctl->dead_eps, list) {
        /* UCX would use the buffer of a message again which is on its way; and of a
         * failed endpoint that has messages left UCX would not give the DCI back:
         * when all DCIs are lost, so are all messages */
        if (!force &&
            (ep->failed ? !uct_varuna_ctl_ep_is_drained(ctl, ep) :
             (uct_ep_flush(ep->inner, UCT_FLUSH_FLAG_LOCAL, NULL) !=
              UCS_OK))) {
            continue;
        }

        ucs_list_del(&ep->list);
        uct_varuna_ctl_ep_destroy(ctl, ep);
    }
}

/* A control endpoint failed: the next message makes a new one. Requests are repeated by
 * their senders, perhaps on another link. */
ucs_status_t uct_varuna_ctl_err_handler(void *arg, uct_ep_h inner,
                                        ucs_status_t status)
{
    uct_varuna_ctl_link_t *link = arg;
    uct_varuna_ctl_t *ctl       = link->ctl;
    uct_varuna_ctl_ep_t *ep;
    khiter_t iter;

    iter = kh_get(uct_varuna_ctl_eps, &ctl->eps, (uintptr_t)inner);
    if (iter == kh_end(&ctl->eps)) {
        return UCS_OK;
    }

    ep = kh_val(&ctl->eps, iter);
    if (ep->peer == NULL) {
        ep->failed = 1; /* It was to be destroyed anyway */
        return UCS_OK;
    }

    if (!ctl->links[ep->link].is_proved) {
        (void)uct_varuna_link_sl_fall_back(ctl->iface, ep->link, link->inner);
    }

    ucs_debug("rc_varuna: control messages to peer 0x%lx on %s fail: %s",
              ep->peer->uuid, uct_varuna_link_name(ctl->iface, ep->link),
              ucs_status_string(status));
    ep->peer->failed |= UCS_BIT(ep->link);
    uct_varuna_doubt_failed(ep->peer, ep->link);
    uct_varuna_ctl_lose_ep(ctl, ep->peer, ep->link);
    return UCS_OK;
}


/* --- Ports that UCX may be given --- */

/* Limits the remote ports of which strangers and guests make UCX keep something. */

/* Remote ports in the life of an interface: of strangers alone, and in all */
#define UCT_VARUNA_STRANGER_PORTS    1024
#define UCT_VARUNA_GUEST_PORTS       65536


int uct_varuna_reach_allow(uct_varuna_ctl_t *ctl, unsigned link,
                           const void *device_addr, size_t length, int is_guest)
{
    khint_t limit = is_guest ? UCT_VARUNA_GUEST_PORTS :
                    UCT_VARUNA_STRANGER_PORTS;
    uint64_t hash = link;
    uint64_t word;
    size_t size;
    int ret;

    for (; length > 0; length -= size) {
        size        = ucs_min(length, sizeof(word));
        word        = 0;
        memcpy(&word, device_addr, size);
        device_addr = UCS_PTR_BYTE_OFFSET(device_addr, size);
        hash        = uct_varuna_secret_hash(&ctl->iface->secret_key, hash) ^ word;
    }

    if (kh_get(uct_varuna_ports, &ctl->strangers.ports, hash) !=
        kh_end(&ctl->strangers.ports)) {
        return 1;
    }

    if (kh_size(&ctl->strangers.ports) >= limit) {
        return 0;
    }

    kh_put(uct_varuna_ports, &ctl->strangers.ports, hash, &ret);
    return ret != UCS_KH_PUT_FAILED;
}


/* --- Posting --- */

typedef struct uct_varuna_ctl_pack_arg {
    const void                 *data;
    size_t                     length;
} uct_varuna_ctl_pack_arg_t;

static size_t uct_varuna_ctl_pack_cb(void *dest, void *arg)
{
    const uct_varuna_ctl_pack_arg_t *pack = arg;

    memcpy(dest, pack->data, pack->length);
    return pack->length;
}

ucs_status_t uct_varuna_ctl_ep_post(uct_ep_h inner, const void *data,
                                    size_t length)
{
    uct_varuna_ctl_pack_arg_t pack = {data, length};
    ssize_t packed                 = uct_ep_am_bcopy(inner, UCT_VARUNA_AM_ID_CTL,
                                                     uct_varuna_ctl_pack_cb,
                                                     &pack, 0);

    return (packed >= 0) ? UCS_OK : (ucs_status_t)packed;
}

/* No send buffer is free. @return UCS_ERR_UNREACHABLE if that was so at each try for the time
 * of an answer: the NIC hangs, or is dead without an event, which it is asked then. The caller
 * takes another link, and a ping counts as missed. */
static ucs_status_t uct_varuna_ctl_full(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                        unsigned link)
{
    uct_varuna_ctl_link_t *own = &ctl->links[link];
    ucs_time_t now             = uct_varuna_ctl_now(ctl);
    ucs_time_t wait            = (ctl->hb.interval != 0) ? ctl->hb.interval :
                                 ctl->iface->config.ctl_timeout;

    if ((own->full.since == 0) ||
        ((now - own->full.seen_at) > (UCT_VARUNA_CTL_FULL_PAUSE * wait))) {
        own->full.since = now;
    }

    own->full.seen_at = now;
    if ((now - own->full.since) < wait) {
        return UCS_ERR_NO_RESOURCE;
    }

    (void)uct_varuna_md_ended_at(ctl->iface->md, ctl->iface->links[link].nic);
    uct_varuna_ctl_count_lost(peer, link);
    return UCS_ERR_UNREACHABLE;
}

/* If all that was posted before has been acknowledged, the link's service level carries
 * messages: later failures are not its fault. */
static void uct_varuna_ctl_prove_link(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                      unsigned link)
{
    const uct_varuna_ctl_ep_t *ep;

    if (ctl->links[link].is_proved || (peer->ctl_eps[link] == NULL)) {
        return;
    }

    ep                         = uct_varuna_ctl_ep_of(ctl, peer, link);
    ctl->links[link].is_proved = ep->is_used && uct_varuna_ctl_ep_is_drained(ctl, ep);
}

ucs_status_t uct_varuna_ctl_post(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                 unsigned link, const void *data, size_t length)
{
    ucs_status_t status;
    int retry;

    if (!uct_varuna_doubt_may_post(ctl, peer, link)) {
        return UCS_ERR_UNREACHABLE; /* Requests are repeated */
    }

    if (uct_varuna_ctl_is_nic_gone(ctl, link)) {
        uct_varuna_ctl_count_lost(peer, link);
        return UCS_ERR_UNREACHABLE;
    }

    uct_varuna_ctl_prove_link(ctl, peer, link);
    for (retry = 0; retry < 2; ++retry) {
        if (peer->ctl_eps[link] == NULL) {
            status = uct_varuna_ctl_open_ep(ctl, peer, link);
            if (status != UCS_OK) {
                return status;
            }
        }

        status = uct_varuna_ctl_ep_post(peer->ctl_eps[link], data, length);
        if (status == UCS_OK) {
            ctl->links[link].full.since = 0;
            uct_varuna_ctl_ep_of(ctl, peer, link)->is_used = 1;
            uct_varuna_doubt_posted(ctl, peer, link);
            return UCS_OK;
        } else if (status == UCS_ERR_NO_RESOURCE) {
            return uct_varuna_ctl_full(ctl, peer, link);
        }

        /* It has failed since its last message */
        uct_varuna_ctl_drop_ep(ctl, peer, link, 1);
    }

    ucs_debug("rc_varuna: failed to send a control message to peer 0x%lx on %s: "
              "%s", peer->uuid, uct_varuna_link_name(ctl->iface, link),
              ucs_status_string(status));
    return status;
}

/* --- Peers that are probably dead --- */

/* Keeps dead peers from occupying all DCIs of the control plane: a message to a dead
 * process holds one until its retries are exhausted, and messages to living ones would
 * wait. A peer is doubtful on a link while the last message to it there has failed; such
 * peers share UCT_VARUNA_CTL_MAX_DOUBTFUL DCIs, and a message that finds none of them free
 * is not sent. Called by varuna_ctl_send.c, lock held. */

/* Free the places of messages which have left, and believe in those peers again. */
static void uct_varuna_doubt_sweep(uct_varuna_ctl_link_t *link)
{
    const uct_varuna_ctl_t *ctl = link->ctl;
    uct_varuna_ctl_ep_t *ep;
    unsigned i;

    for (i = 0; i < UCT_VARUNA_CTL_MAX_DOUBTFUL; ++i) {
        ep = link->doubtful[i];
        if ((ep == NULL) ||
            !uct_varuna_ctl_ep_is_drained(ctl, ep)) {
            continue;
        }

        if (!ep->failed && (ep->peer != NULL)) {
            ep->peer->doubtful &= ~UCS_BIT(ep->link);
        }
        link->doubtful[i] = NULL;
    }
}

/* @return the place of @a ep, or with NULL a free one; -1 if there is none. */
static int uct_varuna_doubt_find(const uct_varuna_ctl_link_t *link,
                                 const uct_varuna_ctl_ep_t *ep)
{
    unsigned i;

    for (i = 0; i < UCT_VARUNA_CTL_MAX_DOUBTFUL; ++i) {
        if (link->doubtful[i] == ep) {
            return i;
        }
    }

    return -1;
}

/* May a message be posted to @a peer on @a link now? */
static int uct_varuna_doubt_may_post(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                     unsigned link)
{
    uct_varuna_ctl_ep_t *ep;

    if (!(peer->doubtful & UCS_BIT(link))) {
        return 1;
    }

    uct_varuna_doubt_sweep(&ctl->links[link]);
    ep = uct_varuna_ctl_ep_of(ctl, peer, link);
    return ((ep != NULL) &&
            (uct_varuna_doubt_find(&ctl->links[link], ep) >= 0)) ||
           (uct_varuna_doubt_find(&ctl->links[link], NULL) >= 0);
}

int uct_varuna_doubt_admit(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep)
{
    uct_varuna_ctl_link_t *link = &ctl->links[ep->link];
    int place;

    uct_varuna_doubt_sweep(link);
    if (uct_varuna_doubt_find(link, ep) >= 0) {
        return 1;
    }

    place = uct_varuna_doubt_find(link, NULL);
    if (place < 0) {
        return 0;
    }

    link->doubtful[place] = ep;
    return 1;
}

/* One was posted, or failed later, or the endpoint is about to be destroyed. */
static void uct_varuna_doubt_posted(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                    unsigned link)
{
    uct_varuna_ctl_ep_t *ep;
    int place;

    if (!(peer->doubtful & UCS_BIT(link))) {
        return;
    }

    ep = uct_varuna_ctl_ep_of(ctl, peer, link);
    if (uct_varuna_doubt_find(&ctl->links[link], ep) < 0) {
        place = uct_varuna_doubt_find(&ctl->links[link], NULL);
        if (place >= 0) {
            ctl->links[link].doubtful[place] = ep;
            ep->since                        = uct_varuna_ctl_now(ctl);
        }
    }
}

static void uct_varuna_doubt_failed(uct_varuna_peer_t *peer, unsigned link)
{
    peer->doubtful |= UCS_BIT(link);
}

/* @return Whether messages of that endpoint, to a doubtful peer, may wait. */
static int uct_varuna_doubt_has_place(const uct_varuna_ctl_t *ctl,
                                      const uct_varuna_ctl_ep_t *ep)
{
    return uct_varuna_doubt_find(&ctl->links[ep->link], ep) >= 0;
}

static void uct_varuna_doubt_forget(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep)
{
    uct_varuna_ctl_link_t *link = &ctl->links[ep->link];
    int place                   = uct_varuna_doubt_find(link, ep);

    if (place >= 0) {
        link->doubtful[place] = NULL;
    }
}
