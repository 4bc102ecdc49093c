/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which links come next after the primary: the nearest. Pure: distances are the caller's.
 */
#ifndef UCT_VARUNA_NEAR_H_
#define UCT_VARUNA_NEAR_H_

#include "varuna_def.h"

/**
 * Order links by their distance from one of them.
 *
 * Links of the same distance follow in the order of their numbers, beginning after the
 * primary's: where all distances are the same, rails do not all fall back to link 0.
 *
 * @param [in]  distances  Of each link from the primary.
 * @param [in]  num_links  Their number.
 * @param [in]  primary    Comes first, whatever its distance.
 * @param [out] order      All links, the nearest first.
 */
void uct_varuna_near_order(const double *distances, unsigned num_links,
                           unsigned primary, uint8_t *order);

#endif
