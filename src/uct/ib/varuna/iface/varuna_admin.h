/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Commands from outside about links (rc_varuna.h): one record for the process, with a
 * version that every interface compares with the one that it has obeyed. Also the
 * socket for rc_varuna_ctl.
 */
#ifndef UCT_VARUNA_ADMIN_H_
#define UCT_VARUNA_ADMIN_H_

#include <uct/ib/varuna/core/varuna_link.h>

#include <ucs/datastruct/list.h>
#include <ucs/datastruct/string_buffer.h>
#include <ucs/sys/event_set.h>

/* --- Connections of rc_varuna_ctl --- */

/* varuna_admin_conn.c. */

/* Connections at a time. A further one closes the oldest */
#define UCT_VARUNA_ADMIN_MAX_CONNS   16

/* Seconds until a connection without a request is closed */
#define UCT_VARUNA_ADMIN_IDLE_TIME   5.0

/* Seconds between two looks at the connections, while there are any */
#define UCT_VARUNA_ADMIN_CONN_TICK   1.0

/* --- Commands --- */

/* What a link is used by still, whose NIC is to be closed */
typedef enum {
    UCT_VARUNA_ADMIN_WAIT_ENDPOINTS,       /* Of ours; they leave if their peer has another link */
    UCT_VARUNA_ADMIN_WAIT_TARGETS,         /* Endpoints of peers */
    UCT_VARUNA_ADMIN_WAIT_BUFFERS,         /* Received messages that the application keeps */
    UCT_VARUNA_ADMIN_WAIT_CONNECTIONS,     /* Queue pairs without an endpoint, control messages */
    UCT_VARUNA_ADMIN_WAIT_LAST
} uct_varuna_admin_wait_t;

/* An interface's part. */
typedef struct uct_varuna_admin {
    ucs_list_link_t            list;       /* All of the process */
    unsigned                   version;    /* Seen; main thread */
    unsigned                   revokes;    /* Seen */
    unsigned                   forced;     /* Obeyed since the last of them */
    unsigned                   failed;     /* Bit map of links that are marked so */
    unsigned                   removed;    /* ... whose NIC is to be removed */
    unsigned                   num_links;
    const char                 *names[UCT_VARUNA_MAX_LINKS];
    uint32_t                   links[UCT_VARUNA_MAX_LINKS]; /* Published states;
                                                               atomic */
    uint32_t                   waits[UCT_VARUNA_MAX_LINKS][UCT_VARUNA_ADMIN_WAIT_LAST];
                                           /* Published; atomic */
    const uint64_t             *fences[UCT_VARUNA_MAX_LINKS]; /* How many there were, by
                                                               uct_varuna_fenced_t */
    void                       (*wake)(void *arg); /* Called by any thread */
    const char *               (*nic_state)(void *arg, unsigned link); /* For people; NULL:
                                                               unknown. Called by any
                                                               thread */
    int                        (*can_remove)(void *arg, unsigned link); /* Whether the process can
                                                               do without the NIC's device, and
                                                               open it again; NULL: it can */
    int                        (*list_peers)(void *arg, const char *prefix,
                                             ucs_string_buffer_t *text); /* A line each, with
                                                               that before it; NULL: none.
                                                               Called by any thread. Waits
                                                               for no lock: returns 0 if it
                                                               would have to */
    void                       (*quiesce)(void *arg); /* At exit() */
    void                       *arg;
} uct_varuna_admin_t;

/** Take part. Names, their number, wake, list_peers, quiesce and arg are filled in. */
void uct_varuna_admin_register(uct_varuna_admin_t *admin);

void uct_varuna_admin_unregister(uct_varuna_admin_t *admin);

/** Show what a link is used by still. Main thread. */
void uct_varuna_admin_show_waits(uct_varuna_admin_t *admin, unsigned link,
                                 const uint32_t *waits);

/** In a new child: forget the parent's interfaces and its marks. */
void uct_varuna_admin_forked(void);

/** @return Nonzero if there are commands that were not obeyed yet. */
int uct_varuna_admin_is_behind(const uct_varuna_admin_t *admin);

/**
 * Obey: change the link table as commanded. Main thread, which may have locks.
 *
 * @return Bit map of the links to which traffic may move, or which it leaves.
 */
unsigned uct_varuna_admin_sync(uct_varuna_admin_t *admin,
                               uct_varuna_link_table_t *table, ucs_time_t now);

/** Show the states to rc_varuna_status(). Main thread. */
void uct_varuna_admin_publish(uct_varuna_admin_t *admin,
                              const uct_varuna_link_table_t *table);

/**
 * Execute a command line. Any thread.
 *
 * @param [in]  line    "link NAME down|fail|up", "nic NAME remove|add",
 *                      "failover force|revoke", "status".
 * @param [out] answer  Filled with the answer.
 */
void uct_varuna_admin_command(const char *line, char *answer, size_t size);

/** Listen for rc_varuna_ctl, until as many stops as starts have been called.
 *
 * @param [in] dir  Directory of the sockets, "auto" or "none".
 */
void uct_varuna_admin_sock_start(const char *dir);

void uct_varuna_admin_sock_stop(void);

/** In a new child: close the parent's socket, and its connections. */
void uct_varuna_admin_sock_forked(void);

#endif
