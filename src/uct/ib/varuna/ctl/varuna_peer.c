/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Remote interfaces: their addresses, and which of their links ours reach.
 * Called by the rooms above, in the main thread and in the async context.
 *
 * The main thread reads peer->links without the lock. So only the main thread
 * adds links to a known peer, and changes the addresses of one whose port has moved.
 * Which links are a pair never changes. Guests are read with the lock only, and so they
 * learn at any time.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/lanes/varuna_ib_addr.h>
#include "varuna_peer.h"
#include "varuna_ctl.h"
#include "varuna_bus.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <string.h>
#include <ucs/arch/atomic.h>
#include <ucs/datastruct/string_buffer.h>

/* Room for one address: UCX may read beyond its end if it is malformed. */
#define UCT_VARUNA_ADDR_ROOM         64

/* Copies of the addresses of one link; peer->addr is a list of these. */
typedef struct uct_varuna_peer_blob {
    struct uct_varuna_peer_blob *next;
    char                       device_addr[UCT_VARUNA_ADDR_ROOM];
    char                       dc_addr[UCT_VARUNA_ADDR_ROOM];
    char                       ctl_addr[UCT_VARUNA_ADDR_ROOM];
} uct_varuna_peer_blob_t;

typedef struct uct_varuna_pairing {
    uint8_t                    remote[UCT_VARUNA_MAX_LINKS]; /* Index in the
                                                                parsed address */
    unsigned                   map;       /* Local links which have one */
} uct_varuna_pairing_t;


/* Ask our interface @a inner. UCX takes lengths from what it reads, so both addresses need
 * room after them, and @a remote's port is checked first. */
static int uct_varuna_peer_iface_reaches(const uct_varuna_link_t *link,
                                         uct_iface_h inner, size_t addr_len,
                                         const uct_varuna_parsed_link_t *remote,
                                         const void *remote_addr,
                                         size_t remote_len)
{
    char device[UCT_VARUNA_ADDR_ROOM] = {0}, addr[UCT_VARUNA_ADDR_ROOM] = {0};

    if ((remote_len != addr_len) || (remote_len > sizeof(addr)) ||
        !uct_varuna_ib_addr_is_valid(remote->device_addr, remote->device_len,
                                     link->device_addr)) {
        return 0;
    }

    memcpy(device, remote->device_addr, remote->device_len);
    memcpy(addr, remote_addr, remote_len);
    return uct_iface_is_reachable(inner, (uct_device_addr_t*)device,
                                  (uct_iface_addr_t*)addr);
}

static int uct_varuna_peer_lane_reaches(const uct_varuna_iface_t *iface,
                                        unsigned link,
                                        const uct_varuna_parsed_link_t *remote)
{
    const uct_varuna_lane_iface_t *base =
            uct_varuna_link_base(&iface->links[link]);

    return uct_varuna_peer_iface_reaches(&iface->links[link], base->inner,
                                         base->attr.iface_addr_len, remote,
                                         remote->dc_addr, remote->dc_len);
}

int uct_varuna_peer_ctl_reaches(const uct_varuna_iface_t *iface, unsigned link,
                                const uct_varuna_parsed_link_t *remote)
{
    const uct_varuna_ctl_link_t *ctl = &iface->ctl->links[link];

    return (ctl->inner != NULL) &&
           uct_varuna_peer_iface_reaches(&iface->links[link], ctl->inner,
                                         ctl->attr.iface_addr_len, remote,
                                         remote->ctl_addr, remote->ctl_len);
}

static int uct_varuna_peer_link_reaches(const uct_varuna_iface_t *iface,
                                        unsigned link,
                                        const uct_varuna_parsed_link_t *remote)
{
    return !iface->links[link].is_closed &&
           uct_varuna_peer_ctl_reaches(iface, link, remote) &&
           ((remote->dc_addr == NULL) ||
            uct_varuna_peer_lane_reaches(iface, link, remote));
}

/* The same of a pair that is known. Our NIC may be away just now */
static int uct_varuna_peer_pair_reaches(const uct_varuna_iface_t *iface, unsigned link,
                                        const uct_varuna_parsed_link_t *remote)
{
    const uct_varuna_link_t *own        = &iface->links[link];
    const uct_varuna_lane_iface_t *base = uct_varuna_link_base(own);

    if (!own->is_closed) {
        return uct_varuna_peer_link_reaches(iface, link, remote);
    }

    return (remote->ctl_len == iface->ctl->links[link].attr.iface_addr_len) &&
           ((remote->dc_addr == NULL) ||
            (remote->dc_len == base->attr.iface_addr_len)) &&
           uct_varuna_ib_addr_is_valid(remote->device_addr, remote->device_len,
                                       own->device_addr);
}

/*
 * Pair local links, but for those in @a taken, with remote ones: link k talks to
 * link k, else to the first which it reaches. The latter only if all links of the
 * peer are known, or if nothing is reached otherwise: a pair is never changed
 * later.
 */
static void uct_varuna_peer_pair(const uct_varuna_iface_t *iface,
                                 const uct_varuna_parsed_addr_t *parsed,
                                 unsigned taken, uct_varuna_pairing_t *pairing)
{
    unsigned link, i;

    pairing->map = 0;
    for (link = 0; link < iface->num_links; ++link) {
        for (i = 0; i < parsed->num_links; ++i) {
            if (!(taken & UCS_BIT(link)) &&
                (parsed->links[i].nic == iface->links[link].nic) &&
                uct_varuna_peer_link_reaches(iface, link, &parsed->links[i])) {
                pairing->remote[link]  = i;
                pairing->map          |= UCS_BIT(link);
            }
        }
    }

    for (link = 0; link < iface->num_links; ++link) {
        for (i = 0; i < parsed->num_links; ++i) {
            if ((taken | pairing->map) & (parsed->is_short ? ~0u : UCS_BIT(link))) {
                break;
            }

            if (uct_varuna_peer_link_reaches(iface, link, &parsed->links[i])) {
                pairing->remote[link]  = i;
                pairing->map          |= UCS_BIT(link);
            }
        }
    }
}

/* What endpoints post from now on is looked at. The main thread has given them the address */
static void uct_varuna_peer_note_returned(uct_varuna_iface_t *iface, uct_varuna_peer_t *peer,
                                          unsigned link)
{
    if (!peer->is_guest && (peer->links[link].generation != 0)) {
        uct_varuna_rkeys_renew(peer->uuid, peer->links[link].nic, peer->links[link].generation);
        peer->returned |= UCS_BIT(link);
        uct_varuna_link_raise(iface);
    }
}

static ucs_status_t
uct_varuna_peer_add_link(uct_varuna_iface_t *iface, uct_varuna_peer_t *peer, unsigned link,
                         const uct_varuna_parsed_link_t *remote)
{
    uct_varuna_peer_blob_t *blob;

    blob = ucs_calloc(1, sizeof(*blob), "varuna_peer_addr");
    if (blob == NULL) {
        ucs_error("failed to allocate the address of peer 0x%lx", peer->uuid);
        return UCS_ERR_NO_MEMORY;
    }

    memcpy(blob->device_addr, remote->device_addr, remote->device_len);
    memcpy(blob->ctl_addr, remote->ctl_addr, remote->ctl_len);
    if (remote->dc_addr != NULL) {
        memcpy(blob->dc_addr, remote->dc_addr, remote->dc_len);
        peer->links[link].dc_addr = (uct_iface_addr_t*)blob->dc_addr;
    }

    blob->next                    = peer->addr;
    peer->addr                    = blob;
    peer->links[link].nic         = remote->nic;
    peer->links[link].generation  = remote->generation;
    peer->links[link].device_addr = (uct_device_addr_t*)blob->device_addr;
    peer->links[link].ctl_addr    = (uct_iface_addr_t*)blob->ctl_addr;
    uct_varuna_peer_note_returned(iface, peer, link);
    __atomic_store_n(&peer->link_map, peer->link_map | UCS_BIT(link),
                     __ATOMIC_RELEASE);
    return UCS_OK;
}

/* Links from a short address have no address of their data lane yet, and no generation */
static void uct_varuna_peer_complete_links(uct_varuna_iface_t *iface, uct_varuna_peer_t *peer,
                                           const uct_varuna_parsed_addr_t *parsed)
{
    const uct_varuna_parsed_link_t *remote;
    uct_varuna_peer_blob_t *blob;
    unsigned link, i;

    ucs_for_each_bit(link, peer->link_map) {
        for (i = 0; (i < parsed->num_links) &&
                    (peer->links[link].dc_addr == NULL); ++i) {
            remote = &parsed->links[i];
            if ((remote->nic != peer->links[link].nic) ||
                (remote->dc_addr == NULL)) {
                continue;
            }

            if (iface->links[link].is_closed) {
                break; /* When it is open again */
            } else if (!uct_varuna_peer_lane_reaches(iface, link, remote)) {
                ucs_error("%s of peer 0x%lx can't be reached over %s: are its UCX "
                          "options different?",
                          uct_varuna_tl_name(uct_varuna_link_set(iface, link)->fast),
                          peer->uuid, uct_varuna_link_name(iface, link));
                break;
            }

            blob = ucs_container_of((void*)peer->links[link].ctl_addr,
                                    uct_varuna_peer_blob_t, ctl_addr);
            if (uct_varuna_peer_pair_reaches(iface, link, remote) &&
                (memcmp(blob->ctl_addr, remote->ctl_addr, remote->ctl_len) ||
                 memcmp(blob->device_addr, remote->device_addr, remote->device_len))) {
                memcpy(blob->device_addr, remote->device_addr, remote->device_len);
                memcpy(blob->ctl_addr, remote->ctl_addr, remote->ctl_len);
                uct_varuna_ctl_drop_ep(iface->ctl, peer, link, 1);
                peer->doubtful &= ~UCS_BIT(link);
            }

            memcpy(blob->dc_addr, remote->dc_addr, remote->dc_len);
            peer->links[link].dc_addr    = (uct_iface_addr_t*)blob->dc_addr;
            peer->links[link].generation = remote->generation;
            uct_varuna_peer_note_returned(iface, peer, link);
        }
    }
}

/* Whether a link is reached by other addresses than we know */
static int uct_varuna_peer_link_differs(const uct_varuna_peer_link_t *known,
                                        const uct_varuna_parsed_link_t *remote)
{
    return (known->generation != remote->generation) ||
           memcmp(known->device_addr, remote->device_addr, remote->device_len) ||
           memcmp(known->ctl_addr, remote->ctl_addr, remote->ctl_len) ||
           ((remote->dc_addr != NULL) && (known->dc_addr != NULL) &&
            memcmp(known->dc_addr, remote->dc_addr, remote->dc_len));
}

static void uct_varuna_peer_move_link(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                      unsigned link,
                                      const uct_varuna_parsed_link_t *remote)
{
    uct_varuna_peer_link_t *known = &peer->links[link];
    uct_varuna_peer_blob_t *blob  = ucs_container_of((void*)known->ctl_addr,
                                                     uct_varuna_peer_blob_t, ctl_addr);

    memcpy(blob->device_addr, remote->device_addr, remote->device_len);
    memcpy(blob->ctl_addr, remote->ctl_addr, remote->ctl_len);
    if ((remote->dc_addr != NULL) && (known->dc_addr != NULL)) {
        memcpy(blob->dc_addr, remote->dc_addr, remote->dc_len);
    }

    known->generation = remote->generation;
    uct_varuna_peer_note_returned(ctl->iface, peer, link);
    uct_varuna_ctl_drop_ep(ctl, peer, link, 1);
    uct_varuna_ctl_seek_anew(peer, link);
    peer->doubtful &= ~UCS_BIT(link);
    ucs_debug("rc_varuna: NIC %u of peer 0x%lx has another address on %s",
              known->nic, peer->uuid, uct_varuna_link_name(ctl->iface, link));
}

/* A pair of links stays, but for addresses and generation of its remote end. @return such pairs */
static unsigned uct_varuna_peer_move_links(uct_varuna_ctl_t *ctl,
                                           uct_varuna_peer_t *peer,
                                           const uct_varuna_parsed_addr_t *parsed)
{
    unsigned moved = 0;
    const uct_varuna_parsed_link_t *remote;
    unsigned link, i;

    ucs_for_each_bit(link, peer->link_map) {
        for (i = 0; i < parsed->num_links; ++i) {
            remote = &parsed->links[i];
            if ((remote->nic != peer->links[link].nic) ||
                (remote->generation < peer->links[link].generation) ||
                !uct_varuna_peer_link_differs(&peer->links[link], remote) ||
                !uct_varuna_peer_pair_reaches(ctl->iface, link, remote) ||
                (peer->is_guest &&
                 !uct_varuna_reach_allow(ctl, link, remote->device_addr,
                                         remote->device_len, 1))) {
                continue;
            }

            uct_varuna_peer_move_link(ctl, peer, link, remote);
            moved |= UCS_BIT(link);
        }
    }

    return moved;
}

unsigned uct_varuna_peer_links_to(const uct_varuna_peer_t *peer, unsigned nics)
{
    unsigned links = 0;
    unsigned link;

    ucs_for_each_bit(link, peer->link_map) {
        if (nics & UCS_BIT(peer->links[link].nic)) {
            links |= UCS_BIT(link);
        }
    }

    return links;
}

void uct_varuna_peer_apply_ports(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer)
{
    unsigned down = uct_varuna_peer_links_to(peer, peer->hb.ports_down);

    peer->hb.told_down  |= down & ~peer->hb.far_down;
    peer->hb.told_up    &= ~down;
    peer->hb.told_up    |= peer->hb.far_down & ~down;
    peer->hb.far_down    = down;
    peer->hb.far_retired = uct_varuna_peer_links_to(peer, peer->hb.ports_retired);
    uct_varuna_peer_notify(ctl, peer);
}

/* --- Links that do not suit ours --- */

/* Links that do not suit those of a peer. */

static const uct_varuna_parsed_link_t *
uct_varuna_cabling_find(const uct_varuna_parsed_addr_t *parsed, unsigned port)
{
    unsigned i;

    for (i = 0; i < parsed->num_links; ++i) {
        if (parsed->links[i].nic == port) {
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
    unsigned port = iface->links[link].nic;
    unsigned far  = pairs->ports[link];
    unsigned other;

    ucs_for_each_bit(other, pairs->map & ~UCS_BIT(link)) {
        if ((pairs->ports[other] == far) ||
            ((iface->links[other].nic < port) != (pairs->ports[other] < far))) {
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
    unsigned port                   = pairs->ports[link];
    const uct_varuna_parsed_link_t *remote, *same;

    if (parsed->is_short || (port == iface->links[link].nic) ||
        iface->md->links_are_named || (ctl->cabling.wrong & UCS_BIT(link))) {
        return; /* A short address has no names, and perhaps not all links */
    }

    remote = uct_varuna_cabling_find(parsed, port);
    same   = uct_varuna_cabling_find(parsed, iface->links[link].nic);
    if ((remote == NULL) || (same == NULL) || remote->is_named ||
        uct_varuna_cabling_is_shifted(iface, pairs, parsed, link, remote)) {
        return;
    }

    ctl->cabling.wrong |= UCS_BIT(link);
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
                                            unsigned link, unsigned port)
{
    const uct_varuna_link_t *own           = &ctl->iface->links[link];
    const uct_varuna_parsed_link_t *remote = uct_varuna_cabling_find(parsed, port);
    unsigned ours, theirs;

    if ((remote == NULL) || (own->set->fallback == UCT_VARUNA_LANE_NONE)) {
        return 0;
    }

    ours   = uct_varuna_ib_addr_mtu(own->device_addr, own->device_addr_len);
    theirs = uct_varuna_ib_addr_mtu(remote->device_addr, remote->device_len);
    if ((ours == 0) || (theirs == 0) || (ours == theirs)) {
        return 0;
    }

    if (parsed->is_short || (ctl->cabling.mtu_differs & UCS_BIT(link))) {
        return UCS_BIT(link); /* A short address has no names */
    }

    ctl->cabling.mtu_differs |= UCS_BIT(link);
    ucs_warn("rc_varuna: paths from %s have an MTU of %u bytes, and %u at %.*s of peer "
             "0x%lx: RC takes the smaller one, but DC cannot, so failovers wait for an RC "
             "connection, and long control messages do not arrive. Set UCX_IB_PATH_MTU to "
             "the smaller one on all hosts",
             uct_varuna_link_name(ctl->iface, link), ours, theirs, remote->name_len,
             remote->name, parsed->uuid);
    return UCS_BIT(link);
}

/* Warn, once for each link, of links that do not suit those of a peer. Lock held.
 *
 * One reaches another port than the one with its number, which is there: traffic flows, but
 * links that seem to be independent share a switch. If the user has named the links of one of
 * the two hosts, that is on purpose. If the port has the link's own name, or the hosts have
 * different numbers of links in the same order, one of them has left out a port. Or the path
 * MTUs differ. A short address has no names, and is ignored.
 *
 * @return Links that have DC, which does not work between these MTUs. */
static uint8_t uct_varuna_cabling_check(uct_varuna_ctl_t *ctl,
                                        const uct_varuna_cabling_pairs_t *pairs,
                                        const uct_varuna_parsed_addr_t *parsed)
{
    uint8_t mtu_differs = 0;
    unsigned link;

    ucs_for_each_bit(link, pairs->map) {
        uct_varuna_cabling_check_link(ctl, pairs, parsed, link);
        mtu_differs |= uct_varuna_cabling_check_mtu(ctl, parsed, link, pairs->ports[link]);
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

/* Log that none of our links reaches one of a peer's, with the links of both. Usually
 * UCX_RC_VARUNA_LINKS names links of other networks there. */
static void uct_varuna_cabling_report(const uct_varuna_iface_t *iface,
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

/* The same as a warning, once, if UCP asks whether a peer can be reached, and uses
 * another transport or fails. Not if other interfaces may have links to it: of the other
 * set of lanes, or of another link if each has only some, here or there. */
static void uct_varuna_cabling_unreachable(const uct_varuna_iface_t *iface,
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

/* --- Peers --- */

static ucs_status_t uct_varuna_peer_add_links(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                              const uct_varuna_parsed_addr_t *parsed)
{
    uct_varuna_cabling_pairs_t pairs = {0};
    const uct_varuna_parsed_link_t *remote;
    uct_varuna_pairing_t pairing;
    ucs_status_t status;
    unsigned link;

    uct_varuna_peer_complete_links(ctl->iface, peer, parsed);
    uct_varuna_peer_pair(ctl->iface, parsed, peer->link_map, &pairing);
    ucs_for_each_bit(link, pairing.map) {
        remote = &parsed->links[pairing.remote[link]];
        if (peer->is_guest &&
            !uct_varuna_reach_allow(ctl, link, remote->device_addr,
                                           remote->device_len, 1)) {
            continue;
        }

        status = uct_varuna_peer_add_link(ctl->iface, peer, link, remote);
        if (status != UCS_OK) {
            return status;
        }

        ucs_debug("rc_varuna: %s reaches NIC %u of peer 0x%lx",
                  uct_varuna_link_name(ctl->iface, link), remote->nic, peer->uuid);
    }

    if (pairing.map != 0) {
        uct_varuna_peer_apply_ports(ctl, peer);
    }
    ucs_for_each_bit(link, peer->link_map) {
        pairs.map        |= UCS_BIT(link);
        pairs.ports[link] = peer->links[link].nic;
    }
    peer->mtu_differs |= uct_varuna_cabling_check(ctl, &pairs, parsed);
    return UCS_OK;
}

void uct_varuna_peer_notify(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer)
{
    if (!peer->hb.queued) {
        peer->hb.queued = 1;
        ucs_list_add_tail(&ctl->hb.events, &peer->hb.list);
    }
    uct_varuna_ctl_notify(ctl);
}

static void uct_varuna_peer_free(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer)
{
    uct_varuna_peer_blob_t *blob;
    unsigned link;

    ucs_for_each_bit(link, peer->hb.due) {
        ucs_list_del(&peer->hb.due_list[link]);
    }
    if (peer->hb.queued) {
        ucs_list_del(&peer->hb.list);
    }

    for (link = 0; link < UCT_VARUNA_MAX_LINKS; ++link) {
        uct_varuna_ctl_drop_ep(ctl, peer, link, 0);
    }

    while (peer->addr != NULL) {
        blob       = peer->addr;
        peer->addr = blob->next;
        ucs_free(blob);
    }

    ucs_free(peer);
}

size_t uct_varuna_peer_add_part(uct_varuna_ctl_t *ctl, size_t size)
{
    size_t part = ctl->peer_size;

    ucs_assert(kh_size(&ctl->peers) == 0);
    ctl->peer_size += ucs_align_up(size, sizeof(uint64_t));
    return part;
}

static uct_varuna_peer_key_t uct_varuna_peer_key(const uct_varuna_peer_t *peer)
{
    uct_varuna_peer_key_t key = {
        .uuid   = peer->uuid,
        .secret = peer->is_guest ? peer->secret : 0
    };

    return key;
}

static ucs_status_t
uct_varuna_peer_create(uct_varuna_ctl_t *ctl,
                       const uct_varuna_parsed_addr_t *parsed, uint64_t secret,
                       uct_varuna_peer_t **peer_p)
{
    uct_varuna_peer_t *peer;
    ucs_status_t status;
    khiter_t iter;
    int ret;

    peer = ucs_calloc(1, ctl->peer_size, "varuna_peer");
    if (peer == NULL) {
        ucs_error("failed to allocate a peer");
        return UCS_ERR_NO_MEMORY;
    }

    peer->uuid     = parsed->uuid;
    peer->is_guest = (secret != 0);
    peer->secret   = peer->is_guest ? secret :
                     uct_varuna_secret_of(&ctl->iface->secret_key, parsed->uuid);
    peer->refcount = 1;
    status         = uct_varuna_peer_add_links(ctl, peer, parsed);
    if (status != UCS_OK) {
        goto err_free;
    }

    if (peer->link_map == 0) {
        status = UCS_ERR_UNREACHABLE;
        goto err_free;
    }

    iter = kh_put(uct_varuna_peers, &ctl->peers, uct_varuna_peer_key(peer), &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        ucs_error("failed to add a peer to the table of peers");
        status = UCS_ERR_NO_MEMORY;
        goto err_free;
    }

    kh_val(&ctl->peers, iter) = peer;
    *peer_p                   = peer;
    return UCS_OK;

err_free:
    uct_varuna_peer_free(ctl, peer);
    return status;
}

static uct_varuna_peer_t *
uct_varuna_peer_lookup(uct_varuna_ctl_t *ctl, uint64_t uuid, uint64_t secret)
{
    uct_varuna_peer_key_t key = {.uuid = uuid, .secret = secret};
    khiter_t iter             = kh_get(uct_varuna_peers, &ctl->peers, key);

    return (iter == kh_end(&ctl->peers)) ? NULL : kh_val(&ctl->peers, iter);
}

uct_varuna_peer_t *uct_varuna_peer_find(uct_varuna_ctl_t *ctl, uint64_t uuid,
                                        uint64_t secret)
{
    uct_varuna_peer_t *peer = uct_varuna_peer_lookup(ctl, uuid, secret);

    if (peer == NULL) {
        peer = uct_varuna_peer_lookup(ctl, uuid, 0);
    }

    return ((peer != NULL) && (peer->secret == secret)) ? peer : NULL;
}

ucs_status_t uct_varuna_peer_open(uct_varuna_ctl_t *ctl,
                                  const uct_varuna_parsed_addr_t *parsed,
                                  uint64_t secret, uct_varuna_peer_t **peer_p)
{
    uct_varuna_peer_t *peer;
    ucs_status_t status;

    peer = uct_varuna_peer_lookup(ctl, parsed->uuid, secret);
    if (peer == NULL) {
        return uct_varuna_peer_create(ctl, parsed, secret, peer_p);
    }

    if (peer->is_guest) {
        (void)uct_varuna_peer_move_links(ctl, peer, parsed);
    }

    status = uct_varuna_peer_add_links(ctl, peer, parsed);
    if (status != UCS_OK) {
        return status;
    }

    ++peer->refcount;
    *peer_p = peer;
    return UCS_OK;
}

void uct_varuna_peer_learn(uct_varuna_ctl_t *ctl, uint64_t uuid,
                           const void *addr, size_t length)
{
    uct_varuna_parsed_addr_t parsed;
    uct_varuna_peer_t *peer;
    const char *reason;
    ucs_status_t status;

    uct_varuna_ctl_lock(ctl);
    status = uct_varuna_parse_addr(NULL, addr, length, &parsed, &reason);
    if ((status == UCS_OK) && (parsed.uuid != uuid)) {
        reason = "it is another peer's";
        status = UCS_ERR_INVALID_ADDR;
    }

    if (status != UCS_OK) {
        uct_varuna_ctl_complain(ctl, uuid, "an address", reason);
    } else if (uct_varuna_peer_open(ctl, &parsed, 0, &peer) == UCS_OK) {
        uct_varuna_peer_put(ctl, peer);
    }
    uct_varuna_ctl_unlock(ctl);
}

uct_varuna_peer_t *
uct_varuna_peer_learn_moves(uct_varuna_ctl_t *ctl, const uct_varuna_ctl_hdr_t *hdr,
                            const void *addr, size_t length, uint16_t moves,
                            unsigned *moved_p)
{
    uct_varuna_peer_t *peer = NULL;
    uct_varuna_parsed_addr_t parsed;
    const char *reason;
    ucs_status_t status;

    uct_varuna_ctl_lock(ctl);
    status = uct_varuna_parse_addr(NULL, addr, length, &parsed, &reason);
    if ((status != UCS_OK) || (parsed.uuid != hdr->uuid)) {
        uct_varuna_ctl_complain(ctl, hdr->uuid, "an address",
                                (status == UCS_OK) ? "it is another peer's" : reason);
        goto out;
    }

    peer = uct_varuna_peer_lookup(ctl, hdr->uuid, 0);
    /* One that was overtaken has an old address, to which nothing may go back */
    if ((peer == NULL) || UCS_CIRCULAR_COMPARE16(moves, <, peer->moves.known)) {
        peer = NULL;
        goto out;
    }

    *moved_p = uct_varuna_peer_move_links(ctl, peer, &parsed);
    if (uct_varuna_peer_add_links(ctl, peer, &parsed) == UCS_OK) {
        peer->moves.known      = moves;
        peer->moves.is_partial = 0;
    }
    ++peer->refcount;
    uct_varuna_ctl_reap_eps(ctl, 0);

out:
    uct_varuna_ctl_unlock(ctl);
    return peer;
}

void uct_varuna_peers_join(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_ctl_hdr_t whose = {0};
    uct_varuna_peer_t *peer;

    kh_foreach_value(&ctl->peers, peer, {
        memset(&peer->no_ctl_ep[link], 0, sizeof(peer->no_ctl_ep[link]));
        peer->doubtful &= ~UCS_BIT(link);
        if (!peer->is_guest && (!(peer->link_map & UCS_BIT(link)) ||
                                (peer->links[link].dc_addr == NULL))) {
            peer->moves.is_partial = 1;
            whose.secret           = peer->secret;
            (void)uct_varuna_ctl_send(ctl, peer, uct_varuna_ctl_reply_link(ctl, peer, link),
                                      UCT_VARUNA_CTL_LINKS_REQ, &whose, NULL, 0);
        }
    });
}

void uct_varuna_peer_update_guest(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                  const uct_varuna_ctl_hdr_t *hdr)
{
    uct_varuna_parsed_addr_t parsed;

    if (peer->is_guest && (uct_varuna_parse_ctl_from(hdr, &parsed) == UCS_OK)) {
        peer->moves.known = hdr->moves;
        (void)uct_varuna_peer_move_links(ctl, peer, &parsed);
    }
}

ucs_status_t uct_varuna_peer_get(uct_varuna_ctl_t *ctl,
                                 const uct_device_addr_t *device_addr,
                                 const void *addr, size_t length,
                                 uct_varuna_peer_t **peer_p)
{
    uct_varuna_parsed_addr_t parsed;
    const char *reason;
    ucs_status_t status;

    status = uct_varuna_parse_addr(device_addr, addr, length, &parsed, &reason);
    if (status != UCS_OK) {
        ucs_error("an address of a peer can't be used: %s", reason);
        return status;
    }

    uct_varuna_ctl_lock(ctl);
    status = uct_varuna_peer_open(ctl, &parsed, 0, peer_p);
    uct_varuna_ctl_unlock(ctl);

    if (status == UCS_ERR_UNREACHABLE) {
        uct_varuna_cabling_report(ctl->iface, &parsed, UCS_LOG_LEVEL_ERROR);
    }

    return status;
}

void uct_varuna_peer_put(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer)
{
    khiter_t iter;

    uct_varuna_ctl_lock(ctl);
    ucs_assert(peer->refcount > 0);
    if (--peer->refcount == 0) {
        iter = kh_get(uct_varuna_peers, &ctl->peers, uct_varuna_peer_key(peer));
        ucs_assert(iter != kh_end(&ctl->peers));
        kh_del(uct_varuna_peers, &ctl->peers, iter);
        uct_varuna_peer_free(ctl, peer);
        uct_varuna_ctl_reap_eps(ctl, 0);
    }
    uct_varuna_ctl_unlock(ctl);
}

int uct_varuna_peer_is_reachable(uct_varuna_iface_t *iface,
                                 const uct_device_addr_t *device_addr,
                                 const void *addr)
{
    uct_varuna_parsed_addr_t parsed;
    uct_varuna_pairing_t pairing;
    const char *reason;

    if (uct_varuna_parse_addr(device_addr, addr, SIZE_MAX, &parsed, &reason) != UCS_OK) {
        ucs_debug("an address of a peer can't be used: %s", reason);
        return 0;
    }

    uct_varuna_peer_pair(iface, &parsed, 0, &pairing);
    if (pairing.map == 0) {
        uct_varuna_cabling_unreachable(iface, &parsed);
    }

    return pairing.map != 0;
}

void uct_varuna_peers_init(uct_varuna_ctl_t *ctl)
{
    kh_init_inplace(uct_varuna_peers, &ctl->peers);
    ctl->peer_size = ucs_align_up(sizeof(uct_varuna_peer_t), sizeof(uint64_t));
}

void uct_varuna_peers_cleanup(uct_varuna_ctl_t *ctl)
{
    uct_varuna_peer_t *peer;

    kh_foreach_value(&ctl->peers, peer, {
        ucs_warn("peer 0x%lx is still used %u times", peer->uuid,
                 peer->refcount);
        uct_varuna_peer_free(ctl, peer);
    });
    kh_destroy_inplace(uct_varuna_peers, &ctl->peers);
}
