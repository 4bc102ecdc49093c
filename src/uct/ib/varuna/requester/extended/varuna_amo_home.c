/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Requests to the peer's home NIC (rule 12): one atomic, or one access of it,
 * at a time is sent to the peer's home NIC until it is answered. Main thread only;
 * varuna_home.c is the peer's side.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_ext.h"
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/requester/varuna_answers.h>
#include <uct/ib/varuna/requester/varuna_ep_ctl.h>
#include <uct/ib/varuna/requester/varuna_lane.h>

#include <ucs/debug/log.h>

void uct_varuna_amo_learn_home(uct_varuna_ep_t *ep, uint8_t nic, uint32_t epoch)
{
    uct_varuna_amo_home_learn(ep, &uct_varuna_ep_ext(ep)->home, nic, epoch);
}

static void uct_varuna_amo_send_home(uct_varuna_ep_t *ep)
{
    const uct_varuna_amo_ext_t *amo     = uct_varuna_ep_ext(ep)->at_home;
    const uct_varuna_amo_act_t *act = &amo->sm.act;
    uct_varuna_ctl_home_req_t req   = {0};
    unsigned link                   = uct_varuna_amo_retry_next(ep);
    unsigned nic;

    req.seq       = uct_varuna_ep_ext(ep)->seq;
    req.addr      = amo->sm.addr;
    req.compare   = act->compare;
    req.swap      = act->swap;
    req.mark_from = act->mark_from;
    req.mark_to   = act->mark_to;
    req.slot      = act->slot;
    req.type      = act->type;
    req.width     = amo->sm.width;
    if (uct_varuna_amo_sm_is_free(&amo->sm)) {
        req.type    = UCT_VARUNA_AMO_ACT_EXECUTE;
        req.slot    = amo->sm.op;
        req.compare = amo->sm.compare;
        req.swap    = amo->sm.value;
    }

    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        req.rkeys[nic] = uct_varuna_rkey_inner((uct_rkey_t)&amo->key, nic);
    }

    uct_varuna_ep_ctl_send(ep, link, UCT_VARUNA_CTL_HOME_REQ, ep->lanes.epoch, &req,
                           sizeof(req));
}

/* Rule 12: exactly once, because the peer keeps the answer to its number. */
ucs_status_t uct_varuna_amo_post_home(uct_varuna_iface_t *iface,
                                      uct_varuna_amo_ext_t *amo)
{
    uct_varuna_ep_t *ep = amo->super.ep;

    if (uct_varuna_ep_ext(ep)->at_home != NULL) {
        return UCS_ERR_BUSY; /* It is tried again when that one is answered */
    }

    uct_varuna_ep_ext(ep)->at_home = amo;
    uct_varuna_amo_retry_start(ep);
    ++uct_varuna_ep_ext(ep)->seq;
    ++ep->amo.stats.proxied;
    uct_varuna_amo_send_home(ep);
    return UCS_OK;
}

/* Ask again. */
void uct_varuna_amo_check_home(uct_varuna_iface_t *iface,
                               uct_varuna_ep_t *ep)
{
    if (uct_varuna_amo_retry_is_due(ep)) {
        uct_varuna_amo_send_home(ep);
    }
}

static void uct_varuna_amo_handle_home_rep(uct_varuna_ep_t *ep,
                                           const uct_varuna_ctl_home_rep_t *rep)
{
    uct_varuna_amo_ext_t *amo = uct_varuna_ep_ext(ep)->at_home;

    uct_varuna_amo_learn_home(ep, rep->home_nic, rep->home_epoch);
    if ((amo == NULL) || (rep->seq != uct_varuna_ep_ext(ep)->seq)) {
        return; /* A repeated answer */
    }

    uct_varuna_ep_ext(ep)->at_home = NULL;
    uct_varuna_retry_stop(&ep->amo.retry);
    if (rep->status != UCS_OK) {
        ucs_diag("ep %p: the peer's home NIC failed to execute an atomic at "
                 "0x%lx: %s", ep, amo->sm.addr,
                 ucs_status_string((ucs_status_t)rep->status));
        uct_varuna_ep_raise_fatal(ep, (ucs_status_t)rep->status);
        return;
    }

    if (uct_varuna_amo_sm_is_free(&amo->sm)) {
        uct_varuna_amo_sm_executed(&amo->sm, rep->value);
    } else {
        uct_varuna_amo_sm_done(&amo->sm, rep->value, NULL);
    }

    uct_varuna_amo_advance(amo);
    uct_varuna_amo_progress(ep);
    uct_varuna_ep_finish_done(ep);
}

static void uct_varuna_amo_home_answer(void *arg, unsigned link,
                                       const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    uct_varuna_ep_t *ep = uct_varuna_answer_opened_ep(arg, hdr);

    if (ep != NULL) {
        uct_varuna_amo_handle_home_rep(ep, body);
    }
}

void uct_varuna_amo_home_listen(uct_varuna_requester_t *requester)
{
    static const uct_varuna_bus_reg_t row = {
        UCT_VARUNA_CTL_HOME_REP, UCT_VARUNA_BUS_MAIN, uct_varuna_amo_home_answer
    };

    uct_varuna_bus_register(&requester->super.ctl->bus, &row, 1, &requester->super);
}
