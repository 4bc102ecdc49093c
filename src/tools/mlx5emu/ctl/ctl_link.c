/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verb "link": change the state of a link.
 */

#include "ctl.h"
#include "../core/emu_map.h"
#include "../core/emu_port.h"
#include "../rules/emu_fault_rule.h"

#include <string.h>


/* A state, or "flap" with its period: what is to be done */
typedef struct ctl_link_args {
    const char       *port;
    int              flap;
    emu_link_state_t state;
    uint64_t         period_ns;
    uint32_t         up_ppm;
    char             **speeds;     /* pairs of words, or none */
    int              num_speeds;
} ctl_link_args_t;


static int ctl_link_is_speed(int argc, char **argv)
{
    return (argc >= 3) && (argc & 1) &&
           (!strcmp(argv[1], "rate") || !strcmp(argv[1], "latency") ||
            !strcmp(argv[1], "queue"));
}

static int ctl_link_parse(int argc, char **argv, ctl_link_args_t *args)
{
    char err[256];
    unsigned state;

    memset(args, 0, sizeof(*args));
    args->flap = (argc > 1) && !strcmp(argv[1], "flap");
    if (ctl_link_is_speed(argc, argv)) {
        args->port       = argv[0];
        args->speeds     = argv + 1;
        args->num_speeds = argc - 1;
        return 0;
    }

    if (argc != (args->flap ? 3 : 2)) {
        return ctl_usage_fail(&ctl_verb_link, "expected a link and a state, or"
                              " a link, \"flap\" and a period");
    }

    args->port = argv[0];
    if (args->flap) {
        return emu_fault_parse_flap(argv[2], &args->period_ns, &args->up_ppm,
                                    err, sizeof(err)) ?
               ctl_usage_fail(&ctl_verb_link, "%s", err) : 0;
    }

    for (state = 0; state < EMU_LINK_LAST; ++state) {
        if (!strcmp(argv[1], emu_link_state_names[state])) {
            args->state = state;
            return 0;
        }
    }

    return ctl_usage_fail(&ctl_verb_link, "a link can be up, down or silent, or"
                          " flap, not \"%s\"", argv[1]);
}

static int ctl_link_set_speed(const ctl_link_args_t *args, unsigned host,
                              unsigned link)
{
    uint32_t port = emu_port_get(host, link)->index;
    emu_pipe_speed_t speed;
    int status, i;

    emu_pipe_get(port, &speed);
    for (i = 0; i < args->num_speeds; i += 2) {
        status = ctl_speed_parse(&ctl_verb_link, args->speeds[i],
                                 args->speeds[i + 1], &speed);
        if (status) {
            return status;
        }
    }

    emu_pipe_set(port, &speed);
    return ctl_keeper_ensure();
}

static int ctl_link_change(const ctl_link_args_t *args)
{
    unsigned host, link;
    int status, ret;

    status = ctl_parse_port(&ctl_verb_link, args->port, &host, &link);
    if (status) {
        return status;
    }

    if (args->num_speeds > 0) {
        return ctl_link_set_speed(args, host, link);
    }

    emu_link_mark(host, link, 0);
    ret = args->flap ?
          emu_link_flap(host, link, args->period_ns, args->up_ppm) :
          emu_link_set(host, link, args->state);
    return (ret == 0) ? 0 : ctl_fail("cannot change link %u:%u: %s", host, link,
                                     strerror(-ret));
}

static int ctl_link_run(int argc, char **argv)
{
    ctl_link_args_t args;
    int status = 0;

    if (ctl_getopt(&ctl_verb_link, argc, argv, "", NULL, &status) != -1) {
        return status;
    }

    status = ctl_link_parse(argc - optind, argv + optind, &args);
    if (status) {
        return status;
    }

    status = ctl_fabric_open();
    if (status) {
        return status;
    }

    status = ctl_link_change(&args);
    emu_fabric_close();
    return status;
}

const ctl_verb_t ctl_verb_link = {
    .name    = "link",
    .run     = ctl_link_run,
    .usage   = "[-n NAME] HOST:LINK up|down|silent|flap PERIOD[,DUTY]|"
               "[rate R] [latency T] [queue BYTES]",
    .help    = "Change the link between a host's port and its switch",
    .details =
    "  -n NAME  Name of the fabric\n\n"
    "  down     Packets are lost both ways, programs get a port event\n"
    "  silent   Packets are lost both ways, without an event\n"
    "  up       Packets pass; programs get a port event if the link was down\n"
    "  flap     Down and up over and over, until another state is set. DUTY is"
    "\n           the part of each PERIOD that it is up (0.5)\n"
    "  rate     What it sends each way, such as 400Mbps, or \"any\"\n"
    "  latency  Time from the port to the switch, and back: 5ms\n"
    "  queue    Bytes that the switch queues towards the port: 64k\n\n"
    "  mlx5emu link 0:1 flap 100ms,0.8\n"
    "  mlx5emu link 0:1 rate 100Mbps latency 20ms\n"
};
