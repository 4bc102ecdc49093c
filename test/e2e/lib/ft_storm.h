/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Random faults of a fabric, from a seed: links go down or silent, packets and
 * acknowledgements are lost, delayed or duplicated, links fail at exact points of
 * operations, and NICs die. Used by the drivers of chaos tests.
 */
#ifndef FT_STORM_H_
#define FT_STORM_H_

#include "ft_driver.h"

typedef struct {
    ft_driver_t *driver;
    unsigned    first_host;  /* First host whose links fail */
    uint64_t    random;
    unsigned    broken;      /* Hosts whose links are to be brought up */
    int         kills;       /* NICs die, too */
    unsigned    kill_in;     /* The first one dies in this number of faults; 0: it has */
    unsigned    clients;     /* Hosts from this one on post operations */
    unsigned    doomed;      /* NICs of this link die */
    unsigned    dead;        /* Hosts whose NIC of this link has died */
    unsigned    num_rules;
    uint64_t    faults;
    uint64_t    fired;       /* Rules that have fired */
} ft_storm_t;

/** Begin with a seed. */
void ft_storm_init(ft_storm_t *storm, ft_driver_t *driver, unsigned first_host,
                   uint64_t seed);

/** Also kill NICs, of one link that the seed chooses: one among the first faults, and
 *  perhaps others later. They stay dead for the processes that use them. Call it after
 *  ft_driver_up().
 *  @param [in] clients  First host that posts operations. */
void ft_storm_set_kills(ft_storm_t *storm, unsigned clients);

/** Make one link "down" or "silent". */
void ft_storm_link(ft_storm_t *storm, unsigned host, unsigned link,
                   const char *state);

/** Inject some faults at short intervals, then mostly none for a while. Call it
 *  repeatedly. */
void ft_storm_blow(ft_storm_t *storm);

/** @return Whether the storm must continue, because no NIC has died yet. */
int ft_storm_owes_kill(const ft_storm_t *storm);

/** Undo all faults. */
void ft_storm_end(ft_storm_t *storm);

#endif
