/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verb "down": remove a fabric.
 */

#include "ctl.h"
#include "../core/emu_attach.h"
#include "../core/emu_map.h"
#include "../core/emu_proc.h"
#include "../wire/emu_keep.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CTL_DOWN_POLL_MS    20
#define CTL_DOWN_TERM_MS    2000  /* between SIGTERM and SIGKILL */
#define CTL_DOWN_KILL_MS    2000  /* after SIGKILL */
#define CTL_DOWN_MAX_LISTED 8

enum {
    CTL_DOWN_FORCE = 256,
    CTL_DOWN_WAIT
};

static const struct option ctl_down_options[] = {
    {"force", no_argument,       NULL, CTL_DOWN_FORCE},
    {"wait",  required_argument, NULL, CTL_DOWN_WAIT},
    {NULL,    0,                 NULL, 0}
};

typedef struct ctl_down_args {
    int      force;
    uint64_t wait_s;
} ctl_down_args_t;


/* Call a function for every living process; @return how many there are */
static unsigned ctl_down_for_each(void (*func)(const emu_proc_t *proc,
                                               unsigned num, int arg),
                                  int arg)
{
    int keeper   = emu_keep_proc();
    unsigned num = 0;
    const emu_proc_t *proc;
    unsigned i;

    for (i = 0; i < EMU_MAX_PROCS; ++i) {
        proc = &emu_fabric->procs[i];
        if (proc->used && emu_proc_alive(proc) && ((int)i != keeper)) {
            if (func != NULL) {
                func(proc, num, arg);
            }
            ++num;
        }
    }

    return num;
}

static void ctl_down_print(const emu_proc_t *proc, unsigned num, int arg)
{
    (void)arg;
    if (num < CTL_DOWN_MAX_LISTED) {
        fprintf(stderr, "  pid %d on host %u: %.*s\n", proc->pid, proc->host,
                EMU_COMM_MAX, proc->comm);
    } else if (num == CTL_DOWN_MAX_LISTED) {
        fprintf(stderr, "  ...\n");
    }
}

static void ctl_down_signal(const emu_proc_t *proc, unsigned num, int signum)
{
    (void)num;
    if ((proc->pid > 0) && (proc->pid != getpid())) {
        (void)kill(proc->pid, signum);
    }
}

/* @return Number of processes still there after @a timeout_ms */
static unsigned ctl_down_wait(uint64_t timeout_ms)
{
    struct timespec interval = {0, CTL_DOWN_POLL_MS * 1000000l};
    uint64_t deadline        = emu_now_ns() + timeout_ms * 1000000ul;
    unsigned num;

    while (((num = ctl_down_for_each(NULL, 0)) > 0) &&
           (emu_now_ns() < deadline)) {
        nanosleep(&interval, NULL);
    }

    return num;
}

static int ctl_down_refuse(unsigned num)
{
    ctl_fail("fabric \"%s\" is in use by %u process%s:", ctl_fabric_name(),
             num, (num == 1) ? "" : "es");
    ctl_down_for_each(ctl_down_print, 0);
    fprintf(stderr, "End them first, or use --wait SECONDS, or --force which"
            " ends them.\n");
    return CTL_FAILED;
}

static int ctl_down_empty(const ctl_down_args_t *args)
{
    unsigned num = ctl_down_wait(args->wait_s * 1000);

    if ((num > 0) && !args->force) {
        return ctl_down_refuse(num);
    }

    if (num > 0) {
        ctl_down_for_each(ctl_down_signal, SIGTERM);
        num = ctl_down_wait(CTL_DOWN_TERM_MS);
    }

    if (num > 0) {
        ctl_down_for_each(ctl_down_signal, SIGKILL);
        num = ctl_down_wait(CTL_DOWN_KILL_MS);
    }

    if (num > 0) {
        ctl_fail("%u process%s of fabric \"%s\" did not end; the fabric is"
                 " removed nevertheless:", num, (num == 1) ? "" : "es",
                 ctl_fabric_name());
        ctl_down_for_each(ctl_down_print, 0);
    }

    ctl_keeper_end();
    return 0;
}

static int ctl_down_parse(int argc, char **argv, ctl_down_args_t *args,
                          int *done_p)
{
    int status = 0;
    int c;

    *done_p = 1;
    while ((c = ctl_getopt(&ctl_verb_down, argc, argv, "f", ctl_down_options,
                           &status)) != -1) {
        switch (c) {
        case 'f':
        case CTL_DOWN_FORCE:
            args->force = 1;
            break;
        case CTL_DOWN_WAIT:
            if (ctl_parse_number(optarg, 0, 86400, &args->wait_s)) {
                return ctl_usage_fail(&ctl_verb_down, "--wait is a number of"
                                      " seconds, not \"%s\"", optarg);
            }
            break;
        default:
            return status;
        }
    }

    if (optind != argc) {
        return ctl_usage_fail(&ctl_verb_down, "unexpected \"%s\"",
                              argv[optind]);
    }

    *done_p = 0;
    return 0;
}

static int ctl_down_exists(void)
{
    char path[128];

    snprintf(path, sizeof(path), EMU_FILE_FMT, ctl_fabric_name());
    if (access(path, F_OK) == 0) {
        return 1;
    }

    snprintf(path, sizeof(path), EMU_DIR_FMT, ctl_fabric_name());
    return access(path, F_OK) == 0;
}

static int ctl_down_run(int argc, char **argv)
{
    ctl_down_args_t args = {0};
    char err[512];
    int status, done;

    status = ctl_down_parse(argc, argv, &args, &done);
    if (done) {
        return status;
    }

    if (!ctl_down_exists()) {
        return ctl_fail("there is no fabric \"%s\"", ctl_fabric_name());
    }

    /* A file that cannot be opened (half made, another version's) is removed, too,
     * but only by force: its users are unknown */
    if (emu_fabric_open(ctl_fabric_name(), err, sizeof(err)) == 0) {
        status = ctl_down_empty(&args);
        emu_fabric_close();
        if (status) {
            return status;
        }
    } else if (!args.force) {
        return ctl_fail("%s\n" CTL_PROGRAM ": \"" CTL_PROGRAM " down -n %s"
                        " --force\" removes it all the same", err,
                        ctl_fabric_name());
    }

    if (emu_fabric_destroy(ctl_fabric_name(), err, sizeof(err))) {
        return ctl_fail("%s", err);
    }

    return CTL_OK;
}

const ctl_verb_t ctl_verb_down = {
    .name    = "down",
    .run     = ctl_down_run,
    .usage   = "[-n NAME] [--wait SECONDS] [--force]",
    .help    = "Remove a fabric; nothing is left behind",
    .details =
    "  -n NAME         Name of the fabric\n"
    "  --wait SECONDS  Wait so long for processes that still use it\n"
    "  --force, -f     End the processes that still use it: SIGTERM, and two\n"
    "                  seconds later SIGKILL\n\n"
    "Without --force it refuses while processes use the fabric.\n"
};
