/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What all peers together show of a link: which are behind which port, which have
 * answered, and which are silent. Called by the heartbeat; the lock is held in all.
 */
#ifndef UCT_VARUNA_WITNESS_H_
#define UCT_VARUNA_WITNESS_H_

#include "varuna_ctl.h"
#include <uct/ib/varuna/core/varuna_alive.h>

#include <ucs/datastruct/khash.h>
#include <uct/ib/varuna/core/varuna_def.h>
#include <ucs/datastruct/string_buffer.h>

/* A peer behind a port, and the next one: a place in the array plus 1, 0: none */
typedef struct uct_varuna_crowd_member {
    uct_varuna_peer_t          *peer;
    unsigned                   next;
} uct_varuna_crowd_member_t;

typedef struct uct_varuna_crowd_port {
    unsigned                   first;      /* Of its peers, as above */
    unsigned                   num_silent; /* Of them, if it is outside */
} uct_varuna_crowd_port_t;

KHASH_INIT(uct_varuna_crowd_ports, uint64_t, uct_varuna_crowd_port_t, 1,
           kh_int64_hash_func, kh_int64_hash_equal)

/* A port, and when the newest ping was sent that a peer has answered over it */
typedef struct uct_varuna_crowd_best {
    uint64_t                   key;
    ucs_time_t                 proved_at;  /* 0: there is none */
} uct_varuna_crowd_best_t;

typedef struct uct_varuna_crowd_link {
    khash_t(uct_varuna_crowd_ports) ports; /* By the hash of their address */
    uct_varuna_crowd_member_t  *members;
    unsigned                   num_members;
    unsigned                   num_silent; /* Outside */
    uct_varuna_crowd_best_t    best[2];    /* Outside: whichever port is judged, one of
                                              them is another one */
} uct_varuna_crowd_link_t;

/*
 * All peers at one tick. Each silent one is compared with the others: so that thousands
 * may be silent, they are gone through once for each link, and not for each peer. Valid
 * while the lock is held.
 */
typedef struct uct_varuna_crowd {
    uct_varuna_ctl_t           *ctl;
    ucs_time_t                 now;
    unsigned                   gathered;   /* Links that were looked at */
    uct_varuna_crowd_link_t    links[UCT_VARUNA_MAX_LINKS];
} uct_varuna_crowd_t;

/** Costs nothing until somebody is silent. */
void uct_varuna_crowd_init(uct_varuna_crowd_t *crowd, uct_varuna_ctl_t *ctl,
                           ucs_time_t now);

void uct_varuna_crowd_cleanup(uct_varuna_crowd_t *crowd);

/** Go through the other processes behind the port of @a peer. @a pos_p: 0 at first.
 *  @return The next one, NULL if there is none. */
uct_varuna_peer_t *uct_varuna_crowd_neighbour(uct_varuna_crowd_t *crowd,
                                              const uct_varuna_peer_t *peer,
                                              unsigned link, unsigned *pos_p);

/** What is known about the silence of @a peer on @a link, which reaches it. */
void uct_varuna_witness_gather(uct_varuna_crowd_t *crowd, const uct_varuna_peer_t *peer,
                               unsigned link, uct_varuna_symptoms_t *evidence);

/** @return whether what we send to @a peer turns back inside the NIC: it is this
 *  process, or another one behind the same port. */
int uct_varuna_witness_is_inside(const uct_varuna_ctl_t *ctl,
                                 const uct_varuna_peer_t *peer, unsigned link);

/** @return whether @a peer has answered on @a link lately. */
int uct_varuna_witness_is_recent(const uct_varuna_ctl_t *ctl,
                                 const uct_varuna_peer_t *peer, unsigned link,
                                 ucs_time_t now);

/** Log whose fault it is that some paths of @a peer are silent. What is not known now
 *  is logged if it turns out in the next intervals: so this is called in each.
 *
 * @param [in] dead          Paths which were found to be dead just now.
 * @param [in] became_silent The peer has fallen silent on all paths.
 */
void uct_varuna_witness_explain(uct_varuna_crowd_t *crowd, uct_varuna_peer_t *peer,
                                unsigned dead, int became_silent);

/** @return whether a peer outside has answered on @a link lately. */
int uct_varuna_witness_anybody(uct_varuna_ctl_t *ctl, unsigned link,
                               ucs_time_t now);

/** @return Number of peers outside which were found to be dead on @a link; 0 if all of
 *  them are behind one port, whose fault it may be. */
unsigned uct_varuna_witness_count_dead(uct_varuna_ctl_t *ctl, unsigned link);

/* --- Ways to a peer, for people --- */

/* The ways to a peer, for people: which ports are up here and there, which links have both,
 * and whose fault it is that the others don't. Lock held in all. */

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
