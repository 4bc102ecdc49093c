/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Threads that share one UCP worker (UCS_THREAD_MODE_MULTI): each puts, reads back,
 * adds to a common counter and sends messages, while another thread marks a link down
 * and up. Run by test/e2e/api/test_threads.sh over the transports of UCX_TLS:
 *
 *     ft_threads server FILE        writes its address to FILE, and prints that name; two
 *                                   threads call progress until stdin ends. Then prints
 *                                   the number of messages
 *     ft_threads client SEC LINK    reads the file's name from stdin; runs for SEC seconds
 *                                   at least, and until the end of its input
 */
#include "ft_symbol.h"
#include "ft_clock.h"
#include "ft_ucp.h"

#include <rc_varuna.h>

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_THREADS  3
#define FT_SLOTS    64      /* Of each thread */
#define FT_AM_ID    7
#define FT_LINE     512
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
    ft_ucp_t  ucp;              /* Its own endpoint of the common worker */
} ft_thread_t;

static struct {
    ft_ucp_t      ucp;
    ucp_mem_h     memh;
    ft_memory_t   *memory;      /* The server's */
    int           is_over;      /* The time, and the input */
    int           stop;
    uint32_t      next[FT_THREADS];  /* Message expected of each */
    uint64_t      wrong;        /* Other messages */
} ft;

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

static void ft_publish(const char *path)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = ft.memory,
        .length     = sizeof(*ft.memory)
    };

    ft_check_status(ucp_mem_map(ft.ucp.context, &params, &ft.memh), "ucp_mem_map");
    ft_ucp_publish(&ft.ucp, ft.memh, ft.memory, path);
    printf("ft: address %s\n", path);
}

static void *ft_progress(void *arg)
{
    while (!__atomic_load_n(&ft.stop, __ATOMIC_ACQUIRE)) {
        if (!ucp_worker_progress(ft.ucp.worker)) {
            usleep(100);
        }
    }

    return NULL;
}

static void ft_server(const char *path)
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
    ft_ucp_open_shared(&ft.ucp, UCP_FEATURE_AM);
    ft_check_status(ucp_worker_set_am_recv_handler(ft.ucp.worker, &param), "handler");
    ft_publish(path);
    if (pthread_create(&other, NULL, ft_progress, NULL) != 0) {
        ft_die("pthread_create");
    }

    for (;;) {
        struct pollfd in = {.fd = 0, .events = POLLIN};

        if ((poll(&in, 1, 0) > 0) && (read(0, text, sizeof(text)) == 0)) {
            break;
        }
        ucp_worker_progress(ft.ucp.worker);
        usleep(100);
    }

    __atomic_store_n(&ft.stop, 1, __ATOMIC_RELEASE);
    pthread_join(other, NULL);
    for (i = 0; i < FT_THREADS; ++i) {
        sum += ft.next[i];
    }

    printf("ft: messages %" PRIu64 ", wrong %" PRIu64 "\n", sum, ft.wrong);
    ucp_mem_unmap(ft.ucp.context, ft.memh);
    ft_ucp_close(&ft.ucp);
    free(ft.memory);
}

/* --- Client --- */

static void ft_put_and_get(ft_thread_t *thread, uint64_t value)
{
    ft_ucp_t *ucp             = &thread->ucp;
    ucp_request_param_t param = {0};
    unsigned slot             = value % FT_SLOTS;
    uint64_t remote           = ucp->owner.address + offsetof(ft_memory_t, slots) +
                                (sizeof(uint64_t) *
                                 ((thread->index * FT_SLOTS) + slot));
    uint64_t found            = 0;

    ft_ucp_wait(ucp, ucp_put_nbx(ucp->ep, &value, sizeof(value), remote, ucp->rkey,
                                 &param), "put");
    ft_ucp_wait(ucp, ucp_ep_flush_nbx(ucp->ep, &param), "flush");
    ft_ucp_wait(ucp, ucp_get_nbx(ucp->ep, &found, sizeof(found), remote, ucp->rkey,
                                 &param), "get");
    if (found != value) {
        ft_die("thread %u: the word is %" PRIu64 ", and %" PRIu64 " was put",
               thread->index, found, value);
    }
}

static uint64_t ft_add(ft_ucp_t *ucp, uint64_t value)
{
    uint64_t result           = UINT64_MAX;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                        UCP_OP_ATTR_FIELD_REPLY_BUFFER,
        .datatype     = ucp_dt_make_contig(sizeof(value)),
        .reply_buffer = &result
    };

    ft_ucp_wait(ucp, ucp_atomic_op_nbx(ucp->ep, UCP_ATOMIC_OP_ADD, &value, 1,
                                       ucp->owner.address +
                                       offsetof(ft_memory_t, counter), ucp->rkey,
                                       &param), "fetch-and-add");
    return result;
}

static void *ft_user(void *arg)
{
    ft_thread_t *thread       = arg;
    ft_ucp_t *ucp             = &thread->ucp;
    ucp_request_param_t param = {0};
    ft_message_t message      = {.thread = thread->index};
    uint64_t last             = 0;
    uint64_t result;

    while (!__atomic_load_n(&ft.is_over, __ATOMIC_ACQUIRE) ||
           (thread->operations < FT_LEAST)) {
        ft_put_and_get(thread, thread->operations + 1);
        result = ft_add(ucp, 1);
        if ((thread->operations > 0) && (result <= last)) {
            ft_die("thread %u: the counter went from %" PRIu64 " to %" PRIu64,
                   thread->index, last, result);
        }

        last = result;
        ft_ucp_wait(ucp, ucp_am_send_nbx(ucp->ep, FT_AM_ID, &message, sizeof(message),
                                         NULL, 0, &param), "message");
        ++message.number;
        ++thread->operations;
    }

    ft_ucp_wait(ucp, ucp_ep_flush_nbx(ucp->ep, &param), "flush");
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

static void ft_client(double seconds, char *link)
{
    static char line[FT_LINE], path[FT_LINE];
    static ft_thread_t threads[FT_THREADS];
    uint64_t operations = 0, counter;
    pthread_t detector;
    double end;
    unsigned i;

    if ((fgets(line, sizeof(line), stdin) == NULL) ||
        (sscanf(line, "%511s", path) != 1)) {
        ft_die("no address on stdin");
    }

    ft_ucp_open_shared(&ft.ucp, UCP_FEATURE_AM);
    end = ft_now() + seconds;
    for (i = 0; i < FT_THREADS; ++i) {
        threads[i].index = i;
        threads[i].ucp   = ft.ucp;
        ft_ucp_connect(&threads[i].ucp, path);
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
    counter = ft_add(&threads[0].ucp, 0);
    printf("ft: operations %" PRIu64 ", counter %" PRIu64 "\n", operations,
           counter);
    for (i = 0; i < FT_THREADS; ++i) {
        ucp_rkey_destroy(threads[i].ucp.rkey);
        ft_ucp_wait(&ft.ucp, ucp_ep_close_nb(threads[i].ucp.ep, UCP_EP_CLOSE_MODE_FLUSH),
                    "close");
    }

    ft_ucp_close(&ft.ucp);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if ((argc == 3) && !strcmp(argv[1], "server")) {
        ft_server(argv[2]);
    } else if ((argc == 4) && !strcmp(argv[1], "client")) {
        ft_client(atof(argv[2]), argv[3]);
    } else {
        ft_die("usage: ft_threads server FILE, or: ft_threads client SEC LINK"
               " <ADDRESS");
    }

    return 0;
}
