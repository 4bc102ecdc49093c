/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checks with a host's own queue pairs: flushes, events, times of commands.
 */
#include "check_def.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CHECK_FLUSHES      8
#define CHECK_COMMANDS     20
#define CHECK_COMMAND_SLOW 0.1 /* Seconds */

/* Seconds for what a NIC does within microseconds. The machine may be busy */
#define CHECK_FLUSH_WAIT   20
#define CHECK_EVENT_WAIT   5


/* Connect a queue pair with itself, so that it can be in RTS. */
static int check_local_qp(check_nic_t *nic, int with_srq, check_qp_t *qp)
{
    int ret = check_qp_create(nic, with_srq, qp);

    if (ret == 0) {
        ret = check_qp_connect(qp, &nic->wire, qp->qp->qp_num, qp->psn);
        if (ret != 0) {
            check_qp_destroy(qp);
        }
    }

    return ret;
}

/* @return 0 or errno; *right is the number of completions in order and with the right
 * status */
static int check_flush_one(check_nic_t *nic, unsigned *right)
{
    struct ibv_recv_wr wr = {0};
    struct ibv_send_wr swr = {.opcode     = IBV_WR_RDMA_WRITE,
                              .send_flags = IBV_SEND_SIGNALED};
    struct ibv_recv_wr *bad;
    struct ibv_send_wr *sbad;
    double end;
    struct ibv_wc wc;
    unsigned i, next[2] = {0, CHECK_FLUSHES};
    check_qp_t qp;
    int ret;

    ret = check_local_qp(nic, 0, &qp);
    if (ret != 0) {
        return ret;
    }

    for (i = 0; (i < CHECK_FLUSHES) && (ret == 0); ++i) {
        wr.wr_id = CHECK_FLUSHES + i;
        ret      = ibv_post_recv(qp.qp, &wr, &bad);
    }

    if (ret == 0) {
        ret = check_qp_modify(&qp, IBV_QPS_ERR);
    }

    for (i = 0; (i < CHECK_FLUSHES) && (ret == 0); ++i) {
        swr.wr_id = i;
        ret       = ibv_post_send(qp.qp, &swr, &sbad);
    }

    *right = 0;
    for (end = check_now() + CHECK_FLUSH_WAIT; (ret == 0) && (*right < 2 * CHECK_FLUSHES) &&
                                (check_now() < end);) {
        if (ibv_poll_cq(qp.cq, 1, &wc) > 0) {
            i = (wc.wr_id >= CHECK_FLUSHES);
            if ((wc.status != IBV_WC_WR_FLUSH_ERR) || (wc.wr_id != next[i])) {
                break;
            }

            ++next[i];
            ++*right;
        }
    }

    check_qp_destroy(&qp);
    return ret;
}

void check_flush(check_run_t *run)
{
    unsigned i, right;
    int ret;

    for (i = 0; i < run->nics.count; ++i) {
        if (!run->nics.nic[i].wire.is_active) {
            continue;
        }

        ret = check_flush_one(&run->nics.nic[i], &right);
        if (ret != 0) {
            check_row(run, "flush", CHECK_FAIL, run->nics.nic[i].wire.name,
                      "cannot be tested: %s", strerror(ret));
        } else {
            check_row(run, "flush",
                      (right == 2 * CHECK_FLUSHES) ? CHECK_OK : CHECK_FAIL,
                      run->nics.nic[i].wire.name,
                      "%u of %u flushed requests complete, in order", right,
                      2 * CHECK_FLUSHES);
        }
    }
}

/* The wait for LAST_WQE_REACHED of a NIC */
typedef struct {
    check_qp_t qp;
    int        is_waiting;
    double     start;
    double     took;    /* Seconds until the event, or -1 */
} check_last_wqe_t;

static void check_last_wqe_start(check_nic_t *nic, check_last_wqe_t *last)
{
    last->took       = -1;
    last->is_waiting = 0;
    if (check_local_qp(nic, 1, &last->qp) != 0) {
        return;
    }

    last->start = check_now();
    if (check_qp_modify(&last->qp, IBV_QPS_ERR) == 0) {
        last->is_waiting = 1;
    } else {
        check_qp_destroy(&last->qp);
    }
}

/* Look for the event. @return Whether to look again */
static int check_last_wqe_poll(check_nic_t *nic, check_last_wqe_t *last)
{
    struct ibv_async_event event;

    if (!last->is_waiting) {
        return 0;
    }

    while ((last->took < 0) &&
           (ibv_get_async_event(nic->context, &event) == 0)) {
        if ((event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED) &&
            (event.element.qp == last->qp.qp)) {
            last->took = check_now() - last->start;
        }
        ibv_ack_async_event(&event);
    }

    if ((last->took < 0) && (check_now() - last->start < CHECK_EVENT_WAIT)) {
        return 1;
    }

    check_qp_destroy(&last->qp);
    last->is_waiting = 0;
    return 0;
}

void check_last_wqe(check_run_t *run)
{
    check_last_wqe_t last[CHECK_MAX_PORTS] = {{.is_waiting = 0}};
    unsigned i, waiting;

    for (i = 0; i < run->nics.count; ++i) {
        if (run->nics.nic[i].wire.is_active) {
            check_last_wqe_start(&run->nics.nic[i], &last[i]);
        }
    }

    /* All NICs at a time, because those without the event take seconds */
    do {
        for (waiting = 0, i = 0; i < run->nics.count; ++i) {
            waiting += check_last_wqe_poll(&run->nics.nic[i], &last[i]);
        }
        usleep(1000);
    } while (waiting > 0);

    for (i = 0; i < run->nics.count; ++i) {
        if (!run->nics.nic[i].wire.is_active) {
            continue;
        }

        if (last[i].took < 0) {
            check_row(run, "last-wqe", CHECK_WARN, run->nics.nic[i].wire.name,
                      "no LAST_WQE_REACHED within %d s", CHECK_EVENT_WAIT);
        } else {
            check_row(run, "last-wqe", CHECK_OK, run->nics.nic[i].wire.name,
                      "LAST_WQE_REACHED after %.1f ms", last[i].took * 1e3);
        }
    }
}

void check_commands(check_run_t *run)
{
    double start, took, longest;
    check_nic_t *nic;
    check_qp_t qp;
    check_psn_t psn;
    unsigned i, k;
    int ret;

    for (i = 0; i < run->nics.count; ++i) {
        nic     = &run->nics.nic[i];
        longest = 0;
        ret     = 0;
        for (k = 0; (k < CHECK_COMMANDS) && (ret == 0); ++k) {
            start = check_now();
            ret   = check_qp_create(nic, 1, &qp);
            if (ret == 0) {
                check_qp_psn(&qp, &psn);
                ret = check_qp_modify(&qp, IBV_QPS_ERR);
                check_qp_destroy(&qp);
            }

            took    = check_now() - start;
            longest = (took > longest) ? took : longest;
        }

        if (ret != 0) {
            check_row(run, "commands", CHECK_FAIL, nic->wire.name, "failed: %s",
                      strerror(ret));
        } else {
            check_row(run, "commands",
                      (longest > CHECK_COMMAND_SLOW) ? CHECK_WARN : CHECK_OK,
                      nic->wire.name, "creating, querying, stopping and destroying a "
                      "queue pair takes at most %.1f ms", longest * 1e3);
        }
    }
}
