/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An interface's part in the home NIC. See varuna_home_nic.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_home_nic.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>

#include <ucs/debug/log.h>
#include <string.h>

void uct_varuna_home_nic_init(uct_varuna_home_nic_t *nic, uct_varuna_ctl_t *ctl)
{
    memset(nic, 0, sizeof(*nic));
    nic->ctl            = ctl;
    nic->member.at_rest = 1;
}

void uct_varuna_home_nic_join(uct_varuna_home_nic_t *nic)
{
    const uct_varuna_iface_t *iface = nic->ctl->iface;
    uint8_t map                     = 0;
    unsigned link;

    if (nic->joined) {
        return;
    }

    for (link = 0; link < iface->num_links; ++link) {
        map |= UCS_BIT(iface->links[link].nic);
    }

    uct_varuna_home_name_join(&nic->member, iface->links[0].nic, map, nic->ctl->events.kick_fd);
    nic->joined = 1;
}

uint8_t uct_varuna_home_nic_find_link(const uct_varuna_home_nic_t *nic, uint8_t index)
{
    const uct_varuna_iface_t *iface = nic->ctl->iface;
    unsigned link;

    for (link = 0; link < iface->num_links; ++link) {
        if (iface->links[link].nic == index) {
            return link;
        }
    }

    return UCT_VARUNA_LINK_NONE;
}

/* --- Loopbacks --- */

static ucs_status_t uct_varuna_home_nic_open_loopback(uct_varuna_home_nic_t *nic,
                                                      unsigned link)
{
    uct_varuna_ctl_t *ctl = nic->ctl;

    return uct_varuna_ctl_ep_create(ctl, link, ctl->iface->links[link].device_addr,
                                    ctl->links[link].addr,
                                    &nic->loopbacks[link].ep);
}

/* A failed one is not destroyed in its own callbacks, nor before it is drained: UCX
 * would not give its DCI back, and without DCIs there are no control messages. */
int uct_varuna_home_nic_use_loopback(uct_varuna_home_nic_t *nic, unsigned link)
{
    uct_varuna_loopback_t *loopback = &nic->loopbacks[link];

    if ((loopback->ep != NULL) && loopback->ep->failed) {
        ucs_debug("a loopback failed");
        loopback->dead = loopback->ep;
        loopback->ep   = NULL;
    }

    if (loopback->dead != NULL) {
        if (nic->ctl->progressing ||
            !uct_varuna_ctl_ep_is_drained(nic->ctl, loopback->dead)) {
            return 0;
        }
        uct_varuna_ctl_ep_destroy(nic->ctl, loopback->dead);
        loopback->dead = NULL;
    }

    return (loopback->ep != NULL) ||
           (uct_varuna_home_nic_open_loopback(nic, link) == UCS_OK);
}

void uct_varuna_home_nic_cleanup(uct_varuna_home_nic_t *nic)
{
    unsigned link;

    for (link = 0; link < UCT_VARUNA_MAX_LINKS; ++link) {
        if (nic->loopbacks[link].ep != NULL) {
            uct_varuna_ctl_ep_destroy(nic->ctl, nic->loopbacks[link].ep);
        }
        if (nic->loopbacks[link].dead != NULL) {
            uct_varuna_ctl_ep_destroy(nic->ctl, nic->loopbacks[link].dead);
        }
    }

    /* Nothing of ours is on any NIC now */
    if (nic->joined) {
        uct_varuna_home_name_leave(&nic->member);
    }
}
