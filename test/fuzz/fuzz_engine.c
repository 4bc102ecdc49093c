/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The emulated NIC itself, in this process: any bytes posted to send queues of each
 * kind of queue pair, forged request packets, forged responses, and state changes.
 * Nothing may be written outside of the registered region and the queues, and nothing
 * may crash.
 */
#include "fuzz.h"
#include "../engine/engine.h"
#include "core/emu_quirk.h"
#include "proto/emu_proto.h"

#include <arpa/inet.h>
#include <endian.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ENGINE_MEM      (1u << 16)
#define ENGINE_ACTIONS  24

enum { QP_RC, QP_PEER, QP_UD, QP_DCI, QP_DCT, QP_SRQ, NUM_QPS };

static engine_t engine;
static emu_qp_t *qps[NUM_QPS];
static uint16_t posted[NUM_QPS];
static emu_srq_t *srq;

static void start(unsigned i)
{
    emu_qp_t *peer = (i == QP_RC) ? qps[QP_PEER] : qps[QP_RC];

    engine_qp_start(&engine, qps[i], peer);
    posted[i] = 0;
}

static void setup(void)
{
    static const emu_qp_type_t types[NUM_QPS] = {
        [QP_RC]  = EMU_QPT_RC,  [QP_PEER] = EMU_QPT_RC, [QP_UD]  = EMU_QPT_UD,
        [QP_DCI] = EMU_QPT_DCI, [QP_DCT]  = EMU_QPT_DCT, [QP_SRQ] = EMU_QPT_RC
    };
    unsigned i;

    engine_open(&engine, ENGINE_MEM);
    ENGINE_CHECK(emu_srq_create(engine.pd, 31, 1, 0, &srq) == 0);
    for (i = 0; i < NUM_QPS; ++i) {
        qps[i] = engine_qp(&engine, types[i],
                           ((i == QP_DCT) || (i == QP_SRQ)) ? srq : NULL);
    }
}

/* Sometimes a valid value, so that some packets pass the checks */
static uint64_t pick(fuzz_input_t *in, uint64_t right, unsigned bytes)
{
    return (fuzz_u64(in, 1) & 3) ? right : fuzz_u64(in, bytes);
}

static uint64_t pick_addr(fuzz_input_t *in)
{
    return pick(in, (uintptr_t)engine.mem + fuzz_u64(in, 2), 8);
}

static void act_post(fuzz_input_t *in, unsigned i)
{
    uint64_t wqe[4 * EMU_SEND_BB / 8];
    struct mlx5_wqe_ctrl_seg *ctrl = (void*)wqe;
    uint8_t *seg                   = (uint8_t*)(ctrl + 1);
    uint8_t opcode, ds;
    unsigned num_bb;

    if (qps[i]->type == EMU_QPT_DCT) {
        return;
    }

    fuzz_take(in, wqe, sizeof(wqe));
    opcode = fuzz_u64(in, 1);
    ds     = 1 + fuzz_u64(in, 1) % 16;
    num_bb = (ds + 3) / 4;
    ctrl->opmod_idx_opcode = htonl((ntohl(ctrl->opmod_idx_opcode) &
                                    0xff000000u) | (posted[i] << 8) | opcode);
    ctrl->qpn_ds           = htonl((qps[i]->qpn << 8) | ds);
    if ((qps[i]->type == EMU_QPT_DCI) || (qps[i]->type == EMU_QPT_UD)) {
        struct mlx5_wqe_av *av = (void*)seg;

        av->dqp_dct = htonl(0x80000000u |
                            pick(in, qps[(i == QP_UD) ? QP_UD : QP_DCT]->qpn, 3));
        av->rlid    = htons(pick(in, 1, 2));
        if (qps[i]->type == EMU_QPT_DCI) {
            av->key.dc_key = htobe64(pick(in, ENGINE_DC_KEY, 8));
        } else {
            av->key.qkey.qkey = htonl(0x11);
        }
        seg += sizeof(*av);
    }
    if (fuzz_u64(in, 1) & 1) {
        struct mlx5_wqe_raddr_seg *raddr = (void*)seg;

        raddr->raddr = htobe64(pick_addr(in));
        raddr->rkey  = htonl(pick(in, engine.mr->key, 4));
        seg += sizeof(*raddr);
        if ((opcode == MLX5_OPCODE_ATOMIC_CS) ||
            (opcode == MLX5_OPCODE_ATOMIC_FA)) {
            seg += sizeof(struct mlx5_wqe_atomic_seg);
        }
    }
    if (fuzz_u64(in, 1) & 1) {
        struct mlx5_wqe_data_seg *data = (void*)seg;

        data->addr       = htobe64(pick_addr(in));
        data->lkey       = htonl(pick(in, engine.mr->key, 4));
        data->byte_count = htonl(pick(in, fuzz_u64(in, 2), 4));
    }

    if ((uint16_t)(posted[i] - qps[i]->sq_ci) + num_bb <= qps[i]->sq_bb_cnt) {
        engine_post(qps[i], posted[i], wqe, num_bb);
        posted[i] += num_bb;
    }
}

/* A header in which everything may be wrong; the payload is the sender's */
static void act_packet(fuzz_input_t *in, unsigned i)
{
    static uint8_t payload[EMU_TRAIN_MAX];
    emu_sge_t sge = { .addr = (uintptr_t)payload, .length = sizeof(payload) };
    emu_qp_t *dst = qps[i];
    emu_qp_t *src = (i == QP_DCT) ? qps[QP_DCI] : qps[QP_RC];
    emu_pkt_t pkt;
    emu_rsp_t rsp;

    fuzz_take(in, &pkt, sizeof(pkt));
    pkt.src_port = engine.ctx->port;
    pkt.qp_type  = pick(in, src->type, 1);
    pkt.kind     = pick(in, fuzz_u64(in, 1) % EMU_OP_LAST, 1);
    pkt.slid     = pick(in, 1, 2);
    pkt.dst_port = pick(in, 0, 2);
    pkt.src_qpn  = pick(in, src->qpn, 4);
    pkt.dst_qpn  = pick(in, dst->qpn, 4);
    pkt.psn      = pick(in, dst->resp_psn + fuzz_u64(in, 1) - 8, 3) &
                   EMU_PSN_MASK;
    pkt.mtu      = pick(in, 1024, 4);
    pkt.length   = fuzz_u64(in, 2);
    pkt.offset   = 0;
    pkt.left     = pick(in, pkt.length, 4);
    pkt.num_pkts = pick(in, (pkt.length + 1023) / 1024, 4);
    pkt.num_psn  = pick(in, pkt.num_pkts, 4);
    pkt.raddr    = pick_addr(in);
    pkt.rkey     = pick(in, engine.mr->key, 4);
    pkt.dc_key   = pick(in, ENGINE_DC_KEY, 8);
    pkt.atomic_size = pick(in, 8, 4);
    pkt.flags   &= ~EMU_PKT_INLINE;
    pkt.num_sge  = (pkt.length > 0);
    pkt.sge      = &sge;
    if (emu_resp_receive(&pkt, &rsp)) {
        FUZZ_CHECK(rsp.type < EMU_RSP_LAST);
        emu_rsp_release(&rsp);
    }
    emu_run_deferred();
}

static void act_response(fuzz_input_t *in, unsigned i)
{
    emu_rsp_t rsp = {
        .type      = fuzz_u64(in, 1) % EMU_RSP_LAST,
        .rnr_timer = fuzz_u64(in, 1),
        .has_gap   = fuzz_u64(in, 1) & 1,
        .value     = fuzz_u64(in, 8),
        .proc      = emu_self->index,
        .addr      = (uintptr_t)engine.mem
    };

    if (qps[i]->type == EMU_QPT_DCT) {
        return;
    }

    rsp.psn     = pick(in, qps[i]->req_una + fuzz_u64(in, 1) - 8, 3) &
                  EMU_PSN_MASK;
    rsp.num_psn = pick(in, 1, 3);
    rsp.length  = pick(in, rsp.num_psn * 1024, 2) & 0xffff;
    emu_lock(&qps[i]->req_lock);
    emu_comp_receive(qps[i], &rsp);
    emu_unlock(&qps[i]->req_lock);
    emu_run_deferred();
}

static void act_state(fuzz_input_t *in, unsigned i)
{
    struct ibv_qp_attr attr;

    if (fuzz_u64(in, 1) & 1) {
        fuzz_take(in, &attr, sizeof(attr));
        attr.ah_attr.dlid = pick(in, 1, 2);
        emu_qp_modify(qps[i], &attr, fuzz_u64(in, 3));
    } else {
        attr.qp_state = IBV_QPS_ERR;
        emu_qp_modify(qps[i], &attr, IBV_QP_STATE);
    }
    emu_qp_query(qps[i], &attr);
}

/* Packets that arrive out of order, and writes that are placed late */
static void set_quirks(unsigned bits)
{
    static const char *const texts[] = {"ooo:4:20us:50:1", "late-write:20us"};
    emu_quirk_rule_t rules[EMU_QUIRK_MAX_RULES];
    unsigned i, num;
    char err[256];

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        FUZZ_CHECK(emu_quirk_parse(texts[i], rules, &num, err, sizeof(err)) == 0);
        if (bits & (1u << i)) {
            FUZZ_CHECK(emu_quirk_add(&rules[0]) == 0);
        } else {
            (void)emu_quirk_remove(&rules[0]);
        }
    }
}

/* All accesses release their regions; the timer thread may be in one */
static void check_holds(void)
{
    const struct timespec pause = { 0, 1000000 };
    unsigned slot, ms;

    for (slot = 0; slot < EMU_PROC_MR_HOLDS; ++slot) {
        for (ms = 0; __atomic_load_n(&emu_self->mr_held[slot],
                                     __ATOMIC_RELAXED) != 0; ++ms) {
            FUZZ_CHECK(ms < 10000);
            nanosleep(&pause, NULL);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const actions[])(fuzz_input_t*, unsigned) = {
        act_post, act_packet, act_response, act_state, act_post, act_packet
    };
    fuzz_input_t in = { data, size };
    unsigned i, n, head;

    if (engine.mem == NULL) {
        setup();
    }

    /* All at rest first: one that still repeats requests of the last input could put
     * another one that is just started into ERR */
    for (i = 0; i < NUM_QPS; ++i) {
        engine_qp_reset(qps[i]);
    }
    for (i = 0; i < NUM_QPS; ++i) {
        start(i);
    }

    set_quirks(fuzz_u64(&in, 1));
    for (n = 0; (n < ENGINE_ACTIONS) && (in.size > 0); ++n) {
        head = fuzz_u64(&in, 1);
        actions[(head >> 3) % 6](&in, (head & 7) % NUM_QPS);
        check_holds();
    }

    for (i = 0; i < NUM_QPS; ++i) {
        if (qps[i]->send_cq != NULL) { /* all is polled */
            qps[i]->send_cq->dbrec[0] = htobe32(qps[i]->send_cq->pi & 0xffffff);
        }
        if (qps[i]->recv_cq != NULL) {
            qps[i]->recv_cq->dbrec[0] = htobe32(qps[i]->recv_cq->pi & 0xffffff);
        }
        FUZZ_CHECK(qps[i]->used == 1);
    }
    return 0;
}

void fuzz_seeds(void (*add)(const void *data, size_t size))
{
    uint8_t data[2048];
    unsigned action, qp, i;

    for (action = 0; action < 4; ++action) {
        for (qp = 0; qp < NUM_QPS; ++qp) {
            for (i = 0; i < sizeof(data); ++i) {
                data[i] = (i * 37 + action * 11 + qp * 5) ^ (i >> 3);
            }
            data[0] = (action << 3) | qp;
            add(data, sizeof(data));
        }
    }
}
