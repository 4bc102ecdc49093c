/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UCX's clock, see cost_clock.h. UCX's libraries find both symbols here first. They use
 * them before main().
 */
#include "cost_clock.h"

#include <ucs/config/types.h>
#include <ucs/sys/math.h>

#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>


/* What a call of progress takes without a profiler */
#define COST_CLOCK_STEP_NS 100


double ucs_get_cpu_clocks_per_sec(void);

extern ucs_ternary_auto_value_t ucs_arch_x86_enable_rdtsc;
ucs_ternary_auto_value_t ucs_arch_x86_enable_rdtsc = UCS_NO;

static struct {
    uint64_t held;   /* Nanoseconds; 0: time passes */
    uint64_t behind; /* How much was left out until now */
} cost_clock;


static uint64_t cost_clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (now.tv_sec * 1000000000ul) + now.tv_nsec -
           __atomic_load_n(&cost_clock.behind, __ATOMIC_RELAXED);
}

/* Other threads read the time, too */
int gettimeofday(struct timeval *tv, void *tz)
{
    uint64_t now = __atomic_load_n(&cost_clock.held, __ATOMIC_ACQUIRE);

    (void)tz;
    now         = (now == 0) ? cost_clock_now() : now;
    tv->tv_sec  = now / 1000000000ul;
    tv->tv_usec = (now % 1000000000ul) / 1000;
    return 0;
}

int cost_clock_check(void)
{
#ifdef __x86_64__
    if (ucs_get_cpu_clocks_per_sec() != 1e6) {
        fprintf(stderr, "this UCX does not read the time by gettimeofday()\n");
        return -1;
    }
#endif
    return 0;
}

void cost_clock_hold(void)
{
    __atomic_store_n(&cost_clock.held, cost_clock_now(), __ATOMIC_RELEASE);
}

void cost_clock_step(void)
{
    if (cost_clock.held != 0) {
        __atomic_store_n(&cost_clock.held, cost_clock.held + COST_CLOCK_STEP_NS,
                         __ATOMIC_RELEASE);
    }
}

void cost_clock_release(void)
{
    __atomic_store_n(&cost_clock.behind,
                     cost_clock.behind + cost_clock_now() - cost_clock.held,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&cost_clock.held, 0, __ATOMIC_RELEASE);
}
