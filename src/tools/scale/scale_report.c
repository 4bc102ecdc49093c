/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What came out, as lines "NAME VALUE ...", times in milliseconds after the cut.
 */
#include "scale_sim.h"

#include <ucs/sys/math.h>

#include <stdio.h>
#include <stdlib.h>

static const char *scale_message_names[] = {
    [SCALE_PING]        = "ping",
    [SCALE_PONG]        = "pong",
    [SCALE_FENCE_REQ]   = "fence_req",
    [SCALE_FENCE_REP]   = "fence_rep",
    [SCALE_CONNECT_REQ] = "connect_req",
    [SCALE_CONNECT_REP] = "connect_rep",
    [SCALE_PORTS]       = "ports"
};

static int scale_compare(const void *a, const void *b)
{
    double x = *(const double*)a;
    double y = *(const double*)b;

    return (x > y) - (x < y);
}

typedef ucs_time_t (*scale_time_of_t)(const scale_ep_t *ep);

static ucs_time_t scale_moved(const scale_ep_t *ep)
{
    return ep->moved_at;
}

static ucs_time_t scale_rebuilt(const scale_ep_t *ep)
{
    return ep->rebuilt_at;
}

static ucs_time_t scale_returned(const scale_ep_t *ep)
{
    return ep->returned_at;
}

/* Number, minimum, median, 99th percentile and maximum of a time of all endpoints. */
static void scale_report_times(const scale_sim_t *sim, const char *name,
                               scale_time_of_t time_of, double since)
{
    double *values = malloc((sim->options.eps + 1) * sizeof(*values));
    unsigned count = 0;
    unsigned i;

    if (values == NULL) {
        return;
    }

    for (i = 0; i < sim->options.eps; ++i) {
        if (time_of(&sim->eps[i]) != 0) {
            values[count++] = (ucs_time_to_sec(time_of(&sim->eps[i]) - sim->cut_at) -
                               since) * 1e3;
        }
    }

    qsort(values, count, sizeof(*values), scale_compare);
    printf("%s %u", name, count);
    if (count > 0) {
        printf(" %.3f %.3f %.3f %.3f", values[0], values[count / 2],
               values[count * 99 / 100], values[count - 1]);
    }
    printf("\n");
    free(values);
}

/* Jain's index of the shares of their endpoints that hosts have rebuilt when half of
 * all are: 1 if all are equal (R. Jain et al., DEC-TR-301). */
static void scale_report_fairness(const scale_sim_t *sim)
{
    double sum = 0, squares = 0;
    double *times, half, share;
    unsigned count = 0, hosts = 0;
    unsigned host, i, done, moved;
    const scale_ep_t *ep;

    times = malloc((sim->options.eps + 1) * sizeof(*times));
    if (times == NULL) {
        return;
    }

    for (i = 0; i < sim->options.eps; ++i) {
        if (sim->eps[i].rebuilt_at != 0) {
            times[count++] = ucs_time_to_sec(sim->eps[i].rebuilt_at);
        }
    }
    qsort(times, count, sizeof(*times), scale_compare);
    half = (count > 0) ? times[count / 2] : 0;
    free(times);

    for (host = 0; host < sim->options.hosts; ++host) {
        for (i = done = moved = 0; i < sim->hosts[host].num_eps; ++i) {
            ep     = &sim->eps[sim->hosts[host].eps[i]];
            moved += (ep->epoch > 0);
            done  += (ep->rebuilt_at != 0) && (ucs_time_to_sec(ep->rebuilt_at) <= half);
        }
        if (moved == 0) {
            continue;
        }
        share    = (double)done / moved;
        sum     += share;
        squares += share * share;
        ++hosts;
    }

    printf("fairness %.4f\n", (squares > 0) ? sum * sum / (hosts * squares) : 0.0);
}

void scale_report(const scale_sim_t *sim, int bins)
{
    unsigned long total[SCALE_NUM_MESSAGES] = {};
    unsigned long most                      = 0;
    unsigned bin, i, in_bin, peak           = 0;
    unsigned affected                       = 0;

    for (i = 0; i < sim->options.eps; ++i) {
        affected += (sim->eps[i].epoch > 0);
    }
    for (i = 0; i < sim->options.hosts; ++i) {
        most = ucs_max(most, sim->hosts[i].messages);
    }

    printf("endpoints %u affected %u\n", sim->options.eps, affected);
    scale_report_times(sim, "moved", scale_moved, 0);
    scale_report_times(sim, "rebuilt", scale_rebuilt, 0);
    scale_report_times(sim, "returned", scale_returned, sim->options.outage);
    scale_report_fairness(sim);
    for (bin = 0; bin < sim->num_bins; ++bin) {
        for (i = in_bin = 0; i < SCALE_NUM_MESSAGES; ++i) {
            total[i] += sim->sent[bin][i];
            in_bin   += sim->sent[bin][i];
        }
        peak = ucs_max(peak, in_bin);
        if (bins && (in_bin > 0)) {
            printf("bin %.0f", bin * SCALE_BIN * 1e3);
            for (i = 0; i < SCALE_NUM_MESSAGES; ++i) {
                printf(" %u", sim->sent[bin][i]);
            }
            printf("\n");
        }
    }

    for (i = 0; i < SCALE_NUM_MESSAGES; ++i) {
        printf("messages %s %lu\n", scale_message_names[i], total[i]);
    }
    printf("peak %u messages in %.0f ms\n", peak, SCALE_BIN * 1e3);
    printf("busiest_host %lu messages\n", most);
}
