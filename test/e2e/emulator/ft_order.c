/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * For test_time.sh: when a packet is due, whatever the machine does meanwhile.
 *
 *     ft_order target FILE
 *     ft_order sender FILE SIZE NANOSECONDS COUNT
 *
 * The sender writes SIZE bytes to the target, COUNT times, each time followed by a write to
 * itself, which takes no link, at least NANOSECONDS after the doorbell of the first one has
 * returned. The emulator takes all steps in the order of the times at which they are due,
 * however late it is. So if the first write takes at most NANOSECONDS, it is executed before
 * the second one, always. The trace shows the order. A sender that is late posts the second
 * write later, and so proves less, but nothing wrong.
 *
 * They find each other's queue pairs in files FILE.*. The target exits at the end of its
 * input. Queue pairs wait for acknowledgements forever.
 */
#include <infiniband/verbs.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FT_MEMORY (1 << 20)
#define FT_WAIT   120 /* Seconds; ends only a hang */

#define ft_die(...) \
    do { \
        fprintf(stderr, "ft_order: " __VA_ARGS__); \
        fprintf(stderr, "\n"); \
        exit(1); \
    } while (0)

typedef struct {
    uint32_t qpn;
    unsigned lid;
    uint32_t rkey;
    uint64_t addr;
} ft_side_t;

static struct {
    struct ibv_context *context;
    struct ibv_pd      *pd;
    struct ibv_cq      *cq;
    struct ibv_mr      *mr;
    unsigned           lid;
} ft;

static uint64_t ft_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (ts.tv_sec * 1000000000ul) + ts.tv_nsec;
}

static void ft_open(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_port_attr port;

    if ((devices == NULL) || (devices[0] == NULL) ||
        ((ft.context = ibv_open_device(devices[0])) == NULL) ||
        (ibv_query_port(ft.context, 1, &port) != 0) ||
        ((ft.pd = ibv_alloc_pd(ft.context)) == NULL) ||
        ((ft.cq = ibv_create_cq(ft.context, 16, NULL, NULL, 0)) == NULL) ||
        ((ft.mr = ibv_reg_mr(ft.pd, calloc(1, FT_MEMORY), FT_MEMORY,
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) == NULL)) {
        ft_die("there is no device that works");
    }
    ft.lid = port.lid;
}

static struct ibv_qp *ft_create(ft_side_t *side)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = ft.cq,
        .recv_cq = ft.cq,
        .cap     = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1,
                    .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC
    };
    struct ibv_qp *qp            = ibv_create_qp(ft.pd, &attr);

    if (qp == NULL) {
        ft_die("there is no queue pair");
    }
    *side = (ft_side_t){.qpn = qp->qp_num, .lid = ft.lid, .rkey = ft.mr->rkey,
                        .addr = (uintptr_t)ft.mr->addr};
    return qp;
}

static void ft_connect(struct ibv_qp *qp, const ft_side_t *peer)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_attr rtr  = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096,
                               .dest_qp_num = peer->qpn, .max_dest_rd_atomic = 1,
                               .ah_attr = {.dlid = peer->lid, .port_num = 1}};
    struct ibv_qp_attr rts  = {.qp_state = IBV_QPS_RTS, .timeout = 0, .retry_cnt = 7,
                               .rnr_retry = 7, .max_rd_atomic = 1};

    if (ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                      IBV_QP_ACCESS_FLAGS) ||
        ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                      IBV_QP_MIN_RNR_TIMER) ||
        ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)) {
        ft_die("a queue pair does not connect");
    }
}

/* Files appear as a whole */
static void ft_tell(const char *path, const char *role, const ft_side_t *side)
{
    char temporary[512], name[512];
    FILE *file;

    snprintf(temporary, sizeof(temporary), "%s.new.%s", path, role);
    snprintf(name, sizeof(name), "%s.%s", path, role);
    file = fopen(temporary, "w");
    if ((file == NULL) ||
        (fprintf(file, "%u %u %u %" PRIu64, side->qpn, side->lid, side->rkey,
                 side->addr) < 0) ||
        (fclose(file) != 0) || (rename(temporary, name) != 0)) {
        ft_die("cannot write %s", name);
    }
}

static void ft_hear(const char *path, const char *role, ft_side_t *side)
{
    uint64_t end = ft_now() + (FT_WAIT * 1000000000ul);
    char name[512];
    FILE *file;

    snprintf(name, sizeof(name), "%s.%s", path, role);
    while ((file = fopen(name, "r")) == NULL) {
        if (ft_now() > end) {
            ft_die("there is no %s", name);
        }
        usleep(10000);
    }

    if (fscanf(file, "%u %u %u %" SCNu64, &side->qpn, &side->lid, &side->rkey,
               &side->addr) != 4) {
        ft_die("%s is wrong", name);
    }
    fclose(file);
}

static void ft_write(struct ibv_qp *qp, const ft_side_t *peer, unsigned size)
{
    struct ibv_sge sge     = {.addr = (uintptr_t)ft.mr->addr, .length = size,
                              .lkey = ft.mr->lkey};
    struct ibv_send_wr wr  = {.sg_list = &sge, .num_sge = 1,
                              .opcode = IBV_WR_RDMA_WRITE,
                              .send_flags = IBV_SEND_SIGNALED,
                              .wr.rdma = {.remote_addr = peer->addr, .rkey = peer->rkey}};
    struct ibv_send_wr *bad;

    if (ibv_post_send(qp, &wr, &bad) != 0) {
        ft_die("a write is not posted");
    }
}

static void ft_complete(unsigned count)
{
    uint64_t end = ft_now() + (FT_WAIT * 1000000000ul);
    struct ibv_wc wc;
    int ret;

    while (count > 0) {
        ret = ibv_poll_cq(ft.cq, 1, &wc);
        if ((ret < 0) || ((ret > 0) && (wc.status != IBV_WC_SUCCESS))) {
            ft_die("a write has failed");
        } else if ((ret == 0) && (ft_now() > end)) {
            ft_die("a write does not complete");
        } else if (ret == 0) {
            usleep(200);
        }
        count -= ret;
    }
}

static void ft_target(const char *path)
{
    ft_side_t own, sender;
    struct ibv_qp *qp = ft_create(&own);

    ft_tell(path, "target", &own);
    ft_hear(path, "sender", &sender);
    ft_connect(qp, &sender);
    ft_tell(path, "connected", &own);
    while (getchar() != EOF);
}

static void ft_sender(const char *path, unsigned size, uint64_t wait, unsigned count)
{
    ft_side_t own, target, here, there;
    struct ibv_qp *qp  = ft_create(&own);
    struct ibv_qp *out = ft_create(&here);
    struct ibv_qp *in  = ft_create(&there);
    struct timespec due;
    uint64_t ns;

    ft_connect(out, &there);
    ft_connect(in, &here);
    ft_tell(path, "sender", &own);
    ft_hear(path, "target", &target);
    ft_connect(qp, &target);
    ft_hear(path, "connected", &target);
    for (; count > 0; --count) {
        ft_write(qp, &target, size);
        ns  = ft_now() + wait;
        due = (struct timespec){.tv_sec  = ns / 1000000000ul,
                                .tv_nsec = ns % 1000000000ul};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0);
        ft_write(out, &there, 8);
        ft_complete(2);
    }
    printf("ft: ok\n");
}

int main(int argc, char **argv)
{
    if ((argc == 3) && !strcmp(argv[1], "target")) {
        ft_open();
        ft_target(argv[2]);
    } else if ((argc == 6) && !strcmp(argv[1], "sender") && (atoi(argv[3]) <= FT_MEMORY)) {
        ft_open();
        ft_sender(argv[2], atoi(argv[3]), strtoull(argv[4], NULL, 0), atoi(argv[5]));
    } else {
        ft_die("wrong usage");
    }
    return 0;
}
