/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The order of log and data: of queue pairs as the device makes them, of those that are forced
 * to the order of the specification, and with the strong-order flag on each write.
 */
#include "check_pair.h"
#include "check_prm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECK_ORDER_SIZE   8192
#define CHECK_ORDER_COUNT  100
#define CHECK_ORDER_ROUNDS 12
#define CHECK_ORDER_WAIT   60

/* A way to have order */
typedef struct {
    const char *name;      /* Of the check */
    unsigned   open_how;
    int        is_strong;
} check_order_way_t;

/* What a run over a link has seen */
typedef struct {
    check_seen_t       seen;
    check_order_bits_t bits;
    int                has_bits;
} check_order_result_t;


/* One round: repeat data and an entry, while the server polls. */
static int check_order_round(check_run_t *run, unsigned link,
                             const check_order_way_t *way, uint64_t base,
                             check_order_result_t *result)
{
    check_scan_t scan = {.count = CHECK_ORDER_COUNT, .size = CHECK_ORDER_SIZE,
                         .base  = base};
    check_seen_t seen;
    check_qp_t qp;
    uint32_t i;
    int ret;

    ret = check_pair_open_as(run, link, link, way->open_how, &qp);
    if (ret != 0) {
        return ret;
    }

    qp.is_strong     = way->is_strong;
    result->has_bits = (check_qp_order(&qp, &result->bits) == 0);
    check_nic_fill(qp.nic, &scan);
    ret = check_ask(run, CHECK_MSG_WATCH, &scan, sizeof(scan), NULL, 0);
    for (i = 0; (i < scan.count) && (ret == 0); ++i) {
        ret = check_qp_write(&qp, i * scan.size, scan.size, i * scan.size);
        if (ret == 0) {
            ret = check_qp_write(&qp, i * scan.size, 8, CHECK_LOG + (i * 8));
        }
    }

    if (ret == 0) {
        ret = check_qp_wait(&qp, CHECK_ORDER_WAIT);
    }

    usleep(10000); /* Accepted writes may be placed later */
    if (ret == 0) {
        ret = check_ask(run, CHECK_MSG_SEEN, NULL, 0, &seen, sizeof(seen));
    }

    if (ret == 0) {
        result->seen.entries += seen.entries;
        result->seen.early   += seen.early;
    }

    check_qp_destroy(&qp);
    return ret;
}

static void check_order_report(check_run_t *run, const check_order_way_t *way,
                               const char *where, const check_order_result_t *result)
{
    const check_order_bits_t *bits = &result->bits;
    check_status_t status          = (result->seen.early == 0) ? CHECK_OK :
                                     way->is_strong ? CHECK_WARN : CHECK_FAIL;
    char text[64]                  = "";

    if (result->has_bits) {
        snprintf(text, sizeof(text), "; dp_ordering %u, %s", bits->placement,
                 bits->is_forced ? "forced" : "not forced");
    }

    /* rc_varuna believes what the context says */
    if ((way->open_how & CHECK_OPEN_ORDERED) &&
        (!result->has_bits || (bits->placement != 0) || !bits->is_forced)) {
        status = CHECK_FAIL;
    }

    check_row(run, way->name, status, where,
              "%u of %u log entries appeared before their data%s", result->seen.early,
              result->seen.entries, text);
}

static void check_order_link(check_run_t *run, unsigned link, const check_order_way_t *way,
                             unsigned rounds, double seconds)
{
    const char *where           = check_pair_name(run, link, link);
    check_order_result_t result = {.has_bits = 0};
    double end                  = check_now() + seconds;
    unsigned i;
    int ret = 0;

    for (i = 0; (i < rounds) && (ret == 0) && ((i == 0) || (check_now() < end)); ++i) {
        ret = check_order_round(run, link, way, 0x6f72000000000000ull + (i << 16),
                                &result);
    }

    if (ret != 0) {
        check_row(run, way->name, CHECK_FAIL, where, "cannot be tested: %s", strerror(ret));
    } else if (result.seen.entries < i * CHECK_ORDER_COUNT / 2) {
        check_row(run, way->name, CHECK_UNTESTED, where, "only %u entries were seen",
                  result.seen.entries);
    } else {
        check_order_report(run, way, where, &result);
    }
}

/* Whether queue pairs can be forced to an order */
static int check_order_can_force(const check_nic_t *nic)
{
    static uint8_t out[CHECK_CAP_OUT];

    return (check_nic_command(nic, CHECK_CMD_HCA_CAP, CHECK_CAP_GENERAL_2, 0, out,
                              sizeof(out)) == 0) &&
           check_prm_get(out + CHECK_CAP_CAPS, CHECK_CAP_2_ORDER_FORCE);
}

void check_order(check_run_t *run)
{
    static const check_order_way_t ways[] = {
        {"order", 0, 0},
        {"order-forced", CHECK_OPEN_ORDERED, 0},
        {"order-strong", 0, 1}
    };
    unsigned rounds, link, i, num_ways;

    for (link = 0; link < run->links; ++link) {
        if (!check_pair_is_up(run, link)) {
            continue;
        }

        num_ways = check_pair_is_devx(run, link) ? 3 : 1;
        rounds   = CHECK_ORDER_ROUNDS * (run->opts.is_quick ? 1 : 40) / num_ways;
        for (i = 0; i < num_ways; ++i) {
            if ((ways[i].open_how & CHECK_OPEN_ORDERED) &&
                !check_order_can_force(&run->nics.nic[link])) {
                check_row(run, ways[i].name, CHECK_NOTE, check_pair_name(run, link, link),
                          "the device cannot force queue pairs to an order");
                continue;
            }

            check_order_link(run, link, &ways[i], rounds,
                             (double)CHECK_SOAK / (run->links * num_ways));
        }
    }
}
