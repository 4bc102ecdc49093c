/**
 * Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * For UCX's own tests that post an operation, ignore its status, and expect its effect:
 * repeats the operation while the endpoint has no resources, as during a recovery. The
 * compiler includes this before such a file (ucx.am).
 */

#ifndef RCV_UCX_TEST_RETRY_H_
#define RCV_UCX_TEST_RETRY_H_

#include <uct/uct_test.h>

extern "C" {
#include <uct/base/uct_iface.h>
#include <uct/base/uct_worker.h>
}

static inline void rcv_ucx_test_progress(uct_ep_h ep)
{
    uct_base_iface_t *iface = ucs_derived_of(ep->iface, uct_base_iface_t);

    uct_worker_progress(&iface->worker->super);
}

#define RCV_UCX_TEST_RETRY(_ep, _call) \
    ({ \
        ucs_status_t _status; \
        \
        while ((_status = (_call)) == UCS_ERR_NO_RESOURCE) { \
            rcv_ucx_test_progress(_ep); \
        } \
        _status; \
    })

/* A macro does not expand within itself: these call UCX's functions */
#define uct_ep_atomic32_post(_ep, ...) \
    RCV_UCX_TEST_RETRY(_ep, uct_ep_atomic32_post(_ep, __VA_ARGS__))
#define uct_ep_atomic64_post(_ep, ...) \
    RCV_UCX_TEST_RETRY(_ep, uct_ep_atomic64_post(_ep, __VA_ARGS__))
#define uct_ep_atomic32_fetch(_ep, ...) \
    RCV_UCX_TEST_RETRY(_ep, uct_ep_atomic32_fetch(_ep, __VA_ARGS__))
#define uct_ep_atomic64_fetch(_ep, ...) \
    RCV_UCX_TEST_RETRY(_ep, uct_ep_atomic64_fetch(_ep, __VA_ARGS__))
#define uct_ep_fence(_ep, ...) \
    RCV_UCX_TEST_RETRY(_ep, uct_ep_fence(_ep, __VA_ARGS__))

#endif
