/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The fabric's file: creating, mapping and removing it.
 *
 * Called by: ctl/ (create, destroy, open) and emu_attach.c (open).
 */

#ifndef EMU_MAP_H_
#define EMU_MAP_H_

#include "emu_fabric.h"

/** Fill a configuration with defaults (2 hosts, 2 links, MTU 4096). */
void emu_fabric_config_default(emu_fabric_config_t *cfg_p);

/**
 * Create a fabric's file and directory. Does not leave it mapped.
 *
 * @param [out] err  On failure, a sentence for the user.
 * @return 0, -EEXIST, -EINVAL, ...
 */
int emu_fabric_create(const emu_fabric_config_t *cfg, char *err,
                      size_t err_max);

/** Map a fabric, without becoming a process of it (as the command does). */
int emu_fabric_open(const char *name, char *err, size_t err_max);

/** Unmap it. */
void emu_fabric_close(void);

/** Remove a fabric's file and directory, whatever state they are in. */
int emu_fabric_destroy(const char *name, char *err, size_t err_max);

/** Whether a string can name a fabric: [A-Za-z0-9_.-], not empty, no dot
 *  first, short enough. */
int emu_fabric_name_valid(const char *name);

#endif
