/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An atomic as all modes keep it that do not leave it to the lane, and what these have in
 * common: an atomic is taken, waits in lists of its endpoint, and ends. Each mode has its own
 * structure, which begins with this one (varuna_amo_cpu.c, extended/varuna_amo_ext.h). Main
 * thread only.
 */
#ifndef UCT_VARUNA_AMO_PRIV_H_
#define UCT_VARUNA_AMO_PRIV_H_

#include <uct/ib/varuna/requester/varuna_completion.h>
#include <uct/ib/varuna/requester/varuna_sm.h>
#include <uct/ib/varuna/requester/varuna_lane.h>
#include <uct/ib/varuna/requester/varuna_pending.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/requester/varuna_ep.h>

#include <ucs/datastruct/mpool.inl>
#include <string.h>

struct uct_varuna_amo {
    uct_completion_t           comp;      /* Of what is on the lane for it */
    ucs_list_link_t            all;       /* In ep->amo.all */
    ucs_list_link_t            ready;     /* In ep->amo.ready, if is_ready */
    uct_varuna_ep_t            *ep;
    uct_completion_t           *user_comp;
    void                       *result;
    uct_unpack_callback_t      unpack;    /* A read: takes the result */
    void                       *unpack_arg;
    uint32_t                   sn;
    uint8_t                    is_ready;
    uint8_t                    is_told;   /* The user has the result */
    uint8_t                    fence;     /* It waits for requests before its fence,
                                             and so do all later atomics */
};

/** Complete the flushes that no unfinished atomic precedes any more, with @a status, or move
 *  them behind the requests on the lane. Rule 9: a flush covers all that atomics before it
 *  post. */
void uct_varuna_amo_finish_flushes(uct_varuna_ep_t *ep, ucs_status_t status);

/** Try flushes again for which there was no memory. @return Whether there is still none. */
int uct_varuna_amo_retry_flushes(uct_varuna_ep_t *ep);

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

/** It has passed its fence, and others may follow; or it has failed. */
static inline void uct_varuna_amo_pass_fence(uct_varuna_amo_t *amo)
{
    amo->ep->amo.fences -= amo->fence;
    amo->fence           = 0;
}

/* --- Taking one --- */

/* It waits in a list of ours for what it needs, so it is accepted even when other
 * requests cannot be posted. */
static inline int
uct_varuna_amo_can_take(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep)
{
    if (ep->hot.num_amos >= UCT_VARUNA_MAX_AMOS) {
        return 0;
    }

    return (ep->hot.state == UCT_VARUNA_EP_ACTIVE) || uct_varuna_ep_takes(ep);
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_init(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep, uct_varuna_amo_t *amo,
                    const uct_varuna_amo_args_t *args)
{
    amo->ep         = ep;
    amo->user_comp  = args->comp;
    amo->result     = args->result;
    amo->unpack     = args->unpack;
    amo->unpack_arg = args->unpack_arg;
    amo->sn         = ++ep->amo.sn;
    amo->is_ready   = 0;
    amo->is_told    = 0;
    amo->fence      = uct_varuna_ep_is_fenced(iface, ep);
    if (amo->fence) {
        ++ep->amo.fences;
        ep->hot.fence_next = 0;
        ep->fence_beat     = uct_varuna_requester(iface)->beats.fence;
    }
}

/** Take a new atomic: it is unfinished from now on. @return NULL to try again. */
static UCS_F_ALWAYS_INLINE uct_varuna_amo_t *
uct_varuna_amo_take(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                    const uct_varuna_amo_args_t *args)
{
    uct_varuna_amo_t *amo;

    if (!uct_varuna_amo_can_take(iface, ep) || uct_varuna_ep_has_pending(ep)) {
        if (ep->hot.silent > 0) {
            uct_varuna_ep_signal(ep);
        }
        return NULL;
    }

    amo = (uct_varuna_amo_t*)ucs_mpool_get_inline(&uct_varuna_requester(iface)->pools.amos);
    if (amo == NULL) {
        return NULL;
    }

    uct_varuna_amo_init(iface, ep, amo, args);
    ucs_list_add_tail(&ep->amo.all, &amo->all);
    ++ep->hot.num_amos;
    ep->hot.gate = 1;
    ++ep->amo.undecided;
    ++uct_varuna_requester(iface)->outstanding;
    return amo;
}

static UCS_F_ALWAYS_INLINE void uct_varuna_amo_add_ready(uct_varuna_amo_t *amo)
{
    amo->is_ready = 1;
    ucs_list_add_tail(&amo->ep->amo.ready, &amo->ready);
}

/* --- Ending it --- */

static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_copy_word(void *dst, const void *src, size_t width)
{
    if (ucs_likely(width == sizeof(uint64_t))) {
        memcpy(dst, src, sizeof(uint64_t));
    } else {
        memcpy(dst, src, width);
    }
}

/** It is decided: give @a value to the user. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_tell(uct_varuna_amo_t *amo, ucs_status_t status, const uint64_t *value,
                    size_t width)
{
    uct_completion_t *comp = amo->user_comp;

    amo->is_told = 1;
    --amo->ep->amo.undecided;
    if ((status == UCS_OK) && (amo->unpack != NULL)) {
        amo->unpack(amo->unpack_arg, value, width);
    } else if ((status == UCS_OK) && (amo->result != NULL)) {
        uct_varuna_amo_copy_word(amo->result, value, width);
    }

    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}

/** Nothing of it is under way any more: end it, and give @a value to the user, if that was
 *  not done. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_amo_end(uct_varuna_amo_t *amo, ucs_status_t status, const uint64_t *value,
                   size_t width)
{
    uct_varuna_ep_t *ep = amo->ep;

    uct_varuna_amo_pass_fence(amo);
    ucs_list_del(&amo->all);
    if (amo->is_ready) {
        ucs_list_del(&amo->ready);
    }

    --ep->hot.num_amos;
    --uct_varuna_ep_requester(ep)->outstanding;
    if (!amo->is_told) {
        uct_varuna_amo_tell(amo, status, value, width);
    }

    ucs_mpool_put_inline(amo);
    if (!ucs_queue_is_empty(&ep->amo.flushes)) {
        uct_varuna_amo_finish_flushes(ep, status);
    }
    if (!ucs_list_is_empty(&ep->amo.ready)) {
        uct_varuna_ep_add_work(ep); /* What it has used is free */
    }
}

/* --- Requests to the peer --- */

/** A request to the peer begins. */
void uct_varuna_amo_retry_start(uct_varuna_ep_t *ep);

/** It is sent. @return The link: the best one at first, then one after the other. */
unsigned uct_varuna_amo_retry_next(uct_varuna_ep_t *ep);

/** @return Whether it is to be sent again. The endpoint fails if the peer has not
 *  answered for too long. */
int uct_varuna_amo_retry_is_due(uct_varuna_ep_t *ep);

/* --- The peer's home NIC --- */

/* The NIC of the peer that executes all atomics (mode extended), or in whose order they are
 * executed (mode proxy) */
typedef struct uct_varuna_amo_home {
    uint32_t                   epoch;
    uint8_t                    nic;
} uct_varuna_amo_home_t;

/** The peer has named it. */
static inline void
uct_varuna_amo_home_learn(uct_varuna_ep_t *ep, uct_varuna_amo_home_t *home, uint8_t nic,
                          uint32_t epoch)
{
    if (UCS_CIRCULAR_COMPARE32(epoch, >, home->epoch)) {
        home->epoch = epoch;
        home->nic   = nic;
        uct_varuna_ep_note_away(ep);
    }
}

/* --- Modes --- */

/* The tables of the modes of this room, one file each, and what modes without a driver of
 * their own have in common. iface/varuna_modes.c chooses. */

extern const uct_varuna_amo_ops_t uct_varuna_amo_native_ops;
extern const uct_varuna_amo_ops_t uct_varuna_amo_cpu_ops;

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
        .query      = uct_varuna_amo_native_query, \
        .size       = sizeof(uct_varuna_amo_t) \
    }

/** All operations, in each width in which the lanes have a compare and swap. */
void uct_varuna_amo_query_all_ops(uct_iface_attr_t *attr);

/* --- Atomics of the endpoint --- */

/* As UCT calls them. varuna_atomics.c. */

/** Take the table of operations of the memory domain's mode. The lanes are open. */
ucs_status_t uct_varuna_atomics_init(uct_varuna_requester_t *requester,
                                     const uct_varuna_amo_ops_t *ops);

/** Register the handlers of the peers' answers. The control plane is open. */
void uct_varuna_atomics_listen(uct_varuna_requester_t *requester);

void uct_varuna_atomics_cleanup(uct_varuna_requester_t *requester);

ucs_status_t uct_varuna_ep_atomic_cswap64(uct_ep_h tl_ep, uint64_t compare,
                                          uint64_t swap, uint64_t remote_addr,
                                          uct_rkey_t rkey, uint64_t *result,
                                          uct_completion_t *comp);
ucs_status_t uct_varuna_ep_atomic_cswap32(uct_ep_h tl_ep, uint32_t compare,
                                          uint32_t swap, uint64_t remote_addr,
                                          uct_rkey_t rkey, uint32_t *result,
                                          uct_completion_t *comp);
ucs_status_t uct_varuna_ep_atomic64_post(uct_ep_h tl_ep, unsigned opcode,
                                         uint64_t value, uint64_t remote_addr,
                                         uct_rkey_t rkey);
ucs_status_t uct_varuna_ep_atomic32_post(uct_ep_h tl_ep, unsigned opcode,
                                         uint32_t value, uint64_t remote_addr,
                                         uct_rkey_t rkey);
ucs_status_t uct_varuna_ep_atomic64_fetch(uct_ep_h tl_ep, unsigned opcode,
                                          uint64_t value, uint64_t *result,
                                          uint64_t remote_addr, uct_rkey_t rkey,
                                          uct_completion_t *comp);
ucs_status_t uct_varuna_ep_atomic32_fetch(uct_ep_h tl_ep, unsigned opcode,
                                          uint32_t value, uint32_t *result,
                                          uint64_t remote_addr, uct_rkey_t rkey,
                                          uct_completion_t *comp);

#endif
