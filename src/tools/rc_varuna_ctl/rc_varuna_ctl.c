/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Reports link faults to processes that use the transport rc_varuna, and shows the
 * state of their links. See rc_varuna_ctl(1).
 */
#ifdef HAVE_CONFIG_H
#  include "rc_varuna_build.h"
#endif

#include <uct/ib/varuna/iface/varuna_admin_proto.h>

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define CTL_PROGRAM "rc_varuna_ctl"
#define CTL_TIMEOUT 5 /* Seconds; a stopped process does not answer */
#define CTL_AGAIN   10000 /* Microseconds until a process that is busy is asked again */

enum {
    CTL_OK,
    CTL_FAILED, /* A process refused or did not answer */
    CTL_USAGE
};

/* What uses rc_varuna. Processes of containers that share the directory may have one pid */
typedef struct {
    char name[64]; /* Of the socket: its pid and more, or else its pid only */
    int  pid_length;
    int  is_named; /* Shown by its name, as another one has its pid */
} ctl_process_t;

typedef struct {
    char          dir[PATH_MAX];
    char          request[UCT_VARUNA_ADMIN_REQUEST_MAX];
    ctl_process_t *processes;
    unsigned      num_processes;
    int           status;
} ctl_t;


static void ctl_usage(FILE *stream)
{
    fprintf(stream,
            "Controls processes that use the UCX transport rc_varuna.\n"
            "\n"
            "Usage: " CTL_PROGRAM " [-d DIR] PID|NAME|--all COMMAND\n"
            "       " CTL_PROGRAM " [-d DIR] --list\n"
            "\n"
            "  link NAME down    do not use a link (mlx5_0:1): traffic moves away\n"
            "  link NAME fail    the same for a link that has failed: traffic recovers\n"
            "  link NAME up      use it again, unless it is known to be down\n"
            "  nic NAME remove   close a NIC (mlx5_0) when traffic has left it\n"
            "  nic NAME add      open it again, and use it\n"
            "  failover force    leave the best link, as if it had failed\n"
            "  failover revoke   undo all of the above immediately\n"
            "  status            show the links of each interface\n"
            "\n"
            "  -d, --dir DIR     directory of the sockets (UCX_RC_VARUNA_CTL_DIR)\n"
            "  -l, --list        list the processes: their PIDs, or NAMEs where a PID is"
            " not unique\n"
            "  -V, --version     show the version\n"
            "  -h, --help        show this help\n"
            "\n"
            "Exit status: 0 if all processes obeyed, 1 if one did not or none was "
            "found, 2 for\na wrong command line.\n");
}

static int ctl_connect(const char *path, struct sockaddr_un *addr)
{
    struct timeval timeout = {.tv_sec = CTL_TIMEOUT};
    int fd;

    addr->sun_family = AF_UNIX;
    if (snprintf(addr->sun_path, sizeof(addr->sun_path), "%s", path) >=
        (int)sizeof(addr->sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }

    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (connect(fd, (struct sockaddr*)addr, sizeof(*addr)) != 0) {
        close(fd);
        return -1;
    }

    return fd;
}

/* Print each line of the answer after the number of the process. */
static int ctl_print(const char *pid, char *answer)
{
    const size_t ok_length = strlen(UCT_VARUNA_ADMIN_OK);
    char *line, *rest;

    if (strncmp(answer, UCT_VARUNA_ADMIN_OK, ok_length)) {
        fprintf(stderr, "%s: %s", pid, answer);
        return -1;
    }

    for (line = strtok_r(answer + ok_length, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        printf("pid=%s %s\n", pid, line);
    }

    return 0;
}

/* @return 0 with an answer, or -1 after a message. */
static int ctl_ask_once(const ctl_t *ctl, const char *pid, int fd, char *answer, size_t size)
{
    ssize_t length;

    /* EPIPE: the process closed the connection, and may have sent the reason */
    if ((send(fd, ctl->request, strlen(ctl->request), MSG_NOSIGNAL) < 0) &&
        (errno != EPIPE)) {
        fprintf(stderr, "%s: cannot send the command: %s\n", pid, strerror(errno));
        return -1;
    }

    length = recv(fd, answer, size - 1, 0);
    if (length <= 0) {
        fprintf(stderr, "%s: no answer: %s\n", pid,
                (length == 0) ? "connection closed" : strerror(errno));
        return -1;
    }

    answer[length] = '\0';
    return 0;
}

/* Whether the words name this process. NULL: all */
static int ctl_is_meant(const ctl_process_t *process, const char *words)
{
    return (words == NULL) || !strcmp(process->name, words) ||
           ((strlen(words) == (size_t)process->pid_length) &&
            !strncmp(process->name, words, process->pid_length));
}

/* A socket gets its name when it listens, so its process is gone if nobody does. No other
 * one will have that name. @return The connection, -1: the process is gone, or can't be
 * reached, which fails. */
static int ctl_open(ctl_t *ctl, const ctl_process_t *process)
{
    char path[PATH_MAX + sizeof(process->name) + sizeof(UCT_VARUNA_ADMIN_SUFFIX)];
    struct sockaddr_un addr;
    int fd;

    snprintf(path, sizeof(path), "%s/%s" UCT_VARUNA_ADMIN_SUFFIX, ctl->dir,
             process->name);
    fd = ctl_connect(path, &addr);
    if ((fd < 0) && (errno == ECONNREFUSED)) {
        unlink(path);
    } else if ((fd < 0) && (errno != ENOENT)) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        ctl->status = CTL_FAILED;
    }

    return fd;
}

/* It is connected now, and not with all others: a process leaves a connection without a
 * request. Each answer ends one. @return 0, or -1 after a message. */
static int ctl_ask(ctl_t *ctl, const char *pid, const ctl_process_t *process)
{
    unsigned tries = CTL_TIMEOUT * 1000000 / CTL_AGAIN;
    char answer[UCT_VARUNA_ADMIN_ANSWER_MAX + 1];
    int fd, ret;

    while (1) {
        fd = ctl_open(ctl, process);
        if (fd < 0) {
            fprintf(stderr, "%s: ended before it answered\n", pid);
            return -1;
        }

        ret = ctl_ask_once(ctl, pid, fd, answer, sizeof(answer));
        close(fd);
        if (ret != 0) {
            return ret;
        } else if (strcmp(answer, UCT_VARUNA_ADMIN_BUSY) || (--tries == 0)) {
            return ctl_print(pid, answer);
        }

        usleep(CTL_AGAIN);
    }
}

static void ctl_add(ctl_t *ctl, const ctl_process_t *process)
{
    ctl_process_t *other;

    ctl->processes = realloc(ctl->processes,
                             (ctl->num_processes + 1) * sizeof(*ctl->processes));
    if (ctl->processes == NULL) {
        perror(CTL_PROGRAM);
        exit(CTL_FAILED);
    }

    other  = &ctl->processes[ctl->num_processes++];
    *other = *process;
}

/* @return Whether it is the name of a socket. */
static int ctl_parse_name(const char *entry, ctl_process_t *process)
{
    const size_t suffix_length = strlen(UCT_VARUNA_ADMIN_SUFFIX);
    size_t length              = strlen(entry);

    if ((length <= suffix_length) || (length - suffix_length >= sizeof(process->name)) ||
        strcmp(entry + length - suffix_length, UCT_VARUNA_ADMIN_SUFFIX)) {
        return 0;
    }

    snprintf(process->name, sizeof(process->name), "%.*s", (int)(length - suffix_length),
             entry);
    process->pid_length = strspn(process->name, "0123456789");
    process->is_named   = 0;
    return process->pid_length > 0;
}

static void ctl_mark_equal_pids(ctl_t *ctl)
{
    ctl_process_t *a, *b, *end = ctl->processes + ctl->num_processes;

    for (a = ctl->processes; a < end; ++a) {
        for (b = ctl->processes; b < end; ++b) {
            if ((a != b) && (a->pid_length == b->pid_length) &&
                !strncmp(a->name, b->name, a->pid_length)) {
                a->is_named = 1;
            }
        }
    }
}

/* The processes that live */
static void ctl_find(ctl_t *ctl, const char *words)
{
    ctl_process_t process;
    struct dirent *entry;
    DIR *dir;
    int fd;

    dir = opendir(ctl->dir);
    if (dir == NULL) {
        return; /* No process has created it */
    }

    while ((entry = readdir(dir)) != NULL) {
        if (ctl_parse_name(entry->d_name, &process) && ctl_is_meant(&process, words) &&
            ((fd = ctl_open(ctl, &process)) >= 0)) {
            close(fd);
            ctl_add(ctl, &process);
        }
    }
    closedir(dir);
    ctl_mark_equal_pids(ctl);
}

static void ctl_command(ctl_t *ctl)
{
    ctl_process_t *process;
    char shown[sizeof(process->name)];
    unsigned i;

    for (i = 0; i < ctl->num_processes; ++i) {
        process = &ctl->processes[i];
        snprintf(shown, sizeof(shown), "%.*s",
                 process->is_named ? (int)sizeof(shown) : process->pid_length,
                 process->name);
        if (ctl->request[0] == '\0') {
            printf("%s\n", shown);
        } else if (ctl_ask(ctl, shown, process) != 0) {
            ctl->status = CTL_FAILED;
        }
    }
    free(ctl->processes);
}

/* Join the words of the command in one line. */
static int ctl_set_request(ctl_t *ctl, int argc, char **argv)
{
    size_t length = 0;
    int i;

    for (i = 0; i < argc; ++i) {
        length += snprintf(ctl->request + length, sizeof(ctl->request) - length,
                           "%s%s", (i == 0) ? "" : " ", argv[i]);
        if (length >= sizeof(ctl->request)) {
            return -1;
        }
    }

    return (length > 0) ? 0 : -1;
}

/* A PID, or the name of a socket */
static int ctl_is_process(const char *words)
{
    return (strspn(words, "0123456789") > 0) && (strchr(words, '/') == NULL);
}

static int ctl_run(ctl_t *ctl, int is_list, int is_all, int argc, char **argv)
{
    const char *words = NULL;

    if (!is_list && !is_all) {
        if ((argc == 0) || !ctl_is_process(argv[0])) {
            fprintf(stderr, CTL_PROGRAM ": no process given: name a PID or "
                    "--all\n");
            return CTL_USAGE;
        }
        words = *argv++;
        --argc;
    }

    if (is_list ? (argc != 0) : (ctl_set_request(ctl, argc, argv) != 0)) {
        fprintf(stderr, CTL_PROGRAM ": no valid command; see --help\n");
        return CTL_USAGE;
    }

    ctl_find(ctl, words);
    if (!is_list && (ctl->num_processes == 0)) {
        fprintf(stderr, "%s: no process%s that uses rc_varuna, or not one of yours, has a "
                "socket in %s\n", (words == NULL) ? CTL_PROGRAM : words,
                (words == NULL) ? "" : " of this name", ctl->dir);
        return CTL_FAILED;
    }

    ctl_command(ctl);
    return ctl->status;
}

/* @return Whether there is a directory. */
static int ctl_set_dir(ctl_t *ctl, const char *option)
{
    if (option == NULL) {
        option = getenv(UCT_VARUNA_ADMIN_DIR_ENV);
    }

    if ((option != NULL) && !strcmp(option, UCT_VARUNA_ADMIN_DIR_NONE)) {
        fprintf(stderr, CTL_PROGRAM ": processes have no sockets with "
                UCT_VARUNA_ADMIN_DIR_ENV "=none\n");
        return 0;
    }

    if (uct_varuna_admin_dir((option == NULL) ? UCT_VARUNA_ADMIN_DIR_AUTO : option,
                             ctl->dir, sizeof(ctl->dir)) >= (int)sizeof(ctl->dir)) {
        fprintf(stderr, CTL_PROGRAM ": the name of the directory is too long\n");
        return 0;
    }

    return 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"all",     no_argument,       NULL, 'a'},
        {"dir",     required_argument, NULL, 'd'},
        {"list",    no_argument,       NULL, 'l'},
        {"version", no_argument,       NULL, 'V'},
        {"help",    no_argument,       NULL, 'h'},
        {NULL,      0,                 NULL, 0}
    };
    const char *dir = NULL;
    int is_all      = 0;
    int is_list     = 0;
    ctl_t ctl       = {.status = CTL_OK};
    int opt;

    while ((opt = getopt_long(argc, argv, "+ad:lVh", options, NULL)) != -1) {
        switch (opt) {
        case 'a':
            is_all = 1;
            break;
        case 'd':
            dir = optarg;
            break;
        case 'l':
            is_list = 1;
            break;
        case 'V':
            printf(CTL_PROGRAM " %s\n", PACKAGE_VERSION);
            return CTL_OK;
        case 'h':
            ctl_usage(stdout);
            return CTL_OK;
        default:
            return CTL_USAGE;
        }
    }

    if (!ctl_set_dir(&ctl, dir)) {
        return CTL_FAILED;
    }

    return ctl_run(&ctl, is_list, is_all, argc - optind, argv + optind);
}
