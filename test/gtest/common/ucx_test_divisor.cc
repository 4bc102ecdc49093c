/**
 * Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * How long UCX's own tests take. They divide their numbers of repetitions, and
 * multiply their timeouts, by a number which is 1 except under valgrind. Here it
 * is what the environment says: RCV_UCX_TEST_DIVISOR, 1 unless it is set.
 *
 * The linker (--wrap) turns the calls that the test files make to this one. Not
 * those of the harness itself, which would fill buffers with zeros instead of
 * random data.
 */

#include <stdlib.h>

#define WRAP_MULTIPLIER __wrap__ZN3ucs20test_time_multiplierEv

extern "C" int WRAP_MULTIPLIER();

extern "C" int WRAP_MULTIPLIER()
{
    static const char *value = getenv("RCV_UCX_TEST_DIVISOR");
    static const int divisor = (value == NULL) ? 1 : atoi(value);

    return (divisor > 0) ? divisor : 1;
}
