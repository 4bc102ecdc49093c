/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Behavior when a link is cut, by --cut CMD or by pulling the cable.
 */
#include "check_pair.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK_CUT_SIZE   4096
#define CHECK_CUT_COUNT  150
#define CHECK_CUT_BEFORE 100
#define CHECK_CUT_EVENT  3  /* Seconds */
#define CHECK_CUT_RETRY  60 /* ... until the NIC must have given up */
#define CHECK_CUT_ACTIVE 60 /* ... until a port must be up */
#define CHECK_CUT_BASE   0x6375000000000000ull


/* @return 0 if the link was cut, otherwise -1 */
static int check_cut_do(const check_run_t *run, const char *command,
                        const char *request, unsigned link)
{
    const char *name = run->nics.nic[link].wire.name;
    char line[16];

    if (command != NULL) {
        setenv("RC_VARUNA_CHECK_PORT", name, 1);
        return (system(command) == 0) ? 0 : -1;
    }

    if (!isatty(STDIN_FILENO)) {
        return -1;
    }

    fprintf(stderr, "%s %s, then press Enter (s: skip): ", request, name);
    return ((fgets(line, sizeof(line), stdin) != NULL) && (line[0] != 's')) ? 0 : -1;
}

/* Read all events. @return Whether there was one of these two */
static int check_cut_events(check_nic_t *nic, enum ibv_event_type type1,
                            enum ibv_event_type type2, double seconds)
{
    double end = check_now() + seconds;
    struct ibv_async_event event;
    int found = 0;

    do {
        while (ibv_get_async_event(nic->context, &event) == 0) {
            found |= (event.event_type == type1) || (event.event_type == type2);
            ibv_ack_async_event(&event);
        }
    } while (!found && (check_now() < end) && (usleep(10000) == 0));
    return found;
}

/* The writes in memory must be those that the PSN covers */
static void check_cut_evidence(check_run_t *run, check_qp_t *qp, unsigned link,
                               const check_scan_t *scan)
{
    const char *where = check_pair_name(run, link, link);
    check_scanned_t scanned;
    check_reply_t reply;
    check_psn_t psn;
    uint32_t accepted;
    int ret;

    if ((ret = check_ask(run, CHECK_MSG_FENCE, NULL, 0, &psn, sizeof(psn))) ||
        (ret = check_ask(run, CHECK_MSG_RESET, NULL, 0, &reply, sizeof(reply))) ||
        (ret = check_ask(run, CHECK_MSG_SCAN, scan, sizeof(*scan), &scanned,
                         sizeof(scanned)))) {
        check_row(run, "cut-psn", CHECK_FAIL, where, "cannot be tested: %s",
                  strerror(ret));
        return;
    }

    accepted = ((check_qp_psn_value(&psn) - qp->psn) & 0xffffff) /
               check_pair_packets(qp, scan->size);
    check_row(run, "cut-psn",
              ((accepted == scanned.whole) && (scanned.whole == scanned.prefix) &&
               (accepted >= qp->done)) ? CHECK_OK : CHECK_FAIL, where,
              "%llu writes posted, %llu acknowledged; the PSN covers %u, memory has "
              "%u, of which %u without a gap", (unsigned long long)qp->posted,
              (unsigned long long)qp->done, accepted, scanned.whole, scanned.prefix);
}

/* rc_varuna must recognize what the first write that fails is completed with */
static void check_cut_status(check_run_t *run, const check_qp_t *qp, unsigned link)
{
    const char *where = check_pair_name(run, link, link);
    const char *text  = ibv_wc_status_str(qp->status);

    if (qp->failed == 0) {
        check_row(run, "cut-status", CHECK_UNTESTED, where,
                  "no write completed with an error within %d s", CHECK_CUT_RETRY);
    } else if (qp->status == IBV_WC_RETRY_EXC_ERR) {
        check_row(run, "cut-status", CHECK_OK, where,
                  "the write after a cut completed with \"%s\"", text);
    } else if (qp->status == IBV_WC_LOC_QP_OP_ERR) {
        check_row(run, "cut-status", CHECK_NOTE, where,
                  "the write after a cut completed with \"%s\": there is no route, which "
                  "lanes of rc_verbs take for a cut", text);
    } else {
        check_row(run, "cut-status", CHECK_FAIL, where,
                  "the write after a cut completed with \"%s\"", text);
    }
}

/* @return Whether the link is cut */
static int check_cut_traffic(check_run_t *run, unsigned link)
{
    check_scan_t scan = {.count = CHECK_CUT_COUNT, .size = CHECK_CUT_SIZE,
                         .base  = CHECK_CUT_BASE};
    const char *where = check_pair_name(run, link, link);
    int is_cut        = 0;
    check_qp_t qp;
    int ret;

    ret = check_pair_open(run, link, link, &qp);
    if (ret != 0) {
        check_row(run, "cut-psn", CHECK_FAIL, where, "cannot be tested: %s",
                  strerror(ret));
        return 0;
    }

    check_nic_fill(qp.nic, &scan);
    ret = check_pair_write_slots(&qp, &scan, 0, CHECK_CUT_BEFORE);
    if (ret == 0) {
        ret = check_qp_wait(&qp, CHECK_CUT_RETRY);
    }

    check_cut_events(qp.nic, IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ERR, 0);
    if ((ret != 0) ||
        (check_cut_do(run, run->opts.cut, "Pull the cable of", link) != 0)) {
        check_row(run, "cut-psn", CHECK_UNTESTED, where, "the link was not cut");
    } else {
        ret = check_pair_write_slots(&qp, &scan, CHECK_CUT_BEFORE,
                                     CHECK_CUT_COUNT - CHECK_CUT_BEFORE);
        if (ret == 0) {
            ret = check_qp_wait(&qp, CHECK_CUT_RETRY);
        }

        if (ret == 0) {
            check_row(run, "cut-psn", CHECK_UNTESTED, where,
                      "all writes were executed: the link is not cut");
        } else {
            is_cut = 1;
            check_cut_status(run, &qp, link);
            check_cut_evidence(run, &qp, link, &scan);
        }
    }

    check_qp_destroy(&qp);
    return is_cut;
}

static void check_cut_loopback(check_run_t *run, check_nic_t *nic)
{
    check_qp_t qp;
    int ret;

    ret = check_qp_create(nic, CHECK_QP_UCX, &qp);
    if (ret == 0) {
        ret = check_qp_connect_self(&qp);
        if (ret == 0) {
            qp.remote_addr = (uintptr_t)nic->mem;
            qp.rkey        = nic->mr->rkey;
            ret            = check_qp_write(&qp, 0, 64, 4096);
        }
        if (ret == 0) {
            ret = check_qp_wait(&qp, CHECK_CUT_RETRY);
        }
        check_qp_destroy(&qp);
    }

    check_row(run, "loopback", CHECK_NOTE, nic->wire.name,
              "a queue pair that is connected with its own port %s while the link is "
              "cut", (ret == 0) ? "works" : "does not work");
}

static void check_cut_restored(check_run_t *run, unsigned link,
                               const check_wire_port_t *before, int before_index)
{
    check_nic_t *nic = &run->nics.nic[link];
    double end       = check_now() + CHECK_CUT_ACTIVE;

    if (check_cut_do(run, run->opts.restore, "Plug in the cable of", link) != 0) {
        check_row(run, "addresses", CHECK_UNTESTED, nic->wire.name,
                  "the link was not restored");
        return;
    }

    while (((check_nic_refresh(nic) != 0) || !nic->wire.is_active) &&
           (check_now() < end)) {
        usleep(100000);
    }

    if (!nic->wire.is_active) {
        check_row(run, "addresses", CHECK_UNTESTED, nic->wire.name,
                  "the port did not come up within %d s", CHECK_CUT_ACTIVE);
    } else if ((nic->wire.lid != before->lid) || (nic->gid_index != before_index) ||
               memcmp(nic->wire.gid, before->gid, sizeof(before->gid))) {
        check_row(run, "addresses", CHECK_FAIL, nic->wire.name,
                  "LID 0x%x and GID index %d became 0x%x and %d", before->lid,
                  before_index, nic->wire.lid, nic->gid_index);
    } else {
        check_row(run, "addresses", CHECK_OK, nic->wire.name,
                  "LID and GID are the same as before");
    }
}

void check_cut(check_run_t *run)
{
    unsigned link            = (run->opts.link < 0) ? run->links - 1 :
                                                      (unsigned)run->opts.link;
    check_nic_t *nic         = &run->nics.nic[link];
    check_wire_port_t before = nic->wire;
    int before_index         = nic->gid_index;
    int has_event;

    if (!check_pair_is_up(run, link) ||
        ((run->opts.cut == NULL) && !isatty(STDIN_FILENO))) {
        check_row(run, "cut-psn", CHECK_UNTESTED, nic->wire.name,
                  "the link was not cut: give --cut and --restore");
        check_row(run, "cut-status", CHECK_UNTESTED, nic->wire.name, "the same");
        check_row(run, "port-event", CHECK_UNTESTED, nic->wire.name, "the same");
        check_row(run, "addresses", CHECK_UNTESTED, nic->wire.name, "the same");
        return;
    }

    if (check_cut_traffic(run, link)) {
        has_event = check_cut_events(nic, IBV_EVENT_PORT_ERR, IBV_EVENT_DEVICE_FATAL,
                                     CHECK_CUT_EVENT);
        check_nic_refresh(nic);
        check_row(run, "port-event", has_event ? CHECK_OK : CHECK_WARN,
                  nic->wire.name, "%s, and the port's state is %s",
                  has_event ? "PORT_ERR was raised" : "no event was raised",
                  nic->wire.is_active ? "active" : "not active");
        check_cut_loopback(run, nic);
    } else {
        check_row(run, "cut-status", CHECK_UNTESTED, nic->wire.name,
                  "the link was not cut");
        check_row(run, "port-event", CHECK_UNTESTED, nic->wire.name,
                  "the link was not cut");
    }

    check_cut_restored(run, link, &before, before_index);
}
