/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * rc_varuna_run: runs a program so that its UCX finds the rc_varuna transport.
 *
 * It preloads an object that opens the plugin when UCX looks for its transports, if this UCX
 * is the one that the plugin was built for (rc_varuna_preload.c).
 */

#ifdef HAVE_CONFIG_H
#  include "rc_varuna_build.h"
#endif

#include "run_ucx.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>


#define RUN_PLUGIN       "libuct_varuna.so.0"
#define RUN_PRELOAD      "librc_varuna_preload.so"
#define RUN_PLUGIN_VAR   "RC_VARUNA_PLUGIN" /* Read by RUN_PRELOAD */
#define RUN_CHECK_VAR    "UCX_RC_VARUNA_UCX_CHECK"

/* As in env(1) and chroot(1) */
#define RUN_EXIT_SELF    125
#define RUN_EXIT_NOEXEC  126
#define RUN_EXIT_NOENT   127


static const run_version_t run_built_for = {
    {RC_VARUNA_UCX_MAJOR, RC_VARUNA_UCX_MINOR, RC_VARUNA_UCX_PATCH}
};

/* Where our files are, relative to this program: in an installation, and in a build tree */
static const char *run_dirs[] = {
    "../lib/ucx",
    "../../uct/ib/varuna/.libs",
    ".libs"
};


static void run_usage(FILE *stream)
{
    fprintf(stream,
            "Usage: rc_varuna_run [options] COMMAND [ARGUMENT]...\n"
            "\n"
            "Runs COMMAND so that its UCX finds the rc_varuna transport, which"
            " UCX_TLS then\n"
            "selects:  UCX_TLS=rc_varuna rc_varuna_run ./program\n"
            "\n"
            "  -l, --plugin FILE   the plugin to use (default: the one"
            " installed with this\n"
            "                      command)\n"
            "  -p, --print         do not run anything, but print the"
            " environment variables\n"
            "                      that do it\n"
            "  -v, --verbose       print which UCX the command uses\n"
            "  -V, --version       print versions\n"
            "  -h, --help          print this help\n");
}

void run_fatal(const char *format, ...)
{
    va_list ap;

    fprintf(stderr, "rc_varuna_run: ");
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(RUN_EXIT_SELF);
}

char *run_format(const char *format, ...)
{
    va_list ap;
    char *string;
    int ret;

    va_start(ap, format);
    ret = vasprintf(&string, format, ap);
    va_end(ap);
    if (ret < 0) {
        run_fatal("out of memory");
    }
    return string;
}

/* Absolute path of the file @a path, that is preloaded or opened; exits when it cannot be
 * used. */
static char *run_check_file(const char *path)
{
    const char *name = strrchr(path, '/');
    char *directory;
    char *absolute;
    struct stat st;
    char *result;

    if (access(path, R_OK) != 0) {
        run_fatal("%s cannot be read: %s", path, strerror(errno));
    }
    if ((stat(path, &st) != 0) || !S_ISREG(st.st_mode)) {
        run_fatal("%s is not a file", path);
    }

    /* Keep the name of the file: it may be a link, and UCX uses the name */
    directory = (name == NULL) ? run_format(".") :
                                 run_format("%.*s/", (int)(name - path), path);
    absolute  = realpath(directory, NULL);
    if (absolute == NULL) {
        run_fatal("%s: %s", directory, strerror(errno));
    }
    result = run_format("%s/%s", absolute, (name == NULL) ? path : name + 1);
    free(absolute);
    free(directory);

    if (strpbrk(result, " :") != NULL) {
        run_fatal("the path \"%s\" has a space or a colon in it, which LD_PRELOAD cannot "
                  "express", result);
    }
    return result;
}

/* Our file @a name, in @a first (if it is not NULL), or in the same installation. */
static char *run_find(const char *name, const char *first)
{
    char self[PATH_MAX];
    ssize_t length;
    char *path;
    size_t i;

    if (first != NULL) {
        path = run_format("%s/%s", first, name);
        if (access(path, R_OK) == 0) {
            return path;
        }
        free(path);
    }

    length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length < 0) {
        run_fatal("cannot read /proc/self/exe: %s", strerror(errno));
    }
    self[length]        = '\0';
    *strrchr(self, '/') = '\0';

    for (i = 0; i < sizeof(run_dirs) / sizeof(run_dirs[0]); ++i) {
        path = run_format("%s/%s/%s", self, run_dirs[i], name);
        if (access(path, R_OK) == 0) {
            return path;
        }
        free(path);
    }

    path = run_format("%s/%s", RUN_MODULE_DIR, name);
    if (access(path, R_OK) == 0) {
        return path;
    }
    run_fatal("%s is neither in %s/../lib/ucx nor in %s%s", name, self, RUN_MODULE_DIR,
              strcmp(name, RUN_PLUGIN) ? "" : ": name it by -l FILE");
}

/*
 * Judge the UCX that the @a command uses. More is compared when the plugin is loaded. It also
 * tells if the variable has another value, which counts as strict.
 */
static void run_check(const char *command, int verbose)
{
    const char *mode = getenv(RUN_CHECK_VAR);
    const char *user = command;
    run_ucx_t ucx;

    run_ucx_find(command, &ucx);
    if (!ucx.is_linked) {
        user = "the dynamic linker";
    }

    if (ucx.libucp == NULL) {
        run_fatal("UCX was not found: %s. If it is not installed where the dynamic linker "
                  "looks, set LD_LIBRARY_PATH", ucx.error);
    } else if (!run_ucx_has_name(&ucx)) {
        run_fatal("%s uses a UCX of its own, %s, and rc_varuna only works with one that is "
                  "called " RUN_LIBUCP, user, ucx.libucp);
    } else if ((ucx.error != NULL) && !ucx.is_linked) {
        run_fatal("cannot get the version of %s: %s", ucx.libucp, ucx.error);
    }

    if (ucx.second != NULL) {
        fprintf(stderr, "rc_varuna_run: WARN %s is linked with two UCX, %s and %s\n", user,
                ucx.libucp, ucx.second);
    }
    if (verbose) {
        fprintf(stderr, "rc_varuna_run: %s uses %s, UCX %u.%u.%u%s\n", user, ucx.libucp,
                ucx.version.number[0], ucx.version.number[1], ucx.version.number[2],
                (ucx.error == NULL) ? "" : " (unknown)");
    }

    if ((ucx.error == NULL) && ((mode == NULL) || strcasecmp(mode, "off")) &&
        memcmp(&ucx.version, &run_built_for, sizeof(run_built_for))) {
        run_fatal("rc_varuna was built for UCX %u.%u.%u, and %s uses %u.%u.%u, %s: rebuild it "
                  "for that one, or point LD_LIBRARY_PATH to the other",
                  run_built_for.number[0], run_built_for.number[1], run_built_for.number[2],
                  user, ucx.version.number[0], ucx.version.number[1], ucx.version.number[2],
                  ucx.libucp);
    }
}

static void run_set(const char *name, const char *value, int print)
{
    if (print) {
        printf("%s=%s\n", name, value);
    } else if (setenv(name, value, 1) != 0) {
        run_fatal("cannot set %s: %s", name, strerror(errno));
    }
}

/* @return What is preloaded already, and then @a preload. It takes the place of that of another
 * installation: two of them would take each other for UCX. */
static char *run_preload_list(const char *preload)
{
    const char *old = getenv("LD_PRELOAD");
    char *rest      = run_format("%s", (old == NULL) ? "" : old);
    char *list      = run_format("%s", "");
    const char *name;
    char *item, *longer;

    while ((item = strsep(&rest, " :")) != NULL) {
        name = strrchr(item, '/');
        if ((item[0] != '\0') && strcmp((name == NULL) ? item : name + 1, RUN_PRELOAD)) {
            longer = run_format("%s%s:", list, item);
            free(list);
            list = longer;
        }
    }
    return run_format("%s%s", list, preload);
}

/* Set, or print, the variables that load the @a plugin: what is preloaded opens the one next
 * to it, if none is named. */
static void run_set_variables(const char *plugin, int print)
{
    char *directory = run_format("%.*s", (int)(strrchr(plugin, '/') - plugin), plugin);
    char *preload   = run_check_file(run_find(RUN_PRELOAD, directory));
    char *beside;

    run_set("LD_PRELOAD", run_preload_list(preload), print);
    strrchr(preload, '/')[0] = '\0';
    beside                   = run_format("%s/%s", preload, RUN_PLUGIN);
    if (strcmp(plugin, beside) || (getenv(RUN_PLUGIN_VAR) != NULL)) {
        run_set(RUN_PLUGIN_VAR, plugin, print);
    }
}

static void __attribute__((noreturn)) run_exec(char **argv)
{
    int error;

    execvp(argv[0], argv);
    error = errno;
    fprintf(stderr, "rc_varuna_run: cannot run %s: %s\n", argv[0],
            strerror(error));
    exit((error == ENOENT) ? RUN_EXIT_NOENT : RUN_EXIT_NOEXEC);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"plugin",  required_argument, NULL, 'l'},
        {"print",   no_argument,       NULL, 'p'},
        {"verbose", no_argument,       NULL, 'v'},
        {"version", no_argument,       NULL, 'V'},
        {"help",    no_argument,       NULL, 'h'},
        {NULL,      0,                 NULL, 0}
    };
    char *plugin = NULL;
    int print    = 0;
    int verbose  = 0;
    int opt;

    /* '+': arguments after the command are the command's */
    while ((opt = getopt_long(argc, argv, "+l:pvVh", options, NULL)) != -1) {
        switch (opt) {
        case 'l':
            free(plugin);
            plugin = run_check_file(optarg);
            break;
        case 'p':
            print = 1;
            break;
        case 'v':
            verbose = 1;
            break;
        case 'V':
            printf("rc_varuna_run %s, for UCX %s\n", PACKAGE_VERSION, RC_VARUNA_UCX_VERSION);
            return 0;
        case 'h':
            run_usage(stdout);
            return 0;
        default:
            run_usage(stderr);
            return RUN_EXIT_SELF;
        }
    }

    if (print ? (optind != argc) : (optind == argc)) {
        fprintf(stderr, print ? "rc_varuna_run: -p takes no command\n" :
                                "rc_varuna_run: no command was given\n");
        run_usage(stderr);
        return RUN_EXIT_SELF;
    }

    if (plugin == NULL) {
        plugin = run_check_file(run_find(RUN_PLUGIN, NULL));
    }
    run_check(argv[optind], verbose);
    run_set_variables(plugin, print);
    if (print) {
        return 0;
    }
    run_exec(&argv[optind]);
}
