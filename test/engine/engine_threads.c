/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The engine under threads, for the thread sanitizer: each thread posts to its own
 * queue pair, all threads add to one word, half of the packets are delayed or lost so
 * that the service thread is busy, and one thread queries, breaks and restarts a queue
 * pair meanwhile. Others send messages over RC, DC and UD to receivers that share one
 * receive queue. In the end the sum must be correct, and each message of RC and DC must
 * have arrived once.
 *
 * usage: engine_threads [OPERATIONS]
 */
#include "engine.h"

#include "fault/emu_fault.h"

#include <endian.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3
#define SENDERS 5          /* two over RC, two over DC to one target, one over UD */
#define SRQ_WQE 64

typedef struct worker {
    emu_qp_t  *qp;
    emu_qp_t  *peer;
    unsigned  index;
    pthread_t thread;
} worker_t;

static engine_t engine;
static unsigned operations = 2000;
static int stop;
static worker_t senders[SENDERS];
static emu_srq_t *srq;
static emu_qp_t *dct;

/* Whether the requester has nothing in flight, by the number of completions */
static uint32_t completions(const emu_qp_t *qp)
{
    emu_cq_t *cq = qp->send_cq;
    uint32_t pi;

    emu_lock(&cq->lock);
    pi           = cq->pi;
    cq->dbrec[0] = htobe32(pi & 0xffffff); /* all are polled */
    emu_unlock(&cq->lock);
    return pi;
}

static void wait_for(const emu_qp_t *qp, uint32_t pi)
{
    struct timespec pause = { .tv_nsec = 20000 };

    while (completions(qp) != pi) {
        nanosleep(&pause, NULL);
    }
}

static void *work(void *arg)
{
    static const uint8_t opcodes[] = { MLX5_OPCODE_ATOMIC_FA,
                                       MLX5_OPCODE_RDMA_WRITE,
                                       MLX5_OPCODE_RDMA_READ };
    worker_t *self = arg;
    uint64_t wqe[EMU_SEND_BB / 8];
    unsigned i;

    for (i = 0; i < operations; ++i) {
        if ((i % 16) == 0) {
            wait_for(self->qp, i);
        }
        /* all threads use word 0, and each its own word */
        engine_wqe(&engine, self->qp, i, opcodes[i % 3],
                   ((i % 3) == 0) ? 0 : (64 + 64 * self->index),
                   4096 + 4096 * self->index + 64 * (i % 16), wqe);
        engine_post(self->qp, i, wqe, 1);
    }
    wait_for(self->qp, operations);
    return NULL;
}

static void *break_and_restart(void *arg)
{
    worker_t *self           = arg;
    struct timespec pause    = { .tv_nsec = 500000 };
    struct ibv_qp_attr attr  = { .qp_state = IBV_QPS_ERR };
    uint64_t wqe[EMU_SEND_BB / 8];
    uint16_t i;

    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        engine_qp_start(&engine, self->peer, self->qp);
        engine_qp_start(&engine, self->qp, self->peer);
        for (i = 0; i < 8; ++i) {
            engine_wqe(&engine, self->qp, i, MLX5_OPCODE_RDMA_WRITE, 1024,
                       2048, wqe);
            engine_post(self->qp, i, wqe, 1);
        }
        emu_qp_query(self->peer, &attr);
        attr.qp_state = IBV_QPS_ERR;
        ENGINE_CHECK(emu_qp_modify(self->peer, &attr, IBV_QP_STATE) == 0);
        nanosleep(&pause, NULL);
        ENGINE_CHECK(emu_qp_modify(self->qp, &attr, IBV_QP_STATE) == 0);
    }
    return NULL;
}

/* A message without contents, so its address is not used */
static void message_wqe(const emu_qp_t *qp, const emu_qp_t *peer,
                        uint16_t index, void *wqe)
{
    struct mlx5_wqe_ctrl_seg *ctrl = wqe;
    struct mlx5_wqe_av *av         = (void*)(ctrl + 1);
    int has_av                     = (qp->type != EMU_QPT_RC);

    memset(wqe, 0, EMU_SEND_BB);
    ctrl->opmod_idx_opcode = htobe32((index << 8) | MLX5_OPCODE_SEND);
    ctrl->qpn_ds           = htobe32((qp->qpn << 8) | (has_av ? 4 : 1));
    ctrl->fm_ce_se         = MLX5_WQE_CTRL_CQ_UPDATE;
    if (has_av) {
        av->dqp_dct = htobe32(0x80000000u | peer->qpn);
        av->rlid    = htobe16(1);
        if (qp->type == EMU_QPT_DCI) {
            av->key.dc_key = htobe64(ENGINE_DC_KEY);
        } else {
            av->key.qkey.qkey = htobe32(0x11);
        }
    }
}

static uint32_t received(const emu_qp_t *qp)
{
    emu_cq_t *cq = qp->recv_cq;
    uint32_t pi;

    emu_lock(&cq->lock);
    pi           = cq->pi;
    cq->dbrec[0] = htobe32(pi & 0xffffff);
    emu_unlock(&cq->lock);
    return pi;
}

/* Datagrams are dropped while there are no receive entries, so repeat until one
 * arrives */
static void *send_messages(void *arg)
{
    worker_t *self = arg;
    uint64_t wqe[EMU_SEND_BB / 8];
    unsigned i;

    for (i = 0; (i < operations / 4) || (received(self->peer) == 0); ++i) {
        if ((i % 8) == 0) {
            wait_for(self->qp, i);
        }
        message_wqe(self->qp, self->peer, i, wqe);
        engine_post(self->qp, i, wqe, 1);
    }
    wait_for(self->qp, i);
    self->index = i;
    return NULL;
}

/* The shared receive queue has entries for all messages in flight, and sometimes fewer,
 * so that the others wait */
static void *refill(void *arg)
{
    struct timespec pause = { .tv_nsec = 100000 };
    uint32_t count;

    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        count = received(senders[0].peer) + received(senders[1].peer) +
                received(dct) + received(senders[4].peer);
        __atomic_store_n(&srq->dbrec[0],
                         htobe32((uint16_t)(count + SRQ_WQE - 1)),
                         __ATOMIC_RELEASE);
        nanosleep(&pause, NULL);
    }
    return arg;
}

static void start_senders(pthread_t *refiller)
{
    static const emu_qp_type_t types[SENDERS] = { EMU_QPT_RC, EMU_QPT_RC,
                                                  EMU_QPT_DCI, EMU_QPT_DCI,
                                                  EMU_QPT_UD };
    struct ibv_qp_attr attr                   = { .rnr_retry = 7 };
    unsigned i;

    ENGINE_CHECK(emu_srq_create(engine.pd, SRQ_WQE - 1, 1, 0, &srq) == 0);
    dct = engine_qp(&engine, EMU_QPT_DCT, srq);
    engine_qp_start(&engine, dct, NULL);
    for (i = 0; i < SENDERS; ++i) {
        senders[i].qp   = engine_qp(&engine, types[i], NULL);
        senders[i].peer = (types[i] == EMU_QPT_DCI) ? dct :
                          engine_qp(&engine, types[i], srq);
        engine_qp_start(&engine, senders[i].qp, senders[i].peer);
        if (types[i] != EMU_QPT_DCI) {
            engine_qp_start(&engine, senders[i].peer, senders[i].qp);
        }
        if (types[i] != EMU_QPT_UD) {
            ENGINE_CHECK(emu_qp_modify(senders[i].qp, &attr,
                                       IBV_QP_RNR_RETRY) == 0);
        }
    }

    ENGINE_CHECK(pthread_create(refiller, NULL, refill, NULL) == 0);
    for (i = 0; i < SENDERS; ++i) {
        ENGINE_CHECK(pthread_create(&senders[i].thread, NULL, send_messages,
                                    &senders[i]) == 0);
    }
}

static void check_senders(void)
{
    unsigned each = operations / 4;

    printf("%u messages each; received: RC %u, %u, DC %u, UD %u\n", each,
           received(senders[0].peer), received(senders[1].peer),
           received(dct), received(senders[4].peer));
    ENGINE_CHECK(received(senders[0].peer) == each);
    ENGINE_CHECK(received(senders[1].peer) == each);
    ENGINE_CHECK(received(dct) == 2 * each);
    ENGINE_CHECK(received(senders[4].peer) <= senders[4].index);
}

static void add_rule(const char *line)
{
    emu_fault_rule_t rule;
    char err[256];

    if (emu_fault_rule_parse(line, &rule, err, sizeof(err)) != 0) {
        fprintf(stderr, "%s: %s\n", line, err);
        abort();
    }
    rule.id = ++emu_fabric->fault_next_id;
    emu_lock(&emu_fabric->fault_lock);
    emu_fabric->fault_rules[emu_fabric->fault_active] = rule;
    __atomic_fetch_add(&emu_fabric->fault_active, 1, __ATOMIC_RELEASE);
    emu_unlock(&emu_fabric->fault_lock);
}

int main(int argc, char **argv)
{
    worker_t workers[THREADS + 1];
    pthread_t refiller;
    uint64_t sum;
    unsigned i;

    if (argc > 1) {
        operations = atoi(argv[1]);
    }

    engine_open(&engine, 1 << 20);
    add_rule("packet prob=0.05 seed=3 try=first count=all delay=50us");
    add_rule("ack prob=0.05 seed=4 try=first count=all drop");
    start_senders(&refiller);
    for (i = 0; i <= THREADS; ++i) {
        workers[i].index = i;
        workers[i].qp    = engine_qp(&engine, EMU_QPT_RC, NULL);
        workers[i].peer  = engine_qp(&engine, EMU_QPT_RC, NULL);
        engine_qp_start(&engine, workers[i].qp, workers[i].peer);
        engine_qp_start(&engine, workers[i].peer, workers[i].qp);
        ENGINE_CHECK(pthread_create(&workers[i].thread, NULL,
                                    (i < THREADS) ? work : break_and_restart,
                                    &workers[i]) == 0);
    }

    for (i = 0; i < SENDERS; ++i) {
        ENGINE_CHECK(pthread_join(senders[i].thread, NULL) == 0);
    }
    for (i = 0; i <= THREADS; ++i) {
        if (i == THREADS) {
            __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
        }
        ENGINE_CHECK(pthread_join(workers[i].thread, NULL) == 0);
    }

    ENGINE_CHECK(pthread_join(refiller, NULL) == 0);
    check_senders();
    sum = *(uint64_t*)engine.mem;
    printf("%lu additions of %u, %lu and %lu faults\n", (unsigned long)sum,
           THREADS * ((operations + 2) / 3),
           (unsigned long)emu_fabric->fault_rules[0].fired,
           (unsigned long)emu_fabric->fault_rules[1].fired);
    ENGINE_CHECK(sum == THREADS * ((operations + 2) / 3));
    ENGINE_CHECK(emu_fabric->fault_rules[0].fired > 0);
    ENGINE_CHECK(emu_fabric->fault_rules[1].fired > 0);
    emu_proc_detach();
    return 0;
}
