/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The transport rc_varuna: its life, progress and events. The inner interfaces of
 * its links are opened by varuna_iface_links.c; what they can do together is worked
 * out by varuna_iface_attr.c.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_iface.h"
#include <uct/ib/varuna/responder/varuna_am.h>
#include <uct/ib/varuna/requester/amo/varuna_amo.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include "varuna_config.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/requester/varuna_ep.h>
#include <uct/ib/varuna/requester/varuna_ep_ops.h>
#include <uct/ib/varuna/responder/varuna_gap.h>
#include <uct/ib/varuna/ucx/varuna_mlx5.h>
#include <uct/ib/varuna/requester/varuna_recovery.h>
#include <uct/ib/varuna/requester/varuna_stat.h>
#include <uct/ib/varuna/requester/varuna_swap.h>
#include "varuna_vfs.h"
#include "varuna_watch.h"

#include <sys/epoll.h>
#include <ucs/async/async.h>
#include <ucs/datastruct/string_buffer.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>

#define UCT_VARUNA_SCAN_CALLS        64   /* progress calls between clock reads,
                                             at most */
#define UCT_VARUNA_MAX_DRY_POLLS     4096 /* of a lane, in one round */
#define UCT_VARUNA_MAX_STEPS         64   /* of endpoints, in one progress call */
#define UCT_VARUNA_MAX_POLLS         32   /* of a lane, while endpoints recover */

const char *uct_varuna_lane_names[] = {
    [UCT_VARUNA_LANE_RC]   = "rc",
    [UCT_VARUNA_LANE_DC]   = "dc",
    [UCT_VARUNA_LANE_LAST] = NULL
};

/* --- Progress --- */

/* Some endpoints take a step, the others in the next calls: thousands of them may
 * recover at once, while others of the same application have traffic. */
static void uct_varuna_iface_progress_work(uct_varuna_iface_t *iface,
                                           ucs_time_t now)
{
    uct_varuna_ep_t *ep;
    ucs_list_link_t todo;
    unsigned i;

    /* Steps may put endpoints into the list again: look at each once. They may
     * also destroy any of them, so elements stay in one list or the other */
    ucs_list_head_init(&todo);
    for (i = 0; (i < UCT_VARUNA_MAX_STEPS) && !ucs_list_is_empty(&iface->work);
         ++i) {
        ep = ucs_list_extract_head(&iface->work, uct_varuna_ep_t, work);
        ucs_list_add_tail(&todo, &ep->work);
    }

    while (!ucs_list_is_empty(&todo)) {
        ep          = ucs_list_extract_head(&todo, uct_varuna_ep_t, work);
        ep->on_work = 0;
        if (uct_varuna_ep_step(ep, now)) {
            uct_varuna_ep_add_work(ep);
        }
    }
}

/* @return nonzero if the grave is drained, and gone. */
static int uct_varuna_grave_try_close(uct_varuna_grave_t *grave)
{
    if (!uct_varuna_mlx5_drain(grave->inner, grave->kind)) {
        return 0;
    }

    uct_ep_destroy(grave->inner);
    uct_varuna_reqs_release(&grave->reqs);
    ucs_free(grave);
    return 1;
}

static void uct_varuna_iface_progress_graves(uct_varuna_iface_t *iface)
{
    uct_varuna_grave_t *grave, *tmp;

    ucs_list_for_each_safe(grave, tmp, &iface->graveyard, list) {
        ucs_list_del(&grave->list);
        if (!uct_varuna_grave_try_close(grave)) {
            ucs_list_insert_before(&tmp->list, &grave->list);
        }
    }
}

void uct_varuna_iface_bury(uct_varuna_iface_t *iface, uct_ep_h inner,
                           uct_varuna_lane_kind_t kind, ucs_queue_head_t *reqs)
{
    uct_varuna_grave_t *grave;

    grave = ucs_malloc(sizeof(*grave), "varuna_grave");
    ucs_assert_always(grave != NULL);
    grave->inner = inner;
    grave->kind  = kind;
    ucs_queue_head_init(&grave->reqs);
    ucs_queue_splice(&grave->reqs, reqs);
    uct_varuna_compat_ep_invalidate(inner);
    uct_varuna_reqs_cancel(&grave->reqs);
    if (!uct_varuna_grave_try_close(grave)) {
        ucs_list_add_tail(&iface->graveyard, &grave->list);
    }
}

/* A lane that is not flushed in time hangs, unless its completions wait for us: with
 * thousands of endpoints, or an application that was away, they do. Polled here,
 * where no step is under way, since users' callbacks may be called. */
static void uct_varuna_iface_poll_dry(uct_varuna_iface_t *iface)
{
    uct_varuna_lane_iface_t *lane;
    unsigned link, kind, i;

    iface->want_dry = 0;
    for (link = 0; link < iface->num_links; ++link) {
        for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
            lane = &iface->links[link].lanes[kind];
            for (i = 0; lane->want_dry && (i < UCT_VARUNA_MAX_DRY_POLLS); ++i) {
                if ((uct_iface_progress(lane->inner) == 0) &&
                    !uct_varuna_mlx5_has_completions(lane->inner)) {
                    lane->dry_at   = ucs_get_time();
                    lane->want_dry = 0;
                }
            }
            iface->want_dry |= lane->want_dry;
        }
    }
}

/* When the queue pairs of thousands of endpoints fail, thousands of errors are in the
 * completion queue, of which UCX takes one in each call. Completions of others, whose
 * link is good, are behind them. */
static void uct_varuna_iface_poll_more(uct_varuna_iface_t *iface)
{
    unsigned link, kind, i;
    uct_iface_h inner;

    for (link = 0; link < iface->num_links; ++link) {
        for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
            inner = iface->links[link].lanes[kind].inner;
            for (i = 0; (i < UCT_VARUNA_MAX_POLLS) &&
                        uct_varuna_mlx5_has_completions(inner); ++i) {
                uct_iface_progress(inner);
            }
        }
    }
}

/* Look at the clock after as many calls as take a scan's period: of an application that
 * calls progress every 10 ms, each one. The application beats when it had the calls in
 * which UCX gives the receive queue new buffers. */
static void uct_varuna_iface_pace_scans(uct_varuna_iface_t *iface,
                                        ucs_time_t now)
{
    int is_early       = (iface->scan_countdown > 0);
    ucs_time_t elapsed = now - iface->scan_start;

    iface->beat_calls += is_early ? UCT_VARUNA_SCAN_CALLS : iface->scan_calls;
    if (iface->beat_calls >= UCT_VARUNA_SCAN_CALLS) {
        iface->beat_calls = 0;
        __atomic_store_n(&iface->app_beat, iface->app_beat + 1,
                         __ATOMIC_RELAXED);
    }

    if (!is_early) {
        iface->scan_calls = ucs_min(UCT_VARUNA_SCAN_CALLS,
                                    iface->scan_calls *
                                    ucs_time_from_sec(UCT_VARUNA_SCAN_PERIOD) /
                                    ucs_max(elapsed, 1));
        iface->scan_calls = ucs_max(iface->scan_calls, 1);
    }

    iface->scan_countdown = iface->scan_calls;
    iface->scan_start     = now;
}

/* Everything beyond the inner interfaces' own progress. It never counts: a count
 * tells the caller of messages or completions of its own, and UCP insists on a
 * new interface having none. */
static unsigned uct_varuna_iface_progress_slow(void *arg)
{
    uct_varuna_iface_t *iface = arg;
    ucs_time_t now;

    if (ucs_likely(ucs_list_is_empty(&iface->work) &&
                   !uct_varuna_ctl_has_events(iface->ctl) &&
                   (--iface->scan_countdown > 0))) {
        return 0;
    }

    now = ucs_get_time();
    uct_varuna_iface_pace_scans(iface, now);
    uct_varuna_ctl_dispatch(iface->ctl);

    if (ucs_unlikely(iface->want_dry)) {
        uct_varuna_iface_poll_dry(iface);
    } else if (ucs_unlikely(!ucs_list_is_empty(&iface->work))) {
        uct_varuna_iface_poll_more(iface);
    }

    now = ucs_get_time(); /* Users' callbacks may take their time */
    uct_varuna_watch_outside(iface, now);
    uct_varuna_watch_scan(iface, now);
    uct_varuna_iface_progress_work(iface, now);
    uct_varuna_gap_progress(iface);
    if (ucs_unlikely(!ucs_list_is_empty(&iface->graveyard))) {
        uct_varuna_iface_progress_graves(iface);
    }

    return 0;
}

unsigned uct_varuna_iface_progress_lanes(uct_varuna_iface_t *iface)
{
    unsigned count = 0;
    unsigned link, kind;

    for (link = 0; link < iface->num_links; ++link) {
        for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
            count += uct_iface_progress(iface->links[link].lanes[kind].inner);
        }
    }

    return count;
}

static unsigned uct_varuna_iface_progress(uct_iface_h tl_iface)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);

    return uct_varuna_iface_progress_slow(iface) +
           uct_varuna_iface_progress_lanes(iface);
}

static void uct_varuna_iface_progress_enable(uct_iface_h tl_iface,
                                             unsigned flags)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);
    unsigned link, kind;

    uct_base_iface_progress_enable_cb(&iface->super,
                                      uct_varuna_iface_progress_slow, flags);
    for (link = 0; link < iface->num_links; ++link) {
        for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
            uct_iface_progress_enable(iface->links[link].lanes[kind].inner,
                                      flags);
        }
    }
}

static void uct_varuna_iface_progress_disable(uct_iface_h tl_iface,
                                              unsigned flags)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);
    unsigned link, kind;

    for (link = 0; link < iface->num_links; ++link) {
        for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
            uct_iface_progress_disable(iface->links[link].lanes[kind].inner,
                                       flags);
        }
    }
    uct_base_iface_progress_disable(tl_iface, flags);
}

/* --- Addresses --- */

static ucs_status_t
uct_varuna_iface_get_device_address(uct_iface_h tl_iface,
                                    uct_device_addr_t *addr)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);

    memcpy(addr, iface->links[0].device_addr, iface->links[0].device_addr_len);
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

/* --- Synchronization and events --- */

static ucs_status_t uct_varuna_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                           uct_completion_t *comp)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);
    uct_varuna_ep_t *ep;
    unsigned i;

    if (comp != NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    /* Other transports have pending requests only while something is outstanding,
     * and UCP relies on that: here they also wait for a connection or a swap */
    if ((iface->outstanding == 0) && (iface->num_pending == 0)) {
        UCT_TL_IFACE_STAT_FLUSH(&iface->super);
        return UCS_OK;
    }

    ucs_ptr_array_for_each(ep, i, &iface->eps) {
        if (ep->state == UCT_VARUNA_EP_ACTIVE) {
            uct_varuna_ep_signal(ep);
        }
    }

    UCT_TL_IFACE_STAT_FLUSH_WAIT(&iface->super);
    return UCS_INPROGRESS;
}

static ucs_status_t uct_varuna_iface_fence(uct_iface_h tl_iface, unsigned flags)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);

    ++iface->fence_beat;
    UCT_TL_IFACE_STAT_FENCE(&iface->super);
    return UCS_OK;
}

static ucs_status_t uct_varuna_iface_event_fd_get(uct_iface_h tl_iface,
                                                  int *fd_p)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);

    iface->uses_events = 1;
    *fd_p              = iface->event_fd;
    return UCS_OK;
}

static ucs_status_t uct_varuna_iface_event_arm(uct_iface_h tl_iface,
                                               unsigned events)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);
    ucs_status_t status;
    unsigned link, kind;

    for (link = 0; link < iface->num_links; ++link) {
        for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
            status = uct_varuna_mlx5_event_arm(
                    iface->links[link].lanes[kind].inner, events);
            if (status != UCS_OK) {
                return status;
            }
        }
    }

    status = uct_varuna_ctl_event_arm(iface->ctl);
    if (status != UCS_OK) {
        return status;
    }

    /* A recovery in progress has timers: do not sleep through them */
    return uct_varuna_watch_arm(iface);
}

static ucs_status_t uct_varuna_iface_add_event_fd(uct_varuna_iface_t *iface,
                                                  int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

    if (epoll_ctl(iface->event_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        ucs_error("epoll_ctl(ADD, fd=%d) failed: %m", fd);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

/* One descriptor for all: an epoll set is itself readable. */
static ucs_status_t uct_varuna_iface_open_event_fd(uct_varuna_iface_t *iface)
{
    ucs_status_t status;
    unsigned link, kind;
    int fd;

    iface->event_fd = epoll_create1(EPOLL_CLOEXEC);
    if (iface->event_fd < 0) {
        ucs_error("epoll_create1() failed: %m");
        return UCS_ERR_IO_ERROR;
    }

    status = uct_varuna_iface_add_event_fd(iface,
                                           uct_varuna_ctl_event_fd(iface->ctl));
    if (status == UCS_OK) {
        status = uct_varuna_iface_add_event_fd(iface, iface->watch.timer_fd);
    }

    for (link = 0; (status == UCS_OK) && (link < iface->num_links); ++link) {
        for (kind = 0; (status == UCS_OK) && (kind < UCT_VARUNA_LANE_LAST);
             ++kind) {
            status = uct_iface_event_fd_get(
                    iface->links[link].lanes[kind].inner, &fd);
            if (status == UCS_OK) {
                status = uct_varuna_iface_add_event_fd(iface, fd);
            }
        }
    }

    if (status != UCS_OK) {
        close(iface->event_fd);
    }

    return status;
}

static ucs_mpool_ops_t uct_varuna_req_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
    .obj_init      = NULL,
    .obj_cleanup   = NULL,
    .obj_str       = NULL
};

static ucs_status_t uct_varuna_iface_init_mpools(uct_varuna_iface_t *iface)
{
    uct_iface_mpool_config_t config = UCT_VARUNA_COMPAT_MPOOL_CONFIG(256);
    size_t bcopy_size;
    ucs_status_t status;

    status = uct_varuna_compat_mpool_init(&iface->req_mp,
                                          sizeof(uct_varuna_req_t), 256,
                                          &uct_varuna_req_mpool_ops,
                                          "varuna_req");
    if (status != UCS_OK) {
        return status;
    }

    bcopy_size = ucs_max(iface->attr.cap.put.max_bcopy,
                         ucs_max(iface->attr.cap.get.max_bcopy,
                                 iface->attr.cap.am.max_bcopy));
    status = uct_iface_mpool_init(&iface->super, &iface->bcopy_mp,
                                  bcopy_size + UCT_VARUNA_BCOPY_OVERHEAD,
                                  UCT_VARUNA_BCOPY_OVERHEAD,
                                  UCS_SYS_CACHE_LINE_SIZE, &config, 256,
                                  uct_varuna_bcopy_init, "varuna_bcopy");
    if (status != UCS_OK) {
        ucs_mpool_cleanup(&iface->req_mp, 0);
        return status;
    }

    status = uct_varuna_amo_iface_init(iface);
    if (status != UCS_OK) {
        ucs_mpool_cleanup(&iface->bcopy_mp, 0);
        ucs_mpool_cleanup(&iface->req_mp, 0);
    }

    return status;
}

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

/* Fields, and tables that are empty yet: nothing here can fail. */
static void uct_varuna_iface_init_fields(uct_varuna_iface_t *iface,
                                         const uct_iface_params_t *params,
                                         const uct_varuna_iface_config_t *config)
{
    iface->rx_headroom     = (params->field_mask &
                              UCT_IFACE_PARAM_FIELD_RX_HEADROOM) ?
                             params->rx_headroom : 0;
    iface->outstanding     = 0;
    iface->num_pending     = 0;
    iface->fence_beat      = 0;
    iface->ep_salt         = 0;
    iface->ep_instances    = 0;
    iface->uses_events     = 0;
    iface->scan_countdown  = UCT_VARUNA_SCAN_CALLS;
    iface->scan_calls      = UCT_VARUNA_SCAN_CALLS;
    iface->beat_calls      = 0;
    iface->scan_start      = ucs_get_time();
    iface->want_dry        = 0;
    iface->ctl             = NULL;
    iface->release_desc.cb = uct_varuna_am_release;
    memset(&iface->target_stats, 0, sizeof(iface->target_stats));
    memset(&iface->link_stats, 0, sizeof(iface->link_stats));
    memset(iface->links, 0, sizeof(iface->links));
    ucs_list_head_init(&iface->work);
    ucs_list_head_init(&iface->graveyard);
    ucs_list_head_init(&iface->gaps);
    iface->num_held = 0;
    ucs_ptr_array_init(&iface->eps, "varuna_eps");
    pthread_mutex_init(&iface->eps_lock, NULL);
    kh_init_inplace(uct_varuna_inner_eps, &iface->inner_eps);
    uct_varuna_iface_set_config(iface, config);
}

/* What tells us from others, and what only those know who were told it. */
static ucs_status_t uct_varuna_iface_init_identity(uct_varuna_iface_t *iface)
{
    ucs_status_t status = uct_varuna_secret_number(&iface->uuid);

    return (status != UCS_OK) ? status :
           uct_varuna_secret_random(&iface->secret_key,
                                    sizeof(iface->secret_key));
}

/* The links, and what endpoints take from the interface. */
static ucs_status_t
uct_varuna_iface_open_lanes(uct_varuna_iface_t *iface, uct_worker_h worker,
                            const uct_iface_params_t *params,
                            const uct_varuna_iface_config_t *config)
{
    ucs_status_t status;

    uct_varuna_iface_init_link_table(iface, config);
    status = uct_varuna_iface_open_links(iface, worker, params);
    if (status != UCS_OK) {
        return status;
    }

    uct_varuna_iface_init_attr(iface);
    status = uct_varuna_iface_init_mpools(iface);
    if (status != UCS_OK) {
        uct_varuna_iface_close_links(iface);
    }

    return status;
}

/* While nobody has used them yet. */
static void uct_varuna_iface_close_lanes(uct_varuna_iface_t *iface)
{
    uct_varuna_amo_iface_cleanup(iface);
    ucs_mpool_cleanup(&iface->bcopy_mp, 0);
    ucs_mpool_cleanup(&iface->req_mp, 0);
    uct_varuna_iface_close_links(iface);
}

/* The control plane, whose addresses are in ours, and the events of all. Handlers may
 * be called as soon as they are set: they are kept out until all is there that they
 * look at. */
static ucs_status_t uct_varuna_iface_open_ctl(uct_varuna_iface_t *iface)
{
    ucs_async_context_t *async = iface->super.worker->async;
    uint8_t addr[UCT_VARUNA_IFACE_ADDR_MAX];
    ucs_status_t status;
    unsigned num_links;

    UCS_ASYNC_BLOCK(async);
    status = uct_varuna_ctl_create(iface, &iface->ctl);
    if (status != UCS_OK) {
        goto out;
    }

    num_links = uct_varuna_iface_pack_short_address(iface, addr);
    if (num_links < iface->num_links) {
        ucs_debug("peers learn %u of %u links with the address, the others when "
                  "an endpoint is opened", num_links, iface->num_links);
    }

    status = uct_varuna_iface_open_event_fd(iface);
    if (status != UCS_OK) {
        uct_varuna_ctl_destroy(iface->ctl);
    }

out:
    UCS_ASYNC_UNBLOCK(async);
    return status;
}

/* The log of what happens later speaks of these names. */
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

static UCS_CLASS_INIT_FUNC(uct_varuna_iface_t, uct_md_h tl_md,
                           uct_worker_h worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *tl_config)
{
    uct_varuna_iface_config_t *config = ucs_derived_of(tl_config,
                                                       uct_varuna_iface_config_t);
    ucs_status_t status;

    if (!(params->field_mask & UCT_IFACE_PARAM_FIELD_OPEN_MODE) ||
        !(params->open_mode & UCT_IFACE_OPEN_MODE_DEVICE)) {
        return UCS_ERR_UNSUPPORTED;
    }

    UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &uct_varuna_iface_ops,
                              &uct_varuna_iface_internal_ops, tl_md, worker,
                              params,
                              tl_config UCS_STATS_ARG(uct_varuna_stat_parent(params))
                              UCS_STATS_ARG(UCT_VARUNA_TL_NAME));

    self->md = ucs_derived_of(tl_md, uct_varuna_md_t);
    uct_varuna_iface_init_fields(self, params, config);
    status = uct_varuna_iface_init_identity(self);
    if (status != UCS_OK) {
        goto err_tables;
    }

    status = uct_varuna_iface_order_links(self, params->mode.device.dev_name);
    if (status != UCS_OK) {
        goto err_tables;
    }

    status = uct_varuna_watch_init(self, config);
    if (status != UCS_OK) {
        goto err_tables;
    }

    status = uct_varuna_iface_open_lanes(self, worker, params, config);
    if (status != UCS_OK) {
        goto err_watch;
    }

    status = uct_varuna_iface_open_ctl(self);
    if (status != UCS_OK) {
        goto err_lanes;
    }

    uct_varuna_watch_start(self, config);
    uct_varuna_iface_log_links(self);
    return UCS_OK;

err_lanes:
    uct_varuna_iface_close_lanes(self);
err_watch:
    uct_varuna_watch_cleanup(self);
err_tables:
    kh_destroy_inplace(uct_varuna_inner_eps, &self->inner_eps);
    pthread_mutex_destroy(&self->eps_lock);
    ucs_ptr_array_cleanup(&self->eps, 0);
    return status;
}

/* Endpoints which were still draining when the user closed the interface; there
 * is no control plane any more. */
static void uct_varuna_iface_empty_graveyard(uct_varuna_iface_t *iface)
{
    ucs_time_t deadline = ucs_get_time() + ucs_time_from_sec(1.0);
    uct_varuna_grave_t *grave, *tmp;

    while (!ucs_list_is_empty(&iface->graveyard) &&
           (ucs_get_time() < deadline)) {
        uct_varuna_iface_progress_lanes(iface);
        uct_varuna_iface_progress_graves(iface);
    }

    ucs_list_for_each_safe(grave, tmp, &iface->graveyard, list) {
        ucs_debug("inner ep %p was not drained", grave->inner);
        ucs_list_del(&grave->list);
        uct_ep_destroy(grave->inner);
        uct_varuna_reqs_release(&grave->reqs);
        ucs_free(grave);
    }
}

static UCS_CLASS_CLEANUP_FUNC(uct_varuna_iface_t)
{
    uct_varuna_iface_progress_disable(&self->super.super,
                                      UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    uct_varuna_watch_stop(self);
    close(self->event_fd);
    uct_varuna_ctl_destroy(self->ctl);
    self->ctl = NULL;
    uct_varuna_iface_empty_graveyard(self);
    uct_varuna_iface_close_links(self);
    uct_varuna_watch_cleanup(self);
    uct_varuna_amo_iface_cleanup(self);
    ucs_mpool_cleanup(&self->bcopy_mp, 1);
    ucs_mpool_cleanup(&self->req_mp, 1);
    kh_destroy_inplace(uct_varuna_inner_eps, &self->inner_eps);
    pthread_mutex_destroy(&self->eps_lock);
    ucs_ptr_array_cleanup(&self->eps, 1);
}

UCS_CLASS_DEFINE(uct_varuna_iface_t, uct_base_iface_t);
static UCS_CLASS_DEFINE_NEW_FUNC(uct_varuna_iface_t, uct_iface_t, uct_md_h,
                                 uct_worker_h, const uct_iface_params_t*,
                                 const uct_iface_config_t*);
static UCS_CLASS_DEFINE_DELETE_FUNC(uct_varuna_iface_t, uct_iface_t);

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
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_varuna_iface_t),
    .iface_query              = uct_varuna_iface_query,
    .iface_get_device_address = uct_varuna_iface_get_device_address,
    .iface_get_address        = uct_varuna_iface_get_address,
    .iface_is_reachable       = uct_varuna_iface_is_reachable
};

UCT_TL_DEFINE_ENTRY(&uct_varuna_component, rc_varuna, uct_varuna_query_devices,
                    uct_varuna_iface_t, UCT_VARUNA_CONFIG_PREFIX,
                    uct_varuna_iface_config_table, uct_varuna_iface_config_t);
