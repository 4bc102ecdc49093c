/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * How a test program ends after a failure that no injected fault can cause.
 */
#ifndef FT_DIE_H_
#define FT_DIE_H_

#include <ucs/type/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static inline void ft_die(const char *format, ...)
        __attribute__((format(printf, 1, 2), noreturn));

/** End the program with a message. Other threads may be running. */
static inline void ft_die(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    printf("ft: die ");
    vprintf(format, ap);
    printf("\n");
    va_end(ap);
    fflush(stdout);
    _exit(1);
}

static inline void ft_check_status(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        ft_die("%s: %s", what, ucs_status_string(status));
    }
}

#endif
