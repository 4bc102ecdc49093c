/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Results: a table for people, or JSON.
 */
#include "check_def.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *check_status_names[] = {
    [CHECK_OK]       = "ok",
    [CHECK_NOTE]     = "note",
    [CHECK_WARN]     = "warning",
    [CHECK_UNTESTED] = "untested",
    [CHECK_FAIL]     = "FAILED"
};


void check_row(check_run_t *run, const char *name, check_status_t status,
               const char *where, const char *fmt, ...)
{
    check_wire_row_t *row;
    va_list ap;

    if (run->num_rows == CHECK_MAX_ROWS) {
        run->rows[CHECK_MAX_ROWS - 1].status = CHECK_FAIL; /* Do not lose a failure */
        return;
    }

    row = &run->rows[run->num_rows++];
    memset(row, 0, sizeof(*row));
    row->status = status;
    snprintf(row->name, sizeof(row->name), "%s", name);
    snprintf(row->where, sizeof(row->where), "%s", where);
    va_start(ap, fmt);
    vsnprintf(row->text, sizeof(row->text), fmt, ap);
    va_end(ap);
}

/* Names of devices and texts of the other host may contain any bytes.
 * @return the number of characters */
static int check_report_text(const char *text)
{
    const char *start = text;

    for (; *text != '\0'; ++text) {
        putchar(((*text < ' ') || (*text > '~')) ? '?' : *text);
    }

    return text - start;
}

static void check_report_json_text(const char *text)
{
    for (; *text != '\0'; ++text) {
        if ((*text == '"') || (*text == '\\')) {
            putchar('\\');
        }
        putchar(((*text < ' ') || (*text > '~')) ? '?' : *text);
    }
}

static int check_report_exit(const check_run_t *run)
{
    int status = CHECK_EXIT_OK;
    unsigned i;

    for (i = 0; i < run->num_rows; ++i) {
        if (run->rows[i].status == CHECK_FAIL) {
            return CHECK_EXIT_FAIL;
        } else if (run->rows[i].status == CHECK_UNTESTED) {
            status = CHECK_EXIT_UNTESTED;
        }
    }

    if (run->lost) {
        return CHECK_EXIT_FAIL;
    }

    return (run->opts.only != NULL) ? CHECK_EXIT_UNTESTED : status;
}

static void check_report_json(const check_run_t *run, int status)
{
    const check_entry_t *entry;
    const check_wire_row_t *row;
    unsigned i;

    printf("{\"version\": \"%s\", \"trusted\": %s, \"results\": [", PACKAGE_VERSION,
           (status == CHECK_EXIT_OK) ? "true" : "false");
    for (i = 0; i < run->num_rows; ++i) {
        row   = &run->rows[i];
        entry = check_find(row->name);
        printf("%s\n {\"check\": \"%s\", \"status\": \"%s\", \"host\": \"%s\", "
               "\"where\": \"", (i == 0) ? "" : ",", row->name,
               (row->status == CHECK_FAIL) ? "failed" :
                                             check_status_names[row->status],
               row->is_remote ? "server" : "client");
        check_report_json_text(row->where);
        printf("\", \"result\": \"");
        check_report_json_text(row->text);
        if ((row->status >= CHECK_WARN) && (entry != NULL)) {
            printf("\", \"means\": \"");
            check_report_json_text(entry->means);
            printf("\", \"advice\": \"");
            check_report_json_text(entry->advice);
        }
        printf("\"}");
    }
    printf("\n]}\n");
}

/* Print the explanation of each check once, below its results */
static void check_report_explain(const check_run_t *run)
{
    const check_entry_t *entry;
    unsigned i;

    for (entry = check_table; entry->name != NULL; ++entry) {
        for (i = 0; i < run->num_rows; ++i) {
            if ((run->rows[i].status >= CHECK_WARN) &&
                !strcmp(run->rows[i].name, entry->name)) {
                printf("\n%s: %s\n  %s\n", entry->name, entry->means,
                       entry->advice);
                break;
            }
        }
    }
}

int check_report(const check_run_t *run)
{
    int status = check_report_exit(run);
    const check_wire_row_t *row;
    unsigned i;
    int width;

    if (run->opts.is_json) {
        check_report_json(run, status);
        return status;
    }

    printf("%-16s %-8s %-6s %-26s %s\n", "CHECK", "STATUS", "HOST", "WHERE",
           "RESULT");
    for (i = 0; i < run->num_rows; ++i) {
        row = &run->rows[i];
        printf("%-16s %-8s %-6s ", row->name, check_status_names[row->status],
               row->is_remote ? "server" : "client");
        for (width = check_report_text(row->where); width < 27; ++width) {
            putchar(' ');
        }
        check_report_text(row->text);
        putchar('\n');
    }

    check_report_explain(run);
    printf("\n%s\n", (status == CHECK_EXIT_OK) ? "rc_varuna can be trusted here." :
           (status == CHECK_EXIT_FAIL) ? "rc_varuna CANNOT be trusted here." :
           "No check failed, but some could not run.");
    return status;
}
