/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Compares ambiguous puts with their target. A put is ambiguous if neither the log nor
 * a PSN proves whether it was executed: the last one on a lane without a PSN, see
 * varuna_plan.c. The target then shows:
 *
 *   equal      The put counts as executed. If it was not, executing it at this moment
 *              would change nothing.
 *   different  It was not executed, or the memory was written again since. These cases
 *              look the same, so the user's policy decides.
 *
 * If the CPU cannot read the data, because it is a GPU's memory, the policy decides at
 * once.
 *
 * The target is read in chunks, one at a time, at the request's place among the
 * repeated ones: the reads follow all earlier requests. A chunk that was equal is not
 * read again if the lane fails in between.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_compare.h"
#include "varuna_ep_event.h"
#include "varuna_lane.h"
#include <uct/ib/varuna/core/varuna_memtype.h>
#include "varuna_post.h"
#include "varuna_req.h"

/* Compare bytes of the request's payload, wherever they are kept. */
static int uct_varuna_req_is_equal(const uct_varuna_req_t *req, size_t offset,
                                   const void *data, size_t length)
{
    const uct_iov_t *iov;
    size_t part;
    unsigned i;

    if (req->type == UCT_VARUNA_REQ_PUT_SHORT) {
        return memcmp(req->data + offset, data, length) == 0;
    }

    for (i = 0; (i < req->iovcnt) && (length > 0); ++i) {
        iov = &req->iov[i];
        if (offset >= iov->length) {
            offset -= iov->length;
            continue;
        }

        part = ucs_min(length, iov->length - offset);
        if (memcmp(UCS_PTR_BYTE_OFFSET(iov->buffer, offset), data, part)) {
            return 0;
        }

        data    = UCS_PTR_BYTE_OFFSET(data, part);
        length -= part;
        offset  = 0;
    }

    return 1;
}

/* Such memory is not registered, but may have taken the place of what was. */
static int uct_varuna_req_is_readable(const uct_varuna_req_t *req)
{
    unsigned i;

    if ((req->type == UCT_VARUNA_REQ_PUT_SHORT) || (req->bcopy != NULL)) {
        return 1; /* Our own copy */
    }

    for (i = 0; i < req->iovcnt; ++i) {
        if (!uct_varuna_mem_is_host(req->iov[i].buffer, req->iov[i].length)) {
            return 0;
        }
    }

    return 1;
}

static void uct_varuna_compare_unpack(void *arg, const void *data,
                                      size_t length)
{
    uct_varuna_ep_t *ep = arg;

    if (!uct_varuna_req_is_equal(ep->compare.req, ep->compare.offset, data,
                                 length)) {
        ep->compare.differs = 1;
    }
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

    ep->compare.offset += read->length;
    ep->compare.read    = NULL;
    ucs_mpool_put_inline(read);
    uct_varuna_ep_add_work(ep);
}

/* Read the next chunk. */
static ucs_status_t uct_varuna_compare_post(uct_varuna_ep_t *ep,
                                            const uct_varuna_req_t *req)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_req_t *read    = ucs_mpool_get(&uct_varuna_requester(iface)->req_mp);
    ucs_status_t status;

    if (read == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    memset(read, 0, ucs_offsetof(uct_varuna_req_t, iov));
    read->ep          = ep;
    read->type        = UCT_VARUNA_REQ_GET_BCOPY;
    read->length      = ucs_min(req->length - ep->compare.offset,
                                iface->attr.cap.get.max_bcopy);
    read->remote_addr = req->remote_addr + ep->compare.offset;
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

/* Undecided: apply the user's policy. */
static ucs_status_t uct_varuna_compare_undecided(uct_varuna_ep_t *ep,
                                                 uct_varuna_req_t *req)
{
    if (uct_varuna_ep_iface(ep)->config.ambiguous ==
        UCT_VARUNA_AMBIGUOUS_FAIL) {
        ucs_diag("ep %p: vQP %u: it is not known whether a %s of %u bytes was"
                 " executed before the link failed: the endpoint fails, as "
                 UCT_VARUNA_CONFIG_PREFIX "AMBIGUOUS=fail says", ep, ep->id,
                 uct_varuna_req_info(req)->name, req->length);
        return UCS_ERR_CONNECTION_RESET;
    }

    req->flags &= ~UCT_VARUNA_REQ_FLAG_AMBIGUOUS;
    ++ep->recovery.result.repeated;
    ++ep->stats.repeated;
    ep->stats.repeated_bytes += req->length;
    return UCS_OK;
}

ucs_status_t uct_varuna_compare_step(uct_varuna_ep_t *ep,
                                     uct_varuna_req_t *req)
{
    if (uct_varuna_req_info(req)->kind != UCT_VARUNA_OP_PUT) {
        return uct_varuna_compare_undecided(ep, req);
    }

    if (ep->compare.read != NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    if ((ep->compare.req != req) && !uct_varuna_req_is_readable(req)) {
        ucs_debug("ep %p: vQP %u: ambiguous %s of %u bytes: it is in memory of a "
                  "device, and is not compared", ep, ep->id,
                  uct_varuna_req_info(req)->name, req->length);
        return uct_varuna_compare_undecided(ep, req);
    }

    if (ep->compare.req != req) {
        ep->compare.req     = req;
        ep->compare.offset  = 0;
        ep->compare.differs = 0;
    }

    if (!ep->compare.differs && (ep->compare.offset < req->length)) {
        ucs_status_t status = uct_varuna_compare_post(ep, req);

        return (status == UCS_OK) ? UCS_ERR_NO_RESOURCE : status;
    }

    ep->compare.req = NULL;
    if (ep->compare.differs) {
        ++ep->recovery.different;
        ++ep->stats.compared_different;
        ucs_debug("ep %p: vQP %u: ambiguous %s of %u bytes: the target is "
                  "different", ep, ep->id, uct_varuna_req_info(req)->name,
                  req->length);
        return uct_varuna_compare_undecided(ep, req);
    }

    ++ep->recovery.equal;
    ++ep->stats.compared_equal;
    ucs_debug("ep %p: vQP %u: ambiguous %s of %u bytes: the target is equal",
              ep, ep->id, uct_varuna_req_info(req)->name, req->length);
    req->flags &= ~UCT_VARUNA_REQ_FLAG_AMBIGUOUS;
    req->flags |= UCT_VARUNA_REQ_FLAG_DONE;
    return UCS_OK;
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
    if (ep->compare.read != NULL) {
        ucs_queue_push(&ep->hot.reqs, &ep->compare.read->queue);
        ep->compare.read = NULL;
    }
}
