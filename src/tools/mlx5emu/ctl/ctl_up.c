/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verb "up": make a fabric.
 */

#include "ctl.h"
#include "../core/emu_map.h"
#include "../core/emu_pipe.h"
#include "../core/emu_port.h"

#include <stdlib.h>
#include <string.h>

#define CTL_UP_MAX_QUIRKS 16 /* options --quirk, each with a list */

enum {
    CTL_UP_HOSTS = 256,
    CTL_UP_LINKS,
    CTL_UP_MTU,
    CTL_UP_SPEEDS,
    CTL_UP_TRACE,
    CTL_UP_SUBNET_TIMEOUT,
    CTL_UP_TOPOLOGY,
    CTL_UP_SHARED_HCA,
    CTL_UP_NO_DEVX,
    CTL_UP_REUSE_QPNS,
    CTL_UP_FAULTS,
    CTL_UP_QUIRK,
    CTL_UP_SEED,
    CTL_UP_TIME_SCALE,
    CTL_UP_RATE,
    CTL_UP_LATENCY,
    CTL_UP_QUEUE,
    CTL_UP_LOSSY
};

static const struct option ctl_up_options[] = {
    {"hosts",      required_argument, NULL, CTL_UP_HOSTS},
    {"links",      required_argument, NULL, CTL_UP_LINKS},
    {"mtu",        required_argument, NULL, CTL_UP_MTU},
    {"speeds",     required_argument, NULL, CTL_UP_SPEEDS},
    {"trace",      required_argument, NULL, CTL_UP_TRACE},
    {"subnet-timeout", required_argument, NULL, CTL_UP_SUBNET_TIMEOUT},
    {"topology",   required_argument, NULL, CTL_UP_TOPOLOGY},
    {"shared-hca", no_argument,       NULL, CTL_UP_SHARED_HCA},
    {"no-devx",    no_argument,       NULL, CTL_UP_NO_DEVX},
    {"reuse-qpns", no_argument,       NULL, CTL_UP_REUSE_QPNS},
    {"faults",     required_argument, NULL, CTL_UP_FAULTS},
    {"quirk",      required_argument, NULL, CTL_UP_QUIRK},
    {"seed",       required_argument, NULL, CTL_UP_SEED},
    {"time-scale", required_argument, NULL, CTL_UP_TIME_SCALE},
    {"rate",       required_argument, NULL, CTL_UP_RATE},
    {"latency",    required_argument, NULL, CTL_UP_LATENCY},
    {"queue",      required_argument, NULL, CTL_UP_QUEUE},
    {"lossy",      no_argument,       NULL, CTL_UP_LOSSY},
    {NULL,         0,                 NULL, 0}
};

/* What is done to the fabric when it is there */
typedef struct ctl_up_args {
    const char *faults;                   /* a file, or NULL */
    const char *quirks[CTL_UP_MAX_QUIRKS];
    unsigned   num_quirks;
    int        is_timed;
    int        is_lossy;
    emu_pipe_speed_t speed;
    ctl_mtu_named_t mtu_named;
} ctl_up_args_t;


static int ctl_up_parse_u32(const char *name, uint64_t min, uint64_t max,
                            uint32_t *value_p)
{
    uint64_t value;

    if (ctl_parse_number(optarg, min, max, &value)) {
        return ctl_usage_fail(&ctl_verb_up, "--%s is a number from %lu to %lu,"
                              " not \"%s\"", name, min, max, optarg);
    }

    *value_p = value;
    return 0;
}

/* Speeds of links 0, 1, ...; the last one is that of all further links, too */
static int ctl_up_parse_speeds(uint32_t *speeds)
{
    const char *list = optarg;
    unsigned link    = 0;
    uint32_t speed   = 0;
    size_t length;

    while (link < EMU_MAX_LINKS) {
        length = strcspn(list, ",");
        for (speed = 0; speed < EMU_SPEED_LAST; ++speed) {
            if ((strlen(emu_speed_names[speed]) == length) &&
                (strncmp(emu_speed_names[speed], list, length) == 0)) {
                break;
            }
        }

        if (speed == EMU_SPEED_LAST) {
            break;
        }

        speeds[link++] = speed;
        list          += length;
        if (*list == '\0') {
            for (; link < EMU_MAX_LINKS; ++link) {
                speeds[link] = speed;
            }
            return 0;
        }

        ++list;
    }

    return ctl_usage_fail(&ctl_verb_up, "--speeds is a list of sdr, ddr, qdr,"
                          " fdr, edr, hdr and ndr, one for each link at most,"
                          " not \"%s\"", optarg);
}

/* "2,2/2,2": digits, with a separator between any two of them */
static int ctl_up_topology_is_valid(const char *text)
{
    unsigned links = 0;

    for (; (*text >= '1') && (*text <= '9'); ++text) {
        links += *text - '0';
        ++text;
        if (*text == '\0') {
            return links <= EMU_MAX_LINKS;
        } else if ((*text != ',') && (*text != '/')) {
            return 0;
        }
    }

    return 0;
}

/* The NICs of each PCIe switch, and the switches of each root complex. Links beyond the
 * list have switches of their own below the last root */
static int ctl_up_parse_topology(emu_fabric_config_t *cfg)
{
    const char *p = optarg;
    unsigned root = 0, number = 0, left = 0;
    unsigned link;

    if (!ctl_up_topology_is_valid(p)) {
        return ctl_usage_fail(&ctl_verb_up, "--topology is the number of NICs at each"
                              " PCIe switch, at most %d in all, with \",\" between"
                              " switches and \"/\" between root complexes, such as"
                              " \"2,2/4\", not \"%s\"", EMU_MAX_LINKS, optarg);
    }

    for (link = 0; link < EMU_MAX_LINKS; ++link) {
        if (left == 0) {
            root += (*p == '/');
            p    += (*p == '/') || (*p == ',');
            left  = (*p == '\0') ? 1 : (unsigned)(*p++ - '0');
            ++number;
        }

        --left;
        cfg->pci_root[link]   = root;
        cfg->pci_switch[link] = number;
    }

    return 0;
}

static int ctl_up_parse_seed(uint64_t *seed_p)
{
    return ctl_parse_number(optarg, 0, INT64_MAX, seed_p) ?
           ctl_usage_fail(&ctl_verb_up, "--seed is a number, not \"%s\"",
                          optarg) : 0;
}

static int ctl_up_parse_scale(double *scale_p)
{
    char *end;

    *scale_p = strtod(optarg, &end);
    if ((end == optarg) || (*end != '\0') || !(*scale_p >= 0.001) ||
        !(*scale_p <= 1000)) {
        return ctl_usage_fail(&ctl_verb_up, "--time-scale is a number from"
                              " 0.001 to 1000, not \"%s\"", optarg);
    }

    return 0;
}

static int ctl_up_parse_quirk(ctl_up_args_t *args)
{
    if (args->num_quirks == CTL_UP_MAX_QUIRKS) {
        return ctl_usage_fail(&ctl_verb_up, "more than %d options --quirk; one"
                              " of them can have a list", CTL_UP_MAX_QUIRKS);
    }

    args->quirks[args->num_quirks++] = optarg;
    return 0;
}

static int ctl_up_parse_speed(int c, ctl_up_args_t *args)
{
    const char *name = (c == CTL_UP_RATE)    ? "rate" :
                       (c == CTL_UP_LATENCY) ? "latency" : "queue";

    args->is_timed = 1;
    return ctl_speed_parse(&ctl_verb_up, name, optarg, &args->speed);
}

/* One option. @return exit status */
static int ctl_up_parse_option(int c, emu_fabric_config_t *cfg,
                               ctl_up_args_t *args)
{
    uint32_t trace = 0;
    int status     = 0;

    switch (c) {
    case CTL_UP_HOSTS:
        return ctl_up_parse_u32("hosts", 1, EMU_MAX_HOSTS, &cfg->hosts);
    case CTL_UP_LINKS:
        return ctl_up_parse_u32("links", 1, EMU_MAX_LINKS, &cfg->links);
    case CTL_UP_MTU:
        return ctl_mtu_parse(&ctl_verb_up, optarg, cfg, &args->mtu_named);
    case CTL_UP_SPEEDS:
        return ctl_up_parse_speeds(cfg->speeds);
    case CTL_UP_TRACE:
        status             = ctl_up_parse_u32("trace", 0, 100000000, &trace);
        cfg->trace_entries = trace;
        return status;
    case CTL_UP_SUBNET_TIMEOUT:
        return ctl_up_parse_u32("subnet-timeout", 0,
                                EMU_MAX_SUBNET_TIMEOUT,
                                &cfg->subnet_timeout);
    case CTL_UP_TOPOLOGY:
        return ctl_up_parse_topology(cfg);
    case CTL_UP_SHARED_HCA:
        cfg->shared_hca = 1;
        return 0;
    case CTL_UP_NO_DEVX:
        cfg->no_devx = 1;
        return 0;
    case CTL_UP_REUSE_QPNS:
        cfg->reuse_qpns = 1;
        return 0;
    case CTL_UP_SEED:
        return ctl_up_parse_seed(&cfg->seed);
    case CTL_UP_TIME_SCALE:
        return ctl_up_parse_scale(&cfg->time_scale);
    case CTL_UP_RATE:
    case CTL_UP_LATENCY:
    case CTL_UP_QUEUE:
        return ctl_up_parse_speed(c, args);
    case CTL_UP_LOSSY:
        args->is_timed = 1;
        args->is_lossy = 1;
        return 0;
    case CTL_UP_QUIRK:
        return ctl_up_parse_quirk(args);
    default:
        args->faults = optarg;
        return 0;
    }
}

static int ctl_up_parse(int argc, char **argv, emu_fabric_config_t *cfg,
                        ctl_up_args_t *args, int *done_p)
{
    int status = 0;
    int c;

    *done_p = 1;
    while ((c = ctl_getopt(&ctl_verb_up, argc, argv, "", ctl_up_options,
                           &status)) != -1) {
        if (c != '?') {
            status = ctl_up_parse_option(c, cfg, args);
        }

        if ((c == '?') || status) {
            return status;
        }
    }

    if (optind != argc) {
        return ctl_usage_fail(&ctl_verb_up, "unexpected \"%s\"", argv[optind]);
    }

    status  = ctl_mtu_check(&ctl_verb_up, cfg, &args->mtu_named);
    *done_p = (status != 0);
    return status;
}

static int ctl_up_load_faults(const char *path, const char *rules)
{
    int status = 0;

    if ((path != NULL) && (path[0] != '\0')) {
        status = ctl_fault_load(path, 0);
    }
    if ((status == 0) && (rules != NULL)) {
        status = ctl_fault_load_text(rules, "$" CTL_ENV_RULES);
    }

    return status;
}

static int ctl_up_add_quirks(const ctl_up_args_t *args, const char *list)
{
    int status = 0;
    unsigned i;

    if (list != NULL) {
        status = ctl_quirk_add_list(&ctl_verb_up, list, "$" CTL_ENV_QUIRKS);
    }
    for (i = 0; (i < args->num_quirks) && (status == 0); ++i) {
        status = ctl_quirk_add(&ctl_verb_up, args->quirks[i]);
    }

    return status;
}

static int ctl_up_set_speeds(const ctl_up_args_t *args)
{
    unsigned port;

    if (!args->is_timed) {
        return CTL_OK;
    }

    emu_fabric->pipe->lossy = args->is_lossy;
    for (port = 0; port < emu_fabric->cfg.hosts * emu_fabric->cfg.links;
         ++port) {
        emu_pipe_set(port, &args->speed);
    }
    return ctl_keeper_ensure();
}

/* Rules, quirks and time: all of them, or there is no fabric */
static int ctl_up_prepare(const ctl_up_args_t *args)
{
    char err[512];
    int status;

    status = ctl_fabric_open();
    if (status == 0) {
        status = ctl_up_load_faults(args->faults, getenv(CTL_ENV_RULES));
        if (status == 0) {
            status = ctl_up_add_quirks(args, getenv(CTL_ENV_QUIRKS));
        }
        if (status == 0) {
            status = ctl_up_set_speeds(args);
        }
        emu_fabric_close();
    }

    if (status != 0) {
        /* The sentence about what is wrong has been printed */
        (void)emu_fabric_destroy(ctl_fabric_name(), err, sizeof(err));
    }

    return status;
}

static int ctl_up_run(int argc, char **argv)
{
    ctl_up_args_t args = { .faults = getenv(CTL_ENV_FAULTS) };
    emu_fabric_config_t cfg;
    char err[512];
    int status, done;

    emu_fabric_config_default(&cfg);
    status = ctl_up_parse(argc, argv, &cfg, &args, &done);
    if (done) {
        return status;
    }

    snprintf(cfg.name, sizeof(cfg.name), "%s", ctl_fabric_name());
    if (emu_fabric_create(&cfg, err, sizeof(err))) {
        return ctl_fail("%s", err);
    }

    return ctl_up_prepare(&args);
}

const ctl_verb_t ctl_verb_up = {
    .name    = "up",
    .run     = ctl_up_run,
    .usage   = "[-n NAME] [--hosts H] [--links L] [OPTIONS]",
    .help    = "Make a fabric of hosts, each with a port on every link",
    .details =
    "  -n NAME        Name of the fabric\n"
    "  --hosts H      Hosts, numbered from 0 (2)\n"
    "  --links L      Links of each host: devices mlx5_0 to mlx5_<L-1> (2)\n"
    "  --mtu [HOST[:LINK]=]BYTES\n"
    "                 256, 512, 1024, 2048 or 4096 (4096): of all ports, of those of a\n"
    "                 host, or of one; can be given several times, the last one counts\n"
    "  --speeds S,... What ports of link 0, 1, ... say of their speed: sdr, ddr,\n"
    "                 qdr, fdr, edr, hdr or ndr (edr)\n"
    "  --trace N      Entries that the trace holds; 0 for no trace (65536)\n"
    "  --subnet-timeout N\n"
    "                 The subnet manager's bound of a packet's lifetime, as ports\n"
    "                 report it: 4.096 us x 2^N, from 0 to 31 (18, OpenSM's default)\n"
    "  --topology T   How many NICs are at each PCIe switch, and how many switches\n"
    "                 at each root complex, such as 2,2/2,2 (all at one switch)\n"
    "  --shared-hca   All links of a host are ports of one NIC, with common\n"
    "                 atomicity; otherwise each is a separate NIC\n"
    "  --no-devx      Devices have no DEVX: programs fall back to what verbs\n"
    "                 offer, without atomics of 4 bytes or with masks\n"
    "  --reuse-qpns   A new queue pair may have the number of one that is gone\n"
    "                 at once, not only after 1024 others\n"
    "  --faults FILE  Load fault rules, one a line (else from the file that\n"
    "                 $MLX5EMU_FAULTS names); also those in $MLX5EMU_RULES\n"
    "  --quirk LIST   [HOST[:LINK]=]NAME[,NAME]...: switch on what real NICs and\n"
    "                 fabrics do and this one does not by itself; \"mlx5emu quirk\n"
    "                 list\" has the names. Also those in $MLX5EMU_QUIRKS\n"
    "  --seed N       Of all that is random (1); rules may have their own\n"
    "  --time-scale F Retry timers and delays run F times faster (1)\n"
    "  --rate R       Every link sends R, such as 400Mbps, each way; packets take\n"
    "                 their time, which this and the next three options switch on\n"
    "  --latency T    ... and each packet takes T, such as 5ms, from a port to its\n"
    "                 switch or back: two hosts are 2 T apart\n"
    "  --queue BYTES  What a switch queues towards a port (what keeps the link\n"
    "                 busy, and 2 ms more)\n"
    "  --lossy        A queue that is full drops packets; without it ports wait\n"
};
