/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Processes that a driver starts: commands, whose output it reads, and jobs
 * (ft_job), with which it talks line by line.
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
    pthread_t  reader;      /* So that it never waits for us to read its log */
    pthread_mutex_t lock;   /* Protects the next ones */
    pthread_cond_t  more;   /* There is more of them */
    char       *spool;      /* What was read */
    size_t     spooled;
    int        eof;
    FILE       *log;        /* All that it prints */
    size_t     length;
    char       buffer[2 * FT_ANSWER_MAX];
    char       answer[FT_ANSWER_MAX];
    unsigned   switches;    /* As rc_varuna's log has it, since they were reset */
    unsigned   ambiguous;
    unsigned   rc_ambiguous; /* Of these, when RC failed */
    unsigned   equal;       /* Of these, as the target told: executed */
    unsigned   different;   /* ... or something else is there */
    unsigned   moves;       /* Of the home NIC of its atomics */
    unsigned   errors;      /* Lines of level ERROR and above */
    unsigned   nic_errors;  /* ... in which UCX says that a NIC is dead */
} ft_child_t;

/** End the driver with a message. */
void ft_fatal(const char *format, ...)
        __attribute__((format(printf, 1, 2), noreturn));

/** Run a command to its end. @return its standard output (to be freed), and its
 *  exit status in @a status_p. */
char *ft_command(char *const argv[], int *status_p);

/** Start a job. */
void ft_child_start(ft_child_t *child, const char *name, FILE *log,
                    char *const argv[]);

/** Tell it something. */
void ft_child_send(ft_child_t *child, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/** Wait for the next answer ("ft: ...", without that), for @a timeout seconds.
 *  @return NULL if there is none, or it has ended. */
const char *ft_child_answer(ft_child_t *child, double timeout);

/** Close its input and wait for its end. @return its exit status, 128 and the signal
 *  that ended it, or -1 if it did not end, and its stacks are in the log. */
int ft_child_stop(ft_child_t *child);

/** Write the stacks of all its threads to the log, if there is a debugger. */
void ft_child_stacks(ft_child_t *child);

/** Kill it. */
void ft_child_kill(ft_child_t *child);

#endif
