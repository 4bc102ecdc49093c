/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the drivers of the fault tests have in common: the processes that they run
 * on a fabric, and their options.
 */
#ifndef FT_DRIVER_H_
#define FT_DRIVER_H_

#include "ft_child.h"
#include "ft_fabric.h"

/* Of all drivers */
typedef struct {
    const char  *prefix;     /* Where mlx5emu and rc_varuna_run are installed */
    const char  *job;        /* Path of the program that is run on hosts */
    const char  *plugin;     /* File, or NULL: the installed one */
    const char  *name;       /* Of the fabric, before the number */
    ft_fabric_t fabric;
    const char  *log_name;
    FILE        *log;        /* Of all processes */
} ft_driver_t;

/** Make the fabric. */
void ft_driver_up(ft_driver_t *driver, unsigned hosts, unsigned links,
                  const char *options);

/** Run "JOB ROLE [ARG]" on a host, with rc_varuna. */
void ft_driver_start_job(ft_driver_t *driver, ft_child_t *child,
                         const char *role, unsigned host, const char *arg);

/** End everything with a message. */
void ft_driver_fatal(ft_driver_t *driver, const char *format, ...)
        __attribute__((format(printf, 2, 3), noreturn));

/* The letters which ft_driver_option() knows, for getopt() */
#define FT_DRIVER_OPTIONS "N:P:l:"

/** Take an option. @return Whether it was one of these. */
int ft_driver_option(ft_driver_t *driver, int option, const char *arg);

/** Open the log, and take PREFIX and JOB. @return 0, or -1: wrong usage. */
int ft_driver_open(ft_driver_t *driver, int argc, char **argv, int optind);

/** @return Whether @a name is in the comma-separated @a list; "all", and NULL, is a
 *  list of everything. */
int ft_is_listed(const char *list, const char *name);

/** Read "N" or "N-M". */
void ft_parse_range(const char *text, unsigned *first_p, unsigned *last_p);

#endif
