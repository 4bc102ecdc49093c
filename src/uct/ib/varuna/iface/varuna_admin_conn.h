/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The socket of rc_varuna_ctl, and its connections.
 */
#ifndef UCT_VARUNA_ADMIN_CONN_H_
#define UCT_VARUNA_ADMIN_CONN_H_

#include <ucs/sys/event_set.h>

/* Connections at a time. A further one closes the oldest */
#define UCT_VARUNA_ADMIN_MAX_CONNS   16

/* Seconds until a connection without a request is closed */
#define UCT_VARUNA_ADMIN_IDLE_TIME   5.0

/* Seconds between two looks at the connections, while there are any */
#define UCT_VARUNA_ADMIN_CONN_TICK   1.0

/** Handler of the listening socket: accept a connection. Async thread. */
void uct_varuna_admin_conn_accept(int fd, ucs_event_set_types_t events,
                                  void *arg);

/** Close all connections. The handler of the listening socket is removed already, and
 *  the socket still open. Main thread. */
void uct_varuna_admin_conns_cleanup(void);

/** In a new child: the connections are the parent's. */
void uct_varuna_admin_conns_forked(void);

#endif
