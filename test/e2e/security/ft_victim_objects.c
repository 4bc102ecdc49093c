/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Count rc_varuna's objects for peers, in its structures. See ft_victim.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "ft_victim.h"

#include <uct/ib/varuna/responder/varuna_responder.h>
#include <uct/ib/varuna/requester/varuna_ep.h>

#include <stdio.h>
#include <string.h>

static void ft_objects_add_target(ft_objects_t *objects, uct_varuna_target_t *target)
{
    unsigned i;

    objects->held += target->held.num;
    for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
        objects->rc += (target->qps[i].ep != NULL);
    }
}

void ft_objects_get(const ft_uct_t *uct, ft_objects_t *objects)
{
    uct_varuna_iface_t *iface    = ucs_derived_of(uct->iface, uct_varuna_iface_t);
    uct_varuna_ctl_t *ctl        = iface->ctl;
    uct_varuna_responder_t *resp = iface->responder;
    uct_varuna_target_t *target;

    memset(objects, 0, sizeof(*objects));
    uct_varuna_ctl_lock(ctl);
    objects->targets = kh_size(&resp->targets.by_name);
    objects->orphans = ucs_list_length(&resp->targets.orphans);
    objects->peers   = kh_size(&ctl->peers);
    objects->ctl_eps = kh_size(&ctl->eps);
    objects->inbox   = ctl->bus.inbox_len;
    objects->queue   = ctl->queue.len;
    kh_foreach_value(&resp->targets.by_name, target, {
        ft_objects_add_target(objects, target);
    });
    uct_varuna_ctl_unlock(ctl);
}

void ft_objects_max(ft_objects_t *objects, const ft_objects_t *other)
{
    objects->targets = ucs_max(objects->targets, other->targets);
    objects->orphans = ucs_max(objects->orphans, other->orphans);
    objects->peers   = ucs_max(objects->peers, other->peers);
    objects->ctl_eps = ucs_max(objects->ctl_eps, other->ctl_eps);
    objects->held    = ucs_max(objects->held, other->held);
    objects->inbox   = ucs_max(objects->inbox, other->inbox);
    objects->queue   = ucs_max(objects->queue, other->queue);
    objects->rc      = ucs_max(objects->rc, other->rc);
}

void ft_objects_print(const char *what, const ft_objects_t *objects)
{
    printf("ft: %s targets %u orphans %u peers %u eps %u held %u inbox %u queue %u "
           "rc %u\n", what, objects->targets, objects->orphans, objects->peers,
           objects->ctl_eps, objects->held, objects->inbox, objects->queue,
           objects->rc);
}

unsigned long ft_objects_switches(uct_ep_h ep)
{
    return ucs_derived_of(ep, uct_varuna_ep_t)->stats.switches;
}
