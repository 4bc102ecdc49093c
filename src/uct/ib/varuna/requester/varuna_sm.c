/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The state machine of the vQP: receives events, changes the state as varuna_sm_table.c
 * says, and takes the steps. The protocol is in docs/RECOVERY.md.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_sm.h"
#include "varuna_baseline.h"
#include "varuna_lane.h"
#include "varuna_ep_ctl.h"
#include "varuna_hang.h"
#include "varuna_ep_life.h"
#include "varuna_stat.h"
#include "varuna_recovery.h"
#include "varuna_rebuild.h"
#include "varuna_verdict.h"

#include <ucs/debug/log.h>

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
