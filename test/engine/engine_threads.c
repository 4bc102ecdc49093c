/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The engine under threads, for the thread sanitizer: each thread posts to a queue
 * pair of its own, all add to one word, half of the links' packets are held up or
 * lost so that the service thread is busy, and one thread queries, breaks and
 * restarts a queue pair meanwhile. When all is done, the sum has to be right.
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

typedef struct worker {
    emu_qp_t  *qp;
    emu_qp_t  *peer;
    unsigned  index;
    pthread_t thread;
} worker_t;

static engine_t engine;
static unsigned operations = 2000;
static int stop;

/* Whether the requester has nothing in flight: as a program would see it, by the
 * number of completions */
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
        /* word 0 is everybody's, the others are the thread's */
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
    uint64_t sum;
    unsigned i;

    if (argc > 1) {
        operations = atoi(argv[1]);
    }

    engine_open(&engine, 1 << 20);
    add_rule("packet prob=0.05 seed=3 try=first count=all delay=50us");
    add_rule("ack prob=0.05 seed=4 try=first count=all drop");
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

    for (i = 0; i <= THREADS; ++i) {
        if (i == THREADS) {
            __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
        }
        ENGINE_CHECK(pthread_join(workers[i].thread, NULL) == 0);
    }

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
