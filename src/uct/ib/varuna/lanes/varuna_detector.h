/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Listens to the port events of the links' NICs. UCX only logs them, so each
 * NIC is opened a second time for its events. It reports what it saw to a callback
 * and never acts itself.
 */
#ifndef UCT_VARUNA_DETECTOR_H_
#define UCT_VARUNA_DETECTOR_H_

#include <uct/ib/varuna/core/varuna_def.h>

#include <ucs/async/async_fwd.h>

typedef struct uct_varuna_detector uct_varuna_detector_t;

typedef enum {
    UCT_VARUNA_PORT_DOWN,
    UCT_VARUNA_PORT_UP,        /* The port is active */
    UCT_VARUNA_PORT_ADDRESS    /* Its LID or its GIDs may have changed */
} uct_varuna_port_event_t;

/**
 * The state of a port has changed. Called in the async context with the async lock
 * held.
 *
 * @param [in] arg   User's argument.
 * @param [in] port  Index of the port, in the order of ports.
 * @param [in] event What happened to it.
 */
typedef void (*uct_varuna_detector_cb_t)(void *arg, unsigned port,
                                         uct_varuna_port_event_t event);

/** @return whether the system says that the device of a port is gone. Any
 *  thread. */
int uct_varuna_detector_is_gone(const uct_varuna_detector_t *detector,
                                unsigned port_index);

/**
 * Query a device, in case there was no event. The lock is held.
 *
 * @param [in] port_index  Index of its port.
 * @param [in] was_up      The port is believed to be active: report if it isn't.
 */
void uct_varuna_detector_check(uct_varuna_detector_t *detector,
                               unsigned port_index, int was_up);

/**
 * Create a detector without ports.
 *
 * @param [in]  async       Async context in which to listen.
 * @param [in]  cb          Called for each event.
 * @param [in]  arg         Its argument.
 * @param [out] detector_p  Filled with the detector.
 */
ucs_status_t uct_varuna_detector_create(ucs_async_context_t *async,
                                        uct_varuna_detector_cb_t cb, void *arg,
                                        uct_varuna_detector_t **detector_p);

/**
 * Listen to a port. If it is down already, the callback is called at once.
 *
 * @param [in] detector  Detector.
 * @param [in] port      Index, which the callback gets.
 * @param [in] dev_name  Name as in UCT: "mlx5_0:1".
 */
ucs_status_t uct_varuna_detector_add(uct_varuna_detector_t *detector,
                                     unsigned port, const char *dev_name);

/** Do not listen to this port any more: its device is about to be closed. It counts as one that is
 *  not gone. Lock of the async context. */
void uct_varuna_detector_remove(uct_varuna_detector_t *detector, unsigned port_index);

/** Stop listening. Must not be called with the async lock held. */
void uct_varuna_detector_destroy(uct_varuna_detector_t *detector);

#endif
