/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The ways to a peer, for people. See varuna_ways.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ways.h"
#include "varuna_ctl.h"
#include "varuna_peer.h"
#include "varuna_witness.h"

/* Peers in a list that something is wrong with */
#define UCT_VARUNA_WAYS_MAX_LISTED   16


void uct_varuna_ways_get(const uct_varuna_ctl_t *ctl, const uct_varuna_peer_t *peer,
                         uct_varuna_ways_t *ways)
{
    unsigned link;

    ways->here   = UCS_MASK(ctl->num_links) & ~(ctl->ports_down | ctl->failed | ctl->gone);
    ways->there  = peer->link_map & ~peer->hb.far_down;
    ways->silent = peer->hb.alive.silent ? peer->link_map : 0;
    ucs_for_each_bit(link, peer->link_map) {
        if (peer->hb.alive.paths[link].condemned) {
            ways->silent |= UCS_BIT(link);
        }
    }
}

static void uct_varuna_ways_append_names(const uct_varuna_ctl_t *ctl, unsigned links,
                                         ucs_string_buffer_t *text)
{
    const char *separator = "";
    unsigned link;

    ucs_for_each_bit(link, links) {
        ucs_string_buffer_appendf(text, "%s%s", separator,
                                  uct_varuna_link_name(ctl->iface, link));
        separator = ", ";
    }

    if (links == 0) {
        ucs_string_buffer_appendf(text, "none");
    }
}

/* Of each link that does not work */
static void uct_varuna_ways_append_faults(uct_varuna_crowd_t *crowd,
                                          const uct_varuna_peer_t *peer,
                                          const uct_varuna_ways_t *ways,
                                          ucs_string_buffer_t *text)
{
    const uct_varuna_ctl_t *ctl = crowd->ctl;
    uct_varuna_symptoms_t evidence;
    uct_varuna_fault_t fault;
    const char *why;
    unsigned link;

    ucs_for_each_bit(link, peer->link_map & ~uct_varuna_ways_open(ways)) {
        if (peer->hb.alive.silent && (ways->here & ways->there & UCS_BIT(link))) {
            continue; /* What its silence on all links means follows */
        }

        uct_varuna_witness_gather(crowd, peer, link, &evidence);
        evidence.our_port_down = !(ways->here & UCS_BIT(link));
        fault                  = uct_varuna_diagnose(&evidence, &why);
        ucs_string_buffer_appendf(text, "; %s: %s: %s",
                                  uct_varuna_link_name(ctl->iface, link),
                                  uct_varuna_fault_names[fault], why);
    }

    if (peer->hb.alive.silent) {
        ucs_string_buffer_appendf(text, "; the peer answers on no link: %s",
                                  uct_varuna_witness_explain_peer(crowd, peer));
    }
}

static void uct_varuna_ways_append(uct_varuna_crowd_t *crowd, const uct_varuna_peer_t *peer,
                                   const uct_varuna_ways_t *ways, ucs_string_buffer_t *text)
{
    ucs_string_buffer_appendf(text, "up here: ");
    uct_varuna_ways_append_names(crowd->ctl, ways->here, text);
    ucs_string_buffer_appendf(text, "; up there, at the ends of: ");
    uct_varuna_ways_append_names(crowd->ctl, ways->there, text);
    ucs_string_buffer_appendf(text, "; at both ends: ");
    uct_varuna_ways_append_names(crowd->ctl, ways->here & ways->there, text);
    uct_varuna_ways_append_faults(crowd, peer, ways, text);
}

void uct_varuna_ways_describe(uct_varuna_ctl_t *ctl, const uct_varuna_peer_t *peer,
                              ucs_string_buffer_t *text)
{
    uct_varuna_crowd_t crowd;
    uct_varuna_ways_t ways;

    uct_varuna_ways_get(ctl, peer, &ways);
    uct_varuna_crowd_init(&crowd, ctl, uct_varuna_ctl_now(ctl));
    uct_varuna_ways_append(&crowd, peer, &ways, text);
    uct_varuna_crowd_cleanup(&crowd);
}

void uct_varuna_ways_list(uct_varuna_ctl_t *ctl, const char *prefix,
                          ucs_string_buffer_t *text)
{
    unsigned num_good = 0, num_bad = 0;
    uct_varuna_crowd_t crowd;
    uct_varuna_ways_t ways;
    uct_varuna_peer_t *peer;

    uct_varuna_crowd_init(&crowd, ctl, uct_varuna_ctl_now(ctl));
    kh_foreach_value(&ctl->peers, peer, {
        uct_varuna_ways_get(ctl, peer, &ways);
        if (uct_varuna_ways_open(&ways) == peer->link_map) {
            ++num_good;
        } else if (++num_bad <= UCT_VARUNA_WAYS_MAX_LISTED) {
            ucs_string_buffer_appendf(text, "%speer=0x%lx ", prefix, peer->uuid);
            uct_varuna_ways_append(&crowd, peer, &ways, text);
            ucs_string_buffer_appendf(text, "\n");
        }
    });
    uct_varuna_crowd_cleanup(&crowd);

    if (num_bad > UCT_VARUNA_WAYS_MAX_LISTED) {
        ucs_string_buffer_appendf(text, "%speers=%u faults on some links, like the ones above\n",
                                  prefix, num_bad - UCT_VARUNA_WAYS_MAX_LISTED);
    }

    if (num_good > 0) {
        ucs_string_buffer_appendf(text, "%speers=%u no fault is known\n", prefix, num_good);
    }
}
