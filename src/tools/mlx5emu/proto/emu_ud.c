/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Datagrams: one packet, no acknowledgement. What does not fit is lost.
 */

#include "emu_proto.h"
#include "../core/emu_cq.h"
#include "../core/emu_fabric.h"
#include "../core/emu_late.h"
#include "../core/emu_port.h"
#include "../core/emu_route.h"
#include "../trace/emu_trace.h"
#include "../wqe/emu_cqe.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#define EMU_UD_GRH_LEN   40
#define EMU_UD_IPV4_LEN  20
#define EMU_UD_UDP_LEN   8
#define EMU_UD_IB_LEN    24   /* base and datagram headers, and the invariant CRC */
#define EMU_UD_PROTO_UDP 17
#define EMU_UD_PROTO_IB  0x1b /* next header of a GRH */

void emu_ud_build(emu_qp_t *qp, const emu_op_t *op, emu_pkt_t *pkt)
{
    const emu_port_t *port = &emu_fabric->ports[qp->port];
    const emu_sqe_t *sqe   = emu_sq_entry(qp, qp->sq_ci);

    memset(pkt, 0, sizeof(*pkt));
    pkt->kind      = op->kind;
    pkt->flags     = EMU_PKT_FIRST | EMU_PKT_LAST |
                     (op->has_imm ? EMU_PKT_IMM : 0) |
                     (op->solicited ? EMU_PKT_SOLICITED : 0) |
                     (op->is_inline ? EMU_PKT_INLINE : 0);
    pkt->qp_type   = EMU_QPT_UD;
    pkt->sl        = emu_port_sl(port, op->sl);
    pkt->wqe_index = qp->sq_ci;
    pkt->mtu       = port->mtu;
    pkt->psn       = emu_psn_add(qp->req_psn, EMU_PSN_MASK);
    pkt->num_psn   = 1;
    pkt->num_pkts  = 1;
    pkt->pkt_no    = 1;
    pkt->msg_pkts  = 1;
    pkt->msg_total = op->length;
    pkt->src_qpn   = qp->qpn;
    pkt->dst_qpn   = op->dqpn;
    /* The high bit asks for the QP's own key */
    pkt->qkey      = (op->qkey & 0x80000000u) ? qp->attr.qkey : op->qkey;
    pkt->imm       = op->imm;
    pkt->left      = op->length;
    pkt->length    = op->length;
    pkt->sge       = op->sge;
    pkt->num_sge   = op->num_sge;
    pkt->prev_op   = sqe->prev_op;
    pkt->prev_size = sqe->prev_size;
    pkt->op        = qp->ops - 1;
    emu_pkt_set_path(pkt, port, qp->attr.pkey_index, &op->path);
}

static void emu_ud_trace(const emu_qp_t *qp, const emu_pkt_t *pkt)
{
    const emu_port_t *port = &emu_fabric->ports[qp->port];
    const int has_imm      = !!(pkt->flags & EMU_PKT_IMM);
    emu_trace_entry_t entry;

    if (emu_fabric->cfg.trace_entries == 0) {
        return;
    }

    memset(&entry, 0, sizeof(entry));
    entry.host      = port->host;
    entry.link      = port->link;
    entry.src_host  = emu_fabric->ports[pkt->src_port].host;
    entry.op        = has_imm ? EMU_TRACE_SEND_IMM : EMU_TRACE_SEND;
    entry.flags     = (pkt->flags & EMU_PKT_INLINE) ? EMU_TRACE_FLAG_INLINE : 0;
    entry.qpn       = qp->qpn;
    entry.src_qpn   = pkt->src_qpn;
    entry.psn       = pkt->psn;
    entry.wqe_index = pkt->wqe_index;
    entry.id        = pkt->op;
    entry.qp_type   = pkt->qp_type;
    entry.length    = pkt->length;
    entry.arg[0]    = has_imm ? pkt->imm : 0;
    entry.arg[1]    = pkt->msg_total;
    emu_pkt_copy_out(pkt, 0, &entry.data, emu_min(pkt->length, 8));
    entry.time_ns   = emu_now_ns() - emu_fabric->start_ns;
    emu_trace_add(emu_fabric->trace, &entry);
}

/* What the receive buffer begins with. RoCE v2 over IPv4 has an IPv4 header instead,
 * which is at the end */
static void emu_ud_fill_grh(const emu_pkt_t *pkt, uint8_t *buf)
{
    const emu_grh_t *grh = &pkt->grh;
    struct ibv_grh *ip6  = (struct ibv_grh*)buf;
    uint8_t *ip4         = buf + EMU_UD_GRH_LEN - EMU_UD_IPV4_LEN;
    int is_v2            = (grh->type == EMU_GID_ROCE_V2);

    memset(buf, 0, EMU_UD_GRH_LEN);
    if (emu_pkt_is_ipv4(pkt)) {
        ip4[0] = 0x45;     /* version, words of the header */
        ip4[1] = grh->tclass;
        ip4[8] = grh->hop_limit;
        ip4[9] = EMU_UD_PROTO_UDP;
        memcpy(&ip4[12], &grh->sgid.raw[12], 4);
        memcpy(&ip4[16], &grh->dgid.raw[12], 4);
        return;
    }

    ip6->version_tclass_flow = htobe32((6u << 28) |
                                       ((uint32_t)grh->tclass << 20) |
                                       (grh->flow_label & 0xfffff));
    ip6->paylen              = htobe16(pkt->length + (is_v2 ?
                                                      EMU_UD_UDP_LEN : 0) +
                                       EMU_UD_IB_LEN);
    ip6->next_hdr            = is_v2 ? EMU_UD_PROTO_UDP : EMU_UD_PROTO_IB;
    ip6->hop_limit           = grh->hop_limit;
    ip6->sgid                = grh->sgid;
    ip6->dgid                = grh->dgid;
}

/* The header and the payload. @return 0 or a negative errno */
static int emu_ud_scatter(emu_qp_t *qp, const emu_rq_entry_t *entry,
                          const emu_pkt_t *pkt)
{
    uint8_t header[EMU_UD_GRH_LEN];
    int ret;

    if (pkt->has_grh) {
        emu_ud_fill_grh(pkt, header);
        ret = emu_rq_scatter_data(qp, entry, 0, header, sizeof(header));
        if (ret != 0) {
            return ret;
        }
    }

    return emu_rq_scatter(qp, entry, EMU_UD_GRH_LEN, pkt);
}

/* A GRH must name the port, by whichever of its GIDs; the keys must be those of the
 * queue pair */
static int emu_ud_is_welcome(const emu_qp_t *qp, const emu_pkt_t *pkt)
{
    const emu_port_t *port = &emu_fabric->ports[qp->port];

    return (pkt->qkey == qp->attr.qkey) &&
           emu_port_is_member(port, qp->attr.pkey_index, pkt->pkey, qp->qpn) &&
           (!pkt->has_grh ||
            (emu_route_find_gid(port, &pkt->grh.dgid, pkt->grh.type) >= 0));
}

void emu_ud_receive(emu_qp_t *qp, const emu_pkt_t *pkt, emu_rsp_t *rsp_p)
{
    emu_rq_entry_t entry;
    emu_cqe_t cqe;
    int ret;

    if (!emu_ud_is_welcome(qp, pkt) || !emu_rq_take(qp, &entry)) {
        EMU_COUNT(&emu_fabric->ports[qp->port], EMU_QPT_UD, EMU_CNT_DROPS_DEST,
                  1);
        return;
    }

    emu_late_flush_before(qp->port, qp->qpn, 0);
    memset(&cqe, 0, sizeof(cqe));
    cqe.wqe_counter = entry.index;
    cqe.qpn         = qp->qpn;
    cqe.srqn_uidx   = qp->cqe_uidx;
    ret             = emu_ud_scatter(qp, &entry, pkt);
    if (ret == 0) {
        emu_ud_trace(qp, pkt);
        cqe.opcode    = (pkt->flags & EMU_PKT_IMM) ? MLX5_CQE_RESP_SEND_IMM :
                                                     MLX5_CQE_RESP_SEND;
        cqe.byte_cnt  = pkt->length + EMU_UD_GRH_LEN;
        cqe.imm       = pkt->imm;
        cqe.slid      = pkt->slid;
        cqe.sl        = emu_pkt_cqe_sl(pkt);
        cqe.has_grh   = pkt->has_grh;
        cqe.src_qpn   = pkt->src_qpn;
        cqe.solicited = !!(pkt->flags & EMU_PKT_SOLICITED);
    } else {
        cqe.opcode   = MLX5_CQE_RESP_ERR;
        cqe.syndrome = (ret == -EMSGSIZE) ? MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR :
                                            MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
    }
    if (emu_unlikely(emu_qp_complete(qp, qp->recv_cq, &cqe) != 0)) {
        emu_resp_stop(qp);
        return;
    }

    rsp_p->executed = (ret == 0);
    EMU_COUNT(&emu_fabric->ports[qp->port], EMU_QPT_UD,
              (ret == 0) ? EMU_CNT_CQES : EMU_CNT_CQE_ERRS, 1);
}
