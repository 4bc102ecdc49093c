/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The vQP: one rc_varuna endpoint. Posts on one lane at a time, remembers
 * what is unfinished, and is moved to another lane by varuna_recovery.c.
 */
#ifndef UCT_VARUNA_EP_H_
#define UCT_VARUNA_EP_H_

#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include "varuna_requester.h"
#include <uct/ib/varuna/core/varuna_oplog.h>
#include <uct/ib/varuna/core/varuna_plan.h>
#include <uct/ib/varuna/core/varuna_slots.h>

#include <ucs/datastruct/queue.h>

/* Short payloads are copied into the request; the inner lanes' inline limits
 * are below this (asserted when the interface opens). */
#define UCT_VARUNA_MAX_INLINE        256
#define UCT_VARUNA_MAX_IOV           8
#define UCT_VARUNA_MAX_HDR           160

/*
 *               OPEN_REP              RC connected, old lane empty
 *   OPENING ---------------> ACTIVE <-------------------- SWAP
 *                             |   +-------------------------^
 *                     failure |            (planned change)
 *                             v
 *            DRAIN -> FENCE -> REPEAT -> ACTIVE     (any failure: next epoch)
 *              ^        |        |
 *              +--------+--------+---- FAILED (no link left for give_up)
 */
typedef enum {
    UCT_VARUNA_EP_OPENING,   /* Waits for the target and its logs, takes some
                                requests meanwhile */
    UCT_VARUNA_EP_ACTIVE,    /* Posts on its lane */
    UCT_VARUNA_EP_SWAP,      /* Planned change: waits for the lane to be empty,
                                takes requests for the new one */
    UCT_VARUNA_EP_DRAIN,     /* Lane in ERR: waits for its flush to end */
    UCT_VARUNA_EP_FENCE,     /* Waits for the responder's fence and evidence */
    UCT_VARUNA_EP_REPEAT,    /* Posts the lost ones again */
    UCT_VARUNA_EP_FAILED,    /* Terminal; reported to the user */
    UCT_VARUNA_EP_STATE_LAST
} uct_varuna_ep_state_t;

extern const char *uct_varuna_ep_state_names[];

/* What kind of inner call posts (and posts again) the request. */
typedef enum {
    UCT_VARUNA_REQ_PUT_SHORT,
    UCT_VARUNA_REQ_PUT_ZCOPY,   /* bcopy too: from its registered buffer */
    UCT_VARUNA_REQ_GET_BCOPY,
    UCT_VARUNA_REQ_GET_ZCOPY,
    UCT_VARUNA_REQ_AM_SHORT,
    UCT_VARUNA_REQ_AM_ZCOPY,    /* bcopy too */
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
    UCT_VARUNA_REQ_FLAG_AMBIGUOUS = UCS_BIT(5), /* Nobody knows whether it was
                                                  executed: to be compared */
    UCT_VARUNA_REQ_FLAG_ERROR    = UCS_BIT(6), /* Only for a mutation */
    UCT_VARUNA_REQ_FLAG_WATCHED  = UCS_BIT(7), /* Was the oldest before */
    UCT_VARUNA_REQ_FLAG_LOST     = UCS_BIT(8), /* AMO_xx: left to its atomic */
    UCT_VARUNA_REQ_FLAG_FIRST    = UCS_BIT(9)  /* Its completion is the first of
                                                  the new lane */
};

/* The saved request: all that a repeat needs. */
struct uct_varuna_req {
    uct_completion_t           comp;      /* Ours, given to the inner lane */
    ucs_queue_elem_t           queue;     /* In ep->reqs, posting order */
    uct_varuna_ep_t            *ep;
    uct_completion_t           *user_comp;
    uint64_t                   remote_addr;
    uct_rkey_t                 rkey;      /* Outer */
    uint32_t                   log_sn;
    uint32_t                   end_psn;
    uint32_t                   length;    /* Total payload */
    uint16_t                   flags;     /* UCT_VARUNA_REQ_FLAG_xx */
    uint8_t                    type;
    uint8_t                    opcode;    /* Atomic; AM: uct_msg_flags */
    uint8_t                    iovcnt;
    uint8_t                    header_length;
    void                       *bcopy;    /* From uct_varuna_requester(iface)->bcopy_mp, or NULL */
    union {
        struct {
            uct_varuna_am_hdr_t hdr;
        } am;
        struct {
            uct_unpack_callback_t cb;
            void               *arg;
        } get;
        struct {
            uint64_t           value;
            uint64_t           compare;
            void               *result;
            uct_varuna_amo_t   *amo;       /* AMO_xx */
        } atomic;
    };
    uct_iov_t                  iov[UCT_VARUNA_MAX_IOV]; /* Outer handles */
    uint8_t                    data[UCT_VARUNA_MAX_INLINE];
};

/* The peer's arena: where it is, and keys for what we do there. */
typedef struct uct_varuna_ep_arena {
    uint64_t                   slots_addr;
    uint64_t                   marks_addr;
    uint32_t                   num_slots; /* 0: there is none */
    uct_rkey_bundle_t          read;      /* All bodies */
    uct_rkey_bundle_t          mark;      /* All marks */
    uct_rkey_bundle_t          write;     /* Bodies of our slots, if we have any */
} uct_varuna_ep_arena_t;

/* Atomics of a vQP, see varuna_amo.c. */
typedef struct uct_varuna_ep_amo {
    unsigned                   num;        /* Unfinished */
    unsigned                   undecided;  /* Of these, no result yet */
    unsigned                   fences;     /* Of these, with a fence before them
                                              that they have not passed yet */
    ucs_list_link_t            all;        /* uct_varuna_amo_t, by age */
    ucs_list_link_t            ready;      /* Those with an action to be posted */
    ucs_queue_head_t           flushes;    /* FLUSH requests behind them */
    uint32_t                   sn;
    uct_varuna_ep_arena_t      arena;
    uint32_t                   random;     /* For the back-off */
    uct_varuna_slots_t         slots;     /* Ours in the arena */
    uint8_t                    home_nic;
    uint8_t                    mode;       /* Of the peer */
    uint32_t                   home_epoch;
    /* The access which is with the peer's proxy; one at a time */
    uct_varuna_amo_t           *proxied;
    uint64_t                   proxy_seq;
    ucs_time_t                 proxy_sent;
    ucs_time_t                 proxy_since;
    uint8_t                    proxy_link;
    struct {
        uint64_t               started, helped, recovered, proxied, retries,
                               backoffs;
    } stats;
} uct_varuna_ep_amo_t;

/* One physical lane of a vQP. */
typedef struct uct_varuna_lane {
    uct_ep_h                   ep;         /* Inner endpoint, NULL: none */
    uint32_t                   epoch;      /* Incarnation, from 1 */
    uint32_t                   link_gen;   /* Link generation when made */
    uint32_t                   path_gen;   /* Path generation when made */
    uint32_t                   psn;        /* Next PSN to be posted (RC) */
    uint32_t                   mtu;        /* Bytes; 0: PSN is not known */
    uint8_t                    link;       /* Local link index */
    uint8_t                    kind;       /* uct_varuna_lane_kind_t */
} uct_varuna_lane_t;

/* Count packets which were posted on the lane. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_lane_advance_psn(uct_varuna_lane_t *lane, uint32_t num_psns)
{
    lane->psn = (lane->psn + num_psns) & UCS_MASK(24);
}

struct uct_varuna_ep {
    uct_base_ep_t              super;
    /* Hot: one cache line or two */
    uct_varuna_ep_state_t      state;
    uct_varuna_lane_t          lane;       /* The active one */
    uint32_t                   am_seq;
    uint32_t                   target;
    uint32_t                   fence_beat;
    uint16_t                   silent;     /* Posted since the last signal */
    uint8_t                    fence_next; /* The next request is fenced */
    uct_varuna_req_t           *owed;      /* Its log write waits for resources:
                                              nothing may pass it */
    uct_varuna_req_t           *last_silent; /* Newest of them */
    unsigned                   num_reqs;
    unsigned                   num_reads;  /* Of these, reads */
    ucs_queue_head_t           reqs;       /* Unfinished, posting order */
    uct_varuna_oplog_t         oplog;
    uint64_t                   log_addr;   /* Of the active incarnation's ring */
    uct_rkey_t                 log_rkey;   /* Outer */

    uct_varuna_ep_amo_t        amo;

    uint32_t                   id;
    uint32_t                   instance;   /* Tells users of the id apart */
    uint64_t                   opening;    /* Of the target there, 0 before that */
    uint32_t                   epoch;      /* Newest incarnation handed out */
    uct_varuna_peer_t          *peer;
    uct_rkey_bundle_t          log_bundle; /* Unpacked key of the logs */
    uint64_t                   logs_addr;
    uct_varuna_lane_t          next;       /* RC being connected, ep != NULL */
    uint8_t                    next_ready; /* ... and connected */
    uint8_t                    next_spare; /* In reserve: no planned swap */
    uct_varuna_lane_t          dead;       /* Failed, not yet destroyed */
    uint8_t                    stuck;      /* ... and not at rest itself */
    ucs_time_t                 fenced_at;  /* Then: the responder's end is */
    ucs_queue_head_t           pending;    /* User's pending requests */
    uct_pending_req_t          inner_pend; /* Ours, in the inner queue */
    uint8_t                    inner_pend_queued;
    uint8_t                    inner_pend_called; /* The inner queue calls us */
    uint8_t                    on_work;
    uint8_t                    dispatching;
    uint8_t                    want_signal; /* Somebody waits for the silent */
    uint8_t                    reported;    /* The user knows of FAILED */
    uint8_t                    path_index;  /* Of those of the device (LAG, LMC) */
    ucs_list_link_t            work;       /* In uct_varuna_requester(iface)->work */
    ucs_time_t                 ctl_sent;   /* Last control request */
    ucs_time_t                 state_since;
    ucs_time_t                 state_clock; /* By the watch's clock: stands still
                                              while nobody calls progress */
    ucs_time_t                 next_since; /* RC was asked for */
    ucs_time_t                 next_try;   /* Of background RC connection */
    struct {
        ucs_time_t             since;      /* The oldest request is the same
                                              since then, by the watch's clock */
    } watch;
    struct {                               /* See varuna_hang.c */
        ucs_time_t             since;      /* Nothing on the lane has completed
                                              since then, by the watch's clock */
        ucs_time_t             asked_at;   /* First ping about it; 0: none */
        ucs_time_t             asked_clock;/* ... by the watch's clock */
        ucs_time_t             due_at;     /* The timeout was over; 0: not yet */
        ucs_time_t             beat_since; /* Watch's clock */
        uint32_t               beat;       /* Of the peer's application, then */
        uint16_t               mark;       /* Of the queue pair */
        uint8_t                beats;      /* Intervals in which it has moved on */
    } hang;
    uint8_t                    ctl_link;   /* Where it was sent */
    uint8_t                    swap_read;  /* The flushing read was posted */
    uint8_t                    connect_tries; /* Unanswered CONNECT_REQs */
    uint8_t                    next_failed;/* Destroy it in the next step */
    uint8_t                    asking;     /* 1: counted in peer->asking */
    uint8_t                    connecting; /* 1: counted in peer->connecting */
#ifdef UCT_VARUNA_MUTATIONS
    uint8_t                    old_error;
    uint16_t                   leaks;      /* Steps in which the gate is open */
#endif
    ucs_status_t               fail_status;/* Why FAILED; OK: flush(CANCEL) */
    struct {
        ucs_time_t             start;
        uint8_t                from_link;
        uint8_t                from_kind;
        const char             *reason;
        uct_varuna_plan_result_t result;
        unsigned               equal;      /* Of the ambiguous ones: executed, */
        unsigned               different;  /* and left to the user's policy */
    } recovery;
    /* The ambiguous request whose target is read back. There is one at most:
     * nothing is posted behind an operation whose log write is not */
    struct {
        uct_varuna_req_t       *req;       /* NULL: none was begun */
        uct_varuna_req_t       *read;      /* In flight, not in reqs */
        size_t                 offset;     /* Equal so far */
        uint8_t                differs;
    } compare;
    struct {
        uint64_t               posted, logged, executed, lost, ambiguous;
        uint64_t               compared_equal, compared_different;
        uint64_t               repeated, repeated_bytes, switches, epochs;
        uint64_t               rebuilds;      /* RC connections swapped in */
        uint64_t               rebuild_usec;  /* How long they took, in all */
        uint64_t               recovery_usec; /* From detection to the gate */
        uint64_t               resumed;       /* Switches with requests under way */
        uint64_t               resume_usec;   /* From detection to the first
                                                 completion of the new lane */
    } stats;
    UCS_STATS_NODE_DECLARE(stats_node)
    uint64_t                   settled;    /* Posted ones which are in the sum of a
                                              link already */
    ucs_time_t                 noticed_at; /* ... of the failure, for resume_usec */
};

UCS_CLASS_DECLARE_NEW_FUNC(uct_varuna_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_varuna_ep_t, uct_ep_t);

/** @return The endpoint with this vQP id, NULL if it is gone. */
uct_varuna_ep_t *uct_varuna_ep_find(uct_varuna_iface_t *iface, uint32_t id);

#endif
