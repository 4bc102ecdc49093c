/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opens and closes the inner interfaces of all links, with the options that must be
 * overridden. Called by varuna_iface.c.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_lanes.h"
#include "varuna_rest.h"
#include <uct/ib/varuna/core/varuna_amo_mode.h>
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <ucs/arch/atomic.h>
#include <ucs/sys/string.h>
#include <stdlib.h>
#include <strings.h>
#include <ucs/debug/log.h>

/* Receive buffers of a lane, at least */
#define UCT_VARUNA_MIN_RX_QUEUE_LEN  64

/* Buffers for reads that a standby lane has from the beginning: half a megabyte */
#define UCT_VARUNA_STANDBY_TX_BUFS   "64"

/* Of lanes over verbs */
#define UCT_VARUNA_MAX_RETRY_COUNT   6

/*
 * UCX makes the completion queue of receives as long as RX_QUEUE_LEN, and the receive
 * queue longer, if that is less than 33 (or 63, rounded up): more messages than there
 * is room for completions. Then the completion queue overruns, and messages are lost
 * although their senders got acknowledgements.
 */
static ucs_status_t uct_varuna_lanes_override_rx(const uct_varuna_iface_t *iface,
                                                 unsigned link,
                                                 uct_varuna_lane_kind_t kind,
                                                 uct_iface_config_t *config)
{
    /* Reading an option needs its whole path through UCX's tables */
    static const char *names[] = {
        [UCT_VARUNA_LANE_RC]    = "RC_RC_IB_RX_QUEUE_LEN",
        [UCT_VARUNA_LANE_DC]    = "DC_RC_IB_RX_QUEUE_LEN",
        [UCT_VARUNA_LANE_VERBS] = "RC_RC_IB_RX_QUEUE_LEN"
    };
    char value[32], *end;
    unsigned long length;
    ucs_status_t status;

    status = uct_config_get(config, names[kind], value, sizeof(value));
    if (status != UCS_OK) {
        ucs_debug("%s is not known: %s", names[kind], ucs_status_string(status));
        return UCS_OK; /* Another version of UCX */
    }

    length = strtoul(value, &end, 10);
    if ((end == value) || (length >= UCT_VARUNA_MIN_RX_QUEUE_LEN)) {
        return UCS_OK; /* "inf" */
    }

    ucs_diag("%s: a receive queue of %s is too short for UCX's completion queue, "
             "%d is used", uct_varuna_link_name(iface, link), value,
             UCT_VARUNA_MIN_RX_QUEUE_LEN);
    ucs_snprintf_safe(value, sizeof(value), "%d", UCT_VARUNA_MIN_RX_QUEUE_LEN);
    return uct_config_modify(config, "IB_RX_QUEUE_LEN", value);
}

/* A standby lane: by default each would keep 32 MB of receive
 * buffers. By default UCX allocates, and pins, 1024 of them at least, and as many for reads
 * when the first one is posted, which is in the middle of a switch. */
static ucs_status_t
uct_varuna_lanes_override_standby(const uct_varuna_iface_t *iface,
                                  uct_iface_config_t *config)
{
    const unsigned length = iface->config.standby_rx_queue_len;
    ucs_status_t status;
    char value[32];

    status = uct_config_modify(config, "IB_TX_BUFS_GROW", UCT_VARUNA_STANDBY_TX_BUFS);
    if ((status != UCS_OK) || (length == 0)) {
        return status;
    }

    ucs_snprintf_safe(value, sizeof(value), "%u", length);
    status = uct_config_modify(config, "IB_RX_QUEUE_LEN", value);
    if (status != UCS_OK) {
        return status;
    }

    /* An eighth more, like UCX, for buffers that the application has not returned yet */
    ucs_snprintf_safe(value, sizeof(value), "%u", length + (length / 8) + 8);
    return uct_config_modify(config, "IB_RX_BUFS_GROW", value);
}

static int uct_varuna_lane_is_standby(unsigned link, uct_varuna_lane_kind_t kind)
{
    return (link != 0) || (kind == UCT_VARUNA_LANE_DC);
}

/*
 * Without flow control rc_verbs posts nothing on a responder's queue pair. That may be in
 * RESET at any time, where posting is an error that ends the process. And a retry count
 * of 7 never ends with soft-RoCE.
 */
static ucs_status_t uct_varuna_lanes_override_verbs(uct_iface_config_t *config)
{
    char value[32];
    ucs_status_t status;

    status = uct_config_modify(config, "RC_FC_ENABLE", "n");
    if ((status == UCS_OK) &&
        (uct_config_get(config, "RC_RC_RETRY_COUNT", value, sizeof(value)) == UCS_OK) &&
        (strtoul(value, NULL, 10) > UCT_VARUNA_MAX_RETRY_COUNT)) {
        ucs_snprintf_safe(value, sizeof(value), "%d", UCT_VARUNA_MAX_RETRY_COUNT);
        status = uct_config_modify(config, "RC_RETRY_COUNT", value);
    }

    return status;
}

/* With these policies endpoints share a DCI at the same time, so the error of one would
 * hit the others. UCX opens them without error handling (dcs_hybrid since 1.19). */
static ucs_status_t uct_varuna_lanes_check_policy(uct_iface_config_t *config)
{
    static const char *shared[] = {"rand", "hw_dcs", "dcs_hybrid"};
    char value[32];
    unsigned i;

    if (uct_config_get(config, "DC_TX_POLICY", value, sizeof(value)) != UCS_OK) {
        return UCS_OK; /* Another version of UCX */
    }

    for (i = 0; i < ucs_static_array_size(shared); ++i) {
        if (!strcasecmp(value, shared[i])) {
            ucs_error("rc_varuna: UCX_DC_MLX5_TX_POLICY=%s is refused: with rand, hw_dcs "
                      "and dcs_hybrid UCX has no error handling. Set it to dcs_quota (the "
                      "default) or dcs", value);
            return UCS_ERR_UNSUPPORTED;
        }
    }

    return UCS_OK;
}

static ucs_status_t uct_varuna_lanes_override_dc(const uct_varuna_iface_t *iface,
                                                 uct_iface_config_t *config)
{
    ucs_status_t status;
    char value[32];

    status = uct_varuna_lanes_check_policy(config);
    if (status != UCS_OK) {
        return status;
    }

    ucs_snprintf_safe(value, sizeof(value), "%u", iface->config.dc_num_dci);
    return uct_config_modify(config, "DC_NUM_DCI", value);
}

/* Options of the inner transports that we must override. They read all others as they
 * do without us. */
static ucs_status_t
uct_varuna_lanes_override(uct_varuna_iface_t *iface, unsigned link,
                          uct_varuna_lane_kind_t kind,
                          uct_iface_config_t *config)
{
    ucs_status_t status;

    status = uct_varuna_link_order_request(iface, link, kind, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_tl_reach_all(kind, config);
    if (status != UCS_OK) {
        return status;
    }

    if (uct_varuna_lane_is_standby(link, kind)) {
        status = uct_varuna_lanes_override_standby(iface, config);
        if (status != UCS_OK) {
            return status;
        }
    }

    if (kind == UCT_VARUNA_LANE_VERBS) {
        status = uct_varuna_lanes_override_verbs(config);
        if (status != UCS_OK) {
            return status;
        }
    }

    status = uct_varuna_lanes_override_rx(iface, link, kind, config);
    if ((status != UCS_OK) || (kind != UCT_VARUNA_LANE_DC)) {
        return status;
    }

    return uct_varuna_lanes_override_dc(iface, config);
}

/* The user's data begins after our header: that is what must be aligned. A
 * wrong alignment or offset stays wrong, so that the inner interface refuses. */
static void uct_varuna_lanes_align(uct_iface_params_t *params)
{
    size_t offset;

    if (!(params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT)) {
        return;
    }

    offset = (params->field_mask & UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET) ?
             params->am_align_offset : 0;
    if (offset < params->am_alignment) {
        params->field_mask     |= UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET;
        params->am_align_offset = (offset + sizeof(uct_varuna_am_hdr_t)) %
                                  params->am_alignment;
    }
}

/* The user's parameters, on one of our NICs */
static void uct_varuna_lane_params(uct_varuna_lane_iface_t *lane,
                                         const char *dev_name,
                                         uct_error_handler_t error_handler,
                                         uct_iface_params_t *inner)
{
    inner->field_mask &= ~(UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_ARG |
                           UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_CB |
                           UCT_IFACE_PARAM_FIELD_HW_TM_RNDV_ARG |
                           UCT_IFACE_PARAM_FIELD_HW_TM_RNDV_CB);
    inner->field_mask |= UCT_IFACE_PARAM_FIELD_DEVICE |
                         UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                         UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                         UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS |
                         UCT_IFACE_PARAM_FIELD_FEATURES;
    inner->mode.device.tl_name  = uct_varuna_tl_name(lane->kind);
    inner->mode.device.dev_name = dev_name;
    inner->err_handler          = error_handler;
    inner->err_handler_arg      = lane;
    inner->err_handler_flags    = 0;
    /* Logs need PUT and GET, whatever the user asked for */
    inner->features             = UCT_IFACE_FEATURE_AM | UCT_IFACE_FEATURE_PUT |
                                  UCT_IFACE_FEATURE_GET |
                                  UCT_IFACE_FEATURE_AMO32 |
                                  UCT_IFACE_FEATURE_AMO64;
    uct_varuna_lanes_align(inner);
}

/* Open UCX's interface, lane->inner. */
static ucs_status_t
uct_varuna_lane_open_inner(uct_varuna_lane_iface_t *lane, const uct_varuna_nic_t *nic,
                           uct_worker_h worker, const uct_iface_params_t *params,
                           uct_error_handler_t error_handler)
{
    uct_iface_params_t inner = *params;
    uct_iface_config_t *config;
    ucs_status_t status;

    status = uct_md_iface_config_read(nic->md, uct_varuna_tl_name(lane->kind), NULL,
                                      NULL, &config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_lanes_override(lane->iface, lane->link, lane->kind, config);
    if (status != UCS_OK) {
        goto out;
    }

    uct_varuna_lane_params(lane, nic->dev_name, error_handler, &inner);
    status = uct_iface_open(nic->md, worker, &inner, config, &lane->inner);
    if (status != UCS_OK) {
        ucs_debug("rc_varuna: failed to open %s on %s: %s",
                  uct_varuna_tl_name(lane->kind), nic->dev_name,
                  ucs_status_string(status));
    }

out:
    uct_config_release(config);
    return status;
}

/* Whether the lane can do what recovery needs */
static ucs_status_t uct_varuna_lane_check_attr(const uct_varuna_lane_iface_t *lane,
                                               const uct_varuna_nic_t *nic)
{
    if (!(lane->attr.cap.flags & UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE)) {
        ucs_error("rc_varuna: UCX opens %s on %s without error handling",
                  uct_varuna_tl_name(lane->kind), nic->dev_name);
        return UCS_ERR_UNSUPPORTED;
    }

    if (lane->attr.cap.put.max_short < sizeof(uint64_t)) {
        ucs_error("rc_varuna: %s on %s cannot write log entries, as the device has no "
                  "inline data", uct_varuna_tl_name(lane->kind), nic->dev_name);
        return UCS_ERR_UNSUPPORTED;
    }

    return UCS_OK;
}

static ucs_status_t uct_varuna_lane_start_receiving(uct_varuna_lane_iface_t *lane,
                                                    uct_am_callback_t handler)
{
    ucs_status_t status;

    status = uct_iface_set_am_handler(lane->inner, UCT_VARUNA_AM_ID_DATA, handler,
                                      lane, 0);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_foreign_drop(lane->inner, UCT_VARUNA_AM_ID_DATA, 0,
                                     &lane->iface->foreign);
    if (status != UCS_OK) {
        return status;
    }

    /* RC posts its receives here, DC has done so already: UCP leaves an
     * interface without endpoints disabled until an event wakes it up, and the
     * first message would find no receive to raise that event */
    uct_iface_progress_enable(lane->inner, UCT_PROGRESS_RECV);
    uct_iface_progress_disable(lane->inner, UCT_PROGRESS_RECV);
    return uct_varuna_tl_has_rx(lane->inner, lane->kind) ? UCS_OK : UCS_ERR_NO_MEMORY;
}

static void uct_varuna_lane_read_order(uct_varuna_lane_iface_t *lane);
static void uct_varuna_link_log_order(uct_varuna_iface_t *iface, unsigned link);

static ucs_status_t
uct_varuna_lane_open(uct_varuna_iface_t *iface, uct_worker_h worker,
                     const uct_iface_params_t *params,
                     const uct_varuna_lane_handlers_t *handlers, unsigned link,
                     uct_varuna_lane_kind_t kind)
{
    uct_varuna_lane_iface_t *lane = &iface->links[link].lanes[kind];
    uct_varuna_nic_t *nic         = &iface->md->nics[iface->links[link].nic];
    ucs_status_t status;

    lane->iface                = iface;
    lane->link                 = link;
    lane->kind                 = kind;
    iface->links[link].is_late = !uct_varuna_mlx5_port_renew(nic->md, nic->dev_name);

    status = uct_varuna_lane_open_inner(lane, nic, worker, params, handlers->error);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_tl_guard(lane->inner, kind);
    if (status != UCS_OK) {
        goto err_close;
    }

    if (uct_varuna_lane_is_standby(link, kind)) {
        status = uct_varuna_tl_allocate_tx(lane->inner, kind);
        if (status != UCS_OK) {
            goto err_close;
        }
    }

    uct_varuna_lane_read_order(lane);

    status = uct_iface_query(lane->inner, &lane->attr);
    if (status != UCS_OK) {
        goto err_close;
    }

    status = uct_varuna_lane_check_attr(lane, nic);
    if (status != UCS_OK) {
        goto err_close;
    }

    status = uct_varuna_lane_start_receiving(lane, handlers->am);
    if (status != UCS_OK) {
        goto err_close;
    }

    return UCS_OK;

err_close:
    uct_iface_close(lane->inner);
    lane->inner = NULL;
    return status;
}

static void uct_varuna_link_close_lanes(uct_varuna_link_t *link)
{
    unsigned kind;

    for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
        if (link->lanes[kind].inner != NULL) {
            uct_iface_close(link->lanes[kind].inner);
            link->lanes[kind].inner = NULL;
        }
    }
}

static void uct_varuna_link_end_use(uct_varuna_iface_t *iface, unsigned index)
{
    uct_varuna_link_t *link = &iface->links[index];

    if (link->is_user) {
        uct_varuna_md_link_closed(iface->md, link->nic, link->left);
        link->is_user = 0;
        link->left    = 0;
    }
}

static void uct_varuna_link_close(uct_varuna_iface_t *iface, unsigned index)
{
    uct_varuna_link_t *link = &iface->links[index];

    uct_varuna_link_close_lanes(link);
    uct_varuna_link_end_use(iface, index);
    ucs_free(link->device_addr);
    link->device_addr     = NULL;
    link->device_addr_len = 0;
}

void uct_varuna_lanes_close(uct_varuna_iface_t *iface)
{
    unsigned link;

    for (link = 0; link < iface->num_links; ++link) {
        if (!(iface->cmds.left & UCS_BIT(link))) {
            uct_varuna_link_close(iface, link);
        }
    }
}

ucs_status_t uct_varuna_link_read_address(uct_varuna_iface_t *iface, unsigned index)
{
    uct_varuna_link_t *link             = &iface->links[index];
    const uct_varuna_lane_iface_t *base = uct_varuna_link_base(link);

    /* That of an InfiniBand port whose subnet is not known yet is shorter */
    if (link->device_addr_len != base->attr.device_addr_len) {
        ucs_free(link->device_addr);
        link->device_addr_len = base->attr.device_addr_len;
        link->device_addr     = ucs_malloc(link->device_addr_len,
                                           "varuna_device_addr");
        if (link->device_addr == NULL) {
            link->device_addr_len = 0;
            return UCS_ERR_NO_MEMORY;
        }
    }

    uct_varuna_mlx5_addr_get(base->inner, &link->addr);
    return uct_iface_get_device_address(base->inner, link->device_addr);
}

/* What has arrived and was acknowledged is delivered first */
static void uct_varuna_lane_poll_out(uct_iface_h inner, uct_varuna_lane_kind_t kind)
{
    while (uct_varuna_tl_progress(inner, kind) > 0);
}

ucs_status_t uct_varuna_lane_reopen(uct_varuna_iface_t *iface, unsigned link,
                                    uct_varuna_lane_kind_t kind)
{
    uct_varuna_lane_iface_t *lane = &iface->links[link].lanes[kind];
    uct_varuna_lane_iface_t old   = *lane;
    ucs_status_t status;

    ucs_assert((kind == UCT_VARUNA_LANE_DC) && (lane->num_eps == 0));
    status = uct_varuna_lane_open(iface, iface->opening.worker,
                                  &iface->opening.params, iface->opening.handlers,
                                  link, kind);
    if (status != UCS_OK) {
        *lane = old;
        return status;
    }

    if (lane->attr.iface_addr_len != old.attr.iface_addr_len) {
        ucs_diag("rc_varuna: the addresses of %s have got another length",
                 uct_varuna_link_name(iface, link));
        status = UCS_ERR_UNSUPPORTED;
        goto err_close;
    }

    if (iface->opening.epoll_fd != -1) {
        status = uct_varuna_lane_event_add(lane, iface->opening.epoll_fd);
        if (status != UCS_OK) {
            goto err_close;
        }
    }

    uct_varuna_lanes_poll_replace(iface, lane);
    uct_varuna_lane_poll_out(old.inner, kind);
    uct_iface_close(old.inner);
    return UCS_OK;

err_close:
    uct_iface_close(lane->inner);
    *lane = old;
    return status;
}

ucs_status_t uct_varuna_lane_renew_address(uct_varuna_iface_t *iface, unsigned link)
{
    uct_varuna_link_t *own        = &iface->links[link];
    uct_varuna_lane_iface_t *lane = &own->lanes[own->set->fast];
    uct_varuna_lane_iface_t used  = *lane;
    ucs_status_t status;

    status = uct_varuna_lane_open(iface, iface->opening.worker, &iface->opening.params,
                                  iface->opening.handlers, link, used.kind);
    if (status == UCS_OK) {
        uct_varuna_mlx5_addr_take(used.inner, lane->inner);
        uct_iface_close(lane->inner);
    }

    *lane = used;
    return status;
}

void uct_varuna_lane_ep_destroy(uct_varuna_iface_t *iface, uct_ep_h ep,
                                uct_varuna_lane_kind_t kind)
{
    uct_varuna_lane_iface_t *lane;
    unsigned link;

    for (link = 0; (kind == UCT_VARUNA_LANE_DC) && (link < iface->num_links); ++link) {
        lane = &iface->links[link].lanes[kind];
        if (lane->inner == ep->iface) {
            ucs_assert(lane->num_eps > 0);
            --lane->num_eps;
        }
    }

    uct_varuna_tl_destroy_lane(ep, kind);
}

/* Not when the memory domain is opened: UCP opens those of all transports. */
static void uct_varuna_lanes_warn_single_link(const uct_varuna_md_t *md)
{
    static uint32_t warned = 0;

    unsigned num_up = 0;
    unsigned up     = 0;
    unsigned i;

    for (i = 0; i < md->num_links; ++i) {
        if (!md->nics[md->links[i]].was_down) {
            up = i;
            ++num_up;
        }
    }

    if ((num_up > 1) || (ucs_atomic_swap32(&warned, 1) != 0)) {
        return;
    }

    if (md->num_links == 1) {
        ucs_warn("rc_varuna has only one link (%s), so it cannot survive a link failure",
                 md->nics[md->links[up]].dev_name);
    } else {
        /* Perhaps for a moment: a port flaps, or its cable is being replaced */
        ucs_diag("rc_varuna has only one link (%s) before the other ports come up, so it "
                 "cannot survive a link failure now", md->nics[md->links[up]].dev_name);
    }
}

/* Open the lanes of its set, unless the NIC registers nothing: UCX would open them without
 * buffers */
static ucs_status_t uct_varuna_link_open(uct_varuna_iface_t *iface, uct_worker_h worker,
                                         const uct_iface_params_t *params,
                                         const uct_varuna_lane_handlers_t *handlers,
                                         unsigned link)
{
    const uct_varuna_set_t *set = uct_varuna_link_set(iface, link);
    ucs_status_t status;

    if (!uct_varuna_md_link_open(iface->md, iface->links[link].nic)) {
        return UCS_ERR_IO_ERROR; /* It is away */
    }

    iface->links[link].is_user = 1;
    status = uct_varuna_md_prepare_nic(iface->md, iface->links[link].nic);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_lane_open(iface, worker, params, handlers, link, set->fast);
    if ((status == UCS_OK) && (set->fallback != UCT_VARUNA_LANE_NONE)) {
        status = uct_varuna_lane_open(iface, worker, params, handlers, link, set->fallback);
    }

    if (status != UCS_OK) {
        return status;
    }

    uct_varuna_link_log_order(iface, link);
    return uct_varuna_link_read_address(iface, link);
}

ucs_status_t uct_varuna_lanes_open(uct_varuna_iface_t *iface, uct_worker_h worker,
                                   const uct_iface_params_t *params,
                                   const uct_varuna_lane_handlers_t *handlers)
{
    ucs_status_t status = UCS_OK;
    unsigned link;

    if ((iface->links[0].set->fallback == UCT_VARUNA_LANE_NONE) &&
        uct_varuna_atomic_modes[iface->md->atomic_mode].by_home) {
        ucs_error("rc_varuna: %s has no DC, which atomics of mode 'extended' need",
                  uct_varuna_link_name(iface, 0));
        return UCS_ERR_UNSUPPORTED;
    }

    iface->opening.worker   = worker;
    iface->opening.params   = *params;
    iface->opening.handlers = handlers;
    uct_varuna_lanes_warn_single_link(iface->md);
    for (link = 0; link < iface->num_links; ++link) {
        status = uct_varuna_link_open(iface, worker, params, handlers, link);
        if (status != UCS_OK) {
            iface->opening.failed = link;
            goto err;
        }

        /* Before anything is posted there; ctl looks for the time when it comes up */
        if (iface->links[link].is_late) {
            uct_varuna_link_down(iface, link, UCT_VARUNA_LINK_CAUSE_PORT,
                                 "its port is down");
        }
    }

    uct_varuna_lanes_poll_init(iface);
    return UCS_OK;

err:
    uct_varuna_lanes_close(iface);
    return status;
}

/* --- A link that is closed, and opened again --- */

void uct_varuna_lanes_close_link(uct_varuna_iface_t *iface, unsigned index)
{
    uct_varuna_link_t *link = &iface->links[index];
    unsigned kind;

    /* What has arrived is delivered */
    for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
        if (link->lanes[kind].inner != NULL) {
            uct_varuna_lanes_poll_remove(iface, &link->lanes[kind]);
        }
    }

    uct_varuna_link_event_remove(iface, link);
    uct_varuna_link_close_lanes(link);
    link->is_closed = 1;
    uct_varuna_link_end_use(iface, index);
}

ucs_status_t uct_varuna_lanes_open_link(uct_varuna_iface_t *iface, unsigned index)
{
    uct_varuna_link_t *link = &iface->links[index];
    uct_varuna_lane_iface_t former[UCT_VARUNA_LANE_LAST];
    ucs_status_t status;

    memcpy(former, link->lanes, sizeof(former));
    memset(link->lanes, 0, sizeof(link->lanes));
    memset(&link->sl_move, 0, sizeof(link->sl_move));
    link->sl_is_dead = 0;
    status           = uct_varuna_link_open(iface, iface->opening.worker,
                                            &iface->opening.params,
                                            iface->opening.handlers, index);
    if (status == UCS_OK) {
        status = uct_varuna_link_event_add(iface, link);
    }

    if (status != UCS_OK) {
        uct_varuna_link_close_lanes(link);
        uct_varuna_link_end_use(iface, index);
        /* Addresses of peers are compared with it while it is closed */
        memcpy(link->lanes, former, sizeof(former));
    }
    return status;
}

void uct_varuna_lanes_join(uct_varuna_iface_t *iface, unsigned index)
{
    uct_varuna_link_t *link = &iface->links[index];
    unsigned kind;

    link->is_closed = 0;
    for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
        if (link->lanes[kind].inner != NULL) {
            uct_varuna_lanes_poll_replace(iface, &link->lanes[kind]);
        }
    }
}

/* --- Messages of nobody --- */

/* Active messages with ids that rc_varuna does not use. */

static ucs_status_t uct_varuna_foreign_am(void *arg, void *data, size_t length,
                                          unsigned flags)
{
    __atomic_fetch_add((uint32_t*)arg, 1, __ATOMIC_RELAXED);
    return UCS_OK;
}

ucs_status_t uct_varuna_foreign_drop(uct_iface_h inner, unsigned am_id,
                                     unsigned cb_flags, uint32_t *count)
{
    ucs_status_t status;
    unsigned id;

    for (id = 0; id < UCT_AM_ID_MAX; ++id) {
        if (id == am_id) {
            continue;
        }

        status = uct_iface_set_am_handler(inner, id, uct_varuna_foreign_am, count,
                                          cb_flags);
        if (status != UCS_OK) {
            ucs_error("failed to set the handler of AM id %u: %s", id,
                      ucs_status_string(status));
            return status;
        }
    }

    return UCS_OK;
}

/* --- The order of writes --- */

static uct_varuna_nic_t *uct_varuna_lane_nic(const uct_varuna_lane_iface_t *lane)
{
    return &lane->iface->md->nics[lane->iface->links[lane->link].nic];
}

/* --- Service levels --- */

ucs_status_t uct_varuna_link_order_request(uct_varuna_iface_t *iface, unsigned link,
                                           unsigned kind, uct_iface_config_t *config)
{
    uct_varuna_link_t *own    = &iface->links[link];
    uct_varuna_nic_t *nic     = &iface->md->nics[own->nic];
    uct_varuna_sl_move_t move = {
        .is_allowed = iface->config.ordered_sl && !own->sl_is_dead
    };
    ucs_status_t status;

    status = uct_varuna_tl_order_request(nic->md, nic->dev_name, kind, config, &move);
    if (status != UCS_OK) {
        return status;
    }

    own->sl_move = move;
    if (move.is_done && !nic->sl_move_is_logged) {
        nic->sl_move_is_logged = 1;
        ucs_diag("rc_varuna: %s: traffic moves from service level %u, on which packets may "
                 "overtake each other, to %u", nic->dev_name, move.from, move.to);
    }

    return UCS_OK;
}

int uct_varuna_link_sl_fall_back(uct_varuna_iface_t *iface, unsigned link,
                                 uct_iface_h bus)
{
    uct_varuna_link_t *own = &iface->links[link];
    uct_varuna_lane_iface_t *lane;
    unsigned kind;

    if (!own->sl_move.is_done) {
        return 0;
    }

    own->sl_is_dead      = 1;
    own->sl_move.is_done = 0;
    uct_varuna_mlx5_order_set_sl(bus, own->sl_move.from);
    for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
        lane = &own->lanes[kind];
        if (lane->inner != NULL) {
            uct_varuna_mlx5_order_set_sl(lane->inner, own->sl_move.from);
            lane->order = UCT_VARUNA_ORDER_NONE; /* Also for what is connected already */
        }
    }

    ucs_diag("rc_varuna: %s: nothing arrives over service level %u, so traffic moves back to "
             "%u, on which packets may overtake each other",
             uct_varuna_lane_nic(uct_varuna_link_base(own))->dev_name, own->sl_move.to,
             own->sl_move.from);
    return 1;
}

/* --- What is known --- */

/* Warn once that the user claims an order which a device denies */
static void uct_varuna_order_warn(const uct_varuna_lane_iface_t *lane, const char *who)
{
    uct_varuna_nic_t *nic = uct_varuna_lane_nic(lane);

    if ((lane->iface->config.order != UCT_VARUNA_ORDER_POLICY_CERTAIN) ||
        nic->order_is_warned) {
        return;
    }

    nic->order_is_warned = 1;
    ucs_warn("rc_varuna: UCX_RC_VARUNA_ORDER=certain is ignored on %s, where %s may place "
             "writes out of order", nic->dev_name, who);
}

static void uct_varuna_lane_set_rx_order(uct_varuna_lane_iface_t *lane, uct_ep_h ep)
{
    lane->rx_order         = uct_varuna_tl_order_of_qp(lane->inner, ep, lane->kind);
    lane->is_rx_order_read = (ep != NULL);
    if ((lane->rx_order == UCT_VARUNA_ORDER_NONE) &&
        (lane->order != UCT_VARUNA_ORDER_CERTAIN)) {
        uct_varuna_order_warn(lane, "queue pairs");
    }
}

/* Find out what the network does with what a lane sends, and the lane's own target (DC) with
 * what it receives. When it is opened. */
static void uct_varuna_lane_read_order(uct_varuna_lane_iface_t *lane)
{
    uint16_t mask;
    uint8_t sl;

    lane->order = uct_varuna_tl_order(lane->inner, lane->kind, &sl, &mask);
    if (lane->order == UCT_VARUNA_ORDER_NONE) {
        uct_varuna_order_warn(lane, "the network");
    }

    uct_varuna_lane_set_rx_order(lane, NULL);
}

void uct_varuna_lane_read_rx_order(uct_varuna_iface_t *iface, unsigned link, uct_ep_h ep)
{
    uct_varuna_lane_iface_t *lane = &iface->links[link].lanes[iface->links[link].set->fast];

    if (!lane->is_rx_order_read) {
        uct_varuna_lane_set_rx_order(lane, ep);
    }
}

static void uct_varuna_order_log_unknown(const uct_varuna_iface_t *iface,
                                         const char *dev_name, unsigned sl)
{
    ucs_info("rc_varuna: %s: it is unknown whether packets of service level %u stay in "
             "order: they may overtake each other", dev_name, sl);
    if (iface->config.log == UCT_VARUNA_LOG_ALL) {
        ucs_diag("rc_varuna: %s: the log on RC lanes proves nothing if it is unknown whether "
                 "writes stay in order: UCX_RC_VARUNA_LOG=fallback gives the same guarantees "
                 "without its messages. If the network keeps the order, say "
                 "UCX_RC_VARUNA_ORDER=certain", dev_name);
    }
}

/* Assumes that the DC targets of the peers are configured as ours is */
static void uct_varuna_link_log_order(uct_varuna_iface_t *iface, unsigned link)
{
    const uct_varuna_lane_iface_t *lane = uct_varuna_link_base(&iface->links[link]);
    uct_varuna_nic_t *nic               = uct_varuna_lane_nic(lane);
    uct_varuna_order_t order            = uct_varuna_order_of_lane(
            iface->config.order, lane->order, lane->rx_order);
    uint16_t mask;
    uint8_t sl;

    if (nic->order_is_logged) {
        return;
    }

    nic->order_is_logged = 1;
    (void)uct_varuna_tl_order(lane->inner, lane->kind, &sl, &mask);
    if (order == UCT_VARUNA_ORDER_UNKNOWN) {
        uct_varuna_order_log_unknown(iface, nic->dev_name, sl);
    } else if (lane->order == UCT_VARUNA_ORDER_CERTAIN) {
        ucs_info("rc_varuna: %s: packets of service level %u stay in order "
                 "(ooo_sl_mask 0x%04x)", nic->dev_name, sl, mask);
    } else if (lane->rx_order == UCT_VARUNA_ORDER_CERTAIN) {
        ucs_info("rc_varuna: %s: writes stay in order, as queue pairs drop what comes "
                 "before its predecessors", nic->dev_name);
    } else if (order == UCT_VARUNA_ORDER_CERTAIN) {
        ucs_info("rc_varuna: %s: packets of service level %u stay in order, as "
                 "UCX_RC_VARUNA_ORDER says", nic->dev_name, sl);
    } else if (lane->order == UCT_VARUNA_ORDER_NONE) {
        ucs_diag("rc_varuna: %s: packets of service level %u may overtake each other "
                 "(ooo_sl_mask 0x%04x), so log entries alone prove nothing. If there is a "
                 "service level in order, name it in UCX_IB_SL, or let "
                 "UCX_RC_VARUNA_ORDERED_SL=y find it; otherwise take one out of "
                 "ar_sl_mask in the subnet manager", nic->dev_name, sl, mask);
    } else {
        ucs_diag("rc_varuna: %s: queue pairs may place writes before earlier ones, so log "
                 "entries alone prove nothing", nic->dev_name);
    }
}
