/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Audit files: one for each interface, in the directory UCX_RC_VARUNA_AUDIT. Each record
 * is one write(), so a process that is killed leaves whole records.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_sm.h"
#include "varuna_ep.h"
#include "varuna_lane.h"
#include "varuna_ring.h"
#include <uct/ib/varuna/core/varuna_oplog.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

ucs_status_t uct_varuna_audit_open(uct_varuna_requester_t *requester, const char *dir)
{
    char path[PATH_MAX];

    requester->audit.dir = NULL;
    requester->audit.fd  = -1;
    if (!strcmp(dir, "none")) {
        return UCS_OK;
    }

    /* The name with a slash is that of a directory only */
    ucs_snprintf_safe(path, sizeof(path), "%s/", dir);
    if ((dir[0] == '\0') || (access(path, W_OK | X_OK) != 0)) {
        ucs_error(UCT_VARUNA_CONFIG_PREFIX "AUDIT=%s: no files can be created there (%m). "
                  "Name a directory that exists and that this process can write to", dir);
        return UCS_ERR_INVALID_PARAM;
    }

    requester->audit.dir = ucs_strdup(dir, "varuna_audit");
    return (requester->audit.dir == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void uct_varuna_audit_close(uct_varuna_requester_t *requester)
{
    if ((requester->audit.dir != NULL) && (requester->audit.fd >= 0)) {
        close(requester->audit.fd);
    }

    ucs_free(requester->audit.dir);
    requester->audit.dir = NULL;
    requester->audit.fd  = -1;
}

/* What was written remains; there will be no more. */
static void uct_varuna_audit_stop(uct_varuna_requester_t *requester, const char *what)
{
    ucs_warn(UCT_VARUNA_CONFIG_PREFIX "AUDIT=%s: %s failed: %m. The following recoveries "
             "of this process are not recorded", requester->audit.dir, what);
    uct_varuna_audit_close(requester);
}

static int uct_varuna_audit_write(uct_varuna_requester_t *requester, const void *data,
                                  size_t length)
{
    ssize_t written = write(requester->audit.fd, data, length);

    if (written == (ssize_t)length) {
        return 1;
    }

    if (written >= 0) {
        errno = ENOSPC; /* A part was written */
    }
    uct_varuna_audit_stop(requester, "writing");
    return 0;
}

static int uct_varuna_audit_create(uct_varuna_requester_t *requester)
{
    uct_varuna_audit_file_t file = {
        .order    = UCT_VARUNA_AUDIT_ORDER,
        .version  = UCT_VARUNA_AUDIT_VERSION,
        .log_size = UCT_VARUNA_LOG_SIZE,
        .iface    = requester->super.uuid,
        .pid      = getpid()
    };
    char path[PATH_MAX];

    memcpy(file.magic, UCT_VARUNA_AUDIT_MAGIC, sizeof(file.magic));
    ucs_strncpy_safe(file.host, ucs_get_host_name(), sizeof(file.host));
    ucs_snprintf_safe(path, sizeof(path), "%s/%s-%d-%016lx.audit", requester->audit.dir,
                      file.host, getpid(), requester->super.uuid);
    requester->audit.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (requester->audit.fd < 0) {
        uct_varuna_audit_stop(requester, "creating a file");
        return 0;
    }

    return uct_varuna_audit_write(requester, &file, sizeof(file));
}

/* Write a record, and release it. */
static void uct_varuna_audit_append(uct_varuna_requester_t *requester,
                                    uct_varuna_audit_record_t *head)
{
    if ((requester->audit.dir != NULL) &&
        ((requester->audit.fd >= 0) || uct_varuna_audit_create(requester))) {
        uct_varuna_audit_write(requester, head, head->length);
    }

    ucs_free(head);
}

static uct_varuna_audit_record_t *
uct_varuna_audit_alloc(uct_varuna_ep_t *ep, uint16_t type, uint32_t epoch,
                       size_t body_length)
{
    uct_varuna_audit_record_t *head;
    struct timespec now;

    head = ucs_calloc(1, sizeof(*head) + body_length, "varuna_audit");
    if (head == NULL) {
        ucs_warn("rc_varuna: no memory for an audit record of vQP %u", ep->id);
        return NULL;
    }

    clock_gettime(CLOCK_REALTIME, &now);
    head->length = sizeof(*head) + body_length;
    head->type   = type;
    head->time   = (now.tv_sec * UCS_NSEC_PER_SEC) + now.tv_nsec;
    head->vqp    = ep->id;
    head->epoch  = epoch;
    return head;
}

void uct_varuna_audit_begin(uct_varuna_ep_t *ep, const uct_varuna_evidence_t *evidence,
                            unsigned flags, const uct_varuna_plan_op_t *ops,
                            uct_varuna_doubt_t doubt, uct_varuna_audit_draft_t *draft)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_audit_verdict_t *verdict;
    uct_varuna_audit_op_t *op;
    uct_varuna_req_t *req;
    unsigned i = 0;

    draft->head = NULL;
    if (ucs_likely(uct_varuna_requester(iface)->audit.dir == NULL)) {
        return;
    }

    draft->head = uct_varuna_audit_alloc(ep, UCT_VARUNA_AUDIT_VERDICT,
                                         ep->recovery.dead.epoch,
                                         sizeof(*verdict) +
                                         (ep->hot.num_reqs * sizeof(*op)));
    if (draft->head == NULL) {
        return;
    }

    verdict          = (uct_varuna_audit_verdict_t*)(draft->head + 1);
    verdict->flags   = flags;
    verdict->kind    = ep->recovery.dead.kind;
    verdict->doubt   = doubt;
    verdict->owes    = (ep->num_writes != ep->num_settled) ||
                       !uct_varuna_devices_are_placed(ep, ep->num_writes);
    verdict->num_ops = ep->hot.num_reqs;
    ucs_strncpy_safe(verdict->link, uct_varuna_link_name(iface, ep->recovery.dead.link),
                     sizeof(verdict->link));
    uct_varuna_audit_pack_evidence(evidence, verdict);

    op = (uct_varuna_audit_op_t*)(verdict + 1);
    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        op[i].bits        = ((req->flags & UCT_VARUNA_REQ_FLAG_DONE) ?
                             UCT_VARUNA_AUDIT_OP_DONE : 0) |
                            ((req->flags & UCT_VARUNA_REQ_FLAG_AMBIGUOUS) ?
                             UCT_VARUNA_AUDIT_OP_AMBIGUOUS : 0);
        op[i].remote_addr = req->remote_addr;
        op[i].length      = req->length;
        uct_varuna_audit_pack_op(&ops[i], &op[i]);
        ++i;
    }
}

/* What an applied verdict has made of a request. */
static uct_varuna_audit_action_t
uct_varuna_audit_action(const uct_varuna_req_t *req, uct_varuna_verdict_t verdict)
{
    if (req->flags & UCT_VARUNA_REQ_FLAG_LOST) {
        return UCT_VARUNA_AUDIT_LEFT;
    } else if (req->flags & UCT_VARUNA_REQ_FLAG_DONE) {
        return UCT_VARUNA_AUDIT_COMPLETED;
    } else if (req->flags & UCT_VARUNA_REQ_FLAG_AMBIGUOUS) {
        return UCT_VARUNA_AUDIT_COMPARED;
    } else if ((verdict == UCT_VARUNA_VERDICT_EXECUTED) &&
               (uct_varuna_req_info(req)->kind != UCT_VARUNA_OP_PUT)) {
        return UCT_VARUNA_AUDIT_CONTINUED;
    }

    return UCT_VARUNA_AUDIT_REPEATED;
}

void uct_varuna_audit_commit(uct_varuna_ep_t *ep, ucs_status_t status,
                             uct_varuna_audit_draft_t *draft)
{
    uct_varuna_audit_verdict_t *verdict;
    uct_varuna_audit_op_t *op;
    uct_varuna_req_t *req;

    if (ucs_likely(draft->head == NULL)) {
        return;
    }

    verdict = (uct_varuna_audit_verdict_t*)(draft->head + 1);
    op      = (uct_varuna_audit_op_t*)(verdict + 1);
    if (status != UCS_OK) {
        verdict->flags |= UCT_VARUNA_AUDIT_FAILED;
    }

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        op->action = uct_varuna_audit_action(req, (uct_varuna_verdict_t)op->verdict);
        ++op;
    }

    uct_varuna_audit_append(uct_varuna_requester(uct_varuna_ep_iface(ep)), draft->head);
    draft->head = NULL;
}

void uct_varuna_audit_compared(uct_varuna_ep_t *ep, const uct_varuna_window_t *window,
                               ucs_status_t status)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    unsigned num              = uct_varuna_window_num_ops(window);
    uct_varuna_audit_record_t *head;
    uct_varuna_audit_compare_t *compare;
    uct_varuna_audit_target_t *target;
    const uct_varuna_window_op_t *op;
    unsigned i;

    if (ucs_likely(uct_varuna_requester(iface)->audit.dir == NULL)) {
        return;
    }

    head = uct_varuna_audit_alloc(ep, UCT_VARUNA_AUDIT_COMPARE, ep->lanes.epoch,
                                  sizeof(*compare) + (num * sizeof(*target)));
    if (head == NULL) {
        return;
    }

    compare              = (uct_varuna_audit_compare_t*)(head + 1);
    compare->flags       = (ep->compare.unordered ? UCT_VARUNA_AUDIT_UNORDERED : 0) |
                           ((status != UCS_OK) ? UCT_VARUNA_AUDIT_FAILED : 0);
    compare->fails       = (iface->config.ambiguous == UCT_VARUNA_AMBIGUOUS_FAIL);
    compare->num_targets = num;
    target               = (uct_varuna_audit_target_t*)(compare + 1);
    for (i = 0; i < num; ++i) {
        op                 = uct_varuna_window_op(window, i);
        target[i].req      = (op->arg == NULL) ? 0 : uct_varuna_log_req_id(op->arg);
        target[i].addr     = op->addr;
        target[i].length   = op->length;
        target[i].is_known = op->is_known;
        target[i].verdict  = op->verdict;
        target[i].action   = (op->arg == NULL) ? UCT_VARUNA_AUDIT_LEFT :
                             uct_varuna_audit_action(op->arg,
                                    (op->verdict == UCT_VARUNA_WINDOW_EXECUTED) ?
                                    UCT_VARUNA_VERDICT_EXECUTED :
                                    UCT_VARUNA_VERDICT_REPEAT);
    }

    uct_varuna_audit_append(uct_varuna_requester(iface), head);
}
