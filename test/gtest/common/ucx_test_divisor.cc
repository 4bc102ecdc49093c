/**
 * Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * How long UCX's own tests take. They divide their numbers of repetitions, and multiply
 * their timeouts, by a number that is 1 except under valgrind. Here it is
 * RCV_UCX_TEST_DIVISOR of the environment, 1 by default.
 *
 * The linker (--wrap) redirects the calls of the test files to this one, but not those
 * of the harness, which would fill buffers with zeros instead of random data.
 *
 * Their deadlines are a minute away at least, as other limits are (ucx_test_limits.h).
 */

#include "common/ucx_test_limits.h"

#include <stdlib.h>

#define WRAP_MULTIPLIER __wrap__ZN3ucs20test_time_multiplierEv
#define WRAP_DEADLINE   __wrap__ZN3ucs12get_deadlineEd

extern "C" int WRAP_MULTIPLIER();

extern "C" int WRAP_MULTIPLIER()
{
    static const char *value = getenv("RCV_UCX_TEST_DIVISOR");
    static const int divisor = (value == NULL) ? 1 : atoi(value);

    return (divisor > 0) ? divisor : 1;
}

extern "C" ucs_time_t WRAP_DEADLINE(double timeout_in_sec);

extern "C" ucs_time_t WRAP_DEADLINE(double timeout_in_sec)
{
    return ucs_get_time() + ucs_time_from_sec(timeout_in_sec);
}
