/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder: takes a request through a table of steps. Each step passes it on, drops
 * it, or answers it. PSNs advance after the last step only: if a process dies in between,
 * the request counts as not executed.
 */

#include "emu_resp_ooo.h"
#include "emu_resp_ops.h"
#include "../core/emu_fabric.h"
#include "../core/emu_mem.h"
#include "../core/emu_mr.h"
#include "../core/emu_nic.h"
#include "../core/emu_port.h"
#include "../core/emu_proc.h"
#include "../core/emu_route.h"

#include <string.h>

static emu_rx_verdict_t emu_rx_check_state(emu_rx_t *rx)
{
    switch (rx->qp->resp_state) {
    case IBV_QPS_RTR:
    case IBV_QPS_RTS:
    case IBV_QPS_SQD:
    case IBV_QPS_SQE:
        return EMU_RX_NEXT;
    default:
        return EMU_RX_DROP;
    }
}

/* RC: the packet must come from the port that the path leads to. Its headers name no queue
 * pair but this one (InfiniBand specification, volume 1, 9.2 and 9.6.1): NICs cannot
 * compare the sender's number. On RoCE the LID of a path is a UDP port, and means nothing
 * here */
static int emu_rx_is_from(const emu_path_t *path, const emu_pkt_t *pkt)
{
    if (pkt->has_grh && path->is_full &&
        (memcmp(path->dgid, &pkt->grh.sgid, sizeof(path->dgid)) != 0)) {
        return 0;
    }
    return (pkt->slid == 0) || (pkt->slid == path->dlid);
}

/* The packet must be for the address and the partition that the queue pair uses; with RC,
 * it must come from the peer's port */
static emu_rx_verdict_t emu_rx_check_peer(emu_rx_t *rx)
{
    const emu_qp_t *qp   = rx->qp;
    const emu_pkt_t *pkt = rx->pkt;

    if (!emu_route_is_mine(rx->port, &qp->path,
                           pkt->has_grh ? &pkt->grh : NULL) ||
        !emu_port_is_member(rx->port, qp->attr.pkey_index, pkt->pkey, qp->qpn)) {
        return EMU_RX_DROP;
    }
    return ((qp->type == EMU_QPT_DCT) || emu_rx_is_from(&qp->path, pkt)) ?
           EMU_RX_NEXT : EMU_RX_DROP;
}

/* DC: the context must be that of this connection, or of an older one */
static emu_rx_verdict_t emu_rx_check_connection(emu_rx_t *rx)
{
    const emu_pkt_t *pkt = rx->pkt;
    emu_qp_t *ctx        = rx->ctx;

    if (rx->qp->type != EMU_QPT_DCT) {
        return EMU_RX_NEXT;
    }

    if (pkt->serial < ctx->resp_serial) {
        return EMU_RX_DROP;
    }

    if (pkt->serial > ctx->resp_serial) {
        ctx->resp_serial = pkt->serial;
        ctx->resp_psn    = pkt->conn_psn;
        ctx->resp_msn    = 0;
        ctx->resp_nak    = 0;
        ctx->resp_atomic = 0;
        emu_qp_abandon_msg(ctx);
        emu_qp_forget_early(ctx);
        memset(ctx->resp_atomics, 0, sizeof(ctx->resp_atomics));
    }

    if (pkt->dc_key != rx->qp->dc_key) {
        return emu_rx_nak(rx, EMU_RSP_NAK_INV);
    }
    return EMU_RX_NEXT;
}

/* A run of packets of which some came before: keep the others */
static void emu_rx_trim(emu_pkt_t *pkt, uint32_t count)
{
    pkt->flags   &= ~EMU_PKT_FIRST;
    pkt->psn      = emu_psn_add(pkt->psn, count);
    pkt->num_psn -= count;
    pkt->num_pkts -= count;
    pkt->pkt_no  += count;
    pkt->raddr   += (uint64_t)count * pkt->mtu;
    pkt->left    -= count * pkt->mtu;
    pkt->offset  += count * pkt->mtu;
    pkt->length  -= count * pkt->mtu;
}

/* A first or middle packet is exactly as long as the path MTU of the queue pair that receives
 * it, others are not longer (Linux, rxe_resp_check_length()). A DC target has its own MTU */
static int emu_rx_suits_mtu(const emu_rx_t *rx)
{
    const emu_pkt_t *pkt = rx->pkt;
    unsigned mtu         = emu_qp_mtu(rx->qp);
    uint32_t num_full    = pkt->num_psn - !!(pkt->flags & EMU_PKT_LAST);

    return emu_likely(pkt->mtu == mtu) || (pkt->length == 0) ||
           ((num_full == 0) && (pkt->length <= mtu));
}

/* Whether the queue pair drops what comes early, whatever the sender's fabric does */
static int emu_rx_is_strict(const emu_rx_t *rx)
{
    return rx->qp->order_forced && (rx->qp->order == EMU_QP_ORDER_IBTA);
}

static emu_rx_verdict_t emu_rx_check_psn(emu_rx_t *rx)
{
    int32_t diff = emu_psn_diff(rx->pkt->psn, rx->ctx->resp_psn);

    if (emu_likely(diff == 0)) {
        rx->ctx->resp_nak = 0;
        return EMU_RX_NEXT;
    }

    if ((diff > 0) && (rx->pkt->flags & EMU_PKT_OOO) && emu_rx_suits_mtu(rx) &&
        !emu_rx_is_strict(rx) && emu_rx_take_early(rx, diff)) {
        return EMU_RX_DROP; /* it is acknowledged with its predecessors */
    }

    if (diff > 0) {
        EMU_COUNT(rx->port, rx->pkt->qp_type, EMU_CNT_SEQ_ERRS, 1);
        if (rx->ctx->resp_nak) {
            return EMU_RX_DROP;
        }
        rx->ctx->resp_nak = 1;
        rx->rsp->type     = EMU_RSP_NAK_SEQ;
        rx->rsp->psn      = rx->ctx->resp_psn;
        return EMU_RX_REPLY;
    }

    if ((rx->pkt->kind != EMU_OP_READ) &&
        ((uint32_t)-diff < rx->pkt->num_psn)) {
        rx->ctx->resp_nak = 0;
        emu_rx_trim(rx->pkt, -diff);
        return EMU_RX_NEXT;
    }

    EMU_COUNT(rx->port, rx->pkt->qp_type, EMU_CNT_DUP_REQS, 1);
    return emu_rx_duplicate(rx);
}

/* A message must begin with a first packet, and go on with its own kind */
static emu_rx_verdict_t emu_rx_check_sequence(emu_rx_t *rx)
{
    const emu_resp_msg_t *msg = &rx->ctx->resp_msg;
    int is_first              = !!(rx->pkt->flags & EMU_PKT_FIRST);

    if ((is_first && (msg->kind != EMU_OP_NONE)) ||
        (!is_first && (msg->kind != rx->pkt->kind))) {
        return emu_rx_nak(rx, EMU_RSP_NAK_INV);
    }
    return EMU_RX_NEXT;
}

static emu_rx_verdict_t emu_rx_check_length(emu_rx_t *rx)
{
    return emu_rx_suits_mtu(rx) ? EMU_RX_NEXT : emu_rx_nak(rx, EMU_RSP_NAK_INV);
}

/* Only a message's end is acknowledged, unless the message takes its time */
static emu_rx_verdict_t emu_rx_acknowledge_part(emu_rx_t *rx, uint32_t last)
{
    if (!emu_pkt_wants_ack(rx->pkt)) {
        return EMU_RX_DROP;
    }

    rx->rsp->type       = EMU_RSP_ACK;
    rx->rsp->psn        = last;
    rx->rsp->is_partial = 1;
    return EMU_RX_REPLY;
}

static emu_rx_verdict_t emu_rx_acknowledge(emu_rx_t *rx)
{
    emu_pkt_t *pkt = rx->pkt;
    uint32_t last  = emu_psn_add(pkt->psn, pkt->num_psn - 1);
    int is_end     = !!(pkt->flags & EMU_PKT_LAST);

    rx->ctx->resp_psn = emu_psn_add(pkt->psn, pkt->num_psn);
    if (is_end) {
        rx->ctx->resp_msn = emu_psn_add(rx->ctx->resp_msn, 1);
    }
    if (emu_unlikely(rx->ctx->resp_num_early > 0)) {
        is_end |= emu_rx_absorb_early(rx, &last);
    }
    if (!is_end) {
        return emu_rx_acknowledge_part(rx, last);
    }

    rx->rsp->executed = 1;
    if ((pkt->kind == EMU_OP_SEND) || (pkt->kind == EMU_OP_WRITE)) {
        rx->rsp->type = EMU_RSP_ACK;
        rx->rsp->psn  = last;
    }
    return EMU_RX_REPLY;
}

static emu_rx_verdict_t (*const emu_rx_steps[])(emu_rx_t *rx) = {
    emu_rx_check_state,
    emu_rx_check_peer,
    emu_rx_check_connection,
    emu_rx_check_psn,
    emu_rx_check_sequence,
    emu_rx_check_length,
    emu_rx_check_rights,
    emu_rx_check_resource,
    emu_rx_execute,
    emu_rx_acknowledge
};

#define EMU_RX_NUM_STEPS (sizeof(emu_rx_steps) / sizeof(emu_rx_steps[0]))

/* resp_lock (DC: of the target and of the context) is held */
static int emu_rx_run(emu_rx_t *rx)
{
    emu_rx_verdict_t verdict = EMU_RX_NEXT;
    unsigned i;

    for (i = 0; (i < EMU_RX_NUM_STEPS) && (verdict == EMU_RX_NEXT); i++) {
        verdict = emu_rx_steps[i](rx);
    }

    if (rx->mr != NULL) {
        emu_mr_put(rx->mr);
    }
    if (emu_unlikely(rx->has_entry)) {
        emu_rq_give_back(rx->qp, &rx->entry); /* memory was missing */
    }

    switch (verdict) {
    case EMU_RX_REPLY:
        return 1;
    case EMU_RX_NAK:
        /* A DC target serves others too: only the connection ends */
        if (rx->qp->type == EMU_QPT_RC) {
            emu_qp_fail_responder(rx->qp, rx->rsp->type);
        } else {
            emu_qp_abandon_msg(rx->ctx);
        }
        return 1;
    default:
        return 0;
    }
}

/* The initiator may be gone, and its slot, even its number, be another queue pair's */
static int emu_rx_run_dc(emu_rx_t *rx)
{
    int ret = 0;

    rx->ctx = &emu_fabric->qps[rx->pkt->src_qpn & (EMU_MAX_QPS - 1)];
    if (!rx->ctx->locks_ready) {
        return 0; /* Never used */
    }

    emu_lock(&rx->ctx->resp_lock);
    if ((rx->ctx->qpn == rx->pkt->src_qpn) && (rx->ctx->type == EMU_QPT_DCI)) {
        ret = emu_rx_run(rx);
    } else {
        EMU_COUNT(&emu_fabric->ports[rx->pkt->src_port], EMU_QPT_DCI,
                  EMU_CNT_DROPS_DEST, 1);
    }
    emu_unlock(&rx->ctx->resp_lock);
    return ret;
}

/* Does a packet of this kind of QP belong to a QP of that kind? */
static int emu_rx_types_match(const emu_pkt_t *pkt, const emu_qp_t *qp)
{
    return (pkt->qp_type == EMU_QPT_DCI) ? (qp->type == EMU_QPT_DCT) :
                                           (qp->type == pkt->qp_type);
}

static int emu_rx_is_transport(uint8_t qp_type)
{
    return (qp_type == EMU_QPT_RC) || (qp_type == EMU_QPT_UD) ||
           (qp_type == EMU_QPT_DCI);
}

/* Whether a header is one that a NIC may send: kinds, sizes, and as many packets as
 * its payload takes. As with a wrong checksum, others never were. */
static int emu_rx_is_sound(const emu_pkt_t *pkt)
{
    uint32_t payload = (pkt->kind == EMU_OP_READ) ? pkt->left : pkt->length;
    uint64_t num_pkts;

    if ((pkt->kind == EMU_OP_NONE) || (pkt->kind >= EMU_OP_LAST) ||
        !emu_rx_is_transport(pkt->qp_type) ||
        (pkt->src_port >= EMU_MAX_PORTS) ||
        (pkt->mtu < EMU_MIN_MTU) ||
        (pkt->mtu > EMU_MAX_MTU) || ((pkt->mtu & (pkt->mtu - 1)) != 0) ||
        (pkt->length > pkt->left) || (pkt->left > EMU_MAX_MSG)) {
        return 0;
    }

    if ((pkt->kind == EMU_OP_CAS) || (pkt->kind == EMU_OP_FAA)) {
        return (pkt->num_psn == 1) && (pkt->length == 0) &&
               (pkt->flags & EMU_PKT_FIRST) && (pkt->flags & EMU_PKT_LAST) &&
               ((pkt->atomic_size == 4) || (pkt->atomic_size == 8));
    }

    /* A request to read is one packet, and so it is answered, which gives back what
     * the answer holds */
    if ((pkt->kind == EMU_OP_READ) && !(pkt->flags & EMU_PKT_LAST)) {
        return 0;
    }

    num_pkts = ((uint64_t)payload + pkt->mtu - 1) >> __builtin_ctz(pkt->mtu);
    return (pkt->qp_type == EMU_QPT_UD) ||
           (pkt->num_psn == emu_max(num_pkts, 1));
}

static int emu_rx_receive(emu_pkt_t *pkt, emu_rsp_t *rsp_p)
{
    emu_port_t *src = &emu_fabric->ports[pkt->src_port];
    emu_rx_t rx     = { .pkt = pkt, .rsp = rsp_p };
    int ret         = 0;

    memset(rsp_p, 0, sizeof(*rsp_p));
    rx.port = emu_route_port(pkt->dst_port);
    rx.qp   = emu_qp_find(pkt->dst_qpn);
    if ((rx.port == NULL) || (rx.qp == NULL) ||
        (rx.qp->port != rx.port->index) || !emu_rx_types_match(pkt, rx.qp) ||
        !emu_nic_works(rx.qp->port, rx.qp->nic_gen) ||
        !emu_proc_alive(&emu_fabric->procs[rx.qp->proc])) {
        EMU_COUNT(src, pkt->qp_type, EMU_CNT_DROPS_DEST, 1);
        /* On another plane, another port may have this address */
        emu_quirk_hits(pkt->src_port, EMU_QUIRK_MISWIRED, pkt->src_qpn, pkt->op,
                       pkt->dst_port);
        return 0;
    }

    if (emu_unlikely(!emu_nic_is(rx.qp->port, rx.qp->nic_gen))) {
        emu_nic_count_fatal(rx.qp->port, rx.qp->qpn, pkt->op, pkt->psn);
    }
    emu_lock(&rx.qp->resp_lock);
    if ((rx.qp->used == 1) && (rx.qp->qpn == pkt->dst_qpn)) {
        if (pkt->qp_type == EMU_QPT_UD) {
            if (emu_rx_check_state(&rx) == EMU_RX_NEXT) {
                emu_ud_receive(rx.qp, pkt, rsp_p);
            }
        } else if (pkt->qp_type == EMU_QPT_DCI) {
            ret = emu_rx_run_dc(&rx);
        } else {
            rx.ctx = rx.qp;
            ret    = emu_rx_run(&rx);
        }
    }
    emu_unlock(&rx.qp->resp_lock);
    return ret;
}

int emu_resp_receive(emu_pkt_t *pkt, emu_rsp_t *rsp_p)
{
    if (emu_unlikely(!emu_rx_is_sound(pkt))) {
        memset(rsp_p, 0, sizeof(*rsp_p));
        return 0;
    }

    return emu_rx_receive(pkt, rsp_p);
}
