/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The fabric's part of adaptive routing; see emu_ooo.h.
 *
 *     sent        1 2 3 4 5        2 is held until 3 and 4 have passed, or until
 *     arriving    1 3 4 2 5        its time is up
 *
 * Only writes are held. All other packets stay in order: the responder executes them in
 * the order of their PSNs, and would wait for the held ones. Retransmitted packets are
 * not held either. A write with the strong-order flag may be overtaken, and overtakes
 * nothing: it is placed after all before it.
 */

#include "emu_ooo.h"
#include "emu_proto.h"
#include "../core/emu_pipe.h"
#include "../core/emu_port.h"
#include "../core/emu_svc.h"

#include <stdlib.h>
#include <string.h>

/* Values of the quirk, by index */
enum {
    EMU_OOO_PACKETS,
    EMU_OOO_TIME,
    EMU_OOO_PERCENT,
    EMU_OOO_LOOPBACK
};

struct emu_ooo_packet {
    emu_ooo_packet_t      *next;
    const emu_wire_ends_t *ends;
    uint64_t              due_ns;
    unsigned              left;      /* so many more may overtake it */
    emu_pkt_t             pkt;
    emu_sge_t             sge;
    uint8_t               payload[];
};

emu_ooo_packet_t *emu_ooo_packets[EMU_MAX_QPS];

static emu_quirk_t emu_ooo_quirk(const emu_qp_t *qp)
{
    return emu_quirk_on(qp->port, EMU_QUIRK_OOO_ALL) ? EMU_QUIRK_OOO_ALL :
                                                       EMU_QUIRK_OOO;
}

static emu_ooo_packet_t **emu_ooo_list(const emu_qp_t *qp)
{
    return &emu_ooo_packets[qp->qpn & (EMU_MAX_QPS - 1)];
}

int emu_ooo_is_on(const emu_qp_t *qp, uint8_t sl)
{
    return (qp->type != EMU_QPT_UD) &&
           ((emu_port_ooo_sls(&emu_fabric->ports[qp->port]) >> sl) & 1);
}

/* What a NIC sends to itself does not leave it, and stays in order. Tests that have
 * one port only may want it otherwise. */
static int emu_ooo_travels(const emu_qp_t *qp, const emu_pkt_t *pkt)
{
    return (pkt->src_port != pkt->dst_port) ||
           emu_quirk_value(qp->port, emu_ooo_quirk(qp), EMU_OOO_LOOPBACK);
}

/* Whether a packet may overtake and be overtaken */
static int emu_ooo_is_free(const emu_qp_t *qp, const emu_pkt_t *pkt)
{
    int is_end = (pkt->flags & EMU_PKT_IMM) && (pkt->flags & EMU_PKT_LAST);

    return (pkt->kind == EMU_OP_WRITE) && !is_end && (pkt->num_psn == 1) &&
           emu_ooo_is_on(qp, pkt->sl) && emu_ooo_travels(qp, pkt);
}

static unsigned emu_ooo_count(const emu_qp_t *qp)
{
    const emu_ooo_packet_t *held;
    unsigned count = 0;

    for (held = *emu_ooo_list(qp); held != NULL; held = held->next) {
        ++count;
    }

    return count;
}

static void emu_ooo_timer(void *arg, uint64_t qpn);

/* @return whether the packet is on its way now, and will arrive later */
static int emu_ooo_hold(emu_qp_t *qp, const emu_wire_ends_t *ends,
                        const emu_pkt_t *pkt)
{
    emu_quirk_t quirk = emu_ooo_quirk(qp);
    uint64_t max      = emu_quirk_value(qp->port, quirk, EMU_OOO_PACKETS);
    uint64_t time_ns  = emu_quirk_value(qp->port, quirk, EMU_OOO_TIME);
    emu_ooo_packet_t *held;

    if ((emu_quirk_draw(qp->port, quirk) % 100 >=
         emu_quirk_value(qp->port, quirk, EMU_OOO_PERCENT)) ||
        (emu_ooo_count(qp) >= max)) {
        return 0;
    }

    held = malloc(sizeof(*held) + pkt->length);
    if (held == NULL) {
        return 0;
    }

    held->ends        = ends;
    held->left        = 1 + (emu_quirk_draw(qp->port, quirk) % max);
    held->due_ns      = emu_now_ns() +
                        emu_scaled_ns(emu_quirk_draw(qp->port, quirk) %
                                      time_ns);
    held->pkt         = *pkt;
    held->pkt.sge     = &held->sge;
    held->pkt.num_sge = 1;
    held->pkt.offset  = 0;
    memset(&held->sge, 0, sizeof(held->sge));
    held->sge.inl     = held->payload;
    held->sge.length  = pkt->length;
    emu_pkt_copy_out(pkt, 0, held->payload, pkt->length);
    if (emu_svc_add(held->due_ns, emu_ooo_timer, qp, pkt->src_qpn) != 0) {
        free(held);
        return 0;
    }

    held->next        = *emu_ooo_list(qp);
    *emu_ooo_list(qp) = held;
    return 1;
}

/* Acknowledgements are cumulative: the last one counts. An error does not wait
 * for what comes after it. @return whether there is a response */
static int emu_ooo_merge(int has_rsp, emu_rsp_t *rsp, int has_more,
                         emu_rsp_t *more)
{
    if (!has_more) {
        return has_rsp;
    }

    if (has_rsp && (rsp->type >= EMU_RSP_NAK_SEQ)) {
        emu_rsp_release(more);
    } else {
        *rsp = *more; /* An acknowledgement, which holds nothing, is gone */
    }

    return 1;
}

/* That our process was stopped makes no packet older than packets get */
static int emu_ooo_is_too_late(const emu_ooo_packet_t *held)
{
    return emu_now_ns() > held->due_ns + emu_pipe_lifetime_ns();
}

/* Have the packets arrive of which that is true. @return whether there is a
 * response */
static int emu_ooo_release(emu_qp_t *qp, uint64_t now_ns, int all,
                           int has_rsp, emu_rsp_t *rsp)
{
    emu_ooo_packet_t **prev = emu_ooo_list(qp);
    emu_ooo_packet_t *held;
    emu_rsp_t more;

    while ((held = *prev) != NULL) {
        if (!all && (held->left > 0) && (held->due_ns > now_ns)) {
            prev = &held->next;
            continue;
        }

        *prev = held->next;
        if (emu_ooo_is_too_late(held)) {
            emu_wire_lost(&held->pkt, EMU_CNT_DROPS_QUEUE);
            free(held);
            continue;
        }

        has_rsp = emu_ooo_merge(has_rsp, rsp,
                                emu_wire_arrive(held->ends, &held->pkt, &more),
                                &more);
        free(held);
    }

    return has_rsp;
}

/* Those of a queue pair that had the slot before are lost */
static void emu_ooo_forget(const emu_qp_t *qp)
{
    emu_ooo_packet_t **prev = emu_ooo_list(qp);
    emu_ooo_packet_t *held;

    while ((held = *prev) != NULL) {
        if (held->pkt.src_qpn == qp->qpn) {
            prev = &held->next;
        } else {
            *prev = held->next;
            free(held);
        }
    }
}

/* A packet overtakes those that are held */
static void emu_ooo_pass(emu_qp_t *qp)
{
    emu_ooo_packet_t *held;

    for (held = *emu_ooo_list(qp); held != NULL; held = held->next) {
        held->left -= (held->left > 0);
    }
}

int emu_ooo_send(emu_qp_t *qp, const emu_wire_ends_t *ends, emu_pkt_t *pkt,
                 emu_rsp_t *rsp_p)
{
    int is_free = emu_ooo_is_free(qp, pkt);
    int has_rsp = 0;
    emu_rsp_t rsp;

    emu_ooo_forget(qp);
    if (!emu_wire_leave(ends, pkt)) {
        return 0;
    }

    if (!is_free || pkt->is_strong) {
        has_rsp = emu_ooo_release(qp, 0, 1, has_rsp, rsp_p);
    } else {
        pkt->flags |= EMU_PKT_OOO;
    }

    if (is_free && !(pkt->flags & EMU_PKT_RETRY) && emu_ooo_hold(qp, ends, pkt)) {
        return has_rsp;
    }

    has_rsp = emu_ooo_merge(has_rsp, rsp_p,
                            emu_wire_arrive(ends, pkt, &rsp), &rsp);
    if (is_free) {
        emu_ooo_pass(qp);
        has_rsp = emu_ooo_release(qp, 0, 0, has_rsp, rsp_p);
    }

    return has_rsp;
}

uint64_t emu_ooo_detour(const emu_qp_t *qp, emu_pkt_t *pkt)
{
    emu_quirk_t quirk = emu_ooo_quirk(qp);

    if (!emu_ooo_is_free(qp, pkt)) {
        return 0;
    }

    pkt->flags |= pkt->is_strong ? 0 : EMU_PKT_OOO;
    if ((pkt->flags & EMU_PKT_RETRY) ||
        (emu_quirk_draw(qp->port, quirk) % 100 >=
         emu_quirk_value(qp->port, quirk, EMU_OOO_PERCENT))) {
        return 0;
    }
    return emu_quirk_draw(qp->port, quirk) %
           emu_quirk_value(qp->port, quirk, EMU_OOO_TIME);
}

/* Service thread: the time of a packet is up. It arrives even if its queue pair
 * is gone. */
static void emu_ooo_timer(void *arg, uint64_t qpn)
{
    emu_qp_t *qp            = arg;
    emu_ooo_packet_t **prev = emu_ooo_list(qp);
    emu_ooo_packet_t *held;
    emu_rsp_t rsp;

    (void)qpn;
    emu_lock(&qp->req_lock);
    while ((held = *prev) != NULL) {
        if (held->due_ns > emu_now_ns()) {
            prev = &held->next;
            continue;
        }

        *prev = held->next;
        if (emu_ooo_is_too_late(held)) {
            emu_wire_lost(&held->pkt, EMU_CNT_DROPS_QUEUE);
        } else if (emu_wire_arrive(held->ends, &held->pkt, &rsp)) {
            held->ends->respond(qp, &held->pkt, &rsp);
            emu_rsp_release(&rsp);
            prev = emu_ooo_list(qp); /* More may have been sent */
        }
        free(held);
    }
    emu_unlock(&qp->req_lock);
    emu_run_deferred();
}
