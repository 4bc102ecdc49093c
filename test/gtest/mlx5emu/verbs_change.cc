/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Groups of checks of verbs_args about objects that change while they are in use:
 * resized completion queues, and memory regions that are registered again. A queue pair
 * that is connected to itself makes the completions.
 */

#include "verbs_args.h"

#include <poll.h>

#include <initializer_list>

namespace {

/* A queue pair that is connected to itself, with its own completion queues */
struct loop {
    loop(device &d, int entries, ibv_pd *pd = NULL) : d(d)
    {
        ibv_qp_init_attr attr = d.qp_attr();
        ibv_port_attr port;
        ibv_qp_attr modify = {};

        cq                   = ibv_create_cq(d.ctx, entries, NULL, d.channel, 0);
        attr.send_cq         = cq;
        attr.cap.max_send_wr = 64;
        qp                   = ibv_create_qp((pd == NULL) ? d.pd : pd, &attr);
        CHECK((cq != NULL) && (qp != NULL));
        CHECK(ibv_query_port(d.ctx, 1, &port) == 0);

        modify.qp_state        = IBV_QPS_INIT;
        modify.port_num        = 1;
        modify.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        CHECK(ibv_modify_qp(qp, &modify, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                            IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
        modify.qp_state           = IBV_QPS_RTR;
        modify.path_mtu           = IBV_MTU_1024;
        modify.dest_qp_num        = qp->qp_num;
        modify.max_dest_rd_atomic = 1;
        modify.ah_attr.dlid       = port.lid;
        modify.ah_attr.port_num   = 1;
        CHECK(ibv_modify_qp(qp, &modify, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                            IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER |
                            IBV_QP_MAX_DEST_RD_ATOMIC) == 0);
        modify.qp_state      = IBV_QPS_RTS;
        modify.timeout       = 14;
        modify.retry_cnt     = 7;
        modify.max_rd_atomic = 1;
        CHECK(ibv_modify_qp(qp, &modify, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                            IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_MAX_QP_RD_ATOMIC) == 0);
    }

    ~loop()
    {
        CHECK(ibv_destroy_qp(qp) == 0);
        CHECK(ibv_destroy_cq(cq) == 0);
    }

    /* Requests with numbers that go on, each of which completes */
    void post(int count)
    {
        ibv_send_wr wr = {}, *bad;

        wr.opcode     = IBV_WR_RDMA_WRITE;
        wr.send_flags = IBV_SEND_SIGNALED;
        for (int i = 0; i < count; ++i) {
            wr.wr_id = posted++;
            CHECK(ibv_post_send(qp, &wr, &bad) == 0);
        }
    }

    /* So many of their completions, and in their order */
    void poll(int count)
    {
        ibv_wc wc;

        for (int i = 0; i < count; ++i) {
            CHECK(ibv_poll_cq(cq, 1, &wc) == 1);
            CHECK((wc.wr_id == polled) && (wc.status == IBV_WC_SUCCESS));
            ++polled;
        }
    }

    /* There are no others */
    void poll_all()
    {
        ibv_wc wc;

        poll(posted - polled);
        CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
    }

    device   &d;
    ibv_cq   *cq;
    ibv_qp   *qp;
    uint64_t posted = 0;
    uint64_t polled = 0;
};

void check_resize_keeps()
{
    device d;

    /* At all places of the ring, into all sizes that suffice */
    for (int start = 0; start < 17; ++start) {
        for (int unpolled = 0; unpolled <= 7; ++unpolled) {
            for (int cqe : {1, 3, 15, 31}) {
                loop l(d, 7);
                CHECK(l.cq->cqe == 7);
                for (int i = 0; i < start; ++i) {
                    l.post(1);
                    l.poll(1);
                }
                l.post(unpolled);
                if (unpolled > cqe + 1) {
                    CHECK(ibv_resize_cq(l.cq, cqe) == EINVAL);
                    CHECK(l.cq->cqe == 7);
                } else {
                    CHECK(ibv_resize_cq(l.cq, cqe) == 0);
                    CHECK(l.cq->cqe == cqe);
                }
                l.poll_all();
                for (int i = 0; i < 20; ++i) {
                    l.post(l.cq->cqe);
                    l.poll_all();
                }
            }
        }
    }
}

} /* namespace */

/* Completions that were not polled stay, in order; if they do not fit, nothing
 * changes */
void check_resize_cq()
{
    check_resize_keeps();

    device d;
    loop l(d, 7);
    ibv_cq *event_cq;
    void *context;

    CHECK(ibv_resize_cq(NULL, 1) == EINVAL);
    CHECK(ibv_resize_cq(l.cq, 0) == EINVAL);
    CHECK(ibv_resize_cq(l.cq, -1) == EINVAL);
    CHECK(ibv_resize_cq(l.cq, 1 << 30) == EINVAL);
    CHECK(ibv_resize_cq(l.cq, 5) == 0);
    CHECK(l.cq->cqe == 7);

    /* An arming also stays */
    pollfd fd = {d.channel->fd, POLLIN, 0};
    CHECK(ibv_req_notify_cq(l.cq, 0) == 0);
    CHECK(ibv_resize_cq(l.cq, 20) == 0);
    CHECK(l.cq->cqe == 31);
    CHECK(poll(&fd, 1, 0) == 0);
    l.post(1);
    CHECK(ibv_get_cq_event(d.channel, &event_cq, &context) == 0);
    CHECK(event_cq == l.cq);
    ibv_ack_cq_events(l.cq, 1);
    l.poll_all();
}

/* Queues that cannot be resized: overrun, or polled by the program itself */
void check_resize_refused()
{
    device d;
    loop l(d, 3);
    ibv_async_event event;
    mlx5dv_cq dv   = {};
    mlx5dv_obj obj = {};

    l.post(5);
    CHECK(ibv_resize_cq(l.cq, 7) == EINVAL);
    for (int i = 0; i < 2; ++i) {
        CHECK(ibv_get_async_event(d.ctx, &event) == 0);
        CHECK((event.event_type == IBV_EVENT_CQ_ERR) ||
              (event.event_type == IBV_EVENT_QP_FATAL));
        ibv_ack_async_event(&event);
    }

    obj.cq.in  = d.cq;
    obj.cq.out = &dv;
    CHECK(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) == 0);
    CHECK(ibv_resize_cq(d.cq, 1000) == EOPNOTSUPP);
}

namespace {

const int RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                   IBV_ACCESS_REMOTE_READ;

/* How a write and a read of 8 bytes end, by a queue pair of that PD */
ibv_wc_status access(device &d, ibv_pd *pd, ibv_wr_opcode opcode, void *addr,
                     uint32_t rkey, void *laddr, uint32_t lkey)
{
    loop l(d, 7, pd);
    ibv_send_wr wr = {}, *bad;
    ibv_sge sge    = {};
    ibv_wc wc      = {};

    sge.addr               = (uintptr_t)laddr;
    sge.length             = 8;
    sge.lkey               = lkey;
    wr.sg_list             = &sge;
    wr.num_sge             = 1;
    wr.opcode              = opcode;
    wr.send_flags          = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = (uintptr_t)addr;
    wr.wr.rdma.rkey        = rkey;
    CHECK(ibv_post_send(l.qp, &wr, &bad) == 0);
    CHECK(ibv_poll_cq(l.cq, 1, &wc) == 1);
    return wc.status;
}

/* Both, from and to the same region */
bool access_all(device &d, ibv_mr *mr, ibv_wc_status write, ibv_wc_status read)
{
    char *p = (char*)mr->addr;

    return (access(d, mr->pd, IBV_WR_RDMA_WRITE, p, mr->rkey, p + 8, mr->lkey) ==
            write) &&
           (access(d, mr->pd, IBV_WR_RDMA_READ, p, mr->rkey, p + 8, mr->lkey) == read);
}

} /* namespace */

/* Rights and PD change at once, with the same keys; other memory has others, and the old
 * ones are dead. Read what the key is after each change: a NIC may do otherwise. */
void check_rereg_mr()
{
    static char other[8192];
    device d;
    ibv_pd *pd    = ibv_alloc_pd(d.ctx);
    ibv_mr *mr    = ibv_reg_mr(d.pd, d.buffer, 64, RIGHTS);
    ibv_mr *local = ibv_reg_mr(d.pd, d.buffer + 128, 64, IBV_ACCESS_LOCAL_WRITE);
    uint32_t key  = mr->rkey;

    CHECK(access_all(d, mr, IBV_WC_SUCCESS, IBV_WC_SUCCESS));
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ) == 0);
    CHECK((mr->rkey == key) && (mr->addr == d.buffer) && (mr->length == 64));
    CHECK(access_all(d, mr, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS));
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                       IBV_ACCESS_LOCAL_WRITE) == 0);
    CHECK(access_all(d, mr, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR));
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS) == 0);
    CHECK(access_all(d, mr, IBV_WC_SUCCESS, IBV_WC_SUCCESS));

    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) == 0);
    CHECK((mr->pd == pd) && (mr->rkey == key));
    CHECK(access_all(d, mr, IBV_WC_SUCCESS, IBV_WC_SUCCESS));
    CHECK(access(d, d.pd, IBV_WR_RDMA_WRITE, d.buffer, key, local->addr, local->lkey) ==
          IBV_WC_REM_ACCESS_ERR);
    CHECK(ibv_dealloc_pd(pd) == EBUSY);

    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD, d.pd,
                       other, sizeof(other), 0) == 0);
    CHECK((mr->addr == other) && (mr->length == sizeof(other)) && (mr->pd == d.pd));
    CHECK(ibv_dealloc_pd(pd) == 0);
    CHECK(access_all(d, mr, IBV_WC_SUCCESS, IBV_WC_SUCCESS));
    CHECK(access(d, d.pd, IBV_WR_RDMA_WRITE, other + sizeof(other) - 8, mr->rkey,
                 local->addr, local->lkey) == IBV_WC_SUCCESS);
    CHECK(access(d, d.pd, IBV_WR_RDMA_WRITE, d.buffer, mr->rkey, local->addr,
                 local->lkey) == IBV_WC_REM_ACCESS_ERR);
    CHECK((mr->rkey != key) && (mr->lkey == mr->rkey));
    CHECK(access(d, d.pd, IBV_WR_RDMA_WRITE, d.buffer, key, local->addr, local->lkey) ==
          IBV_WC_REM_ACCESS_ERR);
    CHECK(ibv_dereg_mr(local) == 0);
    CHECK(ibv_dereg_mr(mr) == 0);
}

/* A region that could not be changed is as before */
void check_rereg_refused()
{
    device d, other(1);
    ibv_mr *mr   = ibv_reg_mr(d.pd, d.buffer, 64, RIGHTS);
    uint32_t key = mr->rkey;

    CHECK(ibv_rereg_mr(NULL, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS) ==
          IBV_REREG_MR_ERR_INPUT);
    CHECK(ibv_rereg_mr(mr, 0x80, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT);
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0) ==
          IBV_REREG_MR_ERR_INPUT);
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 64, 0) ==
          IBV_REREG_MR_ERR_INPUT);
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, d.buffer, 0, 0) ==
          IBV_REREG_MR_ERR_INPUT);
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, d.pd, NULL, 0, RIGHTS) ==
          IBV_REREG_MR_ERR_INPUT);

    CHECK((ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_CMD) &&
          (errno == EINVAL));
    CHECK((ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other.pd, NULL, 0, 0) ==
           IBV_REREG_MR_ERR_CMD) && (errno == EINVAL));
    CHECK((ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                        IBV_ACCESS_REMOTE_WRITE) == IBV_REREG_MR_ERR_CMD) &&
          (errno == EINVAL));
    CHECK((ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                        IBV_ACCESS_ON_DEMAND) == IBV_REREG_MR_ERR_CMD) &&
          (errno == EOPNOTSUPP));
    CHECK((ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void*)-4096, 8192,
                        0) == IBV_REREG_MR_ERR_CMD) && (errno == EINVAL));

    CHECK((mr->pd == d.pd) && (mr->addr == d.buffer) && (mr->length == 64));
    CHECK((mr->rkey == key) && (mr->lkey == key));
    CHECK(access_all(d, mr, IBV_WC_SUCCESS, IBV_WC_SUCCESS));
    CHECK(ibv_dereg_mr(mr) == 0);
}
