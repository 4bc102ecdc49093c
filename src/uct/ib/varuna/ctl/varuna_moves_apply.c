/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Ports that get another address: using it, and letting peers know. See
 * varuna_ports.h.
 *
 *   event of the port          the address differs: the link is down (async context)
 *          |
 *   main thread                InfiniBand: our interfaces only report the new LID, unless
 *          |                   the port was down when they were opened.
 *          |                   Ethernet: the DC interfaces are opened once more, as their
 *          |                   DC targets are bound to an index of the GID table; RC queue
 *          |                   pairs are bound when they are connected. Without DC, the bus
 *          |                   is opened once more
 *          |
 *   the link is up (hold-down) those who send to us are told: LINKS_REP, until their requests
 *                              have the new number of moves. So have PORTS and PONG: a peer
 *                              that knows another one asks by LINKS_REQ
 *
 * Those who only receive from us learn the address from our next request, which carries it
 * (uct_varuna_peer_update_guest()).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ports.h"
#include "varuna_ctl.h"
#include "varuna_peer.h"
#include <uct/ib/varuna/lanes/varuna_lanes.h>

#include <ucs/debug/log.h>

/* An address may be gone for a moment while an interface is configured again. One that is
 * gone for longer (seconds) does not come back */
#define UCT_VARUNA_MOVES_GRACE       1.0


/* A link on Ethernet without DC. Its bus takes the address from the data lane, and so has the
 * new one when it is opened once more */
static ucs_status_t uct_varuna_moves_apply_rc(uct_varuna_ctl_t *ctl, unsigned link)
{
    ucs_status_t status;

    status = uct_varuna_lane_renew_address(ctl->iface, link);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_ctl_link_reopen(ctl, link);
    return (status != UCS_OK) ? status : uct_varuna_link_read_address(ctl->iface, link);
}

/* @return UCS_INPROGRESS if something still uses the old address, UCS_ERR_NO_ELEM if there
 * is no GID to open interfaces with, UCS_ERR_NO_DEVICE if the NIC is dead. */
static ucs_status_t uct_varuna_moves_apply(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_iface_t *iface = ctl->iface;
    uct_varuna_link_t *own    = &iface->links[link];
    ucs_status_t status;
    unsigned index;

    if (uct_varuna_ctl_is_nic_gone(ctl, link)) {
        return UCS_ERR_NO_DEVICE;
    }

    if (own->addr.is_ib &&
        (!own->is_late || (own->set->fallback == UCT_VARUNA_LANE_NONE))) {
        uct_varuna_mlx5_addr_refresh(uct_varuna_link_rc(own)->inner);
        if (own->set->fallback != UCT_VARUNA_LANE_NONE) {
            uct_varuna_mlx5_addr_refresh(uct_varuna_link_base(own)->inner);
            uct_varuna_mlx5_addr_refresh(ctl->links[link].inner);
        }
        return uct_varuna_link_read_address(iface, link);
    }

    if (uct_varuna_mlx5_gid_is_missing(uct_varuna_link_rc(own)->inner, &index)) {
        return UCS_ERR_NO_ELEM;
    }

    if (own->set->fallback == UCT_VARUNA_LANE_NONE) {
        return uct_varuna_moves_apply_rc(ctl, link);
    }

    /* First, since recoveries may need it, which the data lane waits for */
    if (!(ctl->moves.reopened & UCS_BIT(link))) {
        status = uct_varuna_ctl_link_reopen(ctl, link);
        if (status != UCS_OK) {
            return status;
        }
        ctl->moves.reopened |= UCS_BIT(link);
    }

    if (uct_varuna_link_base(own)->num_eps > 0) {
        return UCS_INPROGRESS;
    }

    status = uct_varuna_lane_reopen(iface, link, own->set->fallback);
    if (status != UCS_OK) {
        return status;
    }

    uct_varuna_mlx5_addr_take(uct_varuna_link_rc(own)->inner,
                              uct_varuna_link_base(own)->inner);
    ctl->moves.reopened &= ~UCS_BIT(link);
    return uct_varuna_link_read_address(iface, link);
}

/* The user is told of the first failure, and of each other reason */
static void uct_varuna_moves_log_failure(const uct_varuna_ctl_t *ctl, unsigned link,
                                         ucs_status_t status)
{
    const char *name = uct_varuna_link_name(ctl->iface, link);
    unsigned index   = 0;

    if ((status == UCS_ERR_NO_ELEM) &&
        uct_varuna_mlx5_gid_is_missing(uct_varuna_link_rc(&ctl->iface->links[link])->inner,
                                       &index)) {
        ucs_warn("rc_varuna: %s has another address, which cannot be used yet: entry %u of "
                 "its table of GIDs is empty. UCX_IB_GID_INDEX says which entry is used; "
                 "other links carry the traffic until there is something in it", name, index);
    } else {
        ucs_warn("rc_varuna: %s has another address, which cannot be used yet: %s. Other "
                 "links carry the traffic", name, ucs_status_string(status));
    }
}

static void uct_varuna_moves_failed(uct_varuna_ctl_t *ctl, unsigned link,
                                    ucs_status_t status, ucs_time_t now)
{
    uct_varuna_backoff_t *backoff = &ctl->moves.backoff[link];

    if (uct_varuna_backoff_failed(backoff, status, now)) {
        uct_varuna_moves_log_failure(ctl, link, status);
    }

    ucs_debug("rc_varuna: %s has another address, which cannot be used yet (%s): trying again "
              "in %.0f s", uct_varuna_link_name(ctl->iface, link), ucs_status_string(status),
              ucs_time_to_sec(uct_varuna_backoff_distance(backoff)));
}

static void uct_varuna_moves_succeeded(uct_varuna_ctl_t *ctl, unsigned link)
{
    if (uct_varuna_backoff_succeeded(&ctl->moves.backoff[link]) > 0) {
        ucs_warn("rc_varuna: %s can be used again", uct_varuna_link_name(ctl->iface, link));
    }
}

/* @return UCS_INPROGRESS: not yet. */
static ucs_status_t uct_varuna_moves_step(uct_varuna_ctl_t *ctl, unsigned link)
{
    const uct_varuna_link_t *own = &ctl->iface->links[link];
    ucs_time_t now               = uct_varuna_ctl_now(ctl);
    ucs_status_t status;

    switch (uct_varuna_mlx5_addr_check(uct_varuna_link_rc(own)->inner,
                                       &own->addr)) {
    case UCT_VARUNA_ADDR_SAME:
        if (!(ctl->moves.reopened & UCS_BIT(link))) {
            uct_varuna_moves_succeeded(ctl, link);
            return UCS_OK;
        }
        break;
    case UCT_VARUNA_ADDR_MOVED:
        break;
    case UCT_VARUNA_ADDR_GONE:
        if ((now - ctl->moves.since[link]) >=
            ucs_time_from_sec(UCT_VARUNA_MOVES_GRACE)) {
            break;
        }
        return UCS_INPROGRESS;
    default:
        return UCS_INPROGRESS;
    }

    if (!uct_varuna_backoff_is_due(&ctl->moves.backoff[link], now)) {
        return UCS_INPROGRESS;
    }

    status = uct_varuna_moves_apply(ctl, link);
    if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
        uct_varuna_moves_failed(ctl, link, status, now);
        return UCS_INPROGRESS;
    }

    if (status == UCS_OK) {
        uct_varuna_moves_succeeded(ctl, link);
        ucs_info("rc_varuna: %s has another address: peers are told",
                 uct_varuna_link_name(ctl->iface, link));
    }

    return status;
}

void uct_varuna_moves_apply_all(uct_varuna_ctl_t *ctl)
{
    ucs_status_t status;
    unsigned link, links;

    links = __atomic_load_n(&ctl->moves.links, __ATOMIC_ACQUIRE);
    ucs_for_each_bit(link, links) {
        uct_varuna_link_down(ctl->iface, link, UCT_VARUNA_LINK_CAUSE_ADDRESS,
                             "its address has changed");
        uct_varuna_ctl_lock(ctl);
        status = uct_varuna_moves_step(ctl, link);
        if (status == UCS_OK) {
            ctl->moves.links &= ~UCS_BIT(link);
            ctl->ports.down  &= ~UCS_BIT(link);
            uct_varuna_ports_changed(ctl, link);
            uct_varuna_moves_announce(ctl);
        }
        uct_varuna_ctl_unlock(ctl);
        if (status == UCS_OK) {
            uct_varuna_link_up(ctl->iface, link, UCT_VARUNA_LINK_CAUSE_ADDRESS);
        }
    }
}



/* --- Messages --- */

static void uct_varuna_moves_handle_req(void *arg, unsigned link,
                                        const uct_varuna_ctl_hdr_t *hdr,
                                        const void *body)
{
    uct_varuna_ctl_t *ctl   = arg;
    uct_varuna_peer_t *peer = uct_varuna_peer_find(ctl, hdr->uuid, hdr->secret);

    (void)body;
    if (peer == NULL) {
        ucs_debug("dropped LINKS_REQ of 0x%lx, which is unknown", hdr->uuid);
        return;
    }

    uct_varuna_moves_tell(ctl, peer, uct_varuna_ctl_reply_link(ctl, peer, link), hdr);
}

static void uct_varuna_moves_handle_rep(void *arg, unsigned link,
                                        const uct_varuna_ctl_hdr_t *hdr,
                                        const void *body)
{
    const uct_varuna_ctl_links_t *rep = body;
    uct_varuna_ctl_t *ctl             = arg;
    unsigned local, moved;
    uct_varuna_peer_t *peer;

    (void)link;
    peer = uct_varuna_peer_learn_moves(ctl, hdr, rep + 1, rep->addr_len, rep->moves,
                                       &moved);
    if (peer == NULL) {
        return;
    }

    /* Endpoints opened to the old address reach nothing. Where there is no other path,
     * their errors show that */
    ucs_for_each_bit(local, moved) {
        if (uct_varuna_peer_usable_links(peer) & ~UCS_BIT(local)) {
            uct_varuna_peer_path_down(ctl->iface, peer, local,
                                      "the peer has another address there");
        }
    }
    uct_varuna_peer_put(ctl, peer);
}

void uct_varuna_moves_init(uct_varuna_ctl_t *ctl)
{
    static const uct_varuna_bus_reg_t rows[] = {
        {UCT_VARUNA_CTL_LINKS_REQ, UCT_VARUNA_BUS_ASYNC, uct_varuna_moves_handle_req},
        {UCT_VARUNA_CTL_LINKS_REP, UCT_VARUNA_BUS_MAIN, uct_varuna_moves_handle_rep}
    };

    uct_varuna_bus_register(&ctl->bus, rows, ucs_static_array_size(rows), ctl);
}
