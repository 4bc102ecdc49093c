/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Behavior of a NIC that dies: --kill CMD takes this host's NIC down. Runs last.
 */
#include "check_pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK_KILL_SIZE  256
#define CHECK_KILL_COUNT 2000
#define CHECK_KILL_BURST 16
#define CHECK_KILL_SLOW  0.5 /* Seconds that a command to a dead NIC may take */
#define CHECK_KILL_WAIT  90  /* ... until the first one must have failed */
#define CHECK_KILL_QUIET 10  /* Intervals without a change, of 20 ms */
#define CHECK_KILL_BASE  0x6b69000000000000ull


/* Execute commands until one fails. @return The time of the slowest one, -1: none
 * failed */
static double check_kill_command(check_nic_t *nic)
{
    double start, took, longest = 0;
    double end = check_now() + CHECK_KILL_WAIT;
    struct ibv_port_attr attr;
    int ret;

    do {
        start   = check_now();
        ret     = ibv_query_port(nic->context, nic->port, &attr);
        took    = check_now() - start;
        longest = (took > longest) ? took : longest;
        if (ret != 0) {
            return longest;
        }
        usleep(1000);
    } while (check_now() < end);

    return -1;
}

/* Continue writing. @return 0 or errno of the server; *last_p is the time of the last
 * change of its memory, 0: none */
static int check_kill_writes(check_run_t *run, check_qp_t *qp,
                             const check_scan_t *scan, double *last_p)
{
    uint32_t next = CHECK_KILL_BURST;
    unsigned quiet;
    check_scanned_t a, b;
    int ret;

    *last_p = 0;
    ret     = check_ask(run, CHECK_MSG_SCAN, scan, sizeof(*scan), &a, sizeof(a));
    for (quiet = 0; (ret == 0) && (quiet < CHECK_KILL_QUIET); ++quiet) {
        if ((next + CHECK_KILL_BURST <= scan->count) && (qp->failed == 0) &&
            (qp->posted - qp->done + CHECK_KILL_BURST < CHECK_SQ_LEN)) {
            (void)check_pair_write_slots(qp, scan, next, CHECK_KILL_BURST);
            next += CHECK_KILL_BURST;
        }

        usleep(20000);
        (void)check_qp_wait(qp, 0);
        ret = check_ask(run, CHECK_MSG_SCAN, scan, sizeof(*scan), &b, sizeof(b));
        if ((ret == 0) && (a.hash != b.hash)) {
            *last_p = check_now();
            a       = b;
            quiet   = 0;
        }
    }

    return ret;
}

void check_kill(check_run_t *run)
{
    check_scan_t scan = {.count = CHECK_KILL_COUNT, .size = CHECK_KILL_SIZE,
                         .base  = CHECK_KILL_BASE};
    unsigned link     = (run->opts.link < 0) ? run->links - 1 :
                                               (unsigned)run->opts.link;
    check_nic_t *nic  = &run->nics.nic[link];
    double slowest, failed, last;
    int ret, err_ret;
    check_qp_t qp;

    if ((run->opts.kill == NULL) || !check_pair_is_up(run, link)) {
        check_row(run, "dead-commands", CHECK_UNTESTED, nic->wire.name,
                  "the NIC was not taken down: give --kill");
        check_row(run, "dead-writes", CHECK_UNTESTED, nic->wire.name, "the same");
        return;
    }

    check_nic_refresh(nic);
    ret = check_pair_open(run, link, link, &qp);
    if (ret == 0) {
        check_nic_fill(nic, &scan);
        ret = check_pair_write_slots(&qp, &scan, 0, CHECK_KILL_BURST);
        if (ret == 0) {
            ret = check_qp_wait(&qp, 10);
        }
    }

    setenv("RC_VARUNA_CHECK_PORT", nic->wire.name, 1);
    if ((ret != 0) || (system(run->opts.kill) != 0)) {
        check_row(run, "dead-commands", CHECK_UNTESTED, nic->wire.name,
                  "the NIC was not taken down: %s", (ret != 0) ? strerror(ret) :
                  "--kill failed");
        check_row(run, "dead-writes", CHECK_UNTESTED, nic->wire.name, "the same");
        return;
    }

    slowest = check_kill_command(nic);
    failed  = check_now();
    if (slowest < 0) {
        check_row(run, "dead-commands", CHECK_UNTESTED, nic->wire.name,
                  "no command failed within %d s: the NIC is alive", CHECK_KILL_WAIT);
        check_row(run, "dead-writes", CHECK_UNTESTED, nic->wire.name, "the same");
        return;
    }

    check_row(run, "dead-commands",
              (slowest > CHECK_KILL_SLOW) ? CHECK_WARN : CHECK_OK, nic->wire.name,
              "a command to the dead NIC takes %.2f s", slowest);
    ret     = check_kill_writes(run, &qp, &scan, &last);
    err_ret = check_qp_modify(&qp, IBV_QPS_ERR);
    if (ret != 0) {
        check_row(run, "dead-writes", CHECK_UNTESTED, nic->wire.name,
                  "the server does not answer: %s", strerror(ret));
    } else {
        check_row(run, "dead-writes", (last > 0) ? CHECK_WARN : CHECK_OK,
                  nic->wire.name, "%s for %.0f ms after a command failed%s",
                  (last > 0) ? "it still writes to the peer" :
                  "nothing was written to the peer", (last > 0) ?
                  (last - failed) * 1e3 : 0, (err_ret == 0) ?
                  "; the driver reports that ERR succeeded" : "");
    }
}
