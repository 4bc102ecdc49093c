/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What a device reports about its ports. UCX keeps what it read when it opened the
 * device.
 */
#ifndef UCT_VARUNA_MLX5_PORT_H_
#define UCT_VARUNA_MLX5_PORT_H_

#include <uct/api/uct.h>
#include <stdint.h>

/** @return The port's number on its device, the last one in "mlx5_0:1". */
uint8_t uct_varuna_mlx5_port_num(const char *dev_name);

/**
 * @param [in] md        Memory domain of ib.
 * @param [in] dev_name  Name of one of its ports, such as "mlx5_0:1".
 *
 * @return The longest time (seconds) for which the fabric may delay a packet of this
 * port, as the subnet manager reports it; if that is unknown, a value that is safe for
 * most.
 */
double uct_varuna_mlx5_port_lifetime(uct_md_h md, const char *dev_name);

#endif
