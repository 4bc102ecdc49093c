/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Fetch-and-adds of 1 through UCP on words of one process: by the process itself, by one that
 * shares its memory, and by one on another host, each over the transport that UCP selects.
 *
 *     ft_ucp_add owner FILE COUNT PAUSE    maps the words, writes its address to FILE, adds,
 *                                          and prints the words at the end of its input
 *     ft_ucp_add other FILE COUNT PAUSE    adds
 *
 * It prints "ft: ready" when its endpoint works, and begins when there is a file FILE.go.
 * After each operation it sleeps for PAUSE microseconds.
 * Each one of COUNT operations is on the word of 8 bytes, the next on that of 4 bytes, and
 * prints "fadd WIDTH RESULT". "ft: " lines tell the endpoint's lanes. The owner also
 * adds by its own instructions: "cpu WIDTH RESULT".
 */
#include <ucp/api/ucp.h>

#include <inttypes.h>
#include <poll.h>
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
} ft_owner_t;

typedef struct {
    ucp_context_h context;
    ucp_worker_h  worker;
    ucp_ep_h      ep;
    ucp_rkey_h    rkey;
    ucp_mem_h     memh;
    uint64_t      *words;
    ft_owner_t    owner;
} ft_add_t;

static void ft_check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        printf("ft: %s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

static void ft_open(ft_add_t *add)
{
    ucp_params_t params               = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64
    };
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE
    };
    ucp_config_t *config;

    ft_check(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    ft_check(ucp_init(&params, config, &add->context), "ucp_init");
    ucp_config_release(config);
    ft_check(ucp_worker_create(add->context, &worker_params, &add->worker),
             "ucp_worker_create");
}

static void ft_copy(uint8_t *to, size_t *length_p, const void *from, size_t length)
{
    if (length > FT_BLOB_MAX) {
        printf("ft: an address is too long\n");
        exit(1);
    }

    memcpy(to, from, length);
    *length_p = length;
}

/* UCP allocates the words where other processes of the host can map them */
static void ft_own(ft_add_t *add, const char *path)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length     = 4096,
        .flags      = UCP_MEM_MAP_ALLOCATE
    };
    ucp_mem_attr_t attr         = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    ucp_address_t *address;
    char part[512];
    size_t length;
    void *rkey;
    FILE *file;

    ft_check(ucp_mem_map(add->context, &params, &add->memh), "ucp_mem_map");
    ft_check(ucp_mem_query(add->memh, &attr), "ucp_mem_query");
    add->words = attr.address;
    memset(add->words, 0, 4096);
    ft_check(ucp_worker_get_address(add->worker, &address, &length),
             "ucp_worker_get_address");
    ft_copy(add->owner.worker, &add->owner.worker_length, address, length);
    ucp_worker_release_address(add->worker, address);
    ft_check(ucp_rkey_pack(add->context, add->memh, &rkey, &length),
             "ucp_rkey_pack");
    ft_copy(add->owner.rkey, &add->owner.rkey_length, rkey, length);
    ucp_rkey_buffer_release(rkey);
    add->owner.address = (uintptr_t)add->words;

    snprintf(part, sizeof(part), "%s.part", path);
    file = fopen(part, "w");
    if ((file == NULL) || (fwrite(&add->owner, sizeof(add->owner), 1, file) != 1) ||
        (fclose(file) != 0) || (rename(part, path) != 0)) {
        printf("ft: cannot write %s\n", path);
        exit(1);
    }
}

static void ft_find(ft_add_t *add, const char *path)
{
    FILE *file = fopen(path, "r");

    if ((file == NULL) ||
        (fread(&add->owner, sizeof(add->owner), 1, file) != 1)) {
        printf("ft: cannot read %s\n", path);
        exit(1);
    }

    fclose(file);
}

static void ft_connect(ft_add_t *add)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = (ucp_address_t*)add->owner.worker
    };

    ft_check(ucp_ep_create(add->worker, &params, &add->ep), "ucp_ep_create");
    ft_check(ucp_ep_rkey_unpack(add->ep, add->owner.rkey, &add->rkey),
             "ucp_ep_rkey_unpack");
}

static void ft_wait(ft_add_t *add, void *request, const char *what)
{
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        ft_check(UCS_PTR_STATUS(request), what);
        return;
    }

    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(add->worker);
    }

    ucp_request_free(request);
    ft_check(status, what);
}

static uint64_t ft_fetch_add(ft_add_t *add, unsigned width, uint64_t value)
{
    uint64_t result           = 0;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                        UCP_OP_ATTR_FIELD_REPLY_BUFFER,
        .datatype     = ucp_dt_make_contig(width),
        .reply_buffer = &result
    };

    ft_wait(add, ucp_atomic_op_nbx(add->ep, UCP_ATOMIC_OP_ADD, &value, 1,
                                   add->owner.address + ((width == 4) ? 64 : 0),
                                   add->rkey, &param), "fetch and add");
    return result;
}

/* The others begin at the same time */
static void ft_await_go(ft_add_t *add, const char *path)
{
    char go[512];

    ft_fetch_add(add, 8, 0);
    printf("ft: ready\n");
    fflush(stdout);
    snprintf(go, sizeof(go), "%s.go", path);
    while (access(go, F_OK) != 0) {
        ucp_worker_progress(add->worker);
        usleep(100);
    }
}

static void ft_cpu_add(ft_add_t *add, unsigned width)
{
    uint32_t *word32 = (uint32_t*)&add->words[8];
    uint64_t result;

    result = (width == 8) ?
             __atomic_fetch_add(&add->words[0], 1, __ATOMIC_SEQ_CST) :
             __atomic_fetch_add(word32, 1, __ATOMIC_SEQ_CST);
    printf("cpu %u %" PRIu64 "\n", width, result);
}

static void ft_serve(ft_add_t *add)
{
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};

    while (poll(&pfd, 1, 1) == 0) {
        while (ucp_worker_progress(add->worker) > 0);
    }

    printf("word 8 %" PRIu64 "\n", add->words[0]);
    printf("word 4 %" PRIu64 "\n", add->words[8]);
}

int main(int argc, char **argv)
{
    int is_owner, count, pause, i;
    unsigned width;
    static ft_add_t add;

    if ((argc != 5) || (strcmp(argv[1], "owner") && strcmp(argv[1], "other"))) {
        printf("usage: ft_ucp_add owner|other FILE COUNT PAUSE\n");
        return 2;
    }

    is_owner = !strcmp(argv[1], "owner");
    count    = atoi(argv[3]);
    pause    = atoi(argv[4]);
    ft_open(&add);
    if (is_owner) {
        ft_own(&add, argv[2]);
    } else {
        ft_find(&add, argv[2]);
    }

    ft_connect(&add);
    ft_await_go(&add, argv[2]);
    for (i = 0; i < count; ++i) {
        width = (i % 2) ? 4 : 8;
        printf("fadd %u %" PRIu64 "\n", width, ft_fetch_add(&add, width, 1));
        if (is_owner) {
            ft_cpu_add(&add, width);
        }

        if (pause > 0) {
            usleep(pause);
        }
    }

    ucp_ep_print_info(add.ep, stdout);
    fflush(stdout);
    if (is_owner) {
        ft_serve(&add);
    }

    ucp_rkey_destroy(add.rkey);
    if (is_owner) {
        ucp_mem_unmap(add.context, add.memh);
    }

    ucp_worker_destroy(add.worker);
    ucp_cleanup(add.context);
    printf("ft: ok\n");
    return 0;
}
