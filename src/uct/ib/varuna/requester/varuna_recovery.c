/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Moves a vQP from a failed lane to another one: the steps of the states DRAIN and
 * REPEAT, and those that post; and the state machine, which takes the steps of all states.
 * FENCE, which decides on each request, is in varuna_verdict.c, planned changes in
 * varuna_rebuild.c. The protocol is in docs/RECOVERY.md.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_sm.h"
#include "varuna_completion.h"
#include "varuna_lane.h"
#include "varuna_pending.h"
#include "varuna_ep.h"
#include "varuna_baseline.h"
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include "varuna_ring.h"
#include "varuna_stat.h"

#include <uct/api/v2/uct_v2.h>
#include <limits.h>
#include <ucs/debug/log.h>

/* Requests that an endpoint has on DC at a time if not all of them can have an initiator. With
 * their log entries they are UCX's quota. Those that come first would take the initiators for
 * all they have, as UCX looks at the quota only when others wait. */
#define UCT_VARUNA_DC_TURN 16

/* Note when and why the active lane failed. */
static void uct_varuna_recovery_note(uct_varuna_ep_t *ep, const char *reason)
{
    ucs_time_t waited = 0;

    if (ep->recovery.noticed_at == 0) {
        ep->recovery.noticed_at = ucs_get_time();
    }

    if (ep->recovery.start == 0) {
        ep->recovery.start     = ucs_get_time();
        ep->recovery.from_link = ep->lane.link;
        ep->recovery.from_kind = ep->lane.kind;
        ep->recovery.reason    = reason;
        ep->recovery.equal     = 0;
        ep->recovery.different = 0;
        memset(&ep->recovery.result, 0, sizeof(ep->recovery.result));
        waited = (ep->hot.num_reqs == 0) ? 0 :
                 uct_varuna_hang_head_age(ep);
        uct_varuna_stat_failing(ep, waited);
    }

    ucs_debug("rc_varuna: ep %p vqp=%u: leaves %s epoch=%u on %s: %s; the oldest request "
              "has waited for %.3f s", ep, ep->id,
              uct_varuna_lane_names[ep->lane.kind], ep->lane.epoch,
              uct_varuna_link_name(uct_varuna_ep_iface(ep), ep->lane.link),
              reason, ucs_time_to_sec(waited));
}

/* Stop the active lane: it becomes the dead one. */
static void uct_varuna_recovery_leave_lane(uct_varuna_ep_t *ep)
{
    ep->recovery.dead     = ep->lane;
    ep->recovery.order    = uct_varuna_ep_iface(ep)->links[ep->lane.link].
                            lanes[ep->lane.kind].order;
    ep->recovery.unfenced = 0;
    ep->lane.ep           = NULL;
    ep->owed              = NULL;
    ep->hot.silent      = 0;
    ep->hot.last_silent = NULL;
    uct_varuna_ep_leave_inner_pending(ep, ep->recovery.dead.ep);
    ep->recovery.running = (uct_varuna_tl_stop(ep->recovery.dead.ep,
                                               ep->recovery.dead.kind) != UCS_OK);
    /* The new lane takes its log ring, so what was being built is given up; a baseline
     * has no logs. What is in reserve has a ring of its own */
    ep->next.failed = (ep->next.lane.ep != NULL) &&
                      (uct_varuna_ep_baseline(ep) == NULL) &&
                      !uct_varuna_rebuild_keeps_standby(ep);
}

static int uct_varuna_ep_step_drain(uct_varuna_ep_t *ep, ucs_time_t now)
{
    const uct_varuna_baseline_t *baseline = uct_varuna_ep_baseline(ep);
    uct_varuna_drain_t drain              = uct_varuna_drain_check(ep, now);

    switch (drain) {
    case UCT_VARUNA_DRAIN_WAIT:
        return 1;
    case UCT_VARUNA_DRAIN_HOPELESS:
        uct_varuna_drain_give_up(ep);
        return 1;
    default:
        break;
    }

    ep->recovery.stuck     = (drain == UCT_VARUNA_DRAIN_STUCK);
    ep->recovery.fenced_at = 0;
    if (!ep->recovery.stuck) {
        /* Nothing of the old lane can write our memory any more */
        uct_varuna_compare_abort(ep);
    }

    if (baseline != NULL) {
        baseline->decide(ep);
        uct_varuna_lane_destroy(ep, &ep->recovery.dead);
        uct_varuna_ep_raise(ep, UCT_VARUNA_EP_EVENT_DECIDED);
        return 1;
    }

    if (ep->recovery.stuck || !uct_varuna_ep_decide_without_fence(ep)) {
        uct_varuna_ep_raise(ep, UCT_VARUNA_EP_EVENT_AT_REST);
    }

    return 1;
}

static int uct_varuna_ep_takes_turns(const uct_varuna_ep_t *ep)
{
    return (ep->lane.kind == UCT_VARUNA_LANE_DC) &&
           (ucs_ptr_array_get_elem_count(&uct_varuna_ep_requester(ep)->eps) >
            uct_varuna_ep_iface(ep)->config.dc_num_dci);
}

/* Post in order what is not on the lane, with its fences. */
static ucs_status_t uct_varuna_ep_post_waiting(uct_varuna_ep_t *ep)
{
    uct_varuna_ep_state_t state = ep->hot.state;
    unsigned turn               = uct_varuna_ep_takes_turns(ep) ? UCT_VARUNA_DC_TURN :
                                  UINT_MAX;
    unsigned reads              = 0;
    unsigned posted             = 0;
    uct_varuna_req_t *req;
    ucs_status_t status;

    /* If nobody was asked whether the peer lives, and nothing on the new lane will show
     * it, a write of ours does */
    status = ((state == UCT_VARUNA_EP_REPEAT) && ep->recovery.unproven &&
              (ep->hot.num_reqs == 0)) ? uct_varuna_ep_post_probe(ep) :
             uct_varuna_compare_progress(ep);
    if (status != UCS_OK) {
        return status;
    }

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if ((req->flags & UCT_VARUNA_REQ_FLAG_FENCE) && (reads > 0)) {
            return UCS_ERR_NO_RESOURCE; /* See uct_varuna_ep_can_post() */
        }

        if ((req->type == UCT_VARUNA_REQ_FLUSH) && !uct_varuna_req_pass_flush(req)) {
            continue;
        }

        reads += (uct_varuna_req_info(req)->kind == UCT_VARUNA_OP_GET) &&
                 !(req->flags & UCT_VARUNA_REQ_FLAG_DONE);
        if ((req->flags & (UCT_VARUNA_REQ_FLAG_POSTED |
                           UCT_VARUNA_REQ_FLAG_DONE))) {
            posted += !(req->flags & UCT_VARUNA_REQ_FLAG_DONE);
            continue;
        }

        if ((ep->owed != NULL) && !uct_varuna_ep_post_owed_log(ep)) {
            return UCS_ERR_NO_RESOURCE;
        }

        if ((ep->hot.state != state) || (posted++ >= turn)) {
            return UCS_ERR_NO_RESOURCE;
        }

        status = uct_varuna_req_post(req, 1);
        if (status != UCS_OK) {
            return status;
        }
    }

    return UCS_OK;
}

/* A DC lane may have refused for want of an initiator. All endpoints share these, and one
 * that has sent its quota gives its initiator up only if others wait in UCX's queue. */
static void uct_varuna_ep_await_initiator(uct_varuna_ep_t *ep)
{
    if ((ep->lane.kind == UCT_VARUNA_LANE_DC) && (ep->lane.ep != NULL)) {
        uct_varuna_ep_enter_inner_pending(ep);
    }
}

/* The initiator is lost if nothing is posted. The next step handles other results. */
static void uct_varuna_ep_resume(uct_varuna_ep_t *ep)
{
    if (uct_varuna_ep_lane_is_stale(uct_varuna_ep_iface(ep), ep) ||
        ((ep->owed != NULL) && !uct_varuna_ep_post_owed_log(ep))) {
        return;
    }

    if ((ep->hot.state == UCT_VARUNA_EP_REPEAT) ||
        (ep->hot.state == UCT_VARUNA_EP_BACKLOG)) {
        uct_varuna_ep_post_waiting(ep);
    }
}

/* @return nonzero if the lane has failed, which is reported. */
static int uct_varuna_ep_check_lane(uct_varuna_ep_t *ep)
{
    if (!uct_varuna_ep_lane_is_stale(uct_varuna_ep_iface(ep), ep)) {
        return 0;
    }

    uct_varuna_ep_raise_lane_failed(ep, uct_varuna_ep_failure_reason(ep));
    return 1;
}

/* Post what waits. @return nonzero if all is posted, and the vQP is active. */
static int uct_varuna_ep_catch_up(uct_varuna_ep_t *ep)
{
    ucs_status_t status = uct_varuna_ep_post_waiting(ep);

    if (status == UCS_ERR_NO_RESOURCE) {
        uct_varuna_ep_await_initiator(ep);
        return 0;
    } else if (status != UCS_OK) {
        uct_varuna_ep_raise_lane_failed(ep, ucs_status_string(status));
        return 0;
    }

    /* A flush may be among them, or may have come meanwhile: no other file requests the
     * completion of what was posted last */
    ep->hot.want_signal = (ep->hot.silent > 0);
    uct_varuna_ep_raise(ep, UCT_VARUNA_EP_EVENT_POSTED);
    return 1;
}

static int uct_varuna_ep_step_backlog(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (!uct_varuna_ep_check_lane(ep) && uct_varuna_ep_catch_up(ep)) {
        uct_varuna_ep_finish_done(ep);
    }

    return 1;
}

/* A step in the state of that name. @return nonzero to be called again. */
static int uct_varuna_ep_step_repeat(uct_varuna_ep_t *ep, ucs_time_t now)
{
    const uct_varuna_baseline_t *baseline = uct_varuna_ep_baseline(ep);

    if ((ep->lane.ep == NULL) &&
        !((baseline != NULL) ? baseline->take_lane(ep, now) :
          uct_varuna_ep_take_lane(ep, now))) {
        uct_varuna_ep_check_give_up(ep, now);
        return 1;
    }

    if (uct_varuna_ep_check_lane(ep) || !uct_varuna_ep_catch_up(ep)) {
        return 1;
    }

    uct_varuna_stat_switched(ep);
    ep->recovery.start = 0;
    uct_varuna_rebuild_at_once(ep, now);
    uct_varuna_ep_finish_done(ep);
    return 1;
}

/* A step in the state of that name. @return nonzero to be called again. */
static int uct_varuna_ep_step_active(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (uct_varuna_ep_check_lane(ep)) {
        return 1;
    }

    if (ucs_unlikely(ep->next.proving)) {
        uct_varuna_rebuild_prove(ep);
    }

    if (ep->next.ready && !ep->next.failed && !ep->next.spare) {
        uct_varuna_ep_raise(ep, UCT_VARUNA_EP_EVENT_NEXT_READY);
        return 1;
    }

    if (uct_varuna_ep_has_queued(ep)) {
        uct_varuna_ep_dispatch_pending(ep);
        if (uct_varuna_ep_has_queued(ep) &&
            (ep->hot.state == UCT_VARUNA_EP_ACTIVE)) {
            uct_varuna_ep_signal(ep); /* What is in the way may be silent */
            uct_varuna_ep_enter_inner_pending(ep);
        }
    }

    if (ucs_unlikely(uct_varuna_requester(uct_varuna_ep_iface(ep))->amo->progress(ep)) ||
        ucs_unlikely(uct_varuna_ep_place_repeated(ep))) {
        return 1;
    }

    return ep->next.proving || (ep->owed != NULL) || ((ep->hot.silent > 0) && ep->hot.want_signal) ||
           uct_varuna_ep_polls_pending(ep);
}

/* --- Failure --- */

/* The endpoint is about to fail: stop its lane, and note the status. */
static void uct_varuna_recovery_note_fatal(uct_varuna_ep_t *ep, ucs_status_t status)
{
    ucs_log_level_t level = uct_varuna_ep_iface(ep)->super.config.failure_level;

    if (status != UCS_OK) {
        /* By default varuna_stat.c has one warning for many endpoints */
        ucs_log((level == UCS_LOG_LEVEL_WARN) ? UCS_LOG_LEVEL_DIAG : level,
                "ep %p: vQP %u fails in state %s (%s epoch %u): %s", ep,
                ep->id, uct_varuna_ep_state_names[ep->hot.state],
                uct_varuna_lane_names[ep->lane.kind], ep->lane.epoch,
                ucs_status_string(status));
    }

    if (ep->lane.ep != NULL) {
        uct_varuna_ep_leave_inner_pending(ep, ep->lane.ep);
        uct_varuna_tl_stop(ep->lane.ep, ep->lane.kind);
        ep->recovery.dead    = ep->lane;
        ep->lane.ep = NULL;
    }

    if (ep->recovery.start != 0) {
        uct_varuna_stat_failed(ep);
        ep->recovery.start = 0;
    }

    ep->owed            = NULL;
    ep->hot.silent      = 0;
    ep->hot.last_silent = NULL;
    ep->sm.fail_status = status;
    ep->sm.reported    = 0;
}

/* The lane is drained first: nothing may still write a user's buffer when its
 * completion is called. */
static int uct_varuna_ep_step_failed(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    ucs_status_t status       = ep->sm.fail_status;

    if ((ep->recovery.dead.ep != NULL) &&
        (uct_varuna_drain_check(ep, now) == UCT_VARUNA_DRAIN_WAIT)) {
        return 1;
    }

    uct_varuna_lane_destroy(ep, &ep->recovery.dead);
    uct_varuna_compare_abort(ep);
    uct_varuna_ep_drop_next(ep);
    while (!uct_varuna_ring_is_empty(&ep->hot.reqs)) {
        uct_varuna_ep_finish_head(ep, (status == UCS_OK) ? UCS_ERR_CANCELED :
                                  status);
    }
    uct_varuna_requester(iface)->amo->fail_all(ep, (status == UCS_OK) ?
                                               UCS_ERR_CANCELED : status);

    if ((status != UCS_OK) && !ep->sm.reported) {
        uct_varuna_ep_end_pending(ep);
        ep->sm.reported = 1;
        status = uct_iface_handle_ep_err(&iface->super.super, &ep->super.super,
                                         status);
        if (status != UCS_OK) {
            ucs_log(iface->super.config.failure_level,
                    "ep %p: %s, and no error handler took it", ep,
                    ucs_status_string(ep->sm.fail_status));
        }
    }

    return 0;
}

/* --- In any state --- */

/* Finish in any state with a lane what may be left over there: the owed log write,
 * and a completion of what was posted silently. */
static void uct_varuna_ep_step_lane(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *last;

    if ((ep->owed != NULL) && !uct_varuna_ep_post_owed_log(ep)) {
        uct_varuna_ep_await_initiator(ep);
        return;
    }

    if ((ep->lane.ep == NULL) || (ep->hot.silent == 0) ||
        ((ep->hot.state == UCT_VARUNA_EP_ACTIVE) && !ep->hot.want_signal)) {
        return;
    }

    last = ep->hot.last_silent;
    if (uct_varuna_ep_signal(ep) == UCS_OK) {
        /* Before users are called: what they flush must not be lent one of these, which
         * is about to be freed */
        ep->hot.silent      = 0;
        ep->hot.last_silent = NULL;
        ep->hot.want_signal = 0;
        ep->lane.acked_psn  = last->end_psn;
        uct_varuna_ep_finish_up_to(ep, last);
        uct_varuna_ep_finish_done(ep);
    }
}


/* --- The state machine --- */

/* Receives events, changes the state as varuna_sm_table.c says, and takes the steps. */

static int (*const uct_varuna_sm_steps[])(uct_varuna_ep_t*, ucs_time_t) = {
    [UCT_VARUNA_EP_OPENING] = uct_varuna_ep_step_opening,
    [UCT_VARUNA_EP_ACTIVE]  = uct_varuna_ep_step_active,
    [UCT_VARUNA_EP_SWAP]    = uct_varuna_ep_step_swap,
    [UCT_VARUNA_EP_BACKLOG] = uct_varuna_ep_step_backlog,
    [UCT_VARUNA_EP_DRAIN]   = uct_varuna_ep_step_drain,
    [UCT_VARUNA_EP_FENCE]   = uct_varuna_ep_step_fence,
    [UCT_VARUNA_EP_REPEAT]  = uct_varuna_ep_step_repeat,
    [UCT_VARUNA_EP_FAILED]  = uct_varuna_ep_step_failed
};

/* States whose first step is taken at once */
#define UCT_VARUNA_SM_AT_ONCE \
    (UCS_BIT(UCT_VARUNA_EP_SWAP) | UCS_BIT(UCT_VARUNA_EP_BACKLOG))

/* States without a lane that is used */
#define UCT_VARUNA_SM_WITHOUT_LANE \
    (UCS_BIT(UCT_VARUNA_EP_OPENING) | UCS_BIT(UCT_VARUNA_EP_DRAIN) | \
     UCS_BIT(UCT_VARUNA_EP_FENCE) | UCS_BIT(UCT_VARUNA_EP_REPEAT))

static void uct_varuna_sm_set(uct_varuna_ep_t *ep, uct_varuna_ep_state_t state)
{
    ep->hot.sm_state = state;
    ep->hot.gate     = 1;
}

static void uct_varuna_sm_enter(uct_varuna_ep_t *ep, uct_varuna_ep_state_t state)
{
    ucs_time_t now = ucs_get_time();

    ucs_debug("rc_varuna: ep %p vqp=%u: %s -> %s (%s epoch=%u on %s) after %.0f us", ep,
              ep->id, uct_varuna_ep_state_names[ep->hot.state],
              uct_varuna_ep_state_names[state],
              uct_varuna_lane_names[ep->lane.kind], ep->lane.epoch,
              uct_varuna_link_name(uct_varuna_ep_iface(ep), ep->lane.link),
              ucs_time_to_usec(now - ep->sm.since));
    uct_varuna_ep_ctl_ended(ep);
    uct_varuna_stat_spent(ep, ep->hot.state, now - ep->sm.since);
    uct_varuna_sm_set(ep, state);
    ep->sm.since = now;
    ep->sm.clock = uct_varuna_ep_requester(ep)->scan.clock;
}

static void uct_varuna_sm_raise(uct_varuna_ep_t *ep, unsigned event,
                                const char *reason, ucs_status_t status)
{
    const uct_varuna_baseline_t *baseline = uct_varuna_ep_baseline(ep);
    uct_varuna_ep_state_t from            = ep->hot.state;
    uct_varuna_ep_state_t to              = uct_varuna_sm_next(from, event);

    if (to == UCT_VARUNA_EP_STATE_LAST) {
        return;
    }

    if ((event == UCT_VARUNA_EP_EVENT_LANE_FAILED) && (baseline != NULL) &&
        baseline->is_fatal) {
        to     = UCT_VARUNA_EP_FAILED;
        status = UCS_ERR_ENDPOINT_TIMEOUT;
    }

    switch (to) {
    case UCT_VARUNA_EP_DRAIN:
        uct_varuna_recovery_note(ep, reason);
        if (!ep->recovery.unproven) {
            /* Otherwise the peer has not answered since another lane failed */
            ep->ask.retry.since = uct_varuna_hang_silent_since(ep);
        }
        uct_varuna_sm_enter(ep, to);
        uct_varuna_recovery_leave_lane(ep);
        break;
    case UCT_VARUNA_EP_FAILED:
        uct_varuna_recovery_note_fatal(ep, status);
        uct_varuna_sm_enter(ep, to);
        break;
    case UCT_VARUNA_EP_SWAP:
        ep->next.swap_posts = 0;
        uct_varuna_sm_enter(ep, to);
        break;
    default:
        uct_varuna_sm_enter(ep, to);
        break;
    }

    uct_varuna_ep_add_work(ep);
}

void uct_varuna_sm_init(uct_varuna_requester_t *requester)
{
    requester->ep_raise  = uct_varuna_sm_raise;
    requester->ep_resume = uct_varuna_ep_resume;
    requester->baseline  = (uct_varuna_baseline_select == NULL) ? NULL :
                           uct_varuna_baseline_select();
}

void uct_varuna_sm_start(uct_varuna_ep_t *ep)
{
    ep->sm.since = ucs_get_time();
    ep->sm.clock = uct_varuna_ep_requester(ep)->scan.clock;
    uct_varuna_sm_set(ep, UCT_VARUNA_EP_OPENING);
    uct_varuna_ep_add_work(ep);
    uct_varuna_sm_step(ep, ep->sm.since);
}

void uct_varuna_sm_end(uct_varuna_ep_t *ep)
{
    uct_varuna_ep_ctl_ended(ep);
    uct_varuna_sm_set(ep, UCT_VARUNA_EP_FAILED);
}

int uct_varuna_sm_step(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_ep_state_t state;

    if (ucs_unlikely(ep->next.failed)) {
        uct_varuna_ep_drop_next(ep);
    }

    if (UCS_BIT(ep->hot.state) & UCT_VARUNA_SM_WITHOUT_LANE) {
        uct_varuna_outage_check(ep);
    }

    uct_varuna_ep_step_lane(ep);
    do {
        state = ep->hot.state;
        if (!uct_varuna_sm_steps[state](ep, now)) {
            return 0; /* The user may have destroyed the endpoint */
        }
    } while ((ep->hot.state != state) &&
             (UCS_BIT(ep->hot.state) & UCT_VARUNA_SM_AT_ONCE));

    return 1;
}
