/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opening, closing and progress of the responder. See varuna_responder.h for its parts.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_atomic_req.h"
#include "varuna_responder_open.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include "varuna_am.h"
#include "varuna_connect.h"
#include "varuna_fence.h"
#include "varuna_home_move.h"
#include "varuna_orphan.h"
#include "varuna_unused.h"
#include "varuna_spare.h"
#include "varuna_target.h"
#include "varuna_target_log.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>

/* More completions than the receive queues of all links hold */
#define UCT_VARUNA_RESPONDER_MAX_POLL (2 * UCT_VARUNA_MAX_LINKS * 8192)


/* Messages which were acknowledged before CLOSE was sent are in our completion
 * queues: they are delivered before their vQP is forgotten. */
static void uct_varuna_responder_poll_lanes(uct_varuna_responder_t *resp)
{
    unsigned count = 0;
    unsigned polled;

    do {
        polled = uct_varuna_lanes_progress(resp->iface);
        count += polled;
    } while ((polled > 0) && (count < UCT_VARUNA_RESPONDER_MAX_POLL));
}

void uct_varuna_responder_progress(uct_varuna_responder_t *resp)
{
    uct_varuna_target_t *target;
    ucs_list_link_t closed;

    uct_varuna_spares_progress(resp);
    uct_varuna_target_logs_progress(resp);

    ucs_list_head_init(&closed);
    uct_varuna_ctl_lock(resp->ctl);
    ucs_list_splice_tail(&closed, &resp->targets.closed);
    ucs_list_head_init(&resp->targets.closed);
    uct_varuna_ctl_unlock(resp->ctl);
    if (ucs_list_is_empty(&closed)) {
        return;
    }

    uct_varuna_responder_poll_lanes(resp);
    while (!ucs_list_is_empty(&closed)) {
        target = ucs_list_extract_head(&closed, uct_varuna_target_t, list);
        if (target->orphan) {
            uct_varuna_orphan_keep(resp, target);
        } else {
            uct_varuna_target_destroy(resp, target);
        }
    }
}

ucs_status_t uct_varuna_responder_create(uct_varuna_iface_t *iface,
                                         uct_varuna_ctl_t *ctl,
                                         uct_varuna_responder_t **resp_p)
{
    uct_varuna_responder_t *resp;
    ucs_status_t status;

    resp = ucs_calloc(1, sizeof(*resp), "varuna_responder");
    if (resp == NULL) {
        ucs_error("failed to allocate the responder");
        return UCS_ERR_NO_MEMORY;
    }

    resp->iface     = iface;
    resp->ctl       = ctl;
    resp->peer_part = uct_varuna_peer_add_part(ctl,
                                               sizeof(uct_varuna_responder_peer_t));
    uct_varuna_am_init(resp);

    status = uct_varuna_targets_init(resp);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_varuna_proxy_create(ctl, &resp->proxy);
    if (status != UCS_OK) {
        goto err_cleanup_targets;
    }

    status = uct_varuna_spares_init(resp);
    if (status != UCS_OK) {
        goto err_destroy_proxy;
    }

    uct_varuna_connect_init(resp);
    uct_varuna_fence_init(resp);
    uct_varuna_home_move_init(resp);
    uct_varuna_atomic_req_init(resp);
    uct_varuna_orphan_start(resp);
    uct_varuna_unused_start(resp);
    *resp_p = resp;
    return UCS_OK;

err_destroy_proxy:
    uct_varuna_proxy_destroy(resp->proxy);
err_cleanup_targets:
    uct_varuna_targets_cleanup(resp);
err_free:
    ucs_free(resp);
    return status;
}

void uct_varuna_responder_destroy(uct_varuna_responder_t *resp)
{
    uct_varuna_ctl_lock(resp->ctl);
    uct_varuna_spares_cleanup(resp);
    uct_varuna_orphans_cleanup(resp);
    uct_varuna_targets_cleanup(resp);
    uct_varuna_proxy_destroy(resp->proxy);
    uct_varuna_ctl_unlock(resp->ctl);
    ucs_free(resp);
}
