/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode reread (paper): as native, but a compare and swap that was executed when its
 * lane failed reads its target. If the value is unique, or there is no other writer,
 * the target shows whether it succeeded.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_ext.h"

#include <string.h>

/* What is left of a compare and swap that becomes a read of its target */
typedef struct uct_varuna_reread {
    uint64_t                   compare;
    uint64_t                   swap;
    void                       *result;
    size_t                     width;
} uct_varuna_reread_t;

static void uct_varuna_reread_unpack(void *arg, const void *data, size_t length)
{
    const uct_varuna_reread_t *reread = arg;
    const void *old                   =
            !memcmp(data, &reread->swap, reread->width) ? &reread->compare :
            data;

    memcpy(reread->result, old, reread->width);
}

static ucs_status_t uct_varuna_amo_reread_executed(uct_varuna_ep_t *ep,
                                                   uct_varuna_req_t *req)
{
    uct_varuna_reread_t *reread = (uct_varuna_reread_t*)req->data;

    if (req->type != UCT_VARUNA_REQ_CSWAP) {
        return uct_varuna_amo_native_executed(ep, req);
    }

    reread->compare = req->atomic.compare;
    reread->swap    = req->atomic.value;
    reread->result  = req->atomic.result;
    reread->width   = req->length;
    req->type       = UCT_VARUNA_REQ_GET_BCOPY;
    req->get.cb     = uct_varuna_reread_unpack;
    req->get.arg    = reread;
    ++ep->hot.num_reads;
    return UCS_INPROGRESS;
}

const uct_varuna_amo_ops_t uct_varuna_amo_reread_ops =
        UCT_VARUNA_AMO_NATIVE_OPS(uct_varuna_amo_reread_executed);
