/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Reads files, and remembers which operations of each endpoint are ambiguous until
 * they are compared.
 */
#include "audit_run.h"
#include "audit_certify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Operations of an endpoint that a recovery left ambiguous. */
typedef struct audit_open {
    uint32_t          vqp;
    unsigned          num_reqs;
    uint64_t          *reqs;
} audit_open_t;

typedef struct audit_file {
    const char        *path;
    unsigned          record;     /* Its number, from 1 */
    audit_open_t      *open;
    unsigned          num_open;
    int               verbose;
    audit_totals_t    *totals;
} audit_file_t;

static void *audit_realloc(void *ptr, size_t size)
{
    ptr = realloc(ptr, size);
    if (ptr == NULL) {
        fprintf(stderr, "rc_varuna_audit: there is no memory\n");
        exit(2);
    }

    return ptr;
}

static audit_open_t *audit_open_of(audit_file_t *file, uint32_t vqp)
{
    unsigned i;

    for (i = 0; i < file->num_open; ++i) {
        if (file->open[i].vqp == vqp) {
            return &file->open[i];
        }
    }

    file->open    = audit_realloc(file->open, (i + 1) * sizeof(*file->open));
    file->open[i] = (audit_open_t){.vqp = vqp};
    ++file->num_open;
    return &file->open[i];
}

static int audit_has_op(const uct_varuna_audit_view_t *view, uint64_t req)
{
    unsigned i = 0;

    while ((i < view->verdict->num_ops) && (view->ops[i].req != req)) {
        ++i;
    }

    return i < view->verdict->num_ops;
}

static void audit_remember(audit_file_t *file, const uct_varuna_audit_view_t *view)
{
    audit_open_t *open = audit_open_of(file, view->head.vqp);
    unsigned i;

    /* A recovery may interrupt the comparison, which begins again then */
    for (i = 0; i < open->num_reqs; ++i) {
        file->totals->open += !audit_has_op(view, open->reqs[i]);
    }

    open->num_reqs = 0;
    open->reqs     = audit_realloc(open->reqs, (view->verdict->num_ops + 1) *
                                               sizeof(*open->reqs));
    for (i = 0; i < view->verdict->num_ops; ++i) {
        if (view->ops[i].action == UCT_VARUNA_AUDIT_COMPARED) {
            open->reqs[open->num_reqs++] = view->ops[i].req;
        }
    }
}

static void audit_print(const audit_file_t *file, const uct_varuna_audit_view_t *view,
                        const char *what, const char *why)
{
    time_t seconds = view->head.time / 1000000000;
    char when[32]  = "";
    struct tm tm;

    if (localtime_r(&seconds, &tm) != NULL) {
        strftime(when, sizeof(when), "%F %T", &tm);
    }

    printf("%s: record %u, %s.%03u: %s of endpoint %u, lane %u: %s\n", file->path,
           file->record, when, (unsigned)((view->head.time / 1000000) % 1000), what,
           view->head.vqp, view->head.epoch, why);
}

static void audit_run_record(audit_file_t *file, const uct_varuna_audit_view_t *view)
{
    const char *what = "comparison";
    char why[AUDIT_WHY_MAX];
    audit_open_t *open;
    int is_certified;

    if (view->verdict != NULL) {
        what                    = "recovery";
        is_certified            = audit_certify_verdict(view, why);
        file->totals->verdicts += view->verdict->num_ops;
        ++file->totals->recoveries;
        audit_remember(file, view);
    } else if (view->compare != NULL) {
        open         = audit_open_of(file, view->head.vqp);
        is_certified = audit_certify_compare(view, open->reqs, open->num_reqs, why);
        ++file->totals->comparisons;
        open->num_reqs = 0;
    } else {
        return; /* Of a newer version */
    }

    if (!is_certified) {
        ++file->totals->wrong;
        audit_print(file, view, what, why);
    } else if (file->verbose) {
        audit_print(file, view, what, "certified");
    }
}

static void audit_run_data(audit_file_t *file, const char *data, size_t length)
{
    size_t pos = sizeof(uct_varuna_audit_file_t);
    const char *reason;
    uct_varuna_audit_view_t view;
    size_t record;

    reason = uct_varuna_audit_check_file(data, length);
    while ((reason == NULL) && (pos < length)) {
        ++file->record;
        record = uct_varuna_audit_read(data + pos, length - pos, &view, &reason);
        if (record > 0) {
            audit_run_record(file, &view);
            pos += record;
        }
    }

    if (reason != NULL) {
        printf("%s: %s\n", file->path, reason);
        ++file->totals->unreadable;
    }
}

void audit_run_file(const char *path, int verbose, audit_totals_t *totals)
{
    audit_file_t file = {.path = path, .verbose = verbose, .totals = totals};
    void *data        = NULL;
    struct stat st;
    unsigned i;
    int fd;

    ++totals->files;
    fd = open(path, O_RDONLY);
    if ((fd < 0) || (fstat(fd, &st) != 0) ||
        ((st.st_size > 0) &&
         ((data = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) ==
          MAP_FAILED))) {
        printf("%s: %s\n", path, strerror(errno));
        ++totals->unreadable;
        data = NULL;
    } else {
        audit_run_data(&file, data, st.st_size);
    }

    for (i = 0; i < file.num_open; ++i) {
        totals->open += file.open[i].num_reqs;
        free(file.open[i].reqs);
    }
    free(file.open);
    if (data != NULL) {
        munmap(data, st.st_size);
    }
    if (fd >= 0) {
        close(fd);
    }
}

static int audit_is_audit_file(const struct dirent *entry)
{
    const char *suffix = strrchr(entry->d_name, '.');

    return (suffix != NULL) && !strcmp(suffix, ".audit");
}

int audit_run_dir(const char *path, int verbose, audit_totals_t *totals)
{
    struct dirent **entries;
    int i, count;
    char *name;

    count = scandir(path, &entries, audit_is_audit_file, alphasort);
    if (count < 0) {
        return 0;
    }

    for (i = 0; i < count; ++i) {
        if (asprintf(&name, "%s/%s", path, entries[i]->d_name) > 0) {
            audit_run_file(name, verbose, totals);
            free(name);
        }
        free(entries[i]);
    }

    free(entries);
    return 1;
}
