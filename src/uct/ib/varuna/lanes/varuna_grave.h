/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Inner endpoints whose owner is gone. UCX does not expect a success completion of a
 * destroyed endpoint, so it is destroyed when it is drained, or rests from then on
 * (varuna_rest.h). Until it is drained the lane may still complete requests, or write into
 * their buffers.
 */
#ifndef UCT_VARUNA_GRAVE_H_
#define UCT_VARUNA_GRAVE_H_

#include "varuna_lanes.h"

#include <ucs/datastruct/queue.h>

/** Release the requests in a queue, which no lane uses any more. */
typedef void (*uct_varuna_grave_release_t)(void *remains);

/**
 * Destroy an inner endpoint, now or when it is drained.
 *
 * @param [in]    inner    Inner endpoint, which was invalidated.
 * @param [in]    kind     Its transport.
 * @param [inout] reqs     Its unfinished requests, released with it; empty
 *                         afterwards. NULL if there are none.
 * @param [in]    release  Releases them.
 */
void uct_varuna_grave_bury(uct_varuna_iface_t *iface, uct_ep_h inner,
                           uct_varuna_lane_kind_t kind, void *remains,
                           uct_varuna_grave_release_t release);

/** Destroy those that are drained. */
void uct_varuna_graves_progress(uct_varuna_iface_t *iface);

/** Destroy all, after waiting a second at most for them to drain. */
void uct_varuna_graves_cleanup(uct_varuna_iface_t *iface);

#endif
