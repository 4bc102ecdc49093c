/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The lanes of rc_varuna's endpoints, read from UCX's VFS tree inside the process.
 */
#ifndef COST_LANE_H
#define COST_LANE_H


/** @return How many of rc_varuna's endpoints in this process use RC. */
unsigned cost_lane_count_rc(void);

#endif
