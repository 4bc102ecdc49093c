/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * rc_varuna_audit: certifies recorded recoveries.
 */
#include "audit_run.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define AUDIT_PROGRAM "rc_varuna_audit"

enum {
    AUDIT_EXIT_CERTIFIED = 0,
    AUDIT_EXIT_WRONG     = 1,
    AUDIT_EXIT_USAGE     = 2,
    AUDIT_EXIT_NOTHING   = 3
};

static void audit_usage(FILE *out)
{
    fprintf(out, "Certifies the recoveries that UCX_RC_VARUNA_AUDIT=DIR has recorded, or "
            "reports the wrong ones.\n\n"
            "Usage: " AUDIT_PROGRAM " [OPTIONS] DIR|FILE...\n\n"
            "  -v, --verbose  print all records, not only wrong ones\n"
            "  -V, --version  show the version\n"
            "  -h, --help     show this help\n\n"
            "Exit status: 0 if all are certified, 1 if one is wrong or cannot be read, 2 "
            "for a wrong\ncommand line, 3 if no recovery was recorded.\n");
}

static int audit_report(const audit_totals_t *totals)
{
    printf("%u files, %u recoveries with %lu verdicts, %u comparisons: ", totals->files,
           totals->recoveries, totals->verdicts, totals->comparisons);
    if (totals->open > 0) {
        printf("%u ambiguous operations never compared, ", totals->open);
    }
    if (totals->unreadable > 0) {
        printf("%u files cannot be read, ", totals->unreadable);
    }
    if (totals->wrong > 0) {
        printf("%u wrong\n", totals->wrong);
    } else {
        printf("%s\n", (totals->recoveries > 0) ? "all certified" : "nothing to certify");
    }

    return ((totals->wrong > 0) || (totals->unreadable > 0)) ? AUDIT_EXIT_WRONG :
           (totals->recoveries > 0) ? AUDIT_EXIT_CERTIFIED : AUDIT_EXIT_NOTHING;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"verbose", no_argument, NULL, 'v'},
        {"version", no_argument, NULL, 'V'},
        {"help",    no_argument, NULL, 'h'},
        {NULL,      0,           NULL, 0}
    };
    audit_totals_t totals = {};
    int verbose           = 0;
    struct stat st;
    int c, i;

    while ((c = getopt_long(argc, argv, "vVh", options, NULL)) != -1) {
        switch (c) {
        case 'v':
            verbose = 1;
            break;
        case 'V':
            printf(AUDIT_PROGRAM " " PACKAGE_VERSION "\n");
            return 0;
        case 'h':
            audit_usage(stdout);
            return 0;
        default:
            audit_usage(stderr);
            return AUDIT_EXIT_USAGE;
        }
    }

    if (optind == argc) {
        fprintf(stderr, AUDIT_PROGRAM ": expected the directory of audit files, or files\n");
        audit_usage(stderr);
        return AUDIT_EXIT_USAGE;
    }

    for (i = optind; i < argc; ++i) {
        if ((stat(argv[i], &st) != 0) ||
            (S_ISDIR(st.st_mode) && !audit_run_dir(argv[i], verbose, &totals))) {
            fprintf(stderr, AUDIT_PROGRAM ": %s: %s\n", argv[i], strerror(errno));
            return AUDIT_EXIT_USAGE;
        } else if (!S_ISDIR(st.st_mode)) {
            audit_run_file(argv[i], verbose, &totals);
        }
    }

    return audit_report(&totals);
}
