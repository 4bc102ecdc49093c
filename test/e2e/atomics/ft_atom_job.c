/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A process of the sweep of atomics (ft_atom_sweep). It uses only UCT, reads commands
 * from stdin, and answers each with "ft: ok ...".
 *
 *     server    set VALUE | get | clear WIDTH | words | batch COUNT |
 *               until VALUE | computes
 *     client    connect ADDRESS | open | warm | idle SECONDS | run WIDTH ATOMS |
 *               load WIDTH CLIENT SEED SECONDS FILE | time WIDTH COUNT ALONE ATOM |
 *               batch COUNT VALUE | many COUNT ROUNDS | fenced WIDTH COUNT |
 *               order WIDTH STORY | crowd COUNT ROUNDS | gather COUNT |
 *               burst ROUNDS | second | close | put VALUE [FLUSH]
 *
 * "run" executes atomics on the word, one after the other, and a flush. "warm" accesses
 * the next word. "load" is the load of the chaos test (ft_atom_load.c), on other words,
 * which the server clears and prints. "time" and "batch" are for the benchmark
 * (ft_atom_batch.c); a batch continues with the words of the last one. "until" polls
 * the word as OpenSHMEM's wait_until does, and prints how many UIDs it saw;
 * rc_varuna_atomic_read() must resolve each of them. "many" adds 1 to COUNT words at
 * once. "fenced" has fences between atomics and puts of the word. "order" runs a story
 * of ft_atom_order.c. "crowd" adds 1 to the word over COUNT endpoints, one after the
 * other. "gather" opens COUNT endpoints, "burst" adds over all of them at once
 * (ft_atom_burst.c). "second" creates and uses another endpoint, until "close". "put" puts
 * VALUE to the word and flushes the endpoint, by polls ("ep") or a completion ("comp"), or the
 * interface ("iface"); "remote-ep" and so on: with UCT_FLUSH_FLAG_REMOTE.
 */
#include "ft_atom_batch.h"
#include "ft_atom_burst.h"
#include "ft_atom_order.h"
#include "ft_clock.h"
#include "ft_line.h"
#include "ft_symbol.h"

#include "rc_varuna.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_TL_NAME  "rc_varuna"
#define FT_RUN_TIME 100.0   /* Seconds without progress; ends only a hang */
#define FT_UNTIL_TIME 100.0 /* ... for a value */
#define FT_WORD     0       /* Offsets */
#define FT_WARM     64
#define FT_CROWD_MAX 512
#define FT_IS_UID(_word) ((_word) >> 63)
#define FT_REMOTE   "remote-"
#define FT_FLUSH_REMOTE UCS_BIT(1) /* UCT_FLUSH_FLAG_REMOTE, from UCX 1.14 on */

typedef struct {
    ft_uct_t          uct;
    ft_address_t      server;
    uct_rkey_bundle_t rkey;
    uct_ep_h          ep;
    uct_ep_h          first;     /* While "ep" is the second one */
    uint64_t          last_seen;
    uint64_t          result;
    uct_completion_t  comp;
    int               computes;  /* ... and makes no progress */
} ft_atom_job_t;

static uint64_t ft_memory[(FT_ATOM_WORDS + 1) * FT_ATOM_WORDS_STRIDE /
                          sizeof(uint64_t)]
        __attribute__((aligned(4096)));

static void ft_done(uct_completion_t *comp)
{
    if (comp->status != UCS_OK) {
        ft_die("an atomic completed with %s", ucs_status_string(comp->status));
    }
}

static void ft_progress(ft_atom_job_t *job, double since)
{
    if (uct_worker_progress(job->uct.worker) == 0) {
        sched_yield();
    }

    if (ft_now() - since > FT_RUN_TIME) {
        ft_die("a run did not end");
    }

    if (job->uct.ep_errors > 0) {
        ft_die("the endpoint failed");
    }
}

static void ft_execute(ft_atom_job_t *job, ft_atom_t *atom, uint64_t addr,
                       unsigned width)
{
    double since = ft_now();
    ucs_status_t status;

    if (atom->last_seen) {
        atom->compare = job->last_seen;
    }

    job->comp.func   = ft_done;
    job->comp.count  = 1;
    job->comp.status = UCS_OK;
    job->result      = 0;
    while ((status = ft_atom_post(job->ep, job->rkey.rkey, atom, addr, width,
                                  &job->result, &job->comp)) ==
           UCS_ERR_NO_RESOURCE) {
        ft_progress(job, since);
    }

    if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
        ft_die("an atomic failed: %s", ucs_status_string(status));
    }

    if (!atom->fetch) {
        return;
    }

    while ((status == UCS_INPROGRESS) && (job->comp.count > 0)) {
        ft_progress(job, since);
    }

    atom->result   = job->result;
    job->last_seen = ft_atom_apply(atom, atom->result, width);
}

static void ft_flush(ft_atom_job_t *job)
{
    double since = ft_now();

    while (uct_ep_flush(job->ep, 0, NULL) != UCS_OK) {
        ft_progress(job, since);
    }
}

/* @return Whether a flush of this kind is complete, or will call job->comp. */
static int ft_flush_once(ft_atom_job_t *job, const char *kind)
{
    unsigned flags = 0;
    ucs_status_t status;

    if (!strncmp(kind, FT_REMOTE, strlen(FT_REMOTE))) {
        flags = FT_FLUSH_REMOTE;
        kind += strlen(FT_REMOTE);
    }

    if (!strcmp(kind, "iface")) {
        status = uct_iface_flush(job->uct.iface, flags, NULL);
    } else if (!strcmp(kind, "comp")) {
        status = uct_ep_flush(job->ep, flags, &job->comp);
    } else if (!strcmp(kind, "ep")) {
        status = uct_ep_flush(job->ep, flags, NULL);
    } else {
        ft_die("put: there is no flush %s", kind);
    }

    job->comp.count -= (status == UCS_OK);
    if ((status != UCS_OK) && (status != UCS_INPROGRESS) &&
        (status != UCS_ERR_NO_RESOURCE)) {
        ft_die("a flush failed: %s", ucs_status_string(status));
    }

    return (status == UCS_OK) || ((status == UCS_INPROGRESS) && !strcmp(kind, "comp"));
}

static void ft_put(ft_atom_job_t *job, const char *text)
{
    double since  = ft_now();
    char kind[16] = "ep";
    ucs_status_t status;
    uint64_t value;

    if (sscanf(text, "%" SCNx64 " %15s", &value, kind) < 1) {
        ft_die("put: bad arguments: %s", text);
    }

    while ((status = uct_ep_put_short(job->ep, &value, sizeof(value),
                                      job->server.base + FT_WORD, job->rkey.rkey)) ==
           UCS_ERR_NO_RESOURCE) {
        ft_progress(job, since);
    }

    if (status != UCS_OK) {
        ft_die("a put failed: %s", ucs_status_string(status));
    }

    job->comp.func   = ft_done;
    job->comp.count  = 1;
    job->comp.status = UCS_OK;
    while (!ft_flush_once(job, kind)) {
        ft_progress(job, since);
    }

    while (job->comp.count > 0) {
        ft_progress(job, since);
    }
}

static void ft_run(ft_atom_job_t *job, const char *text)
{
    ft_atom_t atoms[FT_ATOM_MAX];
    char line[FT_ATOM_TEXT_MAX];
    unsigned width;
    int num, at, i;

    if ((sscanf(text, "%u %" SCNx64 " %n", &width, &job->last_seen, &at) < 2) ||
        ((num = ft_atoms_parse(text + at, atoms)) < 0)) {
        ft_die("run: bad arguments: %s", text);
    }

    for (i = 0; i < num; ++i) {
        ft_execute(job, &atoms[i], job->server.base + FT_WORD, width);
    }

    ft_flush(job);
    flockfile(stdout); /* UCX's other thread may log there */
    printf("ft: ok ");
    for (i = 0; i < num; ++i) {
        ft_atom_format(&atoms[i], line);
        printf("%s%s", (i > 0) ? "," : "", line);
    }
    printf("\n");
    funlockfile(stdout);
}

static void ft_idle(ft_atom_job_t *job, double seconds)
{
    double end = ft_now() + seconds;

    while (ft_now() < end) {
        if (uct_worker_progress(job->uct.worker) == 0) {
            sched_yield();
        }
    }
}

static void ft_load(ft_atom_job_t *job, const char *text)
{
    ft_atom_load_t load = {.uct = &job->uct, .ep = job->ep,
                           .rkey = job->rkey.rkey, .base = job->server.base};

    if (sscanf(text, "%u %u %" SCNu64 " %lf %255s", &load.width, &load.client,
               &load.seed, &load.seconds, load.path) != 5) {
        ft_die("load: bad arguments: %s", text);
    }

    printf("ft: ok %zu\n", ft_atom_load_run(&load));
}

/* The address of the word of a run */
static void ft_time(ft_atom_job_t *job, const char *text)
{
    ft_atom_load_t load = {.uct = &job->uct, .ep = job->ep,
                           .rkey = job->rkey.rkey, .base = job->server.base};
    ft_atom_t atoms[FT_ATOM_MAX];
    double median, shortest;
    unsigned count, alone;
    int at;

    if ((sscanf(text, "%u %u %u %n", &load.width, &count, &alone, &at) != 3) ||
        (ft_atoms_parse(text + at, atoms) != 1)) {
        ft_die("time: bad arguments: %s", text);
    }

    median = ft_atom_time(&load, &atoms[0], load.base + FT_WORD, count, alone,
                          &shortest);
    printf("ft: ok %.1f %.1f\n", median, shortest);
}

static void ft_fenced(ft_atom_job_t *job, const char *text)
{
    ft_atom_load_t load = {.uct = &job->uct, .ep = job->ep,
                           .rkey = job->rkey.rkey};
    unsigned count;

    if (sscanf(text, "%u %u", &load.width, &count) != 2) {
        ft_die("fenced: bad arguments: %s", text);
    }

    ft_atom_fenced(&load, job->server.base + FT_WORD, count);
    printf("ft: ok\n");
}

static void ft_order(ft_atom_job_t *job, const char *text)
{
    ft_atom_load_t load = {.uct = &job->uct, .ep = job->ep,
                           .rkey = job->rkey.rkey};
    char name[32];

    if ((sscanf(text, "%u %31s", &load.width, name) != 2) ||
        (ft_atom_order(&load, job->server.base + FT_WORD, name) != 0)) {
        ft_die("order: bad arguments: %s", text);
    }

    printf("ft: ok\n");
}

/* More endpoints than there are blocks of slots; the results must be the same */
static void ft_crowd(ft_atom_job_t *job, const char *text)
{
    static uct_ep_h eps[FT_CROWD_MAX];
    ft_atom_t atom = {.op = FT_ATOM_ADD, .fetch = 1, .value = 1};
    uct_ep_h own   = job->ep;
    unsigned count, rounds, i;

    if ((sscanf(text, "%u %u", &count, &rounds) != 2) ||
        (count > FT_CROWD_MAX)) {
        ft_die("crowd: bad arguments: %s", text);
    }

    for (i = 0; i < count; ++i) {
        eps[i] = ft_uct_connect(&job->uct, &job->server);
    }

    for (i = 0; i < count * rounds; ++i) {
        job->ep = eps[i % count];
        ft_execute(job, &atom, job->server.base + FT_WORD, 8);
        if (atom.result != i) {
            ft_die("crowd: endpoint %u got %" PRIu64 ", not %u", i % count,
                   atom.result, i);
        }
    }

    for (i = 0; i < count; ++i) {
        job->ep = eps[i];
        ft_flush(job);
        uct_ep_destroy(eps[i]);
    }

    job->ep = own;
    printf("ft: ok\n");
}

static void ft_batch(ft_atom_job_t *job, const char *text)
{
    static uint64_t words[FT_ATOM_BATCH_MAX];
    ft_atom_load_t load = {.uct = &job->uct, .ep = job->ep,
                           .rkey = job->rkey.rkey, .base = job->server.base,
                           .width = 8};
    unsigned num, i;
    uint64_t value;

    if ((sscanf(text, "%u %" SCNx64, &num, &value) != 2) ||
        (num > FT_ATOM_BATCH_MAX)) {
        ft_die("batch: bad arguments: %s", text);
    }

    ft_atom_batch(&load, num, words, value);
    printf("ft: ok");
    for (i = 0; i < num; ++i) {
        printf(" %" PRIx64, words[i]);
        words[i] = value + i;
    }
    printf("\n");
}

/* After the last word of a load; no client has so many slots */
static void ft_many(ft_atom_job_t *job, const char *text)
{
    ft_atom_load_t load = {.uct = &job->uct, .ep = job->ep,
                           .rkey = job->rkey.rkey,
                           .base = job->server.base + FT_ATOM_MANY_OFFSET};
    unsigned num, rounds;

    if (sscanf(text, "%u %u %u", &load.width, &num, &rounds) != 3) {
        ft_die("many: bad arguments: %s", text);
    }

    while (rounds-- > 0) {
        ft_atom_many(&load, num);
    }

    printf("ft: ok\n");
}

/* --- Server --- */

static void ft_check_time(double since, uint64_t value)
{
    sched_yield();
    if (ft_now() - since > FT_UNTIL_TIME) {
        ft_die("until: the word is %" PRIx64, value);
    }
}

/* @return The value of a UID in the word, when it is decided. */
static uint64_t ft_resolve(volatile uint64_t *word, double since)
{
    typeof(&rc_varuna_atomic_read) resolve;
    uint64_t value;
    int ret;

    resolve = (typeof(resolve))ft_symbol("rc_varuna_atomic_read");
    if (resolve == NULL) {
        ft_die("there is no rc_varuna_atomic_read");
    }

    while ((ret = resolve(word, sizeof(*word), &value)) == -EAGAIN) {
        ft_check_time(since, *word);
    }

    if ((ret != 0) || FT_IS_UID(value)) {
        ft_die("until: a UID is read as %" PRIx64 ", %d", value, ret);
    }

    return value;
}

/* Only loads, without progress. Values increase */
static void ft_until(uint64_t last)
{
    volatile uint64_t *word = &ft_memory[FT_WORD];
    double since            = ft_now();
    uint64_t before         = 0;
    unsigned uids           = 0;
    unsigned looks          = 0;
    uint64_t value;

    do {
        value = *word;
        if (FT_IS_UID(value)) {
            ++uids;
            value = ft_resolve(word, since);
        }

        if (value < before) {
            ft_die("until: %" PRIx64 " after %" PRIx64, value, before);
        }

        before = value;
        if ((++looks % 1024) == 0) {
            ft_check_time(since, value);
        }
    } while (value != last);

    printf("ft: ok %u\n", uids);
}

static void ft_tell_many(unsigned num)
{
    const uint64_t *words = &ft_memory[FT_ATOM_MANY_OFFSET / sizeof(uint64_t)];
    unsigned i;

    printf("ft: ok");
    for (i = 0; i < num; ++i) {
        printf(" %" PRIu64, words[i]);
    }
    printf("\n");
}

static void ft_tell_batch(unsigned num)
{
    unsigned i;

    printf("ft: ok");
    for (i = 0; i < num; ++i) {
        printf(" %" PRIx64,
               ft_memory[FT_ATOM_BATCH_OFFSET(i) / sizeof(uint64_t)]);
    }
    printf("\n");
}

static uint64_t *ft_load_word(unsigned i)
{
    return &ft_memory[(i + 1) * FT_ATOM_WORDS_STRIDE / sizeof(uint64_t)];
}

static void ft_clear(unsigned width)
{
    unsigned i;

    for (i = 0; i < FT_ATOM_WORDS; ++i) {
        *ft_load_word(i) = ft_atom_word_first(i, width);
    }
}

static void ft_tell_words(void)
{
    unsigned i;

    printf("ft: ok");
    for (i = 0; i < FT_ATOM_WORDS; ++i) {
        printf(" %" PRIx64, *ft_load_word(i));
    }
    printf("\n");
}

/* --- Commands --- */

static void ft_command(ft_atom_job_t *job, char *line)
{
    ft_atom_t warm = {.op = FT_ATOM_ADD, .fetch = 1, .value = 0};

    if (!strncmp(line, "run ", 4)) {
        ft_run(job, line + 4);
        return;
    } else if (!strncmp(line, "load ", 5)) {
        ft_load(job, line + 5);
        return;
    } else if (!strncmp(line, "time ", 5)) {
        ft_time(job, line + 5);
        return;
    } else if (!strncmp(line, "crowd ", 6)) {
        ft_crowd(job, line + 6);
        return;
    } else if (!strncmp(line, "gather ", 7)) {
        ft_atom_burst_open(&job->uct, &job->server, job->rkey.rkey,
                           job->server.base + FT_ATOM_MANY_OFFSET, atoi(line + 7));
    } else if (!strncmp(line, "put ", 4)) {
        ft_put(job, line + 4);
    } else if (!strncmp(line, "burst ", 6)) {
        ft_atom_burst_run(atoi(line + 6));
    } else if (!strncmp(line, "order ", 6)) {
        ft_order(job, line + 6);
        return;
    } else if (!strncmp(line, "fenced ", 7)) {
        ft_fenced(job, line + 7);
        return;
    } else if (!strncmp(line, "until ", 6)) {
        ft_until(strtoull(line + 6, NULL, 16));
        return;
    } else if (!strncmp(line, "many ", 5)) {
        if (job->ep != NULL) {
            ft_many(job, line + 5);
        } else {
            ft_tell_many(atoi(line + 5));
        }
        return;
    } else if (!strncmp(line, "batch ", 6)) {
        if (job->ep != NULL) {
            ft_batch(job, line + 6);
        } else {
            ft_tell_batch(atoi(line + 6));
        }
        return;
    } else if (!strcmp(line, "words")) {
        ft_tell_words();
        return;
    } else if (!strncmp(line, "clear ", 6)) {
        ft_clear(atoi(line + 6));
    } else if (!strncmp(line, "connect ", 8)) {
        ft_uct_use_address(&job->uct, line + 8, &job->server, &job->rkey);
    } else if (!strcmp(line, "open")) {
        if (job->ep != NULL) {
            uct_ep_destroy(job->ep);
        }
        job->ep = ft_uct_connect(&job->uct, &job->server);
    } else if (!strcmp(line, "second") && (job->first == NULL)) {
        job->first = job->ep;
        job->ep    = ft_uct_connect(&job->uct, &job->server);
    } else if (!strcmp(line, "close") && (job->first != NULL)) {
        uct_ep_destroy(job->ep);
        job->ep    = job->first;
        job->first = NULL;
    } else if (!strcmp(line, "warm")) {
        ft_execute(job, &warm, job->server.base + FT_WARM, 8);
    } else if (!strncmp(line, "idle ", 5)) {
        ft_idle(job, atof(line + 5));
    } else if (!strncmp(line, "set ", 4)) {
        ft_memory[FT_WORD] = strtoull(line + 4, NULL, 16);
    } else if (!strcmp(line, "computes")) {
        job->computes = 1;
    } else if (!strcmp(line, "get")) {
        printf("ft: ok %" PRIx64 "\n", ft_memory[FT_WORD]);
        return;
    } else {
        ft_die("bad command %s", line);
    }

    printf("ft: ok\n");
}

static void ft_serve(ft_atom_job_t *job)
{
    ft_line_t input = {.length = 0};
    char *line;

    while (!input.eof) {
        line = ft_line_read(&input, 1);
        if (line != NULL) {
            ft_command(job, line);
        } else if (!job->computes) {
            while (uct_worker_progress(job->uct.worker) > 0);
        }
    }
}

int main(int argc, char **argv)
{
    static ft_atom_job_t job;
    int is_server = (argc == 2) && !strcmp(argv[1], "server");
    uct_mem_h memh;

    if ((argc != 2) || (!is_server && strcmp(argv[1], "client"))) {
        ft_die("usage: ft_atom_job server|client");
    }

    setvbuf(stdout, NULL, _IOLBF, 0);
    ft_uct_open(&job.uct, FT_TL_NAME);
    memh = ft_uct_reg(&job.uct, ft_memory, sizeof(ft_memory));
    if (is_server) {
        ft_uct_print_address(&job.uct, "ft: address", memh, ft_memory);
    } else {
        printf("ft: ready\n");
    }

    ft_serve(&job);
    if (job.ep != NULL) {
        uct_ep_destroy(job.ep);
        uct_rkey_release(job.uct.component, &job.rkey);
    }

    uct_md_mem_dereg(job.uct.md, memh);
    ft_uct_close(&job.uct);
    return 0;
}
