/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Shared by the files of the control plane and by nobody else: varuna_ctl.c
 * (progress, received messages, inbox), varuna_ctl_send.c (endpoints, messages
 * that are sent), varuna_ctl_open.c (inner interfaces), varuna_peer.c (remote
 * interfaces), varuna_target.c (responder's side of vQPs), varuna_target_log.c (its
 * ids and log rings).
 *
 *   async context                         main thread
 *   -------------                         -----------
 *   inner DC ifaces -> receive
 *     OPEN_REQ, FENCE_REQ: answered
 *     all others ------> inbox, eventfd -> uct_varuna_ctl_dispatch()
 *   port events ------------^
 *
 * Everything here is protected by the async lock of the worker, unless a field
 * says otherwise. It is recursive.
 */
#ifndef UCT_VARUNA_CTL_PRIV_H_
#define UCT_VARUNA_CTL_PRIV_H_

#include <uct/ib/varuna/core/varuna_clock.h>
#include "varuna_bus.h"
#include "varuna_ctl.h"
#include <uct/ib/varuna/lanes/varuna_detector.h>
#include <uct/ib/varuna/core/varuna_pace.h>
#include <uct/ib/varuna/core/varuna_msg.h>

#include <ucs/async/async.h>
#include <ucs/datastruct/khash.h>
#include <ucs/debug/log.h>
#include <uct/base/uct_worker.h>

/* Largest control message; the inner interface must be able to send it. */
#define UCT_VARUNA_CTL_MAX_MSG       4096

/* Bytes of the requester's address behind a request, at most */
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
    uint8_t                    link;
    uint8_t                    failed;
} uct_varuna_ctl_ep_t;

KHASH_MAP_INIT_INT64(uct_varuna_ctl_eps, uct_varuna_ctl_ep_t*)

/* A message which waits for send resources. */
typedef struct uct_varuna_ctl_msg {
    ucs_list_link_t            list;
    uct_varuna_peer_t          *peer;      /* A reference */
    size_t                     length;
    uint8_t                    link;
    char                       data[];
} uct_varuna_ctl_msg_t;

/* Where the answer to a stranger goes (varuna_stranger.c), with room behind the
 * addresses as foreign code takes lengths from them */
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
    uint8_t                    index;
} uct_varuna_ctl_link_t;

struct uct_varuna_ctl {
    uct_varuna_iface_t         *iface;
    ucs_async_context_t        *async;
    uct_worker_h               worker;
    unsigned                   num_links;
    uct_varuna_ctl_link_t      links[UCT_VARUNA_MAX_LINKS];
    int                        progressing; /* Inside uct_worker_progress() */
    int                        kick_fd;    /* Calls the handler again */

    khash_t(uct_varuna_ctl_eps) eps;       /* By inner endpoint */
    ucs_list_link_t            dead_eps;
    ucs_list_link_t            queue;      /* uct_varuna_ctl_msg_t */
    unsigned                   queue_len;
    unsigned                   queue_pass;  /* Times it was gone through */

    khash_t(uct_varuna_peers)  peers;      /* By name */

    uct_varuna_bus_t           bus;
    uint8_t                    down_map;   /* Link events for the main thread, */
    uint8_t                    up_map;     /* down before up */
    int                        event_fd;
    int                        has_events; /* Read without the lock */
    int                        poked;      /* Atomic: by another thread */
    int                        armed;      /* Atomic: event_fd is waited for */
    int                        signalled;  /* Atomic: event_fd is to be drained */

    uct_varuna_clock_t         clock;      /* Of all that is periodic */
    uct_varuna_detector_t      *detector;  /* NULL if not asked for */
    uint8_t                    ports_down; /* Links whose port is down */
    struct {
        uint32_t               number;     /* Of port events so far */
        uint8_t                changed;    /* Links: the last of them */
        uint8_t                pending;    /* Somebody was not told yet */
    } ports;                               /* varuna_ports.c */
    struct {
        ucs_time_t             interval;   /* 0: only on demand */
        unsigned               max_misses;
        ucs_time_t             ticked_at;
        khiter_t               first;      /* Of the peers, at the last tick */
        ucs_list_link_t        events;     /* Peers, for the main thread */
        uint8_t                suspects;   /* Links on which nobody answers */
        uint8_t                missing;    /* ... on which somebody was not heard
                                              at the last tick */
        uint8_t                down_map;   /* For the main thread, as above */
        uint8_t                up_map;
    } hb;                                  /* Heartbeat */
    struct {
        khash_t(uct_varuna_ports) ports;   /* Hashes of device addresses */
        uct_varuna_pace_t      pace;       /* Of answers */
    } strangers;                           /* varuna_stranger.c */
    ucs_time_t                 warned_at;  /* Rate limit of complaints */
    unsigned                   unwarned;
};

/* Pings and atomics by proxy come and go all the time: the log of what happens to
 * endpoints is without them. */
static inline ucs_log_level_t uct_varuna_ctl_log_level(unsigned type)
{
    return uct_varuna_msg_has(type, UCT_VARUNA_MSG_FLAG_FREQUENT) ?
           UCS_LOG_LEVEL_TRACE : UCS_LOG_LEVEL_DEBUG;
}

static inline void uct_varuna_ctl_lock(uct_varuna_ctl_t *ctl)
{
    UCS_ASYNC_BLOCK(ctl->async);
}

static inline void uct_varuna_ctl_unlock(uct_varuna_ctl_t *ctl)
{
    UCS_ASYNC_UNBLOCK(ctl->async);
}

/* --- varuna_ctl.c: what varuna_ctl_open.c installs as callbacks, or calls --- */

ucs_status_t uct_varuna_ctl_am_handler(void *arg, void *data,
                                       size_t length, unsigned flags);

void uct_varuna_ctl_event_handler(int fd, ucs_event_set_types_t events,
                                  void *arg);

void uct_varuna_ctl_port_event(void *arg, unsigned port, int is_up);

unsigned uct_varuna_ctl_progress(uct_varuna_ctl_t *ctl);

void uct_varuna_ctl_signal(int fd);

/* --- varuna_ctl.c: lock held in all --- */

/* Wake the main thread up: something waits for uct_varuna_ctl_dispatch(). */
void uct_varuna_ctl_notify(uct_varuna_ctl_t *ctl);

/* Tell the user that a peer's message or address is refused; at most once in a
 * while, since a broken peer repeats itself. */
void uct_varuna_ctl_complain(uct_varuna_ctl_t *ctl, uint64_t uuid,
                             const char *what, const char *reason);

/* Pass a message to its handler in the main thread. */
void uct_varuna_ctl_defer(uct_varuna_ctl_t *ctl, unsigned link,
                          const uct_varuna_ctl_hdr_t *hdr, const void *body);

/* --- varuna_ctl_send.c: lock held in all --- */

/* Installed by varuna_ctl_open.c: a control endpoint has failed. */
ucs_status_t uct_varuna_ctl_err_handler(void *arg, uct_ep_h inner,
                                        ucs_status_t status);

/* Try again what waits in the queue. One peer which can't be sent to doesn't hold
 * up the others; messages to one peer stay in order on a link. */
void uct_varuna_ctl_flush_queue(uct_varuna_ctl_t *ctl);

void uct_varuna_ctl_msg_free(uct_varuna_ctl_t *ctl,
                             uct_varuna_ctl_msg_t *msg);

/* Append where we are, for one who has to say that it isn't who we think. There is
 * room for UCT_VARUNA_CTL_MAX_FROM bytes. @return how many were used. */
size_t uct_varuna_ctl_append_from(const uct_varuna_ctl_t *ctl, unsigned link,
                                  uct_varuna_ctl_hdr_t *hdr);

/* Create an inner endpoint that belongs to no peer, to addresses which were checked.
 * In the end it is put in ctl->dead_eps, or destroyed. */
ucs_status_t uct_varuna_ctl_ep_create(uct_varuna_ctl_t *ctl, unsigned link,
                                      const uct_device_addr_t *device_addr,
                                      const uct_iface_addr_t *iface_addr,
                                      uct_varuna_ctl_ep_t **ep_p);

/* Destroy an inner endpoint at once, which is not in ctl->dead_eps; see
 * uct_varuna_ctl_reap_eps() for when that is allowed. */
void uct_varuna_ctl_ep_destroy(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep);

/* Post on an inner endpoint. */
ucs_status_t uct_varuna_ctl_ep_post(uct_ep_h inner, const void *data,
                                    size_t length);

/* Post a message now, or tell UCS_ERR_NO_RESOURCE. */
ucs_status_t uct_varuna_ctl_post(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                 unsigned link, const void *data,
                                 size_t length);

/* Answer the request @a hdr, which came over @a link. */
void uct_varuna_ctl_reply(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                          unsigned link, const uct_varuna_ctl_hdr_t *hdr,
                          uct_varuna_ctl_type_t type, const void *body,
                          size_t length);

/* Refuse the request @a hdr, which has its body and its sender's address behind it
 * unless the sender is a known peer. */
void uct_varuna_ctl_reject(uct_varuna_ctl_t *ctl, unsigned link,
                           const uct_varuna_ctl_hdr_t *hdr,
                           ucs_status_t status);

/* Forget the control endpoint of @a peer on @a link. It is destroyed once no
 * callback runs and, unless it @a failed, its messages have left. */
void uct_varuna_ctl_drop_ep(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                            unsigned link, int failed);

/* Destroy the dropped endpoints for which that is true, or all by @a force. */
void uct_varuna_ctl_reap_eps(uct_varuna_ctl_t *ctl, int force);

/* --- varuna_doubt.c: lock held in all --- */

/* May a message be posted to @a peer on @a link now? */
int uct_varuna_doubt_may_post(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                              unsigned link);

/* May a message be posted to a stranger now? It is taken for posted. */
int uct_varuna_doubt_admit(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep);

/* One was posted, or failed later, or the endpoint is about to be destroyed. */
void uct_varuna_doubt_posted(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                             unsigned link);
void uct_varuna_doubt_failed(uct_varuna_peer_t *peer, unsigned link);
void uct_varuna_doubt_forget(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep);

/* --- varuna_peer.c: lock held in all --- */

/* As uct_varuna_peer_get() for a parsed address. With @a secret it is the guest that
 * has told this, else 0. Links which a known peer did not tell before are merged;
 * unless it is a guest, only by the main thread, which reads them without the lock. */
ucs_status_t uct_varuna_peer_open(uct_varuna_ctl_t *ctl,
                                  const uct_varuna_parsed_addr_t *parsed,
                                  uint64_t secret, uct_varuna_peer_t **peer_p);

/* Main thread, lock not held: learn the links which peer @a uuid, a known one, has in its
 * full address. */
void uct_varuna_peer_learn(uct_varuna_ctl_t *ctl, uint64_t uuid,
                           const void *addr, size_t length);

/* A message of the peer has arrived. */
static inline void uct_varuna_peer_heard(uct_varuna_peer_t *peer, ucs_time_t now)
{
    peer->heard_at = now;
    peer->failed   = 0;
}

/* @return the peer, guest or not, which @a uuid is if it knows @a secret. */
uct_varuna_peer_t *uct_varuna_peer_find(uct_varuna_ctl_t *ctl, uint64_t uuid,
                                        uint64_t secret);

/* Is that link of a remote interface, of which somebody has told, good for control
 * messages over @a link? */
int uct_varuna_peer_ctl_reaches(const uct_varuna_iface_t *iface, unsigned link,
                                const uct_varuna_parsed_link_t *remote);

/* Local link over which to answer: @a link if it reaches the peer. */
unsigned uct_varuna_peer_reply_link(const uct_varuna_peer_t *peer,
                                    unsigned link);

void uct_varuna_peers_cleanup(uct_varuna_ctl_t *ctl);

#endif
