/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * A directory of plain files which looks like the part of /sys that describes
 * an InfiniBand device, for programs that read it through
 * ibv_device.ibdev_path:
 *
 *   DIR/host0/0000:a1:00.0/{vendor,device,current_link_speed,...}
 *   DIR/host0/0000:a1:00.0/infiniband/mlx5_0/{board_id,node_guid,...}
 *   DIR/host0/0000:a1:00.0/infiniband/mlx5_0/ports/1/{lid,link_layer,...}
 *   DIR/host0/0000:a1:00.0/infiniband_verbs/uverbs0/{ibdev,abi_version}
 *
 * Created when a device list is first requested (verbs/), below the fabric's own
 * directory, and removed together with that.
 */

#ifndef EMU_SYSFS_H_
#define EMU_SYSFS_H_

#include <stddef.h>

#define EMU_SYSFS_BDF_MAX    32


/** The PCI address of a NIC, the same on each host: "0000:a1:00.0". */
void emu_sysfs_bdf(unsigned link, char *bdf, size_t max);


/**
 * Create the directory of a fabric, if it isn't there. It appears at once with
 * all of its contents, however many processes call this at a time. The fabric
 * must be mapped: identifiers are those of its ports.
 *
 * @param [in]  dir    Directory to create.
 * @param [in]  hosts  Number of hosts.
 * @param [in]  links  Number of links, that is NICs of each host.
 *
 * @return 0 on success, otherwise a value of errno. On failure nothing is left.
 */
int emu_sysfs_create(const char *dir, unsigned hosts, unsigned links);


/**
 * Path of a NIC's "infiniband" entry.
 *
 * @return 0 on success, ENAMETOOLONG if @a max is too little.
 */
int emu_sysfs_ibdev_path(const char *dir, unsigned host, unsigned link,
                         char *path, size_t max);


/**
 * Path of a NIC's "infiniband_verbs" entry, see @ref emu_sysfs_ibdev_path.
 */
int emu_sysfs_verbs_path(const char *dir, unsigned host, unsigned link,
                         char *path, size_t max);

#endif
