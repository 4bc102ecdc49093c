/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Commands to NICs. A command to a NIC that hangs can take a minute (the driver's
 * time-out), so commands whose caller must not wait run on a thread of that NIC, one
 * after the other:
 *
 *   any thread                NIC's thread               any thread
 *   cmds_submit  --------->   run(cmd)   --------->      sinks_dispatch: done(cmd)
 *                 queue                   sink's list,
 *                                         its descriptor becomes readable
 *
 * Ownership: from the submission until done() the command, and all that run() uses,
 * belongs to the queue: the caller changes and releases none of it, and destroys no object
 * that run() uses. done() is called exactly once. If the sink is closed before that, the
 * NIC's thread calls done(), and its status is UCS_ERR_CANCELED: it must only release the
 * command then.
 *
 * The thread starts with the first command, and sleeps without one. A child process has
 * no such thread: it runs its commands itself.
 */
#ifndef UCT_VARUNA_CMD_H_
#define UCT_VARUNA_CMD_H_

#include <uct/ib/varuna/core/varuna_def.h>

#include <ucs/datastruct/list.h>
#include <ucs/time/time.h>
#include <pthread.h>

/* Seconds: a NIC that has not answered a command after that time hangs. It takes
 * milliseconds at most, except for registering much memory. */
#define UCT_VARUNA_CMD_HUNG          20e-3

/* Seconds for which a command may wait for the thread, if the NIC does not hang: on a busy
 * machine the thread waits for a CPU */
#define UCT_VARUNA_CMD_START         1.0

/* Seconds for the command in progress when the queue is destroyed */
#define UCT_VARUNA_CMD_LINGER        1.0

typedef struct uct_varuna_cmd      uct_varuna_cmd_t;
typedef struct uct_varuna_cmd_sink uct_varuna_cmd_sink_t;
typedef struct uct_varuna_cmds     uct_varuna_cmds_t;

/** Gives the command, on the NIC's thread. @return what done() gets, or UCS_INPROGRESS:
 *  call this again, after what is in the queue. */
typedef ucs_status_t (*uct_varuna_cmd_run_t)(uct_varuna_cmd_t *cmd);

/** The command is over. UCS_ERR_TIMED_OUT: it was not given, because the deadline passed
 *  before; UCS_ERR_CANCELED: nobody waits for it any more. */
typedef void (*uct_varuna_cmd_done_t)(uct_varuna_cmd_t *cmd, ucs_status_t status);

/* A part of the caller's structure */
struct uct_varuna_cmd {
    ucs_list_link_t            list;
    uct_varuna_cmd_run_t       run;
    uct_varuna_cmd_done_t      done;
    uct_varuna_cmd_sink_t      *sink;
    ucs_time_t                 deadline;   /* To be given until then; 0: no limit */
    ucs_time_t                 since;      /* When it was queued */
    ucs_time_t                 begun_at;   /* 0: the thread has not begun it */
    ucs_status_t               status;     /* Filled by the thread */
};

/* Where commands of all NICs come back to, one for each interface. */
struct uct_varuna_cmd_sink {
    pthread_mutex_t            lock;       /* Protects the list */
    ucs_list_link_t            list;       /* Commands that are over */
    int                        fd;         /* Readable if there may be some */
};

/** @param [in] name  Of the NIC, for messages. Must live as long as the queue. */
ucs_status_t uct_varuna_cmds_create(const char *name, uct_varuna_cmds_t **cmds_p);

/**
 * Cancel what waits, and end the thread. A command in progress has UCT_VARUNA_CMD_LINGER
 * seconds; a thread that hangs for longer is left alone, with a message.
 *
 * @return UCS_ERR_BUSY if the thread was left alone: nothing that its command may use can
 *         be released.
 */
ucs_status_t uct_varuna_cmds_destroy(uct_varuna_cmds_t *cmds);

/** Queue a command. Any thread. The caller has filled run, done, sink and deadline. */
void uct_varuna_cmds_submit(uct_varuna_cmds_t *cmds, uct_varuna_cmd_t *cmd);

/** @return Nonzero if a command of this NIC has been in progress for too long. Any
 *  thread. */
int uct_varuna_cmds_is_hung(uct_varuna_cmds_t *cmds);

/**
 * Whether a queued command may soon come back. The NIC has @a patience to answer it. If
 * the thread has not begun it though the NIC does not hang, the thread lacks a CPU, and
 * has UCT_VARUNA_CMD_START more. Any thread.
 */
int uct_varuna_cmds_may_answer(uct_varuna_cmds_t *cmds, const uct_varuna_cmd_t *cmd,
                               ucs_time_t patience);

/** Run a command in this thread, and call done(). */
void uct_varuna_cmd_run_now(uct_varuna_cmd_t *cmd);

ucs_status_t uct_varuna_cmd_sink_init(uct_varuna_cmd_sink_t *sink);

/**
 * No command of the sink comes back any more. Those that wait are canceled. One in
 * progress has UCT_VARUNA_CMD_LINGER seconds; after that its done() is called when it is
 * over.
 *
 * @return UCS_ERR_BUSY if one is still in progress: nothing that it uses can be released.
 */
ucs_status_t uct_varuna_cmd_sink_detach(uct_varuna_cmd_sink_t *sink,
                                        uct_varuna_cmds_t *cmds);

/** Call done() of what came back. */
void uct_varuna_cmd_sink_dispatch(uct_varuna_cmd_sink_t *sink);

/** All queues have been detached. */
void uct_varuna_cmd_sink_cleanup(uct_varuna_cmd_sink_t *sink);

#endif
