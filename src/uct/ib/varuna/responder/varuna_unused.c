/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A late OPEN_REQ, which a switch has kept while the endpoint was closed, opens its vQP
 * once more, and if OPEN_REP is lost, it is never closed. So OPEN_REP is sent again
 * for a target that was never used. A requester that has no such endpoint answers with
 * CLOSE (varuna_stale.c); one that has it and is idle ignores the answer.
 *
 * The intervals double, and the number is limited, so an idle requester costs nothing in
 * the end. varuna_orphan.c handles dead ones.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_unused.h"
#include <uct/ib/varuna/ctl/varuna_ctl_send.h>
#include "varuna_target.h"
#include <uct/ib/varuna/core/varuna_am_seq.h>

#include <ucs/debug/log.h>

#define UCT_VARUNA_UNUSED_PERIOD   1.0 /* Seconds between looks, and before the first */
#define UCT_VARUNA_UNUSED_TRIES    12  /* The last one after an hour and 8 minutes */
#define UCT_VARUNA_UNUSED_BURST    64  /* At one look */


static uct_varuna_retry_policy_t uct_varuna_unused_policy(void)
{
    uct_varuna_retry_policy_t policy = {
        .interval  = ucs_time_from_sec(2 * UCT_VARUNA_UNUSED_PERIOD),
        .backoff   = UCT_VARUNA_UNUSED_TRIES,
        .max_tries = UCT_VARUNA_UNUSED_TRIES
    };

    return policy;
}

static int uct_varuna_unused_is_used(const uct_varuna_target_t *target)
{
    return target->is_used ||
           (target->next_seq != uct_varuna_am_seq_first(target->opening));
}

static void uct_varuna_unused_remind(uct_varuna_responder_t *resp,
                                     uct_varuna_target_t *target,
                                     const uct_varuna_retry_policy_t *policy,
                                     ucs_time_t now)
{
    unsigned usable          = target->peer->link_map & ~resp->ctl->ports_down;
    uct_varuna_ctl_hdr_t hdr = {
        .type   = UCT_VARUNA_CTL_OPEN_REQ,
        .dest   = resp->iface->uuid,
        .uuid   = target->peer->uuid,
        .secret = target->peer->secret,
        .vqp    = target->vqp,
        .epoch  = target->instance
    };
    unsigned link;

    if (usable == 0) {
        return; /* Its turn comes when a port is up */
    }

    link = uct_varuna_retry_next(&target->reminder, policy, UCT_VARUNA_LINK_NONE,
                                 usable, now);
    ucs_debug("rc_varuna: target %u for vqp=%u of peer 0x%" PRIx64 " is not used: "
              "repeated OPEN_REP", target->id, target->vqp, target->peer->uuid);
    uct_varuna_target_reply_open(resp, link, &hdr, target);
}

/* @return Whether a reminder was due. */
static int uct_varuna_unused_look(uct_varuna_responder_t *resp,
                                  uct_varuna_target_t *target, ucs_time_t now,
                                  int has_room)
{
    uct_varuna_retry_policy_t policy = uct_varuna_unused_policy();
    uct_varuna_retry_t *reminder     = &target->reminder;

    if (!reminder->is_active) {
        uct_varuna_retry_start(reminder, now + (policy.interval / 2), now);
    }

    switch (uct_varuna_retry_check(reminder, &policy, now, now)) {
    case UCT_VARUNA_RETRY_WAIT:
        return 0;
    case UCT_VARUNA_RETRY_SEND:
        if (has_room) {
            uct_varuna_unused_remind(resp, target, &policy, now);
        }
        return 1;
    default:
        target->is_used = 1; /* As far as we can know */
        return 0;
    }
}

/* Async context, lock held */
static void uct_varuna_unused_timer(void *arg)
{
    uct_varuna_responder_t *resp = arg;
    ucs_time_t now               = uct_varuna_ctl_now(resp->ctl);
    unsigned due                 = 0;
    uct_varuna_target_t *target;

    /* All that were ever opened since have proved that they are used */
    if (resp->unused.num == 0) {
        return;
    }

    resp->unused.num = 0;
    kh_foreach_value(&resp->targets.by_name, target, {
        if (uct_varuna_unused_is_used(target)) {
            continue;
        }

        ++resp->unused.num;
        due += uct_varuna_unused_look(resp, target, now,
                                      due < UCT_VARUNA_UNUSED_BURST);
    });
}

void uct_varuna_unused_start(uct_varuna_responder_t *resp)
{
    uct_varuna_clock_add(&resp->ctl->clock,
                         ucs_time_from_sec(UCT_VARUNA_UNUSED_PERIOD),
                         uct_varuna_unused_timer, resp);
}
