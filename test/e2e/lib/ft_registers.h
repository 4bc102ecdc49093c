/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The client of the chaos test: for some time, reads and writes registers of several
 * servers, sends them messages, and records the operations.
 */
#ifndef FT_REGS_H_
#define FT_REGS_H_

#include "ft_history.h"
#include "ft_uct.h"

typedef struct {
    unsigned client;
    unsigned num_clients;
    unsigned num_servers;
    uint64_t seed;
    double   seconds;
    char     path[256];   /* Records */
} ft_regs_params_t;

/** Run against servers 0, 1, ... @return 0, or -1 and a reason in @a error. */
int ft_regs_run(ft_uct_t *uct, const ft_address_t *servers,
                const ft_regs_params_t *params, char *error, size_t max);

#endif
