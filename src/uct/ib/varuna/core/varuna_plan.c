/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The classification of unfinished requests. Called by recovery once a lane
 * incarnation is fenced and the responder's evidence is there.
 *
 * A lane executes in posting order, hence all evidence boils down to one
 * request: the youngest which is known to be executed. Everything up to it was
 * executed. The PSN decides about all, if there is one. Without it the log leaves open
 * what was not followed by a log write on the wire yet:
 *
 *      data log data log data | log data log       | = where the lane broke
 *       1a   1b  2a   2b  3a  |  3b  4a   4b
 *
 *      log: 1, 2 executed; 3 cannot be distinguished from the case in which 3a was lost,
 *      4 was not executed, since 3b would have been executed before it.
 */
#include "varuna_plan.h"
#include "varuna_oplog.h"
#include "varuna_msg.h"

#include <ucs/debug/assert.h>

#include <string.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>

#define UCT_VARUNA_PSN_MASK          0xffffffu

/* Position before the first request: nothing is known to be executed */
#define UCT_VARUNA_PLAN_NOTHING      (-1)

typedef struct uct_varuna_plan_frontier {
    int                        log;       /* Youngest which the log proves */
    int                        executed;  /* Youngest which was executed, as
                                             far as the PSN agrees */
} uct_varuna_plan_frontier_t;

static int uct_varuna_plan_is_logged_kind(const uct_varuna_plan_op_t *op)
{
    return (op->kind == UCT_VARUNA_OP_PUT) ||
           (op->kind == UCT_VARUNA_OP_ATOMIC);
}

/* Whether its packets have been given to the lane */
static int uct_varuna_plan_is_on_wire(const uct_varuna_plan_op_t *op)
{
    return op->posted && (op->kind != UCT_VARUNA_OP_FLUSH);
}

/* Packets of the lane that were accepted since the newest completion. */
static uint32_t
uct_varuna_plan_num_accepted(const uct_varuna_evidence_t *evidence)
{
    return (evidence->epsn - evidence->acked_psn) & UCT_VARUNA_PSN_MASK;
}

/* A device which answers from its driver's memory returns an old PSN, which precedes
 * what is acknowledged. */
static int uct_varuna_plan_psn_is_possible(const uct_varuna_evidence_t *evidence)
{
    return uct_varuna_plan_num_accepted(evidence) <=
           (evidence->next_psn - evidence->acked_psn);
}

static int uct_varuna_plan_psn_covers(const uct_varuna_evidence_t *evidence,
                                      uint32_t end_psn)
{
    return (end_psn - evidence->acked_psn) <=
           uct_varuna_plan_num_accepted(evidence);
}

static int uct_varuna_plan_log_frontier(const uct_varuna_plan_op_t *ops,
                                        unsigned num_ops,
                                        const uct_varuna_evidence_t *evidence)
{
    int newest = UCT_VARUNA_PLAN_NOTHING;
    int i;

    for (i = (int)num_ops - 1; i >= 0; --i) {
        if (!uct_varuna_plan_is_logged_kind(&ops[i]) || !ops[i].posted) {
            continue;
        }

        if (newest == UCT_VARUNA_PLAN_NOTHING) {
            newest = i;
        }

        if (ops[i].logged &&
            uct_varuna_complog_executed(evidence->log, ops[i].req,
                                        ops[i].log_sn, ops[newest].log_sn)) {
            return i;
        }
    }

    return UCT_VARUNA_PLAN_NOTHING;
}

static int uct_varuna_plan_psn_frontier(const uct_varuna_plan_op_t *ops,
                                        unsigned num_ops,
                                        const uct_varuna_evidence_t *evidence)
{
    int i;

    for (i = (int)num_ops - 1; i >= 0; --i) {
        if (uct_varuna_plan_is_on_wire(&ops[i]) &&
            uct_varuna_plan_psn_covers(evidence, ops[i].end_psn)) {
            return i;
        }
    }

    return UCT_VARUNA_PLAN_NOTHING;
}

/* PUT and ATOMIC. @a gap_p: the log says nothing about what comes next */
static uct_varuna_verdict_t
uct_varuna_plan_judge_logged(const uct_varuna_plan_op_t *op, int index,
                             const uct_varuna_evidence_t *evidence,
                             const uct_varuna_plan_frontier_t *frontier,
                             int *gap_p)
{
    if (!op->posted) {
        return UCT_VARUNA_VERDICT_REPEAT;
    }

    if (index <= frontier->log) {
        return (index <= frontier->executed) ? UCT_VARUNA_VERDICT_EXECUTED :
               UCT_VARUNA_VERDICT_LOST_DATA;
    }

    if (index <= frontier->executed) {
        /* It may be that only its log write was lost. But if the PSN says that
         * the log write arrived as well, then it should be in the log. */
        return (op->logged && !evidence->unordered &&
                uct_varuna_plan_psn_covers(evidence, op->end_psn + 1)) ?
               UCT_VARUNA_VERDICT_LOST_DATA : UCT_VARUNA_VERDICT_EXECUTED;
    }

    if (evidence->has_psn) {
        return (evidence->overtakes && (op->kind == UCT_VARUNA_OP_PUT)) ?
               UCT_VARUNA_VERDICT_AMBIGUOUS : UCT_VARUNA_VERDICT_REPEAT;
    }

    if (!*gap_p) {
        return UCT_VARUNA_VERDICT_REPEAT;
    }

    /* The gap ends with the first log write which is known to be lost. Without
     * one on the wire, the next request may have been executed as well. */
    *gap_p = !op->logged || evidence->unordered;
    return UCT_VARUNA_VERDICT_AMBIGUOUS;
}

static void uct_varuna_plan_count(const uct_varuna_plan_op_t *op,
                                  uct_varuna_plan_result_t *result)
{
    int logged_kind = uct_varuna_plan_is_logged_kind(op);

    switch (op->verdict) {
    case UCT_VARUNA_VERDICT_EXECUTED:
        result->executed += logged_kind;
        break;
    case UCT_VARUNA_VERDICT_REPEAT:
        if (uct_varuna_plan_is_on_wire(op)) {
            result->lost += logged_kind;
            ++result->repeated;
        }
        break;
    case UCT_VARUNA_VERDICT_AMBIGUOUS:
        ++result->ambiguous;
        ++result->repeated;
        break;
    case UCT_VARUNA_VERDICT_LOST_DATA:
        ++result->lost_data;
        break;
    }
}

void uct_varuna_plan_make(uct_varuna_plan_op_t *ops, unsigned num_ops,
                          const uct_varuna_evidence_t *evidence,
                          uct_varuna_plan_result_t *result_p)
{
    uct_varuna_evidence_t known = *evidence;
    int gap                     = 1;
    int fence_passed            = 0;
    uct_varuna_plan_frontier_t frontier;
    uct_varuna_plan_op_t *op;
    int i;

    memset(result_p, 0, sizeof(*result_p));
    if (known.has_psn && !uct_varuna_plan_psn_is_possible(&known)) {
        known.has_psn   = 0;
        result_p->doubt = UCT_VARUNA_DOUBT_PSN;
    }

    frontier.log      = known.unordered ? UCT_VARUNA_PLAN_NOTHING :
                        uct_varuna_plan_log_frontier(ops, num_ops, &known);
    frontier.executed = known.has_psn ?
                        uct_varuna_plan_psn_frontier(ops, num_ops, &known) :
                        frontier.log;

    for (i = 0; i < (int)num_ops; ++i) {
        op = &ops[i];
        if (uct_varuna_plan_is_logged_kind(op)) {
            op->verdict = uct_varuna_plan_judge_logged(op, i, &known, &frontier,
                                                       &gap);
        } else {
            op->verdict = UCT_VARUNA_VERDICT_REPEAT;
        }
    }

    /* From the youngest to the oldest: has a later fence been passed? */
    for (i = (int)num_ops - 1; i >= 0; --i) {
        op = &ops[i];
        if ((op->kind == UCT_VARUNA_OP_GET) && op->posted && fence_passed) {
            op->verdict = UCT_VARUNA_VERDICT_EXECUTED;
        }

        if ((i <= frontier.executed) && op->fenced &&
            uct_varuna_plan_is_on_wire(op)) {
            fence_passed = 1;
        }

        uct_varuna_plan_count(op, result_p);
    }

    if (result_p->lost_data > 0) {
        result_p->doubt = UCT_VARUNA_DOUBT_LOG;
    }
}

/* --- Comparison --- */

/* Which operations of a window were executed. */

/* A byte of the piece: which operation wrote it last */
#define UCT_VARUNA_WINDOW_UNWRITTEN  UINT32_MAX

struct uct_varuna_window {
    uct_varuna_window_copy_t copy;
    int                      unordered;
    size_t                   chunk;
    unsigned                 max_ops;
    unsigned                 num_ops;
    unsigned                 index;     /* What is read next, */
    size_t                   offset;    /* and where in it */
    uint8_t                  *possible; /* For each k: the first k operations, and no
                                           others but in part, may be what was executed */
    uint8_t                  *expected; /* Of the piece: after some operations; */
    uint32_t                 *writer;   /* who wrote it; */
    uint8_t                  *data;     /* what the next operation writes */
    uct_varuna_window_op_t   ops[0];
};

/* Part of a piece which an operation covers. */
typedef struct uct_varuna_window_part {
    size_t                   start;     /* In the piece */
    size_t                   length;    /* 0: none */
} uct_varuna_window_part_t;

uct_varuna_window_t *uct_varuna_window_create(unsigned max_ops, size_t chunk,
                                              uct_varuna_window_copy_t copy,
                                              int unordered)
{
    size_t size = sizeof(uct_varuna_window_t) +
                  (max_ops * sizeof(uct_varuna_window_op_t)) + (max_ops + 1) +
                  (chunk * (sizeof(uint32_t) + 2));
    uct_varuna_window_t *window;

    window = ucs_calloc(1, size, "varuna_window");
    if (window == NULL) {
        return NULL;
    }

    window->copy      = copy;
    window->unordered = unordered;
    window->chunk     = chunk;
    window->max_ops   = max_ops;
    window->writer    = (uint32_t*)&window->ops[max_ops];
    window->expected  = (uint8_t*)&window->writer[chunk];
    window->data      = &window->expected[chunk];
    window->possible  = &window->data[chunk];
    memset(window->possible, 1, max_ops + 1);
    return window;
}

void uct_varuna_window_destroy(uct_varuna_window_t *window)
{
    ucs_free(window);
}

void uct_varuna_window_add(uct_varuna_window_t *window, uint64_t addr, size_t length,
                           void *arg, int is_known)
{
    uct_varuna_window_op_t *op = &window->ops[window->num_ops];

    ucs_assert(window->num_ops < window->max_ops);
    op->addr     = addr;
    op->length   = length;
    op->arg      = arg;
    op->is_known = is_known;
    op->matches  = 1;
    op->is_there = is_known;
    ++window->num_ops;
}

size_t uct_varuna_window_next(const uct_varuna_window_t *window, unsigned *index_p,
                              size_t *offset_p)
{
    const uct_varuna_window_op_t *op;
    size_t offset = window->offset;
    unsigned i;

    for (i = window->index; i < window->num_ops; ++i, offset = 0) {
        op = &window->ops[i];
        if (op->is_known && (offset < op->length)) {
            *index_p  = i;
            *offset_p = offset;
            return ucs_min(op->length - offset, window->chunk);
        }
    }

    return 0;
}

static uct_varuna_window_part_t
uct_varuna_window_part(const uct_varuna_window_op_t *op, uint64_t addr, size_t length)
{
    uint64_t start = ucs_max(op->addr, addr);
    uint64_t end   = ucs_min(op->addr + op->length, addr + length);
    uct_varuna_window_part_t part = { 0, 0 };

    if (start < end) {
        part.start  = start - addr;
        part.length = end - start;
    }

    return part;
}

/* Whether the bytes of the piece are those that some operations have left, or of the next
 * one, @a op, in its part. */
static int
uct_varuna_window_piece_matches(const uct_varuna_window_t *window,
                                const uint8_t *target, size_t length,
                                const uct_varuna_window_op_t *op,
                                uct_varuna_window_part_t part)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        if ((window->writer[i] == UCT_VARUNA_WINDOW_UNWRITTEN) ||
            !window->ops[window->writer[i]].is_known ||
            (target[i] == window->expected[i])) {
            continue;
        }

        if ((i < part.start) || (i >= (part.start + part.length)) ||
            (op->is_known && (target[i] != window->data[i - part.start]))) {
            return 0;
        }
    }

    return 1;
}

/* One more operation has written the piece. */
static void uct_varuna_window_piece_write(uct_varuna_window_t *window, unsigned index,
                                          uct_varuna_window_part_t part)
{
    size_t i;

    for (i = 0; i < part.length; ++i) {
        window->writer[part.start + i]   = index;
        window->expected[part.start + i] = window->data[i];
    }
}

/* Unordered: what is not there, was not written by the last operation that covers it. */
static void uct_varuna_window_note_missing(uct_varuna_window_t *window,
                                           const uint8_t *target, size_t length)
{
    uct_varuna_window_op_t *op;
    size_t i;

    for (i = 0; i < length; ++i) {
        if (window->writer[i] != UCT_VARUNA_WINDOW_UNWRITTEN) {
            op           = &window->ops[window->writer[i]];
            op->is_seen  = 1;
            op->matches &= op->is_known && (target[i] == window->expected[i]);
        }
    }
}

static void uct_varuna_window_judge_piece(uct_varuna_window_t *window, uint64_t addr,
                                          const uint8_t *target, size_t length)
{
    static const uct_varuna_window_part_t none = { 0, 0 };
    int matches                                = 1; /* What was written so far */
    uct_varuna_window_op_t *op;
    uct_varuna_window_part_t part;
    unsigned i;

    memset(window->writer, 0xff, length * sizeof(*window->writer));
    for (i = 0; i < window->num_ops; ++i) {
        op   = &window->ops[i];
        part = uct_varuna_window_part(op, addr, length);
        if (part.length == 0) {
            window->possible[i] &= matches;
            continue;
        }

        if (op->is_known) {
            window->copy(op->arg, addr + part.start - op->addr, window->data,
                         part.length);
            op->is_there &= !memcmp(window->data, target + part.start, part.length);
        }
        window->possible[i] &= matches ||
                               uct_varuna_window_piece_matches(window, target, length,
                                                               op, part);
        uct_varuna_window_piece_write(window, i, part);
        matches = uct_varuna_window_piece_matches(window, target, length, NULL, none);
    }

    window->possible[i] &= matches;
    uct_varuna_window_note_missing(window, target, length);
}

void uct_varuna_window_feed(uct_varuna_window_t *window, const void *target,
                            size_t length)
{
    unsigned index;
    size_t offset;

    ucs_assert_always(length == uct_varuna_window_next(window, &index, &offset));
    uct_varuna_window_judge_piece(window, window->ops[index].addr + offset, target,
                                  length);
    window->index  = index;
    window->offset = offset + length;
}

static int uct_varuna_window_decide_prefix(uct_varuna_window_t *window)
{
    unsigned longest = window->num_ops;
    unsigned known   = 0; /* Up to the last one that has left something */
    uct_varuna_window_op_t *op;
    unsigned i;

    while (!window->possible[longest]) {
        --longest; /* That nothing was executed is always possible */
    }

    for (i = 0; i < longest; ++i) {
        if (window->ops[i].is_known && (window->ops[i].length > 0)) {
            known = i + 1;
        }
    }

    for (i = 0; i < window->num_ops; ++i) {
        op = &window->ops[i];
        if (i < known) {
            op->verdict = UCT_VARUNA_WINDOW_EXECUTED;
        } else if ((op->length == 0) || ((known > 0) && (i >= longest))) {
            op->verdict = UCT_VARUNA_WINDOW_LOST;
        } else {
            op->verdict = UCT_VARUNA_WINDOW_UNKNOWN;
        }
    }

    return known > 0;
}

static int uct_varuna_window_overlaps(const uct_varuna_window_op_t *a,
                                      const uct_varuna_window_op_t *b)
{
    return uct_varuna_window_part(a, b->addr, b->length).length > 0;
}

/* Whether an operation from @a begin to before @a end overlaps this one, and was not
 * executed as far as known. */
static int uct_varuna_window_overlaps_lost(const uct_varuna_window_t *window,
                                           const uct_varuna_window_op_t *op,
                                           unsigned begin, unsigned end)
{
    unsigned i;

    for (i = begin; i < end; ++i) {
        if ((window->ops[i].verdict != UCT_VARUNA_WINDOW_EXECUTED) &&
            uct_varuna_window_overlaps(op, &window->ops[i])) {
            return 1;
        }
    }

    return 0;
}

/* Whether a write of which nothing need be seen has left its value, or a newer one. */
static int uct_varuna_window_has_left(const uct_varuna_window_t *window, unsigned index)
{
    const uct_varuna_window_op_t *op = &window->ops[index];
    const uct_varuna_window_op_t *later;
    unsigned i;

    if (op->is_seen || op->is_there) {
        return 1;
    }

    for (i = index + 1; i < window->num_ops; ++i) {
        later = &window->ops[i];
        if ((later->verdict == UCT_VARUNA_WINDOW_EXECUTED) &&
            (uct_varuna_window_part(later, op->addr, op->length).length == op->length)) {
            return 1;
        }
    }

    return !uct_varuna_window_overlaps_lost(window, op, index + 1, window->num_ops);
}

static int uct_varuna_window_decide_each(uct_varuna_window_t *window)
{
    int found = 0;
    uct_varuna_window_op_t *op;
    unsigned i, num_changed;

    for (i = 0; i < window->num_ops; ++i) {
        op          = &window->ops[i];
        op->verdict = (op->is_known && op->matches) ? UCT_VARUNA_WINDOW_EXECUTED :
                      UCT_VARUNA_WINDOW_UNKNOWN;
    }

    do {
        num_changed = 0;
        for (i = 0; i < window->num_ops; ++i) {
            op = &window->ops[i];
            if ((op->verdict == UCT_VARUNA_WINDOW_EXECUTED) &&
                (uct_varuna_window_overlaps_lost(window, op, 0, i) ||
                 !uct_varuna_window_has_left(window, i))) {
                op->verdict = UCT_VARUNA_WINDOW_UNKNOWN;
                ++num_changed;
            }
        }
    } while (num_changed > 0);

    for (i = 0; i < window->num_ops; ++i) {
        found |= (window->ops[i].verdict == UCT_VARUNA_WINDOW_EXECUTED);
    }

    return found;
}

int uct_varuna_window_decide(uct_varuna_window_t *window)
{
    return window->unordered ? uct_varuna_window_decide_each(window) :
           uct_varuna_window_decide_prefix(window);
}

const uct_varuna_window_op_t *
uct_varuna_window_op(const uct_varuna_window_t *window, unsigned index)
{
    ucs_assert(index < window->num_ops);
    return &window->ops[index];
}

unsigned uct_varuna_window_num_ops(const uct_varuna_window_t *window)
{
    return window->num_ops;
}

/* --- The audit file --- */

void uct_varuna_audit_pack_evidence(const uct_varuna_evidence_t *evidence,
                                    uct_varuna_audit_verdict_t *verdict)
{
    verdict->flags    |= (evidence->has_psn ? UCT_VARUNA_AUDIT_HAS_PSN : 0) |
                         (evidence->unordered ? UCT_VARUNA_AUDIT_UNORDERED : 0) |
                         (evidence->overtakes ? UCT_VARUNA_AUDIT_OVERTAKES : 0);
    verdict->epsn      = evidence->epsn;
    verdict->acked_psn = evidence->acked_psn;
    verdict->next_psn  = evidence->next_psn;
    memcpy(verdict->log, evidence->log, sizeof(verdict->log));
}

void uct_varuna_audit_unpack_evidence(const uct_varuna_audit_verdict_t *verdict,
                                      uint64_t *log, uct_varuna_evidence_t *evidence)
{
    memcpy(log, verdict->log, sizeof(verdict->log));
    evidence->log       = log;
    evidence->has_psn   = !!(verdict->flags & UCT_VARUNA_AUDIT_HAS_PSN);
    evidence->unordered = !!(verdict->flags & UCT_VARUNA_AUDIT_UNORDERED);
    evidence->overtakes = !!(verdict->flags & UCT_VARUNA_AUDIT_OVERTAKES);
    evidence->epsn      = verdict->epsn;
    evidence->acked_psn = verdict->acked_psn;
    evidence->next_psn  = verdict->next_psn;
}

void uct_varuna_audit_pack_op(const uct_varuna_plan_op_t *plan_op,
                              uct_varuna_audit_op_t *op)
{
    op->req     = uct_varuna_log_req_id(plan_op->req);
    op->log_sn  = plan_op->log_sn;
    op->end_psn = plan_op->end_psn;
    op->kind    = plan_op->kind;
    op->verdict = plan_op->verdict;
    op->bits   |= (plan_op->posted ? UCT_VARUNA_AUDIT_OP_POSTED : 0) |
                  (plan_op->fenced ? UCT_VARUNA_AUDIT_OP_FENCED : 0) |
                  (plan_op->logged ? UCT_VARUNA_AUDIT_OP_LOGGED : 0);
}

void uct_varuna_audit_unpack_op(const uct_varuna_audit_op_t *op,
                                uct_varuna_plan_op_t *plan_op)
{
    plan_op->kind    = (uct_varuna_op_kind_t)op->kind;
    plan_op->posted  = !!(op->bits & UCT_VARUNA_AUDIT_OP_POSTED);
    plan_op->fenced  = !!(op->bits & UCT_VARUNA_AUDIT_OP_FENCED);
    plan_op->logged  = !!(op->bits & UCT_VARUNA_AUDIT_OP_LOGGED);
    plan_op->log_sn  = op->log_sn;
    plan_op->end_psn = op->end_psn;
    plan_op->req     = (const void*)(uintptr_t)op->req;
}

const char *uct_varuna_audit_check_file(const void *data, size_t length)
{
    const uct_varuna_audit_file_t *file = data;

    if ((length < sizeof(*file)) ||
        memcmp(file->magic, UCT_VARUNA_AUDIT_MAGIC, sizeof(file->magic))) {
        return "it is not an audit file of rc_varuna";
    } else if (file->order != UCT_VARUNA_AUDIT_ORDER) {
        return "it is of a host of the other byte order";
    } else if ((file->version != UCT_VARUNA_AUDIT_VERSION) ||
               (file->log_size != UCT_VARUNA_LOG_SIZE)) {
        return "it is of another version: use the rc_varuna_audit of the rc_varuna "
               "that has written it";
    } else if (file->host[sizeof(file->host) - 1] != '\0') {
        return "the name of its host does not end";
    }

    return NULL;
}

/* @return what is wrong with a VERDICT, or NULL */
static const char *uct_varuna_audit_read_verdict(uct_varuna_reader_t *reader,
                                                 uct_varuna_audit_view_t *view)
{
    const uct_varuna_audit_verdict_t *verdict;
    unsigned i;

    verdict = uct_varuna_reader_take(reader, sizeof(*verdict));
    if ((verdict == NULL) ||
        (reader->left != ((size_t)verdict->num_ops * sizeof(*view->ops)))) {
        return "a record has another length than its operations need";
    } else if (verdict->link[sizeof(verdict->link) - 1] != '\0') {
        return "the name of a link does not end";
    }

    view->ops = (const uct_varuna_audit_op_t*)reader->pos;
    for (i = 0; i < verdict->num_ops; ++i) {
        if ((view->ops[i].kind >= UCT_VARUNA_OP_LAST) ||
            (view->ops[i].verdict > UCT_VARUNA_VERDICT_LOST_DATA) ||
            (view->ops[i].action > UCT_VARUNA_AUDIT_CONTINUED)) {
            return "an operation has an unknown kind, verdict or action";
        }
    }

    view->verdict = verdict;
    return NULL;
}

/* @return what is wrong with a COMPARE, or NULL */
static const char *uct_varuna_audit_read_compare(uct_varuna_reader_t *reader,
                                                 uct_varuna_audit_view_t *view)
{
    const uct_varuna_audit_compare_t *compare;
    unsigned i;

    compare = uct_varuna_reader_take(reader, sizeof(*compare));
    if ((compare == NULL) ||
        (reader->left != ((size_t)compare->num_targets * sizeof(*view->targets)))) {
        return "a record has another length than its targets need";
    }

    view->targets = (const uct_varuna_audit_target_t*)reader->pos;
    for (i = 0; i < compare->num_targets; ++i) {
        if ((view->targets[i].verdict > UCT_VARUNA_WINDOW_UNKNOWN) ||
            (view->targets[i].action > UCT_VARUNA_AUDIT_CONTINUED)) {
            return "a target has an unknown verdict or action";
        }
    }

    view->compare = compare;
    return NULL;
}

size_t uct_varuna_audit_read(const void *data, size_t length,
                             uct_varuna_audit_view_t *view, const char **reason_p)
{
    uct_varuna_reader_t reader = {data, length};
    const uct_varuna_audit_record_t *head;

    memset(view, 0, sizeof(*view));
    *reason_p = NULL;
    head      = uct_varuna_reader_take(&reader, sizeof(*head));
    if ((head == NULL) || (head->length > length)) {
        *reason_p = "the last record is incomplete";
        return 0;
    } else if (head->length < sizeof(*head)) {
        *reason_p = "a record is shorter than its header";
        return 0;
    }

    view->head  = *head;
    reader.left = head->length - sizeof(*head);
    if (head->type == UCT_VARUNA_AUDIT_VERDICT) {
        *reason_p = uct_varuna_audit_read_verdict(&reader, view);
    } else if (head->type == UCT_VARUNA_AUDIT_COMPARE) {
        *reason_p = uct_varuna_audit_read_compare(&reader, view);
    }

    return (*reason_p == NULL) ? head->length : 0;
}
