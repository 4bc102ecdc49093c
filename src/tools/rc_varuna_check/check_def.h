/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Common definitions: results, the context of a run, and the table of checks.
 */
#ifndef CHECK_DEF_H_
#define CHECK_DEF_H_

#include "check_nic.h"
#include "check_proto.h"

#define CHECK_PROGRAM  "rc_varuna_check"
#define CHECK_MAX_ROWS 512


/** Result of a check. */
typedef enum check_status {
    CHECK_OK,
    CHECK_NOTE,     /**< Information without an effect on the result */
    CHECK_WARN,     /**< rc_varuna works, with the drawback in the text */
    CHECK_UNTESTED, /**< Unknown, so rc_varuna cannot be trusted */
    CHECK_FAIL
} check_status_t;

/** Exit status. */
enum {
    CHECK_EXIT_OK,
    CHECK_EXIT_FAIL,
    CHECK_EXIT_USAGE,
    CHECK_EXIT_UNTESTED
};

/** Command line. */
typedef struct check_opts {
    const char *host;     /**< NULL: this is the server */
    const char *bind;     /**< Address that the server listens on, NULL: all */
    const char *tcp_port;
    const char *devices;  /**< Comma separated, in the order of links; NULL: all */
    const char *only;     /**< Comma separated names of checks; NULL: all */
    const char *cut;
    const char *restore;
    const char *kill;
    int        link;      /**< For these commands; -1: the last one */
    int        is_quick;
    int        is_json;
} check_opts_t;

typedef struct check_run {
    check_opts_t     opts;
    check_nics_t     nics;
    int              fd;    /**< Connection to the other host */
    check_hello_t    peer;  /**< Its ports */
    unsigned         links; /**< Ports of both hosts */
    check_wire_row_t rows[CHECK_MAX_ROWS];
    unsigned         num_rows;
    int              lost;  /**< The other host has closed the connection */
} check_run_t;

/** A check: a row of the table. */
typedef struct check_entry {
    const char *name;
    int        is_local;  /**< Each host runs it alone */
    void       (*run)(check_run_t *run);
    const char *means;    /**< What a failure means */
    const char *advice;   /**< What to change */
} check_entry_t;


/** The table, which ends with an entry without a name. */
extern const check_entry_t check_table[];

/** @return The entry of a name, or NULL. */
const check_entry_t *check_find(const char *name);

/** @return The first name in a list that is no check to be selected, or NULL. */
const char *check_only_unknown(const char *list);

/** Print that there is no such check, and which ones there are. */
void check_only_complain(const char *unknown);

/** Run all local checks, or all others. */
void check_run_all(check_run_t *run, int is_local);

/** Add a result. @a where names a port or a pair of ports. */
void check_row(check_run_t *run, const char *name, check_status_t status,
               const char *where, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/** Print all results. @return The status for exit(). */
int check_report(const check_run_t *run);

/** Convert the address of the other host's port. */
const check_wire_port_t *check_peer_port(const check_run_t *run, unsigned port);

/* Checks, by file */
void check_inventory(check_run_t *run);
void check_order_mask(check_run_t *run);
void check_limits(check_run_t *run);
void check_dmabuf(check_run_t *run);
void check_flush(check_run_t *run);
void check_last_wqe(check_run_t *run);
void check_arm(check_run_t *run);
void check_commands(check_run_t *run);
void check_links(check_run_t *run);
void check_mtu(check_run_t *run);
void check_pkey(check_run_t *run);
void check_subnets(check_run_t *run);
void check_ucx_build(check_run_t *run);
void check_gids(check_run_t *run);
void check_psn(check_run_t *run);
void check_order(check_run_t *run);
void check_fence(check_run_t *run);
void check_fused(check_run_t *run);
void check_cut(check_run_t *run);
void check_kill(check_run_t *run);

#endif
