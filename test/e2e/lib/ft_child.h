/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Processes that a driver starts: commands, whose output it reads, and jobs (ft_job),
 * to which it sends commands line by line.
 */
#ifndef FT_CHILD_H_
#define FT_CHILD_H_

#include <pthread.h>
#include <stdio.h>
#include <sys/types.h>

#define FT_MAX_ARGS   32
#define FT_ANSWER_MAX 4096

typedef struct {
    const char *name;
    pid_t      pid;
    int        in;          /* We write */
    int        out;         /* The reader reads */
    pthread_t  reader;      /* Reads at any time, so that the job never blocks */
    pthread_mutex_t lock;   /* Protects spool, spooled, eof */
    pthread_cond_t  more;   /* Signaled when these change */
    char       *spool;      /* Output that was read but not parsed */
    size_t     spooled;
    int        eof;
    FILE       *log;        /* All that it prints */
    size_t     length;
    char       buffer[2 * FT_ANSWER_MAX];
    char       answer[FT_ANSWER_MAX];
    unsigned   switches;    /* In rc_varuna's log since the last reset */
    unsigned   ambiguous;
    unsigned   rc_ambiguous; /* Of these, when RC failed */
    unsigned   equal;       /* Of these, executed: the target has the value */
    unsigned   different;   /* ... or unknown: it has another value */
    unsigned   moves;       /* Of the home NIC */
    unsigned   errors;      /* Lines of level ERROR and above */
    unsigned   nic_errors;  /* ... in which UCX says that a NIC is dead */
} ft_child_t;

/** End the driver with a message. */
void ft_fatal(const char *format, ...)
        __attribute__((format(printf, 1, 2), noreturn));

/** Run a command until it exits. @return Its standard output, to be freed.
 *  @param [out] status_p  Its exit status. */
char *ft_command(char *const argv[], int *status_p);

/** Start a job. */
void ft_child_start(ft_child_t *child, const char *name, FILE *log,
                    char *const argv[]);

/** Send a line to it. */
void ft_child_send(ft_child_t *child, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/** Wait at most @a timeout seconds for the next line that begins with "ft: ".
 *  @return The rest of this line, or NULL if there is none or the job has ended. */
const char *ft_child_answer(ft_child_t *child, double timeout);

/** Close its input and wait until it exits. @return Its exit status, 128 plus the
 *  signal that ended it, or -1 if it did not exit; its stacks are then in the log. */
int ft_child_stop(ft_child_t *child);

/** Write the stacks of all its threads to the log, if gdb is installed. */
void ft_child_stacks(ft_child_t *child);

/** Kill it. */
void ft_child_kill(ft_child_t *child);

#endif
