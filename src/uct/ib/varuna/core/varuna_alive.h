/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Judges the paths to one peer by pings and their answers. Pure: the heartbeat
 * (varuna_heartbeat.c) sends, receives and brings the time.
 *
 * A path counts as dead only while another path to the same peer answers. A peer that
 * is silent on all paths is dead or has no CPU; then no path is better than the others,
 * and nothing is switched.
 */
#ifndef UCT_VARUNA_ALIVE_H_
#define UCT_VARUNA_ALIVE_H_

#include "varuna_def.h"

#include <ucs/time/time.h>
#include <stdint.h>

typedef struct uct_varuna_alive_path {
    uint32_t                   seq;        /* Of the newest ping; 0: none yet */
    unsigned                   misses;     /* Intervals in a row without answer */
    ucs_time_t                 since;      /* When the first of them was asked */
    ucs_time_t                 answered_at;/* Read without the lock; 0: never */
    ucs_time_t                 asked_at;   /* When the newest ping was sent */
    ucs_time_t                 first_at;   /* When the first one of those was that no tick
                                              has counted yet, if asked */
    ucs_time_t                 proved_at;  /* ... the newest one that was answered
                                              before the next: the path worked
                                              then; 0: never */
    uint8_t                    asked;      /* In this interval */
    uint8_t                    heard;
    uint8_t                    held;       /* At the next tick */
    uint8_t                    condemned;  /* Dead, and no answer since */
} uct_varuna_alive_path_t;

typedef struct uct_varuna_alive {
    uct_varuna_alive_path_t    paths[UCT_VARUNA_MAX_LINKS]; /* By local link */
    uint8_t                    silent;     /* On all paths */
} uct_varuna_alive_t;

typedef struct uct_varuna_alive_verdict {
    unsigned                   ping;       /* Paths to ping now */
    unsigned                   dead;       /* Paths which have just died */
    uint8_t                    became_silent; /* All paths miss, no witness */
    uint8_t                    spoke;      /* It was silent, and is not */
} uct_varuna_alive_verdict_t;

/**
 * One interval is over.
 *
 * @param [in]  alive       What is known of the peer.
 * @param [in]  reach       Bit map of the paths which exist.
 * @param [in]  used        Those which carry traffic: they are pinged always, the
 *                          others while a used one misses answers, as witnesses.
 * @param [in]  far_down    Those of which the peer says that its port is down:
 *                          there is nothing to wait for.
 * @param [in]  max_misses  Intervals without an answer, then a path is dead.
 * @param [out] verdict_p   What follows.
 */
void uct_varuna_alive_tick(uct_varuna_alive_t *alive, unsigned reach,
                           unsigned used, unsigned far_down,
                           unsigned max_misses,
                           uct_varuna_alive_verdict_t *verdict_p);

/** @return the number that the next ping will have. */
uint32_t uct_varuna_alive_next(const uct_varuna_alive_t *alive, unsigned link);

/** A ping is sent. @return its number. */
uint32_t uct_varuna_alive_ping(uct_varuna_alive_t *alive, unsigned link,
                               ucs_time_t now);

/** The last ping cannot have arrived, or its answer could not be received: it does not
 *  count as missed. */
void uct_varuna_alive_unask(uct_varuna_alive_t *alive, unsigned link);

/** The first ping of this interval was sent so late that the coming tick is too early for
 *  its answer: that tick neither counts the path nor has it pinged. */
void uct_varuna_alive_hold(uct_varuna_alive_t *alive, unsigned link);

/** A path is used again: forget its past. */
void uct_varuna_alive_reset(uct_varuna_alive_t *alive, unsigned link);

/** @return whether @a misses intervals or more have brought no answer on @a link, and
 *  another path in @a reach has answered since. */
int uct_varuna_alive_is_silent(const uct_varuna_alive_t *alive, unsigned reach,
                               unsigned link, unsigned misses);

/** Ping number @a seq was answered. @return 0 if there was no such ping. */
int uct_varuna_alive_pong(uct_varuna_alive_t *alive, unsigned link,
                          uint32_t seq, ucs_time_t now);

/* --- Diagnosis --- */

/* Whose fault a silent path is, as far as the evidence goes. Pure: the witnesses are
 * gathered by varuna_witness.c, and the heartbeat logs what follows.
 *
 * A witness must be outside: what a process sends to itself, or to others behind the
 * same port, turns back inside the NIC and proves nothing about the link. */

typedef enum {
    UCT_VARUNA_FAULT_UNKNOWN,
    UCT_VARUNA_FAULT_LOCAL,    /* Our port, its cable, or its switch */
    UCT_VARUNA_FAULT_REMOTE,   /* The peer's port, or the way to it */
    UCT_VARUNA_FAULT_BOTH,
    UCT_VARUNA_FAULT_LAST
} uct_varuna_fault_t;

/* What is known of one link of ours on which one peer is silent. */
typedef struct uct_varuna_symptoms {
    uint8_t                    our_port_down;
    uint8_t                    far_port_down;  /* So the peer says */
    uint8_t                    inside;         /* The peer is behind our own port */
    uint8_t                    neighbours_answer; /* Others behind the peer's port */
    uint8_t                    others_answer;  /* Peers behind third ports */
    uint8_t                    others_silent;  /* ... that are silent there, too */
} uct_varuna_symptoms_t;

/** Names for the log: "local fault". */
extern const char *uct_varuna_fault_names[];

/**
 * @param [in]  evidence  What is known.
 * @param [out] why_p     A sentence on what says so.
 *
 * @return Whose fault it is.
 */
uct_varuna_fault_t uct_varuna_diagnose(const uct_varuna_symptoms_t *evidence,
                                       const char **why_p);

#endif
