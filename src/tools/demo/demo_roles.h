/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The two sides of the demo.
 */
#ifndef DEMO_ROLES_H
#define DEMO_ROLES_H

#include "demo_opts.h"


/** Serve one client. @return Exit status. */
int demo_server_run(const demo_opts_t *opts);

/** Connect to a server, run the load. @return Exit status. */
int demo_client_run(const demo_opts_t *opts);

#endif
