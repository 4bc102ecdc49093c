/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Certifies whole files.
 */
#ifndef AUDIT_RUN_H_
#define AUDIT_RUN_H_

/* What was found in all files. */
typedef struct audit_totals {
    unsigned       files;
    unsigned       unreadable;
    unsigned       recoveries;
    unsigned       comparisons;
    unsigned long  verdicts;
    unsigned       wrong;
    unsigned       open;       /* Ambiguous operations that were never compared */
} audit_totals_t;

/**
 * Certify a file, and print what is wrong.
 *
 * @param [in]     path     File.
 * @param [in]     verbose  Print all records.
 * @param [in,out] totals   Counts.
 */
void audit_run_file(const char *path, int verbose, audit_totals_t *totals);

/** The same for all files NAME.audit of a directory. @return 0 if it cannot be read. */
int audit_run_dir(const char *path, int verbose, audit_totals_t *totals);

#endif
