/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An interface as a user of rc_varuna_ctl and rc_varuna.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_tl_iface.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_bus.h>
#include <uct/ib/varuna/ctl/varuna_ports.h>
#include <uct/ib/varuna/ctl/varuna_witness.h>
#include <uct/ib/varuna/lanes/varuna_lanes.h>

static void uct_varuna_admin_iface_wake(void *arg)
{
    uct_varuna_iface_t *base = arg;

    uct_varuna_ctl_poke(base->ctl);
}

static const char *uct_varuna_admin_iface_nic_state(void *arg, unsigned link)
{
    uct_varuna_iface_t *base = arg;

    return uct_varuna_nic_state_names[
            uct_varuna_md_nic_state(base->md, base->links[link].nic)];
}

/* The threads of a UCP worker have this lock in progress, and while they close it */
static int uct_varuna_admin_iface_list_peers(void *arg, const char *prefix,
                                             ucs_string_buffer_t *text)
{
    uct_varuna_iface_t *base = arg;

    if (!uct_varuna_ctl_try_lock(base->ctl)) {
        return 0;
    }

    uct_varuna_ways_list(base->ctl, prefix, text);
    uct_varuna_ctl_unlock(base->ctl);
    return 1;
}

static void uct_varuna_admin_iface_quiesce(void *arg)
{
    uct_varuna_iface_t *base = arg;

    uct_varuna_ctl_unlisten(base->ctl);
}

void uct_varuna_admin_iface_register(uct_varuna_tl_iface_t *iface,
                                     const char *ctl_dir)
{
    uct_varuna_iface_t *base  = &iface->super.super;
    uct_varuna_admin_t *admin = &iface->admin;
    unsigned link;

    admin->num_links  = base->num_links;
    admin->wake       = uct_varuna_admin_iface_wake;
    admin->nic_state  = uct_varuna_admin_iface_nic_state;
    admin->list_peers = uct_varuna_admin_iface_list_peers;
    admin->quiesce    = uct_varuna_admin_iface_quiesce;
    admin->arg        = base;
    for (link = 0; link < base->num_links; ++link) {
        admin->names[link]  = uct_varuna_link_name(base, link);
        admin->fences[link] = uct_varuna_requester(base)->link_stats[link].fences;
    }

    uct_varuna_admin_register(admin);
    uct_varuna_admin_sock_start(ctl_dir);
    uct_varuna_admin_iface_obey(iface, ucs_get_time());
}

void uct_varuna_admin_iface_unregister(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_admin_sock_stop();
    uct_varuna_admin_unregister(&iface->admin);
}

void uct_varuna_admin_iface_obey(uct_varuna_tl_iface_t *iface, ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;
    unsigned retired         = 0;
    unsigned link;

    if (ucs_likely(!uct_varuna_admin_is_behind(&iface->admin))) {
        return;
    }

    if (uct_varuna_admin_sync(&iface->admin, &base->link_table, now) != 0) {
        uct_varuna_link_raise(base);
    }

    for (link = 0; link < base->num_links; ++link) {
        if (base->link_table.links[link].causes & UCT_VARUNA_LINK_CAUSE_ADMIN) {
            retired |= UCS_BIT(link);
        }
    }
    uct_varuna_ports_retire(base->ctl, retired, iface->admin.failed);
}
