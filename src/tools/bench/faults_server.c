/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The process whose memory is written. It sleeps: a process that polls would take a CPU
 * from the client, or from the emulator.
 */
#include "cost_oob.h"
#include "faults_roles.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>


#define FAULTS_SERVER_SLEEP_MS 1
#define FAULTS_SERVER_CALLS    64

/* Sleeps between looks at the memory: one takes some ten microseconds */
#define FAULTS_SERVER_TURNS    4


/* Endpoints of the server have no requests */
static ucs_status_t faults_server_failed(void *arg, uct_ep_h ep, ucs_status_t status)
{
    return UCS_OK;
}

/* Whether the client has asked something, or has died. Meanwhile, make progress */
static int faults_server_has_question(cost_uct_t *uct, int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    unsigned i;

    for (i = 0; (i < FAULTS_SERVER_CALLS) && uct_worker_progress(uct->worker); ++i);
    return poll(&entry, 1, FAULTS_SERVER_SLEEP_MS) != 0;
}

static uint64_t faults_server_count(const cost_uct_t *uct, const batch_load_t *load,
                                    const faults_question_t *question)
{
    const char *slots = (const char*)uct->buffer + question->offset;
    uint64_t found    = 0;
    uint64_t word, i;

    for (i = 0; i < question->count; ++i) {
        memcpy(&word, slots + ((i + 1) * load->size) - sizeof(word), sizeof(word));
        found += (word == question->value);
    }

    return found;
}

/* The last word of a slot counts the batches of which the put has come */
static void faults_server_watch(const cost_uct_t *uct, const batch_load_t *load)
{
    static unsigned turns;
    uint64_t found = 0;
    uint64_t word;
    size_t end;

    if ((turns++ % FAULTS_SERVER_TURNS) != 0) {
        return;
    }

    for (end = load->size; end <= uct->length; end += load->size) {
        memcpy(&word, (const char*)uct->buffer + end - sizeof(word), sizeof(word));
        found += word - batch_load_value(0);
    }

    printf("executed %" PRIu64 " %" PRIu64 "\n", batch_now(), found);
}

int faults_serve(const faults_args_t *args, int fd)
{
    size_t bytes   = batch_load_bytes(&args->load);
    cost_uct_t uct = {.failed = faults_server_failed};
    faults_question_t question;
    uint64_t found;
    unsigned i;

    if (cost_uct_open_device(&uct, args->tl, args->device,
                             bytes * args->num_eps) != 0) {
        return -1;
    }

    for (i = 0; i < args->num_eps; ++i) {
        if (cost_uct_connect(&uct, fd, 0) != 0) {
            return -1;
        }
    }

    for (;;) {
        while (!faults_server_has_question(&uct, fd)) {
            if (args->load.watch) {
                faults_server_watch(&uct, &args->load);
            }
        }

        if (cost_oob_recv(fd, &question, sizeof(question)) != 0) {
            return -1;
        }

        if (question.count == 0) {
            return 0;
        }

        if ((question.offset > bytes * (args->num_eps - 1)) ||
            (question.count > args->load.count)) {
            fprintf(stderr, "a question about other memory\n");
            return -1;
        }

        found = faults_server_count(&uct, &args->load, &question);
        if (cost_oob_send(fd, &found, sizeof(found)) != 0) {
            return -1;
        }
    }
}
