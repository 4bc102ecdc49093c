/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Links whose NIC goes and comes back. See varuna_tl_iface.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_tl_iface.h"
#include <uct/ib/varuna/ctl/varuna_ports.h>
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/requester/varuna_requester.h>
#include <uct/ib/varuna/responder/varuna_fence.h>
#include <uct/ib/varuna/responder/varuna_responder.h>

#include <ucs/arch/bitops.h>
#include <ucs/debug/log.h>

/* Seconds for a requester that was told to leave a link, to ask for a connection on another */
#define UCT_VARUNA_JOIN_QUIET        1


/* --- Closing --- */

static void uct_varuna_join_show(uct_varuna_tl_iface_t *iface, unsigned link, unsigned endpoints,
                                 unsigned targets, unsigned connections)
{
    const uint32_t waits[UCT_VARUNA_ADMIN_WAIT_LAST] = {
        [UCT_VARUNA_ADMIN_WAIT_ENDPOINTS]   = endpoints,
        [UCT_VARUNA_ADMIN_WAIT_TARGETS]     = targets,
        [UCT_VARUNA_ADMIN_WAIT_BUFFERS]     = iface->super.super.links[link].num_kept,
        [UCT_VARUNA_ADMIN_WAIT_CONNECTIONS] = connections
    };

    uct_varuna_admin_show_waits(&iface->admin, link, waits);
}

/* Peers leave it as if its port were down */
static void uct_varuna_join_announce_down(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_ctl_lock(ctl);
    if (!(ctl->ports.down & UCS_BIT(link))) {
        ctl->ports.down |= UCS_BIT(link);
        uct_varuna_ports_changed(ctl, link);
    }
    uct_varuna_ctl_unlock(ctl);
}

/* The registrations of our own memory are on the device, not on one of its ports. Lock held */
static void uct_varuna_join_leave_device(uct_varuna_iface_t *base, unsigned link)
{
    const uct_varuna_md_t *md = base->md;
    unsigned owner            = md->nics[base->links[link].nic].owner;
    unsigned other;

    for (other = 0; other < base->num_links; ++other) {
        if (!base->links[other].is_closed && (other != link) &&
            (md->nics[base->links[other].nic].owner == owner)) {
            return;
        }
    }

    uct_varuna_target_logs_leave(base->responder, owner);
}

/* No endpoint of ours or of peers is on it. @return Why it is not closed yet, NULL: it is. */
static const char *uct_varuna_join_close(uct_varuna_tl_iface_t *iface, unsigned link)
{
    uct_varuna_iface_t *base = &iface->super.super;
    const char *obstacle     = NULL;

    if (uct_varuna_requester_is_on_link(&iface->super, link)) {
        return "queue pairs of endpoints";
    } else if (uct_varuna_lanes_are_used(base, link)) {
        return "queue pairs that rest, or buffers";
    }

    uct_varuna_ctl_lock(base->ctl);
    if (uct_varuna_responder_is_on_link(base->responder, link)) {
        obstacle = "queue pairs of peers";
    } else if (!uct_varuna_ctl_link_is_closable(base->ctl, link)) {
        obstacle = "control messages";
    } else {
        uct_varuna_arrival_close(base->responder, link);
        uct_varuna_join_leave_device(base, link);
        uct_varuna_ctl_link_close(base->ctl, link);
        uct_varuna_lanes_close_link(base, link);
    }
    uct_varuna_ctl_unlock(base->ctl);
    return obstacle;
}

/* The NIC's life is over. @return Whether the link is closed. */
static int uct_varuna_join_step_end(uct_varuna_tl_iface_t *iface, unsigned link, ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;
    int is_ended             = uct_varuna_md_is_at_rest(base->md, base->links[link].nic, now,
                                                        base->config.packet_lifetime);
    const char *obstacle;
    unsigned endpoints, targets;

    uct_varuna_join_announce_down(base->ctl, link);
    endpoints = uct_varuna_requester_leave_link(&iface->super, link, is_ended);
    targets   = uct_varuna_responder_leave_link(base->responder, link, 1, is_ended);
    if (is_ended) {
        uct_varuna_graves_end(base, link);
    }

    obstacle = (!is_ended || (endpoints > 0) || (targets > 0)) ? "endpoints" :
               uct_varuna_join_close(iface, link);
    uct_varuna_join_show(iface, link, endpoints, targets, obstacle != NULL);
    if (obstacle != NULL) {
        ucs_trace("rc_varuna: link %s is not closed yet: %s", uct_varuna_link_name(base, link),
                  obstacle);
        return 0;
    }

    ucs_info("rc_varuna: link %s is closed", uct_varuna_link_name(base, link));
    return 1;
}

/* @return Whether no peer has left a link for so long that those which can have. */
static int uct_varuna_join_is_quiet(uct_varuna_tl_iface_t *iface, unsigned link, ucs_time_t now)
{
    return (iface->leaves[link].since != 0) &&
           ((now - iface->leaves[link].since) > (ucs_time_from_sec(UCT_VARUNA_JOIN_QUIET) +
                                                 iface->super.super.config.packet_lifetime));
}

/* The NIC is to be removed, and works. It is closed when no interface uses it. */
static void uct_varuna_join_step_leave(uct_varuna_tl_iface_t *iface, unsigned link,
                                       ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;
    int is_quiet             = uct_varuna_join_is_quiet(iface, link, now);
    unsigned endpoints       = uct_varuna_requester_leave_link(&iface->super, link, 0);
    unsigned targets         = uct_varuna_responder_leave_link(base->responder, link, 0,
                                                               is_quiet);

    if ((iface->leaves[link].since == 0) || (iface->leaves[link].targets != targets)) {
        iface->leaves[link].since   = now;
        iface->leaves[link].targets = targets;
    }

    uct_varuna_join_show(iface, link, endpoints, targets, 0);
    uct_varuna_md_link_set_left(base->md, base->links[link].nic,
                                (endpoints == 0) && (targets == 0), &base->links[link].left);
}


/* --- Opening --- */

/* Nobody sees the link before all of it is there: the control plane has the lock. */
static ucs_status_t uct_varuna_join_open(uct_varuna_iface_t *base, unsigned link)
{
    const char *dev_name = uct_varuna_link_name(base, link);
    ucs_status_t status;

    uct_varuna_ctl_lock(base->ctl);
    status = uct_varuna_lanes_open_link(base, link);
    if (status != UCS_OK) {
        goto out;
    }

    base->ctl->ports.down &= ~UCS_BIT(link); /* Unless the detector says so now */
    status                 = uct_varuna_ctl_link_open(base->ctl, link, dev_name);
    if (status != UCS_OK) {
        base->ctl->ports.down |= UCS_BIT(link);
        uct_varuna_lanes_close_link(base, link);
        goto out;
    }

    uct_varuna_lanes_join(base, link);
    base->ctl->hb.suspects &= ~UCS_BIT(link);
    uct_varuna_ctl_join(base->ctl, link);

out:
    uct_varuna_ctl_unlock(base->ctl);
    return status;
}

/* The user is told once, whatever number of interfaces there are */
static void uct_varuna_join_succeeded(uct_varuna_tl_iface_t *iface, unsigned link)
{
    uct_varuna_iface_t *base = &iface->super.super;
    uct_varuna_nic_t *nic    = &base->md->nics[base->links[link].nic];
    ucs_log_level_t level    = __atomic_exchange_n(&nic->is_told, 1, __ATOMIC_RELAXED) ?
                               UCS_LOG_LEVEL_INFO : UCS_LOG_LEVEL_WARN;

    (void)uct_varuna_backoff_succeeded(&iface->joins[link]);
    uct_varuna_admin_iface_nic_is_back(iface, link);
    if (base->links[link].is_late) {
        uct_varuna_link_down(base, link, UCT_VARUNA_LINK_CAUSE_PORT, "its port is down");
    } else {
        uct_varuna_link_up(base, link, UCT_VARUNA_LINK_CAUSE_PORT);
    }
    /* What was found out in its former life */
    uct_varuna_link_up(base, link, UCT_VARUNA_LINK_CAUSE_HEARTBEAT);
    uct_varuna_link_up(base, link, UCT_VARUNA_LINK_CAUSE_ADDRESS);
    ucs_log(level, "rc_varuna: %s works again, and is used again", nic->dev_name);
}

static void uct_varuna_join_failed(uct_varuna_tl_iface_t *iface, unsigned link,
                                   ucs_status_t status, ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;

    if (uct_varuna_backoff_failed(&iface->joins[link], status, now)) {
        ucs_warn("rc_varuna: %s works again, and cannot be used yet: %s",
                 uct_varuna_link_name(base, link), ucs_status_string(status));
    }
}

/* Interfaces that are opened while their port is down have no address yet: wait for it */
static int uct_varuna_join_is_active(uct_varuna_md_t *md, unsigned nic)
{
    int is_active;

    if (uct_varuna_md_is_nic_dead(md, nic) || !uct_varuna_md_use(md, nic)) {
        return 0;
    }

    is_active = uct_varuna_mlx5_port_renew(md->nics[nic].md, md->nics[nic].dev_name);
    uct_varuna_md_unuse(md, nic);
    return is_active;
}

static void uct_varuna_join_step_begin(uct_varuna_tl_iface_t *iface, unsigned link,
                                       ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;
    ucs_status_t status;

    if (!uct_varuna_backoff_is_due(&iface->joins[link], now) ||
        !uct_varuna_join_is_active(base->md, base->links[link].nic)) {
        return; /* It is looked at again */
    }

    status = uct_varuna_join_open(base, link);
    if (status == UCS_OK) {
        uct_varuna_join_succeeded(iface, link);
    } else {
        uct_varuna_join_failed(iface, link, status, now);
    }
}


/* --- Steps --- */

/* @return Whether there is more to do soon. */
static int uct_varuna_join_step_closed(uct_varuna_tl_iface_t *iface, unsigned link,
                                       ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;

    switch (uct_varuna_md_life(base->md, base->links[link].nic)) {
    case UCT_VARUNA_LIFE_OPEN:
        uct_varuna_join_step_begin(iface, link, now);
        break;
    case UCT_VARUNA_LIFE_ENDING:
        /* It was never opened in this life, in which something may be registered */
        uct_varuna_ctl_lock(base->ctl);
        uct_varuna_join_leave_device(base, link);
        uct_varuna_ctl_unlock(base->ctl);
        break;
    default:
        break;
    }

    return 0; /* The control plane looks at it again */
}

/* @return Whether there is more to do soon. */
static int uct_varuna_join_step(uct_varuna_tl_iface_t *iface, unsigned link, ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;

    if (base->links[link].is_closed) {
        return uct_varuna_join_step_closed(iface, link, now);
    }

    if (uct_varuna_md_life(base->md, base->links[link].nic) != UCT_VARUNA_LIFE_LEAVING) {
        iface->leaves[link].since = 0;
    }

    switch (uct_varuna_md_life(base->md, base->links[link].nic)) {
    case UCT_VARUNA_LIFE_LEAVING:
        uct_varuna_join_step_leave(iface, link, now);
        return 1;
    case UCT_VARUNA_LIFE_ENDING:
        return !uct_varuna_join_step_end(iface, link, now);
    default:
        /* It was to be removed, and is not any more */
        uct_varuna_join_show(iface, link, 0, 0, 0);
        uct_varuna_admin_iface_nic_is_back(iface, link);
        return 0;
    }
}

void uct_varuna_join_take(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_ctl_t *ctl = iface->super.super.ctl;

    uct_varuna_ctl_lock(ctl);
    iface->lives        |= ctl->announce.lives;
    ctl->announce.lives  = 0;
    uct_varuna_ctl_unlock(ctl);
}

void uct_varuna_join_scan(uct_varuna_tl_iface_t *iface, ucs_time_t now)
{
    unsigned links = iface->lives;
    unsigned link;

    ucs_for_each_bit(link, links) {
        if (!uct_varuna_join_step(iface, link, now)) {
            iface->lives &= ~UCS_BIT(link);
        }
    }
}
