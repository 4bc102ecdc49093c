/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The server: memory that the client reads and writes, and a receiver of active
 * messages. In the end it checks both.
 */
#include "demo_layout.h"
#include "demo_oob.h"
#include "demo_roles.h"
#include "demo_ucp.h"
#include "demo_word.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


typedef struct demo_server demo_server_t;


/* Messages of one endpoint */
typedef struct {
    uint64_t next_seq;
    uint64_t messages;
    uint64_t bytes;
    int      ended; /* Its last message has come */
} demo_server_ep_t;


typedef struct {
    demo_server_t *server;
    unsigned      worker; /* Index */
} demo_server_arg_t;


/* A rendezvous message whose data is in flight */
typedef struct {
    demo_server_t *server;
    demo_am_hdr_t hdr;
    int           done; /* Detects a second completion */
    char          data[];
} demo_server_recv_t;


struct demo_server {
    demo_ucp_t        ucp;
    demo_mem_t        mem;
    demo_oob_t        oob;
    const demo_opts_t *opts;
    demo_server_arg_t args[DEMO_MAX_WORKERS];
    demo_server_ep_t  eps[DEMO_MAX_EPS];
    unsigned          num_eps;
    unsigned          num_ended; /* Endpoints */
    unsigned          in_flight; /* Rendezvous receives */
    uint64_t          last;      /* Time of the last message */
    demo_verdict_t    verdict;
    int               failed;    /* The reason is in verdict.error */
};


static void demo_server_error(demo_server_t *server, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void demo_server_error(demo_server_t *server, const char *format, ...)
{
    va_list ap;

    if (server->verdict.error[0] != '\0') {
        return;
    }

    va_start(ap, format);
    vsnprintf(server->verdict.error, sizeof(server->verdict.error), format,
              ap);
    va_end(ap);
}

/* All puts of the endpoint are in memory */
static void demo_server_ended(demo_server_t *server, demo_server_ep_t *ep)
{
    ep->ended    = 1;
    server->last = demo_now();
    ++server->num_ended;
}

/* Check the contents of the next message */
static void demo_server_received(demo_server_t *server,
                                 const demo_am_hdr_t *hdr, const void *data)
{
    demo_server_ep_t *ep = &server->eps[hdr->ep];
    char error[DEMO_TEXT_LEN];

    ++ep->messages;
    ++server->verdict.messages;
    ep->bytes   += hdr->length;
    server->last = demo_now();
    if (!demo_word_check(data, hdr->length,
                         demo_word(DEMO_WORD_AM, hdr->ep, hdr->seq, 0),
                         error)) {
        ++server->verdict.bad_contents;
        demo_server_error(server, "message has wrong contents: %.200s", error);
    }
}

static void demo_server_recv_done(demo_server_recv_t *recv,
                                  ucs_status_t status)
{
    demo_server_t *server = recv->server;

    if (status == UCS_OK) {
        demo_server_received(server, &recv->hdr, recv->data);
    } else {
        demo_server_error(server,
                          "receiving message %" PRIu64 " of endpoint %u "
                          "failed: %s",
                          recv->hdr.seq, recv->hdr.ep,
                          ucs_status_string(status));
        server->failed = 1;
    }

    --server->in_flight;
    free(recv);
}

static void demo_server_recv_callback(void *request, ucs_status_t status,
                                      size_t length, void *user_data)
{
    demo_server_recv_done(user_data, status);
    ucp_request_free(request);
}

/* Exactly once and in order: the header must say what is expected next */
static int demo_server_check_hdr(demo_server_t *server,
                                 const demo_am_hdr_t *hdr, size_t hdr_length,
                                 unsigned worker, size_t length)
{
    demo_server_ep_t *ep;

    if ((hdr_length != sizeof(*hdr)) || (hdr->magic != DEMO_AM_MAGIC) ||
        (hdr->ep >= server->num_eps) || (hdr->length != length) ||
        (length > DEMO_MAX_MSG) ||
        (hdr->ep % server->ucp.num_workers != worker)) {
        ++server->verdict.bad_contents;
        demo_server_error(server, "message has a wrong header");
        return 0;
    }

    ep = &server->eps[hdr->ep];
    if (hdr->seq < ep->next_seq) {
        ++server->verdict.duplicates;
        demo_server_error(server,
                          "endpoint %u: message %" PRIu64 " came again, or "
                          "after its successor",
                          hdr->ep, hdr->seq);
        return 0;
    } else if (hdr->seq > ep->next_seq) {
        server->verdict.missing += hdr->seq - ep->next_seq;
        demo_server_error(server,
                          "endpoint %u: message %" PRIu64 " came where %" PRIu64
                          " was expected",
                          hdr->ep, hdr->seq, ep->next_seq);
    }

    ep->next_seq = hdr->seq + 1;
    return 1;
}

static ucs_status_t demo_server_fetch(demo_server_t *server, unsigned worker,
                                      const demo_am_hdr_t *hdr, void *data)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv_am   = demo_server_recv_callback
    };
    demo_server_recv_t *recv;
    ucs_status_ptr_t request;

    recv = calloc(1, sizeof(*recv) + hdr->length);
    if (recv == NULL) {
        demo_server_error(server, "out of memory");
        server->failed = 1;
        return UCS_ERR_NO_MEMORY;
    }

    recv->server    = server;
    recv->hdr       = *hdr;
    param.user_data = recv;
    ++server->in_flight;
    request = ucp_am_recv_data_nbx(server->ucp.workers[worker], data,
                                   recv->data, hdr->length, &param);
    if (UCS_PTR_IS_ERR(request)) {
        demo_server_recv_done(recv, UCS_PTR_STATUS(request));
        return UCS_PTR_STATUS(request);
    }

    return UCS_INPROGRESS;
}

static ucs_status_t
demo_server_am(void *arg, const void *header, size_t header_length, void *data,
               size_t length, const ucp_am_recv_param_t *param)
{
    demo_server_arg_t *worker = arg;
    demo_server_t *server     = worker->server;
    demo_am_hdr_t hdr         = {0};

    memcpy(&hdr, header, demo_min(header_length, sizeof(hdr)));
    if (!demo_server_check_hdr(server, &hdr, header_length, worker->worker,
                               length)) {
        return UCS_OK; /* Dropped; a rendezvous is, too */
    }

    if (length == 0) {
        demo_server_ended(server, &server->eps[hdr.ep]);
        return UCS_OK;
    }

    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        return demo_server_fetch(server, worker->worker, &hdr, data);
    }

    demo_server_received(server, &hdr, data);
    return UCS_OK;
}

static int demo_server_init(demo_server_t *server)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id         = DEMO_AM_ID,
        .flags      = UCP_AM_FLAG_WHOLE_MSG,
        .cb         = demo_server_am
    };
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < DEMO_MAX_EPS; ++i) {
        server->eps[i].next_seq = 1;
    }

    for (i = 0; i < server->ucp.num_workers; ++i) {
        server->args[i].server = server;
        server->args[i].worker = i;
        param.arg              = &server->args[i];
        status = ucp_worker_set_am_recv_handler(server->ucp.workers[i],
                                                &param);
        if (status != UCS_OK) {
            demo_error("could not receive active messages: %s",
                       ucs_status_string(status));
            return -1;
        }
    }

    return 0;
}

/* Progress until a message of this type arrives. 0, or -1 after an error. */
static int demo_server_wait(demo_server_t *server, demo_oob_type_t wanted,
                            size_t *length_p)
{
    char error[DEMO_TEXT_LEN];
    demo_oob_type_t type;
    unsigned i;
    int ret;

    for (;;) {
        for (i = 0; i < 64; ++i) {
            demo_ucp_progress(&server->ucp);
        }

        if (server->failed) {
            demo_error("%s", server->verdict.error);
            demo_oob_send(&server->oob, DEMO_OOB_FAILED,
                          server->verdict.error,
                          strlen(server->verdict.error));
            return -1;
        }

        ret = demo_oob_poll(&server->oob, &type, length_p, error);
        if (ret < 0) {
            demo_error("client: %s", error);
            return -1;
        } else if ((ret > 0) && (type == DEMO_OOB_FAILED)) {
            demo_error("the client failed: %s", server->oob.payload);
            return -1;
        } else if ((ret > 0) && (type != wanted)) {
            demo_error("the client sent message %d where %d was expected",
                       type, wanted);
            return -1;
        } else if (ret > 0) {
            return 0;
        }
    }
}

/* Append to a message, which is long enough */
static void demo_server_append(char **next_p, const void *data, size_t length)
{
    memcpy(*next_p, data, length);
    *next_p += length;
}

static int demo_server_send_welcome(demo_server_t *server, const void *key,
                                    size_t key_length)
{
    demo_welcome_t welcome = {
        .num_workers = server->ucp.num_workers,
        .key_length  = key_length,
        .base        = (uint64_t)server->mem.address
    };
    size_t length          = sizeof(welcome) + key_length;
    size_t lengths[DEMO_MAX_WORKERS];
    ucp_address_t *addresses[DEMO_MAX_WORKERS];
    char *message, *next;
    ucs_status_t status;
    unsigned i, count;
    int ret = -1;

    for (count = 0; count < server->ucp.num_workers; ++count) {
        status = ucp_worker_get_address(server->ucp.workers[count],
                                        &addresses[count], &lengths[count]);
        if (status != UCS_OK) {
            demo_error("the worker has no address: %s",
                       ucs_status_string(status));
            goto out;
        }

        length += sizeof(uint64_t) + lengths[count];
    }

    message = malloc(length);
    if (message == NULL) {
        demo_error("out of memory");
        goto out;
    }

    next = message;
    demo_server_append(&next, &welcome, sizeof(welcome));
    for (i = 0; i < count; ++i) {
        demo_server_append(&next, &lengths[i], sizeof(uint64_t));
        demo_server_append(&next, addresses[i], lengths[i]);
    }

    demo_server_append(&next, key, key_length);
    ret = demo_oob_send(&server->oob, DEMO_OOB_WELCOME, message, length);
    free(message);
out:
    while (count > 0) {
        --count;
        ucp_worker_release_address(server->ucp.workers[count],
                                   addresses[count]);
    }

    return ret;
}

static int demo_server_welcome(demo_server_t *server)
{
    demo_hello_t hello;
    ucs_status_t status;
    size_t length;
    void *key;
    int ret;

    if (demo_server_wait(server, DEMO_OOB_HELLO, &length) != 0) {
        return -1;
    }

    memcpy(&hello, server->oob.payload, demo_min(length, sizeof(hello)));
    if ((length != sizeof(hello)) ||
        (hello.num_slots != demo_layout_num_slots()) ||
        (hello.num_workers < 1) || (hello.num_workers > DEMO_MAX_WORKERS)) {
        demo_error("the client is of another version");
        return -1;
    }

    server->num_eps = hello.num_workers * server->ucp.num_workers;
    if (demo_ucp_mem_alloc(&server->ucp, demo_layout_length(server->num_eps),
                           &server->mem) != 0) {
        return -1;
    }

    demo_word_fill(server->mem.address, DEMO_SOURCE_LENGTH,
                   demo_word(DEMO_WORD_SRC, 0, 0, 0));
    status = ucp_rkey_pack(server->ucp.context, server->mem.memh, &key,
                           &length);
    if (status != UCS_OK) {
        demo_error("could not pack the key of the memory: %s",
                   ucs_status_string(status));
        return -1;
    }

    ret = demo_server_send_welcome(server, key, length);
    ucp_rkey_buffer_release(key);
    return ret;
}

/* The client has sent everything; wait for messages in flight, the last of each endpoint
 * among them */
static int demo_server_wait_messages(demo_server_t *server,
                                     const demo_totals_t *totals)
{
    uint64_t messages = 0;
    unsigned i;

    for (i = 0; i < server->num_eps; ++i) {
        messages += totals[i].messages;
    }

    server->last = demo_now();
    while ((server->verdict.messages < messages) || (server->in_flight > 0) ||
           (server->num_ended < server->num_eps)) {
        demo_ucp_progress(&server->ucp);
        if (server->failed) {
            demo_error("%s", server->verdict.error);
            return -1;
        } else if (demo_now() - server->last >
                   server->opts->give_up * DEMO_NSEC) {
            break;
        }
    }

    for (i = 0; i < server->num_eps; ++i) {
        if ((server->eps[i].messages != totals[i].messages) ||
            (server->eps[i].bytes != totals[i].message_bytes)) {
            demo_server_error(server,
                              "endpoint %u: %" PRIu64 " messages were sent, "
                              "%" PRIu64 " received",
                              i, totals[i].messages, server->eps[i].messages);
        } else if (!server->eps[i].ended) {
            demo_server_error(server,
                              "endpoint %u: its last message has not come", i);
        }
    }

    server->verdict.missing = demo_max(server->verdict.missing,
                                       messages - server->verdict.messages);
    return 0;
}

static void demo_server_check_slot(demo_server_t *server, unsigned ep,
                                   unsigned cls, unsigned slot, uint64_t seq)
{
    static const char zeros[DEMO_MAX_MSG];
    const char *data = (char*)server->mem.address +
                       demo_layout_slot_offset(ep, cls, slot);
    char error[DEMO_TEXT_LEN];
    int ok;

    ++server->verdict.slots;
    if (seq == 0) {
        ok = !memcmp(data, zeros, demo_classes[cls].size);
        snprintf(error, sizeof(error), "nothing was put there");
    } else {
        ok = demo_word_check(data, demo_classes[cls].size,
                             demo_word(DEMO_WORD_PUT, ep, seq, 0), error);
    }

    if (!ok) {
        ++server->verdict.bad_slots;
        demo_server_error(server, "slot %u of %zu bytes is wrong: %.180s",
                          slot, demo_classes[cls].size, error);
    }
}

/* Memory must be as after one execution of each put, in order. The puts are in it: the
 * last message of each endpoint has come after them. */
static void
demo_server_check_memory(demo_server_t *server, const uint64_t *slots)
{
    unsigned ep, cls, slot;

    for (ep = 0; ep < server->num_eps; ++ep) {
        for (cls = 0; cls < DEMO_NUM_CLASSES; ++cls) {
            for (slot = 0; slot < demo_classes[cls].slots; ++slot) {
                demo_server_check_slot(server, ep, cls, slot, *(slots++));
            }
        }
    }
}

static int demo_server_judge(demo_server_t *server)
{
    size_t num_totals = server->num_eps * sizeof(demo_totals_t);
    size_t num_slots  = server->num_eps * demo_layout_num_slots();
    const char *payload;
    size_t length;

    if (demo_server_wait(server, DEMO_OOB_TOTALS, &length) != 0) {
        return -1;
    }

    payload = server->oob.payload;
    if (length != num_totals + (num_slots * sizeof(uint64_t))) {
        demo_error("the client sent totals of a wrong length");
        return -1;
    }

    if (demo_server_wait_messages(server, (const demo_totals_t*)payload) !=
        0) {
        demo_oob_send(&server->oob, DEMO_OOB_FAILED, server->verdict.error,
                      strlen(server->verdict.error));
        return -1;
    }

    demo_server_check_memory(server, (const uint64_t*)(payload + num_totals));
    if (demo_oob_send(&server->oob, DEMO_OOB_VERDICT, &server->verdict,
                      sizeof(server->verdict)) != 0) {
        return -1;
    }

    /* Progress, until the client has closed its endpoints */
    return demo_server_wait(server, DEMO_OOB_BYE, &length);
}

static int demo_server_serve(demo_server_t *server)
{
    if ((demo_server_init(server) != 0) ||
        (demo_oob_accept(&server->oob, server->opts->port,
                         server->opts->port_file) != 0) ||
        (demo_server_welcome(server) != 0) ||
        (demo_server_judge(server) != 0)) {
        return -1;
    }

    if (server->verdict.error[0] != '\0') {
        demo_error("%s", server->verdict.error);
        return -1;
    }

    printf("server: %" PRIu64 " messages received once and in order, %" PRIu64
           " slots of memory are right\n",
           server->verdict.messages, server->verdict.slots);
    return 0;
}

int demo_server_run(const demo_opts_t *opts)
{
    static demo_server_t server; /* Large */
    int ret;

    server.opts   = opts;
    server.oob.fd = -1;
    if (demo_ucp_init(&server.ucp, opts) != 0) {
        return EXIT_FAILURE;
    }

    ret = demo_server_serve(&server);
    demo_oob_close(&server.oob);
    if (server.in_flight > 0) {
        /* Data may still arrive, so keep the buffers until the process exits */
        return EXIT_FAILURE;
    }

    demo_ucp_mem_free(&server.ucp, &server.mem);
    demo_ucp_cleanup(&server.ucp);
    return (ret == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
