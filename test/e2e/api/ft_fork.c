/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A server that forks, and a client that adds to its words.
 *
 *     ft_fork server FILE    writes its address to FILE. Commands of its input, one a line:
 *         exit, _exit        a child opens UCP, and ends so
 *         grandchild         a child forks, and its child opens UCP and ends by exit()
 *         serve              a child opens UCP, writes its address to FILE.child, and computes
 *                            until the server's input ends: it calls no progress
 *         callback           the next message of a client forks, in its callback
 *         handler            UCX's async thread forks, in a handler
 *         blocked            fork with UCX's async context blocked
 *         storm              as "handler", while this thread forks again and again
 *         compute            call no progress until the next command
 *     ft_fork client FILE    "add COUNT": fetch and add, each result must be the one before
 *                            plus 1. "message": send one
 *
 * Each command is answered by "ft: ok COMMAND", or the program ends.
 */
#include "ft_ucp.h"

#include <ucs/async/async.h>
#include <ucp/core/ucp_worker.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define FT_MESSAGE 7
#define FT_STORM   6
#define FT_WORDS   4096

static ft_ucp_t ft;
static const char *ft_path;
static volatile int ft_forks_at_message, ft_num_forks;

/* A child of a fork that is only to return */
static void ft_fork_and_wait(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        _exit(0);
    }

    if ((pid < 0) || (waitpid(pid, &status, 0) != pid) || (status != 0)) {
        ft_die("a forked process");
    }
    __atomic_fetch_add(&ft_num_forks, 1, __ATOMIC_SEQ_CST);
}

static ucs_status_t ft_receive(void *arg, const void *header, size_t header_length,
                               void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    if (ft_forks_at_message) {
        ft_forks_at_message = 0;
        ft_fork_and_wait();
    }
    return UCS_OK;
}

static void ft_open(const char *path)
{
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id         = FT_MESSAGE,
        .cb         = ft_receive
    };
    ucp_mem_map_params_t params    = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length     = FT_WORDS,
        .flags      = UCP_MEM_MAP_ALLOCATE
    };
    ucp_mem_attr_t attr            = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    ucp_mem_h memh;

    memset(&ft, 0, sizeof(ft));
    ft_ucp_open(&ft, UCP_FEATURE_AM);
    ft_check_status(ucp_worker_set_am_recv_handler(ft.worker, &handler),
                    "ucp_worker_set_am_recv_handler");
    ft_check_status(ucp_mem_map(ft.context, &params, &memh), "ucp_mem_map");
    ft_check_status(ucp_mem_query(memh, &attr), "ucp_mem_query");
    memset(attr.address, 0, FT_WORDS);
    ft_ucp_publish(&ft, memh, attr.address, path);
}

/* In the child */
static void ft_child(const char *how)
{
    static char path[512];
    int status;
    pid_t pid;

    alarm(300); /* Only ends a hang */
    snprintf(path, sizeof(path), "%s.child", ft_path);
    if (!strcmp(how, "grandchild")) {
        pid = fork();
        if (pid != 0) {
            _exit((waitpid(pid, &status, 0) == pid) && (status == 0) ? 0 : 1);
        }
    }

    ft_open(path);
    printf("ft: child %d is open\n", getpid());
    fflush(stdout);
    if (!strcmp(how, "serve")) {
        while (poll(&(struct pollfd){.fd = STDIN_FILENO}, 1, 100) == 0);
    } else if (!strcmp(how, "_exit")) {
        _exit(0);
    }
    exit(0);
}

static void ft_handler(int fd, ucs_event_set_types_t events, void *arg)
{
    uint64_t count;

    if (read(fd, &count, sizeof(count)) > 0) {
        ft_fork_and_wait();
    }
}

/* UCX's async thread forks; meanwhile this one does so @a storm times */
static void ft_fork_in_handler(int storm)
{
    uint64_t one = 1;
    int fd       = eventfd(0, EFD_NONBLOCK), before = ft_num_forks, i;

    ft_check_status(ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK, fd,
                                                UCS_EVENT_SET_EVREAD, ft_handler, NULL, NULL),
                    "ucs_async_set_event_handler");
    for (i = 0; i < (storm ? storm : 1); ++i) {
        if (write(fd, &one, sizeof(one)) != sizeof(one)) {
            ft_die("eventfd");
        }
        if (storm) {
            ft_fork_and_wait();
        }
    }
    while (ft_num_forks <= before + storm) {
        usleep(1000);
    }
    ucs_async_remove_handler(fd, 1);
    close(fd);
}

static pid_t ft_serving;

static void ft_serve(char *command)
{
    int status;
    pid_t pid;

    if (!strcmp(command, "callback")) {
        ft_forks_at_message = 1;
    } else if (!strcmp(command, "handler") || !strcmp(command, "storm")) {
        ft_fork_in_handler(!strcmp(command, "storm") ? FT_STORM : 0);
    } else if (!strcmp(command, "blocked")) {
        UCS_ASYNC_BLOCK(&ft.worker->async);
        ft_fork_and_wait();
        UCS_ASYNC_UNBLOCK(&ft.worker->async);
    } else if (strcmp(command, "compute")) {
        pid = fork();
        if (pid == 0) {
            ft_child(command);
        } else if (!strcmp(command, "serve")) {
            ft_serving = pid;
        } else if ((waitpid(pid, &status, 0) != pid) || (status != 0)) {
            ft_die("the child ended with 0x%x", status);
        }
    }
}

static uint64_t ft_added;

static void ft_add(unsigned count)
{
    uint64_t result = 0, one = 1;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
        .datatype     = ucp_dt_make_contig(8),
        .reply_buffer = &result
    };

    for (; count > 0; --count) {
        ft_ucp_wait(&ft, ucp_atomic_op_nbx(ft.ep, UCP_ATOMIC_OP_ADD, &one, 1,
                                           ft.owner.address, ft.rkey, &param), "add");
        if (result != ft_added++) {
            printf("ft: wrong result %" PRIu64 " instead of %" PRIu64 "\n", result,
                   ft_added - 1);
            exit(1);
        }
    }
}

static void ft_call(char *command)
{
    static uint64_t header;
    ucp_request_param_t param = {.op_attr_mask = 0};

    if (!strncmp(command, "add ", 4)) {
        ft_add(atoi(command + 4));
    } else {
        ft_ucp_wait(&ft, ucp_am_send_nbx(ft.ep, FT_MESSAGE, &header, sizeof(header), NULL,
                                         0, &param), "send");
        ft_ucp_wait(&ft, ucp_ep_flush_nbx(ft.ep, &param), "flush");
    }
}

int main(int argc, char **argv)
{
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
    int computes      = 0, is_server;
    char line[64];

    if ((argc != 3) || (strcmp(argv[1], "server") && strcmp(argv[1], "client"))) {
        printf("usage: ft_fork server|client FILE\n");
        return 2;
    }

    is_server = !strcmp(argv[1], "server");
    ft_path   = argv[2];
    setvbuf(stdin, NULL, _IONBF, 0);
    if (is_server) {
        ft_open(ft_path);
    } else {
        ft_ucp_open(&ft, UCP_FEATURE_AM);
        ft_ucp_connect(&ft, ft_path);
    }

    while (1) {
        while (poll(&pfd, 1, computes ? -1 : 0) == 0) {
            ucp_worker_progress(ft.worker);
        }
        if (fgets(line, sizeof(line), stdin) == NULL) {
            break;
        }

        line[strcspn(line, "\n")] = '\0';
        computes                  = !strcmp(line, "compute");
        (is_server ? ft_serve : ft_call)(line);
        printf("ft: ok %s\n", line);
        fflush(stdout);
    }

    if (ft_serving != 0) {
        waitpid(ft_serving, NULL, 0);
    }
    printf("ft: %d forks, end\n", ft_num_forks);
    return 0; /* Without closing anything */
}
