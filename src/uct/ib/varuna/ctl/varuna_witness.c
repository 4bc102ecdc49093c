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

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>

/* Intervals in which it may turn out whose fault a dead path is */
#define UCT_VARUNA_WITNESS_TICKS     10

/* What the silence of a peer on all links may mean, and why; the latter know more. While
 * ports are down, here or there, the peer may be well */
enum {
    UCT_VARUNA_SILENCE_NO_PORTS,
    UCT_VARUNA_SILENCE_SOME_PORTS,
    UCT_VARUNA_SILENCE_ALONE,
    UCT_VARUNA_SILENCE_OTHERS,
    UCT_VARUNA_SILENCE_NEIGHBOURS
};

static const char *uct_varuna_witness_silences[] = {
    [UCT_VARUNA_SILENCE_NO_PORTS]   = "no link has a port that is up at both ends",
    [UCT_VARUNA_SILENCE_SOME_PORTS] = "ports are down, and the others are silent: their links "
                                      "or the peer may be at fault",
    [UCT_VARUNA_SILENCE_ALONE]      = "it is dead or stopped, or all links are",
    [UCT_VARUNA_SILENCE_OTHERS]     = "its process or host is dead or stopped, as other peers "
                                      "answer",
    [UCT_VARUNA_SILENCE_NEIGHBOURS] = "its process is dead or stopped, as others of its host "
                                      "answer"
};


int uct_varuna_witness_is_inside(const uct_varuna_ctl_t *ctl,
                                 const uct_varuna_peer_t *peer, unsigned link)
{
    const uct_varuna_link_t *ours = &ctl->iface->links[link];

    return (peer->link_map & UCS_BIT(link)) &&
           !memcmp(peer->links[link].device_addr, ours->device_addr,
                   ours->device_addr_len);
}

/* @return whether @a other is another process behind the port that @a link reaches
 * of @a peer. */
static int uct_varuna_witness_is_neighbour(const uct_varuna_ctl_t *ctl,
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

/* The link works for @a peer now. If that was proved after another one had fallen silent,
 * it is evidence: an answer from before the failure is none. */
static int uct_varuna_witness_is_fresh(const uct_varuna_ctl_t *ctl,
                                       const uct_varuna_peer_t *peer, unsigned link,
                                       ucs_time_t now)
{
    const uct_varuna_alive_path_t *path = &peer->hb.alive.paths[link];

    return (path->proved_at != 0) && !path->condemned &&
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

/* --- All peers of a link, by the ports that they are behind --- */

void uct_varuna_crowd_init(uct_varuna_crowd_t *crowd, uct_varuna_ctl_t *ctl,
                           ucs_time_t now)
{
    memset(crowd, 0, sizeof(*crowd));
    crowd->ctl = ctl;
    crowd->now = now;
}

void uct_varuna_crowd_cleanup(uct_varuna_crowd_t *crowd)
{
    unsigned link;

    ucs_for_each_bit(link, crowd->gathered) {
        kh_destroy_inplace(uct_varuna_crowd_ports, &crowd->links[link].ports);
        ucs_free(crowd->links[link].members);
    }
}

/* Ports with the same hash share a list, so its readers compare the addresses */
static uint64_t uct_varuna_crowd_key(const uct_varuna_crowd_t *crowd,
                                     const uct_varuna_peer_t *peer, unsigned link)
{
    const uint8_t *addr = (const uint8_t*)peer->links[link].device_addr;
    uint64_t key        = 0;
    unsigned i;

    for (i = 0; i < crowd->ctl->iface->links[link].device_addr_len; ++i) {
        key = ((key ^ addr[i]) * 0x9e3779b97f4a7c15ul) ^ (key >> 29);
    }

    return key;
}

/* The two ports outside whose peers have answered last */
static void uct_varuna_crowd_note_best(uct_varuna_crowd_link_t *at, uint64_t key,
                                       ucs_time_t proved_at)
{
    uct_varuna_crowd_best_t *best = at->best;

    if ((best[0].proved_at == 0) || (best[0].key == key)) {
        best[0].key       = key;
        best[0].proved_at = ucs_max(best[0].proved_at, proved_at);
    } else if (proved_at > best[0].proved_at) {
        best[1]           = best[0];
        best[0].key       = key;
        best[0].proved_at = proved_at;
    } else if (proved_at > best[1].proved_at) {
        best[1].key       = key;
        best[1].proved_at = proved_at;
    }
}

static void uct_varuna_crowd_add(uct_varuna_crowd_t *crowd, unsigned link,
                                 uct_varuna_peer_t *peer)
{
    uct_varuna_crowd_link_t *at = &crowd->links[link];
    uint64_t key                = uct_varuna_crowd_key(crowd, peer, link);
    ucs_time_t proved_at        = peer->hb.alive.paths[link].proved_at;
    uct_varuna_crowd_port_t *port;
    khiter_t iter;
    int ret;

    iter = kh_put(uct_varuna_crowd_ports, &at->ports, key, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        return;
    }

    port = &kh_val(&at->ports, iter);
    if (ret != UCS_KH_PUT_KEY_PRESENT) {
        memset(port, 0, sizeof(*port));
    }

    at->members[at->num_members].peer = peer;
    at->members[at->num_members].next = port->first;
    port->first                       = ++at->num_members;
    if (uct_varuna_witness_is_inside(crowd->ctl, peer, link)) {
        return;
    }

    if (uct_varuna_witness_is_fresh(crowd->ctl, peer, link, crowd->now)) {
        uct_varuna_crowd_note_best(at, key, proved_at);
    } else if (uct_varuna_witness_is_silent(crowd->ctl, peer, link)) {
        ++port->num_silent;
        ++at->num_silent;
    }
}

/* Once in a tick, if somebody is silent */
static uct_varuna_crowd_link_t *
uct_varuna_crowd_gather(uct_varuna_crowd_t *crowd, unsigned link)
{
    uct_varuna_crowd_link_t *at = &crowd->links[link];
    uct_varuna_peer_t *peer;

    if (crowd->gathered & UCS_BIT(link)) {
        return at;
    }

    at->members = ucs_malloc(ucs_max(kh_size(&crowd->ctl->peers), 1) *
                             sizeof(*at->members), "varuna_crowd");
    if (at->members == NULL) {
        return NULL; /* Nobody is known */
    }

    crowd->gathered |= UCS_BIT(link);
    kh_init_inplace(uct_varuna_crowd_ports, &at->ports);
    kh_foreach_value(&crowd->ctl->peers, peer, {
        if (peer->link_map & UCS_BIT(link)) {
            uct_varuna_crowd_add(crowd, link, peer);
        }
    });
    return at;
}

/* @return That of the port that it is behind, NULL if there is none. */
static uct_varuna_crowd_port_t *
uct_varuna_crowd_port(uct_varuna_crowd_t *crowd, const uct_varuna_peer_t *peer,
                      unsigned link)
{
    uct_varuna_crowd_link_t *at = uct_varuna_crowd_gather(crowd, link);
    khiter_t iter;

    if (at == NULL) {
        return NULL;
    }

    iter = kh_get(uct_varuna_crowd_ports, &at->ports,
                  uct_varuna_crowd_key(crowd, peer, link));
    return (iter == kh_end(&at->ports)) ? NULL : &kh_val(&at->ports, iter);
}

uct_varuna_peer_t *uct_varuna_crowd_neighbour(uct_varuna_crowd_t *crowd,
                                              const uct_varuna_peer_t *peer,
                                              unsigned link, unsigned *pos_p)
{
    uct_varuna_crowd_port_t *port = uct_varuna_crowd_port(crowd, peer, link);
    const uct_varuna_crowd_member_t *member;

    if (port == NULL) {
        return NULL;
    }

    *pos_p = (*pos_p == 0) ? port->first : crowd->links[link].members[*pos_p - 1].next;
    while (*pos_p != 0) {
        member = &crowd->links[link].members[*pos_p - 1];
        if (uct_varuna_witness_is_neighbour(crowd->ctl, peer, member->peer, link)) {
            return member->peer;
        }
        *pos_p = member->next;
    }

    return NULL;
}

void uct_varuna_witness_gather(uct_varuna_crowd_t *crowd, const uct_varuna_peer_t *peer,
                               unsigned link, uct_varuna_symptoms_t *evidence)
{
    const uct_varuna_ctl_t *ctl         = crowd->ctl;
    const uct_varuna_crowd_port_t *port = uct_varuna_crowd_port(crowd, peer, link);
    const uct_varuna_crowd_link_t *at   = &crowd->links[link];
    ucs_time_t since                    = peer->hb.alive.paths[link].since;
    unsigned pos                        = 0;
    uct_varuna_peer_t *other;
    uint64_t key;
    unsigned i;

    memset(evidence, 0, sizeof(*evidence));
    evidence->our_port_down = !!(ctl->ports.down & UCS_BIT(link));
    evidence->far_port_down = !!(peer->hb.far_down & UCS_BIT(link));
    evidence->inside        = uct_varuna_witness_is_inside(ctl, peer, link);
    if (port == NULL) {
        return;
    }

    key = uct_varuna_crowd_key(crowd, peer, link);
    for (i = 0; i < ucs_static_array_size(at->best); ++i) {
        evidence->others_answer |= (at->best[i].key != key) &&
                                   (at->best[i].proved_at > since);
    }

    evidence->others_silent = at->num_silent > port->num_silent;
    while (!evidence->neighbours_answer &&
           ((other = uct_varuna_crowd_neighbour(crowd, peer, link, &pos)) != NULL)) {
        evidence->neighbours_answer = uct_varuna_witness_is_fresh(ctl, other, link,
                                                                  crowd->now) &&
                                      (other->hb.alive.paths[link].proved_at > since);
    }
}

/* --- What it means --- */

static void
uct_varuna_witness_explain_path(uct_varuna_crowd_t *crowd, uct_varuna_peer_t *peer,
                                unsigned link, int is_new)
{
    uct_varuna_symptoms_t evidence;
    uct_varuna_fault_t fault;
    const char *why;

    uct_varuna_witness_gather(crowd, peer, link, &evidence);
    fault = uct_varuna_diagnose(&evidence, &why);
    if (is_new || (fault != UCT_VARUNA_FAULT_UNKNOWN)) {
        ucs_info("rc_varuna: heartbeat: peer 0x%lx is silent on %s and answers"
                 " on another link: %s: %s", peer->uuid,
                 uct_varuna_link_name(crowd->ctl->iface, link),
                 uct_varuna_fault_names[fault], why);
    }

    if (fault != UCT_VARUNA_FAULT_UNKNOWN) {
        peer->hb.unexplained &= ~UCS_BIT(link);
    }
}

static unsigned uct_varuna_witness_silence(uct_varuna_crowd_t *crowd,
                                           const uct_varuna_peer_t *peer)
{
    unsigned down     = (crowd->ctl->ports.down | crowd->ctl->announce.failed |
                         peer->hb.far_down) & peer->link_map;
    int others_answer = 0;
    uct_varuna_symptoms_t evidence;
    unsigned link;

    ucs_for_each_bit(link, peer->link_map & ~down) {
        uct_varuna_witness_gather(crowd, peer, link, &evidence);
        if (evidence.neighbours_answer) {
            return UCT_VARUNA_SILENCE_NEIGHBOURS;
        }

        others_answer |= evidence.others_answer;
    }

    if (down != 0) {
        return (down == peer->link_map) ? UCT_VARUNA_SILENCE_NO_PORTS :
               UCT_VARUNA_SILENCE_SOME_PORTS;
    }

    return others_answer ? UCT_VARUNA_SILENCE_OTHERS : UCT_VARUNA_SILENCE_ALONE;
}

/* @return What it means that @a peer is silent on all links, for people. */
static const char *uct_varuna_witness_explain_peer(uct_varuna_crowd_t *crowd,
                                                   const uct_varuna_peer_t *peer)
{
    return uct_varuna_witness_silences[uct_varuna_witness_silence(crowd, peer)];
}

static void
uct_varuna_witness_explain_silence(uct_varuna_crowd_t *crowd,
                                   uct_varuna_peer_t *peer, int is_new)
{
    unsigned silence = uct_varuna_witness_silence(crowd, peer);

    if (is_new || (silence > peer->hb.silence)) {
        ucs_info("rc_varuna: heartbeat: peer 0x%lx is silent on all links: %s; "
                 "no endpoint switches", peer->uuid,
                 uct_varuna_witness_silences[silence]);
        peer->hb.silence = silence;
    }
}

void uct_varuna_witness_explain(uct_varuna_crowd_t *crowd, uct_varuna_peer_t *peer,
                                unsigned dead, int became_silent)
{
    unsigned link;

    if (dead != 0) {
        peer->hb.unexplained  |= dead;
        peer->hb.explain_ticks = UCT_VARUNA_WITNESS_TICKS;
    }

    ucs_for_each_bit(link, peer->hb.unexplained) {
        if (peer->hb.alive.paths[link].condemned) {
            uct_varuna_witness_explain_path(crowd, peer, link,
                                            !!(dead & UCS_BIT(link)));
        } else {
            peer->hb.unexplained &= ~UCS_BIT(link);
        }
    }

    if ((peer->hb.unexplained != 0) && (peer->hb.explain_ticks-- == 0)) {
        peer->hb.unexplained = 0;
    }

    if (peer->hb.alive.silent) {
        uct_varuna_witness_explain_silence(crowd, peer, became_silent);
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

/* --- Ways to a peer, for people --- */

/* The ways to a peer, for people. */

/* Peers in a list that something is wrong with */
#define UCT_VARUNA_WAYS_MAX_LISTED   16


void uct_varuna_ways_get(const uct_varuna_ctl_t *ctl, const uct_varuna_peer_t *peer,
                         uct_varuna_ways_t *ways)
{
    unsigned link;

    ways->here   = UCS_MASK(ctl->num_links) & ~(ctl->ports.down | ctl->announce.failed);
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
