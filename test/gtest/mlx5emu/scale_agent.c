/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Many queue pairs in one process, and many processes. Started by test_scale.sh
 * on emulated hosts.
 *
 *   scale_agent qps COUNT      makes COUNT RC queue pairs on the first device,
 *                              connected in a ring, writes once over each, and
 *                              prints the memory that this took
 *   scale_agent wait SECONDS   sleeps in poll() on a completion channel, and
 *                              prints the CPU time of this
 *   scale_agent exit THREADS   exits while THREADS threads write
 *   scale_agent exit_inside    ends by SIGUSR1, while a thread is at an atomic
 *                              on the process's own memory, which it began first
 *   scale_agent devices        writes once over a queue pair of each device,
 *                              and waits for the end of its input
 */

#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CHECK(_cond) \
    do { \
        if (!(_cond)) { \
            fprintf(stderr, "%s:%d: %s failed: %m\n", __FILE__, __LINE__, \
                    #_cond); \
            exit(1); \
        } \
    } while (0)

typedef struct device {
    struct ibv_context      *context;
    struct ibv_pd           *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq           *cq;
    struct ibv_mr           *mr;
    uint16_t                lid;
    uint64_t                words[2]; /* source, target */
} device_t;


static void device_open(device_t *dev, struct ibv_device *ibdev)
{
    struct ibv_port_attr port;

    CHECK((dev->context = ibv_open_device(ibdev)) != NULL);
    CHECK(ibv_query_port(dev->context, 1, &port) == 0);
    dev->lid = port.lid;
    CHECK((dev->pd = ibv_alloc_pd(dev->context)) != NULL);
    CHECK((dev->channel = ibv_create_comp_channel(dev->context)) != NULL);
    CHECK((dev->cq = ibv_create_cq(dev->context, 64, NULL, dev->channel, 0)) !=
          NULL);
    dev->mr = ibv_reg_mr(dev->pd, dev->words, sizeof(dev->words),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                         IBV_ACCESS_REMOTE_ATOMIC);
    CHECK(dev->mr != NULL);
}

static struct ibv_qp *qp_create(device_t *dev)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = dev->cq,
        .recv_cq = dev->cq,
        .qp_type = IBV_QPT_RC,
        .cap     = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1,
                     .max_recv_sge = 1 }
    };
    struct ibv_qp *qp            = ibv_create_qp(dev->pd, &attr);

    CHECK(qp != NULL);
    return qp;
}

static void qp_connect(device_t *dev, struct ibv_qp *qp, uint32_t peer)
{
    struct ibv_qp_attr attr = {
        .qp_state           = IBV_QPS_INIT,
        .port_num           = 1,
        .max_rd_atomic      = 1,
        .max_dest_rd_atomic = 1,
        .qp_access_flags    = IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_ATOMIC
    };

    CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                        IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    attr.qp_state         = IBV_QPS_RTR;
    attr.path_mtu         = IBV_MTU_4096;
    attr.dest_qp_num      = peer;
    attr.ah_attr.dlid     = dev->lid;
    attr.ah_attr.port_num = 1;
    CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
                        IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    attr.qp_state  = IBV_QPS_RTS;
    attr.timeout   = 14;
    attr.retry_cnt = 7;
    CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
                        IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* Write value over the queue pair, and see it arrive */
static void qp_write(device_t *dev, struct ibv_qp *qp, uint64_t value)
{
    struct ibv_sge sge = { .addr   = (uintptr_t)&dev->words[0],
                           .length = 8,
                           .lkey   = dev->mr->lkey };
    struct ibv_send_wr wr = { .sg_list    = &sge,
                              .num_sge    = 1,
                              .opcode     = IBV_WR_RDMA_WRITE,
                              .send_flags = IBV_SEND_SIGNALED };
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    int ret;

    dev->words[0]          = value;
    wr.wr.rdma.remote_addr = (uintptr_t)&dev->words[1];
    wr.wr.rdma.rkey        = dev->mr->rkey;
    CHECK(ibv_post_send(qp, &wr, &bad) == 0);
    while ((ret = ibv_poll_cq(dev->cq, 1, &wc)) == 0);
    CHECK(ret == 1);
    CHECK(wc.status == IBV_WC_SUCCESS);
    CHECK(wc.qp_num == qp->qp_num);
    CHECK(*(volatile uint64_t*)&dev->words[1] == value);
}

/* Resident memory of this process in KiB; it has the fabric's pages that it
 * touched */
static long resident_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long size, resident;

    CHECK(file != NULL);
    CHECK(fscanf(file, "%ld %ld", &size, &resident) == 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void run_qps(struct ibv_device **list, int count)
{
    static device_t dev;
    struct ibv_qp **qps = calloc(count, sizeof(*qps));
    long before, after;
    int i;

    CHECK((qps != NULL) && (count > 1));
    device_open(&dev, list[0]);
    before = resident_kb();
    for (i = 0; i < count; ++i) {
        qps[i] = qp_create(&dev);
    }
    for (i = 0; i < count; ++i) {
        qp_connect(&dev, qps[i], qps[i ^ 1]->qp_num);
    }
    for (i = 0; i < count; ++i) {
        qp_write(&dev, qps[i], 1000 + i);
    }
    after = resident_kb();
    printf("%d queue pairs, %.1f KiB each\n", count,
           (double)(after - before) / count);
    for (i = 0; i < count; ++i) {
        CHECK(ibv_destroy_qp(qps[i]) == 0);
    }
}

static void run_devices(struct ibv_device **list, int count)
{
    static device_t dev[8];
    struct ibv_qp *qps[2];
    int i;

    CHECK(count <= 8);
    for (i = 0; i < count; ++i) {
        device_open(&dev[i], list[i]);
        qps[0] = qp_create(&dev[i]);
        qps[1] = qp_create(&dev[i]);
        qp_connect(&dev[i], qps[0], qps[1]->qp_num);
        qp_connect(&dev[i], qps[1], qps[0]->qp_num);
        qp_write(&dev[i], qps[0], 7 + i);
    }
    printf("%d devices\n", count);
    fflush(stdout);
    while (getchar() != EOF); /* All processes are there at once */
}

static void run_wait(struct ibv_device **list, int seconds)
{
    static device_t dev;
    struct pollfd pfd = { .events = POLLIN };
    struct rusage begin, end;
    struct ibv_qp *qp;
    double cpu;

    device_open(&dev, list[0]);
    qp = qp_create(&dev);
    qp_connect(&dev, qp, qp->qp_num);
    qp_write(&dev, qp, 1);
    CHECK(ibv_req_notify_cq(dev.cq, 0) == 0);
    pfd.fd = dev.channel->fd;
    CHECK(getrusage(RUSAGE_SELF, &begin) == 0);
    CHECK(poll(&pfd, 1, seconds * 1000) == 0); /* Nothing comes */
    CHECK(getrusage(RUSAGE_SELF, &end) == 0);
    cpu = (end.ru_utime.tv_sec - begin.ru_utime.tv_sec) +
          (end.ru_stime.tv_sec - begin.ru_stime.tv_sec) +
          ((end.ru_utime.tv_usec - begin.ru_utime.tv_usec) +
           (end.ru_stime.tv_usec - begin.ru_stime.tv_usec)) / 1e6;
    printf("%.6f s of CPU in %d s\n", cpu, seconds);
}

static struct ibv_device **exit_list;
static int exit_ready;

/* Writes until the library stops it. Errors are ignored, because the process is about
 * to exit */
static void *exit_thread(void *arg)
{
    device_t *dev          = calloc(1, sizeof(*dev));
    struct ibv_send_wr wr  = { .opcode     = IBV_WR_RDMA_WRITE,
                               .num_sge    = 1,
                               .send_flags = IBV_SEND_SIGNALED };
    struct ibv_send_wr *bad;
    struct ibv_sge sge;
    struct ibv_qp *qp;
    struct ibv_wc wc;
    int i;

    (void)arg;
    CHECK(dev != NULL);
    device_open(dev, exit_list[0]);
    qp = qp_create(dev);
    qp_connect(dev, qp, qp->qp_num);
    sge.addr               = (uintptr_t)&dev->words[0];
    sge.length             = 8;
    sge.lkey               = dev->mr->lkey;
    wr.sg_list             = &sge;
    wr.wr.rdma.remote_addr = (uintptr_t)&dev->words[1];
    wr.wr.rdma.rkey        = dev->mr->rkey;
    for (i = 0;; ++i) {
        if (i == 100) {
            __atomic_fetch_add(&exit_ready, 1, __ATOMIC_RELEASE);
        }
        if (ibv_post_send(qp, &wr, &bad) != 0) {
            break;
        }
        while (ibv_poll_cq(dev->cq, 1, &wc) == 0);
    }
    for (;;) {
        pause();
    }
    return NULL;
}

static void run_exit(struct ibv_device **list, int count)
{
    pthread_t thread;
    int i;

    exit_list = list;
    for (i = 0; i < count; ++i) {
        CHECK(pthread_create(&thread, NULL, exit_thread, NULL) == 0);
    }
    while (__atomic_load_n(&exit_ready, __ATOMIC_ACQUIRE) < count) {
        usleep(1000);
    }
}

/* A fault delays this while the NIC executes it */
static void *inside_thread(void *arg)
{
    static device_t dev;
    struct ibv_send_wr wr = { .opcode  = IBV_WR_ATOMIC_FETCH_AND_ADD,
                              .num_sge = 1 };
    struct ibv_send_wr *bad;
    struct ibv_sge sge;
    struct ibv_qp *qp;

    (void)arg;
    device_open(&dev, exit_list[0]);
    qp = qp_create(&dev);
    qp_connect(&dev, qp, qp->qp_num);
    sge.addr                 = (uintptr_t)&dev.words[0];
    sge.length               = 8;
    sge.lkey                 = dev.mr->lkey;
    wr.sg_list               = &sge;
    wr.wr.atomic.remote_addr = (uintptr_t)&dev.words[1];
    wr.wr.atomic.rkey        = dev.mr->rkey;
    CHECK(ibv_post_send(qp, &wr, &bad) == 0);
    for (;;) {
        pause();
    }
    return NULL;
}

static void run_exit_inside(struct ibv_device **list)
{
    pthread_t thread;
    sigset_t signals;
    int signum;

    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    exit_list = list;
    CHECK(pthread_create(&thread, NULL, inside_thread, NULL) == 0);
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    CHECK(sigwait(&signals, &signum) == 0);
}

int main(int argc, char **argv)
{
    struct ibv_device **list;
    int num = 0;

    list = ibv_get_device_list(&num);
    CHECK((list != NULL) && (num > 0));
    if ((argc == 3) && !strcmp(argv[1], "qps")) {
        run_qps(list, atoi(argv[2]));
    } else if ((argc == 3) && !strcmp(argv[1], "wait")) {
        run_wait(list, atoi(argv[2]));
    } else if ((argc == 3) && !strcmp(argv[1], "exit")) {
        run_exit(list, atoi(argv[2]));
    } else if ((argc == 2) && !strcmp(argv[1], "exit_inside")) {
        run_exit_inside(list);
    } else if ((argc == 2) && !strcmp(argv[1], "devices")) {
        run_devices(list, num);
    } else {
        fprintf(stderr, "usage: scale_agent qps COUNT|wait SECONDS|"
                        "exit THREADS|exit_inside|devices\n");
        return 2;
    }

    return 0;
}
