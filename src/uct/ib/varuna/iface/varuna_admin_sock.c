/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The socket for rc_varuna_ctl, in a directory that only its user can enter.
 * varuna_admin_conn.c serves its connections.
 *
 * Processes with the same pid may share the directory (containers), so the name of a socket
 * contains a random number as well. A socket gets its name when it listens: whoever cannot
 * connect to it knows that its process is gone, and may remove it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_admin.h"
#include "varuna_admin_conn.h"
#include "varuna_admin_proto.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>

#include <ucs/async/async.h>
#include <ucs/debug/log.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <ucs/sys/uid.h>

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
    const char *dir = arg;
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
        (listen(fd, 16) != 0)) {
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

    (void)ucs_sys_readdir(dir, uct_varuna_admin_sock_sweep, (void*)dir);
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
