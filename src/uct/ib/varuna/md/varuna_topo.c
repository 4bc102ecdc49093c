/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See varuna_topo.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_topo.h"

#include <ucs/debug/log.h>
#include <ucs/sys/topo/base/topo.h>

double uct_varuna_nic_distance(const uct_varuna_nic_t *nic1,
                               const uct_varuna_nic_t *nic2)
{
    ucs_sys_dev_distance_t distance;
    ucs_status_t status;

    if ((nic1->sys_device == UCS_SYS_DEVICE_ID_UNKNOWN) ||
        (nic2->sys_device == UCS_SYS_DEVICE_ID_UNKNOWN)) {
        return 0;
    }

    status = ucs_topo_get_distance(nic1->sys_device, nic2->sys_device, &distance);
    if (status != UCS_OK) {
        ucs_debug("the distance of %s and %s is unknown: %s", nic1->dev_name,
                  nic2->dev_name, ucs_status_string(status));
        return 0;
    }

    /* UCX's bandwidths are those of CPU models: on some, that between two root complexes
     * is higher than that below one of them */
    return distance.latency;
}
