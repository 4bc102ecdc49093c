/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checks with a host's own queue pairs: flushes, events, times of commands.
 */
#include "check_def.h"
#include "check_devx.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CHECK_FLUSHES      8
#define CHECK_COMMANDS     20
#define CHECK_COMMAND_SLOW 0.1 /* Seconds */

/* Seconds for what a NIC does within microseconds: for the flushes of all queue pairs, as the
 * other host waits, and for an event. The machine may be busy */
#define CHECK_FLUSH_WAIT   2
#define CHECK_EVENT_WAIT   5


/* Connect a queue pair with itself, so that it can be in RTS. */
static int check_local_qp(check_nic_t *nic, check_qp_kind_t kind, check_qp_t *qp)
{
    int ret = check_qp_create(nic, kind, qp);

    if (ret == 0) {
        ret = check_qp_connect_self(qp);
        if (ret != 0) {
            check_qp_destroy(qp);
        }
    }

    return ret;
}

/* Requests to receive, and then those to send, to a queue pair that is stopped in between */
static int check_flush_post(check_qp_t *qp, int has_recvs)
{
    struct ibv_recv_wr wr = {0};
    struct ibv_recv_wr *bad;
    unsigned i;
    int ret = 0;

    for (i = 0; has_recvs && (i < CHECK_FLUSHES) && (ret == 0); ++i) {
        wr.wr_id = CHECK_FLUSHES + i;
        ret      = ibv_post_recv(qp->qp, &wr, &bad);
    }

    if (ret == 0) {
        ret = check_qp_modify(qp, IBV_QPS_ERR);
    }

    for (i = 0; (i < CHECK_FLUSHES) && (ret == 0); ++i) {
        ret = check_qp_write(qp, 0, 8, 0);
    }

    return ret;
}

/* @return 0 or errno; *right is the number of completions in order and with the right
 * status, until @a end */
static int check_flush_one(check_nic_t *nic, check_qp_kind_t kind, unsigned wanted,
                           double end, unsigned *right)
{
    unsigned i, next[2] = {0, CHECK_FLUSHES};
    struct ibv_wc wc;
    check_qp_t qp;
    int is_late = 0;
    int ret;

    ret = check_local_qp(nic, kind, &qp);
    if (ret != 0) {
        return ret;
    }

    ret    = check_flush_post(&qp, kind == CHECK_QP_RQ);
    *right = 0;
    while ((ret == 0) && (*right < wanted)) {
        if (check_qp_poll(&qp, 1, &wc) > 0) {
            i = (wc.wr_id >= CHECK_FLUSHES);
            if ((wc.status != IBV_WC_WR_FLUSH_ERR) || (wc.wr_id != next[i])) {
                break;
            }

            ++next[i];
            ++*right;
        } else if (is_late) {
            break;
        } else {
            is_late = (check_now() >= end); /* It was polled after that */
        }
    }

    check_qp_destroy(&qp);
    return ret;
}

static void check_flush_nic(check_run_t *run, check_nic_t *nic, check_qp_kind_t kind,
                            unsigned wanted, double end, const char *how)
{
    unsigned right;
    int ret;

    ret = check_flush_one(nic, kind, wanted, end, &right);
    if (ret != 0) {
        check_row(run, "flush", CHECK_FAIL, nic->wire.name, "%s: cannot be tested: %s", how,
                  strerror(ret));
    } else {
        check_row(run, "flush", (right == wanted) ? CHECK_OK : CHECK_FAIL, nic->wire.name,
                  "%s: %u of %u flushed requests complete, in order", how, right, wanted);
    }
}

void check_flush(check_run_t *run)
{
    double end = check_now() + CHECK_FLUSH_WAIT;
    check_nic_t *nic;
    unsigned i;

    for (i = 0; i < run->nics.count; ++i) {
        nic = &run->nics.nic[i];
        if (!nic->wire.is_active) {
            continue;
        }

        check_flush_nic(run, nic, CHECK_QP_RQ, 2 * CHECK_FLUSHES, end, "verbs");
        if (nic->wire.flags & CHECK_PORT_DEVX) {
            check_flush_nic(run, nic, CHECK_QP_UCX, CHECK_FLUSHES, end, "DEVX");
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
    if (check_local_qp(nic, CHECK_QP_UCX, &last->qp) != 0) {
        return;
    }

    last->start = check_now();
    if (((last->qp.devx == NULL) || (check_devx_watch_last_wqe(&last->qp) == 0)) &&
        (check_qp_modify(&last->qp, IBV_QPS_ERR) == 0)) {
        last->is_waiting = 1;
    } else {
        check_qp_destroy(&last->qp);
    }
}

/* @return Whether the event has come */
static int check_last_wqe_is_there(check_qp_t *qp)
{
    struct ibv_async_event event;
    int is_there = 0;

    if (qp->devx != NULL) {
        return check_devx_has_last_wqe(qp);
    }

    while (!is_there && (ibv_get_async_event(qp->nic->context, &event) == 0)) {
        is_there = (event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED) &&
                   (event.element.qp == qp->qp);
        ibv_ack_async_event(&event);
    }

    return is_there;
}

/* Look for the event. @return Whether to look again */
static int check_last_wqe_poll(check_last_wqe_t *last)
{
    if (!last->is_waiting) {
        return 0;
    }

    if (check_last_wqe_is_there(&last->qp)) {
        last->took = check_now() - last->start;
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
            waiting += check_last_wqe_poll(&last[i]);
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
            ret   = check_qp_create(nic, CHECK_QP_UCX, &qp);
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
