/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Keeps grants of credits and RESET apart. See varuna_mlx5.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5.h"
#include "varuna_mlx5_ep.h"
#include <uct/ib/varuna/core/varuna_numbers.h>

#include <ucs/datastruct/khash.h>
#include <ucs/debug/assert.h>
#include <ucs/type/init_once.h>
#include <pthread.h>

UCT_VARUNA_HASH_MAP_INIT_POINTER(uct_varuna_stopped_eps, char)

static struct {
    pthread_mutex_t                  lock;    /* Of the table, and while UCX grants */
    khash_t(uct_varuna_stopped_eps)  stopped; /* By endpoint */
    uct_rc_iface_ops_t               ops;     /* rc_mlx5's table, with our function in it */
    uct_rc_iface_ops_t               inner;   /* ... and its own one */
} uct_varuna_grants = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};

/* Nobody waits for a grant that is not sent: the sender has left this queue pair */
static ucs_status_t uct_varuna_mlx5_fc_ctrl(uct_ep_h ep, unsigned op,
                                            uct_rc_pending_req_t *req)
{
    ucs_status_t status = UCS_OK;

    pthread_mutex_lock(&uct_varuna_grants.lock);
    if (kh_get(uct_varuna_stopped_eps, &uct_varuna_grants.stopped, (uintptr_t)ep) ==
        kh_end(&uct_varuna_grants.stopped)) {
        status = uct_varuna_grants.inner.fc_ctrl(ep, op, req);
    }
    pthread_mutex_unlock(&uct_varuna_grants.lock);
    return status;
}

void uct_varuna_mlx5_guard_rc(uct_iface_h tl_iface)
{
    static ucs_init_once_t once = UCS_INIT_ONCE_INITIALIZER;
    uct_ib_iface_t *iface       = ucs_derived_of(tl_iface, uct_ib_iface_t);

    UCS_INIT_ONCE(&once) {
        uct_varuna_grants.inner       = *ucs_derived_of(iface->ops, uct_rc_iface_ops_t);
        uct_varuna_grants.ops         = uct_varuna_grants.inner;
        uct_varuna_grants.ops.fc_ctrl = uct_varuna_mlx5_fc_ctrl;
    }

    ucs_assert(ucs_derived_of(iface->ops, uct_rc_iface_ops_t)->fc_ctrl ==
               uct_varuna_grants.inner.fc_ctrl);
    iface->ops = &uct_varuna_grants.ops.super;
}

ucs_status_t uct_varuna_mlx5_grants_stop(uct_ep_h ep)
{
    int ret;

    pthread_mutex_lock(&uct_varuna_grants.lock);
    kh_put(uct_varuna_stopped_eps, &uct_varuna_grants.stopped, (uintptr_t)ep, &ret);
    pthread_mutex_unlock(&uct_varuna_grants.lock);
    return (ret == UCS_KH_PUT_FAILED) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void uct_varuna_mlx5_grants_forget(uct_ep_h ep)
{
    khiter_t iter;

    pthread_mutex_lock(&uct_varuna_grants.lock);
    iter = kh_get(uct_varuna_stopped_eps, &uct_varuna_grants.stopped, (uintptr_t)ep);
    if (iter != kh_end(&uct_varuna_grants.stopped)) {
        kh_del(uct_varuna_stopped_eps, &uct_varuna_grants.stopped, iter);
    }
    pthread_mutex_unlock(&uct_varuna_grants.lock);
}

void uct_varuna_mlx5_grants_forked(void)
{
    pthread_mutex_init(&uct_varuna_grants.lock, NULL);
}
