/**
 * Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The transports that UCX's own UCP tests are instantiated for here: those which
 * run on the emulator, and rc_varuna. The compiler includes this before each of
 * UCX's test files (ucp.am). A test's name begins with the first word.
 */

#ifndef RCV_UCP_TRANSPORTS_H_
#define RCV_UCP_TRANSPORTS_H_

#include <common/ucx_test_limits.h> /* before the test's own headers */

#include <ucp/ucp_test.h>

#undef UCP_INSTANTIATE_TEST_CASE
#define UCP_INSTANTIATE_TEST_CASE(_test_case) \
    UCP_INSTANTIATE_TEST_CASE_TLS(_test_case, rcx, "rc_x") \
    UCP_INSTANTIATE_TEST_CASE_TLS(_test_case, dcx, "dc_x") \
    UCP_INSTANTIATE_TEST_CASE_TLS(_test_case, rc_varuna, "rc_varuna")

#undef UCP_INSTANTIATE_TEST_CASE_GPU_AWARE
#define UCP_INSTANTIATE_TEST_CASE_GPU_AWARE(_test_case) \
    UCP_INSTANTIATE_TEST_CASE(_test_case)

#endif
