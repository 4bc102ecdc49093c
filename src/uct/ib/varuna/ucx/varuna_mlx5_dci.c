/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * DC initiators of an interface. Since 1.18 UCX makes each one when a request needs it. For us
 * that would be in a recovery, and UCX takes a NIC that has no queue pair left for one whose
 * DCIs are all busy: each later request tries again, and reports an error. So all are made
 * when the interface is opened, which fails then, as with older versions.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5.h"
#include "varuna_compat.h"

#if UCT_VARUNA_UCX_AT_LEAST(1, 18)

#  include <uct/ib/mlx5/dc/dc_mlx5.h>
#  include <ucs/debug/log.h>
#  include <ucs/type/init_once.h>

/* What an inline function of UCX calls. Its library is not linked with ours, but found by name */
static struct {
    __typeof__(uct_dc_mlx5_iface_create_dci)           *create;
    __typeof__(uct_dc_mlx5_iface_dci_connect)          *connect;
    __typeof__(uct_dc_mlx5_iface_resize_and_fill_dcis) *resize;
    void (*destroy)(uct_dc_mlx5_iface_t *iface, uct_dc_dci_t *dci); /* Not by 1.18 */
} uct_varuna_dci;

#  define uct_dc_mlx5_iface_create_dci                 uct_varuna_dci.create
#  define uct_dc_mlx5_iface_dci_connect                uct_varuna_dci.connect
#  define uct_dc_mlx5_iface_resize_and_fill_dcis       uct_varuna_dci.resize
#  define uct_dc_mlx5_destroy_dci                      uct_varuna_dci.destroy
#  include <uct/ib/mlx5/dc/dc_mlx5_ep.h>

static int uct_varuna_dci_init(uct_iface_h iface)
{
    static ucs_init_once_t once = UCS_INIT_ONCE_INITIALIZER;

    UCS_INIT_ONCE(&once) {
        uct_varuna_dci.create  = uct_varuna_ib_symbol(iface, "uct_dc_mlx5_iface_create_dci");
        uct_varuna_dci.connect = uct_varuna_ib_symbol(iface, "uct_dc_mlx5_iface_dci_connect");
        uct_varuna_dci.resize  = uct_varuna_ib_symbol(
                iface, "uct_dc_mlx5_iface_resize_and_fill_dcis");
        uct_varuna_dci.destroy = uct_varuna_ib_symbol(iface, "uct_dc_mlx5_destroy_dci");
    }

    return (uct_varuna_dci.create != NULL) && (uct_varuna_dci.connect != NULL) &&
           (uct_varuna_dci.resize != NULL) &&
           ((uct_varuna_dci.destroy != NULL) || !UCT_VARUNA_UCX_AT_LEAST(1, 19));
}

static ucs_status_t uct_varuna_dci_create_all(uct_iface_h tl_iface)
{
    uct_dc_mlx5_iface_t *iface   = ucs_derived_of(tl_iface, uct_dc_mlx5_iface_t);
    uct_dc_mlx5_dci_pool_t *pool = &iface->tx.dci_pool[0]; /* Of all our endpoints' path */
    int has_more                 = 1;

    if (iface->tx.num_dci_pools == 0) {
        return UCS_OK; /* With policies that are refused */
    }

    if (!uct_varuna_dci_init(tl_iface)) {
        ucs_warn("rc_varuna: this UCX has no functions that create DCIs, so it creates them when "
                 "they are needed: a recovery may wait for a NIC's commands, or fail if it has no "
                 "more queue pairs. Build rc_varuna for the UCX that is used");
        return UCS_OK;
    }

    while (has_more && (ucs_array_length(&pool->stack) < iface->tx.ndci)) {
        pool->stack_top = ucs_array_length(&pool->stack); /* As if all were in use */
        has_more        = uct_dc_mlx5_iface_dci_can_alloc_or_create(iface, 0);
    }

    pool->stack_top = 0;
    return has_more ? UCS_OK : UCS_ERR_NO_RESOURCE;
}

#else

static ucs_status_t uct_varuna_dci_create_all(uct_iface_h iface)
{
    return UCS_OK; /* UCX has done so */
}

#endif

ucs_status_t uct_varuna_mlx5_prepare_dc(uct_iface_h iface)
{
    ucs_status_t status = uct_varuna_mlx5_guard_dc(iface);

    return (status == UCS_OK) ? uct_varuna_dci_create_all(iface) : status;
}
