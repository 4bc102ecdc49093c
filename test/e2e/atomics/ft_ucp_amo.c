/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics through UCP, as in an application: all operations, of 32 and 64 bits. Checks
 * each result and each word. The server makes no progress after it has published its
 * address, so UCP's software atomics, which need the target's progress, never complete.
 *
 *     ft_ucp_amo server FILE    writes its address to FILE, and waits for the end of
 *                               its input
 *     ft_ucp_amo client FILE    executes them, and prints "ft: ok N atomics"
 */
#include "ft_ucp.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    ft_ucp_t ucp;
    unsigned count;
} ft_work_t;

/* One operation: the word before, the operand, and the word after it */
typedef struct {
    const char      *name;
    ucp_atomic_op_t op;
    uint64_t        before;
    uint64_t        value;   /* CSWAP: the compare value */
    uint64_t        swap;    /* CSWAP only */
    uint64_t        after;
} ft_case_t;

/* Of 64 bits; 32-bit ones have the lower halves. Some have top bits as in UIDs that
 * rc_varuna writes */
static const ft_case_t ft_cases[] = {
    {"add", UCP_ATOMIC_OP_ADD, 0xfffffffffffffff0, 0x20, 0, 0x10},
    {"and", UCP_ATOMIC_OP_AND, 0xf0f0f0f0f0f0f0f0, 0x8181818181818181, 0,
     0x8080808080808080},
    {"or", UCP_ATOMIC_OP_OR, 0x80000000f0000001, 0x0a0a0a0a0a0a0a0a, 0,
     0x8a0a0a0afa0a0a0b},
    {"xor", UCP_ATOMIC_OP_XOR, 0x123456789abcdef0, 0xffffffffffffffff, 0,
     0xedcba9876543210f},
    {"swap", UCP_ATOMIC_OP_SWAP, 5, 0x8877665594433221, 0, 0x8877665594433221},
    {"cswap", UCP_ATOMIC_OP_CSWAP, 0x8877665594433221, 0x8877665594433221, 7, 7},
    {"cswap that fails", UCP_ATOMIC_OP_CSWAP, 7, 8, 9, 7}
};

/* --- Server --- */

static void ft_serve(ft_ucp_t *ucp, const char *path)
{
    static uint64_t words[2] __attribute__((aligned(4096)));
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = words,
        .length     = sizeof(words)
    };
    ucp_mem_h memh;
    char byte;

    ft_check_status(ucp_mem_map(ucp->context, &params, &memh), "ucp_mem_map");
    ft_ucp_publish(ucp, memh, words, path);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }

    ucp_mem_unmap(ucp->context, memh);
    printf("ft: ok\n");
}

/* --- Client --- */

static void ft_flush(ft_ucp_t *ucp)
{
    ucp_request_param_t param = {0};

    ft_ucp_wait(ucp, ucp_ep_flush_nbx(ucp->ep, &param), "flush");
}

static uint64_t ft_low(uint64_t value, unsigned width)
{
    return (width == 4) ? (uint32_t)value : value;
}

static void ft_expect(const ft_case_t *test, unsigned width, const char *what,
                      uint64_t value, uint64_t expected)
{
    expected = ft_low(expected, width);
    if (value != expected) {
        printf("ft: %s of %u bytes: %s is 0x%" PRIx64 ", not 0x%" PRIx64 "\n",
               test->name, width, what, value, expected);
        exit(1);
    }
}

/* Set the word by a PUT and read it by a GET, with flushes between */
static void ft_try(ft_work_t *work, const ft_case_t *test, unsigned width,
                   int fetch)
{
    ft_ucp_t *ucp             = &work->ucp;
    uint64_t reply            = test->swap;
    uint64_t result           = 0;
    ucp_request_param_t none  = {0};
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
        .datatype     = ucp_dt_make_contig(width)
    };

    if (fetch) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.reply_buffer  = &reply;
    }

    ft_ucp_wait(ucp, ucp_put_nbx(ucp->ep, &test->before, width, ucp->owner.address,
                             ucp->rkey, &none), "put");
    ft_flush(ucp);
    ft_ucp_wait(ucp, ucp_atomic_op_nbx(ucp->ep, test->op, &test->value, 1,
                                   ucp->owner.address, ucp->rkey, &param),
            test->name);
    ft_flush(ucp);
    ft_ucp_wait(ucp, ucp_get_nbx(ucp->ep, &result, width, ucp->owner.address,
                             ucp->rkey, &none), "get");
    if (fetch) {
        ft_expect(test, width, "result", ft_low(reply, width), test->before);
    }

    ft_expect(test, width, "word", result, test->after);
    ++work->count;
}

static void ft_work(ft_work_t *work, const char *path)
{
    const ft_case_t *test;
    unsigned width, i;

    ft_ucp_connect(&work->ucp, path);
    for (width = 4; width <= 8; width += 4) {
        for (i = 0; i < sizeof(ft_cases) / sizeof(ft_cases[0]); ++i) {
            test = &ft_cases[i];
            if ((test->op != UCP_ATOMIC_OP_SWAP) &&
                (test->op != UCP_ATOMIC_OP_CSWAP)) {
                ft_try(work, test, width, 0);
            }
            ft_try(work, test, width, 1);
        }
    }

    ucp_rkey_destroy(work->ucp.rkey);
    printf("ft: ok %u atomics\n", work->count);
}

int main(int argc, char **argv)
{
    static ft_work_t work;

    if ((argc != 3) || (strcmp(argv[1], "server") &&
                        strcmp(argv[1], "client"))) {
        printf("usage: ft_ucp_amo server|client FILE\n");
        return 2;
    }

    ft_ucp_open(&work.ucp, 0);
    if (!strcmp(argv[1], "server")) {
        ft_serve(&work.ucp, argv[2]);
    } else {
        ft_work(&work, argv[2]);
    }

    ft_ucp_close(&work.ucp);
    return 0;
}
