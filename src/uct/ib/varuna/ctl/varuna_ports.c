/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Port events, and their announcement. See varuna_ports.h.
 *
 * PORTS is sent once, and before the answer to a new peer's first request: ports may have
 * been down when we started. A peer that does not receive it learns the same from the next PONG,
 * or finds out as without it. Both carry a number, since paths are not in order. Ports that
 * raise no events are polled.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ports.h"
#include "varuna_ctl.h"
#include "varuna_bus.h"
#include "varuna_peer.h"
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/core/varuna_msg.h>
#include <uct/ib/varuna/core/varuna_wire.h>

#include <ucs/arch/bitops.h>
#include <ucs/debug/log.h>
#include <string.h>

/* Seconds between two polls of ports and NICs that raise no events. The timer is that of the
 * heartbeat, or this one */
#define UCT_VARUNA_PORTS_TIME        1.0


uct_varuna_ctl_ports_t uct_varuna_ports_get(const uct_varuna_ctl_t *ctl)
{
    uct_varuna_ctl_ports_t ports = {.number = ctl->ports.number,
                                    .moves  = ctl->moves.count};
    unsigned link;

    ucs_for_each_bit(link, ctl->ports.down | ctl->announce.failed) {
        ports.down |= UCS_BIT(ctl->iface->links[link].nic);
    }

    ucs_for_each_bit(link, ctl->announce.retired) {
        ports.retired |= UCS_BIT(ctl->iface->links[link].nic);
    }

    return ports;
}

/* @return Another link than that which has changed, UCT_VARUNA_LINK_NONE if none. */
static unsigned uct_varuna_ports_link(const uct_varuna_ctl_t *ctl,
                                      const uct_varuna_peer_t *peer)
{
    unsigned links = peer->link_map &
                     ~(ctl->ports.down | ctl->announce.failed | ctl->ports.changed);

    if (links & ~peer->doubtful) {
        links &= ~peer->doubtful;
    }

    return (links == 0) ? UCT_VARUNA_LINK_NONE : (unsigned)ucs_ffs64(links);
}

static void uct_varuna_ports_send(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                  unsigned link, const uct_varuna_ctl_ports_t *ports)
{
    uct_varuna_ctl_hdr_t whose = {.secret = peer->secret};

    peer->hb.ports_told = ports->number;
    (void)uct_varuna_ctl_send(ctl, peer, link, UCT_VARUNA_CTL_PORTS, &whose, ports,
                              sizeof(*ports));
}

void uct_varuna_ports_greet(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                            unsigned link)
{
    uct_varuna_ctl_ports_t ports;

    if (((ctl->ports.down | ctl->announce.failed) != 0) &&
        (peer->hb.ports_told != ctl->ports.number) && (peer->link_map & UCS_BIT(link))) {
        ports = uct_varuna_ports_get(ctl);
        uct_varuna_ports_send(ctl, peer, link, &ports);
    }
}

void uct_varuna_ports_announce(uct_varuna_ctl_t *ctl)
{
    uct_varuna_ctl_ports_t ports = uct_varuna_ports_get(ctl);
    unsigned link, queue_len;
    uct_varuna_peer_t *peer;
    khiter_t iter;

    for (iter = 0; iter < kh_end(&ctl->peers); ++iter) {
        if (!kh_exist(&ctl->peers, iter)) {
            continue;
        }

        peer = kh_val(&ctl->peers, iter);
        link = uct_varuna_ports_link(ctl, peer);
        if (!peer->is_guest || (peer->hb.ports_told == ports.number) ||
            (link == UCT_VARUNA_LINK_NONE)) {
            continue; /* Only guests send to us */
        }

        queue_len = ctl->queue.len;
        uct_varuna_ports_send(ctl, peer, link, &ports);
        if (ctl->queue.len > queue_len) {
            return; /* The others have their turn when there is room */
        }
    }

    ctl->ports.pending = 0;
}

void uct_varuna_ports_changed(uct_varuna_ctl_t *ctl, unsigned link)
{
    ++ctl->ports.number;
    ctl->ports.changed = UCS_BIT(link);
    ctl->ports.pending = 1;
    uct_varuna_ports_announce(ctl);
    uct_varuna_ctl_reap_eps(ctl, 0);
}

void uct_varuna_ports_retire(uct_varuna_ctl_t *ctl, unsigned links, unsigned failed)
{
    unsigned changed = (ctl->announce.retired ^ links) | (ctl->announce.failed ^ failed);

    if (changed == 0) {
        return; /* Only this thread changes it, so that it can look without the lock */
    }

    uct_varuna_ctl_lock(ctl);
    ctl->announce.retired = links;
    ctl->announce.failed  = failed;
    uct_varuna_ports_changed(ctl, ucs_ffs64(changed));
    uct_varuna_ctl_unlock(ctl);
}

static int uct_varuna_moves_is_active(const uct_varuna_ctl_t *ctl, unsigned link);
static int uct_varuna_moves_check(uct_varuna_ctl_t *ctl, unsigned link);
static void uct_varuna_moves_heard(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                   unsigned link, const uct_varuna_ctl_ports_t *ports);

void uct_varuna_ports_learn(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                            unsigned link, const uct_varuna_ctl_ports_t *ports)
{
    unsigned down = ports->down;
    unsigned came_up, i;

    if ((int32_t)(ports->number - peer->hb.ports_number) >= 0) {
        uct_varuna_moves_heard(ctl, peer, link, ports);
    }

    if ((int32_t)(ports->number - peer->hb.ports_number) <= 0) {
        return; /* Overtaken */
    }

    if (peer->link_map & UCS_BIT(link)) {
        down &= ~UCS_BIT(peer->links[link].nic); /* The message came from there */
    }

    came_up = uct_varuna_peer_links_to(peer, peer->hb.ports_down & ~down);
    ucs_for_each_bit(i, came_up) {
        (void)uct_varuna_backoff_succeeded(&peer->no_ctl_ep[i]); /* It answers again */
    }

    peer->hb.ports_number  = ports->number;
    peer->hb.ports_down    = down;
    peer->hb.ports_retired = ports->retired;
    uct_varuna_peer_apply_ports(ctl, peer);
}

static void uct_varuna_ports_handle(void *arg, unsigned link,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const void *body)
{
    uct_varuna_ctl_t *ctl   = arg;
    uct_varuna_peer_t *peer = uct_varuna_peer_find(ctl, hdr->uuid, hdr->secret);

    if (peer == NULL) {
        ucs_debug("dropped PORTS of 0x%lx, to which we have no endpoint",
                  hdr->uuid);
        return;
    }

    uct_varuna_ports_learn(ctl, peer, link, body);
}

void uct_varuna_ports_event(void *arg, unsigned port, uct_varuna_port_event_t event)
{
    uct_varuna_ctl_t *ctl = arg;

    switch (event) {
    case UCT_VARUNA_PORT_UP:
        ctl->events.up_map |= UCS_BIT(port);
        if (!uct_varuna_moves_check(ctl, port)) {
            ctl->ports.down &= ~UCS_BIT(port);
        }
        break;
    case UCT_VARUNA_PORT_DOWN:
        if (uct_varuna_ctl_is_nic_dead(ctl, port)) {
            uct_varuna_md_nic_died(ctl->iface->md, ctl->iface->links[port].nic,
                                   "the system says so");
        }
        ctl->events.down_map   |= UCS_BIT(port);
        ctl->events.up_map     &= ~UCS_BIT(port);
        ctl->ports.down |= UCS_BIT(port);
        break;
    default:
        if (!uct_varuna_moves_check(ctl, port) || (ctl->ports.down & UCS_BIT(port))) {
            return;
        }

        /* To peers the port is down until it can be used */
        ctl->ports.down |= UCS_BIT(port);
        break;
    }

    if (ctl->ports.down & UCS_BIT(port)) {
        uct_varuna_ctl_renew_others(ctl, port);
    }

    uct_varuna_ports_changed(ctl, port);
    uct_varuna_bus_raise(&ctl->bus, UCT_VARUNA_BUS_PORT_CHANGED);
    uct_varuna_ctl_notify(ctl);
}

/* Without events, only this finds a port that was down at first, */
static int uct_varuna_ports_has_come(uct_varuna_ctl_t *ctl, unsigned link)
{
    return (ctl->detector == NULL) && ctl->iface->links[link].is_late &&
           !ctl->iface->links[link].is_closed &&
           !(ctl->moves.links & UCS_BIT(link)) && uct_varuna_moves_is_active(ctl, link);
}

/* ... and a NIC that has died */
static int uct_varuna_ports_has_gone(const uct_varuna_ctl_t *ctl, unsigned link)
{
    return !(ctl->ports.down & UCS_BIT(link)) && uct_varuna_ctl_is_nic_gone(ctl, link);
}

/* The NIC of a link goes, or comes back: the main thread closes the link, or opens it. Lock
 * held. */
static void uct_varuna_ports_note_life(uct_varuna_ctl_t *ctl, unsigned link)
{
    __atomic_store_n(&ctl->announce.lives, ctl->announce.lives | UCS_BIT(link),
                     __ATOMIC_RELEASE);
    uct_varuna_ctl_notify(ctl);
}

/* A NIC that is dead may work again. The main thread closes and opens links; not before a packet
 * lifetime is over, since the next life may give queue pairs the numbers that others had, to
 * which packets were on their way */
static void uct_varuna_ports_look_at_life(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_md_t *md = ctl->iface->md;
    unsigned nic        = ctl->iface->links[link].nic;
    unsigned life;

    if (uct_varuna_md_is_nic_dead(md, nic)) {
        uct_varuna_md_look_for_return(md, nic, uct_varuna_ctl_now(ctl));
    }

    life = uct_varuna_md_life(md, nic);
    if (ctl->iface->links[link].is_closed ?
        ((life == UCT_VARUNA_LIFE_OPEN) || (life == UCT_VARUNA_LIFE_ENDING)) :
        (life == UCT_VARUNA_LIFE_LEAVING) ||
        ((life == UCT_VARUNA_LIFE_ENDING) &&
         uct_varuna_md_is_at_rest(md, nic, uct_varuna_ctl_now(ctl),
                                  ctl->iface->config.packet_lifetime))) {
        uct_varuna_ports_note_life(ctl, link);
    }
}

static void uct_varuna_ports_look(uct_varuna_ctl_t *ctl)
{
    unsigned link;

    for (link = 0; link < ctl->num_links; ++link) {
        if (uct_varuna_ports_has_come(ctl, link)) {
            uct_varuna_ports_event(ctl, link, UCT_VARUNA_PORT_UP);
        } else if (uct_varuna_ports_has_gone(ctl, link)) {
            uct_varuna_ports_event(ctl, link, UCT_VARUNA_PORT_DOWN);
        }
    }
}

/* NICs that go or come back: in each tick, since somebody waits for them */
static void uct_varuna_ports_look_at_lives(uct_varuna_ctl_t *ctl)
{
    unsigned link;

    for (link = 0; link < ctl->num_links; ++link) {
        if (uct_varuna_ctl_is_nic_gone(ctl, link) ||
            (uct_varuna_md_life(ctl->iface->md, ctl->iface->links[link].nic) !=
             UCT_VARUNA_LIFE_OPEN)) {
            uct_varuna_ports_look_at_life(ctl, link);
        }
    }
}

static void uct_varuna_ports_timer(void *arg)
{
    uct_varuna_ctl_t *ctl = arg;
    ucs_time_t now        = uct_varuna_ctl_now(ctl);

    if ((now - ctl->ports.looked_at) >= ucs_time_from_sec(UCT_VARUNA_PORTS_TIME)) {
        ctl->ports.looked_at = now;
        uct_varuna_ports_look(ctl);
    }

    uct_varuna_ports_look_at_lives(ctl);
    if (ctl->ports.pending) {
        uct_varuna_ports_announce(ctl);
    }

    uct_varuna_moves_tick(ctl, now);
    uct_varuna_ctl_reap_eps(ctl, 0);
}

void uct_varuna_ports_init(uct_varuna_ctl_t *ctl)
{
    static const uct_varuna_bus_reg_t row = {
        UCT_VARUNA_CTL_PORTS, UCT_VARUNA_BUS_ASYNC, uct_varuna_ports_handle
    };
    ucs_time_t period = ctl->iface->config.heartbeat_interval;

    uct_varuna_bus_register(&ctl->bus, &row, 1, ctl);
    uct_varuna_clock_add(&ctl->time.clock, uct_varuna_ctl_now(ctl),
                         (period != 0) ? period : ucs_time_from_sec(UCT_VARUNA_PORTS_TIME),
                         uct_varuna_ports_timer, ctl);
}

/* --- Ports that move --- */

/* Ports that get another address: noticing it.; varuna_moves_apply.c does
 * the rest. */

/* Seconds between two questions for the same: the main thread takes the answers */
#define UCT_VARUNA_MOVES_ASK         1.0

/* A guest is told this many times, each time after twice as long: half a minute by default */
#define UCT_VARUNA_MOVES_MAX_TOLD    10


/* @return Whether a link's port is up. Lock held. */
static int uct_varuna_moves_is_active(const uct_varuna_ctl_t *ctl, unsigned link)
{
    const uct_varuna_link_t *own = &ctl->iface->links[link];

    return uct_varuna_mlx5_addr_check(uct_varuna_link_rc(own)->inner, &own->addr) !=
           UCT_VARUNA_ADDR_UNKNOWN;
}

/* Compare the address of a link's port with the one that we use. Lock held.
 *
 * @return Nonzero if they differ, or did and the main thread has not seen to it: the
 *         link is of no use yet. */
static int uct_varuna_moves_check(uct_varuna_ctl_t *ctl, unsigned link)
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
    unsigned links             = peer->link_map & ~ctl->ports.down;
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

/* A peer says how often its addresses have changed: ask for them if that is news. Lock
 * held. */
static void uct_varuna_moves_heard(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                   unsigned link, const uct_varuna_ctl_ports_t *ports)
{
    uct_varuna_ctl_hdr_t whose = {.secret = peer->secret};
    ucs_time_t now             = uct_varuna_ctl_now(ctl);

    if (peer->is_guest ||
        ((ports->moves == peer->moves.known) && !peer->moves.is_partial) ||
        ((ports->moves == peer->moves.asked) && (now < peer->moves.ask_at))) {
        return;
    }

    peer->moves.asked  = ports->moves;
    peer->moves.ask_at = now + ucs_time_from_sec(UCT_VARUNA_MOVES_ASK);
    (void)uct_varuna_ctl_send(ctl, peer, link, UCT_VARUNA_CTL_LINKS_REQ, &whose, NULL,
                              0);
}


/* --- The addresses of our interface --- */

/* Writes the addresses of our interface: the full one, which control messages
 * carry, and the short one, which UCP has 63 bytes for. varuna_msg.c reads them. */

/* @return The number of links in a full address. */
static unsigned uct_varuna_addr_num_links(const uct_varuna_iface_t *iface)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < iface->num_links; ++i) {
        count += !iface->links[i].is_closed;
    }

    return count;
}

static void uct_varuna_addr_init(const uct_varuna_iface_t *iface, int is_short,
                                 uct_varuna_addr_t *addr)
{
    unsigned num_links = uct_varuna_addr_num_links(iface);

    addr->magic     = UCT_VARUNA_WIRE_MAGIC;
    addr->version   = UCT_VARUNA_WIRE_VERSION;
    addr->num_links = (is_short ? UCT_VARUNA_ADDR_SHORT : 0) |
                      ((num_links < iface->md->num_links) ? UCT_VARUNA_ADDR_LIMITED : 0);
    addr->uuid      = iface->uuid;
}

/* @return Bytes of link @a index in a full address, 0 if it has no room. */
static size_t uct_varuna_addr_put_link(uct_varuna_iface_t *iface,
                                       unsigned index, void *buffer, size_t max)
{
    const uct_varuna_link_t *link       = &iface->links[index];
    const uct_varuna_lane_iface_t *base = uct_varuna_link_base(link);
    uct_varuna_addr_link_t *entry       = buffer;
    size_t length                       = sizeof(*entry);
    const char *name                    = uct_varuna_link_name(iface, index);
    size_t name_len                     = strnlen(name, UCT_VARUNA_NAME_MAX);
    const void *ctl_addr;
    size_t ctl_len;

    ctl_addr = uct_varuna_ctl_link_addr(iface->ctl, index, &ctl_len);
    if (length + link->device_addr_len + base->attr.iface_addr_len + ctl_len +
        name_len >
        max) {
        return 0;
    }

    entry->index      = link->nic;
    entry->device_len = link->device_addr_len;
    entry->dc_len     = base->attr.iface_addr_len;
    entry->ctl_len    = ctl_len;
    entry->name_len   = name_len;
    entry->is_named   = iface->md->links_are_named;
    entry->generation = iface->md->nics[link->nic].generation;
    memcpy(UCS_PTR_BYTE_OFFSET(buffer, length), link->device_addr,
           link->device_addr_len);
    length           += link->device_addr_len;
    uct_iface_get_address(base->inner, UCS_PTR_BYTE_OFFSET(buffer, length));
    length           += base->attr.iface_addr_len;
    memcpy(UCS_PTR_BYTE_OFFSET(buffer, length), ctl_addr, ctl_len);
    length           += ctl_len;
    memcpy(UCS_PTR_BYTE_OFFSET(buffer, length), name, name_len);
    return length + name_len;
}

size_t uct_varuna_iface_pack_full_address(uct_varuna_iface_t *iface,
                                          void *buffer, size_t max)
{
    uct_varuna_addr_t *addr = buffer;
    size_t length           = sizeof(*addr);
    size_t size;
    unsigned i;

    uct_varuna_addr_init(iface, 0, addr);
    for (i = 0; i < iface->num_links; ++i) {
        if (iface->links[i].is_closed) {
            continue;
        }

        size = uct_varuna_addr_put_link(iface, i,
                                        UCS_PTR_BYTE_OFFSET(buffer, length),
                                        max - length);
        if (size == 0) {
            break;
        }

        length += size;
        ++addr->num_links;
    }

    return length;
}

/* As above in a short address. @a last is the control address of the link before,
 * of the same length, NULL for the first one. */
static size_t
uct_varuna_addr_put_short_link(const uct_varuna_iface_t *iface, unsigned index,
                               const void *last, void *buffer, size_t max)
{
    const uct_varuna_link_t *outer = &iface->links[0];
    const uct_varuna_link_t *link  = &iface->links[index];
    uint8_t *entry                 = buffer;
    size_t length                  = sizeof(*entry);
    const void *ctl_addr;
    size_t ctl_len, size;

    ctl_addr = uct_varuna_ctl_link_addr(iface->ctl, index, &ctl_len);
    if (length > max) {
        return 0;
    }

    *entry = (link->nic << UCT_VARUNA_ADDR_DEVICE_BITS) | link->device_addr_len;
    size   = uct_varuna_delta_write(outer->device_addr,
                                    uct_varuna_iface_outer_len(iface),
                                    link->device_addr, link->device_addr_len,
                                    UCS_PTR_BYTE_OFFSET(buffer, length),
                                    max - length);
    if (size == 0) {
        return 0;
    }

    length += size;
    size    = uct_varuna_delta_write(last, (last == NULL) ? 0 : ctl_len,
                                     ctl_addr, ctl_len,
                                     UCS_PTR_BYTE_OFFSET(buffer, length),
                                     max - length);
    return (size == 0) ? 0 : (length + size);
}

unsigned uct_varuna_iface_pack_short_address(const uct_varuna_iface_t *iface,
                                             void *buffer)
{
    uct_varuna_addr_t *addr        = buffer;
    uct_varuna_addr_short_t *shared = (uct_varuna_addr_short_t*)(addr + 1);
    size_t length                  = sizeof(*addr) + sizeof(*shared);
    const void *last               = NULL;
    size_t size, ctl_len, last_len;
    unsigned i;

    uct_varuna_addr_init(iface, 1, addr);
    uct_varuna_ctl_link_addr(iface->ctl, 0, &ctl_len);
    shared->outer_len = uct_varuna_iface_outer_len(iface);
    shared->ctl_len   = ctl_len;
    for (i = 0; i < iface->num_links; ++i) {
        if (iface->links[i].is_closed) {
            continue;
        }

        size = uct_varuna_addr_put_short_link(
                iface, i, last, UCS_PTR_BYTE_OFFSET(buffer, length),
                UCT_VARUNA_IFACE_ADDR_MAX - length);
        if (size == 0) {
            break; /* The peer learns the others from OPEN_REP */
        }

        last    = uct_varuna_ctl_link_addr(iface->ctl, i, &last_len);
        length += size;
        ++addr->num_links;
    }

    /* A link without room may have left a part of it */
    memset(UCS_PTR_BYTE_OFFSET(buffer, length), 0, UCT_VARUNA_IFACE_ADDR_MAX - length);
    return i;
}
