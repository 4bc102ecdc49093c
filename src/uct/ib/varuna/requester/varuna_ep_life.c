/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Creation and destruction of the vQP.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ep.h"
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include "varuna_sm.h"
#include "varuna_completion.h"
#include "varuna_requester.h"
#include "varuna_lane.h"
#include "varuna_pending.h"
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include "varuna_stat.h"
#include "varuna_ring.h"
#include <uct/ib/varuna/ctl/varuna_ports.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_retry.h>

#include <ucs/debug/memtrack_int.h>
#include <ucs/debug/log.h>

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
    if (uct_varuna_requester(iface)->amo->init != NULL) {
        uct_varuna_requester(iface)->amo->init(self);
    }
    self->lane.link  = UCT_VARUNA_LINK_NONE;
    self->fence_beat = uct_varuna_requester(iface)->beats.fence;
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

    self->instance    = ++uct_varuna_requester(iface)->ids.instances;
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
    uct_varuna_stat_settle(self);
    uct_varuna_compare_detach(self);
    uct_varuna_ep_detach_reqs(self);
    uct_varuna_ep_abandon_lane(self, &lane);
    uct_varuna_ep_abandon_lane(self, &self->recovery.dead);
    uct_varuna_ep_forget_left(self);
    uct_varuna_remains_release(uct_varuna_ep_take_reqs(self));
    uct_varuna_devices_release(self);
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

/* --- Opening --- */

/* The state OPENING: a new vQP asks the peer for a target, and then takes its first lane. */

void uct_varuna_ep_open_lane(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if ((ep->hot.state == UCT_VARUNA_EP_OPENING) && (ep->remote.logs_addr != 0) &&
        uct_varuna_ep_take_lane(ep, now)) {
        uct_varuna_ep_raise(ep, UCT_VARUNA_EP_EVENT_OPENED);
    }
}

int uct_varuna_ep_step_opening(uct_varuna_ep_t *ep, ucs_time_t now)
{
    struct {
        uct_varuna_ctl_open_req_t req;
        uint8_t                   addr[512];
    } UCS_S_PACKED body;

    if (ep->remote.logs_addr != 0) {
        /* It is being connected. Otherwise no link is usable: the scan tries */
        if (ep->next.lane.ep != NULL) {
            uct_varuna_ep_open_lane(ep, now);
        }
        if (ep->hot.state == UCT_VARUNA_EP_OPENING) {
            uct_varuna_ep_check_give_up(ep, now);
        }
        return 1;
    }

    body.req.reserved = 0;
    body.req.addr_len = uct_varuna_iface_pack_full_address(
            uct_varuna_ep_iface(ep), body.addr, sizeof(body.addr));
    uct_varuna_ep_ctl_request(ep, now, UCT_VARUNA_CTL_OPEN_REQ, ep->instance,
                              &body, sizeof(body.req) + body.req.addr_len);
    uct_varuna_ep_check_give_up(ep, now);
    return 1;
}

/* --- Closing --- */

/* How often the list is looked at, seconds: no more often than the heartbeat's clock
 * ticks anyway */
#define UCT_VARUNA_FAREWELL_PERIOD   0.1

/* How often CLOSE is sent at most. The time between two doubles, up to this power of
 * two of CTL_TIMEOUT. GIVE_UP is another limit. */
#define UCT_VARUNA_FAREWELL_TRIES    64
#define UCT_VARUNA_FAREWELL_BACKOFF  6

/* How long an interface that is being closed waits for room in the queue, seconds */
#define UCT_VARUNA_FAREWELL_LINGER   1.0

typedef struct uct_varuna_farewell {
    ucs_list_link_t            list;      /* In the requester's, by age */
    uct_varuna_peer_t          *peer;     /* A reference */
    uct_varuna_ctl_hdr_t       whose;
    uct_varuna_retry_t         retry;
    uint8_t                    first;     /* Link of the first try */
} uct_varuna_farewell_t;


static void uct_varuna_farewell_free(uct_varuna_ctl_t *ctl,
                                     uct_varuna_farewell_t *farewell)
{
    ucs_list_del(&farewell->list);
    uct_varuna_peer_put(ctl, farewell->peer);
    ucs_free(farewell);
}

static uct_varuna_retry_policy_t
uct_varuna_farewell_policy(const uct_varuna_ctl_t *ctl)
{
    uct_varuna_retry_policy_t policy = {
        .interval  = ctl->iface->config.ctl_timeout,
        .backoff   = UCT_VARUNA_FAREWELL_BACKOFF,
        .max_tries = UCT_VARUNA_FAREWELL_TRIES,
        .give_up   = ctl->iface->config.give_up
    };

    return policy;
}

static void uct_varuna_farewell_send(uct_varuna_ctl_t *ctl,
                                     uct_varuna_farewell_t *farewell,
                                     ucs_time_t now)
{
    uct_varuna_retry_policy_t policy = uct_varuna_farewell_policy(ctl);
    unsigned map                     = farewell->peer->link_map &
                                       ~ctl->ports.down;
    unsigned link;

    /* A link whose port is down is used only if there is no other one */
    map  = (map == 0) ? farewell->peer->link_map : map;
    link = uct_varuna_retry_next(&farewell->retry, &policy, farewell->first, map,
                                 now);
    uct_varuna_ctl_send(ctl, farewell->peer, link, UCT_VARUNA_CTL_CLOSE,
                        &farewell->whose, NULL, 0);
}

void uct_varuna_farewell_say(uct_varuna_requester_t *requester,
                             uct_varuna_peer_t *peer, unsigned link,
                             const uct_varuna_ctl_hdr_t *whose)
{
    uct_varuna_ctl_t *ctl = requester->super.ctl;
    ucs_time_t now        = ucs_get_time();
    uct_varuna_farewell_t *farewell;

    farewell = ucs_malloc(sizeof(*farewell), "varuna_farewell");
    if (farewell == NULL) {
        /* Once is better than not at all */
        uct_varuna_ctl_send(ctl, peer, link, UCT_VARUNA_CTL_CLOSE, whose, NULL,
                            0);
        return;
    }

    uct_varuna_ctl_lock(ctl);
    ++peer->refcount;
    farewell->peer  = peer;
    farewell->whose = *whose;
    farewell->first = link;
    uct_varuna_retry_start(&farewell->retry,
                           now + ctl->iface->config.packet_lifetime, now);
    ucs_list_add_tail(&requester->farewells, &farewell->list);
    if (whose->opening != 0) {
        uct_varuna_farewell_send(ctl, farewell, now);
    }
    uct_varuna_ctl_unlock(ctl);
}

/* There may be thousands if as many endpoints were closed at once, but they are
 * answered in the order in which they were sent, by and large. */
void uct_varuna_farewell_answered(uct_varuna_requester_t *requester,
                                  const uct_varuna_ctl_hdr_t *hdr)
{
    uct_varuna_farewell_t *farewell;

    ucs_list_for_each(farewell, &requester->farewells, list) {
        if ((farewell->whose.vqp == hdr->vqp) &&
            (farewell->whose.epoch == hdr->epoch) &&
            (farewell->whose.opening == hdr->opening) &&
            (farewell->peer->uuid == hdr->uuid) &&
            uct_varuna_retry_is_asking(&farewell->retry)) {
            uct_varuna_farewell_free(requester->super.ctl, farewell);
            return;
        }
    }
}

static void uct_varuna_farewell_timer(void *arg)
{
    uct_varuna_requester_t *requester = arg;
    uct_varuna_ctl_t *ctl             = requester->super.ctl;
    uct_varuna_retry_policy_t policy  = uct_varuna_farewell_policy(ctl);
    uct_varuna_farewell_t *farewell, *tmp;
    ucs_time_t now;

    if (ucs_list_is_empty(&requester->farewells)) {
        return;
    }

    /* Answers that arrived while no thread was awake */
    uct_varuna_ctl_progress(ctl);
    now = ucs_get_time();
    ucs_list_for_each_safe(farewell, tmp, &requester->farewells, list) {
        switch (uct_varuna_retry_check(&farewell->retry, &policy, now, now)) {
        case UCT_VARUNA_RETRY_WAIT:
            break;
        case UCT_VARUNA_RETRY_SEND:
            uct_varuna_farewell_send(ctl, farewell, now);
            break;
        case UCT_VARUNA_RETRY_GIVE_UP:
            ucs_debug("rc_varuna: vqp=%u: peer 0x%lx did not answer CLOSE, which "
                      "was sent %u times", farewell->whose.vqp,
                      farewell->peer->uuid, farewell->retry.tries);
            uct_varuna_farewell_free(ctl, farewell);
            break;
        }
    }
    uct_varuna_ctl_reap_eps(ctl, 0);
}

void uct_varuna_farewell_start(uct_varuna_requester_t *requester)
{
    ucs_list_head_init(&requester->farewells);
    uct_varuna_clock_add(&requester->super.ctl->time.clock,
                         uct_varuna_ctl_now(requester->super.ctl),
                         ucs_time_from_sec(UCT_VARUNA_FAREWELL_PERIOD),
                         uct_varuna_farewell_timer, requester);
}

/* A queue that is full would drop what was sent first. */
static void uct_varuna_farewell_make_room(uct_varuna_ctl_t *ctl,
                                          ucs_time_t deadline)
{
    while ((ctl->queue.len > (UCT_VARUNA_CTL_MAX_QUEUE / 2)) &&
           (ucs_get_time() < deadline)) {
        uct_varuna_ctl_progress(ctl);
    }
}

void uct_varuna_farewells_end(uct_varuna_requester_t *requester)
{
    uct_varuna_ctl_t *ctl = requester->super.ctl;
    ucs_time_t deadline   = ucs_get_time() +
                            ucs_time_from_sec(UCT_VARUNA_FAREWELL_LINGER);
    uct_varuna_farewell_t *farewell;
    unsigned link;

    uct_varuna_ctl_lock(ctl);
    uct_varuna_ctl_progress(ctl); /* Answers that have come */
    while (!ucs_list_is_empty(&requester->farewells)) {
        farewell = ucs_list_extract_head(&requester->farewells,
                                         uct_varuna_farewell_t, list);
        ucs_list_head_init(&farewell->list);
        uct_varuna_farewell_make_room(ctl, deadline);
        ucs_for_each_bit(link, farewell->peer->link_map) {
            uct_varuna_ctl_send(ctl, farewell->peer, link,
                                UCT_VARUNA_CTL_CLOSE, &farewell->whose, NULL,
                                0);
        }
        uct_varuna_farewell_free(ctl, farewell);
    }
    uct_varuna_ctl_unlock(ctl);
}
