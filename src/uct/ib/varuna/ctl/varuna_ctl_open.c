/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opening and closing of the control plane. Called by varuna_iface.c.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ctl.h"
#include "varuna_ports.h"
#include "varuna_heartbeat.h"
#include "varuna_bus.h"
#include "varuna_peer.h"
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include <uct/ib/varuna/ucx/varuna_ud.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What is still on its way when we close gets this long (seconds) */
#define UCT_VARUNA_CTL_LINGER        0.02

/*
 * What differs from the user's UCX_DC_MLX5_xx for the control plane's own
 * interfaces: messages are small and few, a dead peer must soon release its DCI,
 * and no acknowledgement of flow control may be between two of them. Lost messages are
 * expected: requests are repeated, and that is logged. All send buffers are allocated
 * and registered together, by the first message, and there are no more: memory cannot be
 * registered on a NIC that hangs or is dead, and it is such a NIC that returns none.
 */
static const struct {
    const char                 *name;
    const char                 *value;
} uct_varuna_ctl_config[] = {
    {"DC_NUM_DCI",      "4"},
    {"DC_TX_POLICY",    "dcs_quota"},
    {"IB_TX_QUEUE_LEN", "64"},
    {"IB_TX_MAX_BUFS",  "64"},
    {"IB_TX_BUFS_GROW", "64"},
    {"IB_RX_QUEUE_LEN", "256"},
    {"IB_RX_BUFS_GROW", "288"},
    {"IB_SEG_SIZE",     "8256"},
    {"RC_FC_ENABLE",    "n"},
    {"RC_TM_ENABLE",    "n"},
    {"RC_TIMEOUT",      "50ms"},
    {"RC_RETRY_COUNT",  "4"},
    {"IB_FAILURE",      "debug"}
};

static ucs_status_t
uct_varuna_ctl_read_config(uct_varuna_iface_t *iface, unsigned link,
                           uct_iface_config_t **config_p)
{
    const uct_varuna_nic_t *nic = &iface->md->nics[iface->links[link].nic];
    uct_iface_config_t *config;
    ucs_status_t status;
    unsigned i;

    status = uct_md_iface_config_read(nic->md, uct_varuna_tl_name(nic->set->bus), NULL, NULL,
                                      &config);
    if (status != UCS_OK) {
        return status;
    }

    /* All lanes of a link use one service level */
    status = uct_varuna_link_order_request(iface, link, nic->set->bus, config);
    if (status == UCS_OK) {
        status = uct_varuna_tl_reach_all(nic->set->bus, config);
    }

    if (status != UCS_OK) {
        uct_config_release(config);
        return status;
    }

    for (i = 0; i < ucs_static_array_size(uct_varuna_ctl_config); ++i) {
        status = uct_config_modify(config, uct_varuna_ctl_config[i].name,
                                   uct_varuna_ctl_config[i].value);
        if (status != UCS_OK) {
            ucs_error("failed to set %s=%s for the control plane's %s: %s",
                      uct_varuna_ctl_config[i].name,
                      uct_varuna_ctl_config[i].value, uct_varuna_tl_name(nic->set->bus),
                      ucs_status_string(status));
            uct_config_release(config);
            return status;
        }
    }

    *config_p = config;
    return UCS_OK;
}

static ucs_status_t uct_varuna_ctl_open_bus(uct_varuna_ctl_link_t *link,
                                            const uct_varuna_nic_t *nic,
                                            const uct_iface_params_t *params)
{
    const uct_varuna_link_t *own = &link->ctl->iface->links[link->index];
    uct_iface_config_t *config;
    ucs_status_t status;

    if (nic->set->bus == UCT_VARUNA_LANE_UD) {
        return uct_varuna_ud_open(uct_varuna_link_rc(own)->inner, link->ctl->worker,
                                  params, &link->inner);
    }

    status = uct_varuna_ctl_read_config(link->ctl->iface, link->index, &config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_iface_open(nic->md, link->ctl->worker, params, config, &link->inner);
    uct_config_release(config);
    if (status != UCS_OK) {
        ucs_debug("failed to open %s on %s for the control plane: %s",
                  uct_varuna_tl_name(nic->set->bus), nic->dev_name,
                  ucs_status_string(status));
    }

    return status;
}

static ucs_status_t uct_varuna_ctl_open_iface(uct_varuna_ctl_link_t *link,
                                              const uct_varuna_nic_t *nic)
{
    uct_iface_params_t params;
    ucs_status_t status;

    memset(&params, 0, sizeof(params));
    params.field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                  UCT_IFACE_PARAM_FIELD_DEVICE |
                                  UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                                  UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                                  UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                                  UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS |
                                  UCT_IFACE_PARAM_FIELD_FEATURES;
    params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name  = uct_varuna_tl_name(nic->set->bus);
    params.mode.device.dev_name = nic->dev_name;
    params.rx_headroom          = 0;
    params.err_handler          = uct_varuna_ctl_err_handler;
    params.err_handler_arg      = link;
    params.err_handler_flags    = UCT_CB_FLAG_ASYNC;
    /* Messages need AM only; a room above may have endpoints of its own here, for
     * access to memory */
    params.features             = UCT_IFACE_FEATURE_AM | UCT_IFACE_FEATURE_PUT |
                                  UCT_IFACE_FEATURE_GET |
                                  UCT_IFACE_FEATURE_AMO32 |
                                  UCT_IFACE_FEATURE_AMO64;

    (void)uct_varuna_mlx5_port_renew(nic->md, nic->dev_name);
    link->seeks = !link->ctl->iface->links[link->index].addr.is_ib;
    status      = uct_varuna_ctl_open_bus(link, nic, &params);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_tl_guard(link->inner, nic->set->bus);
    if (status == UCS_OK) {
        /* The first message on a link may be one of a recovery */
        status = uct_varuna_tl_allocate_tx(link->inner, nic->set->bus);
    }
    if (status != UCS_OK) {
        uct_iface_close(link->inner);
    }

    return status;
}

static void uct_varuna_ctl_link_close_inner(uct_varuna_ctl_link_t *link)
{
    uct_iface_set_am_handler(link->inner, UCT_VARUNA_AM_ID_CTL, NULL, NULL, 0);
    uct_iface_close(link->inner);
    link->inner = NULL;
}

/* Close it. */
static void uct_varuna_ctl_link_cleanup(uct_varuna_ctl_link_t *link)
{
    if (link->inner != NULL) {
        uct_varuna_ctl_link_close_inner(link);
    }
    ucs_free(link->addr);
}

static ucs_status_t uct_varuna_ctl_link_check_attr(const uct_varuna_ctl_link_t *link,
                                                   const uct_varuna_nic_t *nic)
{
    if (ucs_test_all_flags(link->attr.cap.flags, UCT_IFACE_FLAG_AM_BCOPY) &&
        ucs_test_all_flags(link->attr.cap.event_flags,
                           UCT_IFACE_FLAG_EVENT_SEND_COMP |
                           UCT_IFACE_FLAG_EVENT_RECV |
                           UCT_IFACE_FLAG_EVENT_FD) &&
        (link->attr.cap.am.max_bcopy >= UCT_VARUNA_CTL_MAX_MSG)) {
        return UCS_OK;
    }

    ucs_error("%s on %s can't carry control messages: messages of %d bytes "
              "and events are needed", uct_varuna_tl_name(nic->set->bus), nic->dev_name,
              UCT_VARUNA_CTL_MAX_MSG);
    return UCS_ERR_UNSUPPORTED;
}

static ucs_status_t uct_varuna_ctl_link_start(uct_varuna_ctl_link_t *link,
                                              const uct_varuna_nic_t *nic)
{
    ucs_status_t status;

    status = uct_iface_set_am_handler(link->inner, UCT_VARUNA_AM_ID_CTL,
                                      uct_varuna_ctl_am_handler, link,
                                      UCT_CB_FLAG_ASYNC);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_foreign_drop(link->inner, UCT_VARUNA_AM_ID_CTL,
                                     UCT_CB_FLAG_ASYNC, &link->ctl->iface->foreign);
    if (status != UCS_OK) {
        return status;
    }

    uct_iface_progress_enable(link->inner,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    return uct_varuna_tl_has_rx(link->inner, nic->set->bus) ? UCS_OK :
           UCS_ERR_NO_MEMORY;
}

/* Open the interface of one link; its other fields stay as they are. */
static ucs_status_t uct_varuna_ctl_link_init(uct_varuna_ctl_t *ctl, unsigned index)
{
    uct_varuna_iface_t *iface   = ctl->iface;
    const uct_varuna_nic_t *nic = &iface->md->nics[iface->links[index].nic];
    uct_varuna_ctl_link_t *link = &ctl->links[index];
    ucs_status_t status;

    link->ctl   = ctl;
    link->index = index;
    link->fd    = -1;
    link->inner = NULL;
    status      = uct_varuna_ctl_open_iface(link, nic);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_iface_query(link->inner, &link->attr);
    if (status != UCS_OK) {
        goto err_close;
    }

    status = uct_varuna_ctl_link_check_attr(link, nic);
    if (status != UCS_OK) {
        goto err_close;
    }

    link->addr = ucs_calloc(1, link->attr.iface_addr_len, "varuna_ctl_addr");
    if (link->addr == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err_close;
    }

    status = uct_iface_get_address(link->inner, link->addr);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_varuna_ctl_link_start(link, nic);
    if (status != UCS_OK) {
        goto err_free;
    }

    return UCS_OK;

err_free:
    ucs_free(link->addr);
err_close:
    uct_iface_close(link->inner);
    return status;
}

static void uct_varuna_ctl_links_cleanup(uct_varuna_ctl_t *ctl)
{
    while (ctl->num_links > 0) {
        uct_varuna_ctl_link_cleanup(&ctl->links[--ctl->num_links]);
    }
}

static ucs_status_t uct_varuna_ctl_links_init(uct_varuna_ctl_t *ctl)
{
    ucs_status_t status;

    for (ctl->num_links = 0; ctl->num_links < ctl->iface->num_links;
         ++ctl->num_links) {
        status = uct_varuna_ctl_link_init(ctl, ctl->num_links);
        if (status != UCS_OK) {
            ctl->iface->opening.failed = ctl->num_links;
            uct_varuna_ctl_links_cleanup(ctl);
            return status;
        }
    }

    return UCS_OK;
}

static void uct_varuna_ctl_clock_timer(int id, ucs_event_set_types_t events,
                                       void *arg)
{
    uct_varuna_ctl_t *ctl = arg;

    (void)id;
    (void)events;
    uct_varuna_clock_tick(&ctl->time.clock, uct_varuna_ctl_now(ctl));
}

static ucs_status_t uct_varuna_ctl_start_clock(uct_varuna_ctl_t *ctl)
{
    if (ctl->time.clock.tick == 0) {
        return UCS_OK;
    }

    return ucs_async_add_timer(ctl->async->mode, ctl->time.clock.tick,
                               uct_varuna_ctl_clock_timer, ctl, ctl->async,
                               &ctl->time.timer);
}

/* The lock must not be held. */
static void uct_varuna_ctl_stop_clock(uct_varuna_ctl_t *ctl)
{
    if (ctl->time.timer != -1) {
        ucs_async_remove_handler(ctl->time.timer, 1);
        ctl->time.timer = -1;
    }
}

void uct_varuna_ctl_unlisten(uct_varuna_ctl_t *ctl)
{
    unsigned i;

    uct_varuna_ctl_stop_clock(ctl);
    if (ctl->detector != NULL) {
        uct_varuna_detector_destroy(ctl->detector);
        ctl->detector = NULL;
    }

    ucs_async_remove_handler(ctl->rest.timer_fd, 1);
    ucs_async_remove_handler(ctl->events.kick_fd, 1);
    for (i = 0; i < ctl->num_links; ++i) {
        if (ctl->links[i].fd != -1) {
            ucs_async_remove_handler(ctl->links[i].fd, 1);
            ctl->links[i].fd = -1;
        }
    }
}

/* A port that was down when its interfaces were opened may have come up since. */
static void uct_varuna_ctl_look_at_late_port(uct_varuna_ctl_t *ctl, unsigned link)
{
    if (ctl->iface->links[link].is_late && !(ctl->ports.down & UCS_BIT(link))) {
        uct_varuna_ports_event(ctl, link, (ctl->detector == NULL) ?
                               UCT_VARUNA_PORT_DOWN : UCT_VARUNA_PORT_UP);
    }
}

static void uct_varuna_ctl_look_at_late_ports(uct_varuna_ctl_t *ctl)
{
    unsigned i;

    for (i = 0; i < ctl->num_links; ++i) {
        uct_varuna_ctl_look_at_late_port(ctl, i);
    }
}

static ucs_status_t uct_varuna_ctl_listen_ports(uct_varuna_ctl_t *ctl)
{
    const uct_varuna_iface_t *iface = ctl->iface;
    ucs_status_t status;
    unsigned i;

    if (!iface->config.port_events) {
        uct_varuna_ctl_look_at_late_ports(ctl); /* The heartbeat does so again */
        return UCS_OK;
    }

    status = uct_varuna_detector_create(ctl->async, uct_varuna_ports_event,
                                        ctl, &ctl->detector);
    if (status != UCS_OK) {
        return status;
    }

    for (i = 0; i < ctl->num_links; ++i) {
        status = uct_varuna_detector_add(
                ctl->detector, i, iface->md->nics[iface->links[i].nic].dev_name);
        if (status != UCS_OK) {
            return status; /* Destroyed by unlisten */
        }
    }

    uct_varuna_ctl_look_at_late_ports(ctl);
    return UCS_OK;
}

/* Let the async context handle the events of a descriptor. */
static ucs_status_t uct_varuna_ctl_listen_fd(uct_varuna_ctl_t *ctl, int fd)
{
    return ucs_async_set_event_handler(ctl->async->mode, fd, UCS_EVENT_SET_EVREAD,
                                       uct_varuna_ctl_event_handler, ctl,
                                       ctl->async);
}

ucs_status_t uct_varuna_ctl_listen(uct_varuna_ctl_t *ctl)
{
    ucs_status_t status;
    unsigned i;
    int fd;

    status = uct_varuna_ctl_listen_fd(ctl, ctl->events.kick_fd);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_ctl_listen_fd(ctl, ctl->rest.timer_fd);
    if (status != UCS_OK) {
        ucs_async_remove_handler(ctl->events.kick_fd, 1);
        return status;
    }

    for (i = 0; i < ctl->num_links; ++i) {
        status = uct_iface_event_fd_get(ctl->links[i].inner, &fd);
        if (status != UCS_OK) {
            goto err_unlisten;
        }

        status = uct_varuna_ctl_listen_fd(ctl, fd);
        if (status != UCS_OK) {
            goto err_unlisten;
        }

        ctl->links[i].fd = fd;
    }

    status = uct_varuna_ctl_listen_ports(ctl);
    if (status != UCS_OK) {
        goto err_unlisten;
    }

    status = uct_varuna_ctl_start_clock(ctl);
    if (status != UCS_OK) {
        goto err_unlisten;
    }

    /* Arm for the first time */
    uct_varuna_ctl_signal(ctl->events.kick_fd);
    return UCS_OK;

err_unlisten:
    uct_varuna_ctl_unlisten(ctl);
    return status;
}

static ucs_status_t uct_varuna_ctl_eventfd_create(int *fd_p)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    if (fd < 0) {
        ucs_error("failed to create an eventfd: %m");
        return UCS_ERR_IO_ERROR;
    }

    *fd_p = fd;
    return UCS_OK;
}

void uct_varuna_ctl_init(uct_varuna_ctl_t *ctl, uct_varuna_iface_t *iface)
{
    memset(ctl, 0, sizeof(*ctl));
    ctl->iface         = iface;
    ctl->async         = iface->super.worker->async;
    ctl->events.fd      = -1;
    ctl->events.kick_fd       = -1;
    ctl->rest.timer_fd = -1;
    ucs_list_head_init(&ctl->dead_eps);
    ucs_list_head_init(&ctl->queue.msgs);
    uct_varuna_bus_init(&ctl->bus);
    ucs_list_head_init(&ctl->hb.events);
    uct_varuna_ping_init(ctl);
    ctl->time.read   = ucs_get_time;
    ctl->time.timer = -1;
    uct_varuna_clock_init(&ctl->time.clock);
    kh_init_inplace(uct_varuna_ctl_eps, &ctl->eps);
    uct_varuna_peers_init(ctl);
    uct_varuna_strangers_init(ctl);
}

ucs_status_t uct_varuna_ctl_create(uct_varuna_iface_t *iface,
                                   uct_varuna_ctl_t **ctl_p)
{
    uct_varuna_ctl_t *ctl;
    ucs_status_t status;

    ctl = ucs_calloc(1, sizeof(*ctl), "varuna_ctl");
    if (ctl == NULL) {
        ucs_error("failed to allocate the control plane");
        return UCS_ERR_NO_MEMORY;
    }

    uct_varuna_ctl_init(ctl, iface);
    status = uct_varuna_ctl_eventfd_create(&ctl->events.fd);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_varuna_ctl_eventfd_create(&ctl->events.kick_fd);
    if (status != UCS_OK) {
        goto err_close_event_fd;
    }

    status = uct_varuna_ctl_rest_init(ctl);
    if (status != UCS_OK) {
        goto err_close_kick_fd;
    }

    status = uct_worker_create(ctl->async, UCS_THREAD_MODE_SINGLE,
                               &ctl->worker);
    if (status != UCS_OK) {
        goto err_rest_cleanup;
    }

    status = uct_varuna_ctl_links_init(ctl);
    if (status != UCS_OK) {
        goto err_destroy_worker;
    }

    uct_varuna_heartbeat_start(ctl);
    *ctl_p = ctl;
    return UCS_OK;

err_destroy_worker:
    uct_worker_destroy(ctl->worker);
err_rest_cleanup:
    uct_varuna_ctl_rest_cleanup(ctl);
err_close_kick_fd:
    close(ctl->events.kick_fd);
err_close_event_fd:
    close(ctl->events.fd);
err_free:
    ucs_free(ctl);
    return status;
}

void uct_varuna_ctl_linger(uct_varuna_ctl_t *ctl)
{
    ucs_time_t deadline = ucs_get_time() +
                          ucs_time_from_sec(UCT_VARUNA_CTL_LINGER);
    int busy;
    unsigned i;

    uct_varuna_ctl_lock(ctl);
    do {
        uct_varuna_ctl_progress(ctl);
        busy = !ucs_list_is_empty(&ctl->queue.msgs);
        for (i = 0; i < ctl->num_links; ++i) {
            if ((ctl->links[i].inner != NULL) &&
                (uct_iface_flush(ctl->links[i].inner, 0, NULL) != UCS_OK)) {
                busy = 1;
            }
        }
    } while (busy && (ucs_get_time() < deadline));
    uct_varuna_ctl_unlock(ctl);
}

void uct_varuna_ctl_cleanup(uct_varuna_ctl_t *ctl)
{
    uct_varuna_ctl_lock(ctl);
    while (!ucs_list_is_empty(&ctl->queue.msgs)) {
        uct_varuna_ctl_msg_free(ctl, ucs_list_head(&ctl->queue.msgs,
                                                   uct_varuna_ctl_msg_t, list));
    }

    uct_varuna_bus_cleanup(&ctl->bus);
    uct_varuna_peers_cleanup(ctl);
    uct_varuna_strangers_cleanup(ctl);
    uct_varuna_ctl_reap_eps(ctl, 1);
    kh_destroy_inplace(uct_varuna_ctl_eps, &ctl->eps);
    /* Interfaces that are being closed may report errors: there is nothing to find */
    kh_init_inplace(uct_varuna_ctl_eps, &ctl->eps);
    uct_varuna_ctl_unlock(ctl);
}

void uct_varuna_ctl_destroy(uct_varuna_ctl_t *ctl)
{
    uct_varuna_ctl_cleanup(ctl);
    uct_varuna_ctl_links_cleanup(ctl);
    uct_worker_destroy(ctl->worker);
    uct_varuna_ctl_rest_cleanup(ctl);
    close(ctl->events.kick_fd);
    close(ctl->events.fd);
    ucs_free(ctl);
}

/* --- Opening again --- */

/* Opens the control plane's interface of a link once more. */

/* Forget all endpoints on a link that this room has. They are in ctl->dead_eps then. */
static void uct_varuna_ctl_drop_link_eps(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_peer_t *peer;

    kh_foreach_value(&ctl->peers, peer, {
        uct_varuna_ctl_drop_ep(ctl, peer, link, 1);
    });
    uct_varuna_stranger_drop(ctl, link);
}

static void uct_varuna_ctl_destroy_link_eps(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_ctl_ep_t *ep, *tmp;

    ucs_list_for_each_safe(ep, tmp, &ctl->dead_eps, list) {
        if (ep->link == link) {
            ucs_list_del(&ep->list);
            uct_varuna_ctl_ep_destroy(ctl, ep);
        }
    }
}

/* Whether a room above has an endpoint on a link, where this room has none left */
static int uct_varuna_ctl_link_is_used(const uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_ctl_ep_t *ep;

    kh_foreach_value(&ctl->eps, ep, {
        if (ep->link == link) {
            return 1;
        }
    });

    return 0;
}

/* Handle its events instead of those of the old one. */
static ucs_status_t uct_varuna_ctl_listen_link(uct_varuna_ctl_t *ctl, unsigned link,
                                               int old_fd)
{
    ucs_status_t status;
    int fd;

    if (old_fd == -1) {
        return UCS_OK;
    }

    status = uct_iface_event_fd_get(ctl->links[link].inner, &fd);
    if (status == UCS_OK) {
        status = uct_varuna_ctl_listen_fd(ctl, fd);
    }

    if (status != UCS_OK) {
        return status;
    }

    ucs_async_remove_handler(old_fd, 0);
    ctl->links[link].fd = fd;
    uct_varuna_ctl_signal(ctl->events.kick_fd); /* Arms it */
    return UCS_OK;
}

ucs_status_t uct_varuna_ctl_link_reopen(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_ctl_link_t old;
    ucs_status_t status;

    ucs_assert(!ctl->progressing);
    uct_varuna_ctl_drop_link_eps(ctl, link);
    uct_varuna_ctl_destroy_link_eps(ctl, link);
    uct_varuna_bus_raise(&ctl->bus, UCT_VARUNA_BUS_LINK_CLOSES);
    if (uct_varuna_ctl_link_is_used(ctl, link)) {
        return UCS_ERR_BUSY;
    }

    old    = ctl->links[link];
    status = uct_varuna_ctl_link_init(ctl, link);
    if (status != UCS_OK) {
        goto err_restore;
    }

    status = uct_varuna_ctl_listen_link(ctl, link, old.fd);
    if (status != UCS_OK) {
        goto err_cleanup;
    }

    uct_varuna_ctl_link_cleanup(&old);
    return UCS_OK;

err_cleanup:
    uct_varuna_ctl_link_cleanup(&ctl->links[link]);
err_restore:
    ctl->links[link] = old;
    return status;
}

/* --- A link that is closed, and opened once more --- */

static void uct_varuna_ctl_drop_link_msgs(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_ctl_msg_t *msg, *tmp;

    ucs_list_for_each_safe(msg, tmp, &ctl->queue.msgs, list) {
        if (msg->link == link) {
            uct_varuna_ctl_msg_free(ctl, msg);
        }
    }
}

/* Endpoints with messages on their way are destroyed too: of the interface nothing is used again,
 * and a NIC that is dead completes none of them. */
int uct_varuna_ctl_link_is_closable(uct_varuna_ctl_t *ctl, unsigned link)
{
    if (ctl->progressing || (ctl->links[link].seek.count > 0)) {
        return 0;
    }

    uct_varuna_ctl_drop_link_msgs(ctl, link);
    uct_varuna_ctl_drop_link_eps(ctl, link);
    uct_varuna_ctl_destroy_link_eps(ctl, link);
    uct_varuna_bus_raise(&ctl->bus, UCT_VARUNA_BUS_LINK_CLOSES);
    return !uct_varuna_ctl_link_is_used(ctl, link);
}

void uct_varuna_ctl_link_close(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_ctl_link_t *own = &ctl->links[link];

    if (ctl->detector != NULL) {
        uct_varuna_detector_remove(ctl->detector, link);
    }

    if (own->fd != -1) {
        ucs_async_remove_handler(own->fd, 0);
        own->fd = -1;
    }

    uct_varuna_ctl_link_close_inner(own); /* Its address stays, for messages that are lost */
    own->full.since      = 0;
    own->is_proved       = 0;
    ctl->moves.links    &= ~UCS_BIT(link);
    ctl->moves.reopened &= ~UCS_BIT(link);
    memset(&ctl->moves.backoff[link], 0, sizeof(ctl->moves.backoff[link]));
}

static ucs_status_t uct_varuna_ctl_link_listen(uct_varuna_ctl_t *ctl, unsigned link)
{
    ucs_status_t status;
    int fd;

    status = uct_iface_event_fd_get(ctl->links[link].inner, &fd);
    if (status == UCS_OK) {
        status = uct_varuna_ctl_listen_fd(ctl, fd);
    }

    if (status == UCS_OK) {
        ctl->links[link].fd = fd;
        uct_varuna_ctl_signal(ctl->events.kick_fd); /* Arms it */
    }
    return status;
}

ucs_status_t uct_varuna_ctl_link_open(uct_varuna_ctl_t *ctl, unsigned link,
                                      const char *dev_name)
{
    uct_iface_addr_t *former = ctl->links[link].addr;
    ucs_status_t status;

    ucs_assert(!ctl->progressing);
    status = uct_varuna_ctl_link_init(ctl, link);
    if (status != UCS_OK) {
        ctl->links[link].inner = NULL;
        ctl->links[link].addr  = former;
        return status;
    }

    ucs_free(former);

    status = uct_varuna_ctl_link_listen(ctl, link);
    if ((status == UCS_OK) && (ctl->detector != NULL)) {
        status = uct_varuna_detector_add(ctl->detector, link, dev_name);
    }

    if (status != UCS_OK) {
        uct_varuna_ctl_link_close(ctl, link);
    }
    return status;
}

void uct_varuna_ctl_join(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_peers_join(ctl, link);
    uct_varuna_ctl_look_at_late_port(ctl, link);
    uct_varuna_ports_changed(ctl, link);
    uct_varuna_moves_announce(ctl);
}
