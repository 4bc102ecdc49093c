/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Where NICs are in the host.
 */
#ifndef UCT_VARUNA_TOPO_H_
#define UCT_VARUNA_TOPO_H_

#include "varuna_nic.h"

/**
 * @return How far two NICs are from each other, as UCX estimates it: 0 at the same PCIe
 * switch, more at the same root complex, most at different ones. 0 if that is unknown.
 */
double uct_varuna_nic_distance(const uct_varuna_nic_t *nic1,
                               const uct_varuna_nic_t *nic2);

#endif
