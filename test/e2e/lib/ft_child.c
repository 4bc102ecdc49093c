/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Start processes, send them commands and read their output.
 */
#include "ft_child.h"
#include "ft_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FT_OUTPUT_STEP 65536
#define FT_STOP_TIME   60 /* Seconds */


void ft_fatal(const char *format, ...)
{
    va_list ap;

    fflush(stdout);
    va_start(ap, format);
    fprintf(stderr, "fatal: ");
    vfprintf(stderr, format, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    exit(2);
}

static void ft_pipe(int fds[2])
{
    if (pipe2(fds, O_CLOEXEC) != 0) {
        ft_fatal("pipe: %s", strerror(errno));
    }
}

/* Fork and execute; in_fd and out_fd become the standard ones */
static pid_t ft_spawn(char *const argv[], int in_fd, int out_fd)
{
    pid_t parent = getpid();
    pid_t pid    = fork();

    if (pid < 0) {
        ft_fatal("fork: %s", strerror(errno));
    }

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if ((getppid() != parent) ||
            ((in_fd >= 0) && (dup2(in_fd, STDIN_FILENO) < 0)) ||
            (dup2(out_fd, STDOUT_FILENO) < 0)) {
            _exit(127);
        }

        execv(argv[0], argv);
        _exit(127);
    }

    return pid;
}

char *ft_command(char *const argv[], int *status_p)
{
    size_t size = 0, length = 0;
    char *output = NULL;
    int fds[2], status;
    ssize_t ret;
    pid_t pid;

    ft_pipe(fds);
    pid = ft_spawn(argv, -1, fds[1]);
    close(fds[1]);
    do {
        if (size - length < FT_OUTPUT_STEP / 2) {
            size  += FT_OUTPUT_STEP;
            output = realloc(output, size);
            if (output == NULL) {
                ft_fatal("out of memory");
            }
        }

        ret     = read(fds[0], output + length, size - length - 1);
        length += (ret > 0) ? ret : 0;
    } while ((ret > 0) || ((ret < 0) && (errno == EINTR)));

    close(fds[0]);
    output[length] = '\0';
    while ((waitpid(pid, &status, 0) < 0) && (errno == EINTR)) {
    }

    *status_p = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    return output;
}

/* Reads the job's output all the time: a job whose pipe is full would block while the
 * driver waits for another one */
static void *ft_child_read(void *arg)
{
    ft_child_t *child = arg;
    char buffer[FT_ANSWER_MAX];
    ssize_t ret;

    do {
        do {
            ret = read(child->out, buffer, sizeof(buffer));
        } while ((ret < 0) && (errno == EINTR));

        pthread_mutex_lock(&child->lock);
        if (ret > 0) {
            child->spool = realloc(child->spool, child->spooled + ret);
            if (child->spool == NULL) {
                ft_fatal("out of memory");
            }

            memcpy(child->spool + child->spooled, buffer, ret);
            child->spooled += ret;
        } else {
            child->eof = 1;
        }
        pthread_cond_signal(&child->more);
        pthread_mutex_unlock(&child->lock);
    } while (ret > 0);

    return NULL;
}

static void ft_child_end_reader(ft_child_t *child)
{
    pthread_cancel(child->reader);
    pthread_join(child->reader, NULL);
    pthread_mutex_destroy(&child->lock);
    pthread_cond_destroy(&child->more);
    free(child->spool);
    close(child->out);
}

/* Move some of what was read to the buffer, which has room. @return 0 if nothing
 * arrived until @a end, or the output has ended */
static int ft_child_take(ft_child_t *child, double end)
{
    struct timespec until = {.tv_sec  = (time_t)end,
                             .tv_nsec = (long)((end - (time_t)end) * 1e9)};
    size_t length;

    pthread_mutex_lock(&child->lock);
    while ((child->spooled == 0) && !child->eof &&
           (pthread_cond_timedwait(&child->more, &child->lock, &until) == 0)) {
    }

    length = sizeof(child->buffer) - child->length;
    length = (child->spooled < length) ? child->spooled : length;
    if (length > 0) {
        memcpy(child->buffer + child->length, child->spool, length);
        child->length  += length;
        child->spooled -= length;
        memmove(child->spool, child->spool + length, child->spooled);
    }
    pthread_mutex_unlock(&child->lock);
    return length > 0;
}

void ft_child_start(ft_child_t *child, const char *name, FILE *log,
                    char *const argv[])
{
    pthread_condattr_t attr;
    int to[2], from[2];

    ft_pipe(to);
    ft_pipe(from);
    memset(child, 0, sizeof(*child));
    child->name = name;
    child->log  = log;
    child->pid  = ft_spawn(argv, to[0], from[1]);
    child->in   = to[1];
    child->out  = from[0];
    close(to[0]);
    close(from[1]);

    pthread_mutex_init(&child->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* As ft_now() */
    pthread_cond_init(&child->more, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&child->reader, NULL, ft_child_read, child) != 0) {
        ft_fatal("pthread_create");
    }
}

void ft_child_send(ft_child_t *child, const char *format, ...)
{
    va_list ap;

    fprintf(child->log, "%s < ", child->name);
    va_start(ap, format);
    vfprintf(child->log, format, ap);
    va_end(ap);
    fprintf(child->log, "\n");

    va_start(ap, format);
    if ((vdprintf(child->in, format, ap) < 0) ||
        (write(child->in, "\n", 1) != 1)) {
        fprintf(child->log, "%s: %s\n", child->name, strerror(errno));
    }
    va_end(ap);
}

static unsigned ft_child_number(const char *line, const char *key)
{
    const char *at = strstr(line, key);

    return (at != NULL) ? strtoul(at + strlen(key), NULL, 10) : 0;
}

/* Count switches and errors in rc_varuna's log. An ambiguous operation whose target was
 * found to be equal is not repeated, so it is not ambiguous any more. */
static void ft_child_note(ft_child_t *child, const char *line)
{
    fprintf(child->log, "%s > %s\n", child->name, line);
    if (strstr(line, "rc_varuna: switched")) {
        ++child->switches;
        child->ambiguous += ft_child_number(line, " ambiguous=");
        if (strstr(line, " was=rc ")) {
            child->rc_ambiguous += ft_child_number(line, " ambiguous=");
        }

        child->equal     += ft_child_number(line, " equal=");
        child->different += ft_child_number(line, " different=");
    }

    child->moves += (strstr(line, "rc_varuna: atomics on memory of this process "
                            "move from") != NULL);

    if (!strstr(line, " ERROR ") && !strstr(line, " FATAL ")) {
        return;
    }

    if (!strstr(line, "varuna") && (strstr(line, "Input/output error") ||
                                    strstr(line, "catastrophic error"))) {
        ++child->nic_errors;
    } else {
        ++child->errors;
    }
}

/* Take the first line from the buffer. @return 0 if there is none */
static int ft_child_take_line(ft_child_t *child)
{
    char *newline = memchr(child->buffer, '\n', child->length);
    size_t length;

    if ((newline == NULL) && (child->length == sizeof(child->buffer))) {
        newline = child->buffer + sizeof(child->buffer) - 1;
    }

    if (newline == NULL) {
        return 0;
    }

    *newline = '\0';
    length   = newline + 1 - child->buffer;
    snprintf(child->answer, sizeof(child->answer), "%.*s",
             (int)sizeof(child->answer) - 1, child->buffer);
    child->length -= length;
    memmove(child->buffer, child->buffer + length, child->length);
    return 1;
}

const char *ft_child_answer(ft_child_t *child, double timeout)
{
    double end = ft_now() + timeout;

    do {
        while (ft_child_take_line(child)) {
            ft_child_note(child, child->answer);
            if (!strncmp(child->answer, "ft: ", 4) &&
                strncmp(child->answer, "ft: note", 8)) {
                return child->answer + 4;
            }
        }
    } while (ft_child_take(child, end));

    return NULL;
}

int ft_child_stop(ft_child_t *child)
{
    double end = ft_now() + FT_STOP_TIME;
    int status = 0;
    pid_t pid  = 0;

    if (child->pid == 0) {
        return 0;
    }

    close(child->in);
    while (ft_now() < end) {
        ft_child_answer(child, 0.02); /* Until all its output is read */
        pid = waitpid(child->pid, &status, WNOHANG);
        if (pid != 0) {
            break;
        }
    }

    if (pid != child->pid) {
        ft_child_stacks(child);
        ft_child_kill(child);
        return -1;
    }

    while (ft_child_answer(child, 0) != NULL) {
    }

    ft_child_end_reader(child);
    child->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void ft_child_stacks(ft_child_t *child)
{
    char pid[16];
    char *argv[] = {"/usr/bin/gdb", "-p", pid, "-batch", "-ex",
                    "thread apply all bt 16", NULL};
    char *text;
    int status;

    if (access(argv[0], X_OK) != 0) {
        return;
    }

    snprintf(pid, sizeof(pid), "%d", (int)child->pid);
    text = ft_command(argv, &status);
    fprintf(child->log, "stacks of the %s:\n%s\n", child->name, text);
    free(text);
}

void ft_child_kill(ft_child_t *child)
{
    int status;

    if (child->pid == 0) {
        return;
    }

    kill(child->pid, SIGKILL);
    waitpid(child->pid, &status, 0);
    ft_child_end_reader(child);
    child->pid = 0;
}
