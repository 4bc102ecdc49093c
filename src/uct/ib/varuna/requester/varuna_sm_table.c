/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The transitions of the state machine of the vQP. Pure: no object is touched.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ep.h"

#include <stddef.h>
#include <stdint.h>

const char *uct_varuna_ep_state_names[] = {
    [UCT_VARUNA_EP_OPENING]    = "opening",
    [UCT_VARUNA_EP_ACTIVE]     = "active",
    [UCT_VARUNA_EP_SWAP]       = "swap",
    [UCT_VARUNA_EP_BACKLOG]    = "backlog",
    [UCT_VARUNA_EP_DRAIN]      = "drain",
    [UCT_VARUNA_EP_FENCE]      = "fence",
    [UCT_VARUNA_EP_REPEAT]     = "repeat",
    [UCT_VARUNA_EP_FAILED]     = "failed",
    [UCT_VARUNA_EP_STATE_LAST] = NULL
};

/* No event leads to OPENING, so 0 means that the event has no effect. */
#define UCT_VARUNA_SM_TO(_event, _state) \
    [UCT_VARUNA_EP_EVENT_##_event] = UCT_VARUNA_EP_##_state

static const uint8_t
uct_varuna_sm_rows[UCT_VARUNA_EP_STATE_LAST][UCT_VARUNA_EP_EVENT_LAST] = {
    [UCT_VARUNA_EP_OPENING] = { UCT_VARUNA_SM_TO(OPENED, BACKLOG),
                                UCT_VARUNA_SM_TO(FATAL, FAILED) },
    [UCT_VARUNA_EP_ACTIVE]  = { UCT_VARUNA_SM_TO(NEXT_READY, SWAP),
                                UCT_VARUNA_SM_TO(LANE_FAILED, DRAIN),
                                UCT_VARUNA_SM_TO(FATAL, FAILED) },
    [UCT_VARUNA_EP_SWAP]    = { UCT_VARUNA_SM_TO(SWAPPED, BACKLOG),
                                UCT_VARUNA_SM_TO(LANE_FAILED, DRAIN),
                                UCT_VARUNA_SM_TO(FATAL, FAILED) },
    [UCT_VARUNA_EP_BACKLOG] = { UCT_VARUNA_SM_TO(POSTED, ACTIVE),
                                UCT_VARUNA_SM_TO(LANE_FAILED, DRAIN),
                                UCT_VARUNA_SM_TO(FATAL, FAILED) },
    [UCT_VARUNA_EP_DRAIN]   = { UCT_VARUNA_SM_TO(AT_REST, FENCE),
                                UCT_VARUNA_SM_TO(DECIDED, REPEAT),
                                UCT_VARUNA_SM_TO(FATAL, FAILED) },
    [UCT_VARUNA_EP_FENCE]   = { UCT_VARUNA_SM_TO(DECIDED, REPEAT),
                                UCT_VARUNA_SM_TO(FATAL, FAILED) },
    [UCT_VARUNA_EP_REPEAT]  = { UCT_VARUNA_SM_TO(POSTED, ACTIVE),
                                UCT_VARUNA_SM_TO(LANE_FAILED, DRAIN),
                                UCT_VARUNA_SM_TO(FATAL, FAILED) }
};

uct_varuna_ep_state_t uct_varuna_sm_next(uct_varuna_ep_state_t state,
                                         uct_varuna_ep_event_t event)
{
    uint8_t next = uct_varuna_sm_rows[state][event];

    return (next == 0) ? UCT_VARUNA_EP_STATE_LAST : next;
}
