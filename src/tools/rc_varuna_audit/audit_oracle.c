/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The lane is a sequence of messages: the operations, each of them followed by its log
 * write if it has one. A queue pair executes a prefix of this sequence. Each prefix
 * explains what its log has to contain and which PSN the responder expects; the
 * prefixes that explain what was read are the possible ones.
 */
#include "audit_oracle.h"

#include <uct/ib/varuna/core/varuna_oplog.h>

#include <string.h>

#define AUDIT_PSN_MASK 0xffffffu

static int audit_is_posted(const uct_varuna_audit_op_t *op)
{
    return !!(op->bits & UCT_VARUNA_AUDIT_OP_POSTED);
}

static int audit_has_log(const uct_varuna_audit_op_t *op)
{
    return audit_is_posted(op) && !!(op->bits & UCT_VARUNA_AUDIT_OP_LOGGED) &&
           ((op->kind == UCT_VARUNA_OP_PUT) || (op->kind == UCT_VARUNA_OP_ATOMIC));
}

/* @return the entry that an operation writes to the log */
static uint64_t audit_entry(const uct_varuna_audit_op_t *op)
{
    return (op->req << UCT_VARUNA_LOG_REQ_SHIFT) |
           ((uint64_t)(op->log_sn % (1u << UCT_VARUNA_LOG_TS_BITS)) <<
            UCT_VARUNA_LOG_TS_SHIFT);
}

static uint32_t audit_accepted(const uct_varuna_audit_verdict_t *verdict)
{
    return (verdict->epsn - verdict->acked_psn) & AUDIT_PSN_MASK;
}

int audit_oracle_psn_is_possible(const uct_varuna_audit_verdict_t *verdict)
{
    return audit_accepted(verdict) <= (uint32_t)(verdict->next_psn - verdict->acked_psn);
}

/* Whether the responder has accepted all packets of a message. What precedes the newest
 * completion was acknowledged. */
static int audit_is_accepted(const uct_varuna_audit_verdict_t *verdict,
                             const uct_varuna_audit_op_t *op, int is_log)
{
    uint32_t distance = op->end_psn + (is_log ? 1 : 0) - verdict->acked_psn;

    return ((int32_t)distance <= 0) || (distance <= audit_accepted(verdict));
}

/*
 * Whether the log is what a prefix leaves. The prefix ends before the message of
 * operation @a end, or, if @a with_log, after the log write of operation @a end - 1.
 */
static int audit_log_agrees(const uct_varuna_audit_verdict_t *verdict,
                            const uct_varuna_audit_op_t *ops, unsigned end,
                            int with_log)
{
    uint64_t expected[UCT_VARUNA_LOG_SIZE] = {};
    uint64_t entry;
    unsigned i, slot;

    for (i = 0; i < end; ++i) {
        if (audit_has_log(&ops[i]) && ((i + 1 < end) || with_log)) {
            expected[ops[i].log_sn % UCT_VARUNA_LOG_SIZE] = audit_entry(&ops[i]);
        }
    }

    for (slot = 0; slot < UCT_VARUNA_LOG_SIZE; ++slot) {
        memcpy(&entry, &verdict->log[slot], sizeof(entry));
        if ((expected[slot] != 0) && (entry != expected[slot])) {
            return 0;
        }
    }

    /* Nothing is there that was not executed */
    for (i = (end == 0) ? 0 : end - 1; i < verdict->num_ops; ++i) {
        if (!audit_has_log(&ops[i]) || ((i + 1 == end) && with_log)) {
            continue;
        }

        memcpy(&entry, &verdict->log[ops[i].log_sn % UCT_VARUNA_LOG_SIZE],
               sizeof(entry));
        if (entry == audit_entry(&ops[i])) {
            return 0;
        }
    }

    return 1;
}

/* The same of the PSN: the last message of the prefix was accepted, the next one was not
 * as a whole. */
static int audit_psn_agrees(const uct_varuna_audit_verdict_t *verdict,
                            const uct_varuna_audit_op_t *ops, unsigned end,
                            int with_log)
{
    unsigned i;

    for (i = 0; i < verdict->num_ops; ++i) {
        if (!audit_is_posted(&ops[i]) || (ops[i].kind == UCT_VARUNA_OP_FLUSH)) {
            continue; /* It has no packets */
        }

        if ((i < end) != audit_is_accepted(verdict, &ops[i], 0)) {
            return 0;
        }

        if (audit_has_log(&ops[i]) &&
            (((i + 1 < end) || ((i + 1 == end) && with_log)) !=
             audit_is_accepted(verdict, &ops[i], 1))) {
            return 0;
        }
    }

    return 1;
}

void audit_oracle_find(const uct_varuna_audit_verdict_t *verdict,
                       const uct_varuna_audit_op_t *ops, int use_psn,
                       audit_oracle_t *oracle)
{
    int is_ordered = !(verdict->flags & UCT_VARUNA_AUDIT_UNORDERED);
    unsigned end;
    int with_log;

    oracle->use_psn     = use_psn;
    oracle->is_possible = 0;
    for (end = 0; end <= verdict->num_ops; ++end) {
        for (with_log = 0; with_log <= 1; ++with_log) {
            if (with_log && ((end == 0) || !audit_has_log(&ops[end - 1]))) {
                continue;
            }

            if ((use_psn && !audit_psn_agrees(verdict, ops, end, with_log)) ||
                (is_ordered && !audit_log_agrees(verdict, ops, end, with_log))) {
                continue;
            }

            if (!oracle->is_possible) {
                oracle->is_possible = 1;
                oracle->first       = end;
            }
            oracle->last = end;
        }
    }
}
