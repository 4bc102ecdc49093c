/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Links that succeed those whose NIC was reset. See varuna_tl_iface.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_tl_iface.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/responder/varuna_responder.h>

#include <ucs/arch/bitops.h>
#include <ucs/debug/log.h>


/* Nobody sees the link before all of it is there: the control plane has the lock. */
static ucs_status_t uct_varuna_join_ctl(uct_varuna_iface_t *base, unsigned former,
                                        const char *dev_name)
{
    ucs_status_t status;

    uct_varuna_ctl_lock(base->ctl);
    status = uct_varuna_ctl_link_open_next(base->ctl, dev_name);
    if (status == UCS_OK) {
        base->links[former].is_former = 1;
        uct_varuna_link_table_add(&base->link_table);
        uct_varuna_lanes_join(base);
        uct_varuna_ctl_join(base->ctl, former);
    }
    uct_varuna_ctl_unlock(base->ctl);
    return status;
}

static ucs_status_t uct_varuna_join_open(uct_varuna_iface_t *base, unsigned former,
                                         unsigned nic)
{
    unsigned link = base->num_links;
    ucs_status_t status;

    if ((link == UCT_VARUNA_MAX_LINKS) || uct_varuna_md_is_nic_dead(base->md, nic)) {
        return UCS_ERR_NO_DEVICE;
    }

    status = uct_varuna_spares_add_link(base->responder, link);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_lanes_open_next(base, nic);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_join_ctl(base, former, base->md->nics[nic].dev_name);
    if (status != UCS_OK) {
        uct_varuna_lanes_close_next(base);
        return status;
    }

    if (base->links[link].is_late) {
        uct_varuna_link_down(base, link, UCT_VARUNA_LINK_CAUSE_PORT, "its port is down");
    }
    return UCS_OK;
}

/* The user is told once, whatever number of interfaces there are */
static void uct_varuna_join_succeeded(uct_varuna_tl_iface_t *iface, unsigned former)
{
    uct_varuna_iface_t *base = &iface->super.super;
    unsigned link            = base->num_links - 1;
    uct_varuna_nic_t *nic    = &base->md->nics[base->links[link].nic];
    ucs_log_level_t level    = __atomic_exchange_n(&nic->is_told, 1, __ATOMIC_RELAXED) ?
                               UCS_LOG_LEVEL_INFO : UCS_LOG_LEVEL_WARN;

    uct_varuna_admin_succeed_link(&iface->admin, former, nic->dev_name,
                                  iface->super.link_stats[link].fences);
    ucs_log(level, "rc_varuna: %s works again, and is used again: it comes after the other "
            "links", nic->dev_name);
}

static void uct_varuna_join_failed(uct_varuna_tl_iface_t *iface, unsigned former,
                                   ucs_status_t status, ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;

    if (uct_varuna_backoff_failed(&iface->joins[former], status, now)) {
        ucs_warn("rc_varuna: %s works again, and cannot be used yet: %s",
                 uct_varuna_link_name(base, former), ucs_status_string(status));
    }
}

/* Interfaces that are opened while their port is down have no address yet: wait for it */
static int uct_varuna_join_is_active(const uct_varuna_md_t *md, unsigned nic)
{
    return uct_varuna_mlx5_port_renew(md->nics[nic].md, md->nics[nic].dev_name);
}

static void uct_varuna_join_step(uct_varuna_tl_iface_t *iface, unsigned former)
{
    uct_varuna_iface_t *base = &iface->super.super;
    ucs_time_t now           = uct_varuna_ctl_now(base->ctl);
    unsigned nic             = uct_varuna_return_latest(base->md, base->links[former].nic);
    ucs_status_t status;

    if (base->links[former].is_former || (nic == base->links[former].nic) ||
        !uct_varuna_backoff_is_due(&iface->joins[former], now) ||
        !uct_varuna_join_is_active(base->md, nic)) {
        return; /* It is looked at again */
    }

    status = uct_varuna_join_open(base, former, nic);
    if (status == UCS_OK) {
        uct_varuna_join_succeeded(iface, former);
    } else {
        uct_varuna_join_failed(iface, former, status, now);
    }
}

void uct_varuna_join_all(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_ctl_t *ctl = iface->super.super.ctl;
    unsigned link, links;

    uct_varuna_ctl_lock(ctl);
    links      = ctl->announce.joins;
    ctl->announce.joins = 0; /* What fails is asked for again */
    uct_varuna_ctl_unlock(ctl);

    ucs_for_each_bit(link, links) {
        uct_varuna_join_step(iface, link);
    }
}
