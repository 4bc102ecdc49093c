/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Groups of checks of verbs_args about objects that change while they are in use:
 * completion queues that are resized. A queue pair that is connected to itself makes
 * the completions.
 */

#include "verbs_args.h"

#include <poll.h>

#include <initializer_list>

namespace {

/* A queue pair that is connected to itself, with completion queues of its own */
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

/* What was not polled stays, in its order; where it does not fit, nothing changes */
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

    /* An arming stays, too */
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
