/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Random faults of a fabric, from a seed: links go down or silent, packets and
 * acknowledgements are lost, late or doubled, and links end at exact points of
 * operations; NICs die. Used by the drivers of chaos tests.
 */
#ifndef FT_STORM_H_
#define FT_STORM_H_

#include "ft_driver.h"

typedef struct {
    ft_driver_t *driver;
    unsigned    first_host;  /* Of those whose links fail */
    uint64_t    random;
    unsigned    broken;      /* Hosts whose links are to be brought up */
    int         kills;       /* NICs die, too */
    unsigned    clients;     /* Hosts from this one on post operations */
    unsigned    doomed;      /* The link whose NICs die; others are left */
    unsigned    dead;        /* Hosts whose NIC of it has died */
    unsigned    num_rules;
    uint64_t    faults;
    uint64_t    fired;       /* Rules which have hit something */
} ft_storm_t;

/** Begin with a seed. */
void ft_storm_init(ft_storm_t *storm, ft_driver_t *driver, unsigned first_host,
                   uint64_t seed);

/** Let NICs die as well: of one link, which the seed chooses. For the processes that use
 *  them they stay dead. Call it behind ft_driver_up().
 *  @param [in] clients  First host that posts operations. */
void ft_storm_set_kills(ft_storm_t *storm, unsigned clients);

/** One that is given: a link is "down" or "silent". */
void ft_storm_link(ft_storm_t *storm, unsigned host, unsigned link,
                   const char *state);

/** Some faults at short intervals, then mostly a while without. Call it again and
 *  again. */
void ft_storm_blow(ft_storm_t *storm);

/** Take all faults back. */
void ft_storm_end(ft_storm_t *storm);

#endif
