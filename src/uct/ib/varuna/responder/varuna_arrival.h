/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Whether what a NIC has accepted for memory of devices (GPUs) has arrived there. A reset of
 * the queue pair is evidence for the host's memory alone: data for a device goes another way.
 */
#ifndef UCT_VARUNA_ARRIVAL_H_
#define UCT_VARUNA_ARRIVAL_H_

#include "varuna_responder.h"

/**
 * Read memory of each device of which peers have keys, over the NIC of a link. Thread of that
 * NIC.
 *
 * @return Nonzero if all that this NIC has accepted has arrived; 0 if that is not known.
 */
int uct_varuna_arrival_prove(uct_varuna_responder_t *resp, unsigned link);

/** The interface is closed. What a hanging NIC uses is left alone. */
void uct_varuna_arrival_cleanup(uct_varuna_responder_t *resp);

#endif
