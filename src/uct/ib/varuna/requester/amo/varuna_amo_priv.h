/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An atomic as its driver keeps it, and the functions that the driver's files share:
 * varuna_amo.c accepts, paces and finishes atomics, varuna_amo_lane.c and
 * varuna_amo_pair.inl post their actions on the lane, varuna_amo_home.c sends them to the
 * peer's home NIC.
 */
#ifndef UCT_VARUNA_AMO_PRIV_H_
#define UCT_VARUNA_AMO_PRIV_H_

#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/requester/varuna_ep_event.h>
#include <uct/ib/varuna/requester/varuna_lane.h>
#include <uct/ib/varuna/core/varuna_amo_sm.h>
#include <uct/ib/varuna/md/varuna_rkey.h>
#include <uct/ib/varuna/requester/varuna_ep.h>

struct uct_varuna_amo {
    uct_completion_t           comp;      /* Of the action on the lane */
    ucs_list_link_t            all;       /* In ep->amo.all */
    ucs_list_link_t            ready;     /* In ep->amo.ready, if is_ready */
    uct_varuna_ep_t            *ep;
    uct_completion_t           *user_comp;
    void                       *result;
    uct_unpack_callback_t      unpack;    /* A read: takes the result */
    void                       *unpack_arg;
    uct_varuna_rkey_t          key;       /* The user may release its own */
    uint32_t                   sn;
    uint8_t                    is_ready;
    uint8_t                    is_told;   /* The user has the result */
    uint8_t                    fence;     /* It waits for requests before its fence,
                                             and so do all later atomics */
    uint8_t                    lost;      /* The lane failed with its action */
    uint8_t                    begun;     /* Its first action may be posted */
    uint8_t                    is_get;    /* A user's GET: it changes no target */
    uint64_t                   number;    /* Mode proxy: 0 until it is sent */
    uint64_t                   order;     /* ... requests before it that must be in
                                             memory, see ep->amo.order */
    uint32_t                   races;     /* Lost ones, when last looked at */
    ucs_time_t                 not_before; /* Backs off until then, or 0 */
    uint64_t                   value;     /* What the action gave */
    uct_varuna_slot_t          slot;      /* READ_BODY: what is there */
    uct_varuna_amo_sm_t        sm;
};

/** The slow part of uct_varuna_amo_take_slot(): a slot comes to a new half. */
uint32_t uct_varuna_amo_take_slot_timed(uct_varuna_amo_t *amo, uint64_t *gen_p);

/** Take a slot for it. @return 0 if there is none: it waits, and never fails. */
static UCS_F_ALWAYS_INLINE int uct_varuna_amo_take_slot(uct_varuna_amo_t *amo)
{
    uint64_t gen;
    uint32_t slot;

    slot = uct_varuna_slots_take(&amo->ep->amo.slots, &gen);
    if (ucs_unlikely(slot == UCT_VARUNA_SLOT_NONE) &&
        uct_varuna_slots_wait_for_time(&amo->ep->amo.slots)) {
        slot = uct_varuna_amo_take_slot_timed(amo, &gen);
    }

    if (ucs_unlikely(slot == UCT_VARUNA_SLOT_NONE)) {
        return 0;
    }

    uct_varuna_amo_sm_set_slot(&amo->sm, slot, gen);
    return 1;
}

/** Return the slot, if it has one. Rule 7: its owner returns it when the state machine has
 *  finished. */
static UCS_F_ALWAYS_INLINE void uct_varuna_amo_give_slot(uct_varuna_amo_t *amo)
{
    if (amo->sm.flags & UCT_VARUNA_AMO_FLAG_SLOT) {
        uct_varuna_slots_give(&amo->ep->amo.slots, amo->sm.slot, amo->sm.gen);
        amo->sm.flags &= ~UCT_VARUNA_AMO_FLAG_SLOT;
    }
}

/** Complete the flushes that no unfinished atomic precedes any more, with @a status, or move
 *  them behind the requests on the lane. Rule 9: a flush covers the confirms of all atomics
 *  before it. */
void uct_varuna_amo_finish_flushes(uct_varuna_ep_t *ep, ucs_status_t status);

/** Try flushes again for which there was no memory. @return Whether there is still none. */
int uct_varuna_amo_retry_flushes(uct_varuna_ep_t *ep);

/** @return Nonzero if an action on a word may go on the lane in use. Rule 12: it needs the
 *  home NIC, and an OCCUPY needs a lane that can be fenced. So atomics are requests on
 *  DC too. */
static inline int uct_varuna_amo_lane_is_home(const uct_varuna_ep_t *ep)
{
    return (ep->amo.slots.num > 0) && (ep->lane.kind == UCT_VARUNA_LANE_RC) &&
           (ep->peer->links[ep->lane.link].nic == ep->amo.home_nic);
}

/** @return Whether the lane takes the requests of an action now, and why not. */
static inline uct_varuna_post_t
uct_varuna_amo_lane_check(const uct_varuna_iface_t *iface, const uct_varuna_ep_t *ep)
{
    if (ucs_unlikely(ep->hot.state != UCT_VARUNA_EP_ACTIVE)) {
        return UCT_VARUNA_POST_STATE;
    }

    if (ucs_unlikely((ep->owed != NULL) ||
                     (ep->hot.num_reqs + 2 > UCT_VARUNA_MAX_REQS))) {
        return UCT_VARUNA_POST_FULL;
    }

    return ucs_unlikely(uct_varuna_ep_lane_is_stale(iface, ep)) ?
           UCT_VARUNA_POST_LANE_FAILED : UCT_VARUNA_POST_OK;
}

/**
 * Post the action on the lane, with a slot if it needs one.
 *
 * @return UCS_OK, UCS_ERR_NO_RESOURCE if the lane takes no more, UCS_ERR_BUSY if
 *         no slot is free; otherwise the lane failed.
 */
ucs_status_t uct_varuna_amo_post_lane(uct_varuna_iface_t *iface,
                                      uct_varuna_amo_t *amo);

/**
 * Send the action to the home NIC, or the whole atomic if it has not begun.
 *
 * @return UCS_OK, or UCS_ERR_BUSY if it has another one of this endpoint.
 */
ucs_status_t uct_varuna_amo_post_home(uct_varuna_iface_t *iface,
                                      uct_varuna_amo_t *amo);

/** Ask the home NIC again, if it is time. */
void uct_varuna_amo_check_home(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep);

/** The state machine has the result of its action: continue with the next one. */
void uct_varuna_amo_advance(uct_varuna_amo_t *amo);

/** Completion of an action on the lane. */
void uct_varuna_amo_step_completion(uct_completion_t *comp);

/** Completion of a saved request that is all of an action: the lane's, instead of
 *  uct_varuna_req_completion(). */
void uct_varuna_amo_pair_completion(uct_completion_t *comp);

/** It has passed its fence, and others may follow; or it has failed. */
static inline void uct_varuna_amo_pass_fence(uct_varuna_amo_t *amo)
{
    amo->ep->amo.fences -= amo->fence;
    amo->fence           = 0;
}

/** The peer has refused to execute it, and nothing else fails: the user gets @a status.
 *  If nobody waits for it, the endpoint fails. */
void uct_varuna_amo_refused(uct_varuna_amo_t *amo, ucs_status_t status);

/** A request to the peer begins. */
void uct_varuna_amo_retry_start(uct_varuna_ep_t *ep);

/** It is sent. @return The link: the best one at first, then one after the other. */
unsigned uct_varuna_amo_retry_next(uct_varuna_ep_t *ep);

/** @return Whether it is to be sent again. The endpoint fails if the peer has not
 *  answered for too long. */
int uct_varuna_amo_retry_is_due(uct_varuna_ep_t *ep);

/* --- Modes --- */

/* The tables of the modes of atomics, one file each, and what modes without a driver of
 * their own have in common. varuna_atomics.c chooses. */

extern const uct_varuna_amo_ops_t uct_varuna_amo_native_ops;
extern const uct_varuna_amo_ops_t uct_varuna_amo_reread_ops;
extern const uct_varuna_amo_ops_t uct_varuna_amo_cpu_ops;
extern const uct_varuna_amo_ops_t uct_varuna_amo_extended_ops;

/** Post the atomic as a request on the lane. */
ucs_status_t uct_varuna_amo_native_start(uct_varuna_ep_t *ep,
                                         const uct_varuna_amo_args_t *args);

/** The result of an atomic is lost: the endpoint fails. */
ucs_status_t uct_varuna_amo_native_executed(uct_varuna_ep_t *ep,
                                            uct_varuna_req_t *req);

/* A native atomic is a request like any other: there is nothing else to do. */
ucs_status_t uct_varuna_amo_native_open(uct_varuna_ep_t *ep,
                                        const uct_varuna_ctl_open_rep_t *rep);
void uct_varuna_amo_native_close(uct_varuna_ep_t *ep);
void uct_varuna_amo_native_learn_home(uct_varuna_ep_t *ep, uint8_t nic,
                                      uint32_t epoch);
int uct_varuna_amo_native_progress(uct_varuna_ep_t *ep);
void uct_varuna_amo_native_collect(const uct_varuna_req_t *req);
void uct_varuna_amo_native_fail_all(uct_varuna_ep_t *ep, ucs_status_t status);
void uct_varuna_amo_native_query(uct_iface_attr_t *attr);

/** The body of one of our own slots, as the key to write it names it. */
static UCS_F_ALWAYS_INLINE uint64_t
uct_varuna_amo_own_slot_addr(const uct_varuna_ep_t *ep, uint32_t slot)
{
    return ep->amo.arena.own_addr +
           ((slot - ep->amo.slots.first) * sizeof(uct_varuna_slot_t));
}

/* The table of such a mode. @a _executed: what becomes of an atomic that was executed and
 * whose value is lost. */
#define UCT_VARUNA_AMO_NATIVE_OPS(_executed) \
    { \
        .start      = uct_varuna_amo_native_start, \
        .open       = uct_varuna_amo_native_open, \
        .close      = uct_varuna_amo_native_close, \
        .learn_home = uct_varuna_amo_native_learn_home, \
        .progress   = uct_varuna_amo_native_progress, \
        .collect    = uct_varuna_amo_native_collect, \
        .executed   = _executed, \
        .fail_all   = uct_varuna_amo_native_fail_all, \
        .query      = uct_varuna_amo_native_query \
    }

/** All operations, in each width in which the lanes have a compare and swap. */
void uct_varuna_amo_query_all_ops(uct_iface_attr_t *attr);

#endif
