/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The requester's part of the interface: what its endpoints share.
 */
#ifndef UCT_VARUNA_REQUESTER_H_
#define UCT_VARUNA_REQUESTER_H_


#include <uct/ib/varuna/core/varuna_clock.h>
#include <uct/ib/varuna/core/varuna_numbers.h>
#include <uct/ib/varuna/core/varuna_plan.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_retry.h>
#include <uct/ib/varuna/lanes/varuna_lanes.h>

#include <ucs/datastruct/khash.h>
#include <ucs/datastruct/mpool.h>
#include <ucs/datastruct/ptr_array.h>
#include <pthread.h>

/* --- Limits --- */

/* How much a requester asks for at once, when thousands of its endpoints have lost
 * their lanes. contrib/eval.sh simulates what follows for a thousand hosts. */

/* How many RC connections are begun in a second at most, at first use as well as after a
 * failure: thousands of them must not stall the traffic. Meanwhile endpoints use DC. */
#define UCT_VARUNA_REBUILD_RATE      1000

/* How many endpoints to one peer may wait for an answer at once (UCT_VARUNA_CTL_MAX_QUEUE
 * messages wait in a queue, others are dropped). */
#define UCT_VARUNA_MAX_ASKING        256

/* How many CONNECT_REQs to one peer may be unanswered at once. */
#define UCT_VARUNA_MAX_CONNECTING    64

/* A NIC without a route to the peer, and one that was given a wrong local key, may report
 * the same error. If this many lanes of an endpoint in a row fail with it before one has
 * completed anything, it is not the links' fault. */
#define UCT_VARUNA_MAX_UNSENT        8

/* --- The requester's part of the interface --- */

/* Inner endpoint -> outer endpoint, for errors */
UCT_VARUNA_HASH_MAP_INIT_POINTER(uct_varuna_inner_eps, uct_varuna_ep_t*)

/* A key of a peer: only that peer is asked about it, and its answers are for that one only */
typedef struct uct_varuna_key_name {
    uint64_t                   uuid;          /* Of the peer */
    uint64_t                   token;         /* In the key. Of logs: the target's opening */
} uct_varuna_key_name_t;

/* What such a key has for NICs of the peer that were reset. Owner: varuna_key.c */
typedef struct uct_varuna_key {
    uct_rkey_t                 keys[UCT_VARUNA_MAX_LINKS]; /* UCT_INVALID_RKEY: not known */
    uct_varuna_retry_t         retry;         /* The question */
    uint8_t                    asked;         /* For these NICs */
    uint8_t                    is_gone;       /* The region was deregistered */
} uct_varuna_key_t;

static inline khint_t uct_varuna_key_name_hash(uct_varuna_key_name_t name)
{
    return uct_varuna_hash_pointer(name.uuid ^ name.token);
}

static inline int uct_varuna_key_name_equal(uct_varuna_key_name_t a, uct_varuna_key_name_t b)
{
    return (a.uuid == b.uuid) && (a.token == b.token);
}

KHASH_INIT(uct_varuna_keys, uct_varuna_key_name_t, uct_varuna_key_t, 1,
           uct_varuna_key_name_hash, uct_varuna_key_name_equal)

typedef struct uct_varuna_baseline uct_varuna_baseline_t;
typedef struct uct_varuna_outage uct_varuna_outage_t;

/* The sink for events of endpoints, see varuna_ep_event.h */
typedef void (*uct_varuna_ep_raise_func_t)(uct_varuna_ep_t *ep,
                                           unsigned event, const char *reason,
                                           ucs_status_t status);

/* Posts what waits for the lane: its turn has come */
typedef void (*uct_varuna_ep_resume_func_t)(uct_varuna_ep_t *ep);

/* What the requester keeps of each peer. Main thread only. */
typedef struct uct_varuna_requester_peer {
    unsigned                   asking;        /* Endpoints which ask and are not
                                                 answered. Owner: varuna_ep_ctl.c */
    unsigned                   connecting;    /* Endpoints whose CONNECT_REQ is not
                                                 answered. Owner: varuna_rebuild.c */
    unsigned                   no_psn;        /* Links over which its NIC does not
                                                 report PSNs. Owner: varuna_verdict.c */
    uct_varuna_backoff_t       no_handle[UCT_VARUNA_MAX_LINKS]; /* For DC lanes. Owner:
                                                 varuna_lane.c */
    ucs_time_t                 asked_at[UCT_VARUNA_MAX_LINKS]; /* About requests which
                                                 may hang. Owner: varuna_hang.c */
    struct {                                  /* By the clock of the scan */
        ucs_time_t             since;         /* It has no link, if somebody waits for it */
        ucs_time_t             looked_at;     /* When somebody did last; 0: never */
        unsigned               line;          /* In which its endpoints that fail are
                                                 counted */
        uint8_t                told;          /* The user knows */
    } outage;                                 /* Owner: varuna_stat.c */
} uct_varuna_requester_peer_t;

struct uct_varuna_requester {
    uct_varuna_iface_t         super;
    uct_varuna_ep_raise_func_t ep_raise;
    uct_varuna_ep_resume_func_t ep_resume;
    const uct_varuna_baseline_t *baseline;    /* NULL: none */
    struct {
        ucs_mpool_t            slabs;         /* Memory of rings, varuna_ring.h */
        ucs_mpool_t            reqs;          /* uct_varuna_req_t that are in no ring */
        ucs_mpool_t            amos;          /* Atomics of the mode */
        ucs_mpool_t            bcopies;       /* Registered packing buffers */
    } pools;
    const struct uct_varuna_amo_ops *amo;     /* The mode of atomics */
    unsigned                   outstanding;   /* Unfinished requests of all */
    unsigned                   num_pending;   /* Pending requests of all */
    struct {
        uint32_t               fence;         /* Bumped by iface_fence */
        uint32_t               flush;         /* Bumped by iface_flush */
    } beats;
    uint8_t                    was_away;      /* Some endpoint was: varuna_placed.h */
    uint8_t                    uses_events;   /* The user asked for event_fd */
    ucs_ptr_array_t            eps;           /* vQP id -> endpoint. Changed by the
                                                 main thread alone, and with */
    pthread_mutex_t            eps_lock;      /* this, which others need: VFS */
    khash_t(uct_varuna_inner_eps) inner_eps;
    khash_t(uct_varuna_keys)   keys;          /* Owner: varuna_key.c */
    ucs_list_link_t            work;          /* Endpoints with slow-path work */
    ucs_list_link_t            farewells;     /* uct_varuna_farewell_t; lock of the
                                                 control plane */
    size_t                     peer_part;     /* uct_varuna_requester_peer_t, of peers */
    struct {
        char                   *dir;          /* NULL: no audit */
        int                    fd;            /* -1: no record yet */
    } audit;                                  /* varuna_audit_file.c */
    uct_varuna_pace_t          rebuild_pace;  /* UCT_VARUNA_REBUILD_RATE */
    struct {
        uint32_t               salt;          /* Makes vQP ids unique */
        uint32_t               instances;     /* Endpoints made so far */
    } ids;                                    /* varuna_ep_life.c */
    uint32_t                   late_opens;    /* Of our closed endpoints; shown in the
                                                 VFS tree. Owner: varuna_stale.c */
    struct {
        unsigned               next;          /* Position */
        unsigned               failures;      /* Those of the interface that it has
                                                 noticed */
        unsigned               left;          /* Slots not yet looked at since
                                                 the last failure */
        ucs_time_t             at;            /* Next scan */
        ucs_time_t             scanned_at;    /* Last one */
        ucs_time_t             clock;         /* Pauses while there is no scan */
    } scan;                                   /* Background scan, varuna_scan.c */
    struct {
        uct_varuna_outage_t    *lines;        /* Written just now, or about to be */
        unsigned               number;        /* Of the last one */
    } outage;                                 /* varuna_stat.c */
    struct {
        uint64_t               posted;        /* By lanes which are gone */
        uint64_t               switches;      /* Away from it, */
        uint64_t               executed;      /* and what was found then */
        uint64_t               lost;
        uint64_t               ambiguous;
        uint64_t               repeated;
        uint64_t               fences[UCT_VARUNA_FENCED_LAST];
    } link_stats[UCT_VARUNA_MAX_LINKS];       /* Sums over all endpoints */
};

UCS_CLASS_DECLARE(uct_varuna_requester_t, uct_iface_ops_t*,
                  uct_iface_internal_ops_t*, uct_md_h, uct_worker_h,
                  const uct_iface_params_t*, const uct_iface_config_t*)

/** @return The requester's part of an interface. */
static inline uct_varuna_requester_t *
uct_varuna_requester(const uct_varuna_iface_t *iface)
{
    return ucs_derived_of(iface, uct_varuna_requester_t);
}

static inline uct_varuna_requester_peer_t *
uct_varuna_requester_peer(const uct_varuna_iface_t *iface,
                          const uct_varuna_peer_t *peer)
{
    return (uct_varuna_requester_peer_t*)
           uct_varuna_peer_part(peer, uct_varuna_requester(iface)->peer_part);
}

#endif
