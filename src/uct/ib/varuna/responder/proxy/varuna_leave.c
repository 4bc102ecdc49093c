/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * One interface's part in moving the home NIC (rule 12): when its port goes down or
 * it dies, and back to where it was when that works again. Before another NIC is
 * named, what peers have connected to the old one is in ERR, and so is our
 * loopback; or the NIC is gone. What may be on its way then gets its time.
 *
 * Requesters post compare and swaps on RC only, and the loopback's DC target has no
 * other user, so there is nothing else that the old NIC could execute. In mode proxy
 * requesters post none at all: their connections have nothing to do with the home
 * NIC, and stay as they are.
 *
 * Async context, lock held.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/ctl/varuna_ctl_priv.h>
#include <uct/ib/varuna/core/varuna_mutate.h>
#include "varuna_proxy.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>

/* Seconds: how long an access may take before the device is asked how it is; how
 * long a NIC is avoided whose loopback fails; how long the first NIC must have
 * worked before the home returns to it */
#define UCT_VARUNA_LEAVE_CHECK       0.1
#define UCT_VARUNA_LEAVE_AVOID       1.0
#define UCT_VARUNA_LEAVE_RETURN      1.0

/* Failures of a loopback in a row, with a port that says that it is up */
#define UCT_VARUNA_LEAVE_MAX_FAILS   3


static int uct_varuna_leave_is_gone(uct_varuna_proxy_t *proxy, unsigned link)
{
    uct_varuna_loopback_t *loopback = &proxy->loopbacks[link];

    if ((loopback->gone_at == 0) &&
        uct_varuna_ctl_is_nic_gone(proxy->ctl, link)) {
        loopback->gone_at = ucs_get_time();
    }

    return loopback->gone_at != 0;
}

static uint8_t uct_varuna_leave_good_map(uct_varuna_proxy_t *proxy)
{
    const uct_varuna_iface_t *iface = proxy->ctl->iface;
    ucs_time_t now                  = ucs_get_time();
    uint8_t map                     = 0;
    uct_varuna_loopback_t *loopback;
    unsigned link;

    for (link = 0; link < iface->num_links; ++link) {
        loopback = &proxy->loopbacks[link];
        if (loopback->fails >= UCT_VARUNA_LEAVE_MAX_FAILS) {
            loopback->fails     = 0;
            loopback->bad_until = now +
                                  ucs_time_from_sec(UCT_VARUNA_LEAVE_AVOID);
        }

        if (!(proxy->ctl->ports_down & UCS_BIT(link)) &&
            !uct_varuna_leave_is_gone(proxy, link) &&
            (now >= loopback->bad_until)) {
            map |= UCS_BIT(iface->links[link].nic);
        }
    }

    return map;
}

/* An access that takes long: perhaps an event was lost, or there is none. */
static void uct_varuna_leave_check_device(uct_varuna_proxy_t *proxy)
{
    uct_varuna_ctl_t *ctl = proxy->ctl;

    if (proxy->running && (ctl->detector != NULL) &&
        ((ucs_get_time() - proxy->running_at) >
         ucs_time_from_sec(UCT_VARUNA_LEAVE_CHECK))) {
        uct_varuna_detector_check(ctl->detector, proxy->running_on,
                                  !(ctl->ports_down &
                                    UCS_BIT(proxy->running_on)));
    }
}

/* @return Nonzero if requesters have slots of ours, which they need for atomics on
 * connections of theirs. */
static int uct_varuna_leave_has_posters(const uct_varuna_proxy_t *proxy)
{
    return proxy->arena.slots != NULL;
}

/* Connections in use on a NIC: the newest one of a target there, or one that is
 * just being replaced. */
static unsigned uct_varuna_leave_count(uct_varuna_proxy_t *proxy, uint8_t nic)
{
    uct_varuna_ctl_t *ctl = proxy->ctl;
    unsigned count        = 0;
    uct_varuna_target_impl_t *impl;
    const uct_varuna_target_qp_t *qp, *newest;
    uct_varuna_target_t *target;
    unsigned i;

    if (!uct_varuna_leave_has_posters(proxy)) {
        return 0;
    }

    kh_foreach_value(&ctl->targets.by_name, target, {
        impl   = uct_varuna_target_impl(target);
        newest = NULL;
        for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
            qp = &impl->qps[i];
            if ((qp->ep != NULL) && !(qp->flags & UCT_VARUNA_FENCE_FLAG_QP) &&
                ((newest == NULL) || (qp->epoch > newest->epoch))) {
                newest = qp;
            }
        }

        if ((newest != NULL) &&
            ((ctl->iface->links[newest->link].nic == nic) ||
             ((ucs_get_time() - newest->attached_at) <
              ucs_time_from_sec(UCT_VARUNA_LEAVE_RETURN)))) {
            ++count;
        }
    });

    return count;
}

/* Move what may carry atomics over @a link to ERR. @return Nonzero if all of it is
 * there. */
static int uct_varuna_leave_fence(uct_varuna_proxy_t *proxy, unsigned link)
{
    uct_varuna_target_table_t *table = &proxy->ctl->targets;
    int fenced                       = 1;
    uct_varuna_target_t *target;
    uct_varuna_target_qp_t *qp;
    uint64_t key;
    unsigned i;

    if (!uct_varuna_leave_has_posters(proxy) ||
        uct_varuna_mutate(AMO_MOVE_UNFENCED)) {
        return 1;
    }

    kh_foreach(&table->rc_eps, key, target, {
        for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
            qp = &uct_varuna_target_impl(target)->qps[i];
            if (((uintptr_t)qp->ep == key) && (qp->link == link)) {
                uct_varuna_target_fence_qp(target, qp);
                fenced &= !!(qp->flags & UCT_VARUNA_FENCE_FLAG_QP);
            }
        }
    });

    return fenced;
}

/* The access that a NIC took along. */
static void uct_varuna_leave_abandon(uct_varuna_proxy_t *proxy, unsigned link)
{
    uct_varuna_access_t *access;
    uct_varuna_job_t *job;

    if (!proxy->running || (proxy->running_on != link)) {
        return;
    }

    access = ucs_calloc(1, sizeof(*access), "varuna_access");
    if (access == NULL) {
        ucs_fatal("no memory for an atomic");
    }

    job                  = ucs_list_head(&proxy->jobs, uct_varuna_job_t, list);
    proxy->access->proxy = NULL;
    ucs_list_add_tail(&proxy->lost, &proxy->access->list);
    proxy->access        = access;
    proxy->running       = 0;
    uct_varuna_job_failed(proxy, job, UCS_ERR_ENDPOINT_TIMEOUT);
}

/* @return Nonzero if nothing on @a link is executed any more. */
static int uct_varuna_leave_is_at_rest(uct_varuna_proxy_t *proxy,
                                       unsigned link)
{
    uct_varuna_loopback_t *loopback = &proxy->loopbacks[link];
    ucs_time_t now                  = ucs_get_time();
    int fenced                      = uct_varuna_leave_fence(proxy, link);

    if (uct_varuna_leave_is_gone(proxy, link)) {
        if ((now - loopback->gone_at) <
            proxy->ctl->iface->config.packet_lifetime) {
            return 0;
        }
        uct_varuna_leave_abandon(proxy, link);
        return 1;
    }

    if (!fenced) {
        if (proxy->ctl->detector != NULL) {
            uct_varuna_detector_check(proxy->ctl->detector, link, 0);
        }
        return 0;
    }

    if (proxy->running && (proxy->running_on == link)) {
        /* Its completion comes: with success, or since the loopback is in ERR */
        if (!loopback->in_err && (loopback->ep != NULL) &&
            !loopback->ep->failed &&
            (uct_varuna_compat_ep_invalidate(loopback->ep->inner) == UCS_OK)) {
            loopback->in_err = 1;
        }
        return 0;
    }

    return now >= proxy->rest_at;
}

void uct_varuna_leave_step(uct_varuna_proxy_t *proxy)
{
    const uct_varuna_iface_t *iface = proxy->ctl->iface;
    uct_varuna_home_name_t name;
    unsigned in_use;
    ucs_time_t delay;
    uint8_t link;

    if (!proxy->joined) {
        return;
    }

    uct_varuna_leave_check_device(proxy);
    uct_varuna_home_get(&name);
    in_use = ((name.nic == UCT_VARUNA_HOME_NONE) ||
              (name.nic == name.first)) ? 0 :
             uct_varuna_leave_count(proxy, name.nic);
    delay  = !iface->link_table.return_to_primary ? 0 :
             (ucs_time_from_sec(UCT_VARUNA_LEAVE_RETURN) +
              iface->link_table.return_delay);
    if (uct_varuna_home_report(&proxy->home, uct_varuna_leave_good_map(proxy),
                               in_use, delay)) {
        uct_varuna_home_get(&name);
        ucs_info("rc_varuna: atomics on memory of this process move from %s to "
                 "%s", iface->md->nics[name.from].dev_name,
                 iface->md->nics[name.to].dev_name);
        ++proxy->stats.moved;
    }

    uct_varuna_home_get(&name);
    if (name.nic != UCT_VARUNA_HOME_NONE) {
        return;
    }

    link = uct_varuna_proxy_find_link(proxy, name.from);
    if (((link == UCT_VARUNA_LINK_NONE) ||
         uct_varuna_leave_is_at_rest(proxy, link)) &&
        uct_varuna_home_rest(&proxy->home)) {
        ucs_debug("nothing is executed on %s any more: the home NIC is %s",
                  iface->md->nics[name.from].dev_name,
                  iface->md->nics[name.to].dev_name);
    }
}
