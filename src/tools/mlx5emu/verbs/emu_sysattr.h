/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * The sysfs files of a port: its LID, state, GIDs. As in the kernel, the text of a file
 * is made when it is read, since addresses and links change.
 *
 * Programs find these files below ibv_device.ibdev_path, or below the path that they
 * have on a real system, /sys/class/infiniband/DEVICE.
 *
 * Called by: emu_devnode.c (when a program opens a file), emu_sysfs.c.
 */

#ifndef EMU_SYSATTR_H_
#define EMU_SYSATTR_H_

#include "../core/emu_port.h"

#include <stddef.h>

#define EMU_SYSATTR_MAX 64 /* enough for each text */


/**
 * Text of an attribute.
 *
 * @param [in]  name  Path below the port's directory, such as "gid_attrs/types/3".
 * @param [out] text  Where to write it.
 *
 * @return Its length, -ENOENT: there is no such attribute, -EINVAL: it exists and
 *         cannot be read, such as the type of a GID index that is not in use.
 */
int emu_sysattr_read(const emu_port_t *port, const char *name, char *text,
                     size_t max);


/**
 * Translate a path of a device's directory in sysfs, in whichever way it is written,
 * if this process is in a fabric that has the device.
 *
 * @param [out] port_p  The device's port.
 *
 * @return What follows the device's directory, without slashes in front; NULL if the
 *         path is not one of these.
 */
const char *emu_sysattr_find(const char *path, const emu_port_t **port_p);


/**
 * Open an attribute of a port.
 *
 * @param [in] name  Path below the device's directory.
 *
 * @return A descriptor to read from, -ENOENT if it is no such attribute, or another
 *         negative errno.
 */
int emu_sysattr_open(const emu_port_t *port, const char *name);

#endif
