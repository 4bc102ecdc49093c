/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_farewell.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_ctl_ep.h>
#include <uct/ib/varuna/ctl/varuna_ctl_progress.h>
#include <uct/ib/varuna/ctl/varuna_ctl_send.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_retry.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>

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
                                       ~ctl->ports_down;
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
    uct_varuna_clock_add(&requester->super.ctl->clock,
                         ucs_time_from_sec(UCT_VARUNA_FAREWELL_PERIOD),
                         uct_varuna_farewell_timer, requester);
}

/* A queue that is full would drop what was sent first. */
static void uct_varuna_farewell_make_room(uct_varuna_ctl_t *ctl,
                                          ucs_time_t deadline)
{
    while ((ctl->queue_len > (UCT_VARUNA_CTL_MAX_QUEUE / 2)) &&
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
