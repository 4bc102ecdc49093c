/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Lane sets: which inner transports a NIC's links consist of, by what they are for. All
 * else that differs between transports is in ucx/varuna_tl.h.
 */
#ifndef UCT_VARUNA_SET_H_
#define UCT_VARUNA_SET_H_

#include "varuna_def.h"

typedef struct uct_varuna_set {
    const char                 *name;      /* NULL: there are no more */
    uint8_t                    fast;       /* Connected: the usual lane */
    uint8_t                    fallback;   /* Needs no connection; LANE_NONE: there is
                                              none, and another one is connected */
    uint8_t                    bus;        /* Control messages */
} uct_varuna_set_t;

/* The best one first */
extern const uct_varuna_set_t uct_varuna_sets[];

/* Values of UCX_RC_VARUNA_LANES: "auto", then the names of the sets */
extern const char *uct_varuna_lanes_names[];

/** @return Name of a transport, an uct_varuna_lane_kind_t, in UCX. */
const char *uct_varuna_tl_name(unsigned kind);

#endif
