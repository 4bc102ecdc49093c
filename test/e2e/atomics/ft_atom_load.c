/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The load of the chaos test of atomics.
 */
#include "ft_atom_load.h"
#include "ft_clock.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FT_LOAD_MAX    (1u << 20) /* Operations */
#define FT_LOAD_END    60e9       /* Nanoseconds for the last operations */
#define FT_LOAD_POSTED 8          /* Flush after so many, to complete them */
#define FT_LOAD_RATE   4e-6       /* Maximum per nanosecond, for the check */

typedef struct {
    uct_completion_t comp;
    ft_atom_record_t *record;
    uint64_t         result;
    int              busy;
} ft_word_t;

typedef struct {
    const ft_atom_load_t *load;
    ft_atom_record_t     *records;
    size_t               num;
    ft_word_t            words[FT_ATOM_WORDS];
    uint64_t             random;
    uint64_t             serial;    /* Of new values */
    uint64_t             last_seen; /* In the word CHAIN */
    uct_completion_t     flush;
    size_t               flushed;   /* Records before the flush in flight */
    size_t               ended;     /* ... whose end is known */
    unsigned             posted;    /* Since the last flush */
    int                  flushing;
} ft_run_t;


ucs_status_t ft_atom_post(uct_ep_h ep, uct_rkey_t rkey, const ft_atom_t *atom,
                          uint64_t addr, unsigned width, uint64_t *result,
                          uct_completion_t *comp)
{
    static const uct_atomic_op_t ops[] = {
        [FT_ATOM_ADD]  = UCT_ATOMIC_OP_ADD,  [FT_ATOM_AND] = UCT_ATOMIC_OP_AND,
        [FT_ATOM_OR]   = UCT_ATOMIC_OP_OR,   [FT_ATOM_XOR] = UCT_ATOMIC_OP_XOR,
        [FT_ATOM_SWAP] = UCT_ATOMIC_OP_SWAP
    };
    uint32_t *low = (uint32_t*)result;

    if (atom->op == FT_ATOM_CSWAP) {
        return (width == 8) ?
               uct_ep_atomic_cswap64(ep, atom->compare, atom->value, addr, rkey,
                                     result, comp) :
               uct_ep_atomic_cswap32(ep, atom->compare, atom->value, addr, rkey,
                                     low, comp);
    } else if (atom->fetch) {
        return (width == 8) ?
               uct_ep_atomic64_fetch(ep, ops[atom->op], atom->value, result,
                                     addr, rkey, comp) :
               uct_ep_atomic32_fetch(ep, ops[atom->op], atom->value, low, addr,
                                     rkey, comp);
    }

    return (width == 8) ?
           uct_ep_atomic64_post(ep, ops[atom->op], atom->value, addr, rkey) :
           uct_ep_atomic32_post(ep, ops[atom->op], atom->value, addr, rkey);
}

/* --- Choosing --- */

/* Unique among all clients; positive, also in 32 bits */
static uint64_t ft_new_value(ft_run_t *run)
{
    return (++run->serial * FT_ATOM_LOAD_CLIENTS) + run->load->client + 1;
}

static void ft_choose_bits(ft_run_t *run, ft_atom_t *atom)
{
    static const ft_atom_op_t ops[] = {FT_ATOM_AND, FT_ATOM_OR, FT_ATOM_XOR};

    atom->op    = ops[ft_random(&run->random, 3)];
    atom->fetch = ft_random(&run->random, 2);
    atom->value = (atom->op == FT_ATOM_AND) ? ~(1ul << ft_random(&run->random, 4)) :
                  1ul << ft_random(&run->random, 4);
}

static void ft_choose_all(ft_run_t *run, ft_atom_t *atom)
{
    atom->op      = (ft_atom_op_t)ft_random(&run->random, FT_ATOM_CSWAP + 1);
    atom->fetch   = (atom->op >= FT_ATOM_SWAP) || ft_random(&run->random, 2);
    atom->compare = ft_random(&run->random, 8);
    atom->value   = ft_random(&run->random, 8);
}

static void ft_choose(ft_run_t *run, unsigned word, ft_atom_t *atom)
{
    uint64_t first = ft_atom_word_first(word, run->load->width);

    memset(atom, 0, sizeof(*atom));
    atom->fetch = 1;
    switch (word) {
    case FT_ATOM_WORD_FADD:
        atom->op    = FT_ATOM_ADD;
        atom->value = 1;
        break;
    case FT_ATOM_WORD_ADD:
        atom->op    = FT_ATOM_ADD;
        atom->fetch = ft_random(&run->random, 2);
        atom->value = 1 + ft_random(&run->random, 3);
        break;
    case FT_ATOM_WORD_CHAIN:
        atom->op      = FT_ATOM_CSWAP;
        atom->compare = run->last_seen;
        atom->value   = ft_new_value(run);
        break;
    case FT_ATOM_WORD_SWAP:
        atom->op    = FT_ATOM_SWAP;
        atom->value = ft_new_value(run);
        break;
    case FT_ATOM_WORD_BITS:
        ft_choose_bits(run, atom);
        break;
    case FT_ATOM_WORD_ALL:
        ft_choose_all(run, atom);
        break;
    default: /* ABA, HIGH */
        atom->op      = FT_ATOM_CSWAP;
        atom->compare = first + ft_random(&run->random, 4);
        atom->value   = first + ft_random(&run->random, 4);
        break;
    }

    if (run->load->width == 4) {
        atom->value = (uint32_t)atom->value;
    }
}

/* --- Running --- */

static void ft_word_done(ft_run_t *run, ft_word_t *word)
{
    ft_atom_record_t *record = word->record;

    record->end         = ft_now_ns();
    record->atom.result = word->result;
    word->busy          = 0;
    if (record->word == FT_ATOM_WORD_CHAIN) {
        run->last_seen = ft_atom_apply(&record->atom, word->result,
                                       record->width);
    }
}

static void ft_word_completion(uct_completion_t *comp)
{
    ft_word_t *word = (ft_word_t*)comp;

    if (comp->status != UCS_OK) {
        ft_die("an atomic completed with %s", ucs_status_string(comp->status));
    }

    if (word->busy != 1) {
        ft_die("an atomic completed twice");
    }

    word->busy = 2; /* The loop completes its record */
}

static void ft_flush_completion(uct_completion_t *comp)
{
    if (comp->status != UCS_OK) {
        ft_die("a flush completed with %s", ucs_status_string(comp->status));
    }
}

/* A flush completes the posted atomics before it */
static void ft_flush_progress(ft_run_t *run, int all)
{
    ucs_status_t status;
    uint64_t now;

    if (!run->flushing && ((run->posted >= FT_LOAD_POSTED) || all)) {
        run->flush.func   = ft_flush_completion;
        run->flush.count  = 1;
        run->flush.status = UCS_OK;
        run->flushed      = run->num;
        status            = uct_ep_flush(run->load->ep, 0, &run->flush);
        if (status == UCS_ERR_NO_RESOURCE) {
            return;
        } else if (UCS_STATUS_IS_ERR(status)) {
            ft_die("flush: %s", ucs_status_string(status));
        }

        run->posted      = 0;
        run->flushing    = 1;
        run->flush.count = (status == UCS_INPROGRESS);
    }

    if (run->flushing && (run->flush.count == 0)) {
        now = ft_now_ns();
        for (; run->ended < run->flushed; ++run->ended) {
            if (!run->records[run->ended].atom.fetch) {
                run->records[run->ended].end = now;
            }
        }
        run->flushing = 0;
    }
}

static void ft_word_start(ft_run_t *run, unsigned index)
{
    const ft_atom_load_t *load = run->load;
    ft_word_t *word            = &run->words[index];
    ft_atom_record_t *record   = &run->records[run->num];
    ucs_status_t status;

    record->client    = load->client;
    record->word      = index;
    record->width     = load->width;
    record->end       = UINT64_MAX;
    ft_choose(run, index, &record->atom);
    record->start     = ft_now_ns();
    word->comp.func   = ft_word_completion;
    word->comp.count  = 1;
    word->comp.status = UCS_OK;
    word->record      = record;
    word->result      = 0;
    word->busy        = 1;
    status = ft_atom_post(load->ep, load->rkey, &record->atom,
                          load->base + ((index + 1) * FT_ATOM_WORDS_STRIDE),
                          load->width, &word->result, &word->comp);
    if (status == UCS_ERR_NO_RESOURCE) {
        word->busy = 0;
        return;
    } else if (UCS_STATUS_IS_ERR(status)) {
        ft_die("an atomic failed: %s", ucs_status_string(status));
    }

    ++run->num;
    if (!record->atom.fetch) {
        ++run->posted;
        word->busy = 0;
    } else if (status == UCS_OK) {
        ft_word_done(run, word);
    }
}

/* @return The number of operations in flight */
static unsigned ft_progress(ft_run_t *run)
{
    unsigned busy = 0, i;

    if (uct_worker_progress(run->load->uct->worker) == 0) {
        sched_yield();
    }

    if (run->load->uct->ep_errors > 0) {
        ft_die("the endpoint failed");
    }

    for (i = 0; i < FT_ATOM_WORDS; ++i) {
        if (run->words[i].busy == 2) {
            ft_word_done(run, &run->words[i]);
        }
        busy += run->words[i].busy;
    }

    return busy;
}

static void ft_write(const ft_run_t *run)
{
    FILE *file = fopen(run->load->path, "w");

    if ((file == NULL) ||
        (fwrite(run->records, sizeof(*run->records), run->num, file) !=
         run->num) || (fclose(file) != 0)) {
        ft_die("cannot write %s", run->load->path);
    }
}

size_t ft_atom_load_run(const ft_atom_load_t *load)
{
    static ft_run_t run;
    uint64_t start = ft_now_ns();
    uint64_t end   = start + (uint64_t)(load->seconds * 1e9);
    unsigned i;

    memset(&run, 0, sizeof(run));
    run.load    = load;
    run.random  = (load->seed + load->client + 1) * 0x9e3779b97f4a7c15ul;
    run.records = calloc(FT_LOAD_MAX, sizeof(*run.records));
    if (run.records == NULL) {
        ft_die("out of memory");
    }

    while ((ft_now_ns() < end) && (run.num < FT_LOAD_MAX - FT_ATOM_WORDS)) {
        i = ft_random(&run.random, FT_ATOM_WORDS);
        if (!run.words[i].busy &&
            (run.num <= (ft_now_ns() - start) * FT_LOAD_RATE)) {
            ft_word_start(&run, i);
        }
        ft_progress(&run);
        ft_flush_progress(&run, 0);
    }

    end = ft_now_ns() + (uint64_t)FT_LOAD_END;
    while ((ft_progress(&run) > 0) || run.flushing ||
           (run.ended < run.num)) {
        ft_flush_progress(&run, 1);
        if (ft_now_ns() > end) {
            ft_die("%zu operations did not complete", run.num - run.ended);
        }
    }

    ft_write(&run);
    free(run.records);
    return run.num;
}
