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
#include <ucp/api/ucp.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_BLOB_MAX 4096

typedef struct {
    uint64_t address;      /* Of the words */
    size_t   worker_length;
    size_t   rkey_length;
    uint8_t  worker[FT_BLOB_MAX];
    uint8_t  rkey[FT_BLOB_MAX];
} ft_server_t;

typedef struct {
    ucp_context_h context;
    ucp_worker_h  worker;
    ucp_ep_h      ep;
    ucp_rkey_h    rkey;
    ft_server_t   server;
    unsigned      count;
} ft_ucp_t;

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

static void ft_check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        printf("ft: %s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

static void ft_open(ft_ucp_t *ucp)
{
    ucp_params_t params               = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64
    };
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE
    };
    ucp_config_t *config;

    ft_check(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    ft_check(ucp_init(&params, config, &ucp->context), "ucp_init");
    ucp_config_release(config);
    ft_check(ucp_worker_create(ucp->context, &worker_params, &ucp->worker),
             "ucp_worker_create");
}

static void ft_close(ft_ucp_t *ucp)
{
    ucp_worker_destroy(ucp->worker);
    ucp_cleanup(ucp->context);
}

/* --- Server --- */

static void ft_copy(uint8_t *to, size_t *length_p, const void *from,
                    size_t length)
{
    if (length > FT_BLOB_MAX) {
        printf("ft: an address is too long\n");
        exit(1);
    }

    memcpy(to, from, length);
    *length_p = length;
}

static void ft_write(const ft_server_t *server, const char *path)
{
    char part[512];
    FILE *file;

    snprintf(part, sizeof(part), "%s.part", path);
    file = fopen(part, "w");
    if ((file == NULL) || (fwrite(server, sizeof(*server), 1, file) != 1) ||
        (fclose(file) != 0) || (rename(part, path) != 0)) {
        printf("ft: cannot write %s\n", path);
        exit(1);
    }
}

static void ft_serve(ft_ucp_t *ucp, const char *path)
{
    static uint64_t words[2] __attribute__((aligned(4096)));
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = words,
        .length     = sizeof(words)
    };
    ucp_address_t *address;
    void *rkey;
    ucp_mem_h memh;
    size_t length;
    char byte;

    ft_check(ucp_worker_get_address(ucp->worker, &address, &length),
             "ucp_worker_get_address");
    ft_copy(ucp->server.worker, &ucp->server.worker_length, address, length);
    ucp_worker_release_address(ucp->worker, address);

    ft_check(ucp_mem_map(ucp->context, &params, &memh), "ucp_mem_map");
    ft_check(ucp_rkey_pack(ucp->context, memh, &rkey, &length),
             "ucp_rkey_pack");
    ft_copy(ucp->server.rkey, &ucp->server.rkey_length, rkey, length);
    ucp_rkey_buffer_release(rkey);

    ucp->server.address = (uintptr_t)words;
    ft_write(&ucp->server, path);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }

    ucp_mem_unmap(ucp->context, memh);
    printf("ft: ok\n");
}

/* --- Client --- */

static void ft_wait(ft_ucp_t *ucp, void *request, const char *what)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        ft_check(UCS_PTR_STATUS(request), what);
        return;
    }

    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(ucp->worker);
    }

    ucp_request_free(request);
    ft_check(status, what);
}

static void ft_flush(ft_ucp_t *ucp)
{
    ucp_request_param_t param = {0};

    ft_wait(ucp, ucp_ep_flush_nbx(ucp->ep, &param), "flush");
}

static void ft_connect(ft_ucp_t *ucp, const char *path)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = (ucp_address_t*)ucp->server.worker
    };
    FILE *file             = fopen(path, "r");

    if ((file == NULL) ||
        (fread(&ucp->server, sizeof(ucp->server), 1, file) != 1)) {
        printf("ft: cannot read %s\n", path);
        exit(1);
    }

    fclose(file);
    ft_check(ucp_ep_create(ucp->worker, &params, &ucp->ep), "ucp_ep_create");
    ft_check(ucp_ep_rkey_unpack(ucp->ep, ucp->server.rkey, &ucp->rkey),
             "ucp_ep_rkey_unpack");
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
static void ft_try(ft_ucp_t *ucp, const ft_case_t *test, unsigned width,
                   int fetch)
{
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

    ft_wait(ucp, ucp_put_nbx(ucp->ep, &test->before, width, ucp->server.address,
                             ucp->rkey, &none), "put");
    ft_flush(ucp);
    ft_wait(ucp, ucp_atomic_op_nbx(ucp->ep, test->op, &test->value, 1,
                                   ucp->server.address, ucp->rkey, &param),
            test->name);
    ft_flush(ucp);
    ft_wait(ucp, ucp_get_nbx(ucp->ep, &result, width, ucp->server.address,
                             ucp->rkey, &none), "get");
    if (fetch) {
        ft_expect(test, width, "result", ft_low(reply, width), test->before);
    }

    ft_expect(test, width, "word", result, test->after);
    ++ucp->count;
}

static void ft_work(ft_ucp_t *ucp, const char *path)
{
    const ft_case_t *test;
    unsigned width, i;

    ft_connect(ucp, path);
    for (width = 4; width <= 8; width += 4) {
        for (i = 0; i < sizeof(ft_cases) / sizeof(ft_cases[0]); ++i) {
            test = &ft_cases[i];
            if ((test->op != UCP_ATOMIC_OP_SWAP) &&
                (test->op != UCP_ATOMIC_OP_CSWAP)) {
                ft_try(ucp, test, width, 0);
            }
            ft_try(ucp, test, width, 1);
        }
    }

    ucp_rkey_destroy(ucp->rkey);
    printf("ft: ok %u atomics\n", ucp->count);
}

int main(int argc, char **argv)
{
    static ft_ucp_t ucp;

    if ((argc != 3) || (strcmp(argv[1], "server") &&
                        strcmp(argv[1], "client"))) {
        printf("usage: ft_ucp_amo server|client FILE\n");
        return 2;
    }

    ft_open(&ucp);
    if (!strcmp(argv[1], "server")) {
        ft_serve(&ucp, argv[2]);
    } else {
        ft_work(&ucp, argv[2]);
    }

    ft_close(&ucp);
    return 0;
}
