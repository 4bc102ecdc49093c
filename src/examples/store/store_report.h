/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What became of a store, from the files of its processes.
 */
#ifndef STORE_REPORT_H
#define STORE_REPORT_H


/**
 * Compare the memory of all replicas with what clients have committed. Prints a line "broken
 * INVARIANT COUNT" for each invariant.
 *
 * @return 0 if no invariant is broken, 3 if one is, 1 if a file is missing.
 */
int store_report_check(const char *dir);

/** Print a line "commit CLIENT END DURATION" for each transaction. @return 0 or 1. */
int store_report_history(const char *dir);

/** Print a line "NAME OFFSET" for something of each kind in a replica's memory. */
void store_report_layout(void);

#endif
