/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The ways to a peer, for people: which ports are up here and there, which links have both,
 * and whose fault it is that the others don't. Lock held in all.
 */
#ifndef UCT_VARUNA_WAYS_H_
#define UCT_VARUNA_WAYS_H_

#include <uct/ib/varuna/core/varuna_def.h>

#include <ucs/datastruct/string_buffer.h>

/* Bit maps of our links */
typedef struct uct_varuna_ways {
    unsigned                   here;       /* Our port is up */
    unsigned                   there;      /* The link reaches a port of the peer's that is up
                                              as far as the peer has said */
    unsigned                   silent;     /* The peer does not answer there */
} uct_varuna_ways_t;

void uct_varuna_ways_get(const uct_varuna_ctl_t *ctl, const uct_varuna_peer_t *peer,
                         uct_varuna_ways_t *ways);

/** @return Links that work as far as is known: both ports are up, and the peer answers. */
static inline unsigned uct_varuna_ways_open(const uct_varuna_ways_t *ways)
{
    return ways->here & ways->there & ~ways->silent;
}

/** Append all of it: "up here: mlx5_1:1; up there, at the ends of: mlx5_0:1; at both ends:
 *  none; mlx5_0:1: local fault: our port is down; ..." */
void uct_varuna_ways_describe(uct_varuna_ctl_t *ctl, const uct_varuna_peer_t *peer,
                              ucs_string_buffer_t *text);

/** Append a line for each peer that something is wrong with, and one for the others; each
 *  begins with @a prefix. For rc_varuna_status(). */
void uct_varuna_ways_list(uct_varuna_ctl_t *ctl, const char *prefix,
                          ucs_string_buffer_t *text);

#endif
