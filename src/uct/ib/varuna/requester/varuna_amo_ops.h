/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What an endpoint keeps of its atomics, and how the requester calls them: one table
 * for each mode (docs/ATOMICS.md). The implementations are in amo/ and extended/, which use
 * the requester; no other code asks which mode it is. Main thread only.
 */
#ifndef UCT_VARUNA_AMO_OPS_H_
#define UCT_VARUNA_AMO_OPS_H_

#include <uct/ib/varuna/core/varuna_wire.h>
#include <uct/ib/varuna/ctl/varuna_retry.h>

#include <uct/api/uct.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/queue.h>

/** A new atomic, as UCT's user asked for it */
typedef struct uct_varuna_amo_args {
    uint8_t                    type;      /* uct_varuna_req_type_t */
    uint8_t                    op;        /* uct_atomic_op_t */
    uint8_t                    width;     /* Bytes of the target: 4 or 8; of a read, 1 to 8 */
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

    /** Take a read (GET_xx) of at most get_max bytes whose value in memory may not be theirs. NULL:
     *  there is none, and get_max is 0. @return As UCT's operations do; UCS_ERR_UNSUPPORTED to read it as any other
     *  memory. */
    ucs_status_t               (*get)(uct_varuna_ep_t *ep,
                                      const uct_varuna_amo_args_t *args);
    size_t                     get_max;

    /** A new endpoint: initialize part. NULL: there is none. */
    void                       (*init)(uct_varuna_ep_t *ep);

    /** Register the handlers of the peers' answers. NULL: there are none. */
    void                       (*listen)(uct_varuna_requester_t *requester);

    /** The peer has opened the endpoint. */
    ucs_status_t               (*open)(uct_varuna_ep_t *ep,
                                       const uct_varuna_ctl_open_rep_t *rep);

    /** Release what open() has taken, if it was called. */
    void                       (*close)(uct_varuna_ep_t *ep);

    /** The peer has named its home NIC. */
    void                       (*learn_home)(uct_varuna_ep_t *ep, uint8_t nic,
                                             uint32_t epoch);

    /** @return Whether atomics may not find what came over the lane in use, so that a flush
     *  must place it (varuna_ep.h). NULL: never. */
    int                        (*is_away)(uct_varuna_ep_t *ep);

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

    size_t                     size;      /* Bytes of an atomic */
} uct_varuna_amo_ops_t;

/* Words of 8 bytes of a mode's own part of an endpoint */
#define UCT_VARUNA_EP_AMO_PART       52

/* Atomics of a vQP */
typedef struct uct_varuna_ep_amo {
    unsigned                   undecided;  /* Of the unfinished, no result yet */
    unsigned                   fences;     /* Of these, with a fence before them
                                              that they have not passed yet */
    ucs_list_link_t            all;        /* uct_varuna_amo_t, by age */
    ucs_list_link_t            ready;      /* Those with an action to be posted */
    ucs_queue_head_t           flushes;    /* FLUSH requests after them */
    uint32_t                   sn;
    uint8_t                    is_away;    /* As of the lane in use. Owner: varuna_lane.c */
    uint64_t                   flushed;    /* Posted requests before the last flush or fence */
    uct_varuna_retry_t         retry;      /* Of what is with the peer */
    uint32_t                   retry_epoch; /* Of the lane, when it was asked */
    struct {
        uint64_t               started, helped, recovered, proxied, retries,
                               backoffs;
    } stats;
    uint64_t                   part[UCT_VARUNA_EP_AMO_PART]; /* Only the mode knows its type */
} uct_varuna_ep_amo_t;

/** Initialize what all modes have in an endpoint. */
static inline void uct_varuna_ep_amo_init(uct_varuna_ep_amo_t *amo)
{
    ucs_list_head_init(&amo->all);
    ucs_list_head_init(&amo->ready);
    ucs_queue_head_init(&amo->flushes);
}

#endif
