/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * rc_varuna_run: runs a program so that its UCX finds the rc_varuna transport.
 *
 * UCX 1.22 and later look for transports in the directories of UCX_PLUGIN_PATH. An
 * older UCX has only the transports that it was built with; there the plugin is
 * preloaded and registers itself. The dynamic linker determines which UCX the program
 * loads, in the environment of the program.
 */

#ifdef HAVE_CONFIG_H
#  include "rc_varuna_build.h"
#endif

#include <dlfcn.h>
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
#define RUN_LIBUCP       "libucp.so.0"
#define RUN_CHECK_VAR    "UCX_RC_VARUNA_UCX_CHECK"

/* As in env(1) and chroot(1) */
#define RUN_EXIT_SELF    125
#define RUN_EXIT_NOEXEC  126
#define RUN_EXIT_NOENT   127


typedef struct {
    unsigned major;
    unsigned minor;
    unsigned patch;
} run_version_t;

/* The environment variable that loads the plugin into a program */
typedef struct {
    const char *name;
    char       *value;
} run_variable_t;

typedef void (*run_get_version_func_t)(unsigned *major, unsigned *minor,
                                       unsigned *patch);

static const run_version_t run_built_for = {
    .major = RC_VARUNA_UCX_MAJOR,
    .minor = RC_VARUNA_UCX_MINOR,
    .patch = RC_VARUNA_UCX_PATCH
};

/* Location of the plugin relative to this program: in an installation and in a build
 * tree */
static const char *run_plugin_dirs[] = {
    "../lib/ucx",
    "../../uct/ib/varuna/.libs"
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
            " environment variable\n"
            "                      that does it\n"
            "  -V, --version       print versions\n"
            "  -h, --help          print this help\n");
}

static void __attribute__((noreturn, format(printf, 1, 2)))
run_fatal(const char *format, ...)
{
    va_list ap;

    fprintf(stderr, "rc_varuna_run: ");
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(RUN_EXIT_SELF);
}

static char *__attribute__((format(printf, 1, 2)))
run_format(const char *format, ...)
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

/* Absolute path of the plugin file @a path; exits when it cannot be used. */
static char *run_plugin_check(const char *path)
{
    const char *name = strrchr(path, '/');
    char *directory;
    char *absolute;
    struct stat st;
    char *result;

    if (access(path, R_OK) != 0) {
        run_fatal("the plugin %s cannot be read: %s", path, strerror(errno));
    }
    if ((stat(path, &st) != 0) || !S_ISREG(st.st_mode)) {
        run_fatal("the plugin %s is not a file", path);
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

    if (strpbrk(result, " :,") != NULL) {
        run_fatal("the path of the plugin, \"%s\", has a space, a colon or a "
                  "comma in it, which neither LD_PRELOAD nor UCX_PLUGIN_PATH "
                  "can express", result);
    }
    return result;
}

/* The plugin of the same installation. */
static char *run_plugin_find(void)
{
    char self[PATH_MAX];
    ssize_t length;
    char *path;
    size_t i;

    length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length < 0) {
        run_fatal("cannot read /proc/self/exe: %s", strerror(errno));
    }
    self[length]        = '\0';
    *strrchr(self, '/') = '\0';

    for (i = 0; i < sizeof(run_plugin_dirs) / sizeof(run_plugin_dirs[0]);
         ++i) {
        path = run_format("%s/%s/%s", self, run_plugin_dirs[i], RUN_PLUGIN);
        if (access(path, R_OK) == 0) {
            return path;
        }
        free(path);
    }

    path = run_format("%s/%s", RUN_MODULE_DIR, RUN_PLUGIN);
    if (access(path, R_OK) == 0) {
        return path;
    }
    run_fatal("%s is neither in %s/../lib/ucx nor in %s: name it by -l FILE",
              RUN_PLUGIN, self, RUN_MODULE_DIR);
}

/* Version of the UCX that the program will load. */
static run_version_t run_ucx_version(void)
{
    run_get_version_func_t get_version;
    run_version_t version;
    void *libucp;

    libucp = dlopen(RUN_LIBUCP, RTLD_LAZY | RTLD_LOCAL);
    if (libucp == NULL) {
        run_fatal("UCX was not found: %s. If it is not installed where the "
                  "dynamic linker looks, set LD_LIBRARY_PATH", dlerror());
    }
    get_version = (run_get_version_func_t)dlsym(libucp, "ucp_get_version");
    if (get_version == NULL) {
        run_fatal("cannot get the version of %s: %s", RUN_LIBUCP, dlerror());
    }
    get_version(&version.major, &version.minor, &version.patch);
    return version;
}

/* The plugin compares more when it is loaded. It also tells if the variable has another
 * value, which counts as strict. */
static void run_version_check(const run_version_t *version)
{
    const char *mode = getenv(RUN_CHECK_VAR);

    if ((memcmp(version, &run_built_for, sizeof(*version)) == 0) ||
        ((mode != NULL) && (strcasecmp(mode, "off") == 0))) {
        return;
    }
    run_fatal("rc_varuna was built for UCX %u.%u.%u, and the UCX that the "
              "dynamic linker finds is %u.%u.%u: rebuild it for that one, or "
              "point LD_LIBRARY_PATH to the other",
              run_built_for.major, run_built_for.minor, run_built_for.patch,
              version->major, version->minor, version->patch);
}

/* @return The value of the variable @a name with @a item appended. */
static char *run_append(const char *name, char separator, const char *item)
{
    const char *old = getenv(name);

    if ((old == NULL) || (old[0] == '\0')) {
        return run_format("%s", item);
    }
    return run_format("%s%c%s", old, separator, item);
}

/* Choose the variable that makes a UCX of this @a version load the @a plugin. */
static run_variable_t
run_variable_make(const run_version_t *version, const char *plugin)
{
    int has_path = (version->major > 1) ||
                   ((version->major == 1) && (version->minor >= 22));
    run_variable_t variable;
    char *directory;

    if (has_path) {
        directory                = run_format("%s", plugin);
        *strrchr(directory, '/') = '\0';
        variable.name            = "UCX_PLUGIN_PATH";
        variable.value           = run_append(variable.name, ',', directory);
        free(directory);
    } else {
        variable.name  = "LD_PRELOAD";
        variable.value = run_append(variable.name, ':', plugin);
    }
    return variable;
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
        {"version", no_argument,       NULL, 'V'},
        {"help",    no_argument,       NULL, 'h'},
        {NULL,      0,                 NULL, 0}
    };
    char *plugin = NULL;
    int print    = 0;
    run_variable_t variable;
    run_version_t version;
    int opt;

    /* '+': arguments after the command are the command's */
    while ((opt = getopt_long(argc, argv, "+l:pVh", options, NULL)) != -1) {
        switch (opt) {
        case 'l':
            free(plugin);
            plugin = run_plugin_check(optarg);
            break;
        case 'p':
            print = 1;
            break;
        case 'V':
            printf("rc_varuna_run %s, for UCX %u.%u.%u\n", PACKAGE_VERSION,
                   run_built_for.major, run_built_for.minor,
                   run_built_for.patch);
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
        plugin = run_plugin_check(run_plugin_find());
    }
    version = run_ucx_version();
    run_version_check(&version);
    variable = run_variable_make(&version, plugin);

    if (print) {
        printf("%s=%s\n", variable.name, variable.value);
        return 0;
    }
    if (setenv(variable.name, variable.value, 1) != 0) {
        run_fatal("cannot set %s: %s", variable.name, strerror(errno));
    }
    run_exec(&argv[optind]);
}
