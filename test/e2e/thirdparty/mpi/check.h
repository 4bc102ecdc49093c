/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the programs with checked results share.
 */
#ifndef CHECK_H_
#define CHECK_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int check_rank, check_size;
static uint64_t check_errors;

#define CHECK(_cond, _fmt, ...) \
    do { \
        if (!(_cond)) { \
            if (check_errors++ < 10) { \
                fprintf(stderr, "rank %d: " _fmt "\n", check_rank, \
                        ##__VA_ARGS__); \
            } \
        } \
    } while (0)

/* Whether the script still waits for an event: it makes this file then */
static int check_is_awaited(void)
{
    const char *path = getenv("CHECK_UNTIL");

    return (path != NULL) && (access(path, F_OK) != 0);
}

#endif
