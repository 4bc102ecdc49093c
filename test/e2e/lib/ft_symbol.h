/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The functions of rc_varuna.h, for a program that is not linked with the plugin.
 */
#ifndef FT_SYMBOL_H_
#define FT_SYMBOL_H_

/** @return The function of this name, or NULL. Call it after UCX has loaded the
 *  plugin. */
void *ft_symbol(const char *name);

#endif
