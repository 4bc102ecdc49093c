/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * State FENCE: asks the responder for the evidence of a dead lane, and gives each
 * unfinished request its verdict. varuna_plan.c decides what the evidence means; this
 * file collects it and acts on it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_sm.h"
#include "varuna_ep.h"
#include "varuna_lane.h"
#include "varuna_ring.h"
#include "varuna_stat.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include "varuna_requester.h"
#include <uct/ib/varuna/ucx/varuna_tl.h>


uint32_t uct_varuna_ep_am_acked(const uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *req;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if (uct_varuna_req_info(req)->kind == UCT_VARUNA_OP_AM) {
            return req->am.hdr.seq;
        }
    }

    return ep->hot.am_seq;
}

/* @return Whether nothing of the dead lane, which is drained, matters to what follows. Its
 * writes are in memory; a read changes nothing, and the receiver drops a message that it has
 * got before. */
static int uct_varuna_ep_owes_nothing(const uct_varuna_ep_t *ep)
{
    uct_varuna_op_kind_t kind;
    uct_varuna_req_t *req;

    if ((ep->num_writes != ep->num_settled) || (ep->hot.num_amos > 0) ||
        !uct_varuna_devices_are_placed(ep, ep->num_writes)) {
        return 0;
    }

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        kind = uct_varuna_req_info(req)->kind;
        if ((kind != UCT_VARUNA_OP_GET) && (kind != UCT_VARUNA_OP_AM) &&
            (kind != UCT_VARUNA_OP_FLUSH)) {
            return 0;
        }
    }

    return 1;
}

int uct_varuna_ep_step_fence(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_ctl_fence_req_t req;

    /* The responder cannot fence a DC lane; what is still on the wire is gone
     * after the longest packet lifetime, and only then does the log count */
    req.newest = ((ep->next.lane.ep == NULL) || ep->next.failed) ? ep->lanes.epoch :
                 (ep->next.lane.epoch - 1);
    req.round  = uct_varuna_drain_round(ep, now);
    if ((ep->recovery.dead.kind == UCT_VARUNA_LANE_DC) &&
        (req.round == UCT_VARUNA_ROUND_EARLY) &&
        (ep->recovery.stuck || !uct_varuna_ep_owes_nothing(ep))) {
        return 1;
    }

    req.am_acked = uct_varuna_ep_am_acked(ep);
    uct_varuna_ep_ctl_request(ep, now, UCT_VARUNA_CTL_FENCE_REQ,
                              ep->recovery.dead.epoch, &req, sizeof(req));
    uct_varuna_rebuild_prepare(ep, now);
    uct_varuna_ep_check_give_up(ep, now);
    return 1;
}

static void uct_varuna_ep_fill_plan(uct_varuna_ep_t *ep,
                                    uct_varuna_plan_op_t *ops)
{
    uct_varuna_req_t *req;
    unsigned i = 0;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        ops[i].kind    = uct_varuna_req_info(req)->kind;
        ops[i].posted  = !!(req->flags & UCT_VARUNA_REQ_FLAG_POSTED);
        ops[i].fenced  = !!(req->flags & UCT_VARUNA_REQ_FLAG_FENCE);
        ops[i].logged  = !!(req->flags & UCT_VARUNA_REQ_FLAG_LOGGED);
        ops[i].log_sn  = req->log_sn;
        ops[i].end_psn = req->end_psn;
        ops[i].req     = req;
        ops[i].verdict = UCT_VARUNA_VERDICT_REPEAT;
        ++i;
    }
}

/* Give each request its verdict. @return UCS_OK, or why the endpoint fails. */
static ucs_status_t
uct_varuna_ep_apply_plan(uct_varuna_ep_t *ep, const uct_varuna_plan_op_t *ops,
                         const uct_varuna_evidence_t *evidence)
{
    ucs_status_t status = UCS_OK;
    ucs_status_t executed;
    uct_varuna_req_t *req;
    unsigned i = 0;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        req->flags &= ~UCT_VARUNA_REQ_FLAGS_OF_LANE;
        if ((ops[i].kind == UCT_VARUNA_OP_STEP) && ops[i].posted) {
            /* Its atomic knows what comes next: an occupy is asked after (rule 6
             * of docs/ATOMICS.md), the others are carried out again; and where,
             * since this lane may end at another NIC (rule 12) */
            req->flags |= UCT_VARUNA_REQ_FLAG_DONE | UCT_VARUNA_REQ_FLAG_LOST;
            ++i;
            continue;
        }

        switch (ops[i].verdict) {
        case UCT_VARUNA_VERDICT_EXECUTED:
            executed = uct_varuna_req_executed(req);
            status   = (executed == UCS_OK) ? status : executed;
            break;
        case UCT_VARUNA_VERDICT_LOST_DATA:
            ucs_error("ep %p: the peer's evidence contradicts itself: data may"
                      " be lost", ep);
            status = UCS_ERR_IO_ERROR;
            break;
        case UCT_VARUNA_VERDICT_AMBIGUOUS:
            req->flags           |= UCT_VARUNA_REQ_FLAG_AMBIGUOUS;
            ep->compare.wanted    = 1;
            ep->compare.unordered = evidence->unordered;
            break;
        default:
            if (ops[i].posted) {
                ep->stats.repeated_bytes += req->length;
            }
            break;
        }
        ++i;
    }

    return status;
}

static void uct_varuna_ep_add_result(uct_varuna_ep_t *ep,
                                     const uct_varuna_plan_result_t *result)
{
    /* Ambiguous ones are compared first */
    unsigned repeated = result->repeated - result->ambiguous;

    ep->recovery.result.executed  += result->executed;
    ep->recovery.result.lost      += result->lost;
    ep->recovery.result.repeated  += repeated;
    ep->recovery.result.ambiguous += result->ambiguous;
    ep->stats.executed            += result->executed;
    ep->stats.lost                += result->lost;
    ep->stats.repeated            += repeated;
    ep->stats.ambiguous           += result->ambiguous;
}

static int uct_varuna_drain_is_nic_gone(const uct_varuna_ep_t *ep);
static uct_varuna_drain_t uct_varuna_drain_fenced(uct_varuna_ep_t *ep, uint32_t flags,
                                                  uint32_t round, ucs_time_t now);

/* @return whether a lane that was not flushed has come to rest otherwise. */
static int
uct_varuna_ep_is_stuck_fenced(uct_varuna_ep_t *ep,
                              const uct_varuna_ctl_fence_rep_t *rep)
{
    /* If not, it is asked again */
    return uct_varuna_drain_fenced(ep, rep->flags, rep->round, ucs_get_time()) ==
           UCT_VARUNA_DRAIN_DONE;
}

/* How the other end of the dead lane placed what came early */
static uct_varuna_order_t uct_varuna_ep_rx_order(const uct_varuna_ep_t *ep,
                                                 const uct_varuna_ctl_fence_rep_t *rep)
{
    const uct_varuna_lane_t *dead = &ep->recovery.dead;
    unsigned nic                  = ep->peer->links[dead->link].nic % UCT_VARUNA_MAX_LINKS;
    int is_dc                     = (dead->kind == UCT_VARUNA_LANE_DC);

    if (is_dc ? (rep->dc_ordered & UCS_BIT(nic)) :
                (rep->flags & UCT_VARUNA_FENCE_FLAG_ORDERED)) {
        return UCT_VARUNA_ORDER_CERTAIN;
    }

    return (is_dc ? (rep->dc_unordered & UCS_BIT(nic)) :
                    (rep->flags & UCT_VARUNA_FENCE_FLAG_UNORDERED)) ?
           UCT_VARUNA_ORDER_NONE : UCT_VARUNA_ORDER_UNKNOWN;
}

/* What a FENCE_REP says, in @a ring and in @a evidence_p */
static void uct_varuna_ep_read_evidence(uct_varuna_ep_t *ep,
                                        const uct_varuna_ctl_fence_rep_t *rep,
                                        uint64_t *ring, uct_varuna_evidence_t *evidence_p)
{
    const uct_varuna_iface_t *iface   = uct_varuna_ep_iface(ep);
    const uct_varuna_lane_t *dead     = &ep->recovery.dead;
    uct_varuna_requester_peer_t *peer =
            uct_varuna_requester_peer(uct_varuna_ep_iface(ep), ep->peer);
    uct_varuna_order_t order;

    memcpy(ring, rep + 1, UCT_VARUNA_LOG_SIZE * sizeof(*ring));
    memset(evidence_p, 0, sizeof(*evidence_p));
    evidence_p->log       = ring;
    evidence_p->has_psn   = (rep->flags & UCT_VARUNA_FENCE_FLAG_PSN) && (dead->mtu != 0) &&
                            !(peer->no_psn & UCS_BIT(dead->link));
    evidence_p->epsn      = rep->epsn;
    evidence_p->acked_psn = ep->lane.acked_psn; /* Completions came after the failure too */
    evidence_p->next_psn  = dead->psn;
    order                 = uct_varuna_order_of_lane(
            iface->config.order, (uct_varuna_order_t)ep->recovery.order,
            uct_varuna_ep_rx_order(ep, rep));
    evidence_p->unordered = (order != UCT_VARUNA_ORDER_CERTAIN);
    evidence_p->overtakes = (order == UCT_VARUNA_ORDER_NONE);
}

/* The peer's NIC has reported a PSN that cannot be true, twice. */
static void uct_varuna_ep_distrust_psn(uct_varuna_ep_t *ep,
                                       const uct_varuna_evidence_t *evidence)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);

    uct_varuna_requester_peer(iface, ep->peer)->no_psn |= UCS_BIT(ep->recovery.dead.link);
    ucs_diag("ep %p: the peer's NIC on %s reports PSN %u, but the next one is one of "
             "%u to %u: its PSNs are not used any more", ep,
             uct_varuna_link_name(iface, ep->recovery.dead.link), evidence->epsn,
             (uint32_t)(evidence->acked_psn & UCS_MASK(24)),
             (uint32_t)(evidence->next_psn & UCS_MASK(24)));
}

/*
 * Give each request its verdict.
 *
 * @param [in]  audit_flags  UCT_VARUNA_AUDIT_xx: how the evidence was obtained.
 * @param [out] result       What was found.
 *
 * @return UCS_OK, UCS_INPROGRESS if nothing is decided yet, or why the endpoint fails.
 */
static ucs_status_t
uct_varuna_ep_decide(uct_varuna_ep_t *ep, const uct_varuna_evidence_t *evidence,
                     unsigned audit_flags, uct_varuna_plan_result_t *result)
{
    uct_varuna_plan_op_t *ops;
    uct_varuna_audit_draft_t draft;
    ucs_status_t status;

    ops = ucs_malloc((ep->hot.num_reqs + 1) * sizeof(*ops), "varuna_plan");
    if (ops == NULL) {
        return UCS_INPROGRESS;
    }

    uct_varuna_ep_fill_plan(ep, ops);
    uct_varuna_plan_make(ops, ep->hot.num_reqs, evidence, result);
    ucs_debug("rc_varuna: ep %p vqp=%u: verdict on epoch=%u: %u requests, log up "
              "to %u, next psn %u; the peer: %s, expected psn %s%u: "
              "executed=%u lost=%u repeated=%u ambiguous=%u", ep, ep->id,
              ep->recovery.dead.epoch, ep->hot.num_reqs,
              ep->hot.log_next - 1, ep->recovery.dead.psn,
              (audit_flags & UCT_VARUNA_AUDIT_FENCED) ? "log fenced" :
              (audit_flags & UCT_VARUNA_AUDIT_UNFENCED) ? "not asked" : "log unfenced",
              evidence->has_psn ? "" : "unknown ", evidence->epsn,
              result->executed, result->lost, result->repeated, result->ambiguous);
    if ((result->doubt != UCT_VARUNA_DOUBT_NONE) &&
        !(audit_flags & UCT_VARUNA_AUDIT_WAITED)) {
        ucs_free(ops);
        return UCS_INPROGRESS; /* It is read again after the longest packet lifetime */
    }

    uct_varuna_ep_add_result(ep, result);
    uct_varuna_audit_begin(ep, evidence, audit_flags, ops, result->doubt, &draft);
    status = uct_varuna_ep_apply_plan(ep, ops, evidence);
    uct_varuna_audit_commit(ep, status, &draft);
    ucs_free(ops);
    return status;
}

/* The dead lane is over. */
static void uct_varuna_ep_end_decision(uct_varuna_ep_t *ep, ucs_status_t status)
{
    if (status != UCS_OK) {
        uct_varuna_ep_raise_fatal(ep, status);
        return;
    }

    uct_varuna_lane_destroy(ep, &ep->recovery.dead);
    uct_varuna_compare_abort(ep);
    ep->recovery.stuck = 0;
    uct_varuna_ep_raise(ep, UCT_VARUNA_EP_EVENT_DECIDED);
}

/* What it was that took the time */
static uct_varuna_fenced_t
uct_varuna_ep_fenced(const uct_varuna_ep_t *ep, const uct_varuna_ctl_fence_rep_t *rep,
                     const uct_varuna_plan_result_t *result)
{
    if (ep->recovery.dead.kind == UCT_VARUNA_LANE_DC) {
        return UCT_VARUNA_FENCED_DC;
    }

    if (ep->recovery.stuck && !uct_varuna_drain_is_nic_gone(ep) &&
        (ep->recovery.fenced_at != 0)) {
        return UCT_VARUNA_FENCED_HUNG;
    }

    if (rep->round >= UCT_VARUNA_ROUND_ENDED) {
        return UCT_VARUNA_FENCED_DEAD;
    }

    if (!(rep->flags & UCT_VARUNA_FENCE_FLAG_RESET)) {
        return ((rep->flags & UCT_VARUNA_FENCE_FLAG_GONE) || ep->recovery.stuck) ?
               UCT_VARUNA_FENCED_DEAD : !(rep->flags & UCT_VARUNA_FENCE_FLAG_ERR) ? UCT_VARUNA_FENCED_HUNG :
               UCT_VARUNA_FENCED_OTHER;
    }

    return ((result->doubt != UCT_VARUNA_DOUBT_NONE) ||
            !(rep->flags & UCT_VARUNA_FENCE_FLAG_QP)) ? UCT_VARUNA_FENCED_OTHER :
           UCT_VARUNA_FENCED_RESET;
}

void uct_varuna_ep_handle_fence_rep(uct_varuna_ep_t *ep,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const uct_varuna_ctl_fence_rep_t *rep)
{
    uint64_t ring[UCT_VARUNA_LOG_SIZE];
    uct_varuna_evidence_t evidence;
    uct_varuna_plan_result_t result;
    unsigned audit_flags;
    ucs_status_t status;

    if ((ep->hot.state != UCT_VARUNA_EP_FENCE) ||
        (hdr->epoch != ep->recovery.dead.epoch)) {
        return; /* A repeated answer */
    }

    if (rep->log_size != UCT_VARUNA_LOG_SIZE) {
        uct_varuna_ep_raise_fatal(ep, UCS_ERR_INVALID_PARAM);
        return;
    }

    uct_varuna_ep_note_life(ep);
    if (!ep->recovery.stuck && uct_varuna_ep_decide_without_fence(ep)) {
        uct_varuna_ep_note_life(ep); /* That was the question */
        return;
    }

    if (ucs_unlikely(ep->recovery.stuck) && !uct_varuna_ep_is_stuck_fenced(ep, rep)) {
        return;
    }

    /* The responder could not stop its QP (its NIC is dead?): only time can.
     * The request goes out again, and the log counts if it was read after the
     * time was over: an answer may have been under way for long */
    if (!(rep->flags & UCT_VARUNA_FENCE_FLAG_QP) && (rep->round == 0)) {
        return;
    }

    uct_varuna_ep_read_evidence(ep, rep, ring, &evidence);
    audit_flags = ((rep->flags & UCT_VARUNA_FENCE_FLAG_QP) ? UCT_VARUNA_AUDIT_FENCED : 0) |
                  ((rep->round > 0) ? UCT_VARUNA_AUDIT_WAITED : 0);
    status = uct_varuna_ep_decide(ep, &evidence, audit_flags, &result);
    if (status == UCS_INPROGRESS) {
        return; /* Asked again */
    }

    if (result.doubt == UCT_VARUNA_DOUBT_PSN) {
        uct_varuna_ep_distrust_psn(ep, &evidence);
    }

    uct_varuna_stat_fenced(ep, uct_varuna_ep_fenced(ep, rep, &result));
    ep->num_settled = ep->num_writes;
    uct_varuna_devices_settle(ep);
    uct_varuna_ep_forget_left(ep);
    uct_varuna_ep_end_decision(ep, status);
}

/* --- Without a fence --- */

void uct_varuna_ep_forget_left(uct_varuna_ep_t *ep)
{
    uct_varuna_lane_t left = {
        .ep   = ep->recovery.left,
        .kind = ep->recovery.left_kind
    };

    uct_varuna_lane_destroy(ep, &left);
    ep->recovery.left = NULL;
}

int uct_varuna_ep_decide_without_fence(uct_varuna_ep_t *ep)
{
    static const uint64_t no_log[UCT_VARUNA_LOG_SIZE];
    uct_varuna_evidence_t evidence = {
        .log       = no_log,
        .acked_psn = ep->lane.acked_psn,
        .next_psn  = ep->recovery.dead.psn
    };
    uct_varuna_plan_result_t result;
    ucs_status_t status;

    /* After a lane that was left without a fence, and without a sign of life since, the next
     * one is fenced. That asks whether the peer lives; if not, it fails after GIVE_UP */
    if (ep->recovery.unproven || !uct_varuna_ep_owes_nothing(ep)) {
        return 0;
    }

    status = uct_varuna_ep_decide(ep, &evidence, UCT_VARUNA_AUDIT_UNFENCED, &result);
    if (status == UCS_INPROGRESS) {
        return 0;
    }

    uct_varuna_stat_fenced(ep, UCT_VARUNA_FENCED_NOT);
    ep->recovery.unfenced = 1;
    ep->recovery.unproven = 1;
    if (ep->recovery.dead.kind != UCT_VARUNA_LANE_DC) {
        /* The one before was over when this one was connected */
        uct_varuna_ep_forget_left(ep);
        ep->recovery.left      = ep->recovery.dead.ep;
        ep->recovery.left_kind = ep->recovery.dead.kind;
        ep->recovery.dead.ep   = NULL;
    }

    uct_varuna_ep_end_decision(ep, status);
    return 1;
}

/* --- Draining --- */

/* Waits for a failed lane to come to rest.
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
 * driver has taken it away, so that its commands fail (varuna_health.h); what it has sent
 * before lives for PACKET_LIFETIME, unless the responder's queue pair is in RESET. */

/* @return Whether the system says that the NIC of ep->recovery.dead is gone. */
static int uct_varuna_drain_is_nic_gone(const uct_varuna_ep_t *ep)
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

    /* A lane that was destroyed had a NIC whose life ended so long ago */
    return (ep->recovery.stuck &&
            ((ep->recovery.dead.ep == NULL) ||
             (uct_varuna_drain_is_nic_gone(ep) &&
              uct_varuna_drain_has_ended(ep, now, iface->config.packet_lifetime)))) ?
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

/* An answer to FENCE_REQ has come for a lane that was not flushed. The lane counts as
 * at rest when the responder has stopped its end, so that nothing more is executed or
 * answered, *and* earlier answers have left the network, or our NIC is gone.
 *
 * @param [in] flags  UCT_VARUNA_FENCE_FLAG_xx of the answer.
 * @param [in] round  Of the request that was answered, an uct_varuna_round_t: the
 *                    responder has read the log after that. */
static uct_varuna_drain_t uct_varuna_drain_fenced(uct_varuna_ep_t *ep, uint32_t flags,
                                                  uint32_t round, ucs_time_t now)
{
    uct_varuna_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                               uct_varuna_iface_t);

    if (ep->recovery.dead.ep == NULL) {
        return (((flags & UCT_VARUNA_FENCE_FLAG_RESET) && !uct_varuna_drain_awaits_data(ep)) ||
                (round >= UCT_VARUNA_ROUND_ENDED)) ? UCT_VARUNA_DRAIN_DONE :
                                                     UCT_VARUNA_DRAIN_WAIT;
    }

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
