/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The control plane: a private worker with a DC interface per link, progressed by UCX's
 * async mechanism, so that a peer whose application computes can still be fenced and
 * opened. It carries messages; what they do is known to the rooms above, which register
 * with its bus. This header has its structure, and the functions of these files:
 *
 *   varuna_ctl_open       opens, closes, listens; opens an interface once more
 *   varuna_ctl_progress   progress in the async context, or none while the main thread polls;
 *                         receiving, dispatch in the main thread
 *   varuna_ctl_send       sending, answers, the queue of what has no resources; REJECT to
 *                         peers and to strangers
 *   varuna_ctl_ep         inner endpoints, fewer for peers that are probably dead
 *
 * The others have headers of their own:
 *
 *   varuna_bus            rows: the handlers of messages, and the inbox, which wakes the
 *                         main thread
 *   varuna_ports          PORTS: the state of our ports, for the peers that send to us, and
 *                         ports that get another address; varuna_moves_apply uses it
 *   varuna_heartbeat      PING and PONG, as resources allow; varuna_witness compares what
 *                         peers say
 *   varuna_path           paths to peers, judged by all of that, in the main thread
 *   varuna_peer           remote interfaces, and their cables
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
#include <uct/ib/varuna/core/varuna_def.h>
#include <uct/ib/varuna/core/varuna_wire.h>

#include <ucs/async/async.h>
#include <ucs/datastruct/khash.h>
#include <ucs/debug/log.h>
#include <uct/base/uct_worker.h>
#include <ucs/sys/event_set.h>

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

/* Where the answer to a stranger goes (varuna_ctl_send.c), with room after the
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
    uct_iface_h                inner;      /* NULL: its NIC is away */
    uct_iface_attr_t           attr;
    uct_iface_addr_t           *addr;      /* attr.iface_addr_len bytes */
    int                        fd;         /* Event fd, -1 if not listening */
    /* Endpoints of doubtful peers that may occupy a DCI each */
    uct_varuna_ctl_ep_t        *doubtful[UCT_VARUNA_CTL_MAX_DOUBTFUL];
    uct_varuna_stranger_t      stranger;
    struct {                               /* Of strangers. Owner: varuna_ctl_ep.c */
        char                   device_addr[64]; /* Address handles for it take no time */
        int                    is_on;      /* A thread finds that out of another one */
        unsigned               count;      /* What threads find out, of peers too */
    } seek;
    struct {                               /* All send buffers are in use */
        ucs_time_t             since;      /* 0: they are not */
        ucs_time_t             seen_at;    /* When a message last found none */
    } full;
    uint8_t                    index;
    uint8_t                    is_proved;  /* A message over it has arrived */
    uint8_t                    seeks;      /* Ethernet: address handles may take a second */
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
        uint8_t                lives;      /* Links whose NIC goes, or comes back. Read
                                              without the lock */
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
    } strangers;                           /* varuna_ctl_send.c */
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

/** @return Whether the worker has UCX's async thread. If not, the lock excludes no thread. */
static inline int uct_varuna_ctl_has_thread(const uct_varuna_ctl_t *ctl)
{
    return (ctl->async->mode == UCS_ASYNC_MODE_THREAD_SPINLOCK) ||
           (ctl->async->mode == UCS_ASYNC_MODE_THREAD_MUTEX);
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
static inline int uct_varuna_ctl_is_nic_dead(const uct_varuna_ctl_t *ctl, unsigned link)
{
    return ((ctl->detector != NULL) && uct_varuna_detector_is_gone(ctl->detector, link)) ||
           uct_varuna_md_is_nic_dead(ctl->iface->md, ctl->iface->links[link].nic);
}

/** The same, or nothing of it is open. */
static inline int uct_varuna_ctl_is_nic_gone(const uct_varuna_ctl_t *ctl, unsigned link)
{
    return ctl->iface->links[link].is_closed || uct_varuna_ctl_is_nic_dead(ctl, link);
}

/* --- Progress in the async context --- */

/** Progress the inner interfaces, and what depends on them. Lock held.
 *  @return number of events. */
unsigned uct_varuna_ctl_progress(uct_varuna_ctl_t *ctl);

/** Installed by varuna_ctl_open.c: an event. */
void uct_varuna_ctl_event_handler(int fd, ucs_event_set_types_t events,
                                  void *arg);

/* --- Rest of the async thread --- */

/* The async thread's rest. While the main thread polls the bus, events would only wake
 * the async thread to find nothing, at the cost of whoever computes on its CPU, and with
 * the lock held when the main thread wants to send. So when messages have come and the
 * main thread polls, events are not armed until a timer expires at which one of the two
 * has ended. If the main thread begins to compute meanwhile, the peers wait for the timer,
 * once.
 *
 *      event: messages, and the main thread polls
 *   armed -----------------------------------------> rest --+ timer: still so
 *     ^                                               |  ^--+
 *     +-----------------------------------------------+
 *      timer: no messages, or no polls; the main thread is about to sleep
 *
 * Lock held, unless a function says otherwise. */

ucs_status_t uct_varuna_ctl_rest_init(uct_varuna_ctl_t *ctl);

void uct_varuna_ctl_rest_cleanup(uct_varuna_ctl_t *ctl);

/** The timer has expired. There may be so much to receive that another event has to come
 *  before uct_varuna_ctl_rest_decide() is called: that decides then. */
void uct_varuna_ctl_rest_expired(uct_varuna_ctl_t *ctl);

/**
 * An event was handled: nothing is left to receive.
 *
 * @return Whether events are not to be armed. Then the timer is set.
 */
int uct_varuna_ctl_rest_decide(uct_varuna_ctl_t *ctl);

/* --- Receiving --- */

/** Callback of the inner interfaces, which varuna_ctl_open.c installs; @a arg is the
 *  uct_varuna_ctl_link_t. Lock held. */
ucs_status_t uct_varuna_ctl_am_handler(void *arg, void *data,
                                       size_t length, unsigned flags);

/** Pass a message to its handler in the main thread. Lock held. */
void uct_varuna_ctl_defer(uct_varuna_ctl_t *ctl, unsigned link,
                          const uct_varuna_ctl_hdr_t *hdr, const void *body);

/** @return Messages that came until now, except for pings and their answers. No lock. */
unsigned uct_varuna_ctl_num_received(const uct_varuna_ctl_t *ctl);

/** Main thread: receive what is there on behalf of the async context, unless another
 *  thread is just doing that. Never blocks. */
void uct_varuna_ctl_poll(uct_varuna_ctl_t *ctl);

/** Main thread: handle what the async context has queued, and poll on its behalf
 *  (worth calling now and then without an event): messages go to their handlers on the
 *  bus, events of links and peers to their paths. @return number of events. */
unsigned uct_varuna_ctl_dispatch(uct_varuna_ctl_t *ctl);

/* --- Opening and closing --- */

/* Opening and closing of the control plane. Called by the interface. */

/**
 * Open the control plane: worker, inner interfaces, the rows of its own messages. The
 * rooms above register theirs before it listens.
 */
ucs_status_t uct_varuna_ctl_create(uct_varuna_iface_t *iface,
                                   uct_varuna_ctl_t **ctl_p);

/** The part of that which opens nothing: no links, no peers, no rows. */
void uct_varuna_ctl_init(uct_varuna_ctl_t *ctl, uct_varuna_iface_t *iface);

/** Its counterpart: releases messages, peers and endpoints. Lock not held. */
void uct_varuna_ctl_cleanup(uct_varuna_ctl_t *ctl);

/** Start calls from the async context. Lock held. */
ucs_status_t uct_varuna_ctl_listen(uct_varuna_ctl_t *ctl);

/** Let the last messages, CLOSE among them, leave; for a short time, as a peer may be
 *  dead. It does not listen any more; lock not held. */
void uct_varuna_ctl_linger(uct_varuna_ctl_t *ctl);

/** Stop all calls from the async context, for good. The lock must not be held. */
void uct_varuna_ctl_unlisten(uct_varuna_ctl_t *ctl);

/** Close everything. It does not listen any more, and the rooms above are closed. */
void uct_varuna_ctl_destroy(uct_varuna_ctl_t *ctl);

/* --- Opening again --- */

/* Opens the control plane's interface of a link once more. */

/**
 * Open the control interface of a link once more, and close the one that was open: its
 * messages on their way are lost, as on a link that fails. Main thread, lock held.
 *
 * @return UCS_ERR_BUSY if a room above has an endpoint there; other errors are logged.
 *         The one that was open stays then.
 */
ucs_status_t uct_varuna_ctl_link_reopen(uct_varuna_ctl_t *ctl, unsigned link);

/* --- One more link --- */

/** @return Whether nothing uses the control interface of a link any more, once its messages and
 *  endpoints are dropped. Main thread, lock held. */
int uct_varuna_ctl_link_is_closable(uct_varuna_ctl_t *ctl, unsigned link);

/** Close it, and do not listen to its port: its NIC goes. Main thread, lock held. */
void uct_varuna_ctl_link_close(uct_varuna_ctl_t *ctl, unsigned link);

/**
 * Open it once more, after its lanes. It is not used before uct_varuna_ctl_join(). Main thread,
 * lock held.
 *
 * @param [in] dev_name  Its port.
 */
ucs_status_t uct_varuna_ctl_link_open(uct_varuna_ctl_t *ctl, unsigned link,
                                      const char *dev_name);

/** The link can be used again, and peers get to know its address. Main thread, lock held. */
void uct_varuna_ctl_join(uct_varuna_ctl_t *ctl, unsigned link);

/* --- Sending --- */

/* Sending of control messages. Lock held in all but uct_varuna_ctl_send(). */

/**
 * Send one control message on @a link (a local link index). Main thread or
 * async context. No resource: queued inside. Without a reference to @a peer of its
 * own, the caller must not use it afterwards.
 *
 * @param [in] whose  Its secret, vqp, epoch and opening are sent; nothing else of
 *                    it.
 */
ucs_status_t uct_varuna_ctl_send(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                 unsigned link, uct_varuna_ctl_type_t type,
                                 const uct_varuna_ctl_hdr_t *whose,
                                 const void *body, size_t length);

/** Answer the request @a hdr, which came over @a link. */
void uct_varuna_ctl_reply(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                          unsigned link, const uct_varuna_ctl_hdr_t *hdr,
                          uct_varuna_ctl_type_t type, const void *body,
                          size_t length);

/** Try again what waits in the queue. One peer which can't be sent to doesn't hold
 * up the others; messages to one peer stay in order on a link. */
void uct_varuna_ctl_flush_queue(uct_varuna_ctl_t *ctl);

void uct_varuna_ctl_msg_free(uct_varuna_ctl_t *ctl,
                             uct_varuna_ctl_msg_t *msg);

/** Append our address, for a receiver that has to refuse the message. There is room for
 * UCT_VARUNA_CTL_MAX_FROM bytes. @return The number of bytes used. */
size_t uct_varuna_ctl_append_from(const uct_varuna_ctl_t *ctl, unsigned link,
                                  uct_varuna_ctl_hdr_t *hdr);

/** Local link over which to answer: @a link if it reaches the peer, and its NIC is not gone
 *  since. */
unsigned uct_varuna_ctl_reply_link(const uct_varuna_ctl_t *ctl,
                                   const uct_varuna_peer_t *peer, unsigned link);

/* --- Inner endpoints --- */

/* Inner endpoints of the control plane. Lock held in all. */

/* On Ethernet, the first address handle for another port waits until that has told the system its
 * MAC address, for a second if it does not answer. UCX creates handles in uct_ep_create(), and in
 * the meantime all others who need one spin for its lock. So a thread of the NIC creates one
 * before: with what the system knows then, creating an endpoint takes no time. On InfiniBand
 * an address handle is a structure in memory. */

/**
 * Ask before an endpoint to the peer is created on a link. What waits is tried again when the
 * answer is there. A failure counts in peer->no_ctl_ep.
 *
 * @return UCS_ERR_NO_RESOURCE if that is not known yet, UCS_ERR_UNREACHABLE if it has failed.
 */
ucs_status_t uct_varuna_ctl_seek(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                 unsigned link);

/** The peer has another address on a link: nothing is known of that, nor has anything failed. */
void uct_varuna_ctl_seek_anew(uct_varuna_peer_t *peer, unsigned link);

/** The same for a stranger. @return Whether an endpoint may be created to this port now. */
int uct_varuna_ctl_seek_stranger(uct_varuna_ctl_t *ctl, unsigned link, const void *device_addr,
                                 size_t length);

/** Create an inner endpoint that belongs to no peer, to addresses which were checked.
 * In the end it is put in ctl->dead_eps, or destroyed. */
ucs_status_t uct_varuna_ctl_ep_create(uct_varuna_ctl_t *ctl, unsigned link,
                                      const uct_device_addr_t *device_addr,
                                      const uct_iface_addr_t *iface_addr,
                                      uct_varuna_ctl_ep_t **ep_p);

/** Destroy an inner endpoint at once, which is not in ctl->dead_eps; see
 * uct_varuna_ctl_reap_eps() for when that is allowed. */
void uct_varuna_ctl_ep_destroy(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep);

/** Post on an inner endpoint. */
ucs_status_t uct_varuna_ctl_ep_post(uct_ep_h inner, const void *data,
                                    size_t length);

/** Post a message now. @return UCS_ERR_NO_RESOURCE if that is not possible yet, and
 * UCS_ERR_UNREACHABLE if our NIC is gone or seems to hang, or @a peer does not receive. */
ucs_status_t uct_varuna_ctl_post(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                 unsigned link, const void *data,
                                 size_t length);

/** Forget the control endpoint of @a peer on @a link. It is destroyed once no
 * callback runs and, unless it @a failed, its messages have left. */
void uct_varuna_ctl_drop_ep(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                            unsigned link, int failed);

/** Messages to @a peer, which is doubtful, may wait on @a link since before that link
 * worked again. They would fail, and all that follow with them: later messages do not wait
 * for them. Does nothing if none waits for longer than a link takes that works. */
void uct_varuna_ctl_renew_ep(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                             unsigned link);

/** Messages were lost: whoever asks by them need not wait for answers. Lock held. */
void uct_varuna_ctl_count_lost(uct_varuna_peer_t *peer, unsigned link);

/** The same for all peers to which messages fail, on all links but @a lost: it has
 * failed, so the others are what is left. */
void uct_varuna_ctl_renew_others(uct_varuna_ctl_t *ctl, unsigned lost);

/** Destroy the dropped endpoints for which that is true, or all by @a force. */
void uct_varuna_ctl_reap_eps(uct_varuna_ctl_t *ctl, int force);

/** Installed by varuna_ctl_open.c: a control endpoint has failed. */
ucs_status_t uct_varuna_ctl_err_handler(void *arg, uct_ep_h inner,
                                        ucs_status_t status);

/* --- Peers that are probably dead --- */

/* Limits what is sent to peers that are probably dead. Lock held in all. */

/** May a message be posted to a stranger now? It is taken for posted. */
int uct_varuna_doubt_admit(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep);

/* --- Strangers --- */

/* Refuses messages: those of peers, and those of processes that our application does
 * not know. Lock held in all of it. */

/**
 * Refuse a message that has come over @a link from a process that is not a peer here, if
 * the message has its address: a restarted process has no peers, and its former peers must
 * learn that. Nothing of the message is kept.
 *
 * @param [in] hdr  Message that has passed uct_varuna_parse_ctl(), with its body.
 */
void uct_varuna_stranger_refuse(uct_varuna_ctl_t *ctl, unsigned link,
                                const uct_varuna_ctl_hdr_t *hdr,
                                ucs_status_t status);

/** The same for a message of an older version; the answer has ours. */
void uct_varuna_stranger_refuse_old(uct_varuna_ctl_t *ctl, unsigned link,
                                    const void *data, size_t length);

void uct_varuna_strangers_init(uct_varuna_ctl_t *ctl);

/** Drops the endpoints, before all that are dropped are destroyed. */
void uct_varuna_strangers_cleanup(uct_varuna_ctl_t *ctl);

/** Refuse the request @a hdr. Its body follows it, and its sender's address unless the
 *  sender is a known peer. */
void uct_varuna_ctl_reject(uct_varuna_ctl_t *ctl, unsigned link,
                           const uct_varuna_ctl_hdr_t *hdr,
                           ucs_status_t status);

/** Forget the endpoint to the last stranger on a link: it is in ctl->dead_eps then. */
void uct_varuna_stranger_drop(uct_varuna_ctl_t *ctl, unsigned link);

#endif
