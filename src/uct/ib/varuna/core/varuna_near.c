/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See varuna_near.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_near.h"

void uct_varuna_near_order(const double *distances, unsigned num_links,
                           unsigned primary, uint8_t *order)
{
    unsigned num_ordered = 1;
    unsigned step, link, i;

    order[0] = primary;
    for (step = 1; step < num_links; ++step) {
        link = (primary + step) % num_links;
        for (i = num_ordered++; (i > 1) &&
                                (distances[order[i - 1]] > distances[link]); --i) {
            order[i] = order[i - 1];
        }
        order[i] = link;
    }
}
