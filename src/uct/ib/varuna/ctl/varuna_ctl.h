/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The control plane: a private worker with a DC interface per link, progressed by UCX's
 * async mechanism, so that a peer whose application computes can still be fenced and
 * opened. It carries messages; what they do is known to the rooms above, which register
 * with its bus. This header has its structure, and the question that all ask, whether a NIC
 * is gone:
 *
 *   varuna_ctl_open       opens, closes, listens; opens an interface once more
 *   varuna_ctl_progress   progress in the async context, or none while the main thread polls
 *   varuna_ctl_receive    receiving, dispatch in the main thread
 *   varuna_bus            rows: the handlers of messages, and the inbox, which wakes the
 *                         main thread
 *   varuna_ctl_send       sending, answers, the queue of what has no resources
 *   varuna_stranger       REJECT to peers and to strangers
 *   varuna_ports          PORTS: the state of our ports, for the peers that send to us, and
 *                         ports that get another address; varuna_moves_apply uses it
 *   varuna_heartbeat      PING and PONG, as resources allow; varuna_witness compares what
 *                         peers say
 *   varuna_path           paths to peers, judged by all of that, in the main thread
 *   varuna_peer           remote interfaces, and their cables
 *   varuna_ctl_ep         inner endpoints, fewer for peers that are probably dead
 *
 * Threads: what runs in the async context is called with the async lock of the worker
 * held, which is recursive; the main thread takes it with uct_varuna_ctl_lock().
 * Everything here is protected by that lock, unless a field says otherwise.
 */
#ifndef UCT_VARUNA_CTL_H_
#define UCT_VARUNA_CTL_H_

#include "varuna_bus.h"
#include <uct/ib/varuna/core/varuna_clock.h>
#include <uct/ib/varuna/core/varuna_numbers.h>
#include <uct/ib/varuna/lanes/varuna_detector.h>
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>

#include <ucs/async/async.h>
#include <ucs/datastruct/khash.h>
#include <ucs/debug/log.h>
#include <uct/base/uct_worker.h>

/* Largest control message; the inner interface must be able to send it. */
#define UCT_VARUNA_CTL_MAX_MSG       4096

/* Bytes of the requester's address after a request, at most */
#define UCT_VARUNA_CTL_MAX_FROM \
    (UCT_VARUNA_DEVICE_ADDR_MAX + UCT_VARUNA_CTL_ADDR_MAX)

/* Messages which wait for send resources. A flood is dropped beyond that: requests are
 * sent again. */
#define UCT_VARUNA_CTL_MAX_QUEUE     1024

/* Names of peers: those whose address the application gave have secret 0 here, so
 * that what others claim to be is never taken for them. */
typedef struct uct_varuna_peer_key {
    uint64_t                   uuid;
    uint64_t                   secret;
} uct_varuna_peer_key_t;

static inline khint_t uct_varuna_peer_key_hash(uct_varuna_peer_key_t key)
{
    return kh_int64_hash_func(key.uuid ^ (key.secret * 0x9e3779b97f4a7c15ul));
}

static inline int uct_varuna_peer_key_equal(uct_varuna_peer_key_t a,
                                            uct_varuna_peer_key_t b)
{
    return (a.uuid == b.uuid) && (a.secret == b.secret);
}

KHASH_INIT(uct_varuna_peers, uct_varuna_peer_key_t, uct_varuna_peer_t*, 1,
           uct_varuna_peer_key_hash, uct_varuna_peer_key_equal)

/* DCIs of each link which messages may occupy that are likely to fail, of those
 * in varuna_ctl_open.c */
#define UCT_VARUNA_CTL_MAX_DOUBTFUL  2

/* An inner endpoint of the control plane, by which errors find its peer. */
typedef struct uct_varuna_ctl_ep {
    ucs_list_link_t            list;       /* In ctl->dead_eps if dropped */
    uct_ep_h                   inner;
    uct_varuna_peer_t          *peer;      /* NULL if dropped */
    ucs_time_t                 since;      /* Of a doubtful peer: its messages wait */
    uint8_t                    link;
    uint8_t                    failed;
    uint8_t                    is_used;    /* A message was posted */
} uct_varuna_ctl_ep_t;

UCT_VARUNA_HASH_MAP_INIT_POINTER(uct_varuna_ctl_eps, uct_varuna_ctl_ep_t*)

/* A message which waits for send resources. */
typedef struct uct_varuna_ctl_msg {
    ucs_list_link_t            list;
    uct_varuna_peer_t          *peer;      /* A reference */
    size_t                     length;
    uint8_t                    link;
    char                       data[];
} uct_varuna_ctl_msg_t;

/* Where the answer to a stranger goes (varuna_stranger.c), with room after the
 * addresses, since UCX takes lengths from them */
typedef struct uct_varuna_stranger {
    uct_varuna_ctl_ep_t        *ep;        /* NULL: there is none */
    char                       device_addr[64];
    char                       ctl_addr[64];
} uct_varuna_stranger_t;

KHASH_INIT(uct_varuna_ports, uint64_t, char, 0, kh_int64_hash_func,
           kh_int64_hash_equal)

typedef struct uct_varuna_ctl_link {
    uct_varuna_ctl_t           *ctl;
    uct_iface_h                inner;
    uct_iface_attr_t           attr;
    uct_iface_addr_t           *addr;      /* attr.iface_addr_len bytes */
    int                        fd;         /* Event fd, -1 if not listening */
    /* Endpoints of doubtful peers that may occupy a DCI each */
    uct_varuna_ctl_ep_t        *doubtful[UCT_VARUNA_CTL_MAX_DOUBTFUL];
    uct_varuna_stranger_t      stranger;
    struct {                               /* All send buffers are in use */
        ucs_time_t             since;      /* 0: they are not */
        ucs_time_t             seen_at;    /* When a message last found none */
    } full;
    uint8_t                    index;
    uint8_t                    is_proved;  /* A message over it has arrived */
} uct_varuna_ctl_link_t;

struct uct_varuna_ctl {
    uct_varuna_iface_t         *iface;
    ucs_async_context_t        *async;
    uct_worker_h               worker;
    unsigned                   num_links;
    uct_varuna_ctl_link_t      links[UCT_VARUNA_MAX_LINKS];
    int                        progressing; /* Inside uct_worker_progress() */
    struct {
        int                    timer_fd;   /* Ends it */
        int                    is_on;      /* Atomic: events are not armed, as the main
                                              thread polls */
        int                    has_timer;  /* It is set, and has not expired */
        unsigned               num_polls;  /* When last looked at */
        unsigned               num_received;
    } rest;                                /* Of the async thread. Owner:
                                              varuna_ctl_progress.c */

    khash_t(uct_varuna_ctl_eps) eps;       /* By inner endpoint */
    ucs_list_link_t            dead_eps;
    struct {
        ucs_list_link_t        msgs;       /* uct_varuna_ctl_msg_t */
        unsigned               len;
        unsigned               pass;       /* Times it was gone through */
    } queue;                               /* varuna_ctl_send.c */

    khash_t(uct_varuna_peers)  peers;      /* By name */
    size_t                     peer_size;  /* With the parts of the rooms above */

    uct_varuna_bus_t           bus;
    struct {
        uint8_t                retired;    /* Links which they should leave */
        uint8_t                failed;     /* ... as if their ports were down */
        uint8_t                joins;      /* Links whose NIC works again, with another
                                              number. Read without the lock */
    } announce;                            /* What peers are told of our links.
                                              varuna_ports.c */
    struct {
        uint8_t                down_map;   /* Link events for the main thread, */
        uint8_t                up_map;     /* down before up */
        int                    pending;    /* Read without the lock */
        int                    fd;
        int                    kick_fd;    /* Calls the handler again */
        int                    poked;      /* Atomic: by another thread */
        unsigned               num_polls;  /* Atomic: by the main thread so far */
        unsigned               num_received; /* Atomic: messages so far, but for pings;
                                              written with the lock */
        int                    armed;      /* Atomic: fd is waited for */
        int                    signalled;  /* Atomic: fd is to be drained */
    } events;                              /* varuna_ctl_progress.c */
    struct {
        ucs_time_t             (*read)(void); /* UCX's clock, unless a test has its own */
        uct_varuna_clock_t     clock;      /* Of all that is periodic, */
        int                    timer;      /* and its timer, -1 if not started */
    } time;
    uct_varuna_detector_t      *detector;  /* NULL if not asked for */
    struct {                               /* Links that were reported: */
        uint8_t                wrong;      /* They reach another one of a peer's */
        uint8_t                mtu_differs; /* They have another path MTU than a peer's */
    } cabling;                             /* varuna_peer.c */
    struct {
        uint8_t                down;       /* Links whose port is down */
        uint32_t               number;     /* Of port events so far */
        uint8_t                changed;    /* Links: the last of them */
        uint8_t                pending;    /* Some peer was not notified yet */
        ucs_time_t             looked_at;  /* For what raises no event */
    } ports;                               /* varuna_ports.c */
    struct {
        uint8_t                links;      /* Whose ports have another address; read
                                              without the lock */
        uint8_t                reopened;   /* ... of which the control interface has the
                                              new one */
        uint16_t               count;      /* Moves so far */
        ucs_time_t             since[UCT_VARUNA_MAX_LINKS];
        uct_varuna_backoff_t   backoff[UCT_VARUNA_MAX_LINKS];
    } moves;                               /* varuna_ports.c, varuna_moves_apply.c */
    struct {
        ucs_time_t             interval;   /* 0: only on demand */
        unsigned               max_misses;
        ucs_time_t             ticked_at;
        khiter_t               first;      /* Of the peers, at the last tick */
        ucs_list_link_t        events;     /* Peers, for the main thread */
        ucs_list_link_t        due[UCT_VARUNA_MAX_LINKS]; /* Peers to be asked on it,
                                              varuna_heartbeat.c */
        uint8_t                suspects;   /* Links on which no peer answers */
        uint8_t                missing;    /* ... on which some peer was silent at
                                              the last tick */
        uint8_t                down_map;   /* For the main thread, as above */
        uint8_t                up_map;
    } hb;                                  /* Heartbeat */
    struct {
        khash_t(uct_varuna_ports) ports;   /* Hashes of device addresses */
        uct_varuna_pace_t      pace;       /* Of answers */
    } strangers;                           /* varuna_stranger.c */
    struct {
        ucs_time_t             warned_at;
        unsigned               unwarned;
    } complaints;                          /* Their rate limit. varuna_peer.c */
    struct {
        uint32_t               stale;      /* Requests meant for others */
        uint32_t               mismatched; /* Of unknown secret or opening; counted
                                              by the rooms above, too */
        uint32_t               answered;   /* To strangers */
        uint32_t               ignored;    /* Of strangers */
    } stats;                               /* Shown in the VFS tree */
};

/* Some messages come and go all the time: the log of what happens to endpoints is
 * without them. */
static inline ucs_log_level_t uct_varuna_ctl_log_level(unsigned type)
{
    return uct_varuna_msg_has(type, UCT_VARUNA_MSG_FLAG_FREQUENT) ?
           UCS_LOG_LEVEL_TRACE : UCS_LOG_LEVEL_DEBUG;
}

/** @return Whether nothing of an endpoint is in flight. */
static inline int uct_varuna_ctl_ep_is_drained(const uct_varuna_ctl_t *ctl,
                                               const uct_varuna_ctl_ep_t *ep)
{
    return uct_varuna_tl_is_drained(ep->inner,
                                    uct_varuna_link_set(ctl->iface, ep->link)->bus);
}

/* Control DC address of local link @a link, for the interface address. */
static inline const void *
uct_varuna_ctl_link_addr(const uct_varuna_ctl_t *ctl, unsigned link, size_t *length_p)
{
    *length_p = ctl->links[link].attr.iface_addr_len;
    return ctl->links[link].addr;
}

/** @return The time now, for all that the control plane and the rooms above do. */
static inline ucs_time_t uct_varuna_ctl_now(const uct_varuna_ctl_t *ctl)
{
    return ctl->time.read();
}

static inline void uct_varuna_ctl_lock(uct_varuna_ctl_t *ctl)
{
    UCS_ASYNC_BLOCK(ctl->async);
}

/** Unless another thread has the lock. @return Whether we have it. */
static inline int uct_varuna_ctl_try_lock(uct_varuna_ctl_t *ctl)
{
    return uct_varuna_compat_async_try_block(ctl->async);
}

static inline void uct_varuna_ctl_unlock(uct_varuna_ctl_t *ctl)
{
    UCS_ASYNC_UNBLOCK(ctl->async);
}

/** @return Whether the NIC of @a link is dead, as far as anybody has found out. No lock. */
static inline int uct_varuna_ctl_is_nic_gone(const uct_varuna_ctl_t *ctl, unsigned link)
{
    return ((ctl->detector != NULL) && uct_varuna_detector_is_gone(ctl->detector, link)) ||
           uct_varuna_md_is_nic_dead(ctl->iface->md, ctl->iface->links[link].nic);
}

#endif
