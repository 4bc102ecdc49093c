/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Ports that get another address: noticing it. See varuna_moves.h; varuna_moves_apply.c does
 * the rest.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_moves.h"
#include "varuna_addr.h"
#include "varuna_ctl_send.h"
#include "varuna_notify.h"
#include "varuna_peer.h"

#include <ucs/arch/bitops.h>
#include <string.h>

/* Seconds between two questions for the same: the main thread takes the answers */
#define UCT_VARUNA_MOVES_ASK         1.0

/* A guest is told this many times, each time after twice as long: half a minute by default */
#define UCT_VARUNA_MOVES_MAX_TOLD    10


int uct_varuna_moves_is_active(const uct_varuna_ctl_t *ctl, unsigned link)
{
    const uct_varuna_link_t *own = &ctl->iface->links[link];

    return uct_varuna_mlx5_addr_check(uct_varuna_link_rc(own)->inner, &own->addr) !=
           UCT_VARUNA_ADDR_UNKNOWN;
}

int uct_varuna_moves_check(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_link_t *own = &ctl->iface->links[link];
    uct_varuna_mlx5_addr_state_t state;

    state = uct_varuna_mlx5_addr_check(uct_varuna_link_rc(own)->inner,
                                       &own->addr);
    if (state == UCT_VARUNA_ADDR_SAME) {
        own->is_late = 0; /* All was known before it was up */
    } else if ((state == UCT_VARUNA_ADDR_MOVED) || (state == UCT_VARUNA_ADDR_GONE)) {
        if (!(ctl->moves.links & UCS_BIT(link))) {
            ctl->moves.since[link] = uct_varuna_ctl_now(ctl);
            __atomic_store_n(&ctl->moves.links, ctl->moves.links | UCS_BIT(link),
                             __ATOMIC_RELEASE);
        }
        ctl->moves.backoff[link].due = 0; /* What was in the way may be over */
        uct_varuna_ctl_notify(ctl);
    }

    return !!(ctl->moves.links & UCS_BIT(link));
}

void uct_varuna_moves_tell(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                           unsigned link, const uct_varuna_ctl_hdr_t *whose)
{
    struct {
        uct_varuna_ctl_links_t rep;
        char                   addr[UCT_VARUNA_CTL_MAX_MSG / 2];
    } UCS_S_PACKED msg;

    memset(&msg.rep, 0, sizeof(msg.rep));
    msg.rep.moves    = ctl->moves.count;
    msg.rep.addr_len = uct_varuna_iface_pack_full_address(ctl->iface, msg.addr,
                                                          sizeof(msg.addr));
    (void)uct_varuna_ctl_send(ctl, peer, link, UCT_VARUNA_CTL_LINKS_REP, whose, &msg,
                              sizeof(msg.rep) + msg.rep.addr_len);
}

/* A guest's requests don't reach us if all addresses that it knows are old ones: it is told
 * until they have the new number, over one link after the other. */
static void uct_varuna_moves_tell_guest(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                        ucs_time_t now)
{
    uct_varuna_ctl_hdr_t whose = {.secret = peer->secret};
    unsigned links             = peer->link_map & ~ctl->ports_down;
    unsigned skip              = peer->moves.told;
    unsigned link;

    if (!peer->is_guest || (peer->moves.known == (uint8_t)ctl->moves.count) ||
        (peer->moves.told >= UCT_VARUNA_MOVES_MAX_TOLD) ||
        (now < peer->moves.ask_at) || (links == 0)) {
        return;
    }

    for (skip %= ucs_popcount(links); skip > 0; --skip) {
        links &= links - 1;
    }

    link               = ucs_ffs64(links);
    peer->moves.ask_at = now + (ctl->iface->config.ctl_timeout << peer->moves.told);
    ++peer->moves.told;
    uct_varuna_moves_tell(ctl, peer, link, &whose);
}

void uct_varuna_moves_tick(uct_varuna_ctl_t *ctl, ucs_time_t now)
{
    khiter_t iter;

    if (ctl->moves.links != 0) {
        uct_varuna_ctl_notify(ctl); /* What they wait for makes no event */
    }

    for (iter = 0; (ctl->moves.count != 0) && (iter < kh_end(&ctl->peers)); ++iter) {
        if (kh_exist(&ctl->peers, iter)) {
            uct_varuna_moves_tell_guest(ctl, kh_val(&ctl->peers, iter), now);
        }
    }
}

void uct_varuna_moves_announce(uct_varuna_ctl_t *ctl)
{
    uct_varuna_peer_t *peer;

    ++ctl->moves.count;
    kh_foreach_value(&ctl->peers, peer, {
        if (peer->is_guest) {
            peer->moves.told   = 0;
            peer->moves.ask_at = 0;
        }
    });
    uct_varuna_moves_tick(ctl, uct_varuna_ctl_now(ctl));
}

void uct_varuna_moves_heard(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                            unsigned link, const uct_varuna_ctl_ports_t *ports)
{
    uct_varuna_ctl_hdr_t whose = {.secret = peer->secret};
    ucs_time_t now             = uct_varuna_ctl_now(ctl);

    if (peer->is_guest || (ports->moves == peer->moves.known) ||
        ((ports->moves == peer->moves.asked) && (now < peer->moves.ask_at))) {
        return;
    }

    peer->moves.asked  = ports->moves;
    peer->moves.ask_at = now + ucs_time_from_sec(UCT_VARUNA_MOVES_ASK);
    (void)uct_varuna_ctl_send(ctl, peer, link, UCT_VARUNA_CTL_LINKS_REQ, &whose, NULL,
                              0);
}
