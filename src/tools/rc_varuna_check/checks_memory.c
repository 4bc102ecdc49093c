/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Assumptions of a recovery: the PSN, and memory that does not change after the responder
 * was fenced.
 */
#include "check_pair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECK_WRITES       50
#define CHECK_FENCE_SIZE   2048
#define CHECK_FENCE_COUNT  200
#define CHECK_WAIT         60


/* Compare a PSN of the server with the sent packets. */
static void check_psn_row(check_run_t *run, const char *where, const char *when,
                          const char *how, int error, uint32_t psn, uint32_t expected)
{
    if ((error != 0) || (psn != expected)) {
        check_row(run, "psn", CHECK_FAIL, where, "%s, %s: 0x%x instead of 0x%x (%s)", when,
                  how, psn, expected, (error != 0) ? strerror(error) :
                  (psn == 0) ? "lost" : "stale");
    } else {
        check_row(run, "psn", CHECK_OK, where, "%s, %s: 0x%x", when, how, psn);
    }
}

/* The PSN is read before the writes and then only after ERR, which detects a driver
 * that caches it */
static void check_psn_link(check_run_t *run, unsigned link, unsigned open_how,
                           check_msg_t how)
{
    static const uint32_t sizes[] = {8, 64, 4096, 16384, 5000 & ~7u};
    const char *where             = check_pair_name(run, link, link);
    const char *when              = (how == CHECK_MSG_FENCE) ? "after ERR" :
                                                               "in RTS";
    uint32_t i, size, expected, packets = 0;
    check_qp_t qp;
    check_psn_t psn;
    int ret;

    ret = check_pair_open_as(run, link, link, open_how, &qp);
    if (ret == 0) {
        ret = check_ask(run, CHECK_MSG_QUERY, NULL, 0, &psn, sizeof(psn));
        for (i = 0; (i < CHECK_WRITES) && (ret == 0); ++i) {
            size     = sizes[i % (sizeof(sizes) / sizeof(sizes[0]))];
            packets += check_pair_packets(&qp, size);
            ret      = check_qp_write(&qp, 0, size, 0);
        }

        if (ret == 0) {
            ret = check_qp_wait(&qp, CHECK_WAIT);
        }

        if (ret == 0) {
            ret = check_ask(run, how, NULL, 0, &psn, sizeof(psn));
        }

        expected = (qp.psn + packets) & 0xffffff;
        check_qp_destroy(&qp);
    }

    if (ret != 0) {
        check_row(run, "psn", CHECK_FAIL, where, "%s: cannot be tested: %s", when,
                  strerror(ret));
        return;
    }

    if (open_how & CHECK_OPEN_VERBS) {
        check_psn_row(run, where, when, "ibv_query_qp", psn.verbs_error, psn.verbs,
                      expected);
    }

    if (psn.devx_error == EOPNOTSUPP) {
        check_row(run, "psn", CHECK_NOTE, where, "%s: no DEVX", when);
    } else {
        check_psn_row(run, where, when, (open_how & CHECK_OPEN_VERBS) ? "DEVX" :
                      "DEVX, of a queue pair by DEVX", psn.devx_error, psn.devx, expected);
    }
}

void check_psn(check_run_t *run)
{
    unsigned link, how;

    for (link = 0; link < run->links; ++link) {
        if (!check_pair_is_up(run, link)) {
            continue;
        }

        for (how = 0; how <= CHECK_OPEN_VERBS; ++how) {
            if ((how == CHECK_OPEN_VERBS) || check_pair_is_devx(run, link)) {
                check_psn_link(run, link, how, CHECK_MSG_QUERY);
                check_psn_link(run, link, how, CHECK_MSG_FENCE);
            }
        }
    }
}

typedef struct check_fences {
    unsigned rounds;
    unsigned behind;  /* Rounds in which acknowledged writes were missing after ERR */
    unsigned missing; /* ... after RESET */
    unsigned changed; /* ... memory changed after RESET */
    unsigned psn;     /* ... memory and the PSN differ */
    double   latest;  /* Seconds from ERR to the last change that was seen */
} check_fences_t;

/* A fence while writes are in flight. */
static int check_fence_round(check_run_t *run, check_qp_t *qp,
                             const check_scan_t *scan, check_fences_t *fences)
{
    check_scanned_t at_reset, later;
    check_reply_t reply;
    check_psn_t psn;
    uint32_t accepted;
    double start;
    int ret;

    check_nic_fill(qp->nic, scan);
    ret = check_pair_write_slots(qp, scan, 0, scan->count / 2);
    if (ret == 0) {
        ret = check_qp_wait(qp, CHECK_WAIT);
    }
    if (ret == 0) {
        ret = check_pair_write_slots(qp, scan, scan->count / 2, scan->count / 2);
    }
    if (ret != 0) {
        return ret;
    }

    start = check_now();
    if ((ret = check_ask(run, CHECK_MSG_FENCE, NULL, 0, &psn, sizeof(psn))) ||
        (ret = check_ask(run, CHECK_MSG_RESET, NULL, 0, &reply, sizeof(reply))) ||
        (ret = reply.error) ||
        (ret = check_ask(run, CHECK_MSG_SCAN, scan, sizeof(*scan), &at_reset,
                         sizeof(at_reset)))) {
        return ret;
    }

    if (psn.hash != at_reset.hash) {
        fences->latest = (check_now() - start > fences->latest) ?
                         check_now() - start : fences->latest;
    }

    usleep(run->opts.is_quick ? 20000 : 200000);
    ret = check_ask(run, CHECK_MSG_SCAN, scan, sizeof(*scan), &later, sizeof(later));
    if (ret != 0) {
        return ret;
    }

    ++fences->rounds;
    accepted         = ((check_qp_psn_value(&psn) - qp->psn) & 0xffffff) /
                       check_pair_packets(qp, scan->size);
    fences->behind  += psn.hash != at_reset.hash;
    fences->missing += at_reset.prefix < scan->count / 2;
    fences->changed += later.hash != at_reset.hash;
    fences->psn     += accepted != at_reset.prefix;
    return 0;
}

static void check_fence_report(check_run_t *run, unsigned link,
                               const check_fences_t *fences)
{
    const char *where = check_pair_name(run, link, link);

    check_row(run, "fence-err", (fences->behind > 0) ? CHECK_FAIL : CHECK_OK, where,
              "memory still changed between ERR and RESET in %u of %u rounds, for up"
              " to %.1f ms", fences->behind, fences->rounds, fences->latest * 1e3);
    check_row(run, "fence-reset",
              ((fences->missing > 0) || (fences->changed > 0)) ? CHECK_FAIL :
                                                                 CHECK_OK, where,
              "after RESET, acknowledged writes were missing in %u of %u rounds, and"
              " memory changed in %u", fences->missing, fences->rounds,
              fences->changed);
    check_row(run, "psn-memory", (fences->psn > 0) ? CHECK_FAIL : CHECK_OK, where,
              "the PSN and the writes in memory differed in %u of %u rounds",
              fences->psn, fences->rounds);
}

void check_fence(check_run_t *run)
{
    unsigned rounds     = run->opts.is_quick ? 8 : 100;
    check_scan_t scan   = {.count = CHECK_FENCE_COUNT, .size = CHECK_FENCE_SIZE};
    check_fences_t fences;
    unsigned link, i;
    check_qp_t qp;
    double end;
    int ret;

    for (link = 0; link < run->links; ++link) {
        if (!check_pair_is_up(run, link)) {
            continue;
        }

        memset(&fences, 0, sizeof(fences));
        ret = 0;
        end = check_now() + (CHECK_SOAK / run->links);
        for (i = 0; (i < rounds) && (ret == 0) &&
                    ((i == 0) || (check_now() < end)); ++i) {
            scan.base = 0x6665000000000000ull + (i << 16);
            ret       = check_pair_open(run, link, link, &qp);
            if (ret == 0) {
                ret = check_fence_round(run, &qp, &scan, &fences);
                check_qp_destroy(&qp);
            }
        }

        if (ret != 0) {
            check_row(run, "fence-reset", CHECK_FAIL,
                      check_pair_name(run, link, link), "cannot be tested: %s",
                      strerror(ret));
        } else {
            check_fence_report(run, link, &fences);
        }
    }
}

/* Two writes in one list, or in two calls. @return Microseconds per pair, or -1 */
static double check_fused_time(check_qp_t *qp, int is_fused)
{
    struct ibv_sge sge        = {.addr   = (uintptr_t)qp->nic->mem,
                                 .length = 8,
                                 .lkey   = qp->nic->mr->lkey};
    struct ibv_send_wr wrs[2] = {{.sg_list = &sge, .num_sge = 1,
                                  .opcode  = IBV_WR_RDMA_WRITE}};
    struct ibv_send_wr *bad;
    double start = check_now();
    unsigned i;

    wrs[0].wr.rdma.remote_addr = qp->remote_addr;
    wrs[0].wr.rdma.rkey        = qp->rkey;
    wrs[1]                     = wrs[0];
    wrs[0].next                = is_fused ? &wrs[1] : NULL;
    wrs[1].send_flags          = IBV_SEND_SIGNALED;
    for (i = 0; i < 1000; ++i) {
        if ((ibv_post_send(qp->qp, &wrs[0], &bad) != 0) ||
            (!is_fused && (ibv_post_send(qp->qp, &wrs[1], &bad) != 0))) {
            return -1;
        }

        ++qp->posted;
        while (qp->posted - qp->done > CHECK_SQ_LEN / 4) {
            if (check_qp_wait(qp, 0) == EIO) {
                return -1;
            }
        }
    }

    return (check_qp_wait(qp, CHECK_WAIT) == 0) ? (check_now() - start) * 1e3 : -1;
}

void check_fused(check_run_t *run)
{
    double fused, two;
    unsigned link;
    check_qp_t qp;

    for (link = 0; link < run->links; ++link) {
        if (!check_pair_is_up(run, link) ||
            (check_pair_open_as(run, link, link, CHECK_OPEN_VERBS, &qp) != 0)) {
            continue;
        }

        two   = check_fused_time(&qp, 0);
        fused = check_fused_time(&qp, 1);
        check_row(run, "fused-post", ((two < 0) || (fused < 0)) ? CHECK_FAIL :
                  CHECK_NOTE, check_pair_name(run, link, link),
                  "a write and its log entry: %.2f us in one post, %.2f us in two",
                  fused, two);
        check_qp_destroy(&qp);
    }
}
