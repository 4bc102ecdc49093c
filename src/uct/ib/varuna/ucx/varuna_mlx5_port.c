/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Asks a device for its ports. See varuna_mlx5_port.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5_port.h"
#include <uct/ib/varuna/core/varuna_lifetime.h>

#include <uct/ib/mlx5/ib_mlx5.h>
#include <stdlib.h>
#include <string.h>

uint8_t uct_varuna_mlx5_port_num(const char *dev_name)
{
    const char *colon = strrchr(dev_name, ':');

    return (colon == NULL) ? 1 : atoi(colon + 1);
}

double uct_varuna_mlx5_port_lifetime(uct_md_h md, const char *dev_name)
{
    const uct_ib_device_t *dev = &ucs_derived_of(md, uct_ib_md_t)->dev;
    struct ibv_port_attr attr;

    if (ibv_query_port(dev->ibv_context, uct_varuna_mlx5_port_num(dev_name),
                       &attr) != 0) {
        return UCT_VARUNA_LIFETIME_UNKNOWN;
    }

    return uct_varuna_lifetime(attr.link_layer != IBV_LINK_LAYER_ETHERNET,
                               attr.subnet_timeout);
}
