/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The client: connects, runs the load for its time, flushes, sends a last message on each
 * endpoint, gets the server's verdict, and reports.
 */
#include "demo_load.h"
#include "demo_oob.h"
#include "demo_roles.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>


#define DEMO_CLOSE_NSEC (10 * DEMO_NSEC) /* Time limit for closing endpoints */


typedef struct {
    demo_ucp_t        ucp;
    demo_oob_t        oob;
    demo_load_t       load;
    demo_verdict_t    verdict;
    int               judged;    /* The verdict has arrived */
    const demo_opts_t *opts;
    unsigned          server_workers;
} demo_client_t;


/* Set by SIGINT: ends the load as if its time was over */
static volatile sig_atomic_t demo_client_interrupted;


static void demo_client_interrupt(int signal_number)
{
    demo_client_interrupted = 1;
}

/* Called by UCX when an endpoint fails: ends the job */
static void demo_client_ep_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    demo_load_ep_t *load_ep = arg;

    demo_stats_error(&load_ep->load->stats, "endpoint %u failed: %s",
                     load_ep->index, ucs_status_string(status));
}

static int demo_client_create_ep(demo_client_t *client, demo_load_ep_t *ep,
                                 const ucp_address_t *address, const void *key)
{
    ucp_ep_params_t params = {
        .field_mask      = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                           UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                           UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address         = address,
        .err_mode        = client->opts->err_mode,
        .err_handler.cb  = demo_client_ep_failed,
        .err_handler.arg = ep
    };
    ucs_status_t status;

    ep->load  = &client->load;
    ep->index = client->load.num_eps;
    status    = ucp_ep_create(ep->worker, &params, &ep->ep);
    if (status != UCS_OK) {
        demo_error("could not connect endpoint %u: %s", ep->index,
                   ucs_status_string(status));
        return -1;
    }

    ++client->load.num_eps;
    status = ucp_ep_rkey_unpack(ep->ep, key, &ep->rkey);
    if (status != UCS_OK) {
        demo_error("endpoint %u can't reach the server's memory: %s",
                   ep->index, ucs_status_string(status));
        ep->rkey = NULL;
        return -1;
    }

    return 0;
}

/* Split the server's welcome into addresses and the key */
static int demo_client_parse_welcome(demo_client_t *client, size_t length,
                                     const ucp_address_t **addresses,
                                     const void **key_p)
{
    const char *next = client->oob.payload;
    const char *end  = next + length;
    demo_welcome_t welcome;
    uint64_t address_length;
    unsigned i;

    if (length < sizeof(welcome)) {
        return -1;
    }

    memcpy(&welcome, next, sizeof(welcome));
    next += sizeof(welcome);
    if ((welcome.num_workers < 1) ||
        (welcome.num_workers > DEMO_MAX_WORKERS)) {
        return -1;
    }

    for (i = 0; i < welcome.num_workers; ++i) {
        if ((size_t)(end - next) < sizeof(address_length)) {
            return -1;
        }

        memcpy(&address_length, next, sizeof(address_length));
        next += sizeof(address_length);
        if (address_length > (size_t)(end - next)) {
            return -1;
        }

        addresses[i] = (const ucp_address_t*)next;
        next        += address_length;
    }

    if ((size_t)(end - next) != welcome.key_length) {
        return -1;
    }

    client->load.base      = welcome.base;
    client->server_workers = welcome.num_workers;
    *key_p                 = next;
    return 0;
}

/* Wait for a message of the server. 0, or -1 with the error in the stats. */
static int demo_client_wait(demo_client_t *client, demo_oob_type_t wanted,
                            size_t *length_p)
{
    demo_stats_t *stats = &client->load.stats;
    uint64_t start      = demo_now();
    char error[DEMO_TEXT_LEN];
    demo_oob_type_t type;
    int ret;

    for (;;) {
        demo_ucp_progress(&client->ucp);
        ret = demo_oob_poll(&client->oob, &type, length_p, error);
        if (ret < 0) {
            demo_stats_error(stats, "server: %.200s", error);
        } else if ((ret > 0) && (type == DEMO_OOB_FAILED)) {
            demo_stats_error(stats, "server: %.200s", client->oob.payload);
        } else if ((ret > 0) && (type != wanted)) {
            demo_stats_error(stats, "the server sent an unexpected message");
        } else if (ret > 0) {
            return 0;
        } else if (demo_now() - start >
                   2 * client->opts->give_up * DEMO_NSEC) {
            demo_stats_error(stats, "the server does not answer");
        }

        if (demo_load_failed(&client->load)) {
            return -1;
        }
    }
}

static int demo_client_connect(demo_client_t *client)
{
    demo_hello_t hello = {
        .num_workers = client->ucp.num_workers,
        .num_slots   = demo_layout_num_slots()
    };
    const ucp_address_t *addresses[DEMO_MAX_WORKERS];
    const void *key;
    demo_load_ep_t *ep;
    size_t length;
    unsigned i;

    if ((demo_oob_connect(&client->oob, client->opts->host,
                          client->opts->port) != 0) ||
        (demo_oob_send(&client->oob, DEMO_OOB_HELLO, &hello, sizeof(hello)) !=
         0)) {
        return -1;
    }

    if (demo_client_wait(client, DEMO_OOB_WELCOME, &length) != 0) {
        demo_error("%s", client->load.stats.error);
        return -1;
    }

    if (demo_client_parse_welcome(client, length, addresses, &key) != 0) {
        demo_error("the server is of another version");
        return -1;
    }

    for (i = 0; i < client->ucp.num_workers * client->server_workers; ++i) {
        ep         = &client->load.eps[i];
        ep->worker = client->ucp.workers[i / client->server_workers];
        if (demo_client_create_ep(client, ep,
                                  addresses[i % client->server_workers],
                                  key) != 0) {
            return -1;
        }
    }

    return 0;
}

/* Checks during any wait of the client */
static void demo_client_watch(demo_client_t *client)
{
    demo_stats_t *stats = &client->load.stats;
    uint64_t now        = demo_now();
    char error[DEMO_TEXT_LEN];
    demo_oob_type_t type;
    size_t length;
    int ret;

    demo_report_tick(stats, now);
    if ((demo_load_in_flight(&client->load) > 0) &&
        (now - stats->busy_since > client->opts->give_up * DEMO_NSEC)) {
        demo_stats_error(stats,
                         "%" PRIu64 " operations have not completed for "
                         "%.0f s",
                         demo_load_in_flight(&client->load),
                         client->opts->give_up);
    }

    ret = demo_oob_poll(&client->oob, &type, &length, error);
    if (ret < 0) {
        demo_stats_error(stats, "server: %.200s", error);
    } else if (ret > 0) {
        demo_stats_error(stats, "server: %.200s", client->oob.payload);
    }
}

static int demo_client_load_ended(const demo_client_t *client, uint64_t end)
{
    const demo_load_t *load = &client->load;

    return demo_load_failed(load) || demo_client_interrupted ||
           (demo_now() > end) ||
           ((load->max_ops > 0) && (load->stats.posted >= load->max_ops));
}

static void demo_client_run_load(demo_client_t *client)
{
    demo_load_t *load = &client->load;
    unsigned i        = 0;
    uint64_t end;

    signal(SIGINT, demo_client_interrupt);
    demo_stats_start(&load->stats);
    end = load->stats.start + (uint64_t)(client->opts->seconds * DEMO_NSEC);
    while (!demo_client_load_ended(client, end)) {
        demo_load_post(load);
        demo_ucp_progress(&client->ucp);
        if ((++i % 64) == 0) {
            demo_client_watch(client);
        }
    }
}

/* Progress until the request has completed, or the job has failed */
static ucs_status_t
demo_client_finish(demo_client_t *client, ucs_status_ptr_t request)
{
    ucs_status_t status = UCS_PTR_STATUS(request);

    if (!UCS_PTR_IS_PTR(request)) {
        return status;
    }

    while (((status = ucp_request_check_status(request)) ==
            UCS_INPROGRESS) &&
           !demo_load_failed(&client->load)) {
        demo_ucp_progress(&client->ucp);
        demo_client_watch(client);
    }

    ucp_request_free(request);
    return status;
}

static void demo_client_drain(demo_client_t *client)
{
    ucp_request_param_t param = {0};
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < client->ucp.num_workers; ++i) {
        status = demo_client_finish(
                client, ucp_worker_flush_nbx(client->ucp.workers[i], &param));
        if (status != UCS_OK) {
            demo_stats_error(&client->load.stats, "flush failed: %s",
                             ucs_status_string(status));
        }
    }

    while ((demo_load_in_flight(&client->load) > 0) &&
           !demo_load_failed(&client->load)) {
        demo_ucp_progress(&client->ucp);
        demo_client_watch(client);
    }
}

/* Say on each endpoint that its puts are complete. The flush proves that they were
 * acknowledged, which a NIC may do before the data is in memory. The server's CPU may rely
 * on the data after it has received a later message of the same endpoint. */
static void demo_client_send_last(demo_client_t *client)
{
    ucp_request_param_t param = {0};
    demo_load_ep_t *ep;
    ucs_status_ptr_t request;
    unsigned i;

    for (i = 0; i < client->load.num_eps; ++i) {
        ep       = &client->load.eps[i];
        ep->last = (demo_am_hdr_t){.magic = DEMO_AM_MAGIC,
                                   .ep    = i,
                                   .seq   = ep->am_seq + 1};
        request  = ucp_am_send_nbx(ep->ep, DEMO_AM_ID, &ep->last,
                                   sizeof(ep->last), NULL, 0, &param);
        if (UCS_PTR_IS_ERR(request)) {
            demo_stats_error(&client->load.stats,
                             "endpoint %u: its last message failed: %s", i,
                             ucs_status_string(UCS_PTR_STATUS(request)));
        } else if (request != NULL) {
            ucp_request_free(request); /* The server says whether it came */
        }
    }
}

static int demo_client_send_totals(demo_client_t *client)
{
    size_t num_slots = demo_layout_num_slots();
    size_t length    = client->load.num_eps *
                       (sizeof(demo_totals_t) + (num_slots * sizeof(uint64_t)));
    demo_totals_t *totals;
    uint64_t *slots;
    unsigned i;
    int ret;

    totals = malloc(length);
    if (totals == NULL) {
        demo_stats_error(&client->load.stats, "out of memory");
        return -1;
    }

    slots = (uint64_t*)(totals + client->load.num_eps);
    for (i = 0; i < client->load.num_eps; ++i) {
        totals[i].messages      = client->load.eps[i].am_seq;
        totals[i].message_bytes = client->load.eps[i].am_bytes;
        memcpy(slots, client->load.eps[i].slots, num_slots * sizeof(*slots));
        slots += num_slots;
    }

    ret = demo_oob_send(&client->oob, DEMO_OOB_TOTALS, totals, length);
    free(totals);
    return ret;
}

/* Ask the server for its verdict, or inform it that the load has failed */
static void demo_client_judge(demo_client_t *client)
{
    demo_stats_t *stats = &client->load.stats;
    size_t length;

    if (demo_load_failed(&client->load)) {
        demo_oob_send(&client->oob, DEMO_OOB_FAILED, stats->error,
                      strlen(stats->error));
        return;
    }

    if ((demo_client_send_totals(client) != 0) ||
        (demo_client_wait(client, DEMO_OOB_VERDICT, &length) != 0)) {
        demo_stats_error(stats, "cannot send the totals to the server");
        return;
    }

    if (length != sizeof(client->verdict)) {
        demo_stats_error(stats, "the server is of another version");
        return;
    }

    memcpy(&client->verdict, client->oob.payload, length);
    client->verdict.error[DEMO_TEXT_LEN - 1] = '\0';
    client->judged                           = 1;
}

/* Close all endpoints; returns 0 if they have closed and all operations have
 * completed */
static int demo_client_close(demo_client_t *client)
{
    ucp_request_param_t param   = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS
    };
    unsigned num_requests       = 0;
    uint64_t end                = demo_now() + DEMO_CLOSE_NSEC;
    ucs_status_ptr_t requests[DEMO_MAX_EPS];
    ucs_status_ptr_t request;
    unsigned i;

    if (demo_load_failed(&client->load)) {
        param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    }

    for (i = 0; i < client->load.num_eps; ++i) {
        if (client->load.eps[i].rkey != NULL) {
            ucp_rkey_destroy(client->load.eps[i].rkey);
        }

        request = ucp_ep_close_nbx(client->load.eps[i].ep, &param);
        if (UCS_PTR_IS_PTR(request)) {
            requests[num_requests++] = request;
        }
    }

    while (((num_requests > 0) || (demo_load_in_flight(&client->load) > 0)) &&
           (demo_now() < end)) {
        demo_ucp_progress(&client->ucp);
        while ((num_requests > 0) &&
               (ucp_request_check_status(requests[num_requests - 1]) !=
                UCS_INPROGRESS)) {
            ucp_request_free(requests[--num_requests]);
        }
    }

    if ((num_requests > 0) || (demo_load_in_flight(&client->load) > 0)) {
        demo_stats_error(&client->load.stats,
                         "%u endpoints did not close, %" PRIu64
                         " operations did not complete",
                         num_requests, demo_load_in_flight(&client->load));
        return -1;
    }

    return 0;
}

/* Returns 0 if everything is closed again */
static int demo_client_work(demo_client_t *client)
{
    const demo_opts_t *opts = client->opts;

    if ((demo_client_connect(client) != 0) ||
        (demo_load_init(&client->load, opts) != 0)) {
        demo_stats_error(&client->load.stats, "could not start");
    } else {
        printf("client: %u endpoints, %.1f s of load\n", client->load.num_eps,
               opts->seconds);
        fflush(stdout);
        demo_client_run_load(client);
        if (!demo_load_failed(&client->load)) {
            demo_client_drain(client);
        }

        if (!demo_load_failed(&client->load)) {
            demo_client_send_last(client);
        }

        demo_client_judge(client);
    }

    return demo_client_close(client);
}

int demo_client_run(const demo_opts_t *opts)
{
    static demo_client_t client; /* Large */
    int closed, ok;

    client.opts   = opts;
    client.oob.fd = -1;
    if (demo_ucp_init(&client.ucp, opts) != 0) {
        return EXIT_FAILURE;
    }

    closed = demo_client_work(&client);
    ok     = demo_report_summary(&client.load.stats,
                                 client.judged ? &client.verdict : NULL,
                                 opts->summary_file);
    if ((closed != 0) || demo_load_failed(&client.load)) {
        /* A failed job exits without cleaning up */
        return EXIT_FAILURE;
    }

    demo_oob_send(&client.oob, DEMO_OOB_BYE, NULL, 0);
    demo_load_cleanup(&client.load);
    demo_oob_close(&client.oob);
    demo_ucp_cleanup(&client.ucp);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
