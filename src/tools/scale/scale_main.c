/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * varuna_scale: thousands of endpoints lose a switch, in virtual time.
 */
#include "scale_sim.h"

#include <ucs/sys/math.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static void scale_usage(FILE *out)
{
    fprintf(out, "Simulates hosts whose endpoints lose a switch, with the state machines of "
            "rc_varuna, in\nvirtual time.\n\n"
            "Usage: varuna_scale [OPTIONS]\n\n"
            "  -n HOSTS     number of hosts (1000)\n"
            "  -e EPS       number of endpoints, between random hosts (10000)\n"
            "  -a HOSTS     hosts at the switch (all)\n"
            "  -s           the ports raise no event: the heartbeat has to find out\n"
            "  -o SECONDS   the switch is back after this time (0: never)\n"
            "  -t SECONDS   end of the simulation, after the cut (60)\n"
            "  -r SEED      random seed (1)\n"
            "  -b           also print the messages in each 10 ms\n");
}

static double scale_number(const char *name, const char *text, double min, double max)
{
    char *end;
    double value = strtod(text, &end);

    if ((*text == '\0') || (*end != '\0') || !(value >= min) || !(value <= max)) {
        fprintf(stderr, "varuna_scale: %s is \"%s\", but must be a number from %g to %g\n",
                name, text, min, max);
        exit(2);
    }

    return value;
}

static void *scale_alloc(size_t count, size_t size)
{
    void *ptr = calloc(count + 1, size);

    if (ptr == NULL) {
        fprintf(stderr, "varuna_scale: there is no memory\n");
        exit(2);
    }

    return ptr;
}

/* @return index of a host among the peers of another, where it is added */
static unsigned scale_find_peer(scale_host_t *host, uint32_t index)
{
    unsigned i;

    for (i = 0; i < host->num_peers; ++i) {
        if (host->peers[i].host == index) {
            return i;
        }
    }

    host->peers = realloc(host->peers, (i + 1) * sizeof(*host->peers));
    if (host->peers == NULL) {
        exit(2);
    }
    host->peers[i] = (scale_peer_t){.host = index};
    ++host->num_peers;
    return i;
}

/* Endpoints between random hosts, on RC of network 0. */
static void scale_make_eps(scale_sim_t *sim)
{
    scale_host_t *host;
    scale_ep_t *ep;
    uint32_t i, to;

    for (i = 0; i < sim->options.eps; ++i) {
        ep            = &sim->eps[i];
        ep->host      = i % sim->options.hosts;
        to            = scale_sim_random(sim, sim->options.hosts - 1);
        to           += (to >= ep->host);
        host          = &sim->hosts[ep->host];
        ep->peer      = scale_find_peer(host, to);
        ep->state     = UCT_VARUNA_EP_ACTIVE;
        ep->is_rc     = 1;
        ep->next_link = UCT_VARUNA_LINK_NONE;
        host->eps     = realloc(host->eps, (host->num_eps + 1) * sizeof(*host->eps));
        if (host->eps == NULL) {
            exit(2);
        }
        host->eps[host->num_eps++] = i;
    }
}

int main(int argc, char **argv)
{
    scale_sim_t sim = {
        .options = {.hosts = 1000, .eps = 10000, .attached = UINT32_MAX, .seed = 1,
                    .limit = 60}
    };
    int bins        = 0;
    int c;

    while ((c = getopt(argc, argv, "n:e:a:so:t:r:bh")) != -1) {
        switch (c) {
        case 'n': sim.options.hosts = scale_number("-n", optarg, 2, 100000); break;
        case 'e': sim.options.eps = scale_number("-e", optarg, 1, 1000000); break;
        case 'a': sim.options.attached = scale_number("-a", optarg, 1, 100000); break;
        case 's': sim.options.is_silent = 1; break;
        case 'o': sim.options.outage = scale_number("-o", optarg, 0, 1000); break;
        case 't': sim.options.limit = scale_number("-t", optarg, 1, 10000); break;
        case 'r': sim.options.seed = scale_number("-r", optarg, 0, 1e9); break;
        case 'b': bins = 1; break;
        case 'h': scale_usage(stdout); return 0;
        default: scale_usage(stderr); return 2;
        }
    }

    if (optind != argc) {
        scale_usage(stderr);
        return 2;
    }

    sim.options.attached = ucs_min(sim.options.attached, sim.options.hosts);
    sim.hosts            = scale_alloc(sim.options.hosts, sizeof(*sim.hosts));
    sim.eps              = scale_alloc(sim.options.eps, sizeof(*sim.eps));
    sim.sent             = scale_alloc(sim.options.limit / SCALE_BIN, sizeof(*sim.sent));
    sim.random           = sim.options.seed;
    scale_make_eps(&sim);
    scale_sim_run(&sim);
    scale_report(&sim, bins);
    return 0;
}
