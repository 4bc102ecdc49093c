/**
 * Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * How long UCX's own tests wait for what must happen. Some wait for 3 or 10 s, and fail,
 * or skip themselves, if a busy machine takes longer. Here such a time is a minute at
 * least, and only ends a hang. Shorter times are not limits: for so long a test does
 * something, or looks that nothing happens. The compiler includes this before UCX's test
 * files.
 */

#ifndef RCV_UCX_TEST_LIMITS_H_
#define RCV_UCX_TEST_LIMITS_H_

#include <ucs/time/time.h>

/* Seconds from which on a time is a limit */
#ifndef RCV_UCX_TEST_LIMITS_FROM
#  define RCV_UCX_TEST_LIMITS_FROM 10.0
#endif

static inline ucs_time_t rcv_ucx_test_time_from_sec(double sec)
{
    const double least = 60.0;

    if ((sec >= RCV_UCX_TEST_LIMITS_FROM) && (sec < least)) {
        sec = least;
    }

    return ucs_time_from_sec(sec);
}

#define ucs_time_from_sec(_sec) rcv_ucx_test_time_from_sec(_sec)

#endif
