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

enum {
    CTL_OK,
    CTL_FAILED, /* A process refused or did not answer */
    CTL_USAGE
};

typedef struct {
    char dir[PATH_MAX];
    char request[UCT_VARUNA_ADMIN_REQUEST_MAX];
    int  answered;
    int  status;
} ctl_t;


static void ctl_usage(FILE *stream)
{
    fprintf(stream,
            "Controls processes that use the UCX transport rc_varuna.\n"
            "\n"
            "Usage: " CTL_PROGRAM " [-d DIR] PID|--all COMMAND\n"
            "       " CTL_PROGRAM " [-d DIR] --list\n"
            "\n"
            "  link NAME down    do not use a link (mlx5_0:1): traffic moves away\n"
            "  link NAME fail    the same for a link that has failed: traffic recovers\n"
            "  link NAME up      use it again, unless it is known to be down\n"
            "  failover force    leave the best link, as if it had failed\n"
            "  failover revoke   undo all of the above immediately\n"
            "  status            show the links of each interface\n"
            "\n"
            "  -d, --dir DIR     directory of the sockets, UCX_RC_VARUNA_CTL_DIR of"
            " the processes\n"
            "  -l, --list        list the processes\n"
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

/* @return 0, or -1 after a message. */
static int ctl_ask(const ctl_t *ctl, const char *pid, int fd)
{
    char answer[UCT_VARUNA_ADMIN_ANSWER_MAX + 1];
    ssize_t length;

    /* EPIPE: the process closed the connection, and may have sent the reason */
    if ((send(fd, ctl->request, strlen(ctl->request), MSG_NOSIGNAL) < 0) &&
        (errno != EPIPE)) {
        fprintf(stderr, "%s: cannot send the command: %s\n", pid, strerror(errno));
        return -1;
    }

    length = recv(fd, answer, sizeof(answer) - 1, 0);
    if (length <= 0) {
        fprintf(stderr, "%s: no answer: %s\n", pid,
                (length == 0) ? "connection closed" : strerror(errno));
        return -1;
    }

    answer[length] = '\0';
    return ctl_print(pid, answer);
}

static void ctl_process(ctl_t *ctl, const char *pid, int must_exist)
{
    struct sockaddr_un addr;
    char path[PATH_MAX + 64];
    int fd;

    snprintf(path, sizeof(path), "%s/%s" UCT_VARUNA_ADMIN_SUFFIX, ctl->dir, pid);
    fd = ctl_connect(path, &addr);
    if (fd < 0) {
        if (errno == ECONNREFUSED) {
            unlink(path); /* The process was killed */
        }

        if (must_exist) {
            fprintf(stderr, "%s: no process that uses rc_varuna, or not one of "
                    "yours (%s: %s)\n", pid, path, strerror(errno));
            ctl->status = CTL_FAILED;
        }
        return;
    }

    ++ctl->answered;
    if (ctl->request[0] == '\0') {
        printf("%s\n", pid);
    } else if (ctl_ask(ctl, pid, fd) != 0) {
        ctl->status = CTL_FAILED;
    }
    close(fd);
}

static void ctl_all(ctl_t *ctl)
{
    const size_t suffix_length = strlen(UCT_VARUNA_ADMIN_SUFFIX);
    char pid[32];
    struct dirent *entry;
    size_t length;
    DIR *dir;

    dir = opendir(ctl->dir);
    if (dir == NULL) {
        return; /* No process has created it */
    }

    while ((entry = readdir(dir)) != NULL) {
        length = strlen(entry->d_name);
        if ((length > suffix_length) &&
            ((length - suffix_length) < sizeof(pid)) &&
            !strcmp(entry->d_name + length - suffix_length,
                    UCT_VARUNA_ADMIN_SUFFIX)) {
            snprintf(pid, sizeof(pid), "%.*s", (int)(length - suffix_length),
                     entry->d_name);
            ctl_process(ctl, pid, 0);
        }
    }
    closedir(dir);
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

static int ctl_is_pid(const char *text)
{
    return (text[0] != '\0') && (strspn(text, "0123456789") == strlen(text));
}

static int ctl_run(ctl_t *ctl, int is_list, int is_all, int argc, char **argv)
{
    const char *pid = NULL;

    if (!is_list && !is_all) {
        if ((argc == 0) || !ctl_is_pid(argv[0])) {
            fprintf(stderr, CTL_PROGRAM ": no process given: name a PID or "
                    "--all\n");
            return CTL_USAGE;
        }
        pid = *argv++;
        --argc;
    }

    if (is_list ? (argc != 0) : (ctl_set_request(ctl, argc, argv) != 0)) {
        fprintf(stderr, CTL_PROGRAM ": no valid command; see --help\n");
        return CTL_USAGE;
    }

    if (pid != NULL) {
        ctl_process(ctl, pid, 1);
        return ctl->status;
    }

    ctl_all(ctl);
    if (!is_list && (ctl->answered == 0)) {
        fprintf(stderr, CTL_PROGRAM ": no process has a socket in %s\n",
                ctl->dir);
        return CTL_FAILED;
    }

    return ctl->status;
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
    int is_all  = 0;
    int is_list = 0;
    ctl_t ctl   = {.status = CTL_OK};
    int opt;

    uct_varuna_admin_default_dir(ctl.dir, sizeof(ctl.dir));
    while ((opt = getopt_long(argc, argv, "+ad:lVh", options, NULL)) != -1) {
        switch (opt) {
        case 'a':
            is_all = 1;
            break;
        case 'd':
            snprintf(ctl.dir, sizeof(ctl.dir), "%s", optarg);
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

    return ctl_run(&ctl, is_list, is_all, argc - optind, argv + optind);
}
