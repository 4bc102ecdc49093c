/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * How much a requester asks for at once, when thousands of its endpoints have lost
 * their lanes. contrib/eval.sh simulates what follows for a thousand hosts.
 */
#ifndef UCT_VARUNA_LIMITS_H_
#define UCT_VARUNA_LIMITS_H_

/* How many RC connections are begun in a second at most, at first use as well as after a
 * failure: thousands of them must not stall the traffic. Meanwhile endpoints use DC. */
#define UCT_VARUNA_REBUILD_RATE      1000

/* How many endpoints to one peer may wait for an answer at once (UCT_VARUNA_CTL_MAX_QUEUE
 * messages wait in a queue, others are dropped). */
#define UCT_VARUNA_MAX_ASKING        256

/* How many CONNECT_REQs to one peer may be unanswered at once. */
#define UCT_VARUNA_MAX_CONNECTING    64

/* A NIC without a route to the peer, and one that was given a wrong local key, may report
 * the same error. If this many lanes of an endpoint in a row fail with it before one has
 * completed anything, it is not the links' fault. */
#define UCT_VARUNA_MAX_UNSENT        8

#endif
