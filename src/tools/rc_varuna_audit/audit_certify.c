/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The rules that a record has to satisfy.
 */
#include "audit_certify.h"
#include "audit_oracle.h"

#include <uct/ib/varuna/core/varuna_plan.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *audit_kind_names[] = {
    [UCT_VARUNA_OP_PUT]    = "put",
    [UCT_VARUNA_OP_GET]    = "get",
    [UCT_VARUNA_OP_AM]     = "message",
    [UCT_VARUNA_OP_ATOMIC] = "atomic",
    [UCT_VARUNA_OP_FLUSH]  = "flush",
    [UCT_VARUNA_OP_STEP]   = "step of an atomic"
};

static const char *audit_verdict_names[] = {
    [UCT_VARUNA_VERDICT_REPEAT]    = "repeat",
    [UCT_VARUNA_VERDICT_EXECUTED]  = "executed",
    [UCT_VARUNA_VERDICT_AMBIGUOUS] = "ambiguous",
    [UCT_VARUNA_VERDICT_LOST_DATA] = "lost data"
};

static const char *audit_action_names[] = {
    [UCT_VARUNA_AUDIT_REPEATED]  = "repeated",
    [UCT_VARUNA_AUDIT_COMPLETED] = "completed",
    [UCT_VARUNA_AUDIT_COMPARED]  = "compared with its target",
    [UCT_VARUNA_AUDIT_LEFT]      = "left to its atomic",
    [UCT_VARUNA_AUDIT_CONTINUED] = "continued"
};

__attribute__((format(printf, 2, 3)))
static int audit_wrong(char *why, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, AUDIT_WHY_MAX, fmt, ap);
    va_end(ap);
    return 0;
}

static int audit_wrong_op(char *why, const uct_varuna_audit_view_t *view, unsigned i,
                          const char *expected, const char *whose)
{
    const uct_varuna_audit_op_t *op = &view->ops[i];

    return audit_wrong(why, "operation %u, a %s of %u bytes with log number %u: the "
                       "verdict is \"%s\", but %s is \"%s\"", i,
                       audit_kind_names[op->kind], op->length, op->log_sn,
                       audit_verdict_names[op->verdict], whose, expected);
}

static int audit_is_posted(const uct_varuna_audit_op_t *op)
{
    return !!(op->bits & UCT_VARUNA_AUDIT_OP_POSTED);
}

/* The plan, once more. */
static int audit_replay(const uct_varuna_audit_view_t *view, char *why)
{
    unsigned num_ops = view->verdict->num_ops;
    uint64_t log[UCT_VARUNA_LOG_SIZE];
    uct_varuna_plan_result_t result;
    uct_varuna_evidence_t evidence;
    uct_varuna_plan_op_t *ops;
    int ok = 1;
    unsigned i;

    ops = calloc(num_ops + 1, sizeof(*ops));
    if (ops == NULL) {
        return audit_wrong(why, "there is no memory to replay %u operations", num_ops);
    }

    uct_varuna_audit_unpack_evidence(view->verdict, log, &evidence);
    for (i = 0; i < num_ops; ++i) {
        uct_varuna_audit_unpack_op(&view->ops[i], &ops[i]);
    }

    uct_varuna_plan_make(ops, num_ops, &evidence, &result);
    for (i = 0; ok && (i < num_ops); ++i) {
        if (ops[i].verdict != view->ops[i].verdict) {
            ok = audit_wrong_op(why, view, i, audit_verdict_names[ops[i].verdict],
                                "that of the plan");
        }
    }

    if (ok && (result.doubt != view->verdict->doubt)) {
        ok = audit_wrong(why, "the doubt is %u, but that of the plan is %u",
                         view->verdict->doubt, result.doubt);
    }

    free(ops);
    return ok;
}

/* Whether a fenced operation after this one was executed */
static int audit_fence_was_passed(const uct_varuna_audit_view_t *view, unsigned i,
                                  const audit_oracle_t *oracle)
{
    unsigned j;

    for (j = i + 1; j < oracle->first; ++j) {
        if (audit_is_posted(&view->ops[j]) &&
            (view->ops[j].kind != UCT_VARUNA_OP_FLUSH) &&
            (view->ops[j].bits & UCT_VARUNA_AUDIT_OP_FENCED)) {
            return 1;
        }
    }

    return 0;
}

/* Whether the write may be in memory although the PSN has not passed it */
static int audit_is_early(const uct_varuna_audit_view_t *view,
                          const uct_varuna_audit_op_t *op, const audit_oracle_t *oracle)
{
    return (op->kind == UCT_VARUNA_OP_PUT) && oracle->use_psn &&
           (view->verdict->flags & UCT_VARUNA_AUDIT_OVERTAKES);
}

static uct_varuna_verdict_t
audit_expect(const uct_varuna_audit_view_t *view, unsigned i,
             const audit_oracle_t *oracle)
{
    const uct_varuna_audit_op_t *op = &view->ops[i];

    if (!audit_is_posted(op)) {
        return UCT_VARUNA_VERDICT_REPEAT;
    }

    switch (op->kind) {
    case UCT_VARUNA_OP_PUT:
    case UCT_VARUNA_OP_ATOMIC:
        return (i < oracle->first) ? UCT_VARUNA_VERDICT_EXECUTED :
               (i < oracle->last) || audit_is_early(view, op, oracle) ?
               UCT_VARUNA_VERDICT_AMBIGUOUS :
               UCT_VARUNA_VERDICT_REPEAT;
    case UCT_VARUNA_OP_GET:
        return audit_fence_was_passed(view, i, oracle) ? UCT_VARUNA_VERDICT_EXECUTED :
               UCT_VARUNA_VERDICT_REPEAT;
    default:
        return UCT_VARUNA_VERDICT_REPEAT;
    }
}

/* The second opinion. */
static int audit_ask_oracle(const uct_varuna_audit_view_t *view, char *why)
{
    const uct_varuna_audit_verdict_t *verdict = view->verdict;
    int has_psn = !!(verdict->flags & UCT_VARUNA_AUDIT_HAS_PSN);
    int use_psn = has_psn && audit_oracle_psn_is_possible(verdict);
    uct_varuna_verdict_t expected;
    audit_oracle_t oracle;
    unsigned i;

    if ((has_psn != use_psn) && (verdict->doubt == UCT_VARUNA_DOUBT_NONE)) {
        return audit_wrong(why, "PSN %u is of no packet of this lane, but nobody doubts "
                           "it", verdict->epsn);
    }

    audit_oracle_find(verdict, view->ops, use_psn, &oracle);
    if (!oracle.is_possible) {
        return (verdict->flags & UCT_VARUNA_AUDIT_FAILED) ? 1 :
               audit_wrong(why, "log and PSN agree with no place at which the lane may "
                           "have broken, but the endpoint continues");
    }

    for (i = 0; i < verdict->num_ops; ++i) {
        expected = audit_expect(view, i, &oracle);
        if (view->ops[i].verdict != expected) {
            return audit_wrong_op(why, view, i, audit_verdict_names[expected],
                                  "what the evidence proves");
        }
    }

    return 1;
}

static int audit_needs_no_fence(const uct_varuna_audit_op_t *op)
{
    return (op->kind == UCT_VARUNA_OP_GET) || (op->kind == UCT_VARUNA_OP_AM) ||
           (op->kind == UCT_VARUNA_OP_FLUSH);
}

/* Nobody was asked: nothing that the lane has written may matter any more. */
static int audit_check_unfenced(const uct_varuna_audit_view_t *view, char *why)
{
    const uct_varuna_audit_verdict_t *verdict = view->verdict;
    unsigned i;

    if (verdict->owes) {
        return audit_wrong(why, "the lane was left without a fence, but writes of it may not "
                           "have been in memory");
    }

    if (verdict->flags & (UCT_VARUNA_AUDIT_HAS_PSN | UCT_VARUNA_AUDIT_FENCED |
                          UCT_VARUNA_AUDIT_WAITED)) {
        return audit_wrong(why, "the lane was left without a fence, but there is evidence");
    }

    for (i = 0; i < verdict->num_ops; ++i) {
        if (!audit_needs_no_fence(&view->ops[i])) {
            return audit_wrong(why, "operation %u, a %s of %u bytes, was repeated without "
                               "evidence", i, audit_kind_names[view->ops[i].kind],
                               view->ops[i].length);
        }
    }

    return 1;
}

/* The evidence counts only if the lane was at rest when it was read. */
static int audit_check_fence(const uct_varuna_audit_view_t *view, char *why)
{
    unsigned flags = view->verdict->flags;

    if (flags & UCT_VARUNA_AUDIT_UNFENCED) {
        return audit_check_unfenced(view, why);
    } else if (flags & UCT_VARUNA_AUDIT_WAITED) {
        return 1;
    } else if (view->verdict->kind == UCT_VARUNA_LANE_DC) {
        return audit_wrong(why, "the evidence of a DC lane was read before the longest "
                           "lifetime of a packet had passed");
    } else if (view->verdict->doubt != UCT_VARUNA_DOUBT_NONE) {
        return audit_wrong(why, "doubtful evidence was not read again");
    }

    return (flags & UCT_VARUNA_AUDIT_FENCED) ? 1 :
           audit_wrong(why, "the responder's queue pair was not at rest when the "
                       "evidence was read");
}

static int audit_action_is_right(const uct_varuna_audit_op_t *op, int has_failed)
{
    if (op->bits & UCT_VARUNA_AUDIT_OP_DONE) {
        return (op->action == UCT_VARUNA_AUDIT_COMPLETED) ||
               (op->action == UCT_VARUNA_AUDIT_LEFT);
    } else if (op->kind == UCT_VARUNA_OP_STEP) {
        return !audit_is_posted(op) || (op->action == UCT_VARUNA_AUDIT_LEFT);
    }

    switch (op->verdict) {
    case UCT_VARUNA_VERDICT_EXECUTED:
        return (op->action == UCT_VARUNA_AUDIT_COMPLETED) ||
               ((op->action == UCT_VARUNA_AUDIT_CONTINUED) &&
                (op->kind == UCT_VARUNA_OP_ATOMIC));
    case UCT_VARUNA_VERDICT_AMBIGUOUS:
        return op->action == UCT_VARUNA_AUDIT_COMPARED;
    case UCT_VARUNA_VERDICT_LOST_DATA:
        return has_failed;
    default:
        /* That this lane has not executed it says nothing of an earlier one */
        return op->action == ((op->bits & UCT_VARUNA_AUDIT_OP_AMBIGUOUS) ?
                              UCT_VARUNA_AUDIT_COMPARED : UCT_VARUNA_AUDIT_REPEATED);
    }
}

static int audit_check_actions(const uct_varuna_audit_view_t *view, char *why)
{
    int has_failed = !!(view->verdict->flags & UCT_VARUNA_AUDIT_FAILED);
    const uct_varuna_audit_op_t *op;
    unsigned i;

    for (i = 0; i < view->verdict->num_ops; ++i) {
        op = &view->ops[i];
        if (!audit_action_is_right(op, has_failed)) {
            return audit_wrong(why, "operation %u, a %s of %u bytes with log number %u, "
                               "was %s, but its verdict is \"%s\"%s%s", i,
                               audit_kind_names[op->kind], op->length, op->log_sn,
                               audit_action_names[op->action],
                               audit_verdict_names[op->verdict],
                               (op->bits & UCT_VARUNA_AUDIT_OP_DONE) ?
                               " and it was complete before" : "",
                               (op->bits & UCT_VARUNA_AUDIT_OP_AMBIGUOUS) ?
                               " and it was ambiguous before" : "");
        }
    }

    return 1;
}

int audit_certify_verdict(const uct_varuna_audit_view_t *view, char *why)
{
    return audit_check_fence(view, why) && audit_replay(view, why) &&
           audit_ask_oracle(view, why) && audit_check_actions(view, why);
}

/* The targets are those of what the recovery left ambiguous. */
static int audit_check_targets(const uct_varuna_audit_view_t *view, const uint64_t *reqs,
                               unsigned num_reqs, char *why)
{
    unsigned found = 0;
    unsigned i;

    for (i = 0; i < view->compare->num_targets; ++i) {
        if (view->targets[i].req == 0) {
            continue; /* A step of an atomic */
        }

        if ((found == num_reqs) || (view->targets[i].req != reqs[found])) {
            return audit_wrong(why, "target %u at 0x%lx is of no operation that was "
                               "ambiguous", i, view->targets[i].addr);
        }
        ++found;
    }

    return (found == num_reqs) ? 1 :
           audit_wrong(why, "%u of %u ambiguous operations were not compared",
                       num_reqs - found, num_reqs);
}

int audit_certify_compare(const uct_varuna_audit_view_t *view, const uint64_t *reqs,
                          unsigned num_reqs, char *why)
{
    const uct_varuna_audit_compare_t *compare = view->compare;
    int has_failed = !!(compare->flags & UCT_VARUNA_AUDIT_FAILED);
    int is_ordered = !(compare->flags & UCT_VARUNA_AUDIT_UNORDERED);
    const uct_varuna_audit_target_t *target;
    int executed;
    unsigned i;

    if (!audit_check_targets(view, reqs, num_reqs, why)) {
        return 0;
    }

    for (i = 0; i < compare->num_targets; ++i) {
        target   = &view->targets[i];
        executed = (target->verdict == UCT_VARUNA_WINDOW_EXECUTED);
        if (is_ordered && executed && (i > 0) &&
            (view->targets[i - 1].verdict != UCT_VARUNA_WINDOW_EXECUTED)) {
            return audit_wrong(why, "target %u counts as written, and the one before it "
                               "does not", i);
        }

        if (has_failed || (target->req == 0)) {
            continue; /* What follows was not treated any more */
        }

        if (executed ? ((target->action != UCT_VARUNA_AUDIT_COMPLETED) &&
                        (target->action != UCT_VARUNA_AUDIT_CONTINUED)) :
                       (target->action != UCT_VARUNA_AUDIT_REPEATED)) {
            return audit_wrong(why, "target %u %s, but its operation was %s", i,
                               executed ? "was written" : "may not have been written",
                               audit_action_names[target->action]);
        }

        if (compare->fails && (target->verdict == UCT_VARUNA_WINDOW_UNKNOWN)) {
            return audit_wrong(why, "nothing is known of target %u and AMBIGUOUS=fail, "
                               "but the endpoint continues", i);
        }
    }

    return 1;
}
