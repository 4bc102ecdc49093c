/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An emulated fabric. Uses only the command mlx5emu.
 */
#ifndef FT_FABRIC_H_
#define FT_FABRIC_H_

#include <stdint.h>

typedef struct {
    char     name[64];
    char     emu[256];       /* The command */
    unsigned hosts;
    unsigned links;
} ft_fabric_t;

/** Create it. @a prefix is where mlx5emu is installed. */
void ft_fabric_up(ft_fabric_t *fabric, const char *prefix, const char *name,
                  unsigned hosts, unsigned links, const char *options);

/** Remove it, and end the processes that run on it. */
void ft_fabric_down(ft_fabric_t *fabric);

/** Run "mlx5emu VERB -n NAME ARGUMENTS", with spaces between arguments. It must
 *  succeed. @return Its output, to be freed. */
char *ft_fabric_run(const ft_fabric_t *fabric, const char *verb,
                    const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/** The same, without its output. */
void ft_fabric_do(const ft_fabric_t *fabric, const char *verb,
                  const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/** @return The trace after entry @a seq, of @a host or of all (""), for ft_trace_next();
 *  to be freed. */
char *ft_fabric_trace(const ft_fabric_t *fabric, uint64_t seq, const char *host);

/** @return How often the n-th rule has fired. */
uint64_t ft_fabric_fired(const ft_fabric_t *fabric, unsigned n);

/** @return How often the quirks of this fabric have acted. */
uint64_t ft_fabric_quirks_acted(const ft_fabric_t *fabric);

#endif
