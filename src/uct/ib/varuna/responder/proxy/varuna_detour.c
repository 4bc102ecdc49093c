/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See varuna_detour.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_detour.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_ctl_ep.h>
#include <uct/ib/varuna/ctl/varuna_ctl_progress.h>
#include <uct/ib/varuna/md/varuna_md_end.h>

#include <ucs/debug/log.h>
#include <string.h>

/* Seconds after which what a NIC has received is in memory, when nothing more comes from its
 * port. This is an assumption (docs/HARDWARE.md, 21): writes have no time limit on PCI Express,
 * and this is the default one of requests with an answer (Completion Timeout). The lifetime of
 * packets is for networks. */
#define UCT_VARUNA_DETOUR_PCI_TIME   50e-3

static uint8_t uct_varuna_detour_home_link(const uct_varuna_proxy_t *proxy)
{
    uct_varuna_home_name_t home;

    uct_varuna_home_get(&home);
    return uct_varuna_proxy_find_link(proxy, home.nic);
}

void uct_varuna_detour_port_changed(uct_varuna_proxy_t *proxy)
{
    uint8_t home = uct_varuna_detour_home_link(proxy);

    if ((home == UCT_VARUNA_LINK_NONE) || !(proxy->ctl->ports_down & UCS_BIT(home))) {
        proxy->detour.down_at = 0;
    } else if (proxy->detour.down_at == 0) {
        proxy->detour.down_at = uct_varuna_ctl_now(proxy->ctl);
    }
}

/* A port that is down accepts nothing, unless it only counts as down because its address has
 * changed. We wait once for what it had accepted, and not again until the port is back. A NIC
 * that is gone may accept until it is taken away. */
static int uct_varuna_detour_home_is_at_rest(uct_varuna_proxy_t *proxy, unsigned home)
{
    const uct_varuna_ctl_t *ctl     = proxy->ctl;
    const uct_varuna_iface_t *iface = ctl->iface;
    ucs_time_t now                  = uct_varuna_ctl_now(ctl);

    if (uct_varuna_ctl_is_nic_gone(ctl, home)) {
        return uct_varuna_md_is_at_rest(iface->md, iface->links[home].nic, now,
                                        iface->config.packet_lifetime);
    }

    uct_varuna_detour_port_changed(proxy); /* It may be down since before all requests */
    return (proxy->detour.down_at != 0) && !(ctl->moves.links & UCS_BIT(home)) &&
           ((now - proxy->detour.down_at) >=
            ucs_min(iface->config.packet_lifetime,
                    ucs_time_from_sec(UCT_VARUNA_DETOUR_PCI_TIME)));
}

/* What was accepted before a request came for the first time is in memory after a packet
 * lifetime. If the detour does not work, the request comes again. */
static int uct_varuna_detour_has_waited(uct_varuna_proxy_t *proxy,
                                        uct_varuna_cpu_client_t *client,
                                        const uct_varuna_ctl_atomic_req_t *req)
{
    uint64_t end   = req->first + req->count;
    ucs_time_t now = uct_varuna_ctl_now(proxy->ctl);

    if (end > client->detour.end) {
        client->detour.end   = end;
        client->detour.since = now;
    }

    return (now - client->detour.since) >= proxy->ctl->iface->config.packet_lifetime;
}

static int uct_varuna_detour_is_known(const uct_varuna_cpu_client_t *client,
                                      const uct_varuna_ctl_atomic_req_t *req)
{
    return (client->kept != NULL) && ((req->first + req->count) <= client->kept->next);
}

static void uct_varuna_detour_send(uct_varuna_proxy_t *proxy, unsigned home,
                                   unsigned via, const uct_varuna_ctl_hdr_t *hdr)
{
    size_t length = sizeof(*hdr) + hdr->length + hdr->from_device_len + hdr->from_ctl_len;
    char data[UCT_VARUNA_CTL_MAX_MSG];
    uct_varuna_ctl_atomic_req_t *req;
    ucs_status_t status;

    if ((length > sizeof(data)) || (proxy->ctl->ports_down & UCS_BIT(home)) ||
        !uct_varuna_proxy_use_loopback(proxy, home)) {
        return;
    }

    memcpy(data, hdr, length);
    req      = (uct_varuna_ctl_atomic_req_t*)(data + sizeof(*hdr));
    req->via = via + 1;
    status   = uct_varuna_ctl_ep_post(proxy->loopbacks[home].ep->inner, data, length);
    if (status != UCS_OK) {
        ucs_debug("a request cannot make its detour over the home NIC: %s",
                  ucs_status_string(status));
    }
}

int uct_varuna_detour_is_over(uct_varuna_proxy_t *proxy,
                              uct_varuna_cpu_client_t *client, unsigned link,
                              const uct_varuna_ctl_hdr_t *hdr,
                              const uct_varuna_ctl_atomic_req_t *req,
                              unsigned *link_p)
{
    unsigned home = uct_varuna_detour_home_link(proxy);

    *link_p = link;
    if (link == home) {
        if ((req->via > 0) && (req->via <= proxy->ctl->num_links)) {
            *link_p = req->via - 1;
        }
        return 1;
    }

    if (uct_varuna_detour_is_known(client, req) ||
        uct_varuna_detour_has_waited(proxy, client, req)) {
        return 1;
    }

    if (home == UCT_VARUNA_LINK_NONE) {
        return 0;
    }

    if (uct_varuna_detour_home_is_at_rest(proxy, home)) {
        return 1;
    }

    uct_varuna_detour_send(proxy, home, link, hdr);
    return 0;
}
