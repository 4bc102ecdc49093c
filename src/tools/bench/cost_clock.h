/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The clock of UCX and its transports in this process. UCX reads the CPU's counter, or
 * calls gettimeofday() if it takes that counter for unusable. The program says that it is,
 * and has its own gettimeofday(), which it can hold: then time passes only with calls of
 * progress. A transport that does something every millisecond so does it after the same
 * number of calls on any machine, and in a profiler. The emulated NICs have another clock.
 */
#ifndef COST_CLOCK_H
#define COST_CLOCK_H


/** Check that UCX reads this clock. @return 0, or -1 with the reason on stderr. */
int cost_clock_check(void);

/** Hold the time. */
void cost_clock_hold(void);

/** A call of progress: nothing if time is not held. */
void cost_clock_step(void);

/** Time passes again, from where it was held. */
void cost_clock_release(void);

#endif
