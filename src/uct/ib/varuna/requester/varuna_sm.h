/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The state machine of the vQP, and the steps of its states. Its picture is in varuna_ep.h;
 * varuna_recovery.c alone changes a state. Main thread only.
 */
#ifndef UCT_VARUNA_SM_H_
#define UCT_VARUNA_SM_H_

#include "varuna_lane.h"
#include "varuna_ep.h"
#include "varuna_requester.h"
#include <uct/ib/varuna/core/varuna_plan.h>

/** Receive the events of the endpoints of an interface, whose configuration is
 *  known. */
void uct_varuna_sm_init(uct_varuna_requester_t *requester);

/** Begin in state OPENING. */
void uct_varuna_sm_start(uct_varuna_ep_t *ep);

/** The endpoint is being destroyed: no event has an effect any more. */
void uct_varuna_sm_end(uct_varuna_ep_t *ep);

/** Take a step. @return nonzero if the endpoint has more to do and must stay in the
 *  list of work. */
int uct_varuna_sm_step(uct_varuna_ep_t *ep, ucs_time_t now);

/* --- Events --- */

/* Raised by whatever file finds out. The state machine receives them through a function of
 * the requester's part of the interface, so no file depends on it. */

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

/* --- States that post, drain and repeat --- */

/* Failure recovery in epochs. varuna_recovery.c. */

/* --- The next lane --- */

/* Connects RC in the background: the lane that the vQP changes to. varuna_rebuild.c. */

/** Start connecting RC in the background if a better lane may be had. */
void uct_varuna_ep_connect_next(uct_varuna_ep_t *ep, ucs_time_t now);

/** Begin to connect RC on a link. */
void uct_varuna_ep_connect_rc(uct_varuna_ep_t *ep, unsigned link,
                              ucs_time_t now);

/** @return The link to make a lane on, of an endpoint that has none: one after the other
 *  has its turn, and when no lane could be had on any, they have a pause.
 *  UCT_VARUNA_LINK_NONE: none now. */
uint8_t uct_varuna_rebuild_select_link(uct_varuna_ep_t *ep, ucs_time_t now);

/** CONNECT_REQ of an endpoint without a lane is not answered in time: ask once more, or
 *  leave the link. */
void uct_varuna_rebuild_ask_or_leave(uct_varuna_ep_t *ep, ucs_time_t now);

/** Take the best lane that an endpoint without any can have. Without DC it is being
 *  connected: call this again. @return 0 if there is none yet. */
int uct_varuna_ep_take_lane(uct_varuna_ep_t *ep, ucs_time_t now);

/** Connect the next lane while the responder is asked about the last one: without DC, one
 *  round trip of the bus brings both. */
void uct_varuna_rebuild_prepare(uct_varuna_ep_t *ep, ucs_time_t now);

/** @return Whether a connection in reserve can replace a lane that has just failed. */
int uct_varuna_rebuild_keeps_standby(const uct_varuna_ep_t *ep);

/** CONNECT_REP: the peer has made its end. The body's lengths were checked. */
void uct_varuna_ep_handle_connect_rep(uct_varuna_ep_t *ep,
                                      const uct_varuna_ctl_hdr_t *hdr,
                                      const uct_varuna_ctl_connect_t *rep);

/** Make the lane that is connected the active one. */
void uct_varuna_rebuild_use_next(uct_varuna_ep_t *ep);

/** The new lane is connected, and not known to work: go on with its first write. */
void uct_varuna_rebuild_prove(uct_varuna_ep_t *ep);

/** @return Whether RC may be connected, or CONNECT_REQ be sent again. */
static inline int
uct_varuna_rebuild_is_due(const uct_varuna_ep_t *ep, ucs_time_t now)
{
    return now >= ep->next.retry.due;
}

/** Connect RC as soon as possible. */
static inline void uct_varuna_rebuild_at_once(uct_varuna_ep_t *ep, ucs_time_t now)
{
    ep->next.retry.due = now;
}

/** @return Whether the lane that is being made is of no use: its link or path has failed
 *  since. */
int uct_varuna_ep_is_next_stale(const uct_varuna_ep_t *ep);

/* --- Planned changes of the lane --- */

/** State SWAP. @return nonzero to be called again. */
int uct_varuna_ep_step_swap(uct_varuna_ep_t *ep, ucs_time_t now);

/* --- State FENCE --- */

/* The evidence, and the verdict on each request. varuna_verdict.c. */

/* Number of the first message which may not have been acknowledged. */
uint32_t uct_varuna_ep_am_acked(const uct_varuna_ep_t *ep);

/* The dead lane is drained. If no evidence is needed, decide, and go on without a fence.
 * @return Whether that was done. */
int uct_varuna_ep_decide_without_fence(uct_varuna_ep_t *ep);

/* The responder knows that the lane is over which was left without a fence, or the endpoint
 * ends. */
void uct_varuna_ep_forget_left(uct_varuna_ep_t *ep);

/* State FENCE. @return nonzero to be called again. */
int uct_varuna_ep_step_fence(uct_varuna_ep_t *ep, ucs_time_t now);

/* FENCE_REP: the evidence. The body's lengths were checked. */
void uct_varuna_ep_handle_fence_rep(uct_varuna_ep_t *ep,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const uct_varuna_ctl_fence_rep_t *rep);

/* --- Draining --- */

/* Waits for a failed lane to come to rest, and decides what may be done when it
 * does not: a NIC that died or hangs flushes nothing, and confirms nothing. Called
 * by varuna_recovery.c. */

typedef enum uct_varuna_drain {
    UCT_VARUNA_DRAIN_WAIT,
    UCT_VARUNA_DRAIN_DONE,      /* At rest: confirmed by its own completions */
    UCT_VARUNA_DRAIN_STUCK,     /* Not at rest in DRAIN_TIMEOUT; the responder's
                                   fence can confirm it, or time: the NIC is gone */
    UCT_VARUNA_DRAIN_HOPELESS   /* It can never be confirmed */
} uct_varuna_drain_t;

/* Of FENCE_REQ: what was over when it was sent, and so when the log was read. */
typedef enum uct_varuna_round {
    UCT_VARUNA_ROUND_EARLY,     /* Nothing */
    UCT_VARUNA_ROUND_LATE,      /* The packet lifetime, since the lane was left */
    UCT_VARUNA_ROUND_ENDED      /* ... and since the lane's NIC, which is gone, has failed
                                   a command */
} uct_varuna_round_t;

/** @return The round of a FENCE_REQ that is sent now. */
uint32_t uct_varuna_drain_round(const uct_varuna_ep_t *ep, ucs_time_t now);

/** What has become of ep->recovery.dead, which was put into the error state when the
 *  endpoint entered its present state. */
uct_varuna_drain_t uct_varuna_drain_check(uct_varuna_ep_t *ep, ucs_time_t now);

/** Give up an endpoint whose lane cannot be stopped: what was posted may be executed, or
 *  an answer be written, at any later time. */
void uct_varuna_drain_give_up(uct_varuna_ep_t *ep);

/* --- Ambiguous requests --- */

/* Decides them: reads their targets back over the new lane. varuna_compare.c. */

/**
 * Go on with deciding what becomes of the ambiguous requests, before anything is
 * repeated. The active lane is used; the old one has been fenced or waited out.
 *
 * @return UCS_OK if all is decided: each request is DONE, or is to be posted;
 *         UCS_ERR_NO_RESOURCE while that takes time, or if it has ended the endpoint;
 *         else an error of the lane.
 */
ucs_status_t uct_varuna_compare_progress(uct_varuna_ep_t *ep);

/**
 * A request was executed: it is done, unless its result was lost with the lane.
 *
 * @return UCS_OK, or why the endpoint fails.
 */
ucs_status_t uct_varuna_req_executed(uct_varuna_req_t *req);

/** The lane is drained: reads under way will not return. Targets that were found to
 *  be equal stay so. */
void uct_varuna_compare_abort(uct_varuna_ep_t *ep);

/** The endpoint is being destroyed: forget what was read. A read under way is one of the
 *  unfinished requests. */
void uct_varuna_compare_detach(uct_varuna_ep_t *ep);

/* --- Control messages --- */

/* The requester's side of the control plane: requests that are sent until they are
 * answered, and the answers. varuna_ep_ctl.c. */

/* OPEN_REP and REJECT. The lengths were checked, the contents are the peer's. */
void uct_varuna_ep_handle_open_rep(uct_varuna_ep_t *ep,
                                   const uct_varuna_ctl_hdr_t *hdr,
                                   const uct_varuna_ctl_open_rep_t *rep);
void uct_varuna_ep_handle_reject(uct_varuna_ep_t *ep,
                                 const uct_varuna_ctl_reject_t *rej);

/**
 * Send a control message about this endpoint to its peer on @a link, once.
 *
 * @param [in] epoch  As varuna_wire.h says for that type.
 */
ucs_status_t uct_varuna_ep_ctl_send(uct_varuna_ep_t *ep, unsigned link,
                                    uct_varuna_ctl_type_t type, uint32_t epoch,
                                    const void *body, size_t length);

/** @return The links for a control request: all that reach the peer and whose port is up. What
 *  cannot leave would only keep the control plane busy. */
unsigned uct_varuna_ep_ctl_links(const uct_varuna_ep_t *ep);

/* Send a request now if none was sent lately. */
void uct_varuna_ep_ctl_request(uct_varuna_ep_t *ep, ucs_time_t now,
                               uct_varuna_ctl_type_t type, uint32_t epoch,
                               const void *body, size_t length);

/* It is answered, or the answer is not needed any more. */
void uct_varuna_ep_ctl_ended(uct_varuna_ep_t *ep);

/* Fail the endpoint if its peer is gone, or has not answered for too long. */
void uct_varuna_ep_check_give_up(uct_varuna_ep_t *ep, ucs_time_t now);

/* --- The audit file --- */

/* Of an interface (UCX_RC_VARUNA_AUDIT), written where verdicts are applied. Costs nothing
 * while no lane fails. varuna_audit_file.c. */

/**
 * Take over the option. The file itself is created by the first record.
 *
 * @param [in] dir  The directory, or "none".
 *
 * @return UCS_ERR_INVALID_PARAM, which is logged, if no file can be created there.
 */
ucs_status_t uct_varuna_audit_open(uct_varuna_requester_t *requester, const char *dir);

/** Close the file. */
void uct_varuna_audit_close(uct_varuna_requester_t *requester);

/** A record that is being collected. */
typedef struct uct_varuna_audit_draft {
    uct_varuna_audit_record_t  *head;  /* Or NULL: there is no audit */
} uct_varuna_audit_draft_t;

/**
 * Begin the record of a recovery, before its verdicts are applied.
 *
 * @param [in]  ep        Endpoint whose lane has failed.
 * @param [in]  evidence  What the verdicts follow from.
 * @param [in]  flags     UCT_VARUNA_AUDIT_FENCED and WAITED.
 * @param [in]  ops       The plan, an entry per request of the endpoint's ring.
 * @param [in]  doubt     Of the plan.
 * @param [out] draft     The record.
 */
void uct_varuna_audit_begin(uct_varuna_ep_t *ep, const uct_varuna_evidence_t *evidence,
                            unsigned flags, const uct_varuna_plan_op_t *ops,
                            uct_varuna_doubt_t doubt, uct_varuna_audit_draft_t *draft);

/**
 * The verdicts were applied: add what was done, and write the record.
 *
 * @param [in] ep      Endpoint. Its ring has the same requests as before.
 * @param [in] status  Not UCS_OK if the endpoint fails.
 * @param [in] draft   The record, which is released.
 */
void uct_varuna_audit_commit(uct_varuna_ep_t *ep, ucs_status_t status,
                             uct_varuna_audit_draft_t *draft);

/**
 * Write that ambiguous operations were decided by their targets.
 *
 * @param [in] ep      Endpoint.
 * @param [in] window  What was decided. Its operations' arguments are requests, or NULL.
 * @param [in] status  Not UCS_OK if the endpoint fails.
 */
void uct_varuna_audit_compared(uct_varuna_ep_t *ep, const uct_varuna_window_t *window,
                               ucs_status_t status);

#endif
