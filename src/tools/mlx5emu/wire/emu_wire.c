/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_wire.h. Locks: the requester's req_lock may be held, no responder's.
 */

#include "emu_wire.h"
#include "emu_wire_show.h"
#include "../core/emu_fabric.h"
#include "../core/emu_mem.h"
#include "../core/emu_nic.h"
#include "../core/emu_pipe.h"
#include "../core/emu_port.h"
#include "../core/emu_quirk.h"
#include "../core/emu_svc.h"
#include "../fault/emu_fault.h"
#include "../trace/emu_trace.h"

#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

/* A packet that arrives later; owns its payload */
typedef struct emu_wire_late {
    const emu_wire_ends_t *ends;
    emu_pkt_t pkt;
    emu_rsp_t rsp;           /* what is late if is_rsp */
    int       is_rsp;
    emu_fault_wait_t wait;   /* what it waits for beside the time, if any ... */
    uint64_t  wait_begin;    /* ... and since when */
    uint64_t  due_ns;        /* when its timer ends */
    emu_sge_t sge;
    uint8_t   payload[];
} emu_wire_late_t;

/* How often a packet that waits for an event looks for it */
#define EMU_WIRE_POLL_NS 200000ul

static emu_port_t *emu_wire_src(const emu_pkt_t *pkt)
{
    return &emu_fabric->ports[pkt->src_port];
}

static emu_port_t *emu_wire_dst(const emu_pkt_t *pkt)
{
    return emu_route_port(pkt->dst_port);
}

/* As it is now: the time decides about a link that flaps */
static emu_link_state_t emu_wire_link(emu_port_t *port)
{
    if (emu_unlikely(__atomic_load_n(&port->flap_period_ns,
                                     __ATOMIC_RELAXED) != 0)) {
        emu_link_tick(port);
    }
    return __atomic_load_n(&port->link_state, __ATOMIC_ACQUIRE);
}

static int emu_wire_has_live_nic(const emu_port_t *port)
{
    return (__atomic_load_n(&port->nic_gen, __ATOMIC_ACQUIRE) & 1) == 0;
}

static int emu_wire_is_alive(const emu_port_t *port)
{
    return emu_likely(emu_wire_has_live_nic(port)) ||
           emu_nic_lingers(port->index,
                           __atomic_load_n(&port->nic_gen,
                                           __ATOMIC_ACQUIRE) - 1);
}

/* Update a flapping link before the path of a packet is chosen */
static emu_port_t *emu_wire_carrier(emu_port_t *port)
{
    if (emu_unlikely(emu_port_is_bond(port))) {
        (void)emu_wire_link(port);
        (void)emu_wire_link(port + 1);
    }
    return emu_port_carrier(port);
}

static int emu_wire_is_up(emu_port_t *port)
{
    emu_port_t *carrier;

    if ((port == NULL) || !emu_wire_is_alive(port)) {
        return 0;
    }

    carrier = emu_wire_carrier(port);
    return (carrier != NULL) && (emu_wire_link(carrier) == EMU_LINK_UP);
}

/* Count the packets of a bond that its second port carries */
static void emu_wire_count_bond(emu_port_t *port, const emu_pkt_t *pkt)
{
    if (emu_unlikely(emu_port_is_bond(port)) &&
        (emu_port_carrier(port) != port)) {
        emu_quirk_act(port->index, EMU_QUIRK_BOND, pkt->src_qpn, pkt->op,
                      pkt->psn);
    }
}

/* A port sends to itself within the NIC: a link that loses packets does not
 * matter. But a port that is down sends nothing, unless it does not know that. */
static int emu_wire_works(emu_port_t *port, const emu_pkt_t *pkt)
{
    if (emu_unlikely(pkt->src_port == pkt->dst_port)) {
        return emu_wire_is_alive(port) &&
               ((emu_wire_link(port), !emu_port_is_down(port)) ||
                emu_quirk_on(port->index, EMU_QUIRK_FIXED_PORT));
    }
    return emu_wire_is_up(port);
}

/* What has left its port does not need it any more: the switch delivers it. Responses go
 * the other way. */
static int emu_wire_leaves(const emu_pkt_t *pkt)
{
    return emu_wire_works(emu_wire_src(pkt), pkt);
}

int emu_wire_reaches(const emu_pkt_t *pkt)
{
    return emu_wire_works(emu_wire_dst(pkt), pkt);
}

int emu_wire_passes(const emu_pkt_t *pkt)
{
    return emu_wire_leaves(pkt) && emu_wire_reaches(pkt);
}

/* In a fabric that has time, rules see a packet where it arrives, so it has passed its
 * sender's link. But a rule that cuts this link loses what arrives from then on. */
static int emu_wire_has_left(const emu_port_t *port)
{
    return emu_pipe_is_on() &&
           !__atomic_load_n(&port->cut_by_rule, __ATOMIC_ACQUIRE);
}

void emu_wire_lost(const emu_pkt_t *pkt, emu_counter_t why)
{
    EMU_COUNT(emu_wire_src(pkt), pkt->qp_type, why, pkt->num_pkts);
}

/* A switch discards what is longer than the port takes at which it would leave */
static int emu_wire_fits(const emu_pkt_t *pkt)
{
    const emu_port_t *dst = emu_wire_dst(pkt);

    return (dst == NULL) || (emu_min(pkt->length, pkt->mtu) <= dst->mtu);
}

/* Whether the subnet has a lane for the packet's service level */
static int emu_wire_has_lane(const emu_pkt_t *pkt)
{
    const emu_port_t *src = emu_wire_src(pkt);

    if (emu_likely(!emu_quirk_on(src->index, EMU_QUIRK_DEAD_SL)) ||
        (pkt->src_port == pkt->dst_port) || emu_port_is_roce(src) ||
        (pkt->sl < emu_quirk_value(src->index, EMU_QUIRK_DEAD_SL, 0))) {
        return 1;
    }

    emu_quirk_act(src->index, EMU_QUIRK_DEAD_SL, pkt->src_qpn, pkt->op, pkt->sl);
    emu_wire_lost(pkt, EMU_CNT_DROPS_LINK);
    return 0;
}

/* The last packet of a run may be short enough. @return 0: nothing is left */
static int emu_wire_squeeze(emu_pkt_t *pkt)
{
    const emu_port_t *dst = emu_wire_dst(pkt);
    const uint32_t num    = pkt->num_pkts;
    uint32_t num_lost     = num;
    emu_pkt_t last;

    if (emu_wire_fits(pkt)) {
        return 1;
    }

    if ((num > 1) && (pkt->length - (num - 1) * pkt->mtu <= dst->mtu)) {
        emu_pkt_part(pkt, --num_lost, &last);
        *pkt = last;
    }
    EMU_COUNT(emu_wire_src(pkt), pkt->qp_type, EMU_CNT_DROPS_MTU, num_lost);
    return num_lost < num;
}

/* Responses */

void emu_wire_count_rsp(const emu_pkt_t *pkt, const emu_rsp_t *rsp)
{
    emu_port_t *port = emu_wire_dst(pkt);

    switch (rsp->type) {
    case EMU_RSP_ACK:
        EMU_COUNT(port, pkt->qp_type, EMU_CNT_TX_ACKS, 1);
        break;
    case EMU_RSP_READ:
    case EMU_RSP_ATOMIC:
        EMU_COUNT(port, pkt->qp_type, EMU_CNT_TX_RESP_PKTS, rsp->num_psn);
        break;
    default:
        EMU_COUNT(port, pkt->qp_type, EMU_CNT_TX_NAKS, 1);
        break;
    }
}

void emu_wire_lost_reply(const emu_pkt_t *pkt, const emu_rsp_t *rsp,
                         emu_counter_t why)
{
    EMU_COUNT(emu_wire_dst(pkt), pkt->qp_type, why, 1);
    emu_trace_set_ack(emu_fabric->trace, rsp->trace_seq, EMU_TRACE_ACK_LOST);
}

int emu_wire_reply_fits(const emu_pkt_t *pkt, const emu_rsp_t *rsp)
{
    if (emu_likely(emu_min(rsp->length, rsp->mtu) <= emu_wire_src(pkt)->mtu)) {
        return 1;
    }

    emu_wire_lost_reply(pkt, rsp, EMU_CNT_DROPS_MTU);
    return 0;
}

static void emu_wire_late_func(void *arg, uint64_t cookie);

/* One packet of a response, with data of its own */
static int emu_wire_copy_rsp(const emu_pkt_t *pkt, const emu_rsp_t *rsp,
                             uint32_t index, emu_rsp_t *copy_p)
{
    uint32_t offset  = index * pkt->mtu;
    struct iovec src = { (void*)(uintptr_t)(rsp->addr + offset), 0 };
    struct iovec dst = { NULL, 0 };

    *copy_p    = *rsp;
    copy_p->mr = NULL;
    if (rsp->type != EMU_RSP_READ) {
        return 1;
    }

    copy_p->psn     = emu_psn_add(rsp->psn, index);
    copy_p->num_psn = 1;
    copy_p->length  = emu_min(rsp->length - offset, pkt->mtu);
    copy_p->copy    = malloc(emu_max(copy_p->length, 1));
    src.iov_len     = copy_p->length;
    dst.iov_base    = copy_p->copy;
    dst.iov_len     = copy_p->length;
    if ((copy_p->copy == NULL) ||
        (emu_mem_get(rsp->proc, &dst, 1, &src, 1, copy_p->length) != 0)) {
        free(copy_p->copy);
        return 0;
    }
    return 1;
}

/* Have a packet arrive when the verdict says. @return 0 or -ENOMEM */
static int emu_wire_postpone(emu_wire_late_t *late,
                             const emu_fault_verdict_t *verdict)
{
    uint64_t delay_ns = emu_scaled_ns(verdict->value_ns);

    late->wait = verdict->wait;
    if (late->wait.until != EMU_FAULT_UNTIL_NONE) {
        late->wait_begin = emu_fault_wait_begin(&late->wait,
                                                late->pkt.src_qpn);
        delay_ns         = EMU_WIRE_POLL_NS;
    }
    late->due_ns = emu_now_ns() + delay_ns;
    return emu_svc_add(late->due_ns, emu_wire_late_func, late, 0);
}

/* A rule says how late a packet is. A process that was stopped must not make it later
 * than packets get: programs rely on that. */
static int emu_wire_is_too_late(const emu_wire_late_t *late)
{
    return emu_now_ns() > late->due_ns + emu_pipe_lifetime_ns();
}

static void emu_wire_discard_late(emu_wire_late_t *late)
{
    if (late->is_rsp) {
        emu_wire_lost_reply(&late->pkt, &late->rsp, EMU_CNT_DROPS_QUEUE);
        emu_rsp_release(&late->rsp);
    } else {
        emu_wire_lost(&late->pkt, EMU_CNT_DROPS_QUEUE);
    }
    free(late);
}

/* Have one packet of a response arrive later; it is lost if memory is short */
static void emu_wire_delay_rsp(const emu_wire_ends_t *ends,
                               const emu_pkt_t *pkt, const emu_rsp_t *rsp,
                               uint32_t index,
                               const emu_fault_verdict_t *verdict)
{
    emu_wire_late_t *late = calloc(1, sizeof(*late));

    if ((late == NULL) || !emu_wire_copy_rsp(pkt, rsp, index, &late->rsp)) {
        free(late);
        return;
    }

    late->ends        = ends;
    late->pkt         = *pkt;
    late->pkt.sge     = NULL;
    late->pkt.num_sge = 0;
    late->is_rsp      = 1;
    if (emu_wire_postpone(late, verdict) != 0) {
        emu_rsp_release(&late->rsp);
        free(late);
    }
}

/* Only the first packets of a read response arrive in order; the requester
 * asks again for the others: at once if it sees later ones (can_tell) */
static int emu_wire_cut_rsp(const emu_pkt_t *pkt, emu_rsp_t *rsp,
                            uint32_t num_pkts, int can_tell)
{
    rsp->has_gap = can_tell && (num_pkts + 1 < rsp->num_psn);
    if ((num_pkts == 0) && !rsp->has_gap) {
        emu_rsp_release(rsp);
        return 0;
    }

    rsp->num_psn = num_pkts;
    rsp->length  = emu_min(rsp->length, num_pkts * pkt->mtu);
    return 1;
}

emu_wire_fate_t emu_wire_judge_rsp(const emu_wire_ends_t *ends,
                                   const emu_pkt_t *pkt, const emu_rsp_t *rsp,
                                   uint32_t index, uint32_t pkt_no,
                                   uint32_t num)
{
    emu_fault_verdict_t verdict;

    emu_wire_show(pkt, EMU_FAULT_POINT_ACK, pkt_no, num, &verdict);
    if (!emu_wire_has_left(emu_wire_dst(pkt)) && !emu_wire_reaches(pkt)) {
        emu_wire_lost_reply(pkt, rsp, EMU_CNT_DROPS_LINK);
        return EMU_WIRE_CUT;
    }

    switch (verdict.fate) {
    case EMU_FAULT_ACTION_DROP:
        emu_wire_lost_reply(pkt, rsp, EMU_CNT_DROPS_FAULT);
        return EMU_WIRE_TAKEN;
    case EMU_FAULT_ACTION_DELAY:
        emu_trace_set_ack(emu_fabric->trace, rsp->trace_seq,
                          EMU_TRACE_ACK_DELAYED);
        emu_wire_delay_rsp(ends, pkt, rsp, index, &verdict);
        return EMU_WIRE_TAKEN;
    case EMU_FAULT_ACTION_DUP:
        emu_wire_delay_rsp(ends, pkt, rsp, index, &verdict);
        break;
    default:
        break;
    }

    if (!emu_wire_leaves(pkt)) {
        emu_wire_lost_reply(pkt, rsp, EMU_CNT_DROPS_LINK);
        return EMU_WIRE_CUT;
    }
    return EMU_WIRE_PASSES;
}

/* Show each packet of a response to the rules */
static int emu_wire_fault_rsp(const emu_wire_ends_t *ends, const emu_pkt_t *pkt,
                              emu_rsp_t *rsp)
{
    uint32_t num = (rsp->type == EMU_RSP_READ) ? rsp->num_psn : 1;
    emu_wire_fate_t fate;
    uint32_t i;

    for (i = 0; i < num; i++) {
        fate = emu_wire_judge_rsp(ends, pkt, rsp, i, i + 1, num);
        if (fate != EMU_WIRE_PASSES) {
            return emu_wire_cut_rsp(pkt, rsp, i, fate == EMU_WIRE_TAKEN);
        }
    }

    emu_trace_set_ack(emu_fabric->trace, rsp->trace_seq, EMU_TRACE_ACK_SENT);
    return 1;
}

/* The way back. @return whether it arrived; otherwise it is released */
static int emu_wire_reply(const emu_wire_ends_t *ends, const emu_pkt_t *pkt,
                          emu_rsp_t *rsp)
{
    if (emu_fault_active()) {
        emu_wire_show_exec(pkt, rsp);
    }

    emu_wire_count_rsp(pkt, rsp);
    if (emu_unlikely(!emu_wire_reply_fits(pkt, rsp))) {
        emu_rsp_release(rsp);
        return 0;
    }

    if (emu_fault_active()) {
        return emu_wire_fault_rsp(ends, pkt, rsp);
    }

    if (emu_unlikely(!emu_wire_passes(pkt))) {
        emu_wire_lost_reply(pkt, rsp, EMU_CNT_DROPS_LINK);
        emu_rsp_release(rsp);
        return 0;
    }
    emu_trace_set_ack(emu_fabric->trace, rsp->trace_seq, EMU_TRACE_ACK_SENT);
    return 1;
}

/* Requests */

static void emu_wire_lost_on_link(const emu_pkt_t *pkt)
{
    emu_wire_lost(pkt, (pkt->dst_port == EMU_ROUTE_NONE) ? EMU_CNT_DROPS_DEST :
                                                           EMU_CNT_DROPS_LINK);
}

int emu_wire_arrive(const emu_wire_ends_t *ends, emu_pkt_t *pkt,
                    emu_rsp_t *rsp_p)
{
    if (emu_unlikely(!emu_wire_reaches(pkt))) {
        emu_wire_lost_on_link(pkt);
        return 0;
    }

    if (pkt->src_port != pkt->dst_port) {
        emu_wire_count_bond(emu_wire_dst(pkt), pkt);
    }

    if (emu_unlikely(!emu_wire_squeeze(pkt))) {
        return 0;
    }

    if (!ends->request(pkt, rsp_p)) {
        if (emu_fault_active()) {
            emu_wire_show_exec(pkt, rsp_p); /* A datagram */
        }
        return 0;
    }

    return emu_wire_reply(ends, pkt, rsp_p);
}

static void emu_wire_delay_pkt(const emu_wire_ends_t *ends,
                               const emu_pkt_t *pkt,
                               const emu_fault_verdict_t *verdict)
{
    emu_wire_late_t *late = calloc(1, sizeof(*late) + pkt->length);

    if (late == NULL) {
        return;
    }

    late->ends        = ends;
    late->pkt         = *pkt;
    late->pkt.sge     = &late->sge;
    late->pkt.num_sge = 1;
    late->pkt.offset  = 0;
    late->sge.inl     = late->payload;
    late->sge.length  = pkt->length;
    emu_pkt_copy_out(pkt, 0, late->payload, pkt->length);
    if (emu_wire_postpone(late, verdict) != 0) {
        free(late);
    }
}

/* Service thread */
static void emu_wire_late_func(void *arg, uint64_t cookie)
{
    emu_wire_late_t *late = arg;
    emu_rsp_t rsp;

    (void)cookie;
    if (emu_wire_is_too_late(late)) {
        emu_wire_discard_late(late);
        return;
    }

    if ((late->wait.until != EMU_FAULT_UNTIL_NONE) &&
        !emu_fault_wait_over(&late->wait, late->pkt.src_qpn,
                             late->wait_begin)) {
        late->due_ns = emu_now_ns() + EMU_WIRE_POLL_NS;
        if (emu_svc_add(late->due_ns, emu_wire_late_func, late, 0) == 0) {
            return;
        }
    }

    if (!late->is_rsp) {
        late->ends->response(&late->pkt, emu_wire_arrive(late->ends, &late->pkt,
                                                         &rsp) ? &rsp : NULL);
    } else if (emu_wire_leaves(&late->pkt)) {
        late->ends->response(&late->pkt, &late->rsp);
    } else {
        emu_rsp_release(&late->rsp);
    }
    free(late);
}

int emu_wire_judge(const emu_wire_ends_t *ends, const emu_pkt_t *pkt)
{
    emu_fault_verdict_t verdict;

    emu_wire_show(pkt, EMU_FAULT_POINT_PACKET, pkt->pkt_no, pkt->msg_pkts,
                   &verdict);
    if (verdict.fate == EMU_FAULT_ACTION_DROP) {
        emu_wire_lost(pkt, EMU_CNT_DROPS_FAULT);
        return 0;
    }
    if (emu_unlikely(!emu_wire_has_left(emu_wire_src(pkt)) &&
                     !emu_wire_leaves(pkt))) {
        emu_wire_lost_on_link(pkt);
        return 0;
    }

    switch (verdict.fate) {
    case EMU_FAULT_ACTION_DELAY:
        emu_wire_delay_pkt(ends, pkt, &verdict);
        return 0;
    case EMU_FAULT_ACTION_DUP:
        emu_wire_delay_pkt(ends, pkt, &verdict);
        return 1;
    default:
        return 1;
    }
}

static void emu_wire_count_pkt(const emu_pkt_t *pkt)
{
    emu_port_t *src = emu_wire_src(pkt);

    EMU_COUNT(src, pkt->qp_type, EMU_CNT_TX_PKTS, pkt->num_pkts);
    EMU_COUNT(src, pkt->qp_type, EMU_CNT_TX_BYTES, pkt->length);
    if (emu_unlikely(pkt->flags & EMU_PKT_RETRY)) {
        EMU_COUNT(src, pkt->qp_type, EMU_CNT_RETRANS_PKTS, pkt->num_pkts);
    }
}

/* What a port, or a NIC that is dying, sends although the program does not expect it */
static void emu_wire_count_sent(const emu_pkt_t *pkt)
{
    emu_port_t *src = emu_wire_src(pkt);

    if (pkt->src_port != pkt->dst_port) {
        emu_wire_count_bond(src, pkt);
    }
    if (emu_unlikely(!emu_wire_has_live_nic(src))) {
        emu_nic_count_fatal(src->index, pkt->src_qpn, pkt->op, pkt->psn);
    }
}

int emu_wire_leave(const emu_wire_ends_t *ends, const emu_pkt_t *pkt)
{
    emu_wire_count_pkt(pkt);
    if (!emu_wire_has_lane(pkt)) {
        return 0;
    }

    if (emu_fault_active()) {
        if (!emu_wire_judge(ends, pkt)) {
            return 0;
        }
    } else if (emu_unlikely(!emu_wire_leaves(pkt))) {
        emu_wire_lost_on_link(pkt);
        return 0;
    }

    emu_wire_count_sent(pkt);
    return 1;
}

int emu_wire_send(const emu_wire_ends_t *ends, emu_pkt_t *pkt, emu_rsp_t *rsp_p)
{
    return emu_wire_leave(ends, pkt) && emu_wire_arrive(ends, pkt, rsp_p);
}

/* Fabrics that have time */

/* The cables between two ports */
static int emu_wire_cables(const emu_pkt_t *pkt, emu_port_t *from,
                           emu_port_t *to, uint16_t *src_p, uint16_t *dst_p)
{
    const emu_port_t *src = (from == to) ? from : emu_wire_carrier(from);
    const emu_port_t *dst = (from == to) ? to : emu_wire_carrier(to);

    if ((src == NULL) || (dst == NULL)) {
        EMU_COUNT(from, pkt->qp_type, EMU_CNT_DROPS_LINK, 1);
        return 0;
    }

    *src_p = src->index;
    *dst_p = dst->index;
    return 1;
}

int emu_wire_enter(const emu_pkt_t *pkt, uint16_t *src_p, uint16_t *dst_p)
{
    emu_port_t *src = emu_wire_src(pkt);
    emu_port_t *dst = emu_wire_dst(pkt);

    emu_wire_count_pkt(pkt);
    if ((dst == NULL) || !emu_wire_is_alive(src)) {
        emu_wire_lost(pkt, (dst == NULL) ? EMU_CNT_DROPS_DEST :
                                           EMU_CNT_DROPS_LINK);
        return 0;
    }

    emu_wire_count_sent(pkt);
    if (src != dst) {
        emu_wire_count_bond(dst, pkt);
    }
    if (emu_unlikely(!emu_wire_fits(pkt))) {
        emu_wire_lost(pkt, EMU_CNT_DROPS_MTU);
        return 0;
    }
    if (emu_unlikely(!emu_wire_has_lane(pkt))) {
        return 0;
    }
    return emu_wire_cables(pkt, src, dst, src_p, dst_p);
}

int emu_wire_enter_reply(const emu_pkt_t *pkt, uint16_t *src_p, uint16_t *dst_p)
{
    return emu_wire_is_alive(emu_wire_dst(pkt)) &&
           emu_wire_cables(pkt, emu_wire_dst(pkt), emu_wire_src(pkt), src_p,
                           dst_p);
}
