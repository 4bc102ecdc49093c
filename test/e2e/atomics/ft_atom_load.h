/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics of a job (ft_atom_job): post one, and run the load of the chaos test.
 */
#ifndef FT_ATOM_LOAD_H_
#define FT_ATOM_LOAD_H_

#include "ft_atom_history.h"
#include "ft_uct.h"

typedef struct {
    ft_uct_t   *uct;
    uct_ep_h   ep;
    uct_rkey_t rkey;
    uint64_t   base;        /* Of the server's memory */
    unsigned   client;
    unsigned   width;
    uint64_t   seed;
    double     seconds;
    char       path[256];   /* Records */
} ft_atom_load_t;

/** Post an atomic. @return The status of UCT. */
ucs_status_t ft_atom_post(uct_ep_h ep, uct_rkey_t rkey, const ft_atom_t *atom,
                          uint64_t addr, unsigned width, uint64_t *result,
                          uct_completion_t *comp);

/** Run random atomics on all words for some time, one at a time on each word, and write
 *  their records. @return Their number. Ends the program if one fails. */
size_t ft_atom_load_run(const ft_atom_load_t *load);

#endif
