/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Announces to the peers that send to us that a port of ours went down or came back, over
 * the other links: otherwise they would find out when their NIC's retries are exhausted.
 * Async context, the lock is held in all.
 */
#ifndef UCT_VARUNA_PORTS_H_
#define UCT_VARUNA_PORTS_H_

#include "varuna_ctl.h"
#include <uct/ib/varuna/lanes/varuna_lanes.h>

/** A port has changed: inform peers, the rooms above and the main thread. The detector's
 *  callback. */
void uct_varuna_ports_event(void *arg, unsigned port, uct_varuna_port_event_t event);

/** The port of @a link went down, or came back: see ctl->ports.down. */
void uct_varuna_ports_changed(uct_varuna_ctl_t *ctl, unsigned link);

/** Send the state of our ports to a peer that opens an endpoint to us, before the answer to
 *  that and over the same link. */
void uct_varuna_ports_greet(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                            unsigned link);

/** Go on telling those for whom there was no room. */
void uct_varuna_ports_announce(uct_varuna_ctl_t *ctl);

/**
 * Ask peers to leave these links. They may use all others. Main thread.
 *
 * @param [in] links   Bit map of links which they leave as planned,
 * @param [in] failed  except for these of them, which they leave as if our port were down.
 */
void uct_varuna_ports_retire(uct_varuna_ctl_t *ctl, unsigned links, unsigned failed);

/** @return What PORTS and PONG say of our ports. */
uct_varuna_ctl_ports_t uct_varuna_ports_get(const uct_varuna_ctl_t *ctl);

/**
 * A peer has announced its ports. That concerns our own endpoints to it alone.
 *
 * @param [in] link   Link over which it came, which works therefore.
 */
void uct_varuna_ports_learn(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                            unsigned link, const uct_varuna_ctl_ports_t *ports);

/** Register the row of PORTS. */
void uct_varuna_ports_init(uct_varuna_ctl_t *ctl);

/* --- Ports that move --- */

/* Ports that get another address: a LID, or a place in their table of GIDs. A link whose
 * port has moved is down until our interfaces use the new address; then peers learn it. */

/** Send a peer our address, in LINKS_REP; @a whose as for uct_varuna_ctl_send(). Lock
 *  held. */
void uct_varuna_moves_tell(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                           unsigned link, const uct_varuna_ctl_hdr_t *whose);

/** Our address is another one: all who send to us are told, until their requests show that
 *  they know. Lock held. */
void uct_varuna_moves_announce(uct_varuna_ctl_t *ctl);

/** Called now and then, with the lock held. */
void uct_varuna_moves_tick(uct_varuna_ctl_t *ctl, ucs_time_t now);

/* --- The addresses of our interface --- */

/* Writes the addresses of our interface; varuna_msg.c reads them. */

/** Write the full interface address, which control messages carry.
 *  @return bytes used. */
size_t uct_varuna_iface_pack_full_address(uct_varuna_iface_t *iface,
                                          void *buffer, size_t max);

/** Write the short interface address, for which UCP has 63 bytes. It always has
 *  UCT_VARUNA_IFACE_ADDR_MAX bytes, zero after the last link: in unified mode, UCP uses
 *  the length of its own address for those of its peers. @return number of links that
 *  had room. */
unsigned uct_varuna_iface_pack_short_address(const uct_varuna_iface_t *iface,
                                             void *buffer);

/* --- Interfaces of ports that moved --- */

/* The interfaces of a link whose port has another address use it, and peers ask for it. */

/** Let the links of moved ports have their new address, as soon as that can be had. Main
 *  thread, lock not held. */
void uct_varuna_moves_apply_all(uct_varuna_ctl_t *ctl);

/** The same, if there are any. */
static inline void uct_varuna_moves_progress(uct_varuna_ctl_t *ctl)
{
    if (__atomic_load_n(&ctl->moves.links, __ATOMIC_ACQUIRE) != 0) {
        uct_varuna_moves_apply_all(ctl);
    }
}

/** Register the messages LINKS_REQ and LINKS_REP. */
void uct_varuna_moves_init(uct_varuna_ctl_t *ctl);

#endif
