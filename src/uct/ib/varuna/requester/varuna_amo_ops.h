/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What an endpoint keeps of its atomics, and how the requester calls them: one table
 * for each mode (docs/ATOMICS.md). The implementations are in amo/, which uses the
 * requester; no other code asks which mode it is. Main thread only.
 */
#ifndef UCT_VARUNA_AMO_OPS_H_
#define UCT_VARUNA_AMO_OPS_H_

#include <uct/ib/varuna/core/varuna_uid.h>
#include <uct/ib/varuna/core/varuna_wire.h>
#include <uct/ib/varuna/ctl/varuna_retry.h>

#include <uct/api/uct.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/queue.h>
#include <ucs/time/time.h>

/** A new atomic, as UCT's user asked for it */
typedef struct uct_varuna_amo_args {
    uint8_t                    type;      /* uct_varuna_req_type_t */
    uint8_t                    op;        /* uct_atomic_op_t */
    uint8_t                    width;     /* Bytes of the target, 4 or 8 */
    uint64_t                   compare;
    uint64_t                   value;
    uint64_t                   remote_addr;
    uct_rkey_t                 rkey;
    void                       *result;   /* Where the old value goes, or NULL */
    uct_unpack_callback_t      unpack;    /* GET_BCOPY: called with it instead */
    void                       *unpack_arg;
    uct_completion_t           *comp;     /* NULL: none */
} uct_varuna_amo_args_t;

/** One mode of atomics */
typedef struct uct_varuna_amo_ops {
    /** Take an atomic. @return As UCT's operations do. */
    ucs_status_t               (*start)(uct_varuna_ep_t *ep,
                                        const uct_varuna_amo_args_t *args);

    /** Take a read of one aligned word (GET_xx) whose value in memory is not its value.
     *  NULL: there are none. @return As UCT's operations do; UCS_ERR_UNSUPPORTED to read
     *  it as any other memory. */
    ucs_status_t               (*get)(uct_varuna_ep_t *ep,
                                      const uct_varuna_amo_args_t *args);

    /** The peer has opened the endpoint. */
    ucs_status_t               (*open)(uct_varuna_ep_t *ep,
                                       const uct_varuna_ctl_open_rep_t *rep);

    /** Release what open() has taken, if it was called. */
    void                       (*close)(uct_varuna_ep_t *ep);

    /** The peer has named its home NIC. */
    void                       (*learn_home)(uct_varuna_ep_t *ep, uint8_t nic,
                                             uint32_t epoch);

    /** Post what can be posted. @return Nonzero if some atomics wait for something
     *  without an event, so the endpoint must stay in the list of work. */
    int                        (*progress)(uct_varuna_ep_t *ep);

    /** A request of type AMO_xx is finished: take its result. */
    void                       (*collect)(const uct_varuna_req_t *req);

    /** The peer has executed a native atomic whose result was lost with the lane.
     *  @return UCS_OK if it is done, UCS_INPROGRESS if the request is posted again, as
     *          what it is now; otherwise the endpoint fails. */
    ucs_status_t               (*executed)(uct_varuna_ep_t *ep,
                                           uct_varuna_req_t *req);

    /** The endpoint failed, or is destroyed: finish all atomics with @a status. Their
     *  requests are finished already. */
    void                       (*fail_all)(uct_varuna_ep_t *ep,
                                           ucs_status_t status);

    /** Change what the lanes offer to what the mode offers. */
    void                       (*query)(uct_iface_attr_t *attr);

    /** The peer has a home NIC: atomics find what came to it before, and a flush must
     *  place what came to another one (varuna_placed.h). */
    int                        has_home;
} uct_varuna_amo_ops_t;

/* The peer's arena: where it is, and keys for what we do there. */
typedef struct uct_varuna_ep_arena {
    uint64_t                   slots_addr;
    uint64_t                   marks_addr;
    uint64_t                   own_addr;    /* By which the key to write names the first of
                                               our slots */
    uint32_t                   num_slots; /* 0: there is none */
    uct_rkey_bundle_t          read;      /* All bodies */
    uct_rkey_bundle_t          mark;      /* All marks */
    uct_rkey_bundle_t          write;     /* Bodies of our slots, if we have any */
} uct_varuna_ep_arena_t;

/* Classes of targets */
#define UCT_VARUNA_AMO_WORDS         8

/* Atomics of a vQP, see varuna_amo.c. */
typedef struct uct_varuna_ep_amo {
    unsigned                   undecided;  /* Of the unfinished, no result yet */
    unsigned                   fences;     /* Of these, with a fence before them
                                              that they have not passed yet */
    ucs_list_link_t            all;        /* uct_varuna_amo_t, by age */
    ucs_list_link_t            ready;      /* Those with an action to be posted */
    ucs_queue_head_t           flushes;    /* FLUSH requests after them */
    uint32_t                   sn;
    uint32_t                   random;     /* For the back-off */
    uint8_t                    words[UCT_VARUNA_AMO_WORDS]; /* Unfinished, by target */
    uct_varuna_ep_arena_t      arena;
    uct_varuna_slots_t         slots;     /* Ours in the arena */
    uint8_t                    home_nic;   /* Of the peer */
    uint8_t                    mode;       /* Of the peer */
    /* Mode proxy */
    uint8_t                    holding;    /* New ones wait for each other */
    uint8_t                    num_sent;   /* Not answered yet */
    uint32_t                   home_epoch;
    /* Mode extended: the access which is with the peer's home NIC; one at a time */
    uct_varuna_amo_t           *at_home;
    uint64_t                   seq;        /* Newest number given */
    uct_varuna_retry_t         retry;      /* Of what is with the peer */
    uint32_t                   retry_epoch; /* Of the lane, when it was asked */
    struct {                               /* Counts of posted requests: */
        uint64_t               flushed;    /* those after a flush or a fence, */
        uint64_t               reading;    /* after a read under way, 0: none, */
        uint64_t               placed;     /* and those in memory for certain */
        uint32_t               flush_beat; /* Of the requester, last seen */
    } order;
    struct {
        uint64_t               started, helped, recovered, proxied, retries,
                               backoffs;
    } stats;
} uct_varuna_ep_amo_t;

/** Initialize what belongs to atomics in an endpoint. */
static inline void uct_varuna_ep_amo_init(uct_varuna_ep_amo_t *amo)
{
    amo->random   = (uint32_t)ucs_get_time();
    amo->home_nic = UCT_VARUNA_HOME_NONE;
    ucs_list_head_init(&amo->all);
    ucs_list_head_init(&amo->ready);
    ucs_queue_head_init(&amo->flushes);
}

#endif
