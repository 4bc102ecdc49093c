/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_reply.h. A list for each queue pair that is answered; all behind one mutex,
 * since the keeper's service thread has packets arrive that rules have delayed.
 */

#include "emu_reply.h"
#include "emu_timed.h"
#include "emu_wire.h"
#include "../core/emu_mr.h"
#include "../core/emu_qp.h"
#include "../trace/emu_trace.h"

#include <pthread.h>
#include <stdlib.h>

/* A response of which some packets have not left */
typedef struct emu_reply {
    struct emu_reply *next;
    emu_pkt_t        pkt;
    emu_rsp_t        rsp;
    uint32_t         sent;
} emu_reply_t;

static pthread_mutex_t emu_reply_mutex = PTHREAD_MUTEX_INITIALIZER;
static emu_reply_t *emu_replies[EMU_MAX_QPS];

/* One packet of a read. The region may be gone by now: then there is no answer */
static int emu_reply_read(const emu_pkt_t *pkt, const emu_rsp_t *rsp,
                          uint32_t index)
{
    const emu_qp_t *qp = emu_qp_find(pkt->dst_qpn);
    uint64_t offset    = (uint64_t)index * pkt->mtu;
    emu_rsp_t part     = *rsp;
    emu_mr_t *mr       = NULL;
    int ret;

    if (qp == NULL) {
        return -1;
    }

    part.psn     = emu_psn_add(rsp->psn, index);
    part.num_psn = 1;
    part.length  = emu_min(rsp->length - offset, pkt->mtu);
    if (part.length > 0) {
        mr = emu_mr_get(pkt->rkey, pkt->raddr + offset, part.length,
                        IBV_ACCESS_REMOTE_READ, qp->pd, qp->port);
        if (mr == NULL) {
            return -1;
        }
        part.proc = mr->proc;
        part.addr = pkt->raddr + offset - mr->iova + mr->addr;
    }

    ret = emu_timed_reply(pkt, &part);
    if (mr != NULL) {
        emu_mr_put(mr);
    }
    return ret;
}

/* @return whether all of it has left, or never will */
static int emu_reply_continue(emu_reply_t *reply)
{
    const emu_qp_t *qp = emu_qp_find(reply->pkt.dst_qpn);

    if (reply->rsp.type != EMU_RSP_READ) {
        (void)emu_timed_reply(&reply->pkt, &reply->rsp);
        return 1;
    }

    while (reply->sent < reply->rsp.num_psn) {
        if ((qp != NULL) &&
            emu_pipe_park(emu_timed_reply_key(reply->pkt.src_qpn), qp->port)) {
            return 0;
        }
        if (emu_reply_read(&reply->pkt, &reply->rsp, reply->sent) != 0) {
            emu_wire_lost_reply(&reply->pkt, &reply->rsp, EMU_CNT_DROPS_DEST);
            return 1;
        }
        reply->sent++;
    }
    return 1;
}

/* The mutex is held */
static void emu_reply_run(emu_reply_t **list)
{
    emu_reply_t *reply;

    while (((reply = *list) != NULL) && emu_reply_continue(reply)) {
        *list = reply->next;
        free(reply);
    }
}

void emu_reply_send(const emu_pkt_t *pkt, emu_rsp_t *rsp)
{
    emu_reply_t **list = &emu_replies[pkt->src_qpn & (EMU_MAX_QPS - 1)];
    emu_reply_t **last = list;
    emu_reply_t *reply;

    emu_wire_count_rsp(pkt, rsp);
    if (emu_unlikely(!emu_wire_reply_fits(pkt, rsp))) {
        emu_rsp_release(rsp);
        return;
    }

    reply = calloc(1, sizeof(*reply));
    emu_trace_set_ack(emu_fabric->trace, rsp->trace_seq, EMU_TRACE_ACK_SENT);
    if (reply != NULL) {
        reply->pkt    = *pkt;
        reply->rsp    = *rsp;
        reply->rsp.mr = NULL;
        pthread_mutex_lock(&emu_reply_mutex);
        while (*last != NULL) {
            last = &(*last)->next;
        }
        *last = reply;
        if (last == list) {
            emu_reply_run(list);
        }
        pthread_mutex_unlock(&emu_reply_mutex);
    }
    emu_rsp_release(rsp);
}

void emu_reply_resume(uint32_t index)
{
    pthread_mutex_lock(&emu_reply_mutex);
    emu_reply_run(&emu_replies[index]);
    pthread_mutex_unlock(&emu_reply_mutex);
}
