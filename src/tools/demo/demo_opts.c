/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Command line parsing, called by main.
 */
#include "demo_opts.h"
#include "demo_ucp.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static const struct option demo_long_opts[] = {
    {"port",      required_argument, NULL, 'p'},
    {"port-file", required_argument, NULL, 'P'},
    {"workers",   required_argument, NULL, 'w'},
    {"time",      required_argument, NULL, 't'},
    {"ops",       required_argument, NULL, 'n'},
    {"rate",      required_argument, NULL, 'r'},
    {"seed",      required_argument, NULL, 's'},
    {"give-up",   required_argument, NULL, 'g'},
    {"err-mode",  required_argument, NULL, 'e'},
    {"ledger",    required_argument, NULL, 'l'},
    {"summary",   required_argument, NULL, 'S'},
    {"wakeup",    no_argument,       NULL, 'W'},
    {"help",      no_argument,       NULL, 'h'},
    {NULL,        0,                 NULL, 0}
};


static void demo_opts_usage(void)
{
    printf("Puts, gets and active messages over UCP, with checked contents.\n"
           "\n"
           "Usage: " DEMO_PROGRAM " server [OPTIONS]\n"
           "       " DEMO_PROGRAM " client HOST [OPTIONS]\n"
           "\n"
           "Every worker of the client gets an endpoint to every worker of\n"
           "the server. Transports are chosen as for any UCX program, for\n"
           "instance with UCX_TLS.\n"
           "\n"
           "  -p, --port PORT       TCP port for the exchange of addresses\n"
           "                        (13400; 0: any free one, server only)\n"
           "  -P, --port-file FILE  server: write the port into this file\n"
           "  -w, --workers N       number of workers, 1 to %d (2)\n"
           "  -t, --time SECONDS    client: duration of the load (10);\n"
           "                        SIGINT ends it before\n"
           "  -n, --ops N           client: end it after N operations\n"
           "  -r, --rate N          client: at most N operations per second\n"
           "  -s, --seed N          client: seed of the load (1)\n"
           "  -g, --give-up SECONDS fail if nothing completes for so long"
           " (30)\n"
           "  -e, --err-mode MODE   client: peer or none (peer)\n"
           "  -l, --ledger FILE     client: record each put in this file\n"
           "  -S, --summary FILE    write the summary line into this file, "
           "too\n"
           "  -W, --wakeup          sleep on UCP's event descriptor when idle\n"
           "  -h, --help            this text\n"
           "\n"
           "Exit status: 0 if every operation completed once and all contents "
           "are right.\n",
           DEMO_MAX_WORKERS);
}

static int demo_opts_number(const char *name, const char *text, uint64_t low,
                            uint64_t high, uint64_t *value_p)
{
    unsigned long long value;
    char *end;

    errno = 0;
    value = strtoull(text, &end, 10);
    if ((errno != 0) || (end == text) || (*end != '\0') || (*text == '-') ||
        (value < low) || (value > high)) {
        demo_error("--%s: '%s' is not a number between %llu and %llu", name,
                   text, (unsigned long long)low, (unsigned long long)high);
        return -1;
    }

    *value_p = value;
    return 0;
}

static int
demo_opts_seconds(const char *name, const char *text, double *value_p)
{
    double value;
    char *end;

    value = strtod(text, &end);
    if ((end == text) || (*end != '\0') || !(value > 0) || (value > 1e6)) {
        demo_error("--%s: '%s' is not a number of seconds", name, text);
        return -1;
    }

    *value_p = value;
    return 0;
}

static int demo_opts_err_mode(const char *text, ucp_err_handling_mode_t *mode_p)
{
    if (!strcmp(text, "peer")) {
        *mode_p = UCP_ERR_HANDLING_MODE_PEER;
    } else if (!strcmp(text, "none")) {
        *mode_p = UCP_ERR_HANDLING_MODE_NONE;
    } else {
        demo_error("--err-mode: '%s' is neither peer nor none", text);
        return -1;
    }

    return 0;
}

static int demo_opts_set(demo_opts_t *opts, int opt)
{
    uint64_t number;
    int ret = 0;

    switch (opt) {
    case 'p':
        ret        = demo_opts_number("port", optarg, 0, 65535, &number);
        opts->port = optarg;
        break;
    case 'P':
        opts->port_file = optarg;
        break;
    case 'w':
        ret = demo_opts_number("workers", optarg, 1, DEMO_MAX_WORKERS,
                               &number);
        opts->num_workers = (ret == 0) ? number : 0;
        break;
    case 't':
        ret = demo_opts_seconds("time", optarg, &opts->seconds);
        break;
    case 'n':
        ret = demo_opts_number("ops", optarg, 1, 1ull << 40, &opts->max_ops);
        break;
    case 'r':
        ret = demo_opts_number("rate", optarg, 1, 1ull << 30, &opts->rate);
        break;
    case 's':
        ret = demo_opts_number("seed", optarg, 1, UINT64_MAX, &opts->seed);
        break;
    case 'g':
        ret = demo_opts_seconds("give-up", optarg, &opts->give_up);
        break;
    case 'e':
        ret = demo_opts_err_mode(optarg, &opts->err_mode);
        break;
    case 'l':
        opts->ledger_file = optarg;
        break;
    case 'S':
        opts->summary_file = optarg;
        break;
    case 'W':
        opts->wakeup = 1;
        break;
    case 'h':
        demo_opts_usage();
        ret = 1;
        break;
    default:
        ret = -1; /* getopt has printed it */
        break;
    }

    return ret;
}

/* Arguments after the options: the role, and the client's host */
static int demo_opts_role(int argc, char **argv, demo_opts_t *opts)
{
    int left = argc - optind;

    if ((left == 1) && !strcmp(argv[optind], "server")) {
        opts->is_server = 1;
        return 0;
    }

    if ((left == 2) && !strcmp(argv[optind], "client")) {
        opts->host = argv[optind + 1];
        if (!strcmp(opts->port, "0")) {
            demo_error("the client needs the server's port");
            return -1;
        }

        return 0;
    }

    demo_error("expected 'server' or 'client HOST'; see --help");
    return -1;
}

int demo_opts_parse(int argc, char **argv, demo_opts_t *opts_p)
{
    demo_opts_t opts = {
        .port        = "13400",
        .num_workers = 2,
        .seconds     = 10,
        .give_up     = 30,
        .seed        = 1,
        .err_mode    = UCP_ERR_HANDLING_MODE_PEER
    };
    int opt, ret;

    while ((opt = getopt_long(argc, argv, "p:P:w:t:n:r:s:g:e:l:S:Wh",
                              demo_long_opts, NULL)) != -1) {
        ret = demo_opts_set(&opts, opt);
        if (ret != 0) {
            return ret;
        }
    }

    if (demo_opts_role(argc, argv, &opts) != 0) {
        return -1;
    }

    *opts_p = opts;
    return 0;
}
