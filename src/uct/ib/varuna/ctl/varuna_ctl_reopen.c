/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opens the control plane's interface of a link once more. See varuna_ctl_reopen.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ctl_reopen.h"
#include "varuna_ctl_ep.h"
#include "varuna_ctl_open.h"
#include "varuna_notify.h"
#include "varuna_peer.h"
#include "varuna_stranger.h"

#include <ucs/debug/log.h>

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
    uct_varuna_ctl_signal(ctl->kick_fd); /* Arms it */
    return UCS_OK;
}

ucs_status_t uct_varuna_ctl_link_reopen(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_ctl_link_t old;
    ucs_status_t status;

    ucs_assert(!ctl->progressing);
    uct_varuna_ctl_drop_link_eps(ctl, link);
    uct_varuna_ctl_destroy_link_eps(ctl, link);
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
