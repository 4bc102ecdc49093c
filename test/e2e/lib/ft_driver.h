/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Common code of the drivers of fault tests: the processes that they run on a fabric,
 * and their options.
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
    double      answer_time; /* Seconds within which a process answers */
    char        label[128];  /* The current run, for messages; may be empty */
    FILE        *log;        /* Of all processes */
    unsigned    failures;    /* That were reported */
} ft_driver_t;

/** Make the fabric. */
void ft_driver_up(ft_driver_t *driver, unsigned hosts, unsigned links,
                  const char *options);

/** Run "JOB ROLE [ARG]" on a host, with rc_varuna. */
void ft_driver_start_job(ft_driver_t *driver, ft_child_t *child,
                         const char *role, unsigned host, const char *arg);

/** Wait until a server has started.
 *  @param [out] base_p   Its memory.
 *  @param [out] address  FT_ANSWER_MAX bytes, for ft_driver_connect(). */
void ft_driver_await_server(ft_driver_t *driver, ft_child_t *child, uint64_t *base_p,
                            char *address);

/** Wait until a client has started. */
void ft_driver_await_client(ft_driver_t *driver, ft_child_t *child);

/** Wait until a client has started, and connect it to a server. */
void ft_driver_connect(ft_driver_t *driver, ft_child_t *child, const char *address);

/** Wait for an answer, which must be "ok". @return The text after "ok". */
const char *ft_driver_answer(ft_driver_t *driver, ft_child_t *child);

/** Send a command and wait for its answer, as above. */
const char *ft_driver_ask(ft_driver_t *driver, ft_child_t *child,
                          const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/** Stop a process, which must exit with status 0. */
void ft_driver_stop_job(ft_driver_t *driver, ft_child_t *child);

/** Report a failure of the test, and continue. */
void ft_driver_report(ft_driver_t *driver, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/** Print a message and end the driver. */
void ft_driver_fatal(ft_driver_t *driver, const char *format, ...)
        __attribute__((format(printf, 2, 3), noreturn));

/* Usage of the options of all drivers, with a driver's defaults */
#define FT_DRIVER_USAGE(_job, _name, _log) \
    "  PREFIX       where mlx5emu and rc_varuna_run are installed\n" \
    "  JOB          path of " _job "\n" \
    "  -N NAME      first part of the fabric's name (" _name ")\n" \
    "  -P FILE      this plugin instead of the installed one\n" \
    "  -l FILE      log of all processes (" _log ")\n"

/* What the argument of an option is stored as */
typedef enum {
    FT_OPTION_TEXT,
    FT_OPTION_UNSIGNED,
    FT_OPTION_U64,
    FT_OPTION_DOUBLE,
    FT_OPTION_FLAG,      /* No argument: 1 */
    FT_OPTION_RANGE,     /* Two numbers: "N" or "N-M" */
    FT_OPTION_ONLY       /* A list that ends with 0 */
} ft_option_type_t;

typedef struct {
    char             letter;
    ft_option_type_t type;
    void             *value;
} ft_option_t;

/** Parse the arguments of a driver, and open its log. @a options are its own ones, and
 *  end with a letter 0. @a num_words: in front of PREFIX and JOB, from argv[optind] on.
 *  @return 0, or -1: wrong usage. */
int ft_driver_parse(ft_driver_t *driver, int argc, char **argv, const ft_option_t *options,
                    int num_words);

/** Close the log. @return The exit status. */
int ft_driver_close(ft_driver_t *driver);

/** @return Whether @a name is in the comma-separated @a list. "all" and NULL list
 *  everything. */
int ft_is_listed(const char *list, const char *name);

#endif
