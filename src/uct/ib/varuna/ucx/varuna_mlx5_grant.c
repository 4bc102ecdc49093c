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
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <pthread.h>

UCT_VARUNA_HASH_MAP_INIT_POINTER(uct_varuna_stopped_eps, char)

/* Of an interface, whose table of functions is the one in here */
typedef struct {
    pthread_mutex_t                  lock;    /* Of the hash table, and while UCX grants */
    khash_t(uct_varuna_stopped_eps)  stopped; /* By endpoint */
    uct_rc_iface_ops_t               ops;     /* rc_mlx5's table, with functions of ours */
    uct_ib_iface_ops_t               *inner;  /* ... and its own one */
} uct_varuna_mlx5_grants_t;

static uct_varuna_mlx5_grants_t *uct_varuna_mlx5_grants(uct_iface_h tl_iface)
{
    uct_ib_iface_t *iface = ucs_derived_of(tl_iface, uct_ib_iface_t);

    return ucs_container_of(iface->ops, uct_varuna_mlx5_grants_t, ops.super);
}

/* Nobody waits for a grant that is not sent: the sender has left this queue pair */
static ucs_status_t uct_varuna_mlx5_fc_ctrl(uct_ep_h ep, unsigned op,
                                            uct_rc_pending_req_t *req)
{
    uct_varuna_mlx5_grants_t *grants = uct_varuna_mlx5_grants(ep->iface);
    ucs_status_t status              = UCS_OK;

    pthread_mutex_lock(&grants->lock);
    if (kh_get(uct_varuna_stopped_eps, &grants->stopped, (uintptr_t)ep) ==
        kh_end(&grants->stopped)) {
        status = ucs_derived_of(grants->inner, uct_rc_iface_ops_t)->fc_ctrl(ep, op, req);
    }
    pthread_mutex_unlock(&grants->lock);
    return status;
}

/* The interface is being destroyed, after its endpoints. */
static void uct_varuna_mlx5_cleanup_rx(uct_rc_iface_t *iface)
{
    uct_varuna_mlx5_grants_t *grants = uct_varuna_mlx5_grants(&iface->super.super.super);

    iface->super.ops = grants->inner;
    ucs_derived_of(grants->inner, uct_rc_iface_ops_t)->cleanup_rx(iface);
    kh_destroy_inplace(uct_varuna_stopped_eps, &grants->stopped);
    pthread_mutex_destroy(&grants->lock);
    ucs_free(grants);
}

ucs_status_t uct_varuna_mlx5_guard_rc(uct_iface_h tl_iface)
{
    uct_ib_iface_t *iface = ucs_derived_of(tl_iface, uct_ib_iface_t);
    uct_varuna_mlx5_grants_t *grants;

    grants = ucs_malloc(sizeof(*grants), "varuna_mlx5_grants");
    if (grants == NULL) {
        ucs_error("failed to allocate a lock for grants of credits");
        return UCS_ERR_NO_MEMORY;
    }

    pthread_mutex_init(&grants->lock, NULL);
    kh_init_inplace(uct_varuna_stopped_eps, &grants->stopped);
    grants->inner          = iface->ops;
    grants->ops            = *ucs_derived_of(iface->ops, uct_rc_iface_ops_t);
    grants->ops.fc_ctrl    = uct_varuna_mlx5_fc_ctrl;
    grants->ops.cleanup_rx = uct_varuna_mlx5_cleanup_rx;
    iface->ops             = &grants->ops.super;
    return UCS_OK;
}

ucs_status_t uct_varuna_mlx5_grants_stop(uct_ep_h ep)
{
    uct_varuna_mlx5_grants_t *grants = uct_varuna_mlx5_grants(ep->iface);
    int ret;

    pthread_mutex_lock(&grants->lock);
    kh_put(uct_varuna_stopped_eps, &grants->stopped, (uintptr_t)ep, &ret);
    pthread_mutex_unlock(&grants->lock);
    return (ret == UCS_KH_PUT_FAILED) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void uct_varuna_mlx5_grants_forget(uct_ep_h ep)
{
    uct_varuna_mlx5_grants_t *grants = uct_varuna_mlx5_grants(ep->iface);
    khiter_t iter;

    pthread_mutex_lock(&grants->lock);
    iter = kh_get(uct_varuna_stopped_eps, &grants->stopped, (uintptr_t)ep);
    if (iter != kh_end(&grants->stopped)) {
        kh_del(uct_varuna_stopped_eps, &grants->stopped, iter);
    }
    pthread_mutex_unlock(&grants->lock);
}
