/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Operations over an endpoint with UCP_ERR_HANDLING_MODE_FAILOVER. contrib/eval.sh
 * --ucx-failover compiles it with a UCX that has this mode. The server has memory, and
 * does nothing but progress; each line prints its first byte, and on "B" it writes another
 * value.
 */
#include <ucp/api/ucp.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


#define FO_SIZE   (1ul << 20)
#define FO_NUMBER 100   /* Most operations whose times are not printed */
#define FO_ABA    264


typedef struct {
    ucp_context_h context;
    ucp_worker_h  worker;
    ucp_ep_h      ep;
    ucp_rkey_h    rkey;
    uint64_t      remote;
    ucs_status_t  status;       /* Of the endpoint */
    char          *buffer;
} fo_t;


static double fo_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec + (now.tv_nsec * 1e-9);
}

static void fo_check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

static int fo_line(char *line, size_t length)
{
    struct pollfd fd = {.fd = 0, .events = POLLIN};
    size_t i         = 0;

    if (poll(&fd, 1, 0) <= 0) {
        return 0;
    }

    while ((i < length - 1) && (read(0, &line[i], 1) == 1) && (line[i] != '\n')) {
        ++i;
    }
    line[i] = '\0';
    return (i > 0) ? 1 : -1;
}

static void fo_open(fo_t *fo)
{
    ucp_params_t params        = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_TAG | UCP_FEATURE_AM
    };
    ucp_worker_params_t worker = {.field_mask = 0};

    fo_check(ucp_init(&params, NULL, &fo->context), "ucp_init");
    fo_check(ucp_worker_create(fo->context, &worker, &fo->worker), "ucp_worker_create");
    fo->buffer = calloc(1, FO_SIZE);
}

static void fo_write(const char *dir, const char *name, const void *data, size_t length)
{
    char path[4096], part[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    snprintf(part, sizeof(part), "%s/%s.part", dir, name);
    file = fopen(part, "w");
    if ((file == NULL) || (fwrite(data, 1, length, file) != length) ||
        (fclose(file) != 0) || (rename(part, path) != 0)) {
        perror(path);
        exit(1);
    }
}

static void *fo_read(const char *dir, const char *name)
{
    void *data = calloc(1, 65536);
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    while ((file = fopen(path, "r")) == NULL) {
        usleep(1000);
    }
    if (fread(data, 1, 65536, file) == 0) {
        exit(1);
    }
    fclose(file);
    return data;
}

static int fo_server(fo_t *fo, const char *dir)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = fo->buffer,
        .length     = FO_SIZE
    };
    char *inbox                 = calloc(1, FO_SIZE);
    ucp_request_param_t param   = {.op_attr_mask = 0};
    uint64_t base               = (uintptr_t)fo->buffer;
    ucs_status_ptr_t request    = NULL;
    size_t length, rkey_length;
    ucp_address_t *address;
    char line[80];
    ucp_mem_h memh;
    void *rkey;
    int got;

    fo_check(ucp_mem_map(fo->context, &params, &memh), "ucp_mem_map");
    fo_check(ucp_rkey_pack(fo->context, memh, &rkey, &rkey_length), "ucp_rkey_pack");
    fo_check(ucp_worker_get_address(fo->worker, &address, &length), "address");
    fo_write(dir, "base", &base, sizeof(base));
    fo_write(dir, "rkey", rkey, rkey_length);
    fo_write(dir, "address", address, length);
    for (;;) {
        if (ucp_worker_progress(fo->worker) == 0) {
            usleep(50);
        }
        if ((request == NULL) || (ucp_request_check_status(request) != UCS_INPROGRESS)) {
            if (UCS_PTR_IS_PTR(request)) {
                ucp_request_free(request);
            }
            request = ucp_tag_recv_nbx(fo->worker, inbox, FO_SIZE, 1, -1, &param);
        }
        got = fo_line(line, sizeof(line));
        if (got < 0) {
            return 0;
        } else if (got > 0) {
            printf("word %c\n", fo->buffer[0]);
            if (line[0] == 'B') {
                memset(fo->buffer, 'B', 4096);
            }
            fflush(stdout);
        }
    }
}

static void fo_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    ((fo_t*)arg)->status = status;
}

static void fo_connect(fo_t *fo, const char *dir, ucp_err_handling_mode_t mode)
{
    ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .err_mode        = mode,
        .err_handler.cb  = fo_failed,
        .err_handler.arg = fo
    };

    params.address = fo_read(dir, "address");
    fo->remote     = *(uint64_t*)fo_read(dir, "base");
    fo_check(ucp_ep_create(fo->worker, &params, &fo->ep), "ucp_ep_create");
    fo_check(ucp_ep_rkey_unpack(fo->ep, fo_read(dir, "rkey"), &fo->rkey), "rkey");
}

static ucs_status_t fo_wait(fo_t *fo, ucs_status_ptr_t request, double seconds)
{
    double end = fo_now() + seconds;
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_STATUS(request);
    }

    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        if (fo_now() > end) {
            return UCS_ERR_TIMED_OUT;
        }
        if (ucp_worker_progress(fo->worker) == 0) {
            usleep(20);
        }
    }
    ucp_request_free(request);
    return status;
}

/* @return The request of an operation, by its name */
static ucs_status_ptr_t fo_begin(fo_t *fo, const char *name, size_t size)
{
    static uint64_t operand, result;
    ucp_request_param_t param = {.op_attr_mask = 0};

    if (!strcmp(name, "put")) {
        return ucp_put_nbx(fo->ep, fo->buffer, size, fo->remote, fo->rkey, &param);
    } else if (!strcmp(name, "get")) {
        return ucp_get_nbx(fo->ep, fo->buffer, size, fo->remote, fo->rkey, &param);
    } else if (!strcmp(name, "tag")) {
        return ucp_tag_send_nbx(fo->ep, fo->buffer, size, 1, &param);
    } else if (!strcmp(name, "am")) {
        return ucp_am_send_nbx(fo->ep, 1, NULL, 0, fo->buffer, size, &param);
    }

    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    param.datatype     = ucp_dt_make_contig(8);
    param.reply_buffer = &result;
    return ucp_atomic_op_nbx(fo->ep, !strcmp(name, "cswap") ? UCP_ATOMIC_OP_CSWAP :
                             UCP_ATOMIC_OP_ADD, &operand, 1, fo->remote + FO_SIZE - 8,
                             fo->rkey, &param);
}

static ucs_status_t fo_flush(fo_t *fo, double seconds)
{
    ucp_request_param_t param = {.op_attr_mask = 0};

    return fo_wait(fo, ucp_ep_flush_nbx(fo->ep, &param), seconds);
}

/* "NAME SIZE COUNT": operations one after the other, each flushed; prints the longest time
 * of one, and how it ended */
static void fo_operations(fo_t *fo, const char *line)
{
    double start, end, longest = 0;
    ucs_status_t status = UCS_OK;
    unsigned long size, count, i;
    char name[16];

    if (sscanf(line, "%15s %lu %lu", name, &size, &count) != 3) {
        exit(2);
    }

    /* Only puts of this size write A */
    memset(fo->buffer, (size == FO_ABA) ? 'A' : 'C', FO_SIZE);
    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        start  = fo_now();
        status = fo_wait(fo, fo_begin(fo, name, size), 20);
        if (status == UCS_OK) {
            status = fo_flush(fo, 20);
        }
        end     = fo_now();
        longest = (end - start > longest) ? end - start : longest;
        if ((count > FO_NUMBER) && (status == UCS_OK)) {
            printf("done %.6f\n", end);
        }
    }
    printf("%s %lu count=%lu longest=%.6f status=%s\n", name, size, i, longest,
           (fo->status != UCS_OK) ? ucs_status_string(fo->status) :
           ucs_status_string(status));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    fo_t fo = {.status = UCS_OK};
    char line[80];
    int got;

    if (argc < 3) {
        return 2;
    }

    fo_open(&fo);
    if (!strcmp(argv[1], "server")) {
        return fo_server(&fo, argv[2]);
    }

    fo_connect(&fo, argv[2], (argc > 3) ? UCP_ERR_HANDLING_MODE_PEER :
               UCP_ERR_HANDLING_MODE_FAILOVER);
    for (;;) {
        got = fo_line(line, sizeof(line));
        if (got < 0) {
            _exit(0);
        } else if (got > 0) {
            fo_operations(&fo, line);
        } else if (ucp_worker_progress(fo.worker) == 0) {
            usleep(20);
        }
    }
}
