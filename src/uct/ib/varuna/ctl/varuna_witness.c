/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Evidence on a link from all peers. See varuna_witness.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_witness.h"
#include "varuna_ctl.h"
#include "varuna_peer.h"
#include <uct/ib/varuna/core/varuna_diagnosis.h>

#include <ucs/debug/log.h>
#include <string.h>

/* Whose fault a dead path is may turn out in so many intervals */
#define UCT_VARUNA_WITNESS_TICKS     10

/* What the silence of a peer on all links may mean, and why; the latter know more */
static const char *uct_varuna_witness_silences[] = {
    "it is dead or stopped, or all links are",
    "its process or host is dead or stopped, as other peers answer",
    "its process is dead or stopped, as others of its host answer"
};


int uct_varuna_witness_is_inside(const uct_varuna_ctl_t *ctl,
                                 const uct_varuna_peer_t *peer, unsigned link)
{
    const uct_varuna_link_t *ours = &ctl->iface->links[link];

    return (peer->link_map & UCS_BIT(link)) &&
           !memcmp(peer->links[link].device_addr, ours->device_addr,
                   ours->device_addr_len);
}

int uct_varuna_witness_is_neighbour(const uct_varuna_ctl_t *ctl,
                                    const uct_varuna_peer_t *peer,
                                    const uct_varuna_peer_t *other, unsigned link)
{
    return (other->uuid != peer->uuid) &&
           (other->link_map & peer->link_map & UCS_BIT(link)) &&
           !memcmp(other->links[link].device_addr,
                   peer->links[link].device_addr,
                   ctl->iface->links[link].device_addr_len);
}

int uct_varuna_witness_is_recent(const uct_varuna_ctl_t *ctl,
                                 const uct_varuna_peer_t *peer, unsigned link,
                                 ucs_time_t now)
{
    ucs_time_t lately      = (ctl->hb.max_misses + 1) * ctl->hb.interval;
    ucs_time_t answered_at = uct_varuna_heartbeat_answered_at(peer, link);

    return (answered_at != 0) && ((now - answered_at) <= lately);
}

/* The link worked for @a other when that for @a peer did not any more, and still
 * does: an answer from before the failure is no evidence. */
static int uct_varuna_witness_answers(const uct_varuna_ctl_t *ctl,
                                      const uct_varuna_peer_t *peer,
                                      const uct_varuna_peer_t *other,
                                      unsigned link, ucs_time_t now)
{
    const uct_varuna_alive_path_t *path = &other->hb.alive.paths[link];

    return (path->proved_at != 0) && !path->condemned &&
           (path->proved_at > peer->hb.alive.paths[link].since) &&
           ((now - path->proved_at) <= (2 * ctl->hb.interval));
}

/* About to be condemned: those which fell silent at the same time as the one that is
 * judged have their turn later in this tick. */
static int uct_varuna_witness_is_silent(const uct_varuna_ctl_t *ctl,
                                        const uct_varuna_peer_t *other,
                                        unsigned link)
{
    return uct_varuna_alive_is_silent(&other->hb.alive, other->link_map, link,
                                      ucs_max(ctl->hb.max_misses, 2) - 1);
}

static void
uct_varuna_witness_gather(uct_varuna_ctl_t *ctl, const uct_varuna_peer_t *peer,
                          unsigned link, ucs_time_t now,
                          uct_varuna_symptoms_t *evidence)
{
    uct_varuna_peer_t *other;
    int is_neighbour;

    memset(evidence, 0, sizeof(*evidence));
    evidence->our_port_down = !!(ctl->ports_down & UCS_BIT(link));
    evidence->far_port_down = !!(peer->hb.far_down & UCS_BIT(link));
    evidence->inside        = uct_varuna_witness_is_inside(ctl, peer, link);
    kh_foreach_value(&ctl->peers, other, {
        if ((other->uuid == peer->uuid) ||
            !(other->link_map & UCS_BIT(link))) {
            continue;
        }

        is_neighbour = uct_varuna_witness_is_neighbour(ctl, peer, other, link);
        if (!is_neighbour && uct_varuna_witness_is_inside(ctl, other, link)) {
            continue;
        }

        if (uct_varuna_witness_answers(ctl, peer, other, link, now)) {
            evidence->neighbours_answer |= is_neighbour;
            evidence->others_answer     |= !is_neighbour;
        } else if (!is_neighbour) {
            evidence->others_silent |= uct_varuna_witness_is_silent(ctl, other,
                                                                    link);
        }
    });
}

static void
uct_varuna_witness_explain_path(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                unsigned link, int is_new, ucs_time_t now)
{
    uct_varuna_symptoms_t evidence;
    uct_varuna_fault_t fault;
    const char *why;

    uct_varuna_witness_gather(ctl, peer, link, now, &evidence);
    fault = uct_varuna_diagnose(&evidence, &why);
    if (is_new || (fault != UCT_VARUNA_FAULT_UNKNOWN)) {
        ucs_info("rc_varuna: heartbeat: peer 0x%lx is silent on %s and answers"
                 " on another link: %s: %s", peer->uuid,
                 uct_varuna_link_name(ctl->iface, link),
                 uct_varuna_fault_names[fault], why);
    }

    if (fault != UCT_VARUNA_FAULT_UNKNOWN) {
        peer->hb.unexplained &= ~UCS_BIT(link);
    }
}

static void
uct_varuna_witness_explain_silence(uct_varuna_ctl_t *ctl,
                                   uct_varuna_peer_t *peer, int is_new,
                                   ucs_time_t now)
{
    unsigned silence = 0;
    uct_varuna_symptoms_t evidence;
    unsigned link;

    ucs_for_each_bit(link, peer->link_map) {
        uct_varuna_witness_gather(ctl, peer, link, now, &evidence);
        silence = ucs_max(silence, evidence.neighbours_answer ? 2 :
                                   evidence.others_answer);
    }

    if (is_new || (silence > peer->hb.silence)) {
        ucs_info("rc_varuna: heartbeat: peer 0x%lx is silent on all links: %s; "
                 "no endpoint switches", peer->uuid,
                 uct_varuna_witness_silences[silence]);
        peer->hb.silence = silence;
    }
}

void uct_varuna_witness_explain(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                unsigned dead, int became_silent,
                                ucs_time_t now)
{
    unsigned link;

    if (dead != 0) {
        peer->hb.unexplained  |= dead;
        peer->hb.explain_ticks = UCT_VARUNA_WITNESS_TICKS;
    }

    ucs_for_each_bit(link, peer->hb.unexplained) {
        if (peer->hb.alive.paths[link].condemned) {
            uct_varuna_witness_explain_path(ctl, peer, link,
                                            !!(dead & UCS_BIT(link)), now);
        } else {
            peer->hb.unexplained &= ~UCS_BIT(link);
        }
    }

    if ((peer->hb.unexplained != 0) && (peer->hb.explain_ticks-- == 0)) {
        peer->hb.unexplained = 0;
    }

    if (peer->hb.alive.silent) {
        uct_varuna_witness_explain_silence(ctl, peer, became_silent, now);
    }
}

int uct_varuna_witness_anybody(uct_varuna_ctl_t *ctl, unsigned link,
                               ucs_time_t now)
{
    uct_varuna_peer_t *peer;

    kh_foreach_value(&ctl->peers, peer, {
        if (!uct_varuna_witness_is_inside(ctl, peer, link) &&
            uct_varuna_witness_is_recent(ctl, peer, link, now)) {
            return 1;
        }
    });

    return 0;
}

unsigned uct_varuna_witness_count_dead(uct_varuna_ctl_t *ctl, unsigned link)
{
    const uct_varuna_peer_t *first = NULL;
    unsigned count                 = 0;
    int has_ports                  = 0; /* Several */
    uct_varuna_peer_t *peer;

    kh_foreach_value(&ctl->peers, peer, {
        if (!peer->hb.alive.paths[link].condemned ||
            uct_varuna_witness_is_inside(ctl, peer, link)) {
            continue;
        }

        ++count;
        if (first == NULL) {
            first = peer;
        } else if (!uct_varuna_witness_is_neighbour(ctl, first, peer, link)) {
            has_ports = 1;
        }
    });

    return has_ports ? count : 0;
}
