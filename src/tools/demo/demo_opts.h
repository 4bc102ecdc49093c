/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The command line of the demo.
 */
#ifndef DEMO_OPTS_H
#define DEMO_OPTS_H

#include "demo_def.h"

#include <ucp/api/ucp.h>


typedef struct {
    int                     is_server;
    const char              *host;        /* Client: where the server is */
    const char              *port;        /* "0" for any free one */
    const char              *port_file;   /* Server: writes its port here */
    const char              *ledger_file; /* Client: every put that it posted */
    const char              *summary_file;
    unsigned                num_workers;
    double                  seconds;      /* Duration of the load */
    double                  give_up;      /* Limit without a completion */
    uint64_t                max_ops;      /* 0 for no limit */
    uint64_t                rate;         /* Operations per second, 0: any */
    uint64_t                seed;
    int                     wakeup;       /* Sleep on UCP's event descriptor */
    ucp_err_handling_mode_t err_mode;
} demo_opts_t;


/**
 * Parse the command line.
 *
 * @param [out] opts_p  The options, on success only.
 *
 * @return 0 to continue, 1 if the help was printed, -1 after an error message.
 */
int demo_opts_parse(int argc, char **argv, demo_opts_t *opts_p);

#endif
