/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The socket for rc_varuna_ctl, in a directory that only its user can enter.
 * varuna_admin_conn.c serves its connections.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_admin.h"
#include "varuna_admin_conn.h"
#include "varuna_admin_proto.h"

#include <ucs/async/async.h>
#include <ucs/debug/log.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static struct {
    pthread_mutex_t            lock;   /* Of all; handlers don't take it */
    unsigned                   users;
    int                        fd;
    pid_t                      pid;    /* A child does not own the socket */
    struct sockaddr_un         addr;
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

static int uct_varuna_admin_sock_listen(const char *dir)
{
    struct sockaddr_un *addr = &uct_varuna_admin_sock.addr;
    int fd, length;

    addr->sun_family = AF_UNIX;
    length           = snprintf(addr->sun_path, sizeof(addr->sun_path),
                                "%s/%d" UCT_VARUNA_ADMIN_SUFFIX, dir,
                                (int)getpid());
    if (length >= (int)sizeof(addr->sun_path)) {
        ucs_diag("rc_varuna_ctl can't reach this process: %s is too long", dir);
        return -1;
    }

    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        ucs_diag("rc_varuna_ctl can't reach this process: socket() failed: %m");
        return -1;
    }

    unlink(addr->sun_path); /* It belongs to a dead process with our pid */
    if ((bind(fd, (struct sockaddr*)addr, sizeof(*addr)) != 0) ||
        (listen(fd, 16) != 0)) {
        ucs_diag("rc_varuna_ctl can't reach this process: failed to listen on %s:"
                 " %m", addr->sun_path);
        close(fd);
        return -1;
    }

    return fd;
}

static void uct_varuna_admin_sock_open(const char *dir)
{
    char default_dir[sizeof(uct_varuna_admin_sock.addr.sun_path)];
    int fd;

    if (!strcmp(dir, "none")) {
        return;
    }

    if (!strcmp(dir, "auto")) {
        if (uct_varuna_admin_default_dir(default_dir, sizeof(default_dir)) >=
            (int)sizeof(default_dir)) {
            return;
        }
        dir = default_dir;
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
        unlink(uct_varuna_admin_sock.addr.sun_path);
        close(fd);
        return;
    }

    uct_varuna_admin_sock.fd  = fd;
    uct_varuna_admin_sock.pid = getpid();
}

void uct_varuna_admin_sock_start(const char *dir)
{
    pthread_mutex_lock(&uct_varuna_admin_sock.lock);
    if (uct_varuna_admin_sock.users++ == 0) {
        uct_varuna_admin_sock_open(dir);
    }
    pthread_mutex_unlock(&uct_varuna_admin_sock.lock);
}

void uct_varuna_admin_sock_stop(void)
{
    pthread_mutex_lock(&uct_varuna_admin_sock.lock);
    if ((--uct_varuna_admin_sock.users == 0) &&
        (uct_varuna_admin_sock.fd != -1)) {
        ucs_async_remove_handler(uct_varuna_admin_sock.fd, 1);
        uct_varuna_admin_conns_cleanup();
        close(uct_varuna_admin_sock.fd);
        if (uct_varuna_admin_sock.pid == getpid()) {
            unlink(uct_varuna_admin_sock.addr.sun_path);
        }
        uct_varuna_admin_sock.fd = -1;
    }
    pthread_mutex_unlock(&uct_varuna_admin_sock.lock);
}
