/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Commands to NICs, and their threads. See varuna_cmd.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_cmd.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sys.h>
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct uct_varuna_cmds {
    const char                 *name;
    pthread_mutex_t            lock;       /* Protects all that follows */
    pthread_cond_t             wake;       /* The thread: something was queued */
    pthread_cond_t             rested;     /* For its destruction: nothing is in progress */
    ucs_list_link_t            queue;
    uct_varuna_cmd_t           *current;   /* In progress */
    ucs_time_t                 given_at;   /* Since then */
    pthread_t                  thread;
    pid_t                      pid;        /* Of the process that has the thread, 0:
                                              none has */
    int                        ends;       /* The thread is to end */
    int                        is_left;    /* It releases the queue when it ends */
};


/* The list of the sink, and no lock of the queue: done() may submit another command. */
static void uct_varuna_cmd_finish(uct_varuna_cmd_t *cmd, ucs_status_t status)
{
    static const uint64_t one   = 1;
    uct_varuna_cmd_sink_t *sink = cmd->sink;

    cmd->status = status;
    if (sink == NULL) {
        cmd->done(cmd, UCS_ERR_CANCELED);
        return;
    }

    pthread_mutex_lock(&sink->lock);
    ucs_list_add_tail(&sink->list, &cmd->list);
    /* Inside the lock: once it is released, the sink may be gone */
    if (write(sink->fd, &one, sizeof(one)) < 0) {
        ucs_assertv(errno == EAGAIN, "errno=%d", errno); /* It is readable */
    }
    pthread_mutex_unlock(&sink->lock);
}

/* The lock is held, and released meanwhile. */
static void uct_varuna_cmds_run(uct_varuna_cmds_t *cmds, uct_varuna_cmd_t *cmd)
{
    ucs_time_t given_at = ucs_get_time();
    int is_late         = (cmd->deadline != 0) && (given_at > cmd->deadline);
    ucs_status_t status;

    cmd->begun_at  = given_at;
    cmds->current  = cmd;
    cmds->given_at = given_at;
    pthread_mutex_unlock(&cmds->lock);

    status = is_late ? UCS_ERR_TIMED_OUT : cmd->run(cmd);

    pthread_mutex_lock(&cmds->lock);
    if (status == UCS_INPROGRESS) {
        status = UCS_ERR_CANCELED; /* Without a sink */
        if (cmd->sink != NULL) {
            ucs_list_add_tail(&cmds->queue, &cmd->list);
            cmds->current = NULL;
            pthread_cond_broadcast(&cmds->rested);
            return;
        }
    }

    /* Still the current one, so that a sink that is detached finds it; with the lock,
     * since it is gone otherwise */
    if (cmd->sink != NULL) {
        uct_varuna_cmd_finish(cmd, status);
        cmd = NULL;
    }
    cmds->current = NULL;
    pthread_cond_broadcast(&cmds->rested);

    if (cmd != NULL) {
        pthread_mutex_unlock(&cmds->lock);
        uct_varuna_cmd_finish(cmd, status);
        pthread_mutex_lock(&cmds->lock);
    }
}

static void uct_varuna_cmds_free(uct_varuna_cmds_t *cmds)
{
    pthread_cond_destroy(&cmds->rested);
    pthread_cond_destroy(&cmds->wake);
    pthread_mutex_destroy(&cmds->lock);
    ucs_free(cmds);
}

static void *uct_varuna_cmds_thread(void *arg)
{
    uct_varuna_cmds_t *cmds = arg;
    int is_left;

    pthread_mutex_lock(&cmds->lock);
    for (;;) {
        if (!ucs_list_is_empty(&cmds->queue)) {
            uct_varuna_cmds_run(cmds, ucs_list_extract_head(&cmds->queue,
                                                            uct_varuna_cmd_t, list));
        } else if (cmds->ends) {
            break;
        } else {
            pthread_cond_wait(&cmds->wake, &cmds->lock);
        }
    }

    is_left = cmds->is_left;
    pthread_mutex_unlock(&cmds->lock);
    if (is_left) {
        uct_varuna_cmds_free(cmds);
    }

    return NULL;
}

ucs_status_t uct_varuna_cmds_create(const char *name, uct_varuna_cmds_t **cmds_p)
{
    uct_varuna_cmds_t *cmds;
    pthread_condattr_t attr;

    cmds = ucs_calloc(1, sizeof(*cmds), "varuna_cmds");
    if (cmds == NULL) {
        ucs_error("failed to allocate the queue of commands to %s", name);
        return UCS_ERR_NO_MEMORY;
    }

    pthread_mutex_init(&cmds->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&cmds->wake, NULL);
    pthread_cond_init(&cmds->rested, &attr);
    pthread_condattr_destroy(&attr);
    ucs_list_head_init(&cmds->queue);
    cmds->name = name;
    *cmds_p    = cmds;
    return UCS_OK;
}

/* Nothing that waits is given any more. The lock is held, and released meanwhile. */
static void uct_varuna_cmds_cancel(uct_varuna_cmds_t *cmds,
                                   const uct_varuna_cmd_sink_t *sink)
{
    uct_varuna_cmd_t *cmd, *tmp;
    ucs_list_link_t list;

    ucs_list_head_init(&list);
    ucs_list_for_each_safe(cmd, tmp, &cmds->queue, list) {
        if ((sink == NULL) || (cmd->sink == sink)) {
            ucs_list_del(&cmd->list);
            ucs_list_add_tail(&list, &cmd->list);
        }
    }

    pthread_mutex_unlock(&cmds->lock);
    while (!ucs_list_is_empty(&list)) {
        cmd = ucs_list_extract_head(&list, uct_varuna_cmd_t, list);
        cmd->done(cmd, UCS_ERR_CANCELED);
    }
    pthread_mutex_lock(&cmds->lock);
}

/* Whether a command of the sink is in progress, NULL: any command. The lock is held. */
static int uct_varuna_cmds_is_busy(const uct_varuna_cmds_t *cmds,
                                   const uct_varuna_cmd_sink_t *sink)
{
    return (cmds->current != NULL) &&
           ((sink == NULL) || (cmds->current->sink == sink));
}

/* @return Nonzero if no command of the sink is in progress, NULL: no command at all. The
 * lock is held. */
static int uct_varuna_cmds_linger(uct_varuna_cmds_t *cmds,
                                  const uct_varuna_cmd_sink_t *sink)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += (time_t)UCT_VARUNA_CMD_LINGER;
    while (uct_varuna_cmds_is_busy(cmds, sink)) {
        if (pthread_cond_timedwait(&cmds->rested, &cmds->lock, &ts) != 0) {
            /* It may have come back between the time-out and the lock */
            return !uct_varuna_cmds_is_busy(cmds, sink);
        }
    }

    return 1;
}

/* In a child process there is no thread, and the lock may never be released. */
static int uct_varuna_cmds_is_child(const uct_varuna_cmds_t *cmds)
{
    pid_t pid = __atomic_load_n(&cmds->pid, __ATOMIC_RELAXED);

    return (pid != 0) && (pid != getpid());
}

ucs_status_t uct_varuna_cmds_destroy(uct_varuna_cmds_t *cmds)
{
    pthread_t thread;

    if (uct_varuna_cmds_is_child(cmds)) {
        return UCS_OK;
    }

    if (cmds->pid == 0) {
        uct_varuna_cmds_free(cmds);
        return UCS_OK;
    }

    pthread_mutex_lock(&cmds->lock);
    uct_varuna_cmds_cancel(cmds, NULL);
    thread     = cmds->thread;
    cmds->ends = 1;
    pthread_cond_signal(&cmds->wake);
    if (!uct_varuna_cmds_linger(cmds, NULL)) {
        ucs_warn("rc_varuna: %s has not answered a command for %.0f s: what it uses is "
                 "not released", cmds->name,
                 ucs_time_to_sec(ucs_get_time() - cmds->given_at));
        cmds->is_left = 1;
        cmds->name    = "a NIC";
        pthread_detach(thread);
        pthread_mutex_unlock(&cmds->lock);
        return UCS_ERR_BUSY;
    }

    pthread_mutex_unlock(&cmds->lock);
    pthread_join(thread, NULL);
    uct_varuna_cmds_free(cmds);
    return UCS_OK;
}

/* Signals are for the application's threads. The lock is held. */
static int uct_varuna_cmds_start(uct_varuna_cmds_t *cmds)
{
    sigset_t all, old;
    int ret;

    if (cmds->pid != 0) {
        return 1;
    }

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    ret = pthread_create(&cmds->thread, NULL, uct_varuna_cmds_thread, cmds);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret != 0) {
        ucs_diag("rc_varuna: no thread for commands to %s: %s", cmds->name,
                 strerror(ret));
        return 0;
    }

    __atomic_store_n(&cmds->pid, getpid(), __ATOMIC_RELAXED);
    return 1;
}

static ucs_status_t uct_varuna_cmd_run_to_end(uct_varuna_cmd_t *cmd)
{
    ucs_status_t status;

    do {
        status = cmd->run(cmd);
    } while (status == UCS_INPROGRESS);

    return status;
}

void uct_varuna_cmd_run_now(uct_varuna_cmd_t *cmd)
{
    cmd->done(cmd, uct_varuna_cmd_run_to_end(cmd));
}

void uct_varuna_cmds_submit(uct_varuna_cmds_t *cmds, uct_varuna_cmd_t *cmd)
{
    if (uct_varuna_cmds_is_child(cmds)) {
        uct_varuna_cmd_finish(cmd, uct_varuna_cmd_run_to_end(cmd));
        return;
    }

    pthread_mutex_lock(&cmds->lock);
    if (!uct_varuna_cmds_start(cmds)) {
        pthread_mutex_unlock(&cmds->lock);
        uct_varuna_cmd_finish(cmd, uct_varuna_cmd_run_to_end(cmd));
        return;
    }

    cmd->since    = ucs_get_time();
    cmd->begun_at = 0;
    cmd->status   = UCS_INPROGRESS;
    ucs_list_add_tail(&cmds->queue, &cmd->list);
    pthread_cond_signal(&cmds->wake);
    pthread_mutex_unlock(&cmds->lock);
}

/* The lock is held. */
static int uct_varuna_cmds_hangs(const uct_varuna_cmds_t *cmds, ucs_time_t now)
{
    return (cmds->current != NULL) &&
           ((now - cmds->given_at) > ucs_time_from_sec(UCT_VARUNA_CMD_HUNG));
}

int uct_varuna_cmds_is_hung(uct_varuna_cmds_t *cmds)
{
    int is_hung;

    pthread_mutex_lock(&cmds->lock);
    is_hung = uct_varuna_cmds_hangs(cmds, ucs_get_time());
    pthread_mutex_unlock(&cmds->lock);
    return is_hung;
}

int uct_varuna_cmds_may_answer(uct_varuna_cmds_t *cmds, const uct_varuna_cmd_t *cmd,
                               ucs_time_t patience)
{
    ucs_time_t now;
    int may_answer;

    pthread_mutex_lock(&cmds->lock);
    now = ucs_get_time();
    if (cmd->status != UCS_INPROGRESS) {
        may_answer = 1; /* It is on its way */
    } else if (cmd->begun_at != 0) {
        may_answer = ((now - cmd->begun_at) <= patience);
    } else {
        if (!uct_varuna_cmds_hangs(cmds, now)) {
            patience += ucs_time_from_sec(UCT_VARUNA_CMD_START);
        }
        may_answer = ((now - cmd->since) <= patience);
    }
    pthread_mutex_unlock(&cmds->lock);
    return may_answer;
}

/* --- Sinks --- */

ucs_status_t uct_varuna_cmd_sink_init(uct_varuna_cmd_sink_t *sink)
{
    sink->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (sink->fd < 0) {
        ucs_error("failed to create an event descriptor for commands: %m");
        return UCS_ERR_IO_ERROR;
    }

    pthread_mutex_init(&sink->lock, NULL);
    ucs_list_head_init(&sink->list);
    return UCS_OK;
}

ucs_status_t uct_varuna_cmd_sink_detach(uct_varuna_cmd_sink_t *sink,
                                        uct_varuna_cmds_t *cmds)
{
    ucs_status_t status = UCS_OK;

    if (uct_varuna_cmds_is_child(cmds)) {
        return UCS_OK;
    }

    pthread_mutex_lock(&cmds->lock);
    uct_varuna_cmds_cancel(cmds, sink);
    if (uct_varuna_cmds_linger(cmds, sink)) {
        uct_varuna_cmds_cancel(cmds, sink); /* What was in progress may have come again */
    } else {
        cmds->current->sink = NULL;
        status              = UCS_ERR_BUSY;
    }
    pthread_mutex_unlock(&cmds->lock);
    return status;
}

void uct_varuna_cmd_sink_dispatch(uct_varuna_cmd_sink_t *sink)
{
    uct_varuna_cmd_t *cmd;
    ucs_list_link_t list;
    uint64_t count;

    ucs_list_head_init(&list);
    pthread_mutex_lock(&sink->lock);
    if ((read(sink->fd, &count, sizeof(count)) < 0) && (errno != EAGAIN)) {
        ucs_diag("failed to read the event descriptor of commands: %m");
    }
    ucs_list_splice_tail(&list, &sink->list);
    ucs_list_head_init(&sink->list);
    pthread_mutex_unlock(&sink->lock);

    while (!ucs_list_is_empty(&list)) {
        cmd = ucs_list_extract_head(&list, uct_varuna_cmd_t, list);
        cmd->done(cmd, cmd->status);
    }
}

void uct_varuna_cmd_sink_cleanup(uct_varuna_cmd_sink_t *sink)
{
    uct_varuna_cmd_t *cmd;

    while (!ucs_list_is_empty(&sink->list)) {
        cmd = ucs_list_extract_head(&sink->list, uct_varuna_cmd_t, list);
        cmd->done(cmd, UCS_ERR_CANCELED);
    }

    close(sink->fd);
    pthread_mutex_destroy(&sink->lock);
}
