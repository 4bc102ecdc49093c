/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder: what peers have in this process, and the functions of the files that keep
 * its parts, except those of targets and fences.
 *
 *   async context, lock held              main thread
 *   ------------------------              -----------
 *   OPEN_REQ, CLOSE (varuna_target.c)     destroys closed targets
 *   FENCE_REQ (varuna_fence.c)              (varuna_responder_open.c)
 *                                         watches gaps (varuna_fence.c)
 *   CONNECT_REQ (varuna_connect.c)        makes spare queue pairs (varuna_connect.c)
 *   ATOMIC_REQ, HOME_REQ                 registers log rings (varuna_target_log.c)
 *     (varuna_target.c)
 *
 * Protected by the async lock, unless a field says otherwise.
 */
#ifndef UCT_VARUNA_RESPONDER_H_
#define UCT_VARUNA_RESPONDER_H_

#include <uct/ib/varuna/core/varuna_clock.h>
#include <uct/ib/varuna/core/varuna_numbers.h>
#include <uct/ib/varuna/core/varuna_held.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_retry.h>
#include <uct/ib/varuna/md/varuna_own.h>
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/core/varuna_def.h>

/* Targets: chunks of 256, since one chunk's logs are 272 KB. */
#define UCT_VARUNA_TARGET_CHUNK_BITS 8
#define UCT_VARUNA_TARGET_CHUNK      UCS_BIT(UCT_VARUNA_TARGET_CHUNK_BITS)
#define UCT_VARUNA_TARGET_MAX_CHUNKS 4096
#define UCT_VARUNA_TARGET_ID_NONE    UINT32_MAX

/*
 * RC end of one incarnation, and what it left. There is one for each ring: while
 * a planned change is on its way, the new incarnation is connected and the old
 * one still works. Its evidence is kept until its ring is due for another.
 * Attached, detached and fenced with the lock held.
 */
typedef struct uct_varuna_fence uct_varuna_fence_t;

typedef struct uct_varuna_target_qp {
    uct_ep_h                   ep;         /* NULL if it was never made, or is
                                              destroyed */
    uint32_t                   epoch;      /* 0: none */
    uint32_t                   flags;      /* UCT_VARUNA_FENCE_FLAG_xx */
    uint32_t                   epsn;
    uint8_t                    link;       /* Local link index */
    uint8_t                    is_reset;   /* The QP is in RESET */
    ucs_time_t                 stopped_at; /* In ERR since then, 0: it is not */
    ucs_time_t                 attached_at;
    uct_varuna_fence_t         *fence;     /* It is just being stopped. Owner:
                                              varuna_fence.c */
} uct_varuna_target_qp_t;

/* No header of 32 bits names this */
#define UCT_VARUNA_TARGET_EXPECTS_NONE UINT64_MAX

/* Responder's side of one vQP. */
struct uct_varuna_target {
    /* Receive side, main thread only */
    uct_varuna_numbered_t      am;        /* Its number in AM headers */
    uint32_t                   next_seq;
    uint64_t                   expected;  /* The number as in headers, or EXPECTS_NONE: a
                                             look at what follows is needed */
    uint8_t                    broken;    /* A message is missing for good */
    uint8_t                    orphan;    /* The requester was given up */
    uct_varuna_held_t          held;      /* Messages after the next one */
    struct {
        ucs_list_link_t        list;      /* In resp->received.gaps, if watched */
        uint8_t                watched;
        uct_varuna_retry_t     retry;     /* The report that it is broken */
        uint32_t               end;       /* All before it must come */
        uint32_t               next;      /* What was missing at the last look */
        ucs_time_t             since;
    } gap;

    ucs_list_link_t            list;      /* In one of the table's lists */
    uct_varuna_peer_t          *peer;     /* The requester's interface */
    uint32_t                   vqp;       /* The requester's id */
    uint32_t                   instance;  /* Of that id */
    uint64_t                   opening;   /* Distinguishes it from all others that
                                             ever were here; random, never 0 */
    uint32_t                   id;        /* Ours, of its logs */
    uint64_t                   *logs;     /* LOG_COUNT rings, registered */
    uint32_t                   fenced;    /* Incarnations <= this are fenced */
    uct_varuna_target_qp_t     qps[UCT_VARUNA_LOG_COUNT]; /* By ring */
    struct {                              /* FENCE_REQ that is not answered yet. Owner:
                                             varuna_fence.c */
        uint8_t                is_set;
        uint8_t                link;
        uct_varuna_ctl_hdr_t   hdr;
        uct_varuna_ctl_fence_req_t req;
    } asked;
    uint8_t                    is_used;   /* Its requester knows of it */
    uct_varuna_retry_t         reminder;  /* OPEN_REP without a request */
    uint64_t                   amo_part[]; /* Of the mode of atomics, which knows its type */
};

/* Of its ring: the end of incarnation @a epoch. */
static inline uct_varuna_target_qp_t *
uct_varuna_target_qp(uct_varuna_target_t *target, uint32_t epoch)
{
    return &target->qps[epoch % UCT_VARUNA_LOG_COUNT];
}

/* Names of targets. With the secret, names of different peers never collide. */
typedef struct uct_varuna_target_key {
    uct_varuna_peer_key_t      peer;
    uint32_t                   vqp;
} uct_varuna_target_key_t;

static inline khint_t uct_varuna_target_key_hash(uct_varuna_target_key_t key)
{
    return uct_varuna_peer_key_hash(key.peer) ^
           kh_int64_hash_func(key.vqp * 0x9e3779b97f4a7c15ul);
}

static inline int uct_varuna_target_key_equal(uct_varuna_target_key_t a,
                                              uct_varuna_target_key_t b)
{
    return uct_varuna_peer_key_equal(a.peer, b.peer) && (a.vqp == b.vqp);
}

KHASH_INIT(uct_varuna_targets, uct_varuna_target_key_t, uct_varuna_target_t*, 1,
           uct_varuna_target_key_hash, uct_varuna_target_key_equal)
UCT_VARUNA_HASH_MAP_INIT_POINTER(uct_varuna_rc_eps, uct_varuna_target_t*)

/* A chunk of the logs of targets, which are found by the target's id. */
typedef struct uct_varuna_target_chunk {
    uint32_t                   next[UCT_VARUNA_TARGET_CHUNK]; /* In its list */
    ucs_time_t                 freed_at[UCT_VARUNA_TARGET_CHUNK];
    uint64_t                   *logs;
    uct_varuna_own_t           owns[UCT_VARUNA_TARGET_CHUNK]; /* Registrations
                                              of the logs */
} uct_varuna_target_chunk_t;

/* A list of ids, first in, first out. */
typedef struct uct_varuna_target_ids {
    uint32_t                   head;
    uint32_t                   tail;
} uct_varuna_target_ids_t;

typedef struct uct_varuna_target_table {
    uct_varuna_numbers_t       numbers;    /* By the number in AM headers. Changed
                                              under the lock, read by the main thread
                                              without it */
    uct_varuna_target_chunk_t  **chunks;   /* UCT_VARUNA_TARGET_MAX_CHUNKS */
    unsigned                   num_chunks;
    uint32_t                   next_id;    /* First which was never used */
    uct_varuna_target_ids_t    freed;      /* Late log writes die out */
    uct_varuna_target_ids_t    ready;      /* Registered anew, for OPEN_REQ */
    unsigned                   num_ready;  /* Read without the lock */
    uct_varuna_backoff_t       no_logs;    /* Making them ready fails. Main thread */
    unsigned                   count;      /* Of targets, with closed ones that
                                              wait for the main thread */
    khash_t(uct_varuna_targets) by_name;   /* Open targets */
    khash_t(uct_varuna_rc_eps) rc_eps;     /* Lock held. NULL: the target is gone, or
                                              has another one */
    ucs_list_link_t            closed;     /* uct_varuna_target_t, which the main
                                              thread is to destroy; lock */
    ucs_list_link_t            orphans;    /* uct_varuna_target_t, oldest first; main thread */
} uct_varuna_target_table_t;

/* An RC endpoint which the main thread is to destroy. */
typedef struct uct_varuna_old_ep {
    ucs_list_link_t            list;
    uct_ep_h                   inner;
    uint8_t                    is_reset;   /* Its QP is in RESET */
} uct_varuna_old_ep_t;

/* RC endpoints that are not connected yet, by link, and those that are no longer
 * wanted. Made and destroyed by the main thread, used by both. */
typedef struct uct_varuna_spares {
    uct_ep_h                   *eps[UCT_VARUNA_MAX_LINKS];
    unsigned                   count[UCT_VARUNA_MAX_LINKS];
    ucs_list_link_t            old;        /* uct_varuna_old_ep_t */
    unsigned                   stopping[UCT_VARUNA_MAX_LINKS]; /* By link: those that are no
                                              target's any more, and are just being stopped */
    ucs_time_t                 stopped_at[UCT_VARUNA_MAX_LINKS]; /* When the last one was dropped
                                              that is not in RESET; 0: none */
    uint8_t                    is_closed;  /* Nothing of it is kept any more */
} uct_varuna_spares_t;

/* Descriptors that the user keeps */
typedef struct uct_varuna_kept {
    uct_recv_desc_t            desc;
    uint32_t                   *num_kept;  /* Of the link */
} uct_varuna_kept_t;

/* What the responder keeps of each peer. */
typedef struct uct_varuna_responder_peer {
    unsigned                   targets;    /* Open ones */
    unsigned                   num_held;   /* Messages of all its vQPs, see
                                              varuna_held.h; main thread */
    struct {                               /* Owner: varuna_responder_open.c */
        unsigned               asked;      /* How often, since then */
        ucs_time_t             since;
    } orphan;
} uct_varuna_responder_peer_t;

/** What the responder does for atomics of peers: a mode of atomics, one table for each
 *  (docs/ATOMICS.md). The implementations are in cpu/ and extended/, which use the responder.
 *  Lock held in all of it. */
typedef struct uct_varuna_served_ops {
    size_t                     target_part; /* Bytes of amo_part, of each target */

    /** Make amo_part, and register rows of the bus. Main thread. */
    ucs_status_t               (*open)(uct_varuna_responder_t *resp);

    /** Main thread. No target is left. */
    void                       (*close)(uct_varuna_responder_t *resp);

    /** A new target, whose amo_part is zero. */
    void                       (*open_target)(uct_varuna_target_t *target);

    /** Fill in OPEN_REP's part about atomics. @return Bytes put at @a tail. */
    size_t                     (*fill_open)(uct_varuna_responder_t *resp,
                                            uct_varuna_target_t *target,
                                            uct_varuna_ctl_open_rep_t *rep, void *tail);

    /** Nobody asks for results any more. May be called twice. */
    void                       (*close_target)(uct_varuna_responder_t *resp,
                                               uct_varuna_target_t *target);

    /** Name this process's home NIC, for peers. */
    void                       (*tell_home)(uint8_t *nic_p, uint32_t *epoch_p);

    /** In a new child: forget what the parent's process has. */
    void                       (*forked)(void);
} uct_varuna_served_ops_t;

struct uct_varuna_responder {
    uct_varuna_iface_t         *iface;
    uct_varuna_ctl_t           *ctl;
    size_t                     peer_part;  /* uct_varuna_responder_peer_t, of peers */
    uct_varuna_target_table_t  targets;
    uct_varuna_spares_t        spares;
    const uct_varuna_served_ops_t *amo;    /* NULL: there is nothing to do for atomics */
    void                       *amo_part;  /* Of the mode of atomics, which knows its type */
    struct uct_varuna_readback *readbacks[UCT_VARUNA_MAX_LINKS]; /* By link; NULL: not needed
                                              yet. Of the NIC's thread. Owner:
                                              varuna_fence.c */
    unsigned                   no_last_wqe; /* Links whose NIC does not raise that event.
                                              Owner: varuna_fence.c */
    struct {                               /* Active messages. Main thread. Owner:
                                              varuna_am.c */
        uct_varuna_kept_t      release[UCT_VARUNA_MAX_LINKS]; /* By link */
        ucs_list_link_t        gaps;       /* Targets. Owner: varuna_fence.c */
        unsigned               num_held;   /* Messages, see varuna_held.h */
    } received;
    struct {                               /* Owner: varuna_responder_open.c */
        ucs_time_t             ticked_at;
    } orphan;
    struct {                               /* Owner: varuna_responder_open.c */
        unsigned               num;        /* Targets at most, at the last look */
    } unused;
    struct {
        uint32_t               open;       /* Targets */
        uint32_t               orphans;    /* Given up, kept for a while */
        uint32_t               given_up;
        uint32_t               unexpected; /* AMs to no vQP, or far from its next
                                              number; main thread */
    } stats;                               /* Shown in the VFS tree */
};

static inline uct_varuna_responder_peer_t *
uct_varuna_responder_peer(const uct_varuna_responder_t *resp, const uct_varuna_peer_t *peer)
{
    return (uct_varuna_responder_peer_t*)uct_varuna_peer_part(peer, resp->peer_part);
}

/* --- Active messages --- */

/* Their receive side: exactly once, in order, over several lanes. varuna_am.c. */

/** Nothing was received so far. */
void uct_varuna_am_init(uct_varuna_responder_t *resp);

/** AM handler of every inner data interface; @a arg is its lane_iface. */
ucs_status_t uct_varuna_am_handler(void *arg, void *data, size_t length,
                                   unsigned flags);

/* --- Connections --- */

/* varuna_connect.c, as the spare queue pairs. */

/** Add the rows of CONNECT_REQ. */
void uct_varuna_connect_init(uct_varuna_responder_t *resp);

/** The queue pair is not its target's any more, and is destroyed later, perhaps after the
 *  target. Lock held. */
void uct_varuna_connect_forget(uct_varuna_responder_t *resp, uct_ep_h ep);

/** Error handler of the inner RC interfaces, for endpoints which are no
 *  requester's lane: main thread. The passive side waits for the requester.
 *  @return nonzero if the endpoint is a target's. */
int uct_varuna_target_ep_failed(uct_varuna_responder_t *resp, uct_ep_h inner);

/* --- Opening and closing --- */

/* Called by the interface. */

/** The NIC of a link is to be closed: as uct_varuna_targets_leave_link(). Main thread, lock not
 *  held. */
unsigned uct_varuna_responder_leave_link(uct_varuna_responder_t *resp, unsigned link,
                                         int is_over, int is_ended);

/** @return Whether any inner endpoint is on a link. Lock held. */
int uct_varuna_responder_is_on_link(const uct_varuna_responder_t *resp, unsigned link);

/** Open the responder and register its rows. The control plane is open and does not
 *  listen yet; lock held. @a amo: the mode of atomics, may be NULL. */
ucs_status_t uct_varuna_responder_create(uct_varuna_iface_t *iface,
                                         uct_varuna_ctl_t *ctl,
                                         const uct_varuna_served_ops_t *amo,
                                         uct_varuna_responder_t **resp_p);

/** Close all targets. The control plane does not listen any more. */
void uct_varuna_responder_destroy(uct_varuna_responder_t *resp);

/** Main thread, lock not held: what the async context has left to it, and what it keeps
 *  ready for that. */
void uct_varuna_responder_progress(uct_varuna_responder_t *resp);

/* --- Targets that nobody knows --- */

/* Targets whose requester may not know that it has them. */

/* --- Orphans --- */

/* Targets whose requester died without a word, so that no CLOSE ever comes.
 * Async context, lock held, unless a function says otherwise. */

/* --- Spare queue pairs --- */

/* And those that the main thread is to destroy. */

/** Main thread, before any other thread uses them: makes all spare endpoints that can be had. */
ucs_status_t uct_varuna_spares_init(uct_varuna_responder_t *resp);

/** Destroy those that are ready on a link, which is to be closed. Main thread, lock held. */
void uct_varuna_spares_leave_link(uct_varuna_responder_t *resp, unsigned link);

/** @return Whether there are any on a link. Lock held. */
int uct_varuna_spares_are_on(const uct_varuna_responder_t *resp, unsigned link);

/** Main thread: destroys all of them. */
void uct_varuna_spares_cleanup(uct_varuna_responder_t *resp);

/** Main thread, lock not held: makes spare endpoints until there are @a wanted. @return
 *  UCS_ERR_NO_RESOURCE if the NIC had none and is not to be asked now. */
ucs_status_t uct_varuna_spares_make(uct_varuna_responder_t *resp, unsigned link,
                                    unsigned wanted);

/** Main thread, lock not held: makes what has been taken, one for each link in a
 * call, and destroys what was dropped. */
void uct_varuna_spares_progress(uct_varuna_responder_t *resp);

/** @return an endpoint, NULL if there is none. Lock held. */
uct_ep_h uct_varuna_spare_take(uct_varuna_responder_t *resp, unsigned link);

/** @return Whether those of no target that were on a link execute nothing more there, and what
 *  they had accepted is in memory. Lock held. */
int uct_varuna_spares_are_at_rest(const uct_varuna_responder_t *resp, unsigned link);

/** Stop a queue pair that is counted in 'stopping', and destroy it as soon as UCX can. Main
 *  thread, lock not held.
 *
 * @param [in] is_reset  It is in RESET.
 */
void uct_varuna_spare_end(uct_varuna_responder_t *resp, uct_ep_h ep, unsigned link, int is_reset);

/** Make the main thread destroy one that is stopped, or was not used. Lock held. */
void uct_varuna_spare_drop(uct_varuna_responder_t *resp, uct_ep_h ep, unsigned link,
                           int is_reset);

/* --- Ids and logs of targets --- */

/* The log rings belong to the ids. Lock held, unless a function says otherwise.
 * varuna_target_log.c. */

/** Main thread, before any other thread uses them: makes the first ids ready. */
ucs_status_t uct_varuna_target_logs_init(uct_varuna_responder_t *resp);

/** Main thread, no other user is left. */
void uct_varuna_target_logs_cleanup(uct_varuna_responder_t *resp);

/** Main thread, lock not held: makes an id ready, if some have been taken. */
void uct_varuna_target_logs_progress(uct_varuna_responder_t *resp);

/** Get an id whose log rings have a new registration. */
ucs_status_t uct_varuna_target_id_get(uct_varuna_responder_t *resp, uint32_t *id_p);

/** Give it back: nothing that is posted from now on is for its rings. */
void uct_varuna_target_id_put(uct_varuna_responder_t *resp, uint32_t id);

/** The rings of an id, and their registration. No lock. */
uint64_t *uct_varuna_target_log(const uct_varuna_responder_t *resp, uint32_t id);

const uct_varuna_own_t *
uct_varuna_target_log_key(const uct_varuna_responder_t *resp, uint32_t id);

/** Register the rings of an id that is in use on one more NIC, see uct_varuna_own_add(). */
ucs_status_t uct_varuna_target_log_add(uct_varuna_responder_t *resp, uint32_t id, unsigned nic,
                                       unsigned generation, uint64_t *key_p);

/** The life of a device ends: end the registrations of all rings there. Nobody waits for that. Main
 *  thread, lock held. @param [in] owner  Its first port. */
void uct_varuna_target_logs_leave(uct_varuna_responder_t *resp, unsigned owner);

#endif
