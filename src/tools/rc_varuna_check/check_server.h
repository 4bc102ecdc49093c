/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The server: a responder that executes the client's requests.
 */
#ifndef CHECK_SERVER_H_
#define CHECK_SERVER_H_

#include "check_def.h"

/** Serve one client. @return The status for exit(). */
int check_server(check_run_t *run);

#endif
