/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Links that do not suit those of a peer. See varuna_cabling.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_cabling.h"
#include "varuna_ctl.h"
#include <uct/ib/varuna/core/varuna_ib_addr.h>

#include <ucs/arch/atomic.h>
#include <ucs/datastruct/string_buffer.h>
#include <ucs/debug/log.h>
#include <string.h>


static const uct_varuna_parsed_link_t *
uct_varuna_cabling_find(const uct_varuna_parsed_addr_t *parsed, unsigned nic)
{
    unsigned i;

    for (i = 0; i < parsed->num_links; ++i) {
        if (parsed->links[i].nic == nic) {
            return &parsed->links[i];
        }
    }

    return NULL;
}

/* Whether the links of both hosts are in the same order: none crosses @a link, and none shares
 * its far end */
static int uct_varuna_cabling_is_in_order(const uct_varuna_iface_t *iface,
                                          const uct_varuna_cabling_pairs_t *pairs,
                                          unsigned link)
{
    unsigned nic = iface->links[link].nic;
    unsigned far = pairs->nics[link];
    unsigned other;

    ucs_for_each_bit(other, pairs->map & ~UCS_BIT(link)) {
        if ((pairs->nics[other] == far) ||
            ((iface->links[other].nic < nic) != (pairs->nics[other] < far))) {
            return 0;
        }
    }

    return 1;
}

/* Whether a link that reaches a port of another number is right all the same: a host that
 * leaves out a port (it is down, or has nothing at UCX_IB_GID_INDEX) gives the next ones
 * other numbers */
static int uct_varuna_cabling_is_shifted(const uct_varuna_iface_t *iface,
                                         const uct_varuna_cabling_pairs_t *pairs,
                                         const uct_varuna_parsed_addr_t *parsed,
                                         unsigned link,
                                         const uct_varuna_parsed_link_t *remote)
{
    const char *name = uct_varuna_link_name(iface, link);

    return ((strlen(name) == remote->name_len) &&
            !memcmp(name, remote->name, remote->name_len)) ||
           ((parsed->num_links != iface->num_links) &&
            uct_varuna_cabling_is_in_order(iface, pairs, link));
}

static void uct_varuna_cabling_check_link(uct_varuna_ctl_t *ctl,
                                          const uct_varuna_cabling_pairs_t *pairs,
                                          const uct_varuna_parsed_addr_t *parsed,
                                          unsigned link)
{
    const uct_varuna_iface_t *iface = ctl->iface;
    unsigned nic                    = pairs->nics[link];
    const uct_varuna_parsed_link_t *remote, *same;

    if (parsed->is_short || (nic == iface->links[link].nic) ||
        iface->md->links_are_named || (ctl->miscabled & UCS_BIT(link))) {
        return; /* A short address has no names, and perhaps not all links */
    }

    remote = uct_varuna_cabling_find(parsed, nic);
    same   = uct_varuna_cabling_find(parsed, iface->links[link].nic);
    if ((remote == NULL) || (same == NULL) || remote->is_named ||
        uct_varuna_cabling_is_shifted(iface, pairs, parsed, link, remote)) {
        return;
    }

    ctl->miscabled |= UCS_BIT(link);
    ucs_warn("rc_varuna: wrong cabling? %s reaches %.*s of peer 0x%lx, and not %.*s: "
             "change the cables, or name the ports in UCX_RC_VARUNA_LINKS in the order "
             "of their networks, on all hosts", uct_varuna_link_name(iface, link),
             remote->name_len, remote->name, parsed->uuid, same->name_len, same->name);
}

/* RC takes the smaller MTU, but a DC initiator and a DC target each have their own, and the
 * target refuses what the initiator sends. @return The link's bit if they differ and the link
 * has DC, otherwise 0. */
static uint8_t uct_varuna_cabling_check_mtu(uct_varuna_ctl_t *ctl,
                                            const uct_varuna_parsed_addr_t *parsed,
                                            unsigned link, unsigned nic)
{
    const uct_varuna_link_t *own           = &ctl->iface->links[link];
    const uct_varuna_parsed_link_t *remote = uct_varuna_cabling_find(parsed, nic);
    unsigned ours, theirs;

    if ((remote == NULL) || (own->set->fallback == UCT_VARUNA_LANE_NONE)) {
        return 0;
    }

    ours   = uct_varuna_ib_addr_mtu(own->device_addr, own->device_addr_len);
    theirs = uct_varuna_ib_addr_mtu(remote->device_addr, remote->device_len);
    if ((ours == 0) || (theirs == 0) || (ours == theirs)) {
        return 0;
    }

    if (parsed->is_short || (ctl->mtu_differs & UCS_BIT(link))) {
        return UCS_BIT(link); /* A short address has no names */
    }

    ctl->mtu_differs |= UCS_BIT(link);
    ucs_warn("rc_varuna: paths from %s have an MTU of %u bytes, and %u at %.*s of peer "
             "0x%lx: RC takes the smaller one, but DC cannot, so failovers wait for an RC "
             "connection, and long control messages do not arrive. Set UCX_IB_PATH_MTU to "
             "the smaller one on all hosts",
             uct_varuna_link_name(ctl->iface, link), ours, theirs, remote->name_len,
             remote->name, parsed->uuid);
    return UCS_BIT(link);
}

uint8_t uct_varuna_cabling_check(uct_varuna_ctl_t *ctl,
                                 const uct_varuna_cabling_pairs_t *pairs,
                                 const uct_varuna_parsed_addr_t *parsed)
{
    uint8_t mtu_differs = 0;
    unsigned link;

    ucs_for_each_bit(link, pairs->map) {
        uct_varuna_cabling_check_link(ctl, pairs, parsed, link);
        mtu_differs |= uct_varuna_cabling_check_mtu(ctl, parsed, link, pairs->nics[link]);
    }

    return mtu_differs;
}

static void uct_varuna_cabling_print_addr(ucs_string_buffer_t *text, const void *addr,
                                          size_t length)
{
    char port[64];

    uct_varuna_ib_addr_print(addr, length, port, sizeof(port));
    ucs_string_buffer_appendf(text, " (%s), ", port);
}

void uct_varuna_cabling_report(const uct_varuna_iface_t *iface,
                               const uct_varuna_parsed_addr_t *parsed,
                               ucs_log_level_t level)
{
    ucs_string_buffer_t ours, theirs;
    const uct_varuna_parsed_link_t *remote;
    unsigned i;

    ucs_string_buffer_init(&ours);
    ucs_string_buffer_init(&theirs);
    for (i = 0; i < iface->num_links; ++i) {
        ucs_string_buffer_appendf(&ours, "%s", uct_varuna_link_name(iface, i));
        uct_varuna_cabling_print_addr(&ours, iface->links[i].device_addr,
                                      iface->links[i].device_addr_len);
    }

    for (i = 0; i < parsed->num_links; ++i) {
        remote = &parsed->links[i];
        if (remote->name_len > 0) {
            ucs_string_buffer_appendf(&theirs, "%.*s", remote->name_len, remote->name);
        } else {
            ucs_string_buffer_appendf(&theirs, "NIC %u", remote->nic);
        }
        uct_varuna_cabling_print_addr(&theirs, remote->device_addr, remote->device_len);
    }

    ucs_string_buffer_rtrim(&ours, ", ");
    ucs_string_buffer_rtrim(&theirs, ", ");
    ucs_log(level, "rc_varuna: none of our links reaches a link of peer 0x%lx: ours are %s; "
            "the peer's are %s. UCX_RC_VARUNA_LINKS must name links of the same networks on "
            "all hosts", parsed->uuid, ucs_string_buffer_cstr(&ours),
            ucs_string_buffer_cstr(&theirs));
    ucs_string_buffer_cleanup(&theirs);
    ucs_string_buffer_cleanup(&ours);
}

void uct_varuna_cabling_unreachable(const uct_varuna_iface_t *iface,
                                    const uct_varuna_parsed_addr_t *parsed)
{
    static uint32_t warned = 0; /* UCP asks for each pair of interfaces */

    if ((parsed->num_links == 0) || parsed->is_limited ||
        (iface->md->vqp_links < iface->md->num_links) ||
        (parsed->links[0].ctl_len != iface->ctl->links[0].attr.iface_addr_len) ||
        (ucs_atomic_swap32(&warned, 1) != 0)) {
        return;
    }

    uct_varuna_cabling_report(iface, parsed, UCS_LOG_LEVEL_WARN);
}
