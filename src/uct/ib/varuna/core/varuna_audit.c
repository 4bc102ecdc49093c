/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The format of audit files.
 */
#include "varuna_audit.h"
#include "varuna_oplog.h"
#include "varuna_parse.h"
#include "varuna_plan.h"

#include <string.h>

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
