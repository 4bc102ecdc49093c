/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The target of atomics is a runtime that finds null pointers by SIGSEGV: its handler ends by
 * a jump, and takes any other fault for a mistake.
 *
 *     ft_ucp_null server FILE before|after [altstack]
 *                                writes its address to FILE; its handler is installed before
 *                                UCP is opened, or after the first atomics. For each line of
 *                                its input, it checks pointers ("ft: checked COUNT")
 *     ft_ucp_null client FILE    for each line of its input, adds to a word of the server's
 *                                ("ft: added SUM"), or is refused ("ft: refused")
 *
 * At its second line the server takes all access to the word away.
 */
#include "ft_ucp.h"

#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FT_PAGE 65536

static sigjmp_buf ft_jump;
static volatile int ft_is_checking;

static void ft_handler(int signum, siginfo_t *info, void *context)
{
    static const char message[] = "ft: a fault that is not of the runtime\n";

    if (!ft_is_checking || ((uintptr_t)info->si_addr >= 4096)) {
        if (write(STDOUT_FILENO, message, sizeof(message) - 1)) {
            _exit(3);
        }
        _exit(3);
    }

    ft_is_checking = 0;
    siglongjmp(ft_jump, 1);
}

static void ft_install(int has_stack)
{
    struct sigaction act = {
        .sa_sigaction = ft_handler,
        .sa_flags     = SA_SIGINFO | (has_stack ? SA_ONSTACK : 0)
    };
    static uint8_t memory[65536];
    stack_t stack        = {.ss_sp = memory, .ss_size = sizeof(memory)};

    if (has_stack) {
        sigaltstack(&stack, NULL);
    }
    sigaction(SIGSEGV, &act, NULL);
}

static void ft_check_pointers(void)
{
    static int *volatile pointer;
    static volatile int count;
    volatile int i;

    for (i = 0; i < 5; ++i) {
        if (sigsetjmp(ft_jump, 1) == 0) {
            ft_is_checking = 1;
            *pointer       = 1;
            printf("ft: no fault at all\n");
            exit(3);
        }
        ++count;
    }

    printf("ft: checked %d\n", count);
    fflush(stdout);
}

/* @return Whether there is a line, and not the end. */
static int ft_await_line(ft_ucp_t *ucp)
{
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;

    while (poll(&pfd, 1, 0) == 0) {
        ucp_worker_progress(ucp->worker);
    }

    return read(STDIN_FILENO, &byte, 1) == 1;
}

static void ft_serve(ft_ucp_t *ucp, const char *path, int is_before, int has_stack)
{
    void *page                  = mmap(NULL, FT_PAGE, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = page,
        .length     = FT_PAGE
    };
    ucp_mem_h memh;
    int i;

    ft_check_status(ucp_mem_map(ucp->context, &params, &memh), "ucp_mem_map");
    ft_ucp_publish(ucp, memh, page, path);
    for (i = 0; ft_await_line(ucp); ++i) {
        if ((i == 0) && !is_before) {
            ft_install(has_stack);
        } else if (i == 1) {
            mprotect(page, FT_PAGE, PROT_NONE);
        }
        ft_check_pointers();
    }

    ucp_mem_unmap(ucp->context, memh);
}

static void ft_add(ft_ucp_t *ucp)
{
    uint64_t result           = 0, one = 1;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                        UCP_OP_ATTR_FIELD_REPLY_BUFFER,
        .datatype     = ucp_dt_make_contig(8),
        .reply_buffer = &result
    };
    ucs_status_t status;
    void *request;

    request = ucp_atomic_op_nbx(ucp->ep, UCP_ATOMIC_OP_ADD, &one, 1, ucp->owner.address,
                                ucp->rkey, &param);
    do {
        ucp_worker_progress(ucp->worker);
        status = UCS_PTR_IS_PTR(request) ? ucp_request_check_status(request) :
                 UCS_PTR_STATUS(request);
    } while (status == UCS_INPROGRESS);
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }

    if (status == UCS_OK) {
        printf("ft: added %" PRIu64 "\n", result + 1);
    } else {
        printf("ft: refused: %s\n", ucs_status_string(status));
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int is_server = (argc >= 4) && !strcmp(argv[1], "server");
    int has_stack = (argc == 5);
    static ft_ucp_t ucp;

    if (!is_server && ((argc != 3) || strcmp(argv[1], "client"))) {
        printf("usage: ft_ucp_null server FILE before|after [altstack], "
               "ft_ucp_null client FILE\n");
        return 2;
    }

    if (is_server && !strcmp(argv[3], "before")) {
        ft_install(has_stack);
        ft_check_pointers();
    }

    ft_ucp_open(&ucp, 0);
    if (is_server) {
        ft_serve(&ucp, argv[2], !strcmp(argv[3], "before"), has_stack);
    } else {
        ft_ucp_connect(&ucp, argv[2]);
        while (ft_await_line(&ucp)) {
            ft_add(&ucp);
        }
        ucp_rkey_destroy(ucp.rkey);
    }
    ft_ucp_close(&ucp);
    printf("ft: ok\n");
    return 0;
}
