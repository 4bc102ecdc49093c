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

#include <ucs/debug/assert.h>

#include <string.h>

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
