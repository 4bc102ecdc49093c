/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Functions of UCX's library with rc_mlx5. UCX opens that library for itself alone, so
 * what we call by name would end the process ("undefined symbol") at the first call.
 */
#ifndef UCT_VARUNA_IB_SYMBOL_H_
#define UCT_VARUNA_IB_SYMBOL_H_

#include <uct/api/uct.h>

/**
 * Find a function. It takes a search: keep the result.
 *
 * @param [in] iface  An inner interface, whose code is in the library.
 * @param [in] name   Name of the function.
 *
 * @return The function, or NULL if this UCX has none.
 */
void *uct_varuna_ib_symbol(uct_iface_h iface, const char *name);

#endif
