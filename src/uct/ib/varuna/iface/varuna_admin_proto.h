/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What rc_varuna_ctl shares with the processes that it connects to: where the sockets
 * are, and their protocol. One packet each way: a command line, and an answer that
 * begins with one of the words below.
 */
#ifndef UCT_VARUNA_ADMIN_PROTO_H_
#define UCT_VARUNA_ADMIN_PROTO_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* Names of sockets: PID-NUMBER.sock */
#define UCT_VARUNA_ADMIN_SUFFIX      ".sock"
#define UCT_VARUNA_ADMIN_REQUEST_MAX 256
#define UCT_VARUNA_ADMIN_BACKLOG     64
#define UCT_VARUNA_ADMIN_ANSWER_MAX  131072
#define UCT_VARUNA_ADMIN_OK          "ok\n"
#define UCT_VARUNA_ADMIN_ERROR       "error: "
#define UCT_VARUNA_ADMIN_BUSY        UCT_VARUNA_ADMIN_ERROR "the process is busy; ask again\n"
#define UCT_VARUNA_ADMIN_PATH_MAX    ((int)sizeof(((struct sockaddr_un*)0)->sun_path))

/* The option that names the directory, and what it may say instead */
#define UCT_VARUNA_ADMIN_DIR_ENV     "UCX_RC_VARUNA_CTL_DIR"
#define UCT_VARUNA_ADMIN_DIR_AUTO    "auto"
#define UCT_VARUNA_ADMIN_DIR_NONE    "none"

/* The directory of one user's sockets: @a option, or the user's own one if that is "auto".
 * @return as snprintf(). */
static inline int uct_varuna_admin_dir(const char *option, char *buffer, size_t size)
{
    const char *runtime_dir = getenv("XDG_RUNTIME_DIR");

    if (strcmp(option, UCT_VARUNA_ADMIN_DIR_AUTO)) {
        return snprintf(buffer, size, "%s", option);
    }

    return ((runtime_dir != NULL) && (runtime_dir[0] == '/')) ?
           snprintf(buffer, size, "%s/rc_varuna", runtime_dir) :
           snprintf(buffer, size, "/tmp/rc_varuna-%u", (unsigned)geteuid());
}

#endif
