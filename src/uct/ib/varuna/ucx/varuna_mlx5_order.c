/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Reads which service levels are in order, and asks for one. See varuna_mlx5_order.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5_order.h"
#include "varuna_compat.h"
#include "varuna_mlx5_port.h"
#include <uct/ib/varuna/core/varuna_def.h>

#include <uct/ib/base/ib_iface.h>
#include <uct/ib/mlx5/ib_mlx5.h>
#include <uct/ib/mlx5/dv/ib_mlx5_ifc.h>
#include <ucs/arch/bitops.h>
#include <ucs/sys/string.h>
#include <stdlib.h>

static ucs_status_t uct_varuna_mlx5_query_ooo_sl_mask(uct_md_h tl_md, uint8_t port_num,
                                                      uint16_t *mask_p)
{
#if HAVE_DEVX
    uct_ib_mlx5_md_t *md = ucs_derived_of(tl_md, uct_ib_mlx5_md_t);
    char in[UCT_IB_MLX5DV_ST_SZ_BYTES(query_hca_vport_context_in)]   = {};
    char out[UCT_IB_MLX5DV_ST_SZ_BYTES(query_hca_vport_context_out)] = {};
    void *context;

    /* On Ethernet the mask means nothing */
    if (!(md->flags & UCT_IB_MLX5_MD_FLAG_OOO_SL_MASK) ||
        (uct_ib_device_port_attr(&md->super.dev, port_num)->link_layer ==
         IBV_LINK_LAYER_ETHERNET)) {
        return UCS_ERR_UNSUPPORTED;
    }

    UCT_IB_MLX5DV_SET(query_hca_vport_context_in, in, opcode,
                      UCT_IB_MLX5_CMD_OP_QUERY_HCA_VPORT_CONTEXT);
    UCT_IB_MLX5DV_SET(query_hca_vport_context_in, in, port_num, port_num);
    if (mlx5dv_devx_general_cmd(md->super.dev.ibv_context, in, sizeof(in), out,
                                sizeof(out)) != 0) {
        ucs_debug("QUERY_HCA_VPORT_CONTEXT(port=%u) failed, syndrome 0x%x: %m",
                  port_num,
                  UCT_IB_MLX5DV_GET(query_hca_vport_context_out, out, syndrome));
        return UCS_ERR_IO_ERROR;
    }

    context = UCT_IB_MLX5DV_ADDR_OF(query_hca_vport_context_out, out,
                                    hca_vport_context);
    *mask_p = UCT_IB_MLX5DV_GET(hca_vport_context, context, ooo_sl_mask);
    return UCS_OK;
#else
    return UCS_ERR_UNSUPPORTED;
#endif
}

/* @return The service levels that the user allows, UCX_IB_SL */
static uint16_t uct_varuna_mlx5_allowed_sls(unsigned kind,
                                            const uct_iface_config_t *config)
{
    /* Reading an option needs its whole path through UCX's tables */
    static const char *names[] = {
        [UCT_VARUNA_LANE_RC] = "RC_RC_IB_SL",
        [UCT_VARUNA_LANE_DC] = "DC_RC_IB_SL"
    };
    char value[32], *end;
    unsigned long sl;

    if (uct_config_get((void*)config, names[kind], value, sizeof(value)) != UCS_OK) {
        return UCS_MASK(UCT_IB_SL_NUM); /* Another version of UCX */
    }

    sl = strtoul(value, &end, 10);
    return ((end == value) || (sl >= UCT_IB_SL_NUM)) ? UCS_MASK(UCT_IB_SL_NUM) :
           UCS_BIT(sl);
}

static ucs_status_t
uct_varuna_mlx5_order_set(const char *dev_name, uct_iface_config_t *config,
                          const char *name, const char *value)
{
    ucs_status_t status;

    status = uct_config_modify(config, name, value);
    if (status != UCS_OK) {
        ucs_error("rc_varuna: UCX refuses %s=%s for %s (%s), so its packets may overtake "
                  "each other. Use the UCX that rc_varuna was built for", name, value,
                  dev_name, ucs_status_string(status));
    }

    return status;
}

/*
 * Newer series tell each queue pair how it places packets: all in order, or reads and
 * writes (AR_ENABLE), or messages as well (DDP_ENABLE) as they come. They refuse to open an
 * interface with one of these options if the device cannot be forced to obey it: 1.18.0
 * even where it obeys anyway.
 */
#if UCT_VARUNA_UCX_AT_LEAST(1, 18)
static ucs_status_t
uct_varuna_mlx5_order_placement(uct_md_h md, const char *dev_name,
                                uct_iface_config_t *config, int *can_force_p)
{
    *can_force_p = !!(ucs_derived_of(md, uct_ib_mlx5_md_t)->flags &
                      UCT_IB_MLX5_MD_FLAG_DP_ORDERING_FORCE);
    return *can_force_p ?
           uct_varuna_mlx5_order_set(dev_name, config, "RC_DDP_ENABLE", "n") : UCS_OK;
}
#else
static ucs_status_t
uct_varuna_mlx5_order_placement(uct_md_h md, const char *dev_name,
                                uct_iface_config_t *config, int *can_force_p)
{
    *can_force_p = 1; /* AR_ENABLE does no more than to choose a service level */
    return UCS_OK;
}
#endif

ucs_status_t uct_varuna_mlx5_order_request(uct_md_h md, const char *dev_name,
                                           unsigned kind,
                                           uct_iface_config_t *config)
{
    ucs_status_t status;
    uint16_t mask, sls;
    int can_force;
    char sl[8];

    status = uct_varuna_mlx5_order_placement(md, dev_name, config, &can_force);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_mlx5_query_ooo_sl_mask(md, uct_varuna_mlx5_port_num(dev_name),
                                               &mask);
    if (status != UCS_OK) {
        return UCS_OK;
    }

    sls = uct_varuna_mlx5_allowed_sls(kind, config) & ~mask;
    if (sls == 0) {
        return UCS_OK; /* UCX would refuse to open */
    }

    if (can_force) {
        return uct_varuna_mlx5_order_set(dev_name, config, "IB_AR_ENABLE", "n");
    }

    ucs_snprintf_safe(sl, sizeof(sl), "%u", ucs_ffs64(sls));
    status = uct_varuna_mlx5_order_set(dev_name, config, "IB_AR_ENABLE", "auto");
    return (status != UCS_OK) ? status :
           uct_varuna_mlx5_order_set(dev_name, config, "IB_SL", sl);
}

uct_varuna_order_t uct_varuna_mlx5_order(uct_iface_h inner, uint8_t *sl_p,
                                         uint16_t *mask_p)
{
    const uct_ib_iface_t *iface = ucs_derived_of(inner, uct_ib_iface_t);

    *sl_p = iface->config.sl;
    if (uct_varuna_mlx5_query_ooo_sl_mask(iface->super.md, iface->config.port_num,
                                          mask_p) != UCS_OK) {
        return UCT_VARUNA_ORDER_UNKNOWN;
    }

    return (*mask_p & UCS_BIT(*sl_p)) ? UCT_VARUNA_ORDER_NONE :
           UCT_VARUNA_ORDER_CERTAIN;
}
