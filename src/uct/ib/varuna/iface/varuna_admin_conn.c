/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Connections of rc_varuna_ctl, served by UCX's async thread. One packet is a request,
 * one packet is the answer, and then the connection is closed. Nothing here waits for
 * a client, and none of them can use up what this process has:
 *
 *   a client that ...            meets
 *   says nothing                 IDLE_TIME, by a timer that runs while there are clients
 *   connects again and again     MAX_CONNS: the oldest one makes room
 *   sends too much               an error
 *   does not read the answer     a send that does not wait; the answer is the kernel's
 *
 * If there is no descriptor for a connection, it stays in the backlog until the timer
 * tries again: the listening socket would call us all the time.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_admin.h"
#include "varuna_admin_proto.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>

#include <ucs/async/async.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/time/time.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <ucs/sys/uid.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>

typedef struct uct_varuna_admin_conn {
    int                        fd;         /* -1: free */
    ucs_time_t                 since;
} uct_varuna_admin_conn_t;

/* Handlers take the lock, so nobody waits for one while holding it. */
static struct {
    pthread_mutex_t            lock;       /* Of everything here */
    int                        is_initialized;
    uct_varuna_admin_conn_t    conns[UCT_VARUNA_ADMIN_MAX_CONNS];
    unsigned                   num_conns;
    int                        paused_fd;  /* Listening socket, -1: not paused */
    int                        timer_id;   /* -1: none */
} uct_varuna_admin_conns = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


/* --- The table, lock held --- */

#define uct_varuna_admin_conn_for_each(_conn) \
    for (_conn = uct_varuna_admin_conns.conns; \
         _conn < uct_varuna_admin_conns.conns + UCT_VARUNA_ADMIN_MAX_CONNS; \
         ++_conn)

static void uct_varuna_admin_conns_init(void)
{
    uct_varuna_admin_conn_t *conn;

    if (uct_varuna_admin_conns.is_initialized) {
        return;
    }

    uct_varuna_admin_conn_for_each(conn) {
        conn->fd = -1;
    }
    uct_varuna_admin_conns.paused_fd      = -1;
    uct_varuna_admin_conns.timer_id       = -1;
    uct_varuna_admin_conns.is_initialized = 1;
}

static uct_varuna_admin_conn_t *uct_varuna_admin_conn_find(int fd)
{
    uct_varuna_admin_conn_t *conn;

    uct_varuna_admin_conn_for_each(conn) {
        if (conn->fd == fd) {
            return conn;
        }
    }

    return NULL;
}

/* Async thread. */
static void uct_varuna_admin_conn_close(uct_varuna_admin_conn_t *conn)
{
    ucs_async_remove_handler(conn->fd, 0);
    close(conn->fd);
    conn->fd = -1;
    --uct_varuna_admin_conns.num_conns;
}

/* @return a free place, for which the oldest connection may have to go. */
static uct_varuna_admin_conn_t *uct_varuna_admin_conn_get(void)
{
    uct_varuna_admin_conn_t *oldest = &uct_varuna_admin_conns.conns[0];
    uct_varuna_admin_conn_t *conn;

    uct_varuna_admin_conn_for_each(conn) {
        if (conn->fd == -1) {
            return conn;
        }

        oldest = (conn->since < oldest->since) ? conn : oldest;
    }

    ucs_debug("rc_varuna_ctl: %u connections: closed the oldest one",
              uct_varuna_admin_conns.num_conns);
    uct_varuna_admin_conn_close(oldest);
    return oldest;
}

/* Close those that are idle for @a idle_time. */
static void uct_varuna_admin_conns_expire(ucs_time_t now, ucs_time_t idle_time)
{
    uct_varuna_admin_conn_t *conn;

    uct_varuna_admin_conn_for_each(conn) {
        if ((conn->fd != -1) && ((now - conn->since) >= idle_time)) {
            ucs_debug("rc_varuna_ctl: closed a connection without a request");
            uct_varuna_admin_conn_close(conn);
        }
    }
}


/* --- Timer, while there is something to wait for --- */

static void uct_varuna_admin_conns_tick(int id, ucs_event_set_types_t events,
                                        void *arg);

/* Lock held. */
static void uct_varuna_admin_conns_update_timer(void)
{
    int is_wanted = (uct_varuna_admin_conns.num_conns > 0) ||
                    (uct_varuna_admin_conns.paused_fd != -1);

    if (is_wanted && (uct_varuna_admin_conns.timer_id == -1)) {
        if (ucs_async_add_timer(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                ucs_time_from_sec(UCT_VARUNA_ADMIN_CONN_TICK),
                                uct_varuna_admin_conns_tick, NULL, NULL,
                                &uct_varuna_admin_conns.timer_id) != UCS_OK) {
            uct_varuna_admin_conns.timer_id = -1;
            ucs_diag("rc_varuna_ctl: no timer for connections: closed them");
            uct_varuna_admin_conns_expire(ucs_get_time(), 0);
        }
    } else if (!is_wanted && (uct_varuna_admin_conns.timer_id != -1)) {
        ucs_async_remove_handler(uct_varuna_admin_conns.timer_id, 0);
        uct_varuna_admin_conns.timer_id = -1;
    }
}

static void uct_varuna_admin_conns_tick(int id, ucs_event_set_types_t events,
                                        void *arg)
{
    pthread_mutex_lock(&uct_varuna_admin_conns.lock);
    uct_varuna_admin_conns_expire(ucs_get_time(),
                                  ucs_time_from_sec(UCT_VARUNA_ADMIN_IDLE_TIME));
    if (uct_varuna_admin_conns.paused_fd != -1) {
        ucs_async_modify_handler(uct_varuna_admin_conns.paused_fd,
                                 UCS_EVENT_SET_EVREAD);
        uct_varuna_admin_conns.paused_fd = -1;
    }
    uct_varuna_admin_conns_update_timer();
    pthread_mutex_unlock(&uct_varuna_admin_conns.lock);
}


/* --- Requests --- */

static void uct_varuna_admin_conn_send(int fd, const char *answer)
{
    if (send(fd, answer, strlen(answer), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        ucs_debug("failed to answer rc_varuna_ctl: %m");
    }
}

/* A packet of @a length bytes, of which @a request has as many as it has room for. */
static void uct_varuna_admin_conn_answer(int fd, char *request, size_t length)
{
    char answer[UCT_VARUNA_ADMIN_ANSWER_MAX];

    if ((length >= UCT_VARUNA_ADMIN_REQUEST_MAX) ||
        (memchr(request, '\0', length) != NULL)) {
        uct_varuna_admin_conn_send(fd, UCT_VARUNA_ADMIN_ERROR "a request is one "
                                   "line of less than " UCS_PP_MAKE_STRING(
                                           UCT_VARUNA_ADMIN_REQUEST_MAX)
                                   " bytes\n");
        return;
    }

    request[length] = '\0';
    if (request[length - 1] == '\n') {
        request[length - 1] = '\0';
    }

    ucs_debug("rc_varuna_ctl: '%s'", request);
    uct_varuna_admin_command(request, answer, sizeof(answer));
    uct_varuna_admin_conn_send(fd, answer);
}

static void uct_varuna_admin_conn_request(int fd, ucs_event_set_types_t events,
                                          void *arg)
{
    char request[UCT_VARUNA_ADMIN_REQUEST_MAX];
    uct_varuna_admin_conn_t *conn;
    ssize_t length;

    pthread_mutex_lock(&uct_varuna_admin_conns.lock);
    conn = uct_varuna_admin_conn_find(fd);
    if (conn == NULL) {
        goto out; /* It is being closed */
    }

    length = recv(fd, request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);
    if ((length < 0) && ((errno == EAGAIN) || (errno == EINTR))) {
        goto out;
    }

    if (length > 0) {
        uct_varuna_admin_conn_answer(fd, request, length);
    }

    uct_varuna_admin_conn_close(conn);
    uct_varuna_admin_conns_update_timer();
out:
    pthread_mutex_unlock(&uct_varuna_admin_conns.lock);
}


/* --- Coming and going --- */

static int uct_varuna_admin_conn_check_user(int fd)
{
    struct ucred cred;
    socklen_t length = sizeof(cred);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) != 0) {
        return 0;
    }

    return (cred.uid == geteuid()) || (cred.uid == 0);
}

/* Lock held. Until the timer ticks. */
static void uct_varuna_admin_conns_pause(int fd)
{
    ucs_diag("rc_varuna_ctl: failed to accept a connection: %m");
    ucs_async_modify_handler(fd, 0);
    uct_varuna_admin_conns.paused_fd = fd;
}

/* Lock held. Takes over the descriptor. */
static void uct_varuna_admin_conn_add(int fd)
{
    uct_varuna_admin_conn_t *conn = uct_varuna_admin_conn_get();

    if (ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK, fd,
                                    UCS_EVENT_SET_EVREAD,
                                    uct_varuna_admin_conn_request, NULL,
                                    NULL) != UCS_OK) {
        close(fd);
        return;
    }

    conn->fd    = fd;
    conn->since = ucs_get_time();
    ++uct_varuna_admin_conns.num_conns;
}

/* Handler of the listening socket: accept a connection. Async thread. */
static void uct_varuna_admin_conn_accept(int fd, ucs_event_set_types_t events, void *arg)
{
    int conn_fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if ((conn_fd < 0) && ((errno == EAGAIN) || (errno == EINTR) ||
                          (errno == ECONNABORTED))) {
        return;
    }

    pthread_mutex_lock(&uct_varuna_admin_conns.lock);
    uct_varuna_admin_conns_init();
    if (conn_fd < 0) {
        uct_varuna_admin_conns_pause(fd);
    } else if (!uct_varuna_admin_conn_check_user(conn_fd)) {
        uct_varuna_admin_conn_send(conn_fd, UCT_VARUNA_ADMIN_ERROR "this process "
                                   "obeys its own user and root only\n");
        close(conn_fd);
    } else {
        uct_varuna_admin_conn_add(conn_fd);
    }
    uct_varuna_admin_conns_update_timer();
    pthread_mutex_unlock(&uct_varuna_admin_conns.lock);
}

/* Close all connections. The handler of the listening socket is removed already, and
 * the socket still open. Main thread. */
static void uct_varuna_admin_conns_cleanup(void)
{
    int fds[UCT_VARUNA_ADMIN_MAX_CONNS];
    unsigned num_fds = 0;
    uct_varuna_admin_conn_t *conn;
    int timer_id;

    pthread_mutex_lock(&uct_varuna_admin_conns.lock);
    uct_varuna_admin_conns_init();
    uct_varuna_admin_conn_for_each(conn) {
        if (conn->fd != -1) {
            fds[num_fds++] = conn->fd;
            conn->fd       = -1;
        }
    }
    timer_id                         = uct_varuna_admin_conns.timer_id;
    uct_varuna_admin_conns.timer_id  = -1;
    uct_varuna_admin_conns.num_conns = 0;
    uct_varuna_admin_conns.paused_fd = -1;
    pthread_mutex_unlock(&uct_varuna_admin_conns.lock);

    /* A handler that runs finds nothing any more, and we wait for it */
    if (timer_id != -1) {
        ucs_async_remove_handler(timer_id, 1);
    }
    while (num_fds > 0) {
        ucs_async_remove_handler(fds[--num_fds], 1);
        close(fds[num_fds]);
    }
}

/* In a new child: the connections are the parent's. */
static void uct_varuna_admin_conns_forked(void)
{
    uct_varuna_admin_conn_t *conn;

    pthread_mutex_init(&uct_varuna_admin_conns.lock, NULL);
    if (!uct_varuna_admin_conns.is_initialized) {
        return;
    }

    uct_varuna_admin_conn_for_each(conn) {
        if (conn->fd != -1) {
            close(conn->fd);
        }
    }
    uct_varuna_admin_conns.num_conns      = 0;
    uct_varuna_admin_conns.is_initialized = 0;
}

/* --- The socket --- */

/* It is in a directory that only its user can enter.
 *
 * Processes with the same pid may share the directory (containers), so the name of a socket
 * contains a random number as well. A socket gets its name when it listens: whoever cannot
 * connect to it knows that its process is gone, and may remove it. */

static struct {
    pthread_mutex_t            lock;   /* Of all; handlers don't take it */
    unsigned                   users;
    int                        fd;
    char                       path[UCT_VARUNA_ADMIN_PATH_MAX];
    struct stat                st;     /* Of the path */
} uct_varuna_admin_sock = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .fd   = -1
};

/* The directory must be ours alone: another user may have created it in /tmp. */
static int uct_varuna_admin_sock_make_dir(const char *dir)
{
    struct stat st;

    if ((mkdir(dir, S_IRWXU) != 0) && (errno != EEXIST)) {
        ucs_diag("rc_varuna_ctl can't reach this process: failed to create %s: "
                 "%m", dir);
        return -1;
    }

    if ((lstat(dir, &st) != 0) || !S_ISDIR(st.st_mode) ||
        (st.st_uid != geteuid()) || (st.st_mode & (S_IRWXG | S_IRWXO))) {
        ucs_diag("rc_varuna_ctl can't reach this process: %s is not a directory "
                 "of this user alone", dir);
        return -1;
    }

    return 0;
}

static int uct_varuna_admin_sock_is_dead(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd, is_dead;

    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return 0;
    }

    ucs_snprintf_safe(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    is_dead = (connect(fd, (struct sockaddr*)&addr, sizeof(addr)) != 0) &&
              (errno == ECONNREFUSED);
    close(fd);
    return is_dead;
}

/* Remove the socket if its process had our pid and was killed */
static ucs_status_t
uct_varuna_admin_sock_sweep(uct_varuna_compat_dirent_t *entry, void *arg)
{
    const char *dir = *(const char**)arg;
    char path[UCT_VARUNA_ADMIN_PATH_MAX];
    char *end;

    if ((strtol(entry->d_name, &end, 10) == getpid()) && (end != entry->d_name) &&
        (snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) <
         (int)sizeof(path)) &&
        uct_varuna_admin_sock_is_dead(path)) {
        unlink(path);
    }

    return UCS_OK;
}

/* @return The socket, which listens at a name that rc_varuna_ctl ignores; -1: there is none. */
static int uct_varuna_admin_sock_bind(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd;

    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        ucs_diag("rc_varuna_ctl can't reach this process: socket() failed: %m");
        return -1;
    }

    ucs_snprintf_safe(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    if ((bind(fd, (struct sockaddr*)&addr, sizeof(addr)) != 0) ||
        (listen(fd, UCT_VARUNA_ADMIN_BACKLOG) != 0)) {
        ucs_diag("rc_varuna_ctl can't reach this process: failed to listen on %s:"
                 " %m", path);
        close(fd);
        return -1;
    }

    return fd;
}

static int uct_varuna_admin_sock_listen(const char *dir)
{
    char *path      = uct_varuna_admin_sock.path;
    unsigned number = (unsigned)ucs_generate_uuid((uintptr_t)path);
    char temporary[UCT_VARUNA_ADMIN_PATH_MAX];
    int fd, length;

    length = snprintf(path, UCT_VARUNA_ADMIN_PATH_MAX,
                      "%s/%d-%08x" UCT_VARUNA_ADMIN_SUFFIX, dir, (int)getpid(), number);
    if (length >= UCT_VARUNA_ADMIN_PATH_MAX) {
        ucs_diag("rc_varuna_ctl can't reach this process: %s is too long", dir);
        return -1;
    }

    (void)ucs_sys_readdir(dir, uct_varuna_admin_sock_sweep, &dir);
    ucs_snprintf_safe(temporary, sizeof(temporary), "%s/.%d-%08x", dir, (int)getpid(),
                      number);
    fd = uct_varuna_admin_sock_bind(temporary);
    if (fd < 0) {
        return -1;
    }

    if ((lstat(temporary, &uct_varuna_admin_sock.st) != 0) ||
        (rename(temporary, path) != 0)) {
        ucs_diag("rc_varuna_ctl can't reach this process: failed to rename %s: %m",
                 temporary);
        unlink(temporary);
        close(fd);
        return -1;
    }

    return fd;
}

/* Our name may be somebody else's by now, if the directory was removed and made again */
static void uct_varuna_admin_sock_unlink(void)
{
    struct stat st;

    if ((lstat(uct_varuna_admin_sock.path, &st) == 0) &&
        (st.st_dev == uct_varuna_admin_sock.st.st_dev) &&
        (st.st_ino == uct_varuna_admin_sock.st.st_ino)) {
        unlink(uct_varuna_admin_sock.path);
    }
}

static void uct_varuna_admin_sock_open(const char *option)
{
    char dir[UCT_VARUNA_ADMIN_PATH_MAX];
    int fd;

    if (!strcmp(option, UCT_VARUNA_ADMIN_DIR_NONE)) {
        return;
    }

    if (uct_varuna_admin_dir(option, dir, sizeof(dir)) >= (int)sizeof(dir)) {
        ucs_diag("rc_varuna_ctl can't reach this process: %s is too long", dir);
        return;
    }

    if (uct_varuna_admin_sock_make_dir(dir) != 0) {
        return;
    }

    fd = uct_varuna_admin_sock_listen(dir);
    if (fd < 0) {
        return;
    }

    if (ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK, fd,
                                    UCS_EVENT_SET_EVREAD,
                                    uct_varuna_admin_conn_accept, NULL,
                                    NULL) != UCS_OK) {
        uct_varuna_admin_sock_unlink();
        close(fd);
        return;
    }

    uct_varuna_admin_sock.fd = fd;
}

void uct_varuna_admin_sock_start(const char *dir)
{
    pthread_mutex_lock(&uct_varuna_admin_sock.lock);
    if (uct_varuna_admin_sock.users++ == 0) {
        uct_varuna_admin_sock_open(dir);
    }
    pthread_mutex_unlock(&uct_varuna_admin_sock.lock);
}

/* Without users in a child that closes what it has inherited */
void uct_varuna_admin_sock_stop(void)
{
    pthread_mutex_lock(&uct_varuna_admin_sock.lock);
    if ((uct_varuna_admin_sock.users > 0) && (--uct_varuna_admin_sock.users == 0) &&
        (uct_varuna_admin_sock.fd != -1)) {
        ucs_async_remove_handler(uct_varuna_admin_sock.fd, 1);
        uct_varuna_admin_conns_cleanup();
        close(uct_varuna_admin_sock.fd);
        uct_varuna_admin_sock_unlink();
        uct_varuna_admin_sock.fd = -1;
    }
    pthread_mutex_unlock(&uct_varuna_admin_sock.lock);
}

void uct_varuna_admin_sock_forked(void)
{
    pthread_mutex_init(&uct_varuna_admin_sock.lock, NULL);
    uct_varuna_admin_sock.users = 0;
    if (uct_varuna_admin_sock.fd != -1) {
        close(uct_varuna_admin_sock.fd); /* Or clients would wait for us */
        uct_varuna_admin_sock.fd = -1;
    }
    uct_varuna_admin_conns_forked();
}
