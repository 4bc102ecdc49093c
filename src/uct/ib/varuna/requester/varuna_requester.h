/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The requester's part of the interface: what its endpoints share. Main thread, unless
 * something says otherwise.
 */
#ifndef UCT_VARUNA_REQUESTER_H_
#define UCT_VARUNA_REQUESTER_H_


#include <uct/ib/varuna/core/varuna_clock.h>
#include <uct/ib/varuna/core/varuna_numbers.h>
#include <uct/ib/varuna/core/varuna_plan.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_retry.h>
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/core/varuna_wire.h>

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

/* What such a key has for NICs of the peer that were opened again. Owner: varuna_key.c */
typedef struct uct_varuna_key {
    uct_rkey_t                 keys[UCT_VARUNA_MAX_LINKS]; /* UCT_INVALID_RKEY: not known */
    uct_varuna_retry_t         retry;         /* The question */
    uint16_t                   generations[UCT_VARUNA_MAX_LINKS]; /* Of these NICs */
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

/* The sink for events of endpoints, see varuna_sm.h */
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
    ucs_time_t                 asked_at[UCT_VARUNA_MAX_LINKS]; /* About requests which
                                                 may hang. Owner: varuna_lane.c */
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
    uint8_t                    was_away;      /* Some endpoint was: varuna_placed.c */
    uint8_t                    uses_events;   /* The user asked for event_fd */
    ucs_ptr_array_t            eps;           /* vQP id -> endpoint. Changed by the
                                                 main thread alone, and with */
    pthread_mutex_t            eps_lock;      /* this, which others need: VFS */
    khash_t(uct_varuna_inner_eps) inner_eps;
    struct {
        khash_t(uct_varuna_keys) table;       /* What keys lacked. Owner: varuna_key.c */
        uct_rkey_t             user;          /* Of the new request on the slow path.
                                                 Owner: varuna_post.c */
    } keys;
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
                                                 VFS tree. Owner: varuna_answers.c */
    struct {
        unsigned               next;          /* Position */
        unsigned               failures;      /* Those of the interface that it has
                                                 noticed */
        unsigned               left;          /* Slots not yet looked at since
                                                 the last failure */
        ucs_time_t             at;            /* Next scan */
        ucs_time_t             scanned_at;    /* Last one */
        ucs_time_t             clock;         /* Pauses while there is no scan */
    } scan;                                   /* Background scan, varuna_eps.c */
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

/* --- Answers --- */

/* The requester's rows of the bus. varuna_answers.c. */

/** Register them. The control plane is open. */
void uct_varuna_answers_init(uct_varuna_iface_t *iface);

/** @return The endpoint that an answer is for, NULL if it is closed, or opened again.
 *  Not for the answer to OPEN_REQ. */
uct_varuna_ep_t *uct_varuna_answer_opened_ep(uct_varuna_iface_t *iface,
                                             const uct_varuna_ctl_hdr_t *hdr);

/* --- The endpoints together --- */

/* Their pools, their list of work, and the interface's flush and fence. varuna_eps.c. */

/** Create the pools of requests and buffers. The lanes are open, their attributes are
 *  known. */
ucs_status_t uct_varuna_requester_init_mpools(uct_varuna_requester_t *requester);

void uct_varuna_requester_cleanup_mpools(uct_varuna_requester_t *requester);

/**
 * The NIC of a link is to be closed: endpoints leave it, as far as that depends on them.
 *
 * @param [in] is_ended  It has been at rest for a packet lifetime: what remains there proves
 *                       nothing more.
 *
 * @return How many endpoints have something there.
 */
unsigned uct_varuna_requester_leave_link(uct_varuna_requester_t *requester, unsigned link,
                                         int is_ended);

/** @return Whether any inner endpoint of an endpoint is on a link. */
int uct_varuna_requester_is_on_link(const uct_varuna_requester_t *requester, unsigned link);

/** An inner endpoint of a requester has failed. @return 0 if it belongs to no endpoint
 *  of ours. */
int uct_varuna_requester_lane_error(uct_varuna_requester_t *requester,
                                    uct_ep_h inner, ucs_status_t status);

/** Let some endpoints that have work take a step, and the others in the next calls. */
void uct_varuna_requester_progress(uct_varuna_requester_t *requester,
                                   ucs_time_t now);

/** As uct_iface_flush(). */
ucs_status_t uct_varuna_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                    uct_completion_t *comp);

/** As uct_iface_fence(). */
ucs_status_t uct_varuna_iface_fence(uct_iface_h tl_iface, unsigned flags);

/* --- The table of endpoints, by their ids --- */

/* The lock of the table covers changes, for other readers. */

/** @return The endpoint with this vQP id, NULL if it is gone. */
uct_varuna_ep_t *uct_varuna_ep_find(uct_varuna_iface_t *iface, uint32_t id);

/** Give the endpoint an id by which it is found. */
ucs_status_t uct_varuna_ep_add(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep);

/** No thread finds it any more. */
void uct_varuna_ep_remove(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep);

/* --- The background scan --- */

/* Endpoints that do not post notice failures, and requests that hang are found.
 * varuna_eps.c. */

/* Time between two scans, seconds; more if the application calls progress less often */
#define UCT_VARUNA_SCAN_PERIOD  1e-3

/** @return Whether the next scan is due. */
static inline int
uct_varuna_scan_is_due(const uct_varuna_requester_t *requester, ucs_time_t now)
{
    return now >= requester->scan.at;
}

/** @return Whether endpoints have not been looked at since the last failure. */
static inline int
uct_varuna_scan_is_behind(const uct_varuna_requester_t *requester)
{
    return (requester->scan.left > 0) ||
           (requester->scan.failures != requester->super.failures);
}

/** Look at some endpoints. */
void uct_varuna_scan(uct_varuna_requester_t *requester, ucs_time_t now);

#endif
