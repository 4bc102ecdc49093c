/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Refusing what is not modelled. Called by all entry points of the library.
 */

#ifndef EMU_REFUSE_H_
#define EMU_REFUSE_H_

/**
 * Set errno to EOPNOTSUPP. If MLX5EMU_EXPLAIN is in the environment, also print what
 * was refused to stderr.
 *
 * @param [in] func  Entry point.
 * @param [in] what  What is not modelled; NULL: the entry point as such.
 *
 * @return EOPNOTSUPP.
 */
int emu_refuse(const char *func, const char *what);

/** The same for functions that return an object. @return NULL. */
void *emu_refuse_object(const char *func, const char *what);

#endif
