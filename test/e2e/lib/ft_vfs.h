/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The files of UCX's VFS tree, read from inside the process.
 */
#ifndef FT_VFS_H_
#define FT_VFS_H_

#include <stdint.h>

typedef void (*ft_vfs_func_t)(const char *path, const char *text, void *arg);

/** Call @a func for each file below @a path. */
void ft_vfs_read(const char *path, ft_vfs_func_t func, void *arg);

/** @return The sum of all numbers in files of rc_varuna's endpoints of this name. */
uint64_t ft_vfs_sum(const char *name);

/** @return How many of rc_varuna's endpoints in this process use RC. */
unsigned ft_vfs_count_rc(void);

#endif
