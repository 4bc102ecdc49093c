/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verb "exec": become a program on a host of the fabric.
 */

#include "ctl.h"
#include "../core/emu_map.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CTL_LIBRARY        "libmlx5emu.so"
#define CTL_EXIT_NOT_FOUND 127
#define CTL_EXIT_NOT_RUN   126

#ifndef MLX5EMU_LIBDIR
#define MLX5EMU_LIBDIR "/usr/local/lib"
#endif

enum {
    CTL_EXEC_FAULTS = 256,
    CTL_EXEC_REQUIRE
};

static const struct option ctl_exec_options[] = {
    {"faults",        required_argument, NULL, CTL_EXEC_FAULTS},
    {"require-fired", no_argument,       NULL, CTL_EXEC_REQUIRE},
    {NULL,            0,                 NULL, 0}
};

typedef struct ctl_exec_args {
    const char *faults;
    int        require_fired;
} ctl_exec_args_t;

/* Where the library is, relative to the directory of the command: in a build
 * tree, in libtool's directory of it, installed */
static const char *ctl_library_places[] = {
    ".libs/" CTL_LIBRARY, CTL_LIBRARY, "../lib/mlx5emu/" CTL_LIBRARY
};

#define CTL_NUM_PLACES \
    (sizeof(ctl_library_places) / sizeof(ctl_library_places[0]))


/* @return 0, or CTL_FAILED */
static int ctl_exec_find_library(char *path)
{
    char dir[PATH_MAX], place[PATH_MAX + 64];
    ssize_t len;
    unsigned i;

    len = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
    if (len < 0) {
        return ctl_fail("cannot read /proc/self/exe: %s", strerror(errno));
    }

    dir[len]              = '\0';
    *strrchr(dir, '/')    = '\0';
    for (i = 0; i < CTL_NUM_PLACES; ++i) {
        snprintf(place, sizeof(place), "%s/%s", dir, ctl_library_places[i]);
        if (realpath(place, path) != NULL) {
            return 0;
        }
    }

    if (realpath(MLX5EMU_LIBDIR "/mlx5emu/" CTL_LIBRARY, path) != NULL) {
        return 0;
    }

    return ctl_fail(CTL_LIBRARY " is neither in %s/../lib/mlx5emu nor in "
                    MLX5EMU_LIBDIR "/mlx5emu: is mlx5emu installed as a"
                    " whole?", dir);
}

/* Is a path one of those in a list separated by colons or spaces? */
static int ctl_exec_listed(const char *list, const char *path)
{
    size_t len = strlen(path);
    const char *p;

    for (p = strstr(list, path); p != NULL; p = strstr(p + 1, path)) {
        if (((p == list) || strchr(": ", p[-1])) &&
            ((p[len] == '\0') || strchr(": ", p[len]))) {
            return 1;
        }
    }

    return 0;
}

static int ctl_exec_set_preload(const char *library)
{
    const char *old = getenv("LD_PRELOAD");
    char *value;
    int ret;

    if (strpbrk(library, ": ") != NULL) {
        return ctl_fail("the library's path \"%s\" contains a colon or a space,"
                        " which LD_PRELOAD cannot have: install mlx5emu"
                        " elsewhere", library);
    }

    if ((old == NULL) || (old[0] == '\0')) {
        ret = setenv("LD_PRELOAD", library, 1);
    } else if (ctl_exec_listed(old, library)) {
        return 0;
    } else {
        if (asprintf(&value, "%s:%s", library, old) < 0) {
            return ctl_fail("out of memory");
        }
        ret = setenv("LD_PRELOAD", value, 1);
        free(value);
    }

    return ret ? ctl_fail("cannot set LD_PRELOAD: %s", strerror(errno)) : 0;
}

static int ctl_exec_set_env(unsigned host)
{
    char library[PATH_MAX];
    char number[16];
    int status;

    status = ctl_exec_find_library(library);
    if (status == 0) {
        status = ctl_exec_set_preload(library);
    }

    snprintf(number, sizeof(number), "%u", host);
    if ((status == 0) && (setenv(CTL_ENV_FABRIC, ctl_fabric_name(), 1) ||
                          setenv(CTL_ENV_HOST, number, 1))) {
        status = ctl_fail("cannot set the environment: %s", strerror(errno));
    }

    return status;
}

static int ctl_exec_start(char **command)
{
    int status;

    execvp(command[0], command);
    status = (errno == ENOENT) ? CTL_EXIT_NOT_FOUND : CTL_EXIT_NOT_RUN;
    ctl_fail("cannot run %s: %s", command[0], strerror(errno));
    return status;
}

static pid_t ctl_exec_child;

static void ctl_exec_forward(int signum)
{
    kill(ctl_exec_child, signum);
}

/* Run a command as a child, and look at the rules when it has ended. @return
 * its exit status, or CTL_INCOMPLETE */
static int ctl_exec_watch(char **command)
{
    struct sigaction action = {.sa_handler = ctl_exec_forward};
    int status, ret;

    ctl_exec_child = fork();
    if (ctl_exec_child < 0) {
        return ctl_fail("cannot fork: %s", strerror(errno));
    } else if (ctl_exec_child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        _exit(ctl_exec_start(command));
    }

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    while ((waitpid(ctl_exec_child, &status, 0) < 0) && (errno == EINTR)) {
    }

    ret = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ctl_fabric_open()) {
        return (ret != 0) ? ret : CTL_FAILED;
    }

    if (ctl_fault_report_idle() > 0) {
        ret = (ret != 0) ? ret : CTL_INCOMPLETE;
    }

    emu_fabric_close();
    return ret;
}

/* Rules of the options and of the environment; a command that is run within
 * the command does not load the latter again */
static int ctl_exec_load_faults(const ctl_exec_args_t *args)
{
    const char *rules = getenv(CTL_ENV_EXEC);
    int status        = CTL_OK;

    if (args->faults != NULL) {
        status = ctl_fault_load(args->faults, 0);
    }

    if ((status == CTL_OK) && (rules != NULL)) {
        status = ctl_fault_load_text(rules, "$" CTL_ENV_EXEC);
    }

    unsetenv(CTL_ENV_EXEC);
    return status;
}

static int ctl_exec_parse(int argc, char **argv, ctl_exec_args_t *args,
                          int *done_p)
{
    int status = 0;
    int c;

    *done_p = 1;
    while ((c = ctl_getopt(&ctl_verb_exec, argc, argv, "+", ctl_exec_options,
                           &status)) != -1) {
        switch (c) {
        case CTL_EXEC_FAULTS:
            args->faults = optarg;
            break;
        case CTL_EXEC_REQUIRE:
            args->require_fired = 1;
            break;
        default:
            return status;
        }
    }

    if (optind >= argc) {
        return ctl_usage_fail(&ctl_verb_exec, "no host is given");
    }

    *done_p = 0;
    return 0;
}

static int ctl_exec_run(int argc, char **argv)
{
    ctl_exec_args_t args = {};
    unsigned host;
    char **command;
    int status, done;

    status = ctl_exec_parse(argc, argv, &args, &done);
    if (done) {
        return status;
    }

    command = argv + optind + 1;
    if ((command[0] != NULL) && !strcmp(command[0], "--")) {
        ++command;
    }

    if (command[0] == NULL) {
        return ctl_usage_fail(&ctl_verb_exec, "no command is given");
    }

    status = ctl_fabric_open();
    if (status == 0) {
        status = ctl_parse_host(&ctl_verb_exec, argv[optind], &host);
        if (status == 0) {
            status = ctl_exec_load_faults(&args);
        }
        if (status == 0) {
            status = ctl_keeper_ensure();
        }
        emu_fabric_close();
    }

    if (status == 0) {
        status = ctl_exec_set_env(host);
    }

    if (status != 0) {
        return status;
    }

    return args.require_fired ? ctl_exec_watch(command) :
                                ctl_exec_start(command);
}

const ctl_verb_t ctl_verb_exec = {
    .name    = "exec",
    .run     = ctl_exec_run,
    .usage   = "[-n NAME] [--faults FILE] [--require-fired] HOST -- COMMAND"
               " [ARGUMENTS]",
    .help    = "Run a command on a host of the fabric",
    .details =
    "  -n NAME          Name of the fabric\n"
    "  --faults FILE    Load fault rules first; also those in"
    " $MLX5EMU_EXEC_RULES\n"
    "  --require-fired  Exit with status 3 if the command succeeded and some"
    " rule\n                   of the fabric never fired\n\n"
    "The command takes the place of mlx5emu (with --require-fired, mlx5emu"
    " waits for\nit), so its exit status is the command's.  It sees the"
    " emulated devices of the\nhost, and none of this machine's.  With"
    " MLX5EMU_EXPLAIN=1 in its environment, calls\nthat fail because something"
    " is not modelled print this to stderr.\n"
};
