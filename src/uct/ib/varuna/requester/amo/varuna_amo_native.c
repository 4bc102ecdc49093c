/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode native: the NIC's own atomics. If an atomic was executed when its lane failed,
 * its result is lost.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_priv.h"
#include <uct/ib/varuna/requester/varuna.inl>


ucs_status_t uct_varuna_amo_native_start(uct_varuna_ep_t *ep,
                                         const uct_varuna_amo_args_t *args)
{
    uct_varuna_iface_t *iface   = uct_varuna_ep_iface(ep);
    uct_varuna_req_type_t type  = (uct_varuna_req_type_t)args->type;
    ucs_status_t status;
    uct_varuna_req_t *req;

    req = uct_varuna_req_get(iface, ep, type, args->comp, args->rkey);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_remote(req, args->remote_addr, args->rkey);
    req->flags          |= (args->width == sizeof(uint64_t)) ?
                           UCT_VARUNA_REQ_FLAG_64 : 0;
    req->opcode          = args->op;
    req->atomic.compare  = args->compare;
    req->atomic.value    = args->value;
    req->atomic.result   = args->result;
    status               = uct_varuna_req_start(iface, ep, req, type, args->comp,
                                                args->width);
    return (uct_varuna_req_infos[type].has_answer && (status == UCS_OK)) ?
           UCS_INPROGRESS : status;
}

ucs_status_t uct_varuna_amo_native_executed(uct_varuna_ep_t *ep,
                                            uct_varuna_req_t *req)
{
    ucs_error("ep %p: an atomic was executed, but its value is lost with the "
              "link", ep);
    return UCS_ERR_CONNECTION_RESET;
}

ucs_status_t uct_varuna_amo_native_open(uct_varuna_ep_t *ep,
                                        const uct_varuna_ctl_open_rep_t *rep)
{
    return UCS_OK;
}

void uct_varuna_amo_native_close(uct_varuna_ep_t *ep)
{
}

void uct_varuna_amo_native_learn_home(uct_varuna_ep_t *ep, uint8_t nic,
                                      uint32_t epoch)
{
}

int uct_varuna_amo_native_progress(uct_varuna_ep_t *ep)
{
    return 0;
}

void uct_varuna_amo_native_collect(const uct_varuna_req_t *req)
{
}

void uct_varuna_amo_native_fail_all(uct_varuna_ep_t *ep, ucs_status_t status)
{
}

void uct_varuna_amo_native_query(uct_iface_attr_t *attr)
{
}

const uct_varuna_amo_ops_t uct_varuna_amo_native_ops =
        UCT_VARUNA_AMO_NATIVE_OPS(uct_varuna_amo_native_executed);
