/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The transport rc_varuna: opening and closing its interface, and its table of
 * operations. Called by UCT.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_tl_iface.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_ports.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include "varuna_progress.h"
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/lanes/varuna_link_cmd.h>
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/requester/amo/varuna_amo_priv.h>
#include <uct/ib/varuna/requester/varuna_requester.h>
#include <uct/ib/varuna/requester/varuna_sm.h>
#include <uct/ib/varuna/requester/varuna_ep.h>
#include <uct/ib/varuna/requester/varuna_pending.h>
#include <uct/ib/varuna/responder/varuna_responder.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>

#include <ucs/async/async.h>
#include <ucs/datastruct/string_buffer.h>
#include <unistd.h>
#include <string.h>

/* --- Addresses --- */

static ucs_status_t
uct_varuna_iface_get_device_address(uct_iface_h tl_iface,
                                    uct_device_addr_t *addr)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);

    /* Its length was told when the interface was opened */
    memset(addr, 0, iface->attr.device_addr_len);
    memcpy(addr, iface->links[0].device_addr, uct_varuna_iface_outer_len(iface));
    return UCS_OK;
}

static ucs_status_t uct_varuna_iface_get_address(uct_iface_h tl_iface,
                                                 uct_iface_addr_t *addr)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);

    uct_varuna_iface_pack_short_address(iface, addr);
    return UCS_OK;
}

static int
uct_varuna_iface_is_reachable(const uct_iface_h tl_iface,
                              const uct_device_addr_t *device_addr,
                              const uct_iface_addr_t *iface_addr)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);

    return uct_varuna_peer_is_reachable(iface, device_addr, iface_addr);
}

/* --- Attributes --- */

/* What the transport offers: the minimum over its lanes, less our header, and less
 * what cannot be guarded; and how fast it is: as the link in use, plus our own work.
 * Set when the lanes are open. */

/*
 * What our work takes: to save and number a request, and to write the log entry of
 * one that changes memory. These are 230 and 450 instructions (contrib/bench/run.sh)
 * beside the 320 of rc_mlx5, for which UCX says 40 ns.
 */
#define UCT_VARUNA_OVERHEAD_REQUEST    30e-9
#define UCT_VARUNA_OVERHEAD_LOG        55e-9

static void uct_varuna_iface_min_attr(uct_iface_attr_t *attr,
                                      const uct_iface_attr_t *lane)
{
#define UCT_VARUNA_ATTR_MIN(_field) \
    attr->cap._field = ucs_min(attr->cap._field, lane->cap._field)
    UCT_VARUNA_ATTR_MIN(put.max_short);
    UCT_VARUNA_ATTR_MIN(put.max_bcopy);
    UCT_VARUNA_ATTR_MIN(put.max_zcopy);
    UCT_VARUNA_ATTR_MIN(put.max_iov);
    UCT_VARUNA_ATTR_MIN(get.max_bcopy);
    UCT_VARUNA_ATTR_MIN(get.max_zcopy);
    UCT_VARUNA_ATTR_MIN(get.max_iov);
    UCT_VARUNA_ATTR_MIN(am.max_short);
    UCT_VARUNA_ATTR_MIN(am.max_bcopy);
    UCT_VARUNA_ATTR_MIN(am.max_zcopy);
    UCT_VARUNA_ATTR_MIN(am.max_hdr);
    UCT_VARUNA_ATTR_MIN(am.max_iov);
#undef UCT_VARUNA_ATTR_MIN
    attr->cap.get.min_zcopy        = ucs_max(attr->cap.get.min_zcopy,
                                             lane->cap.get.min_zcopy);
    attr->cap.flags               &= lane->cap.flags;
    attr->cap.event_flags         &= lane->cap.event_flags;
    attr->cap.atomic32.op_flags   &= lane->cap.atomic32.op_flags;
    attr->cap.atomic32.fop_flags  &= lane->cap.atomic32.fop_flags;
    attr->cap.atomic64.op_flags   &= lane->cap.atomic64.op_flags;
    attr->cap.atomic64.fop_flags  &= lane->cap.atomic64.fop_flags;
    attr->max_num_eps              = ucs_min(attr->max_num_eps,
                                             lane->max_num_eps);
}

/* What we can guard, and what follows from the way that we are connected. */
static void uct_varuna_iface_attr_flags(uct_iface_attr_t *attr)
{
    attr->cap.flags &= UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY |
                       UCT_IFACE_FLAG_AM_ZCOPY | UCT_IFACE_FLAG_PUT_SHORT |
                       UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY |
                       UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                       UCT_IFACE_FLAG_ATOMIC_DEVICE | UCT_IFACE_FLAG_PENDING |
                       UCT_IFACE_FLAG_CB_SYNC |
                       UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                       UCT_IFACE_FLAG_ERRHANDLE_ZCOPY_BUF |
                       UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM |
                       UCT_IFACE_FLAG_EP_CHECK |
                       UCT_VARUNA_COMPAT_INTER_NODE;
    attr->cap.flags |= UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                       UCT_IFACE_FLAG_EP_CHECK;
    attr->cap.event_flags &= UCT_IFACE_FLAG_EVENT_SEND_COMP |
                             UCT_IFACE_FLAG_EVENT_RECV |
                             UCT_IFACE_FLAG_EVENT_FD;
}

/* @return What our header leaves; a lane may have no room for it. */
static size_t uct_varuna_iface_beside_header(size_t room)
{
    return (room > sizeof(uct_varuna_am_hdr_t)) ? (room - sizeof(uct_varuna_am_hdr_t)) : 0;
}

/* Messages carry our header, and requests have room for so much. */
static void uct_varuna_iface_attr_limits(uct_iface_attr_t *attr)
{
    size_t am_max;

    /* bcopy messages are packed once, into a buffer of ours, and sent from it */
    am_max = uct_varuna_iface_beside_header(ucs_min(attr->cap.am.max_bcopy,
                                                    attr->cap.am.max_zcopy));
    attr->cap.am.max_short   = uct_varuna_iface_beside_header(attr->cap.am.max_short);
    attr->cap.am.max_short   = ucs_min(attr->cap.am.max_short,
                                       UCT_VARUNA_MAX_INLINE);
    attr->cap.am.max_bcopy   = am_max;
    attr->cap.am.max_zcopy   = uct_varuna_iface_beside_header(attr->cap.am.max_zcopy);
    attr->cap.am.max_hdr     = uct_varuna_iface_beside_header(
                                       ucs_min(attr->cap.am.max_hdr,
                                               UINT8_MAX)); /* req->header_length */
    attr->cap.am.max_iov     = ucs_min(attr->cap.am.max_iov,
                                       UCT_VARUNA_MAX_IOV);
    attr->cap.put.max_short  = ucs_min(attr->cap.put.max_short,
                                       UCT_VARUNA_MAX_INLINE);
    attr->cap.put.max_iov    = ucs_min(attr->cap.put.max_iov,
                                       UCT_VARUNA_MAX_IOV);
    attr->cap.get.max_iov    = ucs_min(attr->cap.get.max_iov,
                                       UCT_VARUNA_MAX_IOV);
}

/** Determine what all lanes can do, without our header and without what cannot be
 *  recovered. The links are open. */
static void uct_varuna_iface_init_attr(uct_varuna_iface_t *iface)
{
    const uct_varuna_lane_iface_t *primary =
            uct_varuna_link_rc(&iface->links[0]);
    uct_iface_attr_t *attr = &iface->attr;
    unsigned link, kind;
    uint64_t cm_flags;

    *attr            = primary->attr;
    cm_flags         = UCT_IFACE_FLAG_CONNECT_TO_EP;
    attr->cap.flags &= ~cm_flags;
    for (link = 0; link < iface->num_links; ++link) {
        for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
            if (iface->links[link].lanes[kind].inner != NULL) {
                uct_varuna_iface_min_attr(attr,
                                          &iface->links[link].lanes[kind].attr);
            }
        }
    }

    uct_varuna_iface_attr_flags(attr);
    uct_varuna_iface_attr_limits(attr);
    uct_varuna_requester(iface)->amo->query(attr);
    memset(&attr->cap.tag, 0, sizeof(attr->cap.tag));
    attr->cap.get.max_short  = 0;
    attr->ep_addr_len        = 0;
    attr->max_conn_priv      = 0;
    attr->device_addr_len    = iface->links[0].device_addr_len;
    attr->iface_addr_len     = UCT_VARUNA_IFACE_ADDR_MAX;
}

static int uct_varuna_op_is_logged(uct_ep_operation_t op)
{
    return (op == UCT_EP_OP_PUT_SHORT) || (op == UCT_EP_OP_PUT_BCOPY) ||
           (op == UCT_EP_OP_PUT_ZCOPY) || (op == UCT_EP_OP_ATOMIC_POST) ||
           (op == UCT_EP_OP_ATOMIC_FETCH);
}

/* The lane that traffic takes now, or will take once its RC connection is built. */
static const uct_varuna_lane_iface_t *
uct_varuna_iface_active_lane(const uct_varuna_iface_t *iface)
{
    uint8_t link = uct_varuna_link_select(&iface->link_table,
                                          UCT_VARUNA_LINK_NONE,
                                          UCS_MASK(iface->num_links));

    if (link == UCT_VARUNA_LINK_NONE) {
        for (link = 0; (link < iface->num_links) && iface->links[link].is_closed; ++link);
        link %= iface->num_links;
    }

    return uct_varuna_link_rc(&iface->links[link]);
}

/** As uct_iface_query(). */
static ucs_status_t uct_varuna_iface_query(uct_iface_h tl_iface,
                                           uct_iface_attr_t *attr)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);
    const uct_varuna_lane_iface_t *lane = uct_varuna_iface_active_lane(iface);

    *attr           = iface->attr;
    attr->bandwidth = lane->attr.bandwidth;
    attr->latency   = lane->attr.latency;
    attr->priority  = lane->attr.priority;
    attr->overhead  = lane->attr.overhead + UCT_VARUNA_OVERHEAD_REQUEST;
    return UCS_OK;
}

/** As uct_iface_estimate_perf(), for the link in use at present. */
static ucs_status_t uct_varuna_iface_estimate_perf(uct_iface_h tl_iface,
                                                   uct_perf_attr_t *perf_attr)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);
    ucs_status_t status;
    uct_iface_h inner;

    inner = uct_varuna_iface_active_lane(iface)->inner;
    if (inner == NULL) {
        return UCS_ERR_NO_DEVICE; /* All NICs are away */
    }

    status = uct_iface_estimate_perf(inner, perf_attr);
    if (status != UCS_OK) {
        return status;
    }

    if (perf_attr->field_mask & UCT_PERF_ATTR_FIELD_SEND_PRE_OVERHEAD) {
        perf_attr->send_pre_overhead += UCT_VARUNA_OVERHEAD_REQUEST;
        if ((perf_attr->field_mask & UCT_PERF_ATTR_FIELD_OPERATION) &&
            uct_varuna_op_is_logged(perf_attr->operation)) {
            perf_attr->send_pre_overhead += UCT_VARUNA_OVERHEAD_LOG;
        }
    }

    return UCS_OK;
}

/* --- Synchronization and events --- */

UCT_VARUNA_COMPAT_EP_INVALIDATE(uct_varuna_ep_invalidate_op,
                                uct_varuna_ep_invalidate)
UCT_VARUNA_COMPAT_REACHABLE(uct_varuna_iface_is_reachable_v2,
                            uct_varuna_iface_is_reachable)
UCT_VARUNA_COMPAT_CONNECTED(uct_varuna_ep_is_connected_op,
                            uct_varuna_ep_is_connected)

static uct_iface_ops_t uct_varuna_iface_ops;
static uct_iface_internal_ops_t uct_varuna_iface_internal_ops = {
    .iface_estimate_perf = uct_varuna_iface_estimate_perf,
    .iface_vfs_refresh   = uct_varuna_iface_vfs_refresh,
    .ep_query            = (void*)ucs_empty_function_return_unsupported,
    .ep_invalidate       = uct_varuna_ep_invalidate_op,
    UCT_VARUNA_COMPAT_IFACE_OPS(uct_varuna_iface_is_reachable_v2,
                                uct_varuna_ep_is_connected_op)
};

/* An inner interface reports the error of an endpoint */
static ucs_status_t
uct_varuna_iface_lane_error(void *arg, uct_ep_h inner, ucs_status_t status)
{
    uct_varuna_lane_iface_t *lane = arg;
    uct_varuna_iface_t *iface     = lane->iface;

    if (!uct_varuna_requester_lane_error(uct_varuna_requester(iface), inner,
                                         status) &&
        (iface->responder != NULL)) {
        uct_varuna_target_ep_failed(iface->responder, inner);
    }

    return UCS_OK; /* Repaired here: the user is not notified */
}

/* The links, and what endpoints take from the interface. */
static ucs_status_t
uct_varuna_iface_open_lanes(uct_varuna_tl_iface_t *iface, uct_worker_h worker,
                            const uct_iface_params_t *params,
                            const uct_varuna_iface_config_t *config)
{
    static const uct_varuna_lane_handlers_t handlers = {
        .error = uct_varuna_iface_lane_error,
        .am    = uct_varuna_am_handler
    };
    uct_varuna_iface_t *base = &iface->super.super;
    ucs_status_t status;

    uct_varuna_iface_init_link_table(base, config);
    status = uct_varuna_lanes_open(base, worker, params, &handlers);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_atomics_init(&iface->super, uct_varuna_mode(base->md)->requester);
    if (status != UCS_OK) {
        goto err_close;
    }

    uct_varuna_iface_init_attr(base);
    status = uct_varuna_requester_init_mpools(&iface->super);
    if (status != UCS_OK) {
        goto err_atomics;
    }

    return UCS_OK;

err_atomics:
    uct_varuna_atomics_cleanup(&iface->super);
err_close:
    uct_varuna_lanes_close(base);
    return status;
}

static void uct_varuna_iface_close_lanes(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_lanes_close(&iface->super.super);
    uct_varuna_requester_cleanup_mpools(&iface->super);
    uct_varuna_atomics_cleanup(&iface->super);
}

/* The control plane, whose addresses are in ours, and the events of all. Handlers may
 * be called as soon as they are set: they are kept out until all is there that they
 * look at. */
static ucs_status_t uct_varuna_iface_open_ctl(uct_varuna_tl_iface_t *tl_iface)
{
    uct_varuna_iface_t *iface  = &tl_iface->super.super;
    ucs_async_context_t *async = iface->super.worker->async;
    uint8_t addr[UCT_VARUNA_IFACE_ADDR_MAX];
    ucs_status_t status;
    unsigned num_links;

    UCS_ASYNC_BLOCK(async);
    status = uct_varuna_ctl_create(iface, &iface->ctl);
    if (status != UCS_OK) {
        goto out;
    }

    status = uct_varuna_link_cmds_open(iface, async);
    if (status != UCS_OK) {
        goto err_destroy_ctl;
    }

    status = uct_varuna_responder_create(iface, iface->ctl, uct_varuna_mode(iface->md)->responder,
                                         &iface->responder);
    if (status != UCS_OK) {
        goto err_close_cmds;
    }

    uct_varuna_sm_init(&tl_iface->super);
    uct_varuna_answers_init(iface);
    uct_varuna_moves_init(iface->ctl);
    uct_varuna_atomics_listen(uct_varuna_requester(iface));
    status = uct_varuna_ctl_listen(iface->ctl);
    if (status != UCS_OK) {
        goto err_destroy_responder;
    }

    num_links = uct_varuna_iface_pack_short_address(iface, addr);
    if (num_links < iface->num_links) {
        ucs_debug("peers learn %u of %u links with the address, the others when "
                  "an endpoint is opened", num_links, iface->num_links);
    }

    status = uct_varuna_iface_open_event_fd(tl_iface);
    if (status != UCS_OK) {
        goto err_unlisten;
    }

out:
    UCS_ASYNC_UNBLOCK(async);
    return status;

err_unlisten:
    uct_varuna_ctl_unlisten(iface->ctl);
err_destroy_responder:
    uct_varuna_responder_destroy(iface->responder);
    iface->responder = NULL;
err_close_cmds:
    iface->cmds.left = uct_varuna_link_cmds_close(iface);
err_destroy_ctl:
    uct_varuna_ctl_destroy(iface->ctl);
    iface->ctl = NULL;
    goto out;
}

static ucs_status_t
uct_varuna_iface_try_open(uct_varuna_tl_iface_t *iface, uct_worker_h worker,
                          const uct_iface_params_t *params,
                          const uct_varuna_iface_config_t *config)
{
    ucs_status_t status;

    status = uct_varuna_iface_open_lanes(iface, worker, params, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_iface_open_ctl(iface);
    if (status != UCS_OK) {
        uct_varuna_iface_close_lanes(iface);
    }

    return status;
}

/* Open what there is: a NIC that is short of something is left out. */
static ucs_status_t
uct_varuna_iface_open_links(uct_varuna_tl_iface_t *iface, uct_worker_h worker,
                            const uct_iface_params_t *params,
                            const uct_varuna_iface_config_t *config)
{
    uct_varuna_iface_t *base = &iface->super.super;
    ucs_status_t status;

    uct_varuna_choice_skip(base);
    do {
        base->opening.failed = UCT_VARUNA_LINK_NONE;
        status               = uct_varuna_iface_try_open(iface, worker, params, config);
        if (status == UCS_OK) {
            uct_varuna_choice_done(base);
            return UCS_OK;
        }
    } while (uct_varuna_choice_leave_out(base, status));

    return status;
}

/* Later log messages use these names. */
static void uct_varuna_iface_log_links(const uct_varuna_iface_t *iface)
{
    UCS_STRING_BUFFER_ONSTACK(links, 256);
    unsigned link;

    for (link = 0; link < iface->num_links; ++link) {
        ucs_string_buffer_appendf(&links, " %s",
                                  uct_varuna_link_name(iface, link));
    }

    ucs_debug("rc_varuna: interface 0x%lx, links in order of preference:%s",
              iface->uuid, ucs_string_buffer_cstr(&links));
}

static UCS_CLASS_INIT_FUNC(uct_varuna_tl_iface_t, uct_md_h tl_md,
                           uct_worker_h worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *tl_config)
{
    uct_varuna_iface_config_t options = *ucs_derived_of(tl_config,
                                                        uct_varuna_iface_config_t);
    uct_varuna_iface_config_t *config = &options; /* Its times are limited */
    uct_varuna_iface_t *base          = &self->super.super;
    ucs_status_t status;

    if (!(params->field_mask & UCT_IFACE_PARAM_FIELD_OPEN_MODE) ||
        !(params->open_mode & UCT_IFACE_OPEN_MODE_DEVICE)) {
        return UCS_ERR_UNSUPPORTED;
    }

    UCS_CLASS_CALL_SUPER_INIT(uct_varuna_requester_t, &uct_varuna_iface_ops,
                              &uct_varuna_iface_internal_ops, tl_md, worker, params,
                              tl_config);

    memset(UCS_PTR_BYTE_OFFSET(self, sizeof(self->super)), 0,
           sizeof(*self) - sizeof(self->super));
    status = uct_varuna_times_check(uct_varuna_iface_config_table,
                                    "UCX_" UCT_VARUNA_CONFIG_PREFIX, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_iface_set_config(base, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_audit_open(&self->super, config->audit);
    if (status != UCS_OK) {
        return status;
    }

    uct_varuna_pace_init(&self->super.rebuild_pace, UCT_VARUNA_REBUILD_RATE);
    uct_varuna_iface_init_pace(self);

    status = uct_varuna_wake_init(self);
    if (status != UCS_OK) {
        goto err_audit;
    }

    status = uct_varuna_iface_open_links(self, worker, params, config);
    if (status != UCS_OK) {
        goto err_wake;
    }

    uct_varuna_admin_iface_register(self, config->ctl_dir);
    uct_varuna_iface_log_links(base);
    return UCS_OK;

err_wake:
    uct_varuna_wake_cleanup(self);
err_audit:
    uct_varuna_audit_close(&self->super);
    return status;
}

/* The last messages to peers leave before anything that they use is closed. */
static void uct_varuna_iface_close_ctl(uct_varuna_iface_t *iface)
{
    uct_varuna_ctl_unlisten(iface->ctl);
    uct_varuna_farewells_end(uct_varuna_requester(iface));
    uct_varuna_ctl_linger(iface->ctl);
    iface->cmds.left = uct_varuna_link_cmds_close(iface);
    uct_varuna_responder_destroy(iface->responder);
    iface->responder = NULL;
    uct_varuna_ctl_destroy(iface->ctl);
    iface->ctl = NULL;
}

static UCS_CLASS_CLEANUP_FUNC(uct_varuna_tl_iface_t)
{
    uct_varuna_iface_t *base = &self->super.super;

    uct_varuna_iface_progress_disable(&base->super.super,
                                      UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    uct_varuna_admin_iface_unregister(self);
    close(self->event_fd);
    uct_varuna_iface_close_ctl(base);
    uct_varuna_graves_cleanup(base);
    uct_varuna_rest_cleanup(base);
    uct_varuna_iface_close_lanes(self);
    uct_varuna_wake_cleanup(self);
    uct_varuna_audit_close(&self->super);
}

UCS_CLASS_DEFINE(uct_varuna_tl_iface_t, uct_varuna_requester_t);
static UCS_CLASS_DEFINE_NEW_FUNC(uct_varuna_tl_iface_t, uct_iface_t, uct_md_h,
                                 uct_worker_h, const uct_iface_params_t*,
                                 const uct_iface_config_t*);
static UCS_CLASS_DEFINE_DELETE_FUNC(uct_varuna_tl_iface_t, uct_iface_t);

static uct_iface_ops_t uct_varuna_iface_ops = {
    .ep_put_short             = uct_varuna_ep_put_short,
    .ep_put_bcopy             = uct_varuna_ep_put_bcopy,
    .ep_put_zcopy             = uct_varuna_ep_put_zcopy,
    .ep_get_bcopy             = uct_varuna_ep_get_bcopy,
    .ep_get_zcopy             = uct_varuna_ep_get_zcopy,
    .ep_am_short              = uct_varuna_ep_am_short,
    .ep_am_short_iov          = uct_varuna_ep_am_short_iov,
    .ep_am_bcopy              = uct_varuna_ep_am_bcopy,
    .ep_am_zcopy              = uct_varuna_ep_am_zcopy,
    .ep_atomic_cswap64        = uct_varuna_ep_atomic_cswap64,
    .ep_atomic_cswap32        = uct_varuna_ep_atomic_cswap32,
    .ep_atomic64_post         = uct_varuna_ep_atomic64_post,
    .ep_atomic32_post         = uct_varuna_ep_atomic32_post,
    .ep_atomic64_fetch        = uct_varuna_ep_atomic64_fetch,
    .ep_atomic32_fetch        = uct_varuna_ep_atomic32_fetch,
    .ep_pending_add           = uct_varuna_ep_pending_add,
    .ep_pending_purge         = uct_varuna_ep_pending_purge,
    .ep_flush                 = uct_varuna_ep_flush,
    .ep_fence                 = uct_varuna_ep_fence,
    .ep_check                 = uct_varuna_ep_check,
    .ep_create                = UCS_CLASS_NEW_FUNC_NAME(uct_varuna_ep_t),
    .ep_destroy               = UCS_CLASS_DELETE_FUNC_NAME(uct_varuna_ep_t),
    .iface_flush              = uct_varuna_iface_flush,
    .iface_fence              = uct_varuna_iface_fence,
    .iface_progress_enable    = uct_varuna_iface_progress_enable,
    .iface_progress_disable   = uct_varuna_iface_progress_disable,
    .iface_progress           = uct_varuna_iface_progress,
    .iface_event_fd_get       = uct_varuna_iface_event_fd_get,
    .iface_event_arm          = uct_varuna_iface_event_arm,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_varuna_tl_iface_t),
    .iface_query              = uct_varuna_iface_query,
    .iface_get_device_address = uct_varuna_iface_get_device_address,
    .iface_get_address        = uct_varuna_iface_get_address,
    .iface_is_reachable       = uct_varuna_iface_is_reachable
};

UCT_TL_DEFINE_ENTRY(&uct_varuna_component, rc_varuna, uct_varuna_query_devices,
                    uct_varuna_tl_iface_t, UCT_VARUNA_CONFIG_PREFIX,
                    uct_varuna_iface_config_table, uct_varuna_iface_config_t);
