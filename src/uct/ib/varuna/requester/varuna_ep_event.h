/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Events of an endpoint, raised by whatever file finds out. The state machine
 * (varuna_sm.c) receives them through a function of the requester's part of the
 * interface, so no file depends on it. Main thread only.
 */
#ifndef UCT_VARUNA_EP_EVENT_H_
#define UCT_VARUNA_EP_EVENT_H_

#include "varuna_lane.h"

/** Why a request is not posted. The caller raises the event, if there is one. */
typedef enum {
    UCT_VARUNA_POST_OK,
    UCT_VARUNA_POST_ATOMICS,         /* Atomics and their fences come first */
    UCT_VARUNA_POST_STATE,           /* The vQP has no lane that takes requests */
    UCT_VARUNA_POST_LANE_FAILED,     /* The lane's link or path has failed */
    UCT_VARUNA_POST_READS,           /* A fence waits for reads */
    UCT_VARUNA_POST_FULL             /* A ring is full, or a log write is owed */
} uct_varuna_post_t;

/** Report an event that needs no argument. An event that does not concern the
 *  endpoint in its present state has no effect. */
static inline void
uct_varuna_ep_raise(uct_varuna_ep_t *ep, uct_varuna_ep_event_t event)
{
    uct_varuna_ep_requester(ep)->ep_raise(ep, event, NULL, UCS_OK);
}

/** Report that the active lane has failed. Idempotent per incarnation. Callable from
 *  inner callbacks: the work is done by the next steps. */
static inline void
uct_varuna_ep_raise_lane_failed(uct_varuna_ep_t *ep, const char *reason)
{
    uct_varuna_ep_requester(ep)->ep_raise(ep, UCT_VARUNA_EP_EVENT_LANE_FAILED,
                                          reason, UCS_OK);
}

/** Give the endpoint up. Its requests are completed with @a status when its lane is
 *  drained, then the user's error handler is called (not for UCS_OK, which is
 *  flush(CANCEL)). */
static inline void
uct_varuna_ep_raise_fatal(uct_varuna_ep_t *ep, ucs_status_t status)
{
    uct_varuna_ep_requester(ep)->ep_raise(ep, UCT_VARUNA_EP_EVENT_FATAL, NULL,
                                          status);
}

/** Report why a request was not posted, if that is an event. */
static inline void
uct_varuna_ep_raise_post(uct_varuna_ep_t *ep, uct_varuna_post_t why)
{
    if (why == UCT_VARUNA_POST_LANE_FAILED) {
        uct_varuna_ep_raise_lane_failed(ep, uct_varuna_ep_failure_reason(ep));
    }
}

/** Put the endpoint in the requester's list of work: it takes a step in the next
 *  progress call. */
static inline void uct_varuna_ep_add_work(uct_varuna_ep_t *ep)
{
    if (!ep->sm.on_work) {
        ep->sm.on_work = 1;
        ucs_list_add_tail(&uct_varuna_ep_requester(ep)->work, &ep->sm.work);
        uct_varuna_iface_set_slow(uct_varuna_ep_iface(ep));
    }
}

#endif
