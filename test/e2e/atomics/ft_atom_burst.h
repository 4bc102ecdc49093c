/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The part of the job (ft_atom_job) that has many endpoints execute many atomics at once.
 */
#ifndef FT_ATOM_BURST_H_
#define FT_ATOM_BURST_H_

#include "ft_uct.h"

#define FT_ATOM_BURST_MAX   64    /* Endpoints */
#define FT_ATOM_BURST_DEPTH 64    /* Atomics of each at once */

/** Open endpoints, each of which executes one atomic. */
void ft_atom_burst_open(ft_uct_t *uct, const ft_address_t *server, uct_rkey_t rkey,
                        uint64_t base, unsigned count);

/** In each round, each endpoint adds its number (from 1) to its own word, FT_ATOM_BURST_DEPTH
 *  times at once. Ends the program if the results are not those of an endpoint that executed
 *  each addition once. */
void ft_atom_burst_run(unsigned rounds);

#endif
