/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Remote interfaces, and what is known of them. Lock held in all, unless a function
 * says otherwise.
 */
#ifndef UCT_VARUNA_PEER_H_
#define UCT_VARUNA_PEER_H_

#include <uct/ib/varuna/core/varuna_alive.h>
#include <uct/ib/varuna/core/varuna_clock.h>
#include <uct/ib/varuna/core/varuna_link.h>
#include <uct/ib/varuna/core/varuna_msg.h>

#include <ucs/arch/bitops.h>
#include <ucs/datastruct/list.h>
#include <uct/ib/varuna/core/varuna_def.h>
#include <ucs/config/types.h>
#include "varuna_ctl.h"

/* One link of a remote interface, from its address. */
typedef struct uct_varuna_peer_link {
    uint8_t                    nic;       /* Remote NIC index */
    uint16_t                   generation; /* ... and its generation, which goes up: lanes that
                                             are there may have an older one */
    uct_device_addr_t          *device_addr;
    uct_iface_addr_t           *dc_addr;  /* NULL until it is learnt */
    uct_iface_addr_t           *ctl_addr;
} uct_varuna_peer_link_t;

/*
 * The path over one local link to one peer, judged by what happens to our own
 * traffic there. Main thread only. Endpoints compare the generation, so that one
 * store moves all endpoints to that peer, and no other ones: a dead peer must not
 * condemn the local link.
 */
typedef struct uct_varuna_path {
    uct_varuna_damp_t          damp;
    uint32_t                   generation; /* Bumped by each failure */
    uint8_t                    misses;     /* Probes in a row without an answer */
    ucs_time_t                 retry_at;   /* No endpoint without a lane tries it
                                              before */
    ucs_time_t                 tried_at;   /* To probe it, since the last
                                              transition; 0: not yet */
    ucs_time_t                 probed_at;  /* ... when the PING was sent; 0: it was
                                              not */
    const char                 *reason;    /* Of the last failure */
} uct_varuna_path_t;

/*
 * A remote interface; reference-counted, found by its name. Either our application has
 * given us its address, or it is a guest: it has sent us a request with its address. The
 * same interface may be here as both, and they share nothing: the address of a guest is
 * not trusted.
 */
struct uct_varuna_peer {
    uint64_t                   uuid;
    uint64_t                   secret;    /* In messages both ways: a guest's for us,
                                             else ours for it */
    uint8_t                    is_guest;
    unsigned                   refcount;
    /* By *local* link index (the remote link which our link reaches). */
    uct_varuna_peer_link_t     links[UCT_VARUNA_MAX_LINKS];
    unsigned                   link_map;  /* Local links which reach it */
    uint8_t                    mtu_differs; /* Of these: DC does not suit them */
    uint8_t                    returned;  /* Of these: the remote NIC is not in its first
                                             generation, so keys may have nothing for it */
    uct_varuna_path_t          paths[UCT_VARUNA_MAX_LINKS]; /* By local link */
    uint8_t                    retired;   /* Of these, to be left as planned, as the
                                             peer wants. Main thread */
    unsigned                   queue_full[UCT_VARUNA_MAX_LINKS]; /* In this pass
                                              over ctl->queue.msgs, no resources */
    uct_ep_h                   ctl_eps[UCT_VARUNA_MAX_LINKS]; /* Lazily made */
    uct_varuna_backoff_t       no_ctl_ep[UCT_VARUNA_MAX_LINKS]; /* They cannot be made */
    uct_varuna_backoff_t       no_dc_ep[UCT_VARUNA_MAX_LINKS]; /* Nor lanes of DC. Main
                                              thread. Owner: varuna_lane.c */
    uint8_t                    found;     /* Links on which address handles take no time, */
    uint8_t                    sought;    /* and those on which a thread finds that out.
                                             Owner: varuna_ctl_ep.c */
    uint32_t                   num_lost[UCT_VARUNA_MAX_LINKS]; /* Atomic: failures of
                                              ctl_eps so far, each with messages */
    uint8_t                    doubtful;  /* Links on which the last message to
                                             it failed */
    struct {
        uct_varuna_alive_t     alive;
        ucs_list_link_t        list;      /* In ctl->hb.events, if queued */
        ucs_list_link_t        due_list[UCT_VARUNA_MAX_LINKS]; /* In ctl->hb.due */
        uint8_t                due;       /* ... if it is due on that link */
        uint8_t                queued;
        uint8_t                used;      /* Paths, at the last tick */
        uint8_t                dead;      /* Paths, for the main thread */
        uint8_t                far_down;  /* Paths whose port is down there */
        uint8_t                far_retired; /* Paths that it wants us to leave */
        uint8_t                told_down; /* Changes of that, for the main thread: */
        uint8_t                told_up;   /* down before up */
        uint32_t               ports_number; /* Of its last announcement of ports: */
        uint8_t                ports_down;   /* by its NICs, also those that no link of
                                                ours reaches yet */
        uint8_t                ports_retired;
        uint32_t               ports_told; /* ... of our last one to it */
        uint8_t                unexplained; /* Dead paths: whose fault it is may
                                             still turn out */
        uint8_t                explain_ticks; /* ... in so many intervals */
        uint8_t                silence;   /* The reported meaning of its silence on
                                             all paths */
        uint8_t                renew;     /* Paths to be judged anew; atomic */
        ucs_time_t             gone_time; /* Silent for so long beside a process
                                             of its host that answers; atomic */
        ucs_time_t             used_at[UCT_VARUNA_MAX_LINKS]; /* Atomic */
        uint32_t               app_beat;  /* Of its last answer; atomic */
    } hb;                                 /* Heartbeat: under the lock */
    struct {
        uint16_t               known;     /* How often its addresses had changed. Of a
                                             guest: ours, as far as it knows, 8 bits */
        uint16_t               asked;     /* ... when we asked for them last */
        ucs_time_t             ask_at;    /* Not again before, nor is a guest told */
        uint8_t                told;      /* So often was a guest told the last one */
        uint8_t                is_partial; /* Links of ours have come back since we asked:
                                             their pairs may be missing */
    } moves;                              /* varuna_ports.c */
    ucs_time_t                 heard_at;  /* Last message of it */
    uint8_t                    failed;    /* Links on which messages to it failed since
                                             then */
    void                       *addr;     /* Copy, which links[] points into */
    uct_device_addr_t          *dev_addr; /* Copy of the primary's, or NULL */
    /* What the rooms above keep of it follows, see uct_varuna_peer_add_part() */
};

/**
 * Parse an address which a peer gave and find or make its peer object (a
 * reference is taken). A truncated or foreign address is refused with a clear
 * error. Local and remote links are paired by reachability, same NIC index first.
 *
 * @param [in] device_addr  Primary's device address, or NULL if @a addr is full.
 * @param [in] addr         Interface address.
 * @param [in] length       Its length, or SIZE_MAX where the caller cannot know.
 */
ucs_status_t uct_varuna_peer_get(uct_varuna_ctl_t *ctl,
                                 const uct_device_addr_t *device_addr,
                                 const void *addr, size_t length,
                                 uct_varuna_peer_t **peer_p);

void uct_varuna_peer_put(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer);

/**
 * Let each peer have room for what a room above keeps of it. To be called before there
 * is any peer. A part is zero at first, and is released with its peer.
 *
 * @return Where it is, for uct_varuna_peer_part().
 */
size_t uct_varuna_peer_add_part(uct_varuna_ctl_t *ctl, size_t size);

/** @return A part of the peer, which only its owner knows. */
static inline void *uct_varuna_peer_part(const uct_varuna_peer_t *peer, size_t part)
{
    return UCS_PTR_BYTE_OFFSET(peer, part);
}

/** @return nonzero if any of our links reaches the address; used by
 *  iface_is_reachable, so it must not log errors. */
int uct_varuna_peer_is_reachable(uct_varuna_iface_t *iface,
                                 const uct_device_addr_t *device_addr,
                                 const void *addr);

/** As uct_varuna_peer_get() for a parsed address. @a secret: of the guest that has sent
 * it, otherwise 0. New links of a known peer are added; if it is not a guest, only by the
 * main thread, which reads them without the lock. */
ucs_status_t uct_varuna_peer_open(uct_varuna_ctl_t *ctl,
                                  const uct_varuna_parsed_addr_t *parsed,
                                  uint64_t secret, uct_varuna_peer_t **peer_p);

/** Main thread, lock not held: learn the links which peer @a uuid, a known one, has in
 * its full address. */
void uct_varuna_peer_learn(uct_varuna_ctl_t *ctl, uint64_t uuid,
                           const void *addr, size_t length);

/**
 * The same from LINKS_REP, after ports of the peer have got other addresses.
 *
 * @param [in]  moves    How often they have.
 * @param [out] moved_p  Our links which reach such ports.
 *
 * @return The peer, with a reference; NULL if there is none, or its address is refused.
 */
uct_varuna_peer_t *
uct_varuna_peer_learn_moves(uct_varuna_ctl_t *ctl, const uct_varuna_ctl_hdr_t *hdr,
                            const void *addr, size_t length, uint16_t moves,
                            unsigned *moved_p);

/** Main thread, lock held: a link of ours is open again. Peers that came while it was closed are
 *  asked for their addresses. */
void uct_varuna_peers_join(uct_varuna_ctl_t *ctl, unsigned link);

/** A guest's request has come with the address to answer to: it may be another one than
 *  before. Lock held. */
void uct_varuna_peer_update_guest(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                  const uct_varuna_ctl_hdr_t *hdr);

/** A message of the peer has arrived. */
static inline void uct_varuna_peer_heard(uct_varuna_peer_t *peer, ucs_time_t now)
{
    peer->heard_at = now;
    peer->failed   = 0;
}

/** @return the peer, guest or not, which @a uuid is if it knows @a secret. */
uct_varuna_peer_t *uct_varuna_peer_find(uct_varuna_ctl_t *ctl, uint64_t uuid,
                                        uint64_t secret);

/** @return Whether that link of a remote interface, whose address is not trusted, can be
 *  used for control messages over @a link. */
int uct_varuna_peer_ctl_reaches(const uct_varuna_iface_t *iface, unsigned link,
                                const uct_varuna_parsed_link_t *remote);

/** There is none at first. */
void uct_varuna_peers_init(uct_varuna_ctl_t *ctl);

void uct_varuna_peers_cleanup(uct_varuna_ctl_t *ctl);

/** Something was found out about the peer: let the main thread know. */
void uct_varuna_peer_notify(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer);

/** @return Our links that reach these NICs of the peer. */
unsigned uct_varuna_peer_links_to(const uct_varuna_peer_t *peer, unsigned nics);

/** The peer has announced its ports, or we know more links to it, for which that holds as well. */
void uct_varuna_peer_apply_ports(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer);

/** Main thread, no lock: traffic waits on this path. */
static inline void uct_varuna_heartbeat_use(uct_varuna_peer_t *peer,
                                            unsigned link, ucs_time_t now)
{
    __atomic_store_n(&peer->hb.used_at[link], now, __ATOMIC_RELAXED);
}

/** Main thread, no lock: the path was proved to be good, judge it anew. */
static inline void uct_varuna_heartbeat_renew(uct_varuna_peer_t *peer,
                                              unsigned link)
{
    __atomic_fetch_or(&peer->hb.renew, UCS_BIT(link), __ATOMIC_RELAXED);
}

/** @return When the peer last answered on the path; 0: never. No lock. */
static inline ucs_time_t
uct_varuna_heartbeat_answered_at(const uct_varuna_peer_t *peer, unsigned link)
{
    return __atomic_load_n(&peer->hb.alive.paths[link].answered_at,
                           __ATOMIC_ACQUIRE);
}

/** @return A number which moves on when the peer's application calls progress, as
 *  of its last answer. Ask for the time of that first. No lock. */
static inline uint32_t
uct_varuna_heartbeat_app_beat(const uct_varuna_peer_t *peer)
{
    return __atomic_load_n(&peer->hb.app_beat, __ATOMIC_RELAXED);
}

/** @return whether the peer's process has been silent for @a timeout (0: no limit)
 *  while another process on one of its ports answered. No lock. */
static inline int uct_varuna_heartbeat_is_gone(const uct_varuna_peer_t *peer,
                                               ucs_time_t timeout)
{
    return (timeout != 0) &&
           (__atomic_load_n(&peer->hb.gone_time, __ATOMIC_RELAXED) > timeout);
}

/* --- Ports that UCX may be given --- */

/* Which remote ports UCX may be given. Lock held. */

/**
 * May UCX be given the device address of a remote port that a message named? Each costs
 * an address handle, which UCX keeps until the end.
 *
 * @param [in] is_guest  The sender of the message knows our address.
 */
int uct_varuna_reach_allow(uct_varuna_ctl_t *ctl, unsigned link,
                           const void *device_addr, size_t length, int is_guest);

/* --- Links that do not suit ours --- */

/* Reports links that do not suit those of a peer: cables that end in the switch of another
 * network, and other path MTUs. */

/* The links that reach a peer, and its NICs that they reach */
typedef struct uct_varuna_cabling_pairs {
    unsigned                   map;
    uint8_t                    ports[UCT_VARUNA_MAX_LINKS]; /* By link */
} uct_varuna_cabling_pairs_t;

/* --- Paths --- */

/* The paths to a peer: which are good, which were not, and when one is used again.
 * Main thread only. */

/** The path of @a link to @a peer failed, for whatever @a reason: all endpoints
 *  on it recover. Cost does not grow with their number. */
void uct_varuna_peer_path_down(uct_varuna_iface_t *iface,
                               uct_varuna_peer_t *peer, unsigned link,
                               const char *reason);

/** The path was seen to be good: its hold-down begins if it was down. */
void uct_varuna_peer_path_good(uct_varuna_iface_t *iface,
                               uct_varuna_peer_t *peer, unsigned link);

/** @return Bit map of the links over which the peer may be reached now. */
unsigned uct_varuna_peer_usable_links(const uct_varuna_peer_t *peer);

/** The same, without those which are not good for RETURN_DELAY yet. */
unsigned uct_varuna_peer_returnable_links(const uct_varuna_iface_t *iface,
                                          const uct_varuna_peer_t *peer,
                                          ucs_time_t now);

/**
 * Ask on paths which are down, and during their hold-down: they are good again when
 * they answer all the time until it is over. For each peer, however many endpoints
 * call this.
 */
void uct_varuna_peer_probe_paths(uct_varuna_iface_t *iface,
                                 uct_varuna_peer_t *peer, ucs_time_t now);

/* --- What the async context found --- */

/* Applies what the async context has found out about paths and links. */

/** @return Whether there is something to apply. Lock held. */
int uct_varuna_peer_has_events(uct_varuna_ctl_t *ctl);

/** Main thread: apply what was found. Lock not held. @return number of events. */
unsigned uct_varuna_peer_events_dispatch(uct_varuna_ctl_t *ctl);

#endif
