/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Control plane: a private worker with a DC interface per link, progressed by
 * UCX's async mechanism, so that a peer whose application computes can still
 * be fenced and opened. Also the responder's side of every vQP (targets).
 *
 * Threads: whatever runs in the async context is called with the async lock of
 * the worker held; the main thread takes it with UCS_ASYNC_BLOCK for each
 * call of this file. Handlers of the "main" messages run in the main thread,
 * from uct_varuna_ctl_dispatch().
 */
#ifndef UCT_VARUNA_CTL_H_
#define UCT_VARUNA_CTL_H_

#include <uct/ib/varuna/core/varuna_alive.h>
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include "varuna_retry.h"

#include <ucs/datastruct/queue.h>
#include <ucs/datastruct/list.h>

/* One link of a remote interface, from its address. */
typedef struct uct_varuna_peer_link {
    uint8_t                    nic;       /* Remote NIC index */
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
    ucs_time_t                 probed_at;  /* Since the last transition; 0: not yet */
    ucs_time_t                 asked_at;   /* About requests which may hang */
    const char                 *reason;    /* Of the last failure */
} uct_varuna_path_t;

/*
 * A remote interface; reference-counted, found by its name. It is one whose address
 * our application has given us, or a guest: one that has asked us, and told its
 * address itself. The same interface may be here as both, and they share nothing:
 * what a guest says of itself may be a lie.
 */
typedef struct uct_varuna_peer {
    uint64_t                   uuid;
    uint64_t                   secret;    /* In messages both ways: a guest's for us,
                                             else ours for it */
    uint8_t                    is_guest;
    unsigned                   refcount;
    /* By *local* link index (the remote link which our link reaches). */
    uct_varuna_peer_link_t     links[UCT_VARUNA_MAX_LINKS];
    unsigned                   link_map;  /* Local links which reach it */
    uct_varuna_path_t          paths[UCT_VARUNA_MAX_LINKS]; /* By local link */
    unsigned                   queue_full[UCT_VARUNA_MAX_LINKS]; /* In this pass
                                              over ctl->queue, no resources */
    unsigned                   asking;     /* Endpoints which ask and are not
                                              answered; main thread */
    unsigned                   connecting; /* Endpoints whose CONNECT_REQ is not
                                              answered; main thread */
    uct_ep_h                   ctl_eps[UCT_VARUNA_MAX_LINKS]; /* Lazily made */
    uint8_t                    doubtful;  /* Links on which the last message to
                                             it failed */
    struct {
        uct_varuna_alive_t     alive;
        ucs_list_link_t        list;      /* In ctl->hb.events, if queued */
        uint8_t                queued;
        uint8_t                used;      /* Paths, at the last tick */
        uint8_t                dead;      /* Paths, for the main thread */
        uint8_t                far_down;  /* Paths whose port is down there */
        uint8_t                told_down; /* Changes of that, for the main thread: */
        uint8_t                told_up;   /* down before up */
        uint32_t               ports_number; /* Of what it told last of its ports */
        uint32_t               ports_told; /* ... of what we told it of ours */
        uint8_t                unexplained; /* Dead paths: whose fault it is may
                                             still turn out */
        uint8_t                explain_ticks; /* ... in so many intervals */
        uint8_t                silence;   /* What its silence on all paths was said
                                             to mean */
        uint8_t                renew;     /* Paths to be judged anew; atomic */
        ucs_time_t             gone_time; /* Silent for so long beside a process
                                             of its host that answers; atomic */
        ucs_time_t             used_at[UCT_VARUNA_MAX_LINKS]; /* Atomic */
        uint32_t               app_beat;  /* Of its last answer; atomic */
    } hb;                                 /* Heartbeat: under the lock */
    unsigned                   num_held;  /* Messages of all its vQPs, see
                                             varuna_held.h; main thread */
    ucs_time_t                 heard_at;  /* Last message of it */
    uint8_t                    failed;    /* Links on which messages to it failed since
                                             then */
    struct {
        unsigned               targets;   /* Open ones */
        unsigned               asked;     /* How often since asked_since */
        ucs_time_t             asked_since;
    } orphan;                             /* varuna_orphan.c: under the lock */
    void                       *addr;     /* Copy, which links[] points into */
    uct_device_addr_t          *dev_addr; /* Copy of the primary's, or NULL */
} uct_varuna_peer_t;

/**
 * Open the control plane: worker, inner interfaces, the rows of its own messages. The
 * rooms above register theirs before it listens.
 */
ucs_status_t uct_varuna_ctl_create(uct_varuna_iface_t *iface,
                                   uct_varuna_ctl_t **ctl_p);

/** Start calls from the async context. Lock held. */
ucs_status_t uct_varuna_ctl_listen(uct_varuna_ctl_t *ctl);

/** Let the last messages, CLOSE among them, leave; for a short time, as a peer may be
 *  dead. It does not listen any more; lock not held. */
void uct_varuna_ctl_linger(uct_varuna_ctl_t *ctl);

/** Stop all calls from the async context, for good. The lock must not be held. */
void uct_varuna_ctl_unlisten(uct_varuna_ctl_t *ctl);

/** Close everything. It does not listen any more, and the rooms above are closed. */
void uct_varuna_ctl_destroy(uct_varuna_ctl_t *ctl);

/** Control DC address of local link @a link, for the interface address. */
const void *uct_varuna_ctl_link_addr(uct_varuna_ctl_t *ctl, unsigned link,
                                     size_t *length_p);

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

/** @return nonzero if any of our links reaches the address; used by
 *  iface_is_reachable, so it must not log errors. */
int uct_varuna_peer_is_reachable(uct_varuna_iface_t *iface,
                                 const uct_device_addr_t *device_addr,
                                 const void *addr);

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

/** @return whether the system says that the NIC of @a link is gone. No lock. */
int uct_varuna_ctl_is_nic_gone(const uct_varuna_ctl_t *ctl, unsigned link);

/** @return nonzero when uct_varuna_ctl_dispatch() has something to do. */
int uct_varuna_ctl_has_events(const uct_varuna_ctl_t *ctl);

/** Main thread, before it waits for uct_varuna_ctl_event_fd(): only who has armed is
 *  woken, once. @return UCS_ERR_BUSY if there is something to do already. */
ucs_status_t uct_varuna_ctl_event_arm(uct_varuna_ctl_t *ctl);

/** Any thread, no lock: let the main thread make a round. */
void uct_varuna_ctl_poke(uct_varuna_ctl_t *ctl);

/** Main thread: handle what the async context has queued, and poll on its behalf
 *  (worth calling now and then without an event): messages go to their handlers on the
 *  bus, link events to uct_varuna_iface_link_*().
 *  @return number of events. */
unsigned uct_varuna_ctl_dispatch(uct_varuna_ctl_t *ctl);

/** File descriptor which is readable while events wait (for wake-up mode). */
int uct_varuna_ctl_event_fd(const uct_varuna_ctl_t *ctl);

#endif
