/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The engine in one process. See engine.h.
 */
#include "engine.h"

#include <arpa/inet.h>
#include <endian.h>
#include <sys/mman.h>
#include <unistd.h>

static char engine_name[EMU_NAME_MAX];

/* Of the sanitizers' runtimes */
void __sanitizer_set_death_callback(void (*callback)(void))
        __attribute__((weak));

static void engine_remove(void)
{
    char err[256];

    if (engine_name[0] != '\0') {
        emu_fabric_destroy(engine_name, err, sizeof(err));
        engine_name[0] = '\0';
    }
}

void engine_open(engine_t *engine, size_t length)
{
    emu_fabric_config_t cfg;
    char err[256];

    memset(engine, 0, sizeof(*engine));
    emu_fabric_config_default(&cfg);
    snprintf(cfg.name, sizeof(cfg.name), "engine.%d", (int)getpid());
    cfg.hosts         = 1;
    cfg.links         = 1;
    cfg.trace_entries = 64;
    cfg.heap_size     = 64ul << 20;
    if (emu_fabric_create(&cfg, err, sizeof(err)) != 0) {
        fprintf(stderr, "%s\n", err);
        abort();
    }

    strcpy(engine_name, cfg.name);
    atexit(engine_remove);
    if (__sanitizer_set_death_callback != NULL) {
        __sanitizer_set_death_callback(engine_remove);
    }

    if (emu_proc_attach(cfg.name, 0, err, sizeof(err)) != 0) {
        fprintf(stderr, "%s\n", err);
        abort();
    }

    engine->length = length;
    engine->mem    = mmap(NULL, length, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ENGINE_CHECK(engine->mem != MAP_FAILED);
    ENGINE_CHECK(emu_nic_open(0, &engine->ctx) == 0);
    ENGINE_CHECK(emu_pd_alloc(engine->ctx, &engine->pd) == 0);
    ENGINE_CHECK(emu_mr_reg(engine->pd, (uintptr_t)engine->mem, length,
                            (uintptr_t)engine->mem,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
                            0, &engine->mr) == 0);
}

emu_qp_t *engine_qp(engine_t *engine, emu_qp_type_t type, emu_srq_t *srq)
{
    emu_qp_init_attr_t init = {
        .type       = type,
        .pd         = engine->pd,
        .srq        = srq,
        .sq_bb_cnt  = ENGINE_SQ_BB,
        .rq_wqe_cnt = ((srq == NULL) && (type != EMU_QPT_DCI)) ? 16 : 0,
        .rq_max_sge = 1,
        .dc_key     = ENGINE_DC_KEY
    };
    emu_qp_t *qp;

    ENGINE_CHECK(emu_cq_create(engine->ctx, ENGINE_CQES, 64, NULL, 0,
                               &init.recv_cq) == 0);
    if (type != EMU_QPT_DCT) {
        ENGINE_CHECK(emu_cq_create(engine->ctx, ENGINE_CQES, 64, NULL, 0,
                                   &init.send_cq) == 0);
    }
    ENGINE_CHECK(emu_qp_create(engine->ctx, &init, &qp) == 0);
    return qp;
}

void engine_qp_reset(emu_qp_t *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

    ENGINE_CHECK(emu_qp_modify(qp, &attr, IBV_QP_STATE) == 0);
    qp->dbrec[0] = 0;
    qp->dbrec[1] = 0;
}

void engine_qp_start(engine_t *engine, emu_qp_t *qp, emu_qp_t *peer)
{
    struct ibv_qp_attr attr = {
        .qp_state        = IBV_QPS_INIT,
        .port_num        = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC,
        .path_mtu        = IBV_MTU_1024,
        .ah_attr.dlid    = 1,
        .ah_attr.port_num = 1,
        .dest_qp_num     = (peer == NULL) ? 0 : peer->qpn,
        .max_dest_rd_atomic = 4,
        .max_rd_atomic   = 4,
        .min_rnr_timer   = 1,
        .timeout         = 8,      /* a millisecond */
        .retry_cnt       = 7,
        .rnr_retry       = 1,
        .qkey            = 0x11
    };

    engine_qp_reset(qp);
    ENGINE_CHECK(emu_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                               IBV_QP_PORT |
                               ((qp->type == EMU_QPT_UD) ? IBV_QP_QKEY :
                                (qp->type == EMU_QPT_DCI) ? 0 :
                                IBV_QP_ACCESS_FLAGS)) == 0);
    attr.qp_state = IBV_QPS_RTR;
    ENGINE_CHECK(emu_qp_modify(qp, &attr, IBV_QP_STATE |
                               ((qp->type == EMU_QPT_UD) ? 0 :
                                (IBV_QP_AV | IBV_QP_PATH_MTU)) |
                               ((qp->type == EMU_QPT_DCT) ?
                                IBV_QP_MIN_RNR_TIMER : 0) |
                               ((qp->type == EMU_QPT_RC) ?
                                (IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC |
                                 IBV_QP_MIN_RNR_TIMER) : 0)) == 0);
    if (qp->type == EMU_QPT_DCT) {
        return;
    }

    attr.qp_state = IBV_QPS_RTS;
    ENGINE_CHECK(emu_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
                               ((qp->type == EMU_QPT_UD) ? 0 :
                                (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                 IBV_QP_RNR_RETRY |
                                 IBV_QP_MAX_QP_RD_ATOMIC))) == 0);
}

void engine_post(emu_qp_t *qp, uint16_t index, const void *wqe,
                 unsigned num_bb)
{
    unsigned i;

    for (i = 0; i < num_bb; ++i) {
        memcpy(qp->sq_buf +
               ((index + i) & (qp->sq_bb_cnt - 1)) * EMU_SEND_BB,
               (const uint8_t*)wqe + i * EMU_SEND_BB, EMU_SEND_BB);
    }
    __atomic_store_n(&qp->dbrec[1], htobe32((uint16_t)(index + num_bb)),
                     __ATOMIC_RELEASE);
    emu_sq_doorbell(qp->qpn);
}

void engine_wqe(const engine_t *engine, const emu_qp_t *qp, uint16_t index,
                uint8_t opcode, uint64_t remote, uint64_t local, void *wqe)
{
    struct mlx5_wqe_ctrl_seg *ctrl   = wqe;
    struct mlx5_wqe_raddr_seg *raddr = (void*)(ctrl + 1);
    struct mlx5_wqe_data_seg *data   = (void*)(raddr + 1);
    struct mlx5_wqe_atomic_seg *atom = (void*)(raddr + 1);
    int is_atomic                    = (opcode == MLX5_OPCODE_ATOMIC_FA) ||
                                       (opcode == MLX5_OPCODE_ATOMIC_CS);

    memset(wqe, 0, EMU_SEND_BB);
    ctrl->opmod_idx_opcode = htonl((index << 8) | opcode);
    ctrl->qpn_ds           = htonl((qp->qpn << 8) | (is_atomic ? 4 : 3));
    ctrl->fm_ce_se         = MLX5_WQE_CTRL_CQ_UPDATE;
    raddr->raddr           = htobe64((uintptr_t)engine->mem + remote);
    raddr->rkey            = htonl(engine->mr->key);
    if (is_atomic) {
        atom->swap_add = htobe64(1);
        data           = (void*)(atom + 1);
    }
    data->byte_count = htonl(8);
    data->lkey       = htonl(engine->mr->key);
    data->addr       = htobe64((uintptr_t)engine->mem + local);
}
