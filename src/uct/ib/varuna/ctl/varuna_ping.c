/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Sends pings as resources allow. See varuna_ping.h. Called by the heartbeat, and by the
 * progress of the control plane.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ping.h"
#include "varuna_ctl_ep.h"
#include "varuna_ctl_send.h"

#include <string.h>

/* Pings on each link in one call: completions of the next ones call again */
#define UCT_VARUNA_PING_MAX_BURST    64


void uct_varuna_ping_init(uct_varuna_ctl_t *ctl)
{
    unsigned link;

    for (link = 0; link < UCT_VARUNA_MAX_LINKS; ++link) {
        ucs_list_head_init(&ctl->hb.due[link]);
    }
}

int uct_varuna_ping_now(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer, unsigned link,
                        ucs_time_t now)
{
    struct {
        uct_varuna_ctl_hdr_t   hdr;
        char                   from[UCT_VARUNA_CTL_MAX_FROM];
    } UCS_S_PACKED ping;
    size_t length;

    memset(&ping.hdr, 0, sizeof(ping.hdr));
    ping.hdr.magic   = UCT_VARUNA_WIRE_MAGIC;
    ping.hdr.version = UCT_VARUNA_WIRE_VERSION;
    ping.hdr.type    = UCT_VARUNA_CTL_PING;
    ping.hdr.dest    = peer->uuid;
    ping.hdr.uuid    = ctl->iface->uuid;
    ping.hdr.secret  = peer->secret;
    ping.hdr.moves   = peer->moves.known;
    ping.hdr.vqp     = link;
    ping.hdr.epoch   = uct_varuna_alive_next(&peer->hb.alive, link);
    length           = sizeof(ping.hdr) +
                       uct_varuna_ctl_append_from(ctl, link, &ping.hdr);

    if (uct_varuna_ctl_post(ctl, peer, link, &ping, length) == UCS_ERR_NO_RESOURCE) {
        return 0;
    }

    /* Also if it was held back, since the peer is doubtful there (varuna_doubt.c), and
     * if there is no route to its port */
    (void)uct_varuna_alive_ping(&peer->hb.alive, link, now);
    return 1;
}

void uct_varuna_ping_due(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer, unsigned links)
{
    unsigned link;

    ucs_for_each_bit(link, peer->hb.due & ~links) {
        ucs_list_del(&peer->hb.due_list[link]);
    }

    ucs_for_each_bit(link, links & ~peer->hb.due) {
        ucs_list_add_tail(&ctl->hb.due[link], &peer->hb.due_list[link]);
    }

    peer->hb.due = links;
}

static uct_varuna_peer_t *uct_varuna_ping_first(uct_varuna_ctl_t *ctl, unsigned link)
{
    return ucs_container_of(ctl->hb.due[link].next - link, uct_varuna_peer_t,
                            hb.due_list[0]);
}

static void uct_varuna_ping_go_on_link(uct_varuna_ctl_t *ctl, unsigned link,
                                       ucs_time_t now)
{
    unsigned count;
    uct_varuna_peer_t *peer;

    for (count = 0; (count < UCT_VARUNA_PING_MAX_BURST) &&
                    !ucs_list_is_empty(&ctl->hb.due[link]); ++count) {
        peer = uct_varuna_ping_first(ctl, link);
        if ((peer->link_map & UCS_BIT(link)) &&
            !uct_varuna_ping_now(ctl, peer, link, now)) {
            return;
        }

        uct_varuna_ping_due(ctl, peer, peer->hb.due & ~UCS_BIT(link));
    }
}

void uct_varuna_ping_go_on(uct_varuna_ctl_t *ctl)
{
    unsigned link;
    ucs_time_t now;

    for (link = 0; link < ctl->num_links; ++link) {
        if (!ucs_list_is_empty(&ctl->hb.due[link])) {
            now = uct_varuna_ctl_now(ctl);
            uct_varuna_ping_go_on_link(ctl, link, now);
        }
    }
}
