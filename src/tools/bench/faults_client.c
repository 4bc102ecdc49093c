/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The process that posts batches on all endpoints in turn, while links fail. The lines of
 * its input and output are described in faults_main.c.
 */
#include "cost_oob.h"
#include "faults_roles.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


/* Loops between looks at the input */
#define FAULTS_LOOPS   64

/* A bin of the throughput over time, and their number */
#define FAULTS_BIN_NS  1000000ul
#define FAULTS_BINS    120000

#define FAULTS_CONNECT_SLEEP_US 100

/* Batches to remember */
#define FAULTS_BATCHES (1ul << 20)


typedef enum {
    FAULTS_RUN,
    FAULTS_GO,     /* Connect no longer, begin */
    FAULTS_STOP,   /* Begin no batch, wait for those in flight */
    FAULTS_COUNT   /* Ask what of those in flight was executed, wait for none */
} faults_command_t;


typedef struct {
    uint32_t ep;
    uint64_t start, end;
} faults_batch_t;


typedef struct {
    const faults_args_t *args;
    int                 fd;
    cost_uct_t          uct;
    batch_ep_t          *eps;
    uint8_t             *ended;       /* Endpoints without a batch in flight */
    unsigned            num_ended;
    uint64_t            ready;        /* When the load began */
    faults_batch_t      *batches;
    size_t              num_batches;
    uint32_t            *latencies;   /* In us, of operations */
    size_t              num_latencies;
    uint32_t            *bins;        /* Operations completed in each ms */
} faults_client_t;


static faults_client_t faults_client;


/* Operations that failed are counted by their completions */
static ucs_status_t faults_client_failed(void *arg, uct_ep_h ep, ucs_status_t status)
{
    return UCS_OK;
}

static void faults_completed(batch_op_t *op, uint64_t now)
{
    faults_client_t *client = &faults_client;
    uint64_t bin;

    bin = (now - client->ready) / FAULTS_BIN_NS;
    if (bin < FAULTS_BINS) {
        ++client->bins[bin];
    }

    if (client->num_latencies < FAULTS_BATCHES) {
        client->latencies[client->num_latencies++] = (now - op->start) / 1000;
    }
}

static void faults_record(faults_client_t *client, unsigned i)
{
    faults_batch_t *batch = &client->batches[client->num_batches];

    if (client->num_batches < FAULTS_BATCHES) {
        batch->ep    = i;
        batch->start = client->eps[i].start;
        batch->end   = batch_now();
        ++client->num_batches;
    }
}

/* One turn of all endpoints */
static void faults_turn(faults_client_t *client, int is_stopping)
{
    batch_ep_t *ep;
    unsigned i;

    for (i = 0; i < client->args->num_eps; ++i) {
        ep = &client->eps[i];
        if (client->ended[i] || !batch_ep_post(ep)) {
            continue;
        }

        if (ep->status == UCS_OK) {
            faults_record(client, i);
        }

        if (is_stopping || (ep->status != UCS_OK)) {
            client->ended[i] = 1;
            ++client->num_ended;
        } else {
            batch_ep_start(ep);
        }
    }

    uct_worker_progress(client->uct.worker);
}

static void faults_print_pending(const faults_client_t *client)
{
    unsigned long pending = 0;
    unsigned i;

    for (i = 0; i < client->args->num_eps; ++i) {
        pending += client->ended[i] ? 0 : client->eps[i].pending;
    }

    printf("stopped %" PRIu64 " %lu\n", batch_now(), pending);
}

static faults_command_t
faults_command(const faults_client_t *client, faults_command_t command)
{
    struct pollfd entry = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[16];

    if (poll(&entry, 1, 0) == 0) {
        return command;
    } else if (fgets(line, sizeof(line), stdin) == NULL) {
        exit(EXIT_FAILURE); /* Nobody waits for the result */
    }

    if (!strcmp(line, "go\n")) {
        return FAULTS_GO;
    }

    faults_print_pending(client);
    return !strcmp(line, "count\n") ? FAULTS_COUNT : FAULTS_STOP;
}

static void faults_load(faults_client_t *client, uint64_t end)
{
    faults_command_t command = FAULTS_RUN;
    unsigned i;

    while ((command != FAULTS_COUNT) && (batch_now() < end) &&
           (client->num_ended < client->args->num_eps)) {
        for (i = 0; i < FAULTS_LOOPS; ++i) {
            faults_turn(client, command == FAULTS_STOP);
        }

        command = faults_command(client, command);
    }
}

/* --- Results --- */

/* What the server's memory has of the batches in flight */
static int faults_print_in_flight(faults_client_t *client)
{
    faults_question_t question;
    uint64_t found;
    unsigned i;

    for (i = 0; i < client->args->num_eps; ++i) {
        if (client->ended[i] || (client->eps[i].posted == 0)) {
            continue;
        }

        question.offset = client->eps[i].offset;
        question.value  = batch_load_value(client->eps[i].batches + 1);
        question.count  = client->eps[i].posted;
        if ((cost_oob_send(client->fd, &question, sizeof(question)) != 0) ||
            (cost_oob_recv(client->fd, &found, sizeof(found)) != 0)) {
            return -1;
        }

        printf("inflight %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i, question.count,
               found, client->eps[i].start);
    }

    return 0;
}

static void faults_ignore(uct_completion_t *self)
{
}

/* Get a word as the program would, by an atomic */
static ucs_status_t faults_read_word(faults_client_t *client, batch_ep_t *ep, unsigned i,
                                     uint64_t *word_p)
{
    uct_completion_t comp = {.func = faults_ignore, .count = 2, .status = UCS_OK};
    uint64_t remote       = client->uct.remote + ep->offset + (i * ep->load->size);
    ucs_status_t status;

    while ((status = uct_ep_atomic64_fetch(ep->ep, UCT_ATOMIC_OP_ADD, 0, word_p, remote,
                                           client->uct.rkey.rkey, &comp)) ==
           UCS_ERR_NO_RESOURCE) {
        uct_worker_progress(client->uct.worker);
    }

    while ((status == UCS_INPROGRESS) && (comp.count > 1) && (comp.status == UCS_OK)) {
        uct_worker_progress(client->uct.worker);
    }

    return UCS_STATUS_IS_ERR(status) ? status : comp.status;
}

/* Each word was changed once by each batch */
static void faults_print_words(faults_client_t *client)
{
    unsigned less, more, equal, i, k;
    ucs_status_t status;
    batch_ep_t *ep;
    uint64_t word;

    for (i = 0; i < client->args->num_eps; ++i) {
        ep   = &client->eps[i];
        less = more = equal = 0;
        for (k = 0; (k < ep->load->count) && (ep->status == UCS_OK); ++k) {
            status = faults_read_word(client, ep, k, &word);
            if (status != UCS_OK) {
                ep->status = status;
                break;
            }

            less  += (word < batch_load_value(ep->batches));
            more  += (word > batch_load_value(ep->batches));
            equal += (word == batch_load_value(ep->batches));
        }

        printf("words %u %u %u %u\n", i, equal, less, more);
    }
}

static int faults_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;

    return (x > y) - (x < y);
}

static void faults_print_records(faults_client_t *client)
{
    size_t n = client->num_latencies;
    size_t i;

    for (i = 0; i < client->num_batches; ++i) {
        printf("batch %u %" PRIu64 " %" PRIu64 "\n", client->batches[i].ep,
               client->batches[i].start, client->batches[i].end);
    }

    for (i = 0; i < FAULTS_BINS; ++i) {
        if (client->bins[i] > 0) {
            printf("bin %zu %u\n", i, client->bins[i]);
        }
    }

    if (n > 0) {
        qsort(client->latencies, n, sizeof(*client->latencies), faults_compare);
        printf("latency %zu %u %u %u\n", n, client->latencies[n / 2],
               client->latencies[(n * 99) / 100], client->latencies[n - 1]);
    }

    for (i = 0; i < client->args->num_eps; ++i) {
        printf("ep %zu %d %lu %lu %" PRIu64 " %u %u\n", i, client->eps[i].status,
               client->eps[i].wrong, client->eps[i].failed, client->eps[i].batches,
               client->eps[i].posted, client->eps[i].pending);
    }
}

/* --- Start --- */

static void *faults_alloc(size_t count, size_t size)
{
    void *ptr = calloc(count, size);

    if (ptr == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }

    return ptr;
}

static int faults_open(faults_client_t *client)
{
    const faults_args_t *args = client->args;
    size_t bytes              = batch_load_bytes(&args->load);
    unsigned i;

    client->uct.failed = faults_client_failed;
    client->eps        = faults_alloc(args->num_eps, sizeof(*client->eps));
    client->ended      = faults_alloc(args->num_eps, sizeof(*client->ended));
    client->batches    = faults_alloc(FAULTS_BATCHES, sizeof(*client->batches));
    client->latencies  = faults_alloc(FAULTS_BATCHES, sizeof(*client->latencies));
    client->bins       = faults_alloc(FAULTS_BINS, sizeof(*client->bins));
    if (cost_uct_open_device(&client->uct, args->tl, args->device,
                             bytes * args->num_eps) != 0) {
        return -1;
    }

    for (i = 0; i < args->num_eps; ++i) {
        if ((cost_uct_connect(&client->uct, client->fd, 1) != 0) ||
            (batch_ep_init(&client->eps[i], &client->uct, client->uct.ep, &args->load,
                           i * bytes) != 0)) {
            return -1;
        }

        client->eps[i].completed = args->load.each ? faults_completed : NULL;
    }

    return 0;
}

/* Transports connect in the background, undisturbed by a load */
static void faults_connect(faults_client_t *client, uint64_t end)
{
    while ((batch_now() < end) &&
           (faults_command(client, FAULTS_RUN) == FAULTS_RUN)) {
        uct_worker_progress(client->uct.worker);
        usleep(FAULTS_CONNECT_SLEEP_US);
    }
}

int faults_run(const faults_args_t *args, int fd)
{
    static const faults_question_t end = {0};
    faults_client_t *client            = &faults_client;
    int in_flight;
    unsigned i;

    client->args = args;
    client->fd   = fd;
    if (faults_open(client) != 0) {
        return -1;
    }

    faults_connect(client, batch_now() + (args->connect_ms * 1000000ul));
    client->ready = batch_now();
    printf("ready %" PRIu64 "\n", client->ready);
    for (i = 0; i < args->num_eps; ++i) {
        batch_ep_start(&client->eps[i]);
    }

    faults_load(client, client->ready + (args->limit_ms * 1000000ul));

    in_flight = (client->num_ended < args->num_eps);
    if (in_flight && (faults_print_in_flight(client) != 0)) {
        return -1;
    } else if (!in_flight && (args->load.kind == BATCH_CAS)) {
        faults_print_words(client);
    }

    setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    faults_print_records(client);
    printf("end\n");
    return cost_oob_send(fd, &end, sizeof(end));
}
