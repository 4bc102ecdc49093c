/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UCX's async thread and fork(). See varuna_fork.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_fork.h"

#include <ucs/async/async.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/time/time.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Seconds for which fork() waits for the async thread */
#define UCT_VARUNA_FORK_WAIT         3

/* The first id that UCX gives to a timer; ids below it are descriptors */
#define UCT_VARUNA_FORK_TIMER_MIN    1000000

typedef enum {
    UCT_VARUNA_FORK_OWN,       /* What UCX's async thread uses is of this process */
    UCT_VARUNA_FORK_INHERITED, /* A child, of a parent whose thread rested */
    UCT_VARUNA_FORK_UNSAFE     /* A child whose UCX may have locks that nobody releases */
} uct_varuna_fork_origin_t;

static struct {
    pthread_mutex_t            lock;       /* Of all that follows. In a child: one thread */
    pthread_cond_t             changed;    /* Waited for by CLOCK_MONOTONIC */
    unsigned                   users;
    int                        fd;         /* Its handler rests; -1: no users */
    int                        epoll_fd;   /* UCX's set of events; -1: not found */
    unsigned                   num_forks;  /* Threads that are about to fork */
    int                        is_resting;
    uct_varuna_fork_origin_t   origin;
    int                        parent_fd;  /* The parent's set of events, in a child */
} uct_varuna_fork = {
    .lock      = PTHREAD_MUTEX_INITIALIZER,
    .fd        = -1,
    .epoll_fd  = -1,
    .parent_fd = -1
};

/* Of the thread that forks: whether it waits for the parent's async thread to go on, and
 * whether the child can use UCX */
static __thread int uct_varuna_fork_is_counted;
static __thread int uct_varuna_fork_is_safe;

static void uct_varuna_fork_init_changed(void)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&uct_varuna_fork.changed, &attr);
    pthread_condattr_destroy(&attr);
}


/* --- The parent --- */

/* Async thread. Another fork may have begun when one is over. */
static void uct_varuna_fork_rest(int fd, ucs_event_set_types_t events, void *arg)
{
    uint64_t count;

    if (read(fd, &count, sizeof(count)) < 0) {
        return; /* Nobody forks any more */
    }

    pthread_mutex_lock(&uct_varuna_fork.lock);
    while (uct_varuna_fork.num_forks > 0) {
        uct_varuna_fork.is_resting = 1;
        pthread_cond_broadcast(&uct_varuna_fork.changed);
        pthread_cond_wait(&uct_varuna_fork.changed, &uct_varuna_fork.lock);
    }
    uct_varuna_fork.is_resting = 0;
    pthread_mutex_unlock(&uct_varuna_fork.lock);
}

/* Call a function for each descriptor in a set of events, when the file is closed: its own
 * descriptor may be one of them. @return How many there are. */
static unsigned uct_varuna_fork_for_each(int epoll_fd, void (*func)(int fd))
{
    unsigned count = 0, i;
    int *fds       = NULL, *more;
    char line[256];
    FILE *file;
    int fd;

    snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", epoll_fd);
    file = fopen(line, "re");
    if (file == NULL) {
        return 0;
    }

    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "tfd: %d", &fd) == 1) {
            more = ucs_realloc(fds, (count + 1) * sizeof(*fds), "varuna_fork_fds");
            if (more == NULL) {
                break;
            }
            fds          = more;
            fds[count++] = fd;
        }
    }
    fclose(file);

    for (i = 0; i < count; ++i) {
        func(fds[i]);
    }
    ucs_free(fds);
    return count;
}

static int uct_varuna_fork_is_found; /* Lock held */

static void uct_varuna_fork_compare(int fd)
{
    uct_varuna_fork_is_found |= (fd == uct_varuna_fork.fd);
}

/* @return The set of events that contains our descriptor: UCX's; -1: not found. */
static int uct_varuna_fork_find_epoll(void)
{
    static const char kind[] = "anon_inode:[eventpoll]";
    char target[sizeof(kind)];
    struct dirent *entry;
    int epoll_fd = -1;
    DIR *dir;

    dir = opendir("/proc/self/fd");
    if (dir == NULL) {
        return -1;
    }

    uct_varuna_fork_is_found = 0;
    while ((epoll_fd == -1) && ((entry = readdir(dir)) != NULL)) {
        if ((readlinkat(dirfd(dir), entry->d_name, target, sizeof(target)) !=
             sizeof(kind) - 1) || memcmp(target, kind, sizeof(kind) - 1)) {
            continue;
        }

        uct_varuna_fork_for_each(atoi(entry->d_name), uct_varuna_fork_compare);
        if (uct_varuna_fork_is_found) {
            epoll_fd = atoi(entry->d_name);
        }
    }
    closedir(dir);
    return epoll_fd;
}

void uct_varuna_ucx_fork_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int fd;

    pthread_once(&once, uct_varuna_fork_init_changed);
    pthread_mutex_lock(&uct_varuna_fork.lock);
    if (uct_varuna_fork.users++ > 0) {
        goto out;
    }

    fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) {
        goto out;
    }

    if (ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK, fd,
                                    UCS_EVENT_SET_EVREAD, uct_varuna_fork_rest, NULL,
                                    NULL) != UCS_OK) {
        close(fd);
        goto out;
    }

    uct_varuna_fork.fd       = fd;
    uct_varuna_fork.epoll_fd = uct_varuna_fork_find_epoll();

out:
    pthread_mutex_unlock(&uct_varuna_fork.lock);
}

void uct_varuna_ucx_fork_put(void)
{
    int fd = -1;

    pthread_mutex_lock(&uct_varuna_fork.lock);
    if ((uct_varuna_fork.users > 0) && (--uct_varuna_fork.users == 0)) {
        fd                       = uct_varuna_fork.fd;
        uct_varuna_fork.fd       = -1;
        uct_varuna_fork.epoll_fd = -1;
    }
    pthread_mutex_unlock(&uct_varuna_fork.lock);

    if (fd != -1) {
        ucs_async_remove_handler(fd, 1);
        close(fd);
    }
}

/* Lock held, and released meanwhile */
static int uct_varuna_fork_await_rest(void)
{
    static const uint64_t one = 1;
    struct timespec ts;

    if (write(uct_varuna_fork.fd, &one, sizeof(one)) < 0) {
        return 0;
    }

    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += UCT_VARUNA_FORK_WAIT;
    while (!uct_varuna_fork.is_resting) {
        if (pthread_cond_timedwait(&uct_varuna_fork.changed, &uct_varuna_fork.lock,
                                   &ts) != 0) {
            return uct_varuna_fork.is_resting;
        }
    }

    return 1;
}

void uct_varuna_ucx_fork_prepare(void)
{
    ucs_async_context_t async = {.mode = UCS_ASYNC_MODE_THREAD_SPINLOCK};

    uct_varuna_fork_is_counted = 0;
    uct_varuna_fork_is_safe    = 1;
    pthread_mutex_lock(&uct_varuna_fork.lock);
    if ((uct_varuna_fork.fd != -1) && !ucs_async_is_from_async(&async)) {
        uct_varuna_fork_is_counted = 1;
        ++uct_varuna_fork.num_forks;
        uct_varuna_fork_is_safe = uct_varuna_fork_await_rest();
    }
    pthread_mutex_unlock(&uct_varuna_fork.lock);
}

void uct_varuna_ucx_fork_parent(void)
{
    if (uct_varuna_fork_is_counted) {
        pthread_mutex_lock(&uct_varuna_fork.lock);
        --uct_varuna_fork.num_forks;
        pthread_cond_broadcast(&uct_varuna_fork.changed);
        pthread_mutex_unlock(&uct_varuna_fork.lock);
    }
}


/* --- A child --- */

/* UCX's descriptor leads to a set of ours. Only system calls: the child may be one of a
 * program with many threads, which calls exec() next. */
static int uct_varuna_fork_replace_epoll(void)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    int result;

    if (fd < 0) {
        return -1;
    }

    result = dup3(fd, uct_varuna_fork.epoll_fd, O_CLOEXEC);
    close(fd);
    return result;
}

void uct_varuna_ucx_fork_child(void)
{
    pthread_mutex_init(&uct_varuna_fork.lock, NULL);
    uct_varuna_fork_init_changed();
    uct_varuna_fork.num_forks  = 0;
    uct_varuna_fork.is_resting = 0;
    if (uct_varuna_fork.fd != -1) {
        uct_varuna_fork.parent_fd = fcntl(uct_varuna_fork.epoll_fd, F_DUPFD_CLOEXEC, 0);
        uct_varuna_fork.origin    = uct_varuna_fork_is_safe &&
                                    (uct_varuna_fork.parent_fd != -1) ?
                                    UCT_VARUNA_FORK_INHERITED : UCT_VARUNA_FORK_UNSAFE;
        close(uct_varuna_fork.fd);
    } else if (uct_varuna_fork.origin == UCT_VARUNA_FORK_OWN) {
        return;
    }

    uct_varuna_fork.users = 0;
    uct_varuna_fork.fd    = -1;
    if (uct_varuna_fork_replace_epoll() == -1) {
        uct_varuna_fork.origin = UCT_VARUNA_FORK_UNSAFE;
    }
}

/* UCX takes the descriptor out of the set, where it has to be. The application may have closed
 * it. */
static void uct_varuna_fork_remove(int fd)
{
    struct epoll_event event = {.events = 0};
    int is_closed            = (fcntl(fd, F_GETFD) == -1);
    int null_fd;

    if (is_closed) {
        null_fd = eventfd(0, EFD_CLOEXEC);
        if ((null_fd != fd) && (null_fd != -1)) {
            dup3(null_fd, fd, O_CLOEXEC);
            close(null_fd);
        }
    }

    epoll_ctl(uct_varuna_fork.epoll_fd, EPOLL_CTL_ADD, fd, &event);
    if (ucs_async_remove_handler(fd, 0) != UCS_OK) {
        epoll_ctl(uct_varuna_fork.epoll_fd, EPOLL_CTL_DEL, fd, &event);
    }

    if (is_closed) {
        close(fd);
    }
}

static void uct_varuna_fork_tick(int id, ucs_event_set_types_t events, void *arg)
{
}

/* Ids increase, so a new one is above all others. With the last handler, UCX forgets the
 * thread. */
static void uct_varuna_fork_remove_timers(void)
{
    int id, last;

    if (ucs_async_add_timer(UCS_ASYNC_MODE_THREAD_SPINLOCK, ucs_time_from_sec(3600),
                            uct_varuna_fork_tick, NULL, NULL, &last) != UCS_OK) {
        return;
    }

    for (id = UCT_VARUNA_FORK_TIMER_MIN; id <= last; ++id) {
        ucs_async_remove_handler(id, 0);
    }
}

ucs_status_t uct_varuna_ucx_fork_renew(void)
{
    unsigned count;

    switch (uct_varuna_fork.origin) {
    case UCT_VARUNA_FORK_OWN:
        return UCS_OK;
    case UCT_VARUNA_FORK_UNSAFE:
        ucs_async_global_init(); /* Nobody would release its lock */
        ucs_error("rc_varuna is not available in this process: the async thread of its "
                  "parent was busy when it was forked");
        return UCS_ERR_UNSUPPORTED;
    case UCT_VARUNA_FORK_INHERITED:
        break;
    }

    count = uct_varuna_fork_for_each(uct_varuna_fork.parent_fd, uct_varuna_fork_remove);
    uct_varuna_fork_remove_timers();
    ucs_debug("rc_varuna: this is a forked process, which had %u handlers of its parent",
              count);
    close(uct_varuna_fork.parent_fd);
    uct_varuna_fork.parent_fd = -1;
    uct_varuna_fork.epoll_fd  = -1;
    uct_varuna_fork.origin    = UCT_VARUNA_FORK_OWN;
    return UCS_OK;
}
