/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A message which the responder's NIC has acknowledged is never sent again. If that
 * NIC dies before the message is polled from its completion queue, then the
 * sequence of the vQP has a gap that never closes, and later messages cannot be
 * delivered.
 *
 * Gaps are looked for in two cases. A fence request contains the number up to which
 * everything is acknowledged; and when a message is held, all earlier ones have been
 * acknowledged or have come, since a lane delivers in order and a new lane begins with
 * what was not acknowledged on the old one.
 *
 * The messages may still be in a completion queue. So a gap counts only after all
 * queues were found empty, and not before the packet lifetime is over, in which a
 * lane that could not be fenced may still deliver.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_gap.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_retry.h>
#include <uct/ib/varuna/ctl/varuna_stranger.h>
#include "varuna_responder.h"
#include <uct/ib/varuna/core/varuna_am_seq.h>

/* Tries to report the gap to the requester. It closes the target then; if it does not,
 * it is gone. */
#define UCT_VARUNA_GAP_MAX_REJECTS   64

void uct_varuna_gap_watch(uct_varuna_responder_t *resp,
                          uct_varuna_target_t *target, uint32_t end)
{
    if (target->broken || UCS_CIRCULAR_COMPARE32(end, <=, target->next_seq)) {
        return;
    }

    if (!target->gap.watched) {
        target->gap.watched = 1;
        target->gap.end     = end;
        target->gap.next    = target->next_seq;
        target->gap.since   = uct_varuna_ctl_now(resp->ctl);
        ucs_list_add_tail(&resp->received.gaps, &target->gap.list);
    } else if (UCS_CIRCULAR_COMPARE32(end, >, target->gap.end)) {
        target->gap.end = end;
    }
}

void uct_varuna_gap_forget(uct_varuna_target_t *target)
{
    if (target->gap.watched) {
        target->gap.watched = 0;
        ucs_list_del(&target->gap.list);
    }
}

void uct_varuna_gap_tell(uct_varuna_responder_t *resp,
                         uct_varuna_target_t *target, ucs_time_t now)
{
    const uct_varuna_retry_policy_t policy = {
        .interval  = resp->iface->config.ctl_timeout,
        .max_tries = UCT_VARUNA_GAP_MAX_REJECTS
    };
    uct_varuna_ctl_hdr_t hdr = {
        .type    = UCT_VARUNA_CTL_FENCE_REQ,
        .dest    = resp->iface->uuid,
        .uuid    = target->peer->uuid,
        .secret  = target->peer->secret,
        .opening = target->opening,
        .vqp     = target->vqp
    };
    unsigned link;

    switch (uct_varuna_retry_check(&target->gap.retry, &policy, now, now)) {
    case UCT_VARUNA_RETRY_GIVE_UP:
        uct_varuna_gap_forget(target);
        return;
    case UCT_VARUNA_RETRY_WAIT:
        return;
    case UCT_VARUNA_RETRY_SEND:
        break;
    }

    link = uct_varuna_retry_next(&target->gap.retry, &policy, 0,
                                 UCS_MASK(resp->iface->num_links), now);
    uct_varuna_ctl_lock(resp->ctl);
    uct_varuna_ctl_reject(resp->ctl, link, &hdr, UCS_ERR_CONNECTION_RESET);
    uct_varuna_ctl_unlock(resp->ctl);
}

void uct_varuna_gap_break(uct_varuna_responder_t *resp,
                          uct_varuna_target_t *target, const char *reason)
{
    if (target->broken) {
        return;
    }

    ucs_log(resp->iface->super.config.failure_level,
            "rc_varuna: vQP %u of peer 0x%" PRIx64 " fails: message %u %s, %u "
            "later ones are dropped", target->vqp, target->peer->uuid,
            target->next_seq - uct_varuna_am_seq_first(target->opening), reason,
            target->held.num);
    uct_varuna_held_clear(&target->held);
    target->broken = 1;
    if (!target->gap.watched) {
        target->gap.watched = 1;
        ucs_list_add_tail(&resp->received.gaps, &target->gap.list);
    }

    uct_varuna_retry_start(&target->gap.retry, 0, 0);
    uct_varuna_gap_tell(resp, target, uct_varuna_ctl_now(resp->ctl));
}

static void uct_varuna_gap_check(uct_varuna_responder_t *resp,
                                 uct_varuna_target_t *target, ucs_time_t now,
                                 int is_dry)
{
    if (target->broken) {
        uct_varuna_gap_tell(resp, target, now);
    } else if (UCS_CIRCULAR_COMPARE32(target->gap.end, <=, target->next_seq)) {
        uct_varuna_gap_forget(target);
    } else if (target->gap.next != target->next_seq) {
        target->gap.next  = target->next_seq;
        target->gap.since = now;
    } else if (is_dry &&
               (now - target->gap.since > resp->iface->config.packet_lifetime)) {
        uct_varuna_gap_break(resp, target,
                             "was acknowledged, but did not come");
    }
}

void uct_varuna_gap_progress(uct_varuna_responder_t *resp)
{
    ucs_time_t now;
    uct_varuna_target_t *target, *tmp;
    int is_dry;

    if (ucs_list_is_empty(&resp->received.gaps)) {
        return;
    }

    /* In this order: what comes before the clock is read is taken */
    now    = uct_varuna_ctl_now(resp->ctl);
    is_dry = (uct_varuna_lanes_progress(resp->iface) == 0);
    ucs_list_for_each_safe(target, tmp, &resp->received.gaps, gap.list) {
        uct_varuna_gap_check(resp, target, now, is_dry);
    }
}

int uct_varuna_gap_is_watching(uct_varuna_responder_t *resp)
{
    return !ucs_list_is_empty(&resp->received.gaps);
}
