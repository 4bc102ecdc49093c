/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The vQP: one rc_varuna endpoint. Posts on one lane at a time, remembers what is
 * unfinished, and is moved to another lane by varuna_recovery.c. What all files of the
 * requester know of it, and what files do with one that have no header of their own.
 */
#ifndef UCT_VARUNA_EP_H_
#define UCT_VARUNA_EP_H_

#include "varuna_amo_ops.h"
#include "varuna_requester.h"
#include <uct/ib/varuna/ctl/varuna_retry.h>
#include <uct/ib/varuna/core/varuna_clock.h>
#include <uct/ib/varuna/core/varuna_oplog.h>
#include <uct/ib/varuna/core/varuna_plan.h>
#include <uct/ib/varuna/ucx/varuna_mlx5.h>

#include <ucs/datastruct/queue.h>

/* --- States --- */

/* And the events that concern them, and the transitions: varuna_sm_table.c. */

/*
 *   OPENING -----> BACKLOG -----> ACTIVE -----> SWAP
 *      opened         ^  posted                   |
 *                     +---------------------------+   planned change
 *
 *   ACTIVE, BACKLOG,  failure
 *   SWAP, REPEAT -------------> DRAIN -----> FENCE -----> REPEAT -----> ACTIVE
 *                                  at rest      decided      posted
 *
 *   All of these can lead to FAILED.
 */
typedef enum {
    UCT_VARUNA_EP_OPENING,   /* Waits for the target and its logs; takes some
                                requests meanwhile */
    UCT_VARUNA_EP_ACTIVE,    /* Posts on its lane */
    UCT_VARUNA_EP_SWAP,      /* Planned change: waits until the lane is empty; takes
                                requests for the new one */
    UCT_VARUNA_EP_BACKLOG,   /* Posts what it took in OPENING or SWAP */
    UCT_VARUNA_EP_DRAIN,     /* Lane in ERR: waits until it is flushed */
    UCT_VARUNA_EP_FENCE,     /* Waits for the responder's fence and evidence */
    UCT_VARUNA_EP_REPEAT,    /* Posts the lost ones again */
    UCT_VARUNA_EP_FAILED,    /* Terminal; reported to the user */
    UCT_VARUNA_EP_STATE_LAST
} uct_varuna_ep_state_t;

extern const char *uct_varuna_ep_state_names[];

typedef enum {
    UCT_VARUNA_EP_EVENT_OPENED,      /* There is a target, and a first lane */
    UCT_VARUNA_EP_EVENT_LANE_FAILED, /* The active lane cannot be used any more */
    UCT_VARUNA_EP_EVENT_NEXT_READY,  /* A better lane is connected */
    UCT_VARUNA_EP_EVENT_SWAPPED,     /* The old lane is empty, or is kept */
    UCT_VARUNA_EP_EVENT_AT_REST,     /* The failed lane is drained */
    UCT_VARUNA_EP_EVENT_DECIDED,     /* Each request has its verdict */
    UCT_VARUNA_EP_EVENT_POSTED,      /* No request waits to be posted */
    UCT_VARUNA_EP_EVENT_FATAL,       /* The endpoint cannot go on */
    UCT_VARUNA_EP_EVENT_LAST
} uct_varuna_ep_event_t;

/**
 * @return The state after @a event in @a state, UCT_VARUNA_EP_STATE_LAST if the event
 *         has no effect there.
 */
uct_varuna_ep_state_t uct_varuna_sm_next(uct_varuna_ep_state_t state,
                                         uct_varuna_ep_event_t event);

/* --- The vQP --- */

/* Short payloads are copied into the request; the inner lanes' inline limits
 * are below this (asserted when the interface opens). */
#define UCT_VARUNA_MAX_INLINE        256
#define UCT_VARUNA_MAX_IOV           8

/* What a step of an atomic writes or reads (amo/) */
#define UCT_VARUNA_MAX_ATOMIC_DATA   64

/* What kind of inner call posts (and posts again) the request. */
typedef enum {
    UCT_VARUNA_REQ_PUT_SHORT,
    UCT_VARUNA_REQ_PUT_ZCOPY,   /* bcopy too: from its registered buffer */
    UCT_VARUNA_REQ_GET_BCOPY,
    UCT_VARUNA_REQ_GET_ZCOPY,
    UCT_VARUNA_REQ_AM_SHORT,
    UCT_VARUNA_REQ_AM_BCOPY,
    UCT_VARUNA_REQ_AM_ZCOPY,
    UCT_VARUNA_REQ_ATOMIC_POST,
    UCT_VARUNA_REQ_ATOMIC_FETCH,
    UCT_VARUNA_REQ_CSWAP,
    UCT_VARUNA_REQ_FLUSH,       /* Marker */
    UCT_VARUNA_REQ_AMO_BODY,    /* Parts of an atomic, varuna_amo.c */
    UCT_VARUNA_REQ_AMO_CAS,
    UCT_VARUNA_REQ_AMO_OCCUPY,
    UCT_VARUNA_REQ_LAST
} uct_varuna_req_type_t;

enum {
    UCT_VARUNA_REQ_FLAG_FENCE    = UCS_BIT(0), /* Fence before it */
    UCT_VARUNA_REQ_FLAG_POSTED   = UCS_BIT(1), /* On the current incarnation */
    UCT_VARUNA_REQ_FLAG_LOGGED   = UCS_BIT(2), /* Its log write is posted */
    UCT_VARUNA_REQ_FLAG_DONE     = UCS_BIT(3), /* Finished, waits for its turn */
    UCT_VARUNA_REQ_FLAG_64       = UCS_BIT(4), /* Atomic width */
    UCT_VARUNA_REQ_FLAG_AMBIGUOUS = UCS_BIT(5), /* Perhaps executed: compare it
                                                  with its target */
    UCT_VARUNA_REQ_FLAG_PASSED   = UCS_BIT(6), /* FLUSH: all before it were posted on the
                                                  current incarnation */
    UCT_VARUNA_REQ_FLAG_WATCHED  = UCS_BIT(7), /* Was the oldest before */
    UCT_VARUNA_REQ_FLAG_LOST     = UCS_BIT(8), /* AMO_xx: left to its atomic */
    UCT_VARUNA_REQ_FLAG_FIRST    = UCS_BIT(9), /* Its completion is the first of
                                                  the new lane */
    UCT_VARUNA_REQ_FLAG_BCOPY    = UCS_BIT(10), /* It has a packing buffer */
    UCT_VARUNA_REQ_FLAG_LAST     = UCS_BIT(11), /* Of its slab, varuna_ring.h */
    UCT_VARUNA_REQ_FLAG_SPECIAL  = UCS_BIT(12), /* More is to be done when it retires:
                                                  AMO_xx, its value goes to the user, or
                                                  its log write was owed */
    UCT_VARUNA_REQ_FLAG_KEY      = UCS_BIT(13), /* New: look at the user's key, keys.user */
    UCT_VARUNA_REQ_FLAG_MARKER   = UCS_BIT(14), /* FLUSH: no lane completes it */
    UCT_VARUNA_REQ_FLAG_ORPHAN   = UCS_BIT(15)  /* Its endpoint is gone */
};

/* What is over with an incarnation */
#define UCT_VARUNA_REQ_FLAGS_OF_LANE \
    (UCT_VARUNA_REQ_FLAG_POSTED | UCT_VARUNA_REQ_FLAG_LOGGED | \
     UCT_VARUNA_REQ_FLAG_PASSED)

/* What may be finished as soon as it is the oldest one */
#define UCT_VARUNA_REQ_FLAGS_AWAITED \
    (UCT_VARUNA_REQ_FLAG_DONE | UCT_VARUNA_REQ_FLAG_MARKER)

/* What distinguishes a request that retires from a plain one */
#define UCT_VARUNA_REQ_FLAGS_NOT_PLAIN \
    (UCT_VARUNA_REQ_FLAG_FIRST | UCT_VARUNA_REQ_FLAG_BCOPY | \
     UCT_VARUNA_REQ_FLAG_LAST | UCT_VARUNA_REQ_FLAG_SPECIAL | UCT_VARUNA_REQ_FLAG_ORPHAN)

/* A buffer of the user: rc_mlx5 knows of no strides */
typedef struct uct_varuna_req_iov {
    void                       *buffer;
    size_t                     length;
    uct_mem_h                  memh;      /* The outer handle */
} uct_varuna_req_iov_t;

/* The saved request: all that a repeat needs. It takes as many cache lines as its type
 * fills; any lane looks only at the first one when it completes. */
struct uct_varuna_req {
    uct_completion_t           comp;      /* Ours, given to the inner lane */
    uct_varuna_ep_t            *ep;
    uct_completion_t           *user_comp;
    union {
        uint64_t               remote_addr;
        struct {
            uct_varuna_am_hdr_t hdr;
        } am;
    };
    uint32_t                   log_sn;    /* Of a read: num_writes when it was posted; of
                                             FLUSH: when all before it were */
    uint32_t                   end_psn;
    uint32_t                   length;    /* Total payload */
    uint16_t                   flags;     /* UCT_VARUNA_REQ_FLAG_xx */
    uint8_t                    type;
    uint8_t                    opcode;    /* Atomic; AM: uct_msg_flags; FLUSH: its flags */
    uint16_t                   size;      /* In the ring */
    uint8_t                    iovcnt;
    union {
        uint8_t                header_length; /* Of AM_ZCOPY */
        uint8_t                device;     /* Of others: whose memory the target is,
                                              UCT_VARUNA_DEVICE_HOST or a number of the peer's */
    };
    /* End of the first cache line */

    uct_rkey_t                 keys[UCT_VARUNA_MAX_LINKS]; /* By the remote NIC: the
                                             user may have released the outer one */
    union {
        struct uct_varuna_bcopy *bcopy;   /* From uct_varuna_requester(iface)->pools.bcopies */
        ucs_queue_elem_t       queue;     /* A flush, in ep->amo.flushes */
        uct_varuna_mlx5_read_t get;
        struct {
            uint64_t           value;
            uint64_t           compare;
            void               *result;    /* The user's; the value comes into data */
            uct_varuna_amo_t   *amo;       /* AMO_xx */
        } atomic;
        struct {
            uint64_t           others[3];  /* Used by those above */
            uint64_t           token;      /* Of the key, if it is the user's or of the logs */
        } user;
    };
    union {
        uint8_t                data[UCT_VARUNA_MAX_INLINE]; /* Payload, short */
        struct {
            uct_varuna_req_iov_t iov[UCT_VARUNA_MAX_IOV];
            uint8_t            header[UCT_VARUNA_MAX_INLINE]; /* AM_ZCOPY: after the
                                             last iov, uct_varuna_req_am_header() */
        };
    };
};

/* The requests of an endpoint, see varuna_ring.h. */
typedef struct uct_varuna_ring {
    uct_varuna_req_t           *head;     /* Where the next one is made; NULL: no slab
                                             has room for it */
    uct_varuna_req_t           *tail;     /* The oldest one; the head: there is none */
    void                       *limit;    /* The last place for one in the head's slab.
                                             Without a head: the end of the slab of the
                                             newest one, or NULL if there is none */
} uct_varuna_ring_t;

/* One physical lane of a vQP. */
typedef struct uct_varuna_lane {
    uct_ep_h                   ep;         /* Inner endpoint, NULL: none */
    uint32_t                   epoch;      /* Incarnation, from 1 */
    uint32_t                   link_gen;   /* Link generation when made */
    uint32_t                   path_gen;   /* Path generation when made */
    uint32_t                   psn;        /* Position of the next packet to be posted
                                              (RC), see uct_varuna_evidence_t */
    uint32_t                   acked_psn;  /* Position after the newest completion */
    uint16_t                   mtu;        /* Bytes; 0: PSN is not known */
    uint8_t                    link;       /* Local link index */
    uint8_t                    kind;       /* uct_varuna_lane_kind_t */
} uct_varuna_lane_t;

/* Count packets which were posted on the lane. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_lane_advance_psn(uct_varuna_lane_t *lane, uint32_t num_psns)
{
    lane->psn += num_psns;
}

/* What the posting path needs, with the members of uct_varuna_ep_t before it: two cache
 * lines, which a unit test checks. Owner: varuna.inl and varuna_ring.c. */
typedef struct uct_varuna_ep_hot {
    union {
        const uint8_t          state;       /* uct_varuna_ep_state_t */
        uint8_t                sm_state;    /* The same, for varuna_recovery.c alone, which changes it */
    };
    uint8_t                    fence_next;  /* The next request is fenced */
    uint8_t                    want_signal; /* Silent requests need a completion */
    uint8_t                    num_amos;    /* Unfinished; written by amo/ */
    uint8_t                    gate;        /* 1: closed. Otherwise open, but for requests
                                               with a key that lacks one of these NICs,
                                               varuna_pending.h */
    uint8_t                    nic;         /* Of the active lane: of this host, */
    uint8_t                    far_nic;     /* and of the peer */
    uint8_t                    logged;      /* Puts on the active lane write entries */
    uint32_t                   beat;        /* Of the interface, as last seen */
    uint32_t                   am_seq;
    uint32_t                   target;
    uint32_t                   num_reqs;    /* With any number of flushes */
    uint16_t                   num_reads;   /* Of these, reads */
    uint16_t                   silent;      /* Posted since the last signal */
    uint32_t                   log_next;    /* Number of the next log entry */
    uct_varuna_req_t           *last_silent; /* Newest of the silent */
    uct_varuna_ring_t          reqs;        /* Unfinished, in posting order */
    uint64_t                   log_addr;    /* Of the active incarnation's ring */
    uct_rkey_t                 log_rkey;    /* Of the active lane */
} uct_varuna_ep_hot_t;

/* Where the time of a recovery went, in microseconds */
typedef struct uct_varuna_spent {
    uint32_t                   detect;     /* The oldest request waited before */
    uint32_t                   drain, fence, repeat;
} uct_varuna_spent_t;

/* The vQP. Each part has one owner, which is the only file to write it, except where a
 * comment names another one. */
struct uct_varuna_ep {
    uct_base_ep_t              super;
    uct_varuna_peer_t          *peer;
    uct_varuna_lane_t          lane;        /* The active one. Owner: varuna_lane.c */
    uct_varuna_ep_hot_t        hot;
    /* End of the two cache lines */

    uct_varuna_req_t           *owed;       /* Its log write waits for resources, and all
                                               later requests wait for it. Owner:
                                               varuna_post.c */
    uint32_t                   fence_beat;  /* Of the requester, as of the last fence
                                               that a request has taken */
    uint32_t                   num_writes;  /* Puts, atomics and steps of atomics that were
                                               posted. Owner: varuna.inl */
    uint32_t                   num_settled; /* Of these, as many as are known to be in the
                                               peer's memory: they are fenced, or a read that
                                               was posted after them has returned. Owner:
                                               varuna_completion.c; varuna_verdict.c fences
                                               them */
    uint32_t                   num_reading; /* Of these, as many as the newest read of a
                                               flush follows. Owner: varuna_placed.c */
    struct uct_varuna_devices  *devices;    /* Writes to memory of devices, which the three
                                               above do not distinguish; NULL: none yet.
                                               Owner: varuna_device.c */

    struct {                                /* Owner: varuna_stat.c, which names the
                                               counters; each file counts its own */
        uint64_t               posted;
        uint64_t               slow;        /* Of these, while the gate was closed */
        uint64_t               logged, executed, lost, ambiguous;
        uint64_t               compared_equal, compared_different, undecided;
        uint64_t               repeated, repeated_bytes, switches, epochs;
        uint64_t               rebuilds;      /* RC connections swapped in */
        uint64_t               rebuild_usec;  /* How long they took, in all */
        uint64_t               rebuild_messages; /* On the bus, sent and received */
        uint64_t               rebuild_reads; /* That ended the old lane */
        uint64_t               moves;         /* Planned swaps to another link */
        uint64_t               recovery_usec; /* From detection to the gate, */
        uint64_t               drain_usec, fence_usec, repeat_usec; /* of which in these
                                                 states, */
        uint64_t               detect_usec;   /* and before it, how long the oldest
                                                 request had waited */
        uint64_t               fences_reset;  /* Dead lanes whose end RESET assured, and */
        uint64_t               fences_lifetime; /* those that waited for the lifetime of a
                                                 packet: why is counted by link */
        uint64_t               resumed;       /* Switches with requests under way */
        uint64_t               resume_usec;   /* From detection to the first
                                                 completion of the new lane */
    } stats;
    uct_varuna_ep_amo_t        amo;         /* Owner: amo/ */
    uint32_t                   id;
    uint32_t                   instance;    /* Distinguishes users of the same id */

    struct {                                /* The user's pending requests. Owner:
                                               varuna_pending.c */
        ucs_queue_head_t       queue;
        uct_pending_req_t      inner;       /* Ours, in the inner lane's queue */
        uint8_t                inner_queued;
        uint8_t                inner_called; /* The inner queue calls us */
        uint8_t                dispatching;
        uint8_t                ending;      /* The endpoint has failed: the messages of
                                               the wire-up hear of it */
    } pend;

    struct {                                /* The state machine. Owner:
                                               varuna_recovery.c */
        ucs_list_link_t        work;        /* In the requester's list of work */
        ucs_time_t             since;       /* When the state was entered, */
        ucs_time_t             clock;       /* and by the clock of the scan, which
                                               pauses while progress is not called */
        ucs_status_t           fail_status; /* Why FAILED; OK: flush(CANCEL) */
        uint8_t                on_work;
        uint8_t                reported;    /* The user knows of FAILED */
    } sm;

    struct {                                /* The peer's end of the vQP. Owner:
                                               varuna_ep_ctl.c */
        uint64_t               opening;     /* Of the target there, 0 before that */
        uint64_t               logs_addr;
        uct_rkey_bundle_t      log_bundle;  /* Unpacked key of the logs: an outer one */
    } remote;

    struct {                                /* The control request which is to be
                                               answered. Owner: varuna_ep_ctl.c */
        uct_varuna_retry_t     retry;       /* since: the peer has not answered since then,
                                               by the clock of the scan; 0: since the
                                               state was entered, as far as is known */
        uint32_t               num_lost;    /* Of the peer, when it was sent */
        uint8_t                hurried;     /* It was sent since the last one was lost */
        uint8_t                counted;     /* 1: in the peer's asking */
    } ask;

    struct {                                /* Owner: varuna_avoid.c */
        uct_varuna_backoff_t   backoff;
        uint16_t               generations[UCT_VARUNA_MAX_LINKS]; /* Of the peer's NICs: all
                                               keys that the endpoint and its requests have are
                                               of these */
        uint16_t               of_next;     /* Of the peer's NIC of next.lane */
        uint8_t                links;       /* Avoided until then, */
        uint8_t                refused;     /* as they have refused a request */
    } keyless;

    struct {                                /* Owner: varuna_lane.c */
        uint32_t               epoch;       /* Newest incarnation handed out */
        uint8_t                path_index;  /* Of the device's paths (LAG, LMC) */
        uint8_t                unsent;      /* Lanes in a row that have completed nothing,
                                               and whose NIC could not send */
        uint16_t               first_acked; /* acked_psn of the active one at first, the
                                               lower half */
    } lanes;

    struct {                                /* Connecting RC and swapping it in.
                                               Owner: varuna_rebuild.c */
        uct_varuna_lane_t      lane;        /* RC being connected, if ep != NULL */
        uct_varuna_retry_t     retry;       /* CONNECT_REQ; the next lane waits until
                                               it is due */
        uint8_t                proving;     /* The lane is connected, and its first
                                               write is posted or about to be */
        uint8_t                proof_posted;
        uint8_t                ready;       /* The lane is connected, and works */
        uint8_t                spare;       /* It is in reserve: no planned swap */
        uint8_t                failed;      /* It is destroyed in the next step */
        uint8_t                counted;     /* 1: in the peer's connecting */
        uint8_t                swap_posts;  /* On the old lane in state SWAP: the read
                                               that ends it, messages after it */
        uint8_t                tried;       /* Links on which no lane could be had, of an
                                               endpoint that has none */
    } next;

    struct {                                /* Owner: varuna_recovery.c; verdicts are
                                               counted by varuna_verdict.c */
        uct_varuna_lane_t      dead;        /* Failed, not destroyed yet */
        uint8_t                stuck   : 1; /* It did not come to rest by itself */
        uint8_t                running : 1; /* Its NIC did not stop its queue pair */
        uint8_t                order   : 2; /* uct_varuna_order_t of its writes: the link may be
                                               in another life when it is decided */
        uint8_t                from_link;
        uint8_t                from_kind;
        uint8_t                fenced;      /* uct_varuna_fenced_t of the last fence */
        uint8_t                unfenced;    /* The dead lane was left without one. Owner of
                                               this and the next three: varuna_verdict.c */
        uint8_t                unproven;    /* ... and the peer has shown no life since */
        uint8_t                left_kind;
        uct_ep_h               left;        /* A lane without a fence, or NULL: kept until
                                               the responder knows, so that nobody is given
                                               the number of its queue pair */
        ucs_time_t             fenced_at;   /* The responder's end is, since then */
        ucs_time_t             start;       /* 0: no recovery */
        ucs_time_t             noticed_at;  /* Of the failure, for resume_usec */
        uct_varuna_spent_t     spent;       /* By this recovery; owner: varuna_stat.c */
        const char             *reason;
        uct_varuna_plan_result_t result;
        unsigned               equal;       /* Of the ambiguous ones: executed, */
        unsigned               different;   /* and left to the user's policy */
    } recovery;

    /* Ambiguous requests, whose targets are read back. Owner: varuna_compare.c;
     * varuna_verdict.c wants it */
    struct {
        struct uct_varuna_window *window;   /* NULL: not begun */
        uct_varuna_req_t       *read;       /* In flight, not in reqs */
        uint8_t                wanted;      /* There are some */
        uint8_t                unordered;   /* Of the lane that failed */
    } compare;

    struct {                                /* Owner: varuna_lane.c */
        ucs_time_t             head_since;  /* The oldest request is the same since
                                               then, by the clock of the scan */
        ucs_time_t             since;       /* Nothing on the lane has completed
                                               since then, by the clock of the scan */
        ucs_time_t             asked_at;    /* First ping about it; 0: none */
        ucs_time_t             asked_clock; /* By the clock of the scan */
        ucs_time_t             due_at;      /* End of the timeout; 0: not yet */
        ucs_time_t             beat_since;  /* By the clock of the scan */
        uint32_t               beat;        /* Of the peer's application, then */
        uint16_t               mark;        /* Of the queue pair */
        uint8_t                beats;       /* Intervals in which it has moved on */
    } hang;

    struct {                                /* Owner: varuna_stat.c */
        uint64_t               settled;     /* Posted requests that the sum of a link
                                               contains already */
        UCS_STATS_NODE_DECLARE(node)
    } report;
};

#define UCT_VARUNA_EP_DECL(_tl_ep, _iface, _ep) \
    uct_varuna_ep_t *_ep       = ucs_derived_of(_tl_ep, uct_varuna_ep_t); \
    uct_varuna_iface_t *_iface = ucs_derived_of((_tl_ep)->iface, \
                                                uct_varuna_iface_t)

static inline uct_varuna_iface_t *uct_varuna_ep_iface(const uct_varuna_ep_t *ep)
{
    return ucs_derived_of(ep->super.super.iface, uct_varuna_iface_t);
}

static inline uct_varuna_requester_t *
uct_varuna_ep_requester(const uct_varuna_ep_t *ep)
{
    return ucs_derived_of(ep->super.super.iface, uct_varuna_requester_t);
}

/** The peer has answered, or its NIC has acknowledged something on the new lane. */
static inline void uct_varuna_ep_note_life(uct_varuna_ep_t *ep)
{
    ep->recovery.unproven = 0;
    ep->ask.retry.since   = 0;
}

/** Address of the ring of an incarnation. */
static inline uint64_t uct_varuna_ep_ring_addr(const uct_varuna_ep_t *ep,
                                               uint32_t epoch)
{
    return ep->remote.logs_addr + (uct_varuna_log_ring(epoch) *
                            UCT_VARUNA_LOG_SIZE * sizeof(uint64_t));
}

/* --- Creation and destruction --- */

/* varuna_ep_life.c. */

UCS_CLASS_DECLARE_NEW_FUNC(uct_varuna_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_varuna_ep_t, uct_ep_t);

/* --- Opening --- */

/* The state OPENING of a vQP. Main thread only. */

/** Take the first lane of a vQP that has a target, if there is any. */
void uct_varuna_ep_open_lane(uct_varuna_ep_t *ep, ucs_time_t now);

/** The step of this state. */
int uct_varuna_ep_step_opening(uct_varuna_ep_t *ep, ucs_time_t now);

/* --- Closing --- */

/* Repeats CLOSE for a destroyed endpoint, over one link after the other, until it is
 * answered. The link of the first CLOSE may have just failed, and without CLOSE the peer
 * would keep the target, its queue pair and its log rings. */

/**
 * Close the target of a vQP at @a peer. Any thread.
 *
 * @param [in] link   The first link to try.
 * @param [in] whose  The vQP, its instance and its opening. Opening 0: the answer to
 *                    OPEN_REQ has not come. The request may still be on its way, so
 *                    CLOSE waits for as long as a packet may take.
 */
void uct_varuna_farewell_say(uct_varuna_requester_t *requester,
                             uct_varuna_peer_t *peer, unsigned link,
                             const uct_varuna_ctl_hdr_t *whose);

/** CLOSE_REP has come. Lock held. */
void uct_varuna_farewell_answered(uct_varuna_requester_t *requester,
                                  const uct_varuna_ctl_hdr_t *hdr);

/** Start looking for what is not answered. Lock held. */
void uct_varuna_farewell_start(uct_varuna_requester_t *requester);

/** The interface is being closed: send what is not answered over all links once
 *  more, and forget it. Lock not held. */
void uct_varuna_farewells_end(uct_varuna_requester_t *requester);

/* --- Operations --- */

/* As UCT calls them. varuna_ep_ops.c. */

ucs_status_t uct_varuna_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                     unsigned length, uint64_t remote_addr,
                                     uct_rkey_t rkey);
ssize_t uct_varuna_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                                void *arg, uint64_t remote_addr,
                                uct_rkey_t rkey);
ucs_status_t uct_varuna_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_varuna_ep_get_bcopy(uct_ep_h tl_ep,
                                     uct_unpack_callback_t unpack_cb, void *arg,
                                     size_t length, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_varuna_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_varuna_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                                    const void *payload, unsigned length);
ucs_status_t uct_varuna_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id,
                                        const uct_iov_t *iov, size_t iovcnt);
ssize_t uct_varuna_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id,
                               uct_pack_callback_t pack_cb, void *arg,
                               unsigned flags);
ucs_status_t uct_varuna_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id,
                                    const void *header, unsigned header_length,
                                    const uct_iov_t *iov, size_t iovcnt,
                                    unsigned flags, uct_completion_t *comp);
ucs_status_t uct_varuna_ep_flush(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp);
ucs_status_t uct_varuna_ep_fence(uct_ep_h tl_ep, unsigned flags);
ucs_status_t uct_varuna_ep_check(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp);
ucs_status_t uct_varuna_ep_invalidate(uct_ep_h tl_ep);

/** @return whether the endpoint leads to the interface with this address. */
int uct_varuna_ep_is_connected(uct_ep_h tl_ep, const uct_iface_addr_t *addr);

/* --- Posting --- */

/* Posts a saved request on the active lane, with its log entry. The same code posts a
 * request for the first time and repeats it. varuna_post.c. */

/**
 * Post a saved request on the active lane, and then its log write.
 *
 * @param [in] signal  Ask for a completion even if the user wants none.
 *
 * @return UCS_OK if it is posted (its log write may still be owed, see
 *         uct_varuna_ep_post_owed_log()), UCS_ERR_NO_RESOURCE if nothing was
 *         posted, or the inner lane's error.
 */
ucs_status_t uct_varuna_req_post(uct_varuna_req_t *req, int signal);

/**
 * Post a read of ours that is not one of the endpoint's requests: its completion
 * finishes none of them, and what was posted silently stays so.
 *
 * @param [in] req  Its own completion is ready.
 *
 * @return As UCT's operations do.
 */
ucs_status_t uct_varuna_req_post_apart(uct_varuna_req_t *req);

/** Write a word that nobody reads: an error shows that the lane is dead. */
ucs_status_t uct_varuna_ep_post_probe(uct_varuna_ep_t *ep);

/** Post the newest log write which had no resources. @return nonzero if posted
 *  or no longer needed. */
int uct_varuna_ep_post_owed_log(uct_varuna_ep_t *ep);

/* --- Flushes --- */

/* Flushes, and the reads that place what was written: see uct_varuna_ep_is_placed(). A flush
 * of an endpoint that is away ends with a read, and so does each with
 * UCT_VARUNA_COMPAT_FLUSH_REMOTE. varuna_placed.c. */

/** Post such a read in any state that has a lane: when it is complete, all earlier writes
 *  are in memory. A queue pair executes a read after the writes before it, and its data does
 *  not pass theirs. @return UCS_OK if it is posted. */
ucs_status_t uct_varuna_ep_read_back(uct_varuna_ep_t *ep, uct_completion_t *comp);

/**
 * All that was posted on the lane before @a flush is complete or under way: if its writes have to
 * be placed, make a read of it.
 *
 * @return Whether the read is to be posted.
 */
int uct_varuna_req_pass_flush(uct_varuna_req_t *flush);

/** The same for memory of devices: post reads of all with writes that no read follows yet.
 *  @return UCS_OK if all are posted; UCS_ERR_NO_RESOURCE to be called again;
 *  UCS_ERR_EXCEEDS_LIMIT if only a fence proves anything, as there are too many devices. */
ucs_status_t uct_varuna_ep_read_devices(uct_varuna_ep_t *ep);

/**
 * The endpoint is active: begin to place what flushes with UCT_VARUNA_COMPAT_FLUSH_REMOTE, that
 * came before, wait for in memory of devices. The read that is made of them reads the host's.
 *
 * @return Nonzero to be called again.
 */
int uct_varuna_ep_place_repeated(uct_varuna_ep_t *ep);

/**
 * Complete @a comp, unless it is NULL, when all requests are complete, and placed as the flags
 * of the flush want.
 *
 * @return UCS_INPROGRESS, or UCS_ERR_NO_RESOURCE if the caller must try again.
 */
ucs_status_t uct_varuna_ep_queue_flush(uct_varuna_ep_t *ep, unsigned flags,
                                       uct_completion_t *comp);

/* --- Memory of devices --- */

/* What an endpoint has written to memory of the peer's devices (GPUs). Neither a log entry
 * nor a read of host memory proves that it has arrived there: data for a device goes another
 * way behind the peer's NIC. A read of the same device, over the same NIC, does, and so does a
 * fence, for which the peer reads each device (ucx/varuna_readback.c). varuna_device.c. */

typedef struct uct_varuna_devices uct_varuna_devices_t;

/** A write to a device was posted: num_writes counts it. */
void uct_varuna_device_note_write(uct_varuna_ep_t *ep, const uct_varuna_req_t *req);

/** A read of a device has returned. */
void uct_varuna_device_note_read(uct_varuna_ep_t *ep, const uct_varuna_req_t *req);

/** @return Whether all writes to devices up to number @a sn are known to be there. */
int uct_varuna_devices_are_placed_slow(const uct_varuna_ep_t *ep, uint32_t sn);

/** The same. Few endpoints write to devices. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_devices_are_placed(const uct_varuna_ep_t *ep, uint32_t sn)
{
    return ucs_likely(ep->devices == NULL) || uct_varuna_devices_are_placed_slow(ep, sn);
}

/** Make a GET_BCOPY of @a req that reads a device with writes that no read follows yet.
 *  @return UCS_ERR_NO_ELEM if there is none; UCS_ERR_EXCEEDS_LIMIT if only a fence proves
 *  anything, as there are too many devices. */
ucs_status_t uct_varuna_devices_make_read(uct_varuna_ep_t *ep, uct_varuna_req_t *req);

/** It was posted. */
void uct_varuna_devices_read_posted(uct_varuna_ep_t *ep, const uct_varuna_req_t *req);

/** Nothing of the lanes before is under way any more: they were fenced. Reads of ours need not
 *  be repeated. */
void uct_varuna_devices_settle(uct_varuna_ep_t *ep);

/** @return Whether a read of ours is under way. It may fail because the peer has deregistered
 *  what the user has long written, and that is no fault of the user's. */
int uct_varuna_devices_are_read(const uct_varuna_ep_t *ep);

/** Keys for this NIC of the peer are of an earlier generation. */
void uct_varuna_devices_forget_keys(uct_varuna_ep_t *ep, unsigned nic);

/** The endpoint ends. */
void uct_varuna_devices_release(uct_varuna_ep_t *ep);

/* --- Keys that are completed --- */

/* Keys that were packed before a NIC of the peer was reset have nothing for it. The peer is asked
 * by KEY_REQ, which names the region by the token in its key. varuna_key.c.
 *
 *   the peer's address shows the NIC --> the key of the logs --> what requests use for a while
 *                                                                      |
 *                        the link is used, but for requests without <--+
 *
 * Answers are kept here, and added to the user's key when that is used next. Several threads may
 * use a key at the same time: each of them sees it with the number or without it
 * (md/varuna_md.h). A request whose key lacks such a NIC takes the slow path of posting, on any
 * lane: the gate is closed for it. */

void uct_varuna_keys_init(uct_varuna_requester_t *requester);

void uct_varuna_keys_cleanup(uct_varuna_requester_t *requester);

/** Now and then: ask for the key of the peer's log, if there is none for a NIC that was reset. */
void uct_varuna_ep_complete_logs(uct_varuna_ep_t *ep, ucs_time_t now);

/** A request has taken the user's key: drop what is of other generations than the peer's NICs. */
void uct_varuna_req_check_key(uct_varuna_req_t *req, const uct_varuna_rkey_t *rkey);

/** Give the requests that wait what is known of their keys, and ask for what is not.
 *  @return Whether one of them was given something. */
int uct_varuna_ep_learn_keys(uct_varuna_ep_t *ep);

/**
 * Before a request is posted that may be the first to use its key: find out what the key lacks.
 *
 * @return Whether it can be posted. If not, its lane is left.
 */
int uct_varuna_req_complete_key(uct_varuna_req_t *req);

/**
 * Add what the peer has answered to a key of the user.
 *
 * @return Whether it has something for all NICs of the peer that were reset.
 */
int uct_varuna_ep_complete_rkey(uct_varuna_ep_t *ep, uct_rkey_t rkey);

/** KEY_REP has come. */
void uct_varuna_ep_handle_key_rep(uct_varuna_ep_t *ep, const uct_varuna_ctl_key_rep_t *rep);

#endif
