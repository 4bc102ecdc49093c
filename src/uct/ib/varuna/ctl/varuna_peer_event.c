/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the heartbeat and the peers' reports have found, applied in the main thread: paths
 * that are dead or good again, and links that are suspected.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_peer_event.h"
#include "varuna_ctl.h"
#include "varuna_path.h"
#include "varuna_peer.h"
#include <uct/ib/varuna/lanes/varuna_link_event.h>

typedef struct uct_varuna_peer_event {
    unsigned                   dead;      /* Paths */
    unsigned                   told_down; /* ... by their owner */
    unsigned                   told_up;
    unsigned                   retired;
} uct_varuna_peer_event_t;

/* Take one peer's event. @return NULL if there is none, else a reference. */
static uct_varuna_peer_t *
uct_varuna_peer_event_next(uct_varuna_ctl_t *ctl, uct_varuna_peer_event_t *event)
{
    uct_varuna_peer_t *peer = NULL;

    uct_varuna_ctl_lock(ctl);
    if (!ucs_list_is_empty(&ctl->hb.events)) {
        peer               = ucs_list_extract_head(&ctl->hb.events,
                                                   uct_varuna_peer_t, hb.list);
        event->dead        = peer->hb.dead;
        event->told_down   = peer->hb.told_down;
        event->told_up     = peer->hb.told_up;
        event->retired     = peer->hb.far_retired;
        peer->hb.queued    = 0;
        peer->hb.dead      = 0;
        peer->hb.told_down = 0;
        peer->hb.told_up   = 0;
        ++peer->refcount;
    }
    uct_varuna_ctl_unlock(ctl);
    return peer;
}

/* What is on such a path works, and moves as planned. */
static void uct_varuna_peer_event_retire(uct_varuna_iface_t *iface,
                                         uct_varuna_peer_t *peer, unsigned retired)
{
    if (peer->retired == retired) {
        return;
    }

    ucs_info("rc_varuna: peer 0x%lx has retired its ends of links 0x%x", peer->uuid,
             retired);
    peer->retired = retired;
    uct_varuna_link_raise(iface);
}

static void uct_varuna_peer_event_apply(uct_varuna_iface_t *iface,
                                        uct_varuna_peer_t *peer,
                                        const uct_varuna_peer_event_t *event)
{
    unsigned link;

    ucs_for_each_bit(link, event->dead) {
        uct_varuna_peer_path_down(iface, peer, link, "heartbeat lost");
    }

    /* Where there is no other path, nothing is better than to wait on this one */
    ucs_for_each_bit(link, event->told_down) {
        if (uct_varuna_peer_usable_links(peer) & ~UCS_BIT(link)) {
            uct_varuna_peer_path_down(iface, peer, link,
                                      "the peer's port is down");
        }
    }

    ucs_for_each_bit(link, event->told_up) {
        uct_varuna_peer_path_good(iface, peer, link);
    }

    uct_varuna_peer_event_retire(iface, peer, event->retired);
}

int uct_varuna_peer_has_events(uct_varuna_ctl_t *ctl)
{
    return !ucs_list_is_empty(&ctl->hb.events) || (ctl->hb.down_map != 0) ||
           (ctl->hb.up_map != 0);
}

unsigned uct_varuna_peer_events_dispatch(uct_varuna_ctl_t *ctl)
{
    unsigned count = 0;
    uct_varuna_peer_event_t event;
    unsigned link, down_map, up_map;
    uct_varuna_peer_t *peer;

    while ((peer = uct_varuna_peer_event_next(ctl, &event)) != NULL) {
        uct_varuna_peer_event_apply(ctl->iface, peer, &event);
        uct_varuna_peer_put(ctl, peer);
        ++count;
    }

    uct_varuna_ctl_lock(ctl);
    down_map         = ctl->hb.down_map;
    up_map           = ctl->hb.up_map;
    ctl->hb.down_map = 0;
    ctl->hb.up_map   = 0;
    uct_varuna_ctl_unlock(ctl);

    ucs_for_each_bit(link, down_map) {
        uct_varuna_link_down(ctl->iface, link, UCT_VARUNA_LINK_CAUSE_HEARTBEAT,
                             "nobody answers on it");
        ++count;
    }
    ucs_for_each_bit(link, up_map) {
        uct_varuna_link_up(ctl->iface, link, UCT_VARUNA_LINK_CAUSE_HEARTBEAT);
        ++count;
    }

    return count;
}
