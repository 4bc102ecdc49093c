/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Threads that share one UCP worker (UCS_THREAD_MODE_MULTI): each puts, reads back,
 * adds to a common counter and sends messages, while another thread marks a link down
 * and up. Run by test/e2e/api/test_threads.sh over the transports of UCX_TLS:
 *
 *     ft_threads server             prints its address; two threads call progress until
 *                                   stdin ends. Then prints the number of messages
 *     ft_threads client SEC LINK    reads the address from stdin; runs for SEC seconds at
 *                                   least, and until the end of its input
 */
#include "ft_symbol.h"
#include "ft_clock.h"

#include <ucp/api/ucp.h>
#include <rc_varuna.h>

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_THREADS  3
#define FT_SLOTS    64      /* Of each thread */
#define FT_AM_ID    7
#define FT_LINE     8192
#define FT_STUCK    300     /* Seconds for one operation */
#define FT_LEAST    4       /* Minimum operations of each thread, and marks */

typedef struct {
    uint64_t counter;
    uint64_t slots[FT_THREADS][FT_SLOTS];
} ft_memory_t;

typedef struct {
    uint32_t thread;
    uint32_t number;
} ft_message_t;

typedef struct {
    pthread_t id;
    unsigned  index;
    uint64_t  operations;
    ucp_ep_h  ep;
    ucp_rkey_h rkey;
} ft_thread_t;

static struct {
    ucp_context_h context;
    ucp_worker_h  worker;
    ucp_mem_h     memh;
    ft_memory_t   *memory;      /* The server's */
    uint64_t      base;         /* Its address */
    int           is_over;      /* The time, and the input */
    int           stop;
    uint32_t      next[FT_THREADS];  /* Message expected of each */
    uint64_t      wrong;        /* Other messages */
} ft;


static void ft_die(const char *format, ...)
        __attribute__((format(printf, 1, 2), noreturn));

static void ft_die(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    printf("ft: die ");
    vprintf(format, ap);
    printf("\n");
    va_end(ap);
    _exit(1);
}

static void ft_check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        ft_die("%s: %s", what, ucs_status_string(status));
    }
}

static void ft_open(void)
{
    ucp_params_t params = {
        .field_mask        = UCP_PARAM_FIELD_FEATURES |
                             UCP_PARAM_FIELD_MT_WORKERS_SHARED,
        .features          = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 |
                             UCP_FEATURE_AM,
        .mt_workers_shared = 1
    };
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_MULTI
    };
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE};

    ft_check(ucp_init(&params, NULL, &ft.context), "ucp_init");
    ft_check(ucp_worker_create(ft.context, &worker_params, &ft.worker),
             "ucp_worker_create");
    ft_check(ucp_worker_query(ft.worker, &attr), "ucp_worker_query");
    if (attr.thread_mode != UCS_THREAD_MODE_MULTI) {
        ft_die("this UCX has no workers for several threads");
    }
}

static void ft_close(void)
{
    ucp_worker_destroy(ft.worker);
    ucp_cleanup(ft.context);
}

/* --- Server --- */

/* Called under the worker's lock */
static ucs_status_t ft_message(void *arg, const void *header, size_t length,
                               void *data, size_t data_length,
                               const ucp_am_recv_param_t *param)
{
    const ft_message_t *message = header;

    if ((length != sizeof(*message)) || (message->thread >= FT_THREADS) ||
        (message->number != ft.next[message->thread])) {
        ++ft.wrong;
        return UCS_OK;
    }

    ++ft.next[message->thread];
    return UCS_OK;
}

static void ft_print(const char *what, const void *data, size_t length)
{
    size_t i;

    printf(" %s", what);
    for (i = 0; i < length; ++i) {
        printf("%02x", ((const uint8_t*)data)[i]);
    }
}

static void ft_print_address(void)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = ft.memory,
        .length     = sizeof(*ft.memory)
    };
    ucp_address_t *address;
    size_t length;
    void *rkey;

    ft_check(ucp_mem_map(ft.context, &params, &ft.memh), "ucp_mem_map");
    ft_check(ucp_worker_get_address(ft.worker, &address, &length),
             "ucp_worker_get_address");
    printf("ft: address %" PRIx64, (uint64_t)(uintptr_t)ft.memory);
    ft_print("", address, length);
    ucp_worker_release_address(ft.worker, address);
    ft_check(ucp_rkey_pack(ft.context, ft.memh, &rkey, &length),
             "ucp_rkey_pack");
    ft_print("", rkey, length);
    ucp_rkey_buffer_release(rkey);
    printf("\n");
}

static void *ft_progress(void *arg)
{
    while (!__atomic_load_n(&ft.stop, __ATOMIC_ACQUIRE)) {
        if (!ucp_worker_progress(ft.worker)) {
            usleep(100);
        }
    }

    return NULL;
}

static void ft_server(void)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id         = FT_AM_ID,
        .cb         = ft_message
    };
    pthread_t other;
    uint64_t sum = 0;
    char text[64];
    unsigned i;

    ft.memory = calloc(1, sizeof(*ft.memory));
    ft_open();
    ft_check(ucp_worker_set_am_recv_handler(ft.worker, &param), "handler");
    ft_print_address();
    if (pthread_create(&other, NULL, ft_progress, NULL) != 0) {
        ft_die("pthread_create");
    }

    for (;;) {
        struct pollfd in = {.fd = 0, .events = POLLIN};

        if ((poll(&in, 1, 0) > 0) && (read(0, text, sizeof(text)) == 0)) {
            break;
        }
        ucp_worker_progress(ft.worker);
        usleep(100);
    }

    __atomic_store_n(&ft.stop, 1, __ATOMIC_RELEASE);
    pthread_join(other, NULL);
    for (i = 0; i < FT_THREADS; ++i) {
        sum += ft.next[i];
    }

    printf("ft: messages %" PRIu64 ", wrong %" PRIu64 "\n", sum, ft.wrong);
    ucp_mem_unmap(ft.context, ft.memh);
    ft_close();
    free(ft.memory);
}

/* --- Client --- */

static size_t ft_parse(const char *text, uint8_t *data, size_t max)
{
    size_t length = 0;
    unsigned byte;

    while ((length < max) && (sscanf(text, "%2x", &byte) == 1)) {
        data[length++] = byte;
        text          += 2;
    }

    return length;
}

/* Wait for a completion; another thread's progress may deliver it */
static void ft_wait(void *request, const char *what)
{
    double end = ft_now() + FT_STUCK;
    ucs_status_t status;

    if (request == NULL) {
        return;
    } else if (UCS_PTR_IS_ERR(request)) {
        ft_die("%s: %s", what, ucs_status_string(UCS_PTR_STATUS(request)));
    }

    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(ft.worker);
        if (ft_now() > end) {
            ft_die("%s does not end", what);
        }
    }

    ucp_request_free(request);
    ft_check(status, what);
}

static void ft_put_and_get(ft_thread_t *thread, uint64_t value)
{
    ucp_request_param_t param = {0};
    unsigned slot             = value % FT_SLOTS;
    uint64_t remote           = ft.base + offsetof(ft_memory_t, slots) +
                                (sizeof(uint64_t) *
                                 ((thread->index * FT_SLOTS) + slot));
    uint64_t found            = 0;

    ft_wait(ucp_put_nbx(thread->ep, &value, sizeof(value), remote, thread->rkey,
                        &param), "put");
    ft_wait(ucp_ep_flush_nbx(thread->ep, &param), "flush");
    ft_wait(ucp_get_nbx(thread->ep, &found, sizeof(found), remote, thread->rkey,
                        &param), "get");
    if (found != value) {
        ft_die("thread %u: the word is %" PRIu64 ", and %" PRIu64 " was put",
               thread->index, found, value);
    }
}

static uint64_t ft_add(ft_thread_t *thread, uint64_t value)
{
    uint64_t result           = UINT64_MAX;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                        UCP_OP_ATTR_FIELD_REPLY_BUFFER,
        .datatype     = ucp_dt_make_contig(sizeof(value)),
        .reply_buffer = &result
    };

    ft_wait(ucp_atomic_op_nbx(thread->ep, UCP_ATOMIC_OP_ADD, &value, 1,
                              ft.base + offsetof(ft_memory_t, counter),
                              thread->rkey, &param), "fetch-and-add");
    return result;
}

static void *ft_user(void *arg)
{
    ft_thread_t *thread       = arg;
    ucp_request_param_t param = {0};
    ft_message_t message      = {.thread = thread->index};
    uint64_t last             = 0;
    uint64_t result;

    while (!__atomic_load_n(&ft.is_over, __ATOMIC_ACQUIRE) ||
           (thread->operations < FT_LEAST)) {
        ft_put_and_get(thread, thread->operations + 1);
        result = ft_add(thread, 1);
        if ((thread->operations > 0) && (result <= last)) {
            ft_die("thread %u: the counter went from %" PRIu64 " to %" PRIu64,
                   thread->index, last, result);
        }

        last = result;
        ft_wait(ucp_am_send_nbx(thread->ep, FT_AM_ID, &message, sizeof(message),
                                NULL, 0, &param), "message");
        ++message.number;
        ++thread->operations;
    }

    ft_wait(ucp_ep_flush_nbx(thread->ep, &param), "flush");
    return NULL;
}

/* An external detector, which reports that the link fails and recovers */
static void *ft_detect(void *link)
{
    int (*link_set)(const char *name, rc_varuna_link_state_t state);
    size_t (*status)(char *buffer, size_t size);
    char text[4096];
    unsigned i;

    link_set = ft_symbol("rc_varuna_link_set");
    status   = ft_symbol("rc_varuna_status");
    if ((link_set == NULL) || (status == NULL)) {
        ft_die("there is no rc_varuna_link_set");
    }

    for (i = 0; !__atomic_load_n(&ft.is_over, __ATOMIC_ACQUIRE) || (i < FT_LEAST) ||
                (i % 2); ++i) {
        if ((link_set(link, (i % 2) ? RC_VARUNA_LINK_UP :
                                      RC_VARUNA_LINK_DOWN) != 0) ||
            (status(text, sizeof(text)) == 0)) {
            ft_die("link %s cannot be marked", (const char*)link);
        }
        usleep(100000);
    }

    return NULL;
}

static void ft_connect(ft_thread_t *thread, const uint8_t *address,
                       const uint8_t *rkey)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = (const ucp_address_t*)address
    };

    ft_check(ucp_ep_create(ft.worker, &params, &thread->ep), "ucp_ep_create");
    ft_check(ucp_ep_rkey_unpack(thread->ep, rkey, &thread->rkey),
             "ucp_ep_rkey_unpack");
}

static void ft_client(double seconds, char *link)
{
    static char line[FT_LINE], text[2][FT_LINE];
    static uint8_t address[FT_LINE / 2], rkey[FT_LINE / 2];
    ft_thread_t threads[FT_THREADS] = {{0}};
    uint64_t operations             = 0, counter;
    pthread_t detector;
    double end;
    unsigned i;

    if ((fgets(line, sizeof(line), stdin) == NULL) ||
        (sscanf(line, "%" SCNx64 " %s %s", &ft.base, text[0], text[1]) != 3)) {
        ft_die("no address on stdin");
    }

    ft_parse(text[0], address, sizeof(address));
    ft_parse(text[1], rkey, sizeof(rkey));
    ft_open();
    end = ft_now() + seconds;
    for (i = 0; i < FT_THREADS; ++i) {
        threads[i].index = i;
        ft_connect(&threads[i], address, rkey);
        if (pthread_create(&threads[i].id, NULL, ft_user, &threads[i]) != 0) {
            ft_die("pthread_create");
        }
    }

    if (pthread_create(&detector, NULL, ft_detect, link) != 0) {
        ft_die("pthread_create");
    }

    while ((ft_now() < end) || (fgets(line, sizeof(line), stdin) != NULL)) {
        usleep(10000);
    }

    __atomic_store_n(&ft.is_over, 1, __ATOMIC_RELEASE);
    for (i = 0; i < FT_THREADS; ++i) {
        pthread_join(threads[i].id, NULL);
        operations += threads[i].operations;
    }

    pthread_join(detector, NULL);
    counter = ft_add(&threads[0], 0);
    printf("ft: operations %" PRIu64 ", counter %" PRIu64 "\n", operations,
           counter);
    for (i = 0; i < FT_THREADS; ++i) {
        ucp_rkey_destroy(threads[i].rkey);
        ft_wait(ucp_ep_close_nb(threads[i].ep, UCP_EP_CLOSE_MODE_FLUSH),
                "close");
    }

    ft_close();
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if ((argc == 2) && !strcmp(argv[1], "server")) {
        ft_server();
    } else if ((argc == 4) && !strcmp(argv[1], "client")) {
        ft_client(atof(argv[2]), argv[3]);
    } else {
        ft_die("usage: ft_threads server, or: ft_threads client SEC LINK"
               " <ADDRESS");
    }

    return 0;
}
