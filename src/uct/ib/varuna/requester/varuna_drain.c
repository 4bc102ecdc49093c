/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Waits for a failed lane to come to rest. See varuna_drain.h.
 *
 * What a lane that is not at rest can still do, and what rules it out:
 *
 *   it sends what waits in its queue     the responder's queue pair is in ERR
 *   the data of an answer is written     none is sent after that, and those sent
 *   into memory of ours                  before live for PACKET_LIFETIME at most, if our
 *                                        queue pair has left RTS: a NIC that hangs may
 *                                        hold one that has arrived
 *
 * A DC lane has no end at the responder that could be stopped. A NIC of which the
 * system says that it is gone (DEVICE_FATAL) neither sends nor writes any more once the
 * driver has taken it away, so that its commands fail (varuna_md_end.h); what it has sent
 * before lives for PACKET_LIFETIME, unless the responder's queue pair is in RESET.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_drain.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/md/varuna_md_cmd.h>
#include <uct/ib/varuna/md/varuna_md_end.h>
#include "varuna_requester.h"
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include "varuna_ep_event.h"
#include "varuna_req.h"
#include "varuna_ring.h"

int uct_varuna_drain_is_nic_gone(const uct_varuna_ep_t *ep)
{
    const uct_varuna_iface_t *iface =
            ucs_derived_of(ep->super.super.iface, uct_varuna_iface_t);

    return uct_varuna_ctl_is_nic_gone(iface->ctl, ep->recovery.dead.link);
}

/* @return Whether the NIC that is gone has been at rest for so long */
static int uct_varuna_drain_has_ended(const uct_varuna_ep_t *ep, ucs_time_t now,
                                      ucs_time_t time)
{
    const uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);

    return uct_varuna_md_is_at_rest(iface->md, iface->links[ep->recovery.dead.link].nic, now,
                                    time);
}

uint32_t uct_varuna_drain_round(const uct_varuna_ep_t *ep, ucs_time_t now)
{
    const uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);

    if (now < (ep->sm.since + iface->config.packet_lifetime)) {
        return UCT_VARUNA_ROUND_EARLY;
    }

    return (ep->recovery.stuck && uct_varuna_drain_is_nic_gone(ep) &&
            uct_varuna_drain_has_ended(ep, now, iface->config.packet_lifetime)) ?
           UCT_VARUNA_ROUND_ENDED : UCT_VARUNA_ROUND_LATE;
}

/* @return Whether the lane's completion queue was polled until it was empty, at @a since
 * or later. If not, ask for that. Messages may arrive faster than they are polled, so
 * the caller must limit how long it waits. */
static int uct_varuna_drain_is_dry(uct_varuna_iface_t *iface,
                                   const uct_varuna_lane_t *dead,
                                   ucs_time_t since)
{
    uct_varuna_lane_iface_t *lane = &iface->links[dead->link].lanes[dead->kind];

    if (lane->dry_at >= since) {
        return 1;
    }

    lane->want_dry  = 1;
    iface->want_dry = 1;
    return 0;
}

uct_varuna_drain_t uct_varuna_drain_check(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                               uct_varuna_iface_t);
    ucs_time_t timeout        = iface->config.drain_timeout;
    ucs_time_t deadline;
    int is_gone;

    if (uct_varuna_tl_drain(ep->recovery.dead.ep, ep->recovery.dead.kind)) {
        return UCT_VARUNA_DRAIN_DONE;
    }

    is_gone  = uct_varuna_drain_is_nic_gone(ep);
    if (!is_gone && (now >= (ep->sm.since + iface->config.ctl_timeout))) {
        /* A NIC that works would have flushed it. If it is dead, that is known the next time */
        (void)uct_varuna_drain_has_ended(ep, now, 0);
    }

    /* While the application computed, flushed requests were not polled */
    deadline = now - (uct_varuna_requester(iface)->scan.clock - ep->sm.clock) +
               (is_gone ? 0 : timeout);
    if ((now < deadline) ||
        (!uct_varuna_drain_is_dry(iface, &ep->recovery.dead, deadline) &&
         (now < (deadline + timeout)))) {
        return UCT_VARUNA_DRAIN_WAIT;
    }

    ucs_info("rc_varuna: vqp=%u: %s is gone or hangs: the %s lane on it was not "
             "flushed (%s)", ep->id,
             uct_varuna_link_name(iface, ep->recovery.dead.link),
             (ep->recovery.dead.kind == UCT_VARUNA_LANE_DC) ? "DC" : "RC",
             is_gone ? "the system says so" : "drain timeout");
    return (is_gone || (ep->recovery.dead.kind != UCT_VARUNA_LANE_DC)) ?
           UCT_VARUNA_DRAIN_STUCK : UCT_VARUNA_DRAIN_HOPELESS;
}

/* @return Whether something on the failed lane has asked for data. */
static int uct_varuna_drain_awaits_data(const uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *req;

    if (ep->compare.read != NULL) {
        return 1;
    }

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if ((req->flags & UCT_VARUNA_REQ_FLAG_POSTED) &&
            uct_varuna_req_info(req)->has_answer) {
            return 1;
        }
    }

    return 0;
}

static int uct_varuna_drain_is_nic_hung(const uct_varuna_ep_t *ep)
{
    const uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_cmds_t *cmds         = uct_varuna_md_cmds(
            iface->md, iface->links[ep->recovery.dead.link].nic);

    return (cmds != NULL) && uct_varuna_cmds_is_hung(cmds);
}

/* @return Whether an answer which has arrived may still be written into memory of ours. If it
 * is read once more, that would destroy what the repetition has read, or what the user has
 * written into its buffer since. */
static int uct_varuna_drain_may_receive(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (!ep->recovery.running || !uct_varuna_drain_awaits_data(ep)) {
        return 0;
    }

    /* Do not let this thread wait for a NIC that is known to take no commands */
    if (uct_varuna_drain_is_nic_hung(ep) ||
        (uct_varuna_tl_stop(ep->recovery.dead.ep, ep->recovery.dead.kind) != UCS_OK)) {
        return 1;
    }

    ep->recovery.running   = 0;
    ep->recovery.fenced_at = now; /* What it holds may take as long as a packet */
    return 0;
}

uct_varuna_drain_t uct_varuna_drain_fenced(uct_varuna_ep_t *ep, uint32_t flags,
                                           uint32_t round, ucs_time_t now)
{
    uct_varuna_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                               uct_varuna_iface_t);

    if (uct_varuna_tl_drain(ep->recovery.dead.ep, ep->recovery.dead.kind)) {
        return UCT_VARUNA_DRAIN_DONE; /* It came to rest after all */
    }

    if (uct_varuna_drain_is_nic_gone(ep)) {
        /* If the responder's end is in RESET, nothing that it has sent is executed. It may
         * write what it has received, because commands fail before the driver resets it.
         * The answer's round, not the present time: the log was read when that was so */
        return (((flags & UCT_VARUNA_FENCE_FLAG_RESET) &&
                 uct_varuna_drain_has_ended(ep, now, 0) &&
                 !uct_varuna_drain_awaits_data(ep)) ||
                (round >= UCT_VARUNA_ROUND_ENDED)) ? UCT_VARUNA_DRAIN_DONE :
                                                     UCT_VARUNA_DRAIN_WAIT;
    }

    /* It seems to hang. If it is dead, a later call takes the branch above */
    (void)uct_varuna_drain_has_ended(ep, now, 0);

    /* The responder's NIC may be busy, and another answer may say otherwise: it is asked
     * again, until GIVE_UP. Until it is fenced, nothing is proved */
    if (!(flags & UCT_VARUNA_FENCE_FLAG_ERR)) {
        return UCT_VARUNA_DRAIN_WAIT;
    }

    /* Whatever our NIC still sends is not executed, and what it still receives changes no
     * memory of ours */
    if ((flags & UCT_VARUNA_FENCE_FLAG_QP) && !uct_varuna_drain_awaits_data(ep)) {
        return UCT_VARUNA_DRAIN_DONE;
    }

    if (ep->recovery.fenced_at == 0) {
        ep->recovery.fenced_at = now;
    }

    if (uct_varuna_drain_may_receive(ep, now)) {
        ucs_debug("rc_varuna: ep %p vqp=%u: %s may still write what a read on it waits for",
                  ep, ep->id, uct_varuna_link_name(iface, ep->recovery.dead.link));
        return UCT_VARUNA_DRAIN_WAIT;
    }

    return (now < (ep->recovery.fenced_at + iface->config.packet_lifetime)) ?
           UCT_VARUNA_DRAIN_WAIT : UCT_VARUNA_DRAIN_DONE;
}

void uct_varuna_drain_give_up(uct_varuna_ep_t *ep)
{
    ucs_error("ep %p: %s stopped working, and nothing proves that its queue pair "
              "has: nothing can be repeated safely", ep,
              uct_varuna_link_name(uct_varuna_ep_iface(ep),
                                   ep->recovery.dead.link));
    uct_varuna_ep_raise_fatal(ep, UCS_ERR_ENDPOINT_TIMEOUT);
}
