/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Check of events: whether arming a completion queue raises one for a completion that is
 * there already.
 */
#include "check_def.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define CHECK_ARM_RECVS      2
#define CHECK_ARM_WAIT       20      /* Seconds, for the first completion */
#define CHECK_ARM_PAUSE_US   50000   /* for the others, which come with it */
#define CHECK_ARM_EVENT_MS   1000    /* for the event, which comes at once or never */


typedef struct {
    struct ibv_comp_channel *channel;
    struct ibv_cq           *cq;
    struct ibv_qp           *qp;
} check_arm_t;

static void check_arm_close(check_arm_t *arm)
{
    if (arm->qp != NULL) {
        ibv_destroy_qp(arm->qp);
    }
    if (arm->cq != NULL) {
        ibv_destroy_cq(arm->cq);
    }
    if (arm->channel != NULL) {
        ibv_destroy_comp_channel(arm->channel);
    }
}

/* A queue pair in INIT. @return 0 or errno */
static int check_arm_open(check_nic_t *nic, check_arm_t *arm)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap     = {.max_send_wr = 1, .max_recv_wr = CHECK_ARM_RECVS,
                    .max_send_sge = 1, .max_recv_sge = 1}
    };
    struct ibv_qp_attr attr      = {.qp_state = IBV_QPS_INIT, .port_num = nic->port};

    errno        = 0;
    arm->channel = ibv_create_comp_channel(nic->context);
    if (arm->channel != NULL) {
        arm->cq = ibv_create_cq(nic->context, 2 * CHECK_ARM_RECVS, NULL, arm->channel, 0);
    }

    if (arm->cq != NULL) {
        init.send_cq = arm->cq;
        init.recv_cq = arm->cq;
        arm->qp      = ibv_create_qp(nic->pd, &init);
    }

    if (arm->qp == NULL) {
        return (errno != 0) ? errno : ENOMEM;
    }

    return ibv_modify_qp(arm->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                         IBV_QP_ACCESS_FLAGS);
}

/* Have the receives flushed, and poll the first of them. @return 0 or errno */
static int check_arm_flush(check_arm_t *arm)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_recv_wr wr   = {0};
    double end              = check_now() + CHECK_ARM_WAIT;
    struct ibv_recv_wr *bad;
    struct ibv_wc wc;
    int i, ret = 0;

    for (i = 0; (i < CHECK_ARM_RECVS) && (ret == 0); ++i) {
        ret = ibv_post_recv(arm->qp, &wr, &bad);
    }

    if (ret == 0) {
        ret = ibv_modify_qp(arm->qp, &attr, IBV_QP_STATE);
    }

    while ((ret == 0) && (ibv_poll_cq(arm->cq, 1, &wc) == 0)) {
        if (check_now() > end) {
            ret = ETIMEDOUT;
        }
    }

    return ret;
}

/* @return 0 or errno; *has_event_p: arming raised an event for the second completion */
static int check_arm_one(check_nic_t *nic, int *has_event_p)
{
    check_arm_t arm = {NULL};
    struct pollfd pfd;
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *context;
    int ret;

    ret = check_arm_open(nic, &arm);
    if (ret == 0) {
        ret = check_arm_flush(&arm);
    }

    if (ret == 0) {
        usleep(CHECK_ARM_PAUSE_US);
        ret = ibv_req_notify_cq(arm.cq, 0);
    }

    if (ret == 0) {
        pfd.fd       = arm.channel->fd;
        pfd.events   = POLLIN;
        *has_event_p = (poll(&pfd, 1, CHECK_ARM_EVENT_MS) == 1);
        if (*has_event_p && (ibv_get_cq_event(arm.channel, &cq, &context) == 0)) {
            ibv_ack_cq_events(cq, 1);
        }
        ret = (ibv_poll_cq(arm.cq, 1, &wc) == 1) ? 0 : ETIMEDOUT;
    }

    check_arm_close(&arm);
    return ret;
}

void check_arm(check_run_t *run)
{
    int has_event = 0;
    const char *name;
    unsigned i;
    int ret;

    for (i = 0; i < run->nics.count; ++i) {
        if (!run->nics.nic[i].wire.is_active) {
            continue;
        }

        name = run->nics.nic[i].wire.name;
        ret  = check_arm_one(&run->nics.nic[i], &has_event);
        if (ret != 0) {
            check_row(run, "cq-arm", CHECK_FAIL, name, "cannot be tested: %s",
                      strerror(ret));
        } else if (has_event) {
            check_row(run, "cq-arm", CHECK_OK, name,
                      "arming a completion queue raises an event for what is there");
        } else {
            check_row(run, "cq-arm", CHECK_NOTE, name,
                      "arming a completion queue raises no event for what is there: "
                      "lanes over rc_verbs are polled once more");
        }
    }
}
