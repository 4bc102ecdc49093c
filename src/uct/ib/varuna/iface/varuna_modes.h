/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The modes of atomics, and which code serves them.
 */
#ifndef UCT_VARUNA_MODES_H_
#define UCT_VARUNA_MODES_H_

#include <uct/ib/varuna/requester/varuna_amo_ops.h>
#include <uct/ib/varuna/responder/varuna_responder.h>

typedef struct uct_varuna_mode {
    const uct_varuna_amo_ops_t    *requester; /* NULL: it is not built */
    const uct_varuna_served_ops_t *responder; /* NULL: the NIC alone serves peers */
} uct_varuna_mode_t;

/** @return The code that serves the mode of a memory domain. */
const uct_varuna_mode_t *uct_varuna_mode(const uct_varuna_md_t *md);

/** In a new child: forget what modes have once for each process. */
void uct_varuna_modes_forked(void);

#endif
