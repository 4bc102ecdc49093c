/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checks whether rc_varuna can be trusted on the NICs of two hosts. It uses libibverbs
 * and mlx5dv, without UCX. See rc_varuna_check(1).
 *
 *   client: check_main.c --> check_table.c --> checks_*.c --> check_pair.c --> TCP
 *   server: check_main.c --> check_server.c   (its local checks: check_table.c)
 */
#include "check_server.h"
#include "check_oob.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK_ANSWER_TIME 60 /* Seconds; a command to a dead NIC takes as long */

enum {
    CHECK_OPT_QUICK = 256,
    CHECK_OPT_JSON,
    CHECK_OPT_CUT,
    CHECK_OPT_RESTORE,
    CHECK_OPT_KILL,
    CHECK_OPT_BIND,
    CHECK_OPT_ONLY
};


static void check_usage(FILE *stream)
{
    fprintf(stream,
            "Checks whether the UCX transport rc_varuna can be trusted on the NICs of "
            "two hosts.\n\n"
            "Usage: " CHECK_PROGRAM " [OPTIONS] server    on one host\n"
            "       " CHECK_PROGRAM " [OPTIONS] HOST      on the other\n\n"
            "  -d, --devices LIST  ports in the order of links, such as mlx5_0:1,"
            "mlx5_1:1\n"
            "  -p, --port PORT     TCP port of the server (" CHECK_TCP_PORT ")\n"
            "      --bind ADDRESS  address on which the server listens (all)\n"
            "      --quick         take less than 30 s on two links\n"
            "      --only LIST     run only these checks; the status is then never 0\n"
            "      --json          print JSON, not a table\n"
            "  -l, --link N        the link that these commands act on (the last):\n"
            "      --cut CMD       cut it; without this, you are asked to do it\n"
            "      --restore CMD   restore it\n"
            "      --kill CMD      take this host's NIC down\n"
            "  -V, --version       show the version\n"
            "  -h, --help          show this help\n\n"
            "Exit status: 0 if rc_varuna can be trusted, 1 if not, 2 for wrong "
            "command line,\n3 if something could not be tested.\n");
}

static int check_number(const char *text, int max)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    return ((errno != 0) || (end == text) || (*end != '\0') || (value < 0) ||
            (value > max)) ? -1 : (int)value;
}

/* @return -1 to continue, otherwise the exit status */
static int check_parse(int argc, char **argv, check_opts_t *opts)
{
    static const struct option options[] = {
        {"devices", required_argument, NULL, 'd'},
        {"port",    required_argument, NULL, 'p'},
        {"link",    required_argument, NULL, 'l'},
        {"bind",    required_argument, NULL, CHECK_OPT_BIND},
        {"only",    required_argument, NULL, CHECK_OPT_ONLY},
        {"quick",   no_argument,       NULL, CHECK_OPT_QUICK},
        {"json",    no_argument,       NULL, CHECK_OPT_JSON},
        {"cut",     required_argument, NULL, CHECK_OPT_CUT},
        {"restore", required_argument, NULL, CHECK_OPT_RESTORE},
        {"kill",    required_argument, NULL, CHECK_OPT_KILL},
        {"version", no_argument,       NULL, 'V'},
        {"help",    no_argument,       NULL, 'h'},
        {NULL,      0,                 NULL, 0}
    };
    int is_server, c;

    opts->tcp_port = CHECK_TCP_PORT;
    opts->link     = -1;
    while ((c = getopt_long(argc, argv, "d:p:l:Vh", options, NULL)) != -1) {
        switch (c) {
        case 'd':
            opts->devices = optarg;
            break;
        case 'p':
            opts->tcp_port = optarg;
            break;
        case 'l':
            opts->link = check_number(optarg, CHECK_MAX_PORTS - 1);
            if (opts->link < 0) {
                fprintf(stderr, CHECK_PROGRAM ": --link takes a number below %d\n",
                        CHECK_MAX_PORTS);
                return CHECK_EXIT_USAGE;
            }
            break;
        case CHECK_OPT_BIND:
            opts->bind = optarg;
            break;
        case CHECK_OPT_ONLY:
            opts->only = optarg;
            if (check_only_unknown(optarg) != NULL) {
                check_only_complain(check_only_unknown(optarg));
                return CHECK_EXIT_USAGE;
            }
            break;
        case CHECK_OPT_QUICK:
            opts->is_quick = 1;
            break;
        case CHECK_OPT_JSON:
            opts->is_json = 1;
            break;
        case CHECK_OPT_CUT:
            opts->cut = optarg;
            break;
        case CHECK_OPT_RESTORE:
            opts->restore = optarg;
            break;
        case CHECK_OPT_KILL:
            opts->kill = optarg;
            break;
        case 'V':
            printf(CHECK_PROGRAM " %s\n", PACKAGE_VERSION);
            return CHECK_EXIT_OK;
        case 'h':
            check_usage(stdout);
            return CHECK_EXIT_OK;
        default:
            return CHECK_EXIT_USAGE;
        }
    }

    if (check_number(opts->tcp_port, 65535) <= 0) {
        fprintf(stderr, CHECK_PROGRAM ": --port takes a TCP port\n");
        return CHECK_EXIT_USAGE;
    }

    if (optind + 1 != argc) {
        fprintf(stderr, CHECK_PROGRAM ": expected \"server\" or the server's host; see "
                "--help\n");
        return CHECK_EXIT_USAGE;
    }

    is_server  = !strcmp(argv[optind], "server");
    opts->host = is_server ? NULL : argv[optind];
    return -1;
}

static int check_client_hello(check_run_t *run)
{
    check_hello_t hello;
    unsigned i;
    int ret;

    memset(&hello, 0, sizeof(hello));
    hello.num_ports = run->nics.count;
    hello.is_quick  = run->opts.is_quick;
    for (i = 0; i < run->nics.count; ++i) {
        hello.ports[i] = run->nics.nic[i].wire;
    }

    ret = check_oob_call(run->fd, CHECK_MSG_HELLO, &hello, sizeof(hello), &run->peer,
                         sizeof(run->peer));
    if (ret != 0) {
        return -1;
    }

    if (!check_oob_hello_ok(&run->peer) || (run->peer.num_ports == 0)) {
        fprintf(stderr, CHECK_PROGRAM ": the server's ports are invalid\n");
        return -1;
    }

    run->links = (run->peer.num_ports < run->nics.count) ? run->peer.num_ports :
                                                           run->nics.count;
    if (run->opts.link >= (int)run->links) {
        fprintf(stderr, CHECK_PROGRAM ": there is no link %d\n", run->opts.link);
        return -1;
    }

    return 0;
}

/* Append the results of the server's local checks */
static int check_client_rows(check_run_t *run)
{
    unsigned max                = CHECK_MAX_ROWS - run->num_rows;
    check_wire_row_t *row       = &run->rows[run->num_rows];
    check_head_t head;
    unsigned i, count;

    if ((check_oob_send(run->fd, CHECK_MSG_ROWS, 0, NULL, 0) != 0) ||
        (check_oob_recv(run->fd, &head, row, max * sizeof(*row)) != 0)) {
        return -1;
    }

    count = head.length / sizeof(*row);
    if ((head.type != CHECK_MSG_ROWS) || (head.error != 0) ||
        (head.length % sizeof(*row))) {
        fprintf(stderr, CHECK_PROGRAM ": the server's results are invalid\n");
        return -1;
    }

    for (i = 0; i < count; ++i, ++row) {
        row->is_remote                      = 1;
        row->name[sizeof(row->name) - 1]    = '\0';
        row->where[sizeof(row->where) - 1]  = '\0';
        row->text[sizeof(row->text) - 1]    = '\0';
        if ((row->status > CHECK_FAIL) || (check_find(row->name) == NULL)) {
            fprintf(stderr, CHECK_PROGRAM ": the server's results are invalid\n");
            return -1;
        }
    }

    run->num_rows += count;
    return 0;
}

static int check_client(check_run_t *run)
{
    run->fd = check_oob_connect(run->opts.host, run->opts.tcp_port);
    if (run->fd < 0) {
        return CHECK_EXIT_FAIL;
    }

    check_oob_timeout(run->fd, CHECK_ANSWER_TIME);
    if (check_client_hello(run) != 0) {
        return CHECK_EXIT_FAIL;
    }

    check_run_all(run, 1);
    if (check_client_rows(run) != 0) {
        return CHECK_EXIT_FAIL;
    }

    check_run_all(run, 0);
    return check_report(run);
}

int main(int argc, char **argv)
{
    static check_run_t run;
    int status;

    status = check_parse(argc, argv, &run.opts);
    if (status >= 0) {
        return status;
    }

    srandom(time(NULL) ^ getpid());
    if (check_nics_open(&run.nics, run.opts.devices) != 0) {
        return CHECK_EXIT_FAIL;
    }

    return (run.opts.host == NULL) ? check_server(&run) : check_client(&run);
}
