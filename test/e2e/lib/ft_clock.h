/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Time and random numbers of the test programs.
 */
#ifndef FT_CLOCK_H_
#define FT_CLOCK_H_

#include <stdint.h>
#include <time.h>

/** @return Nanoseconds on a clock which all processes of this machine share. */
static inline uint64_t ft_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (ts.tv_sec * 1000000000ul) + ts.tv_nsec;
}

/** @return Seconds on the same clock. */
static inline double ft_now(void)
{
    return ft_now_ns() * 1e-9;
}

/** @return A random number below @a limit. The same state, which must not be 0, yields
 *  the same numbers everywhere. */
static inline unsigned ft_random(uint64_t *state, unsigned limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (*state >> 33) % limit;
}

#endif
