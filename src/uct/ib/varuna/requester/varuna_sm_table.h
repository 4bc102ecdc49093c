/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The states of a vQP, the events that concern them, and the transitions.
 */
#ifndef UCT_VARUNA_SM_TABLE_H_
#define UCT_VARUNA_SM_TABLE_H_

/*
 *   OPENING -----> BACKLOG -----> ACTIVE -----> SWAP
 *      opened         ^  posted                   |
 *                     +---------------------------+   planned change
 *
 *   ACTIVE, BACKLOG,  failure
 *   SWAP, REPEAT -------------> DRAIN -----> FENCE -----> REPEAT -----> ACTIVE
 *                                  at rest      decided      posted
 *
 *   All of these can lead to FAILED.
 */
typedef enum {
    UCT_VARUNA_EP_OPENING,   /* Waits for the target and its logs; takes some
                                requests meanwhile */
    UCT_VARUNA_EP_ACTIVE,    /* Posts on its lane */
    UCT_VARUNA_EP_SWAP,      /* Planned change: waits until the lane is empty; takes
                                requests for the new one */
    UCT_VARUNA_EP_BACKLOG,   /* Posts what it took in OPENING or SWAP */
    UCT_VARUNA_EP_DRAIN,     /* Lane in ERR: waits until it is flushed */
    UCT_VARUNA_EP_FENCE,     /* Waits for the responder's fence and evidence */
    UCT_VARUNA_EP_REPEAT,    /* Posts the lost ones again */
    UCT_VARUNA_EP_FAILED,    /* Terminal; reported to the user */
    UCT_VARUNA_EP_STATE_LAST
} uct_varuna_ep_state_t;

extern const char *uct_varuna_ep_state_names[];

typedef enum {
    UCT_VARUNA_EP_EVENT_OPENED,      /* There is a target, and a first lane */
    UCT_VARUNA_EP_EVENT_LANE_FAILED, /* The active lane cannot be used any more */
    UCT_VARUNA_EP_EVENT_NEXT_READY,  /* A better lane is connected */
    UCT_VARUNA_EP_EVENT_SWAPPED,     /* The old lane is empty, or is kept */
    UCT_VARUNA_EP_EVENT_AT_REST,     /* The failed lane is drained */
    UCT_VARUNA_EP_EVENT_DECIDED,     /* Each request has its verdict */
    UCT_VARUNA_EP_EVENT_POSTED,      /* No request waits to be posted */
    UCT_VARUNA_EP_EVENT_FATAL,       /* The endpoint cannot go on */
    UCT_VARUNA_EP_EVENT_LAST
} uct_varuna_ep_event_t;

/**
 * @return The state after @a event in @a state, UCT_VARUNA_EP_STATE_LAST if the event
 *         has no effect there.
 */
uct_varuna_ep_state_t uct_varuna_sm_next(uct_varuna_ep_state_t state,
                                         uct_varuna_ep_event_t event);

#endif
