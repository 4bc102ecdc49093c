/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The judge of the demo: compares the puts in the client's ledger with the executions
 * in the emulator's trace. Each put must have been executed once, as a whole, and in
 * posting order on its endpoint. Called by contrib/demo.sh:
 *
 *     mlx5emu trace --json | demo_trace_check LEDGER HOST
 *
 * UCX may send a put as several messages, which must cover it from the start to the end
 * without an overlap. A message that a failing link has cut ("partial") was not
 * executed, but its rest must not arrive after the put was repeated.
 */
#include "demo_word.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define CHECK_MAX_SHOWN 10 /* Maximum errors to print; all are counted */


/* A put of the ledger, and its executed length */
typedef struct {
    uint64_t address;
    uint64_t length;
    uint64_t done;
} check_put_t;


typedef struct {
    check_put_t *puts;    /* By sequence; number 0 is not used */
    uint64_t    count;    /* Highest sequence */
    uint64_t    current;  /* All before it are executed */
} check_ep_t;


/* A message with some packets in the trace */
typedef struct {
    uint64_t qpn;
    uint64_t src_qpn;
    uint64_t address; /* Of the first byte; 0: this place is free */
    uint64_t length;
} check_partial_t;


typedef struct {
    uint64_t   seq;
    uint64_t   host;
    const char *op;
    uint64_t   address;
    uint64_t   length;
    uint64_t   data;
    uint64_t   qpn;
    uint64_t   src_qpn;
    int        duplicate;
    int        partial;
    int        last;
} check_entry_t;


typedef struct {
    check_ep_t      eps[DEMO_MAX_EPS];
    check_partial_t *partials;
    size_t          num_partials;
    uint64_t        host;        /* Of the server */
    uint64_t        area;        /* Of the client's puts: address, length */
    uint64_t        area_length;
    uint64_t        last_seq;    /* Of the trace */
    uint64_t        puts;        /* In the ledger */
    uint64_t        executed;    /* Puts */
    uint64_t        messages;    /* Messages of these puts */
    uint64_t        suppressed;  /* Repeated and not executed */
    uint64_t        cut;         /* Parts of abandoned messages */
    uint64_t        errors;
} check_t;


static void check_error(check_t *check, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void check_error(check_t *check, const char *format, ...)
{
    va_list ap;

    if (++check->errors > CHECK_MAX_SHOWN) {
        return;
    }

    va_start(ap, format);
    printf("trace: ");
    vprintf(format, ap);
    printf("\n");
    va_end(ap);
}

static void check_fatal(const char *format, ...)
        __attribute__((format(printf, 1, 2), noreturn));

static void check_fatal(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    fprintf(stderr, "demo_trace_check: ");
    vfprintf(stderr, format, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    exit(2);
}

static void *check_grow(void *array, size_t count, size_t size)
{
    array = realloc(array, count * size);
    if (array == NULL) {
        check_fatal("out of memory");
    }

    return array;
}

/* Sequences come in order, 1, 2, 3, ...; room is doubled as they grow */
static void check_ledger_put(check_t *check, unsigned ep_index, uint64_t seq,
                             uint64_t address, uint64_t length)
{
    check_ep_t *ep = &check->eps[ep_index];

    if ((seq != ep->count + 1) || (length == 0) ||
        (address < check->area) ||
        (address + length > check->area + check->area_length)) {
        check_fatal("the ledger is damaged at endpoint %u, sequence %" PRIu64,
                    ep_index, seq);
    }

    if ((seq & (seq - 1)) == 0) {
        ep->puts = check_grow(ep->puts, seq * 2, sizeof(*ep->puts));
    }

    ep->puts[seq].address = address;
    ep->puts[seq].length  = length;
    ep->puts[seq].done    = 0;
    ep->count             = seq;
    ep->current           = 1;
    ++check->puts;
}

static void check_read_ledger(check_t *check, const char *path)
{
    uint64_t seq, address, length;
    unsigned ep;
    FILE *file;
    int ret;

    file = fopen(path, "r");
    if (file == NULL) {
        check_fatal("%s: %s", path, strerror(errno));
    }

    if (fscanf(file, "area %" SCNu64 " %" SCNu64 " ", &check->area,
               &check->area_length) != 2) {
        check_fatal("%s is no ledger", path);
    }

    while ((ret = fscanf(file,
                         "put %u %" SCNu64 " %" SCNu64 " %" SCNu64 " ", &ep,
                         &seq, &address, &length)) == 4) {
        if (ep >= DEMO_MAX_EPS) {
            check_fatal("%s has endpoint %u", path, ep);
        }

        check_ledger_put(check, ep, seq, address, length);
    }

    if (ret != EOF) {
        check_fatal("%s is damaged", path);
    }

    fclose(file);
}

/* A number, or the text of one, which may be hexadecimal */
static uint64_t check_number(json_t *object, const char *key, int mandatory)
{
    json_t *value = json_object_get(object, key);

    if (json_is_integer(value)) {
        return json_integer_value(value);
    } else if (json_is_boolean(value)) {
        return json_is_true(value);
    } else if (json_is_string(value)) {
        return strtoull(json_string_value(value), NULL, 0);
    } else if (mandatory) {
        check_fatal("a trace entry has no number '%s'", key);
    }

    return 0;
}

static void check_parse_entry(json_t *object, check_entry_t *entry_p)
{
    entry_p->op = json_string_value(json_object_get(object, "op"));
    if (entry_p->op == NULL) {
        check_fatal("a trace entry has no 'op'");
    }

    entry_p->seq       = check_number(object, "seq", 1);
    entry_p->host      = check_number(object, "host", 1);
    entry_p->address   = check_number(object, "addr", 1);
    entry_p->length    = check_number(object, "length", 1);
    entry_p->data      = check_number(object, "data", 1);
    entry_p->qpn       = check_number(object, "qpn", 1);
    entry_p->src_qpn   = check_number(object, "src_qpn", 1);
    entry_p->duplicate = check_number(object, "duplicate", 1);
    entry_p->partial   = check_number(object, "partial", 1);
    entry_p->last      = check_number(object, "last", 1);
}

/* The put of a part of the area, by its first word */
static check_put_t *
check_find(check_t *check, const check_entry_t *entry, unsigned *ep_p,
           uint64_t *seq_p)
{
    uint64_t word   = entry->data;
    uint64_t offset = (word & 0x1ffff) * sizeof(word);
    check_put_t *put;

    *ep_p  = (word >> 48) & 63;
    *seq_p = (word >> 17) & DEMO_WORD_SEQ;
    if (((word >> 56) != DEMO_WORD_MAGIC) ||
        (((word >> 54) & 3) != DEMO_WORD_PUT) || (*seq_p == 0) ||
        (*seq_p > check->eps[*ep_p].count)) {
        check_error(check,
                    "entry %" PRIu64 ": 0x%" PRIx64 " was written to 0x%" PRIx64
                    ", which no put of the ledger has in it",
                    entry->seq, word, entry->address);
        return NULL;
    }

    put = &check->eps[*ep_p].puts[*seq_p];
    if ((entry->address != put->address + offset) ||
        (offset + entry->length > put->length)) {
        check_error(check,
                    "entry %" PRIu64 ": endpoint %u, put %" PRIu64
                    " was written to a wrong place",
                    entry->seq, *ep_p, *seq_p);
        return NULL;
    }

    return put;
}

/* A message was executed as a whole */
static void check_executed(check_t *check, check_ep_t *ep, check_put_t *put,
                           const check_entry_t *entry, unsigned ep_index,
                           uint64_t seq)
{
    uint64_t offset = entry->address - put->address;

    ++check->messages;
    if (offset < put->done) {
        check_error(check,
                    "entry %" PRIu64 ": endpoint %u, put %" PRIu64
                    " was executed again",
                    entry->seq, ep_index, seq);
        return;
    } else if (offset > put->done) {
        check_error(check,
                    "entry %" PRIu64 ": endpoint %u, put %" PRIu64
                    " lacks bytes %" PRIu64 " to %" PRIu64,
                    entry->seq, ep_index, seq, put->done, offset);
    }

    put->done = offset + entry->length;
    if (put->done < put->length) {
        return;
    }

    ++check->executed;
    if (seq != ep->current) {
        check_error(check,
                    "entry %" PRIu64 ": endpoint %u, put %" PRIu64
                    " was executed where %" PRIu64 " was the next",
                    entry->seq, ep_index, seq, ep->current);
    }

    while ((ep->current <= ep->count) &&
           (ep->puts[ep->current].done >= ep->puts[ep->current].length)) {
        ++ep->current;
    }
}

/* The unfinished message from one queue to another, or a free place */
static check_partial_t *
check_partial_get(check_t *check, const check_entry_t *entry)
{
    check_partial_t *partial;
    size_t i;

    for (i = 0; i < check->num_partials; ++i) {
        partial = &check->partials[i];
        if ((partial->qpn == entry->qpn) &&
            (partial->src_qpn == entry->src_qpn)) {
            return partial;
        }
    }

    check->partials  = check_grow(check->partials, ++check->num_partials,
                                  sizeof(*check->partials));
    partial          = &check->partials[i];
    partial->qpn     = entry->qpn;
    partial->src_qpn = entry->src_qpn;
    partial->address = 0;
    return partial;
}

/* Puts parts of a message together. Returns nonzero if it is complete now, and
 * then *entry describes the whole of it. */
static int check_assemble(check_t *check, check_entry_t *entry)
{
    check_partial_t *partial = check_partial_get(check, entry);
    int continues            = (partial->address != 0) &&
                               (partial->address + partial->length ==
                                entry->address);

    if (!continues && (partial->address != 0)) {
        ++check->cut;
        partial->address = 0;
    }

    if (entry->partial) {
        if (!continues) {
            partial->address = entry->address;
            partial->length  = 0;
        }

        partial->length += entry->length;
        return 0;
    }

    if (continues) {
        entry->data    -= partial->length / sizeof(uint64_t);
        entry->address  = partial->address;
        entry->length  += partial->length;
        partial->address = 0;
    } else if (entry->last) {
        check_error(check, "entry %" PRIu64 ": the end of a message without "
                           "its beginning",
                    entry->seq);
        return 0;
    }

    return 1;
}

static void check_entry(check_t *check, check_entry_t *entry)
{
    check_put_t *put;
    unsigned ep;
    uint64_t seq;

    if (entry->seq != check->last_seq + 1) {
        check_error(check,
                    "entries %" PRIu64 " to %" PRIu64 " are missing: the trace "
                    "was too short",
                    check->last_seq + 1, entry->seq - 1);
    }

    check->last_seq = entry->seq;
    if ((entry->host != check->host) ||
        strncmp(entry->op, "write", strlen("write")) ||
        (entry->address + entry->length <= check->area) ||
        (entry->address >= check->area + check->area_length)) {
        return; /* Not in the area of the puts */
    }

    if (entry->duplicate) {
        ++check->suppressed;
        return;
    }

    put = check_find(check, entry, &ep, &seq);
    if (put == NULL) {
        return;
    }

    if (put->done == put->length) {
        check_error(check,
                    "entry %" PRIu64 ": endpoint %u, put %" PRIu64
                    " was written again after it had been executed",
                    entry->seq, ep, seq);
        return;
    }

    if (check_assemble(check, entry)) {
        check_executed(check, &check->eps[ep], put, entry, ep, seq);
    }
}

static void check_read_trace(check_t *check)
{
    check_entry_t entry;
    char *line = NULL;
    size_t max = 0;
    json_error_t error;
    json_t *object;

    while (getline(&line, &max, stdin) > 0) {
        object = json_loads(line, 0, &error);
        if (!json_is_object(object)) {
            check_fatal("the trace has a line that is no JSON object: %s",
                        error.text);
        }

        if (json_object_get(object, "lost") != NULL) {
            check_error(check, "%" PRIu64 " entries were overwritten: the "
                               "trace was too short",
                        check_number(object, "lost", 1));
        } else {
            check_parse_entry(object, &entry);
            check_entry(check, &entry);
        }

        json_decref(object);
    }

    free(line);
}

static void check_finish(check_t *check)
{
    check_ep_t *ep;
    uint64_t seq;
    unsigned i;

    for (i = 0; i < DEMO_MAX_EPS; ++i) {
        ep = &check->eps[i];
        for (seq = 1; seq <= ep->count; ++seq) {
            if (ep->puts[seq].done < ep->puts[seq].length) {
                check_error(check,
                            "endpoint %u, put %" PRIu64
                            " was never executed as a whole",
                            i, seq);
            }
        }
    }

    for (i = 0; i < check->num_partials; ++i) {
        check->cut += (check->partials[i].address != 0);
    }
}

int main(int argc, char **argv)
{
    static check_t check;
    char *end;
    int ok;

    if (argc != 3) {
        fprintf(stderr, "usage: mlx5emu trace --json | demo_trace_check "
                        "LEDGER HOST\n");
        return 2;
    }

    check.host = strtoul(argv[2], &end, 10);
    if ((end == argv[2]) || (*end != '\0')) {
        check_fatal("'%s' is not the number of a host", argv[2]);
    }

    check_read_ledger(&check, argv[1]);
    check_read_trace(&check);
    check_finish(&check);

    ok = (check.errors == 0) && (check.puts > 0) && (check.last_seq > 0);
    printf("trace: ok=%d puts=%" PRIu64 " executed=%" PRIu64
           " messages=%" PRIu64 " suppressed=%" PRIu64 " cut=%" PRIu64
           " entries=%" PRIu64 " errors=%" PRIu64 "\n",
           ok, check.puts, check.executed, check.messages, check.suppressed,
           check.cut, check.last_seq, check.errors);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
