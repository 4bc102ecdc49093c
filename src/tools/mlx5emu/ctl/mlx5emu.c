/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Entry point of the mlx5emu command: finds the verb. See mlx5emu(1).
 */

#include "ctl.h"

#include <string.h>

static const ctl_verb_t *ctl_verbs[] = {
    &ctl_verb_up,    &ctl_verb_exec,  &ctl_verb_link,   &ctl_verb_nic,
    &ctl_verb_fault, &ctl_verb_quirk, &ctl_verb_trace,  &ctl_verb_status,
    &ctl_verb_down
};

#define CTL_NUM_VERBS (sizeof(ctl_verbs) / sizeof(ctl_verbs[0]))


static int ctl_help_all(FILE *stream)
{
    unsigned i;

    fprintf(stream,
            "Usage: " CTL_PROGRAM " VERB [-n NAME] [ARGUMENTS]\n\n"
            "Emulates mlx5 NICs and the fabric between them: programs of"
            " several emulated\nhosts on this machine see InfiniBand devices"
            " mlx5_0, mlx5_1, ...\n\nVerbs:\n");
    for (i = 0; i < CTL_NUM_VERBS; ++i) {
        fprintf(stream, "  %-8s %s\n", ctl_verbs[i]->name, ctl_verbs[i]->help);
    }

    fprintf(stream,
            "\n-n NAME selects one of several fabrics (\"" CTL_DEFAULT_NAME
            "\" otherwise; within exec, the\nsame fabric).  See \"" CTL_PROGRAM
            " VERB --help\" and the manual page.\n\n"
            "  " CTL_PROGRAM " up --hosts 2 --links 2\n"
            "  " CTL_PROGRAM " exec 0 -- ibv_devinfo\n"
            "  " CTL_PROGRAM " link 0:0 down\n"
            "  " CTL_PROGRAM " down\n\n"
            CTL_PROGRAM " --version prints the version.\n");
    return CTL_OK;
}

static const ctl_verb_t *ctl_find_verb(const char *name)
{
    unsigned i;

    for (i = 0; i < CTL_NUM_VERBS; ++i) {
        if (!strcmp(name, ctl_verbs[i]->name)) {
            return ctl_verbs[i];
        }
    }

    return NULL;
}

static int ctl_is_one_of(const char *arg, const char *name1, const char *name2)
{
    return !strcmp(arg, name1) || !strcmp(arg, name2);
}

int main(int argc, char **argv)
{
    const ctl_verb_t *verb;

    if (argc < 2) {
        ctl_help_all(stderr);
        return CTL_USAGE;
    }

    if (ctl_is_one_of(argv[1], "--help", "-h") ||
        (!strcmp(argv[1], "help") && (argc == 2))) {
        return ctl_help_all(stdout);
    }

    if (ctl_is_one_of(argv[1], "--version", "-V")) {
        return ctl_version();
    }

    verb = ctl_find_verb(argv[1]);
    if (verb != NULL) {
        return verb->run(argc - 1, argv + 1);
    }

    if (!strcmp(argv[1], "help")) {
        verb = ctl_find_verb(argv[2]);
        if (verb != NULL) {
            return ctl_help(verb);
        }
        ++argv;
    }

    if (argv[1][0] == '-') {
        ctl_fail("options follow the verb: \"" CTL_PROGRAM " up -n NAME\", not"
                 " \"" CTL_PROGRAM " %s\"", argv[1]);
    } else {
        ctl_fail("unknown verb \"%s\"; \"" CTL_PROGRAM " --help\" lists them",
                 argv[1]);
    }

    return CTL_USAGE;
}
