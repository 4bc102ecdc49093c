/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The requester's side of the control plane: state OPENING, requests that are sent
 * until they are answered, and the answers. Called by varuna_recovery.c,
 * varuna_verdict.c and, with the answers, varuna_answers.c.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_sm.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/core/varuna_held.h>
#include <uct/ib/varuna/core/varuna_msg.h>
#include "varuna_lane.h"
#include "varuna_stat.h"
#include "varuna_ring.h"


unsigned uct_varuna_ep_ctl_links(const uct_varuna_ep_t *ep)
{
    const uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    unsigned map                    = 0;
    unsigned link;

    ucs_for_each_bit(link, ep->peer->link_map) {
        if (!(iface->link_table.links[link].causes & UCT_VARUNA_LINK_CAUSE_PORT) &&
            !uct_varuna_ctl_is_nic_gone(iface->ctl, link)) {
            map |= UCS_BIT(link);
        }
    }

    return (map == 0) ? ep->peer->link_map : map;
}

ucs_status_t uct_varuna_ep_ctl_send(uct_varuna_ep_t *ep, unsigned link,
                                    uct_varuna_ctl_type_t type, uint32_t epoch,
                                    const void *body, size_t length)
{
    uct_varuna_iface_t *iface  = uct_varuna_ep_iface(ep);
    uct_varuna_ctl_hdr_t whose = {
        .secret  = ep->peer->secret,
        .opening = ep->remote.opening,
        .vqp     = ep->id,
        .epoch   = epoch
    };

    return uct_varuna_ctl_send(iface->ctl, ep->peer, link, type, &whose, body,
                               length);
}

void uct_varuna_ep_ctl_ended(uct_varuna_ep_t *ep)
{
    uct_varuna_requester_peer(uct_varuna_ep_iface(ep), ep->peer)->asking -=
            ep->ask.counted;
    ep->ask.counted = 0;
    uct_varuna_retry_stop(&ep->ask.retry);
}

static uint32_t uct_varuna_ep_ctl_num_lost(const uct_varuna_ep_t *ep, unsigned link)
{
    return __atomic_load_n(&ep->peer->num_lost[link], __ATOMIC_RELAXED);
}

/* Messages that were sent on that link have failed, and this one may be among them. If
 * the next one fails as well, the usual time passes before another */
static int uct_varuna_ep_ctl_is_lost(const uct_varuna_ep_t *ep)
{
    return uct_varuna_retry_is_asking(&ep->ask.retry) && !ep->ask.hurried &&
           (uct_varuna_ep_ctl_num_lost(ep, ep->ask.retry.link) != ep->ask.num_lost);
}

void uct_varuna_ep_ctl_request(uct_varuna_ep_t *ep, ucs_time_t now,
                               uct_varuna_ctl_type_t type, uint32_t epoch,
                               const void *body, size_t length)
{
    uct_varuna_iface_t *iface              = uct_varuna_ep_iface(ep);
    uct_varuna_requester_peer_t *peer      = uct_varuna_requester_peer(iface, ep->peer);
    uct_varuna_retry_t *retry              = &ep->ask.retry;
    const uct_varuna_retry_t last          = *retry;
    const uct_varuna_retry_policy_t policy = {
        .interval = iface->config.ctl_timeout
    };
    int is_lost                            = uct_varuna_ep_ctl_is_lost(ep);
    unsigned link;

    if (!retry->is_active) {
        uct_varuna_retry_start(retry, 0, retry->since);
    } else if (!is_lost && (uct_varuna_retry_check(retry, &policy, now, 0) !=
                            UCT_VARUNA_RETRY_SEND)) {
        return;
    }

    if (!ep->ask.counted) {
        if (peer->asking >= UCT_VARUNA_MAX_ASKING) {
            return; /* Its turn comes */
        }

        ep->ask.counted = 1;
        ++peer->asking;
    }

    link = uct_varuna_retry_next(retry, &policy, uct_varuna_ep_select_link(ep),
                                 uct_varuna_ep_ctl_links(ep), now);
    if (retry->tries > 1) {
        ucs_debug("rc_varuna: ep %p vqp=%u: no answer on %s for %.3f s: asking "
                  "again on %s", ep, ep->id,
                  uct_varuna_link_name(iface, last.link),
                  ucs_time_to_sec(now + policy.interval - last.due),
                  uct_varuna_link_name(iface, link));
    }

    ep->ask.num_lost = uct_varuna_ep_ctl_num_lost(ep, link);
    ep->ask.hurried  = is_lost;
    uct_varuna_ep_ctl_send(ep, link, type, epoch, body, length);
}

/* The time before the state was entered counts, if the peer was silent: it may have been asked
 * nothing in this state yet. @return Whether each link had its chance. */
static int uct_varuna_ep_has_asked(const uct_varuna_ep_t *ep, ucs_time_t in_state)
{
    const uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    unsigned num_links              = ucs_popcount(uct_varuna_ep_ctl_links(ep));

    if (in_state > iface->config.give_up) {
        return 1;
    }

    /* The one after the last has waited for its answer. CONNECT_REQ takes four times as long */
    return ep->ask.retry.is_active ? (ep->ask.retry.tries > num_links) :
           (in_state >= (4 * num_links * iface->config.ctl_timeout));
}

void uct_varuna_ep_check_give_up(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    ucs_time_t in_state       = uct_varuna_requester(iface)->scan.clock - ep->sm.clock;
    ucs_time_t age            = (ep->ask.retry.since == 0) ? in_state :
                                (uct_varuna_requester(iface)->scan.clock -
                                 ep->ask.retry.since);

    /* Watch the link over which it was asked. The link that was left may be down at
     * our end, and then its silence proves nothing */
    if (ep->ask.retry.tries > 0) {
        uct_varuna_heartbeat_use(ep->peer, ep->ask.retry.link, now);
    } else if (ep->lane.link != UCT_VARUNA_LINK_NONE) {
        uct_varuna_heartbeat_use(ep->peer, ep->lane.link, now);
    }

    if (uct_varuna_heartbeat_is_gone(ep->peer, iface->config.peer_timeout)) {
        ucs_diag("ep %p: vQP %u: the peer's process is gone: it was silent on all "
                 "links for %.1f s while others on its host answered", ep,
                 ep->id, ucs_time_to_sec(iface->config.peer_timeout));
        uct_varuna_outage_give_up(ep, iface->config.peer_timeout);
        uct_varuna_ep_raise_fatal(ep, UCS_ERR_ENDPOINT_TIMEOUT);
    } else if ((age > iface->config.give_up) && uct_varuna_ep_has_asked(ep, in_state)) {
        /* An application that computed has not asked meanwhile: an answer may be
         * lost, and the question as well */
        ucs_diag("ep %p: vQP %u: no answer from the peer in state %s for %.1f s:"
                 " giving up", ep, ep->id, uct_varuna_ep_state_names[ep->hot.state],
                 ucs_time_to_sec(age));
        uct_varuna_outage_give_up(ep, age);
        uct_varuna_ep_raise_fatal(ep, UCS_ERR_ENDPOINT_TIMEOUT);
    }
}

void uct_varuna_ep_handle_reject(uct_varuna_ep_t *ep,
                                 const uct_varuna_ctl_reject_t *rej)
{
    if (rej->dest != ep->peer->uuid) {
        return; /* The id was another endpoint's */
    }

    ucs_diag("ep %p: the peer refused vQP %u (%s): %s", ep, ep->id,
             uct_varuna_ctl_type_name(rej->type),
             ucs_status_string((ucs_status_t)rej->status));
    uct_varuna_ep_raise_fatal(ep, UCS_ERR_CONNECTION_RESET);
}

/* The target and the number of the first message are known now: put them in the header of
 * a message that was posted while the endpoint was being opened. */
static void uct_varuna_req_set_target(uct_varuna_req_t *req, uint32_t target,
                                      uint32_t first_seq)
{
    if (uct_varuna_req_info(req)->kind != UCT_VARUNA_OP_AM) {
        return;
    }

    req->am.hdr.seq   += first_seq;
    req->am.hdr.target = (target << UCT_VARUNA_AM_ID_BITS) |
                         (req->am.hdr.target & UCS_MASK(UCT_VARUNA_AM_ID_BITS));
    if (uct_varuna_req_info(req)->place == UCT_VARUNA_REQ_IN_IOV_AFTER_HEADER) {
        memcpy(uct_varuna_req_am_header(req), &req->am.hdr, sizeof(req->am.hdr));
    }
}

void uct_varuna_ep_handle_open_rep(uct_varuna_ep_t *ep,
                                   const uct_varuna_ctl_hdr_t *hdr,
                                   const uct_varuna_ctl_open_rep_t *rep)
{
    uct_varuna_req_t *req;
    ucs_status_t status;
    uint32_t first_seq;

    if ((ep->hot.state != UCT_VARUNA_EP_OPENING) || (ep->remote.logs_addr != 0) ||
        (hdr->epoch != ep->instance)) {
        return;
    }

    if ((rep->log_size != UCT_VARUNA_LOG_SIZE) ||
        (rep->log_count != UCT_VARUNA_LOG_COUNT) || (rep->log_addr == 0) ||
        (rep->target >= UCT_VARUNA_TARGET_ID_MAX)) {
        ucs_error("ep %p: the peer offers logs of another shape (%u x %u): "
                  "install the same rc_varuna on both hosts", ep,
                  rep->log_count, rep->log_size);
        uct_varuna_ep_raise_fatal(ep, UCS_ERR_INVALID_PARAM);
        return;
    }

    status = uct_rkey_unpack(&uct_varuna_component, rep + 1, &ep->remote.log_bundle);
    if (status != UCS_OK) {
        uct_varuna_ep_raise_fatal(ep, status);
        return;
    }

    status = uct_varuna_requester(uct_varuna_ep_iface(ep))->amo->open(ep, rep);
    if (status != UCS_OK) {
        uct_rkey_release(&uct_varuna_component, &ep->remote.log_bundle);
        uct_varuna_ep_raise_fatal(ep, status);
        return;
    }

    uct_varuna_ep_check_log_key(ep);
    ep->remote.logs_addr = rep->log_addr;
    ep->remote.opening   = hdr->opening;
    ep->ask.retry.since  = uct_varuna_ep_requester(ep)->scan.clock; /* It waits for a lane */
    uct_varuna_ep_ctl_ended(ep);
    ep->hot.target    = rep->target;
    first_seq         = uct_varuna_am_seq_first(hdr->opening);
    ep->hot.am_seq   += first_seq; /* It has counted from 0 */
    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        uct_varuna_req_set_target(req, rep->target, first_seq);
    }
}
