/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Decides ambiguous requests by their targets. A put or an atomic is ambiguous if neither
 * the log nor a PSN proves whether it was executed: the last one on DC, all that were
 * not acknowledged if there is no log and the peer's NIC is dead, see varuna_plan.c.
 *
 * All targets are read back before anything is repeated. varuna_plan.c decides what
 * that means. Where the targets do not tell, the user's policy decides. The same is true if
 * the CPU cannot read the data, because it is in a GPU's memory.
 *
 * The targets are read in chunks, one at a time. What was read is not read again if the
 * lane fails in between: nothing of the endpoint changes the targets meanwhile.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_sm.h"
#include "varuna_lane.h"
#include <uct/ib/varuna/core/varuna_plan.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include "varuna_ep.h"
#include "varuna_ring.h"

/* Copy bytes of the request's payload, wherever they are kept. */
static void uct_varuna_compare_copy(const void *arg, size_t offset, void *dst,
                                    size_t length)
{
    const uct_varuna_req_t *req = arg;
    const uct_varuna_req_iov_t *iov;
    size_t part;
    unsigned i;

    if (uct_varuna_req_info(req)->place == UCT_VARUNA_REQ_IN_DATA) {
        memcpy(dst, req->data + offset, length);
        return;
    }

    for (i = 0; (i < req->iovcnt) && (length > 0); ++i) {
        iov = &req->iov[i];
        if (offset >= iov->length) {
            offset -= iov->length;
            continue;
        }

        part = ucs_min(length, iov->length - offset);
        memcpy(dst, UCS_PTR_BYTE_OFFSET(iov->buffer, offset), part);
        dst     = UCS_PTR_BYTE_OFFSET(dst, part);
        length -= part;
        offset  = 0;
    }
}

/* Memory of a device may also have taken the place of what was registered. */
static int uct_varuna_iov_is_host(const uct_varuna_req_iov_t *iov)
{
    const uct_varuna_mem_t *mem = iov->memh;

    return ((mem == UCT_MEM_HANDLE_NULL) || (mem->device == UCT_VARUNA_DEVICE_HOST)) &&
           uct_varuna_mem_is_host(iov->buffer, iov->length);
}

static int uct_varuna_req_is_readable(const uct_varuna_req_t *req)
{
    unsigned i;

    if (uct_varuna_req_info(req)->kind != UCT_VARUNA_OP_PUT) {
        return 0; /* What an atomic leaves is not known */
    }

    if ((uct_varuna_req_info(req)->place == UCT_VARUNA_REQ_IN_DATA) ||
        (req->flags & UCT_VARUNA_REQ_FLAG_BCOPY)) {
        return 1; /* Our own copy */
    }

    for (i = 0; i < req->iovcnt; ++i) {
        if (!uct_varuna_iov_is_host(&req->iov[i])) {
            return 0;
        }
    }

    return 1;
}

static void uct_varuna_compare_unpack(void *arg, const void *data,
                                      size_t length)
{
    uct_varuna_ep_t *ep = arg;

    uct_varuna_window_feed(ep->compare.window, data, length);
}

static void uct_varuna_compare_completion(uct_completion_t *comp)
{
    uct_varuna_req_t *read = ucs_container_of(comp, uct_varuna_req_t, comp);
    uct_varuna_ep_t *ep    = read->ep;

    if (ep == NULL) {
        return; /* Its grave releases it */
    }

    if (comp->status != UCS_OK) {
        /* Of the active lane, or of none; released when it is drained */
        uct_varuna_ep_lane_error(ep, ep->lane.ep, comp->status);
        return;
    }

    ep->compare.read = NULL;
    ucs_mpool_put_inline(read);
    uct_varuna_ep_add_work(ep);
}

/* Read the next chunk. */
static ucs_status_t uct_varuna_compare_post(uct_varuna_ep_t *ep,
                                            const uct_varuna_req_t *req,
                                            size_t offset, size_t length)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_req_t *read    = ucs_mpool_get(&uct_varuna_requester(iface)->pools.reqs);
    ucs_status_t status;

    if (read == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    memset(read, 0, ucs_offsetof(uct_varuna_req_t, data));
    read->ep          = ep;
    read->type        = UCT_VARUNA_REQ_GET_BCOPY;
    read->length      = length;
    read->remote_addr = req->remote_addr + offset;
    read->user.token  = req->user.token;
    memcpy(read->keys, req->keys, sizeof(read->keys));
    read->get.cb      = uct_varuna_compare_unpack;
    read->get.arg     = ep;
    read->comp.func   = uct_varuna_compare_completion;
    read->comp.count  = 1;
    read->comp.status = UCS_OK;
    status            = uct_varuna_req_post_apart(read);
    if (UCS_STATUS_IS_ERR(status)) {
        ucs_mpool_put_inline(read);
        return status;
    }

    ep->compare.read = read;
    return UCS_OK;
}

/* Its data is in memory of a device, so that no target could tell. Once in a process. */
static void uct_varuna_compare_tell_repeated(const uct_varuna_ep_t *ep,
                                             const uct_varuna_req_t *req)
{
    static int is_told;

    if ((uct_varuna_req_info(req)->kind == UCT_VARUNA_OP_PUT) &&
        !uct_varuna_req_is_readable(req) &&
        !__atomic_exchange_n(&is_told, 1, __ATOMIC_RELAXED)) {
        ucs_warn("rc_varuna: a put of %u bytes from memory of a device is repeated, and may have"
                 " been executed before its link failed: the CPU does not read such memory, and"
                 " a lost put is certain damage (" UCT_VARUNA_CONFIG_PREFIX "AMBIGUOUS=repeat)",
                 req->length);
    }
}

/* The targets do not tell: apply the user's policy. */
static ucs_status_t uct_varuna_compare_undecided(uct_varuna_ep_t *ep,
                                                 const uct_varuna_req_t *req)
{
    if (uct_varuna_ep_iface(ep)->config.ambiguous != UCT_VARUNA_AMBIGUOUS_FAIL) {
        uct_varuna_compare_tell_repeated(ep, req);
        return UCS_OK;
    }

    ucs_diag("ep %p: vQP %u: it is not known whether a %s of %u bytes was"
             " executed before the link failed: the endpoint fails, by "
             UCT_VARUNA_CONFIG_PREFIX "AMBIGUOUS=fail", ep, ep->id,
             uct_varuna_req_info(req)->name, req->length);
    return UCS_ERR_CONNECTION_RESET;
}

static void uct_varuna_compare_repeat(uct_varuna_ep_t *ep, uct_varuna_req_t *req)
{
    ++ep->recovery.result.repeated;
    ++ep->stats.repeated;
    ep->stats.repeated_bytes += req->length;
}

ucs_status_t uct_varuna_req_executed(uct_varuna_req_t *req)
{
    uct_varuna_ep_t *ep = req->ep;
    ucs_status_t status = UCS_OK;

    if (uct_varuna_req_fetches(req)) {
        status = uct_varuna_ep_requester(ep)->amo->executed(ep, req);
        if (status == UCS_INPROGRESS) {
            return UCS_OK; /* It is posted again, as what it is now */
        }
    }

    req->flags |= UCT_VARUNA_REQ_FLAG_DONE;
    return status;
}

/* Whether the request, which is not ambiguous itself, changes a word between others. Other
 * steps of atomics change nothing that a user writes. An atomic that is repeated must not
 * follow a later write which was placed early. */
static int uct_varuna_compare_changes_word(const uct_varuna_req_t *req)
{
    const uct_varuna_req_info_t *info = uct_varuna_req_info(req);

    if (info->kind == UCT_VARUNA_OP_ATOMIC) {
        return req->ep->compare.unordered && !(req->flags & UCT_VARUNA_REQ_FLAG_DONE);
    }

    return (req->flags & UCT_VARUNA_REQ_FLAG_LOST) &&
           (info->kind == UCT_VARUNA_OP_STEP) && info->has_answer;
}

/* Gather what is ambiguous. @return 0 if there is no memory now. */
static int uct_varuna_compare_begin(uct_varuna_ep_t *ep)
{
    unsigned num_ops = 0;
    uct_varuna_window_t *window;
    uct_varuna_req_t *req;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        num_ops += (req->flags & UCT_VARUNA_REQ_FLAG_AMBIGUOUS) ||
                   uct_varuna_compare_changes_word(req);
    }

    window = uct_varuna_window_create(num_ops,
                                      uct_varuna_ep_iface(ep)->attr.cap.get.max_bcopy,
                                      uct_varuna_compare_copy, ep->compare.unordered);
    if (window == NULL) {
        return 0;
    }

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if (req->flags & UCT_VARUNA_REQ_FLAG_AMBIGUOUS) {
            uct_varuna_window_add(window, req->remote_addr, req->length, req,
                                  uct_varuna_req_is_readable(req));
        } else if (uct_varuna_compare_changes_word(req)) {
            uct_varuna_window_add(window, req->remote_addr, sizeof(uint64_t), NULL, 0);
        }
    }

    ep->compare.window = window;
    return 1;
}

/* A read was answered before a fenced request after it was executed: read again, it
 * could return what was written since. */
static void uct_varuna_compare_finish_reads(uct_varuna_ep_t *ep,
                                            const uct_varuna_req_t *last)
{
    const uct_varuna_req_t *fenced = NULL;
    uct_varuna_req_t *req;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if (req->flags & UCT_VARUNA_REQ_FLAG_FENCE) {
            fenced = req;
        }
        if (req == last) {
            break;
        }
    }

    if (fenced == NULL) {
        return;
    }

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if (req == fenced) {
            break;
        }
        if (uct_varuna_req_info(req)->kind == UCT_VARUNA_OP_GET) {
            req->flags |= UCT_VARUNA_REQ_FLAG_DONE;
        }
    }
}

/* All targets were read. @return why the endpoint fails. */
static ucs_status_t uct_varuna_compare_decide(uct_varuna_ep_t *ep)
{
    uct_varuna_window_t *window  = ep->compare.window;
    const uct_varuna_req_t *last = NULL;
    ucs_status_t status          = UCS_OK;
    const uct_varuna_window_op_t *op;
    uct_varuna_req_t *req;
    unsigned i;

    if (!uct_varuna_window_decide(window)) {
        ++ep->stats.undecided;
    }

    for (i = 0; (i < uct_varuna_window_num_ops(window)) && (status == UCS_OK); ++i) {
        op  = uct_varuna_window_op(window, i);
        req = op->arg;
        if (req == NULL) {
            continue;
        }

        if (op->verdict == UCT_VARUNA_WINDOW_EXECUTED) {
            last   = req;
            status = uct_varuna_req_executed(req);
            ++ep->recovery.equal;
            ++ep->stats.compared_equal;
        } else {
            if (op->is_known) {
                ++ep->recovery.different;
                ++ep->stats.compared_different;
            }
            status = (op->verdict == UCT_VARUNA_WINDOW_LOST) ? UCS_OK :
                     uct_varuna_compare_undecided(ep, req);
            if (status == UCS_OK) {
                uct_varuna_compare_repeat(ep, req);
            }
        }
        req->flags &= ~UCT_VARUNA_REQ_FLAG_AMBIGUOUS;
    }

    ucs_debug("rc_varuna: ep %p vqp=%u: %u ambiguous requests%s: %u were executed, as "
              "their targets show", ep, ep->id, i,
              ep->compare.unordered ? " on an unordered network" : "",
              ep->recovery.equal);
    if ((last != NULL) && !ep->compare.unordered) {
        uct_varuna_compare_finish_reads(ep, last);
    }

    uct_varuna_audit_compared(ep, window, status);
    uct_varuna_window_destroy(window);
    ep->compare.window = NULL;
    ep->compare.wanted = 0;
    return status;
}

ucs_status_t uct_varuna_compare_progress(uct_varuna_ep_t *ep)
{
    const uct_varuna_req_t *req;
    ucs_status_t status;
    unsigned index;
    size_t offset, length;

    if (!ep->compare.wanted) {
        return UCS_OK;
    }

    if ((ep->compare.read != NULL) ||
        ((ep->compare.window == NULL) && !uct_varuna_compare_begin(ep))) {
        return UCS_ERR_NO_RESOURCE;
    }

    length = uct_varuna_window_next(ep->compare.window, &index, &offset);
    if (length == 0) {
        status = uct_varuna_compare_decide(ep);
        if (status == UCS_OK) {
            return UCS_OK;
        }
        uct_varuna_ep_raise_fatal(ep, status);
        return UCS_ERR_NO_RESOURCE;
    }

    req    = uct_varuna_window_op(ep->compare.window, index)->arg;
    status = uct_varuna_compare_post(ep, req, offset, length);
    return (status == UCS_OK) ? UCS_ERR_NO_RESOURCE : status;
}

void uct_varuna_compare_abort(uct_varuna_ep_t *ep)
{
    if (ep->compare.read != NULL) {
        ucs_mpool_put(ep->compare.read);
        ep->compare.read = NULL;
    }
}

void uct_varuna_compare_detach(uct_varuna_ep_t *ep)
{
    if (ep->compare.window != NULL) {
        uct_varuna_window_destroy(ep->compare.window);
        ep->compare.window = NULL;
    }
}
