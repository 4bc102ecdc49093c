/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The interface's counters in UCX's VFS tree.
 */
#ifndef UCT_VARUNA_VFS_H_
#define UCT_VARUNA_VFS_H_

#include <uct/api/uct.h>

/** Show links and vQPs: uct_iface_internal_ops_t::iface_vfs_refresh. */
void uct_varuna_iface_vfs_refresh(uct_iface_h tl_iface);

#endif
