/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The inner interfaces of all links as one: progress, events, and the fields that all
 * rooms share. varuna_lane_open.c opens them.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_lanes.h"
#include <uct/ib/varuna/ucx/varuna_random.h>
#include <uct/ib/varuna/core/varuna_link.h>
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/md/varuna_nic.h>

#include <ucs/arch/bitops.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <sys/epoll.h>
#include <string.h>

#define UCT_VARUNA_MAX_DRY_POLLS     4096 /* of a lane, in one round */
#define UCT_VARUNA_MAX_POLLS         32   /* of a lane, while endpoints recover */
#define UCT_VARUNA_IDLE_POLLS        64   /* without result, then a lane rests */

const char *uct_varuna_lane_names[] = {
    [UCT_VARUNA_LANE_RC]    = "rc",
    [UCT_VARUNA_LANE_DC]    = "dc",
    [UCT_VARUNA_LANE_VERBS] = "rc",
    [UCT_VARUNA_LANE_LAST]  = NULL
};

/* For each inner interface, @a _lane is its uct_varuna_lane_iface_t */
#define uct_varuna_for_each_lane(_lane, _iface) \
    for (unsigned _link = 0; _link < (_iface)->num_links; ++_link) \
        for ((_lane) = (_iface)->links[_link].lanes; \
             (_lane) < &(_iface)->links[_link].lanes[UCT_VARUNA_LANE_LAST]; ++(_lane)) \
            if ((_lane)->inner != NULL)

uct_varuna_lane_kind_t uct_varuna_lane_kind_of(const uct_varuna_iface_t *iface,
                                               uct_ep_h ep)
{
    const uct_varuna_lane_iface_t *lane;

    uct_varuna_for_each_lane(lane, iface) {
        if (lane->inner == ep->iface) {
            return (uct_varuna_lane_kind_t)lane->kind;
        }
    }

    ucs_fatal("ep %p belongs to no lane", ep);
}

int uct_varuna_link_is_of(const uct_varuna_iface_t *iface, unsigned link, uct_ep_h ep)
{
    unsigned kind;

    for (kind = 0; (ep != NULL) && (kind < UCT_VARUNA_LANE_LAST); ++kind) {
        if (iface->links[link].lanes[kind].inner == ep->iface) {
            return 1;
        }
    }

    return 0;
}

void uct_varuna_lanes_poll_dry(uct_varuna_iface_t *iface)
{
    uct_varuna_lane_iface_t *lane;
    unsigned i;

    iface->want_dry = 0;
    uct_varuna_for_each_lane(lane, iface) {
        for (i = 0; lane->want_dry && (i < UCT_VARUNA_MAX_DRY_POLLS); ++i) {
            if ((uct_varuna_tl_progress(lane->inner, lane->kind) == 0) &&
                !uct_varuna_tl_has_completions(lane->inner, lane->kind)) {
                lane->dry_at   = ucs_get_time();
                lane->want_dry = 0;
            }
        }
        iface->want_dry |= lane->want_dry;
    }
}

void uct_varuna_lanes_poll_more(uct_varuna_iface_t *iface)
{
    uct_varuna_lane_iface_t *lane;
    unsigned i;

    uct_varuna_for_each_lane(lane, iface) {
        for (i = 0; (i < UCT_VARUNA_MAX_POLLS) &&
                    uct_varuna_tl_has_completions(lane->inner, lane->kind); ++i) {
            uct_varuna_tl_progress(lane->inner, lane->kind);
        }
    }
}

unsigned uct_varuna_lanes_progress(uct_varuna_iface_t *iface)
{
    uct_varuna_lane_iface_t *lane;
    unsigned count = 0;

    uct_varuna_for_each_lane(lane, iface) {
        count += uct_varuna_tl_progress(lane->inner, lane->kind);
    }

    return count;
}

static unsigned uct_varuna_lanes_poll_busy(uct_iface_h tl_iface);

static void uct_varuna_lanes_set_busy(uct_varuna_iface_t *iface, uint32_t busy)
{
    unsigned lane = ucs_ffs32(busy);

    iface->poll.busy = busy;
    iface->poll.more = busy & ~UCS_BIT(lane);
    if (iface->poll.more == 0) {
        iface->poll.first = iface->poll.lanes[lane];
    } else {
        iface->poll.first.inner = &iface->super.super;
        iface->poll.first.func  = uct_varuna_lanes_poll_busy;
    }
}

/* Also a single one for a while by the function that notes what is found */
static void uct_varuna_lanes_poll_all(uct_varuna_iface_t *iface)
{
    uct_varuna_lanes_set_busy(iface, iface->poll.all);
    iface->poll.first.inner = &iface->super.super;
    iface->poll.first.func  = uct_varuna_lanes_poll_busy;
    memset(iface->poll.idle, 0, sizeof(iface->poll.idle));
}

static unsigned uct_varuna_lanes_position(const uct_varuna_lane_iface_t *lane)
{
    return (lane->link * UCT_VARUNA_LANE_LAST) + lane->kind;
}

static void uct_varuna_lanes_poll_set(uct_varuna_iface_t *iface,
                                      const uct_varuna_lane_iface_t *lane)
{
    unsigned position = uct_varuna_lanes_position(lane);

    iface->poll.all                  |= UCS_BIT(position);
    iface->poll.lanes[position].inner = lane->inner;
    iface->poll.lanes[position].func  = uct_varuna_tl_poll_func(lane->inner, lane->kind);
}

void uct_varuna_lanes_poll_init(uct_varuna_iface_t *iface)
{
    uct_varuna_lane_iface_t *lane;

    UCS_STATIC_ASSERT(UCT_VARUNA_MAX_LANES < 32);
    memset(&iface->poll, 0, sizeof(iface->poll));
    uct_varuna_for_each_lane(lane, iface) {
        uct_varuna_lanes_poll_set(iface, lane);
    }

    iface->poll.next = ucs_ffs32(iface->poll.all);
    uct_varuna_lanes_poll_all(iface);
}

void uct_varuna_lanes_poll_replace(uct_varuna_iface_t *iface,
                                   const uct_varuna_lane_iface_t *lane)
{
    uct_varuna_lanes_poll_set(iface, lane);
    uct_varuna_lanes_poll_all(iface);
}

void uct_varuna_lanes_poll_remove(uct_varuna_iface_t *iface,
                                  const uct_varuna_lane_iface_t *lane)
{
    unsigned position = uct_varuna_lanes_position(lane);

    while (uct_varuna_tl_progress(lane->inner, lane->kind) > 0);
    iface->poll.all                  &= ~UCS_BIT(position);
    iface->poll.lanes[position].inner = NULL;
    if (iface->poll.all != 0) {
        iface->poll.next = ucs_ffs32(iface->poll.all);
        uct_varuna_lanes_poll_all(iface);
    } else {
        /* The last one: nothing is polled until there is another */
        iface->poll.busy        = 0;
        iface->poll.more        = 0;
        iface->poll.first.inner = &iface->super.super;
        iface->poll.first.func  = uct_varuna_lanes_poll_busy;
    }
}

/* Whether a lane on which nothing was found for a while may rest. The first one may
 * not, unless another one has taken its traffic */
static int uct_varuna_lanes_may_rest(const uct_varuna_iface_t *iface, unsigned lane)
{
    unsigned other;

    if (iface->poll.more & UCS_BIT(lane)) {
        return 1;
    }

    ucs_for_each_bit(other, iface->poll.more) {
        if (iface->poll.idle[other] < (UCT_VARUNA_IDLE_POLLS / 2)) {
            return 1;
        }
    }

    return 0;
}

/* Note what was found on a lane */
static void uct_varuna_lanes_account(uct_varuna_iface_t *iface, unsigned lane,
                                     unsigned found)
{
    uint32_t busy = iface->poll.busy;
    int is_due    = 0;

    if (found > 0) {
        iface->poll.idle[lane] = 0;
        busy                  |= UCS_BIT(lane);
    } else if (++iface->poll.idle[lane] >= UCT_VARUNA_IDLE_POLLS) {
        if (uct_varuna_lanes_may_rest(iface, lane)) {
            busy &= ~UCS_BIT(lane);
        }
        iface->poll.idle[lane] = 0;
        is_due                 = 1;
    }

    if (is_due || (busy != iface->poll.busy)) {
        uct_varuna_lanes_set_busy(iface, busy);
    }
}

/* Handlers may change which lanes carry traffic */
static unsigned uct_varuna_lanes_poll_busy(uct_iface_h tl_iface)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);
    uint32_t busy             = iface->poll.busy;
    unsigned count            = 0;
    unsigned lane, found;

    ucs_for_each_bit(lane, busy) {
        found  = uct_varuna_lane_poll(&iface->poll.lanes[lane]);
        count += found;
        uct_varuna_lanes_account(iface, lane, found);
    }

    return count;
}

/* The next one, if it seems to carry no traffic */
unsigned uct_varuna_lanes_poll_standby(uct_varuna_iface_t *iface)
{
    unsigned lane = iface->poll.next;
    uint32_t rest = iface->poll.all & ~UCS_MASK(lane + 1);
    unsigned found;

    if (ucs_unlikely(iface->poll.all == 0)) {
        return 0; /* All NICs are away */
    }

    iface->poll.next = ucs_ffs32((rest != 0) ? rest : iface->poll.all);
    found            = uct_varuna_tl_refill(iface->poll.lanes[lane].inner,
                                            lane % UCT_VARUNA_LANE_LAST);
    if (iface->poll.busy & UCS_BIT(lane)) {
        return found;
    }

    found += uct_varuna_lane_poll(&iface->poll.lanes[lane]);
    if (found > 0) {
        uct_varuna_lanes_account(iface, lane, found);
    }

    return found;
}

/* @return Whether nothing that came before a lane was armed can be overlooked: the NIC raises
 * an event for that, or the lane was armed for these events by an earlier call, no event was
 * raised since then, and the last poll found nothing. (The count begins with each call.) */
static int uct_varuna_lanes_is_looked_at(const uct_varuna_iface_t *iface,
                                         const uct_varuna_lane_iface_t *lane,
                                         unsigned events)
{
    return !uct_varuna_tl_arm_is_blind(lane->kind) ||
           (ucs_test_all_flags(lane->armed, events) &&
            (iface->poll.idle[uct_varuna_lanes_position(lane)] > 0));
}

static ucs_status_t uct_varuna_lanes_arm(uct_varuna_iface_t *iface, unsigned events)
{
    ucs_status_t result = UCS_OK;
    uct_varuna_lane_iface_t *lane;
    ucs_status_t status;

    uct_varuna_for_each_lane(lane, iface) {
        status = uct_varuna_tl_event_arm(lane->inner, lane->kind, events);
        if (status == UCS_ERR_BUSY) {
            lane->armed = 0;
            return status;
        } else if (status != UCS_OK) {
            /* A dead NIC: what others do wakes the application all the same */
            ucs_debug("failed to arm a lane of %s: %s",
                      uct_varuna_link_name(iface, lane->link), ucs_status_string(status));
        } else if (!uct_varuna_lanes_is_looked_at(iface, lane, events)) {
            lane->armed = events;
            result      = UCS_ERR_BUSY;
        }
    }

    return result;
}

ucs_status_t uct_varuna_lanes_event_arm(uct_varuna_iface_t *iface,
                                        unsigned events)
{
    ucs_status_t status = uct_varuna_lanes_arm(iface, events);

    uct_varuna_lanes_poll_all(iface);
    return status;
}

ucs_status_t uct_varuna_lane_event_add(const uct_varuna_lane_iface_t *lane,
                                       int epoll_fd)
{
    struct epoll_event event = { .events = EPOLLIN };
    ucs_status_t status;
    int fd;

    status = uct_iface_event_fd_get(lane->inner, &fd);
    if (status != UCS_OK) {
        return status;
    }

    event.data.fd = fd;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        ucs_error("epoll_ctl(ADD, fd=%d) failed: %m", fd);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

static void
uct_varuna_lane_event_remove(const uct_varuna_lane_iface_t *lane, int epoll_fd)
{
    int fd;

    if (uct_iface_event_fd_get(lane->inner, &fd) == UCS_OK) {
        (void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    }
}

ucs_status_t uct_varuna_lanes_event_add(uct_varuna_iface_t *iface, int epoll_fd)
{
    uct_varuna_lane_iface_t *lane;
    ucs_status_t status;

    uct_varuna_for_each_lane(lane, iface) {
        status = uct_varuna_lane_event_add(lane, epoll_fd);
        if (status != UCS_OK) {
            return status;
        }
    }

    iface->opening.epoll_fd = epoll_fd;
    return UCS_OK;
}

ucs_status_t uct_varuna_link_event_add(const uct_varuna_iface_t *iface,
                                       const uct_varuna_link_t *link)
{
    ucs_status_t status = UCS_OK;
    unsigned kind;

    for (kind = 0; (kind < UCT_VARUNA_LANE_LAST) && (status == UCS_OK) &&
                   (iface->opening.epoll_fd != -1); ++kind) {
        if (link->lanes[kind].inner != NULL) {
            status = uct_varuna_lane_event_add(&link->lanes[kind], iface->opening.epoll_fd);
        }
    }

    return status;
}

void uct_varuna_link_event_remove(const uct_varuna_iface_t *iface, const uct_varuna_link_t *link)
{
    unsigned kind;

    for (kind = 0; (kind < UCT_VARUNA_LANE_LAST) && (iface->opening.epoll_fd != -1); ++kind) {
        if (link->lanes[kind].inner != NULL) {
            uct_varuna_lane_event_remove(&link->lanes[kind], iface->opening.epoll_fd);
        }
    }
}

/* Numbers that identify us, and numbers that only our peers know */
static ucs_status_t uct_varuna_lanes_init_identity(uct_varuna_iface_t *iface)
{
    ucs_status_t status = uct_varuna_random_number(&iface->uuid);

    return (status != UCS_OK) ? status :
           uct_varuna_random(&iface->secret_key, sizeof(iface->secret_key));
}

#ifdef ENABLE_STATS
/* @return The parent of the interface's node of UCX's statistics */
static ucs_stats_node_t *
uct_varuna_lanes_stats_parent(const uct_iface_params_t *params)
{
    return ((params->field_mask & UCT_IFACE_PARAM_FIELD_STATS_ROOT) &&
            (params->stats_root != NULL)) ?
                   params->stats_root :
                   ucs_stats_get_root();
}
#endif

static ucs_status_t uct_varuna_lanes_order(uct_varuna_iface_t *iface,
                                           const char *dev_name);

UCS_CLASS_INIT_FUNC(uct_varuna_iface_t, uct_iface_ops_t *ops,
                    uct_iface_internal_ops_t *internal_ops, uct_md_h tl_md,
                    uct_worker_h worker, const uct_iface_params_t *params,
                    const uct_iface_config_t *tl_config)
{
    ucs_status_t status;

    UCS_CLASS_CALL_SUPER_INIT(
            uct_base_iface_t, ops, internal_ops, tl_md, worker, params,
            tl_config UCS_STATS_ARG(uct_varuna_lanes_stats_parent(params))
            UCS_STATS_ARG(UCT_VARUNA_TL_NAME));

    memset(UCS_PTR_BYTE_OFFSET(self, sizeof(self->super)), 0,
           sizeof(*self) - sizeof(self->super));
    self->md = ucs_derived_of(tl_md, uct_varuna_md_t);
    ucs_list_head_init(&self->graveyard);
    ucs_list_head_init(&self->rest.eps);
    self->opening.epoll_fd = -1;
    self->rx_headroom = (params->field_mask &
                         UCT_IFACE_PARAM_FIELD_RX_HEADROOM) ?
                        params->rx_headroom : 0;

    status = uct_varuna_lanes_init_identity(self);
    return (status != UCS_OK) ? status :
           uct_varuna_lanes_order(self, params->mode.device.dev_name);
}

static UCS_CLASS_CLEANUP_FUNC(uct_varuna_iface_t)
{
}

UCS_CLASS_DEFINE(uct_varuna_iface_t, uct_base_iface_t);

/* --- Events of links --- */

/* A link of an interface fails, or comes back. Main thread. Nothing here looks at
 * an endpoint: they compare generations when they post, and in the background scan. */

void uct_varuna_link_down(uct_varuna_iface_t *iface, unsigned link, unsigned cause,
                          const char *reason)
{
    /* This store moves all endpoints on the link */
    if (uct_varuna_link_add_cause(&iface->link_table, link, cause,
                                  ucs_get_time())) {
        iface->link_table.links[link].reason = reason;
        uct_varuna_link_raise(iface);
        ucs_info("rc_varuna: link %s is down: %s",
                 uct_varuna_link_name(iface, link), reason);
    }
}

void uct_varuna_link_up(uct_varuna_iface_t *iface, unsigned link, unsigned cause)
{
    const uct_varuna_link_entry_t *entry = &iface->link_table.links[link];

    if (uct_varuna_link_remove_cause(&iface->link_table, link, cause,
                                     ucs_get_time())) {
        ucs_info("rc_varuna: link %s is up again, and can be used in %.3f s",
                 uct_varuna_link_name(iface, link),
                 (entry->damp.state == UCT_VARUNA_DAMP_HOLD) ?
                 ucs_time_to_sec(entry->damp.usable_at - entry->damp.changed) : 0.0);
    }
}

/* --- The choice of links --- */

/* @return Position among the links of the memory domain, or their number. */
static unsigned uct_varuna_choice_find(const uct_varuna_md_t *md, const char *dev_name)
{
    size_t prefix_len = strlen(UCT_VARUNA_DEV_PREFIX);
    unsigned link;

    if (strncmp(dev_name, UCT_VARUNA_DEV_PREFIX, prefix_len) == 0) {
        dev_name += prefix_len;
    }

    for (link = 0; (link < md->num_links) &&
                   strcmp(md->nics[md->links[link]].dev_name, dev_name); ++link);
    return link;
}

/* The order of a file is kept: zeros, and the primary's place is left out. */
static void uct_varuna_choice_order(const uct_varuna_md_t *md, unsigned primary,
                                    uint8_t *order)
{
    double distances[UCT_VARUNA_MAX_LINKS];
    unsigned link;

    for (link = 0; link < md->num_links; ++link) {
        distances[link] = md->order_is_given ? link :
                          uct_varuna_nic_distance(&md->nics[md->links[primary]],
                                                  &md->nics[md->links[link]]);
    }

    uct_varuna_near_order(distances, md->num_links, primary, order);
}

/* Choose the links of an interface, and their order: the device that was asked for is the
 * primary, and the nearest others follow, unless a file gives an order. Those that are not used
 * now are in iface->further.
 *
 * @return UCS_ERR_NO_DEVICE, which is logged, if no link has that name. */
static ucs_status_t uct_varuna_lanes_order(uct_varuna_iface_t *iface,
                                           const char *dev_name)
{
    const uct_varuna_md_t *md = iface->md;
    uint8_t order[UCT_VARUNA_MAX_LINKS];
    uct_varuna_link_t *link;
    unsigned primary, i;
    uint8_t nic;

    primary = uct_varuna_choice_find(md, dev_name);
    if (primary == md->num_links) {
        ucs_error("rc_varuna: no link is called %s", dev_name);
        return UCS_ERR_NO_DEVICE;
    }

    uct_varuna_choice_order(md, primary, order);
    iface->num_links   = 0;
    iface->further.num = 0;
    for (i = 0; i < md->num_links; ++i) {
        nic = md->links[order[i]];
        if (md->nics[nic].set != md->nics[md->links[primary]].set) {
            /* Its addresses have another form: the interfaces of such devices use it */
            continue;
        }

        if (iface->num_links < md->vqp_links) {
            link      = &iface->links[iface->num_links++];
            link->nic = nic;
            link->set = md->nics[nic].set;
        } else {
            iface->further.nics[iface->further.num++] = nic;
        }
    }

    return UCS_OK;
}


/* --- Links that cannot be opened --- */

static void uct_varuna_choice_remove(uct_varuna_iface_t *iface, unsigned link)
{
    for (--iface->num_links; link < iface->num_links; ++link) {
        iface->links[link].nic = iface->links[link + 1].nic;
        iface->links[link].set = iface->links[link + 1].set;
    }
}

void uct_varuna_choice_skip(uct_varuna_iface_t *iface)
{
    uct_varuna_md_t *md = iface->md;
    unsigned link       = iface->num_links;
    int is_due;

    while ((link-- > 0) && (iface->num_links > 1)) {
        pthread_mutex_lock(&md->lock);
        is_due = uct_varuna_backoff_is_due(&md->nics[iface->links[link].nic].no_lanes,
                                           ucs_get_time());
        pthread_mutex_unlock(&md->lock);
        if (!is_due) {
            ucs_debug("rc_varuna: %s was refused lately: it is left out",
                      uct_varuna_link_name(iface, link));
            uct_varuna_choice_remove(iface, link);
        }
    }
}

/* A NIC that is short of something, dead or hung, not an option that no NIC can satisfy */
static int uct_varuna_choice_is_shortage(ucs_status_t status)
{
    return (status == UCS_ERR_IO_ERROR) || (status == UCS_ERR_NO_MEMORY) ||
           (status == UCS_ERR_NO_RESOURCE) || (status == UCS_ERR_TIMED_OUT);
}

/* @return How loud it is: a warning, if it is news and none says that the NIC is short */
static ucs_log_level_t
uct_varuna_choice_note(uct_varuna_iface_t *iface, unsigned link, ucs_status_t status)
{
    uct_varuna_md_t *md   = iface->md;
    uct_varuna_nic_t *nic = &md->nics[iface->links[link].nic];
    uct_varuna_nic_t *own = &md->nics[nic->owner];
    ucs_log_level_t level;

    pthread_mutex_lock(&md->lock);
    level = !uct_varuna_backoff_failed(&nic->no_lanes, status, ucs_get_time()) ?
                    UCS_LOG_LEVEL_DEBUG :
            (own->shortages[UCT_VARUNA_SHORT_MR].backoff.failures > 0) ?
                    UCS_LOG_LEVEL_DIAG : UCS_LOG_LEVEL_WARN;
    pthread_mutex_unlock(&md->lock);
    return level;
}

int uct_varuna_choice_leave_out(uct_varuna_iface_t *iface, ucs_status_t status)
{
    unsigned link = iface->opening.failed;
    ucs_log_level_t level;

    if ((link == UCT_VARUNA_LINK_NONE) || (iface->cmds.left != 0)) {
        return 0; /* It is logged */
    }

    if (!uct_varuna_choice_is_shortage(status) || (iface->num_links == 1)) {
        ucs_error("rc_varuna: %s%s cannot be opened: %s", uct_varuna_link_name(iface, link),
                  (iface->num_links == 1) ? ", the last link," : "",
                  ucs_status_string(status));
        return 0;
    }

    level = uct_varuna_choice_note(iface, link, status);
    ucs_log(level,
            "rc_varuna: %s cannot be opened (%s): until this process opens another interface "
            "only other links carry its traffic", uct_varuna_link_name(iface, link),
            ucs_status_string(status));
    uct_varuna_choice_remove(iface, link);
    return 1;
}

void uct_varuna_choice_done(uct_varuna_iface_t *iface)
{
    uct_varuna_md_t *md = iface->md;
    unsigned link, failures;

    for (link = 0; link < iface->num_links; ++link) {
        pthread_mutex_lock(&md->lock);
        failures = uct_varuna_backoff_succeeded(&md->nics[iface->links[link].nic].no_lanes);
        pthread_mutex_unlock(&md->lock);
        if (failures > 0) {
            ucs_diag("rc_varuna: %s is open, after %u failures",
                     uct_varuna_link_name(iface, link), failures);
        }
    }
}

uint8_t uct_varuna_lanes_nics(const uct_varuna_iface_t *iface)
{
    uint8_t nics = 0;
    unsigned link;

    for (link = 0; link < iface->num_links; ++link) {
        nics |= UCS_BIT(iface->md->nics[iface->links[link].nic].owner);
    }

    return nics;
}
