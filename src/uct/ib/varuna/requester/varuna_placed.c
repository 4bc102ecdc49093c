/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Flushes, and the reads that place what was written. See varuna_ep.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ep.h"
#include "varuna.inl"

/* Make a read of a word of the peer's logs that nobody needs of @a req. */
static void uct_varuna_req_make_read_back(uct_varuna_req_t *req)
{
    uct_varuna_ep_t *ep = req->ep;

    req->type    = UCT_VARUNA_REQ_GET_BCOPY;
    req->flags  &= ~UCT_VARUNA_REQ_FLAG_MARKER;
    req->length  = sizeof(uint64_t);
    req->get.cb  = uct_varuna_req_unpack_nothing;
    req->get.arg = NULL;
    uct_varuna_req_set_remote(req, ep->remote.logs_addr, ep->remote.log_bundle.rkey);
}

ucs_status_t uct_varuna_ep_read_back(uct_varuna_ep_t *ep, uct_completion_t *comp)
{
    uct_varuna_req_t *req = uct_varuna_req_new(ep);
    ucs_status_t status;

    if (req == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    uct_varuna_req_init(ep, req, UCT_VARUNA_REQ_GET_BCOPY, comp);
    uct_varuna_req_make_read_back(req);
    status = uct_varuna_req_post(req, 1);
    if (status == UCS_OK) {
        uct_varuna_req_push(uct_varuna_ep_iface(ep), ep, req, UCT_VARUNA_REQ_GET_BCOPY);
    }

    return status;
}

ucs_status_t uct_varuna_ep_read_devices(uct_varuna_ep_t *ep)
{
    ucs_status_t status;
    uct_varuna_req_t *req;

    if (ucs_likely(ep->devices == NULL)) {
        return UCS_OK;
    }

    do {
        req = uct_varuna_req_new(ep);
        if (req == NULL) {
            return UCS_ERR_NO_RESOURCE;
        }

        uct_varuna_req_init(ep, req, UCT_VARUNA_REQ_GET_BCOPY, NULL);
        status = uct_varuna_devices_make_read(ep, req);
        if (status != UCS_OK) {
            return (status == UCS_ERR_NO_ELEM) ? UCS_OK : status;
        }

        status = uct_varuna_req_post(req, 1);
        if (status == UCS_OK) {
            uct_varuna_req_push(uct_varuna_ep_iface(ep), ep, req, UCT_VARUNA_REQ_GET_BCOPY);
            uct_varuna_devices_read_posted(ep, req);
        }
    } while (status == UCS_OK);

    return status;
}

/* Read memory of the host, unless such a read has returned, is under way, or is repeated with
 * the rest. */
static ucs_status_t uct_varuna_ep_place_host(uct_varuna_ep_t *ep)
{
    ucs_status_t status;

    if ((ep->num_reading == ep->num_writes) || (ep->num_settled == ep->num_writes)) {
        return UCS_OK;
    }

    status = uct_varuna_ep_read_back(ep, NULL);
    if (status == UCS_OK) {
        ep->num_reading = ep->num_writes;
    }
    return status;
}

/* Flushes of the same writes share reads. */
static ucs_status_t uct_varuna_ep_place(uct_varuna_ep_t *ep, unsigned flags)
{
    ucs_status_t status = UCS_OK;

    if (ep->owed != NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    if (flags & UCT_VARUNA_COMPAT_FLUSH_REMOTE) {
        status = uct_varuna_ep_read_devices(ep);
    }
    if (status == UCS_OK) {
        status = uct_varuna_ep_place_host(ep);
    }
    if (UCS_STATUS_IS_ERR(status) && (status != UCS_ERR_NO_RESOURCE)) {
        /* The recovery's fence places all */
        uct_varuna_ep_raise_lane_failed(ep, ucs_status_string(status));
        status = UCS_ERR_NO_RESOURCE;
    }

    return status;
}

int uct_varuna_ep_place_repeated(uct_varuna_ep_t *ep)
{
    const uct_varuna_req_t *req;

    if (ucs_likely(ep->devices == NULL)) {
        return 0;
    }

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if ((req->type == UCT_VARUNA_REQ_FLUSH) &&
            !uct_varuna_ep_is_placed_up_to(ep, req->log_sn, req->opcode)) {
            return uct_varuna_ep_place(ep, req->opcode) != UCS_OK;
        }
    }

    return 0;
}

/* Whether the lane has something that comes after a flush. Completions come in the order of the
 * ring, so nothing can be posted in the flush's place any more. */
static int uct_varuna_req_is_followed(const uct_varuna_req_t *flush)
{
    int is_after = 0;
    const uct_varuna_req_t *req;

    uct_varuna_ring_for_each(req, &flush->ep->hot.reqs) {
        if (is_after && (req->flags & UCT_VARUNA_REQ_FLAG_POSTED)) {
            return 1;
        }
        is_after |= (req == flush);
    }

    return 0;
}

int uct_varuna_req_pass_flush(uct_varuna_req_t *flush)
{
    uct_varuna_ep_t *ep = flush->ep;

    if (flush->flags & UCT_VARUNA_REQ_FLAG_PASSED) {
        return 0; /* What was posted since then is not to be placed */
    }

    flush->flags |= UCT_VARUNA_REQ_FLAG_PASSED;
    if (uct_varuna_req_is_followed(flush)) {
        return 0; /* A change of the lane was given up: a read before it places it, or that of
                     the change after it */
    }

    flush->log_sn = ep->num_writes;
    if (uct_varuna_ep_is_placed(ep, flush->opcode)) {
        return 0;
    }

    if ((flush->opcode & UCT_VARUNA_COMPAT_FLUSH_REMOTE) &&
        !uct_varuna_devices_are_placed(ep, ep->num_writes)) {
        return 0; /* Both are read when the endpoint is active */
    }

    uct_varuna_req_make_read_back(flush); /* It has room for that */
    ++ep->hot.num_reads;
    return 1;
}

ucs_status_t uct_varuna_ep_queue_flush(uct_varuna_ep_t *ep, unsigned flags,
                                       uct_completion_t *comp)
{
    if (!uct_varuna_ep_is_placed(ep, flags) &&
        ((ep->hot.state != UCT_VARUNA_EP_ACTIVE) ||
         (uct_varuna_ep_place(ep, flags) != UCS_OK))) {
        uct_varuna_ep_add_work(ep);
        if (ep->hot.state == UCT_VARUNA_EP_ACTIVE) {
            return UCS_ERR_NO_RESOURCE;
        }
        /* The fence places what is complete, or the read at the end of the lane, or a read
         * that is made of the flush */
    }

    if (comp == NULL) {
        return UCS_INPROGRESS;
    }

    return (uct_varuna_ep_push_flush(ep, flags, ep->num_writes, comp) == NULL) ?
           UCS_ERR_NO_RESOURCE : UCS_INPROGRESS;
}
