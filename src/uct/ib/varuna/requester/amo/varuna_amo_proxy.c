/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode proxy: each atomic is a request to the peer's proxy as a whole.
 * varuna_amo.c drives it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_modes.h"
#include "varuna_amo_priv.h"


static ucs_status_t uct_varuna_amo_proxy_start(uct_varuna_ep_t *ep,
                                               const uct_varuna_amo_args_t *args)
{
    return uct_varuna_amo_start(ep, args, 0);
}

static ucs_status_t
uct_varuna_amo_proxy_open(uct_varuna_ep_t *ep,
                          const uct_varuna_ctl_open_rep_t *rep)
{
    uct_varuna_amo_learn_home(ep, rep->home_nic, rep->home_epoch);
    return UCS_OK;
}

const uct_varuna_amo_ops_t uct_varuna_amo_proxy_ops = {
    .start      = uct_varuna_amo_proxy_start,
    .open       = uct_varuna_amo_proxy_open,
    .close      = uct_varuna_amo_native_close,
    .learn_home = uct_varuna_amo_learn_home,
    .progress   = uct_varuna_amo_progress,
    .collect    = uct_varuna_amo_collect,
    .executed   = uct_varuna_amo_native_executed,
    .fail_all   = uct_varuna_amo_fail_all,
    .query      = uct_varuna_amo_query_all_ops
};
