/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the files of core/ share about the mapped fabric.
 */

#ifndef EMU_FABRIC_PRIV_H_
#define EMU_FABRIC_PRIV_H_

/** Descriptor of the fabric's file, -1 while none is open. */
extern int emu_fabric_fd;

#endif
