/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Deliberate mistakes, by which the tests are tested: each leaves out one rule
 * that recovery depends on. They exist only in a plugin which is made for tests,
 * mutant/libuct_varuna.la; otherwise uct_varuna_mutate() is 0, and the compiler
 * drops what depends on it. docs/TESTING.md says which test finds which.
 */
#ifndef UCT_VARUNA_MUTATE_H_
#define UCT_VARUNA_MUTATE_H_

#include "varuna_def.h"

typedef enum {
    UCT_VARUNA_MUTATE_NONE,
    UCT_VARUNA_MUTATE_BLIND_RESEND,    /* Repeat whatever is unfinished */
    UCT_VARUNA_MUTATE_NO_FENCE,        /* Take evidence of a QP which still
                                          executes */
    UCT_VARUNA_MUTATE_NO_PSN,          /* The log alone decides, also in its gap */
    UCT_VARUNA_MUTATE_LOG_BEFORE_DATA, /* Log write first */
    UCT_VARUNA_MUTATE_NO_GATE,         /* New requests pass lost ones */
    UCT_VARUNA_MUTATE_ONE_LOG,         /* All incarnations log in one ring */
    UCT_VARUNA_MUTATE_BELIEVE_STATUS,  /* UCX's statuses instead of evidence */
    UCT_VARUNA_MUTATE_AM_UNORDERED,    /* Deliver messages as they come */
    UCT_VARUNA_MUTATE_OLD_ERRORS,      /* Errors of old lanes condemn new ones */
    UCT_VARUNA_MUTATE_NO_GENERATION,   /* What state a link and a path are in
                                          counts, not what has failed since the lane
                                          was made */
    UCT_VARUNA_MUTATE_LOSE_MESSAGE,    /* No mistake, but what a NIC does that
                                          dies with a message in its queue */
    UCT_VARUNA_MUTATE_DOUBT_NOBODY,    /* Peers that are dead take all DCIs of the
                                          control plane */
    /* Atomics with extended status; the rules are those of docs/ATOMICS.md */
    UCT_VARUNA_MUTATE_AMO_NO_HELP,     /* A foreign UID is a value like any other */
    UCT_VARUNA_MUTATE_AMO_MARK_LATE,   /* Mark what was replaced, not before (5) */
    UCT_VARUNA_MUTATE_AMO_FAIL_UNMARKED, /* A failed CAS does not mark (5) */
    UCT_VARUNA_MUTATE_AMO_ONE_LOOK,    /* No second look at the target (4) */
    UCT_VARUNA_MUTATE_AMO_MARK_FIRST,  /* Recovery reads the mark, then the
                                          target, and does not abort (6) */
    UCT_VARUNA_MUTATE_AMO_NO_GEN,      /* Generations are not compared (1, 4) */
    UCT_VARUNA_MUTATE_AMO_GEN_16,      /* Generations of 16 bits (1) */
    UCT_VARUNA_MUTATE_AMO_NOT_FLUSHED, /* A flush does not wait for confirms (9) */
    UCT_VARUNA_MUTATE_AMO_ANY_NIC,     /* On whatever NIC the lane has (12) */
    UCT_VARUNA_MUTATE_AMO_CPU,         /* The proxy uses the processor (12) */
    UCT_VARUNA_MUTATE_AMO_MOVE_UNFENCED, /* The home NIC moves, and what peers have
                                          connected to the old one works on (12) */
    UCT_VARUNA_MUTATE_AMO_FENCE_PASSED, /* Puts pass a fence behind atomics that are not
                                          decided (9) */
    UCT_VARUNA_MUTATE_ANY_OPENING,     /* What was said to a target of old is taken
                                          for the new one of that name */
    UCT_VARUNA_MUTATE_AM_WRAP,         /* No mistake: numbers of messages wrap around
                                          after UCT_VARUNA_MUTATE_WRAP_AT */
    UCT_VARUNA_MUTATE_LAST
} uct_varuna_mutation_t;

/* LOSE_MESSAGE: its number */
#define UCT_VARUNA_MUTATE_LOST_SEQ 100

/* AM_WRAP: so many messages */
#define UCT_VARUNA_MUTATE_WRAP_AT  150

/* NO_GATE: so many steps of the endpoint, if the application posts nothing new */
#define UCT_VARUNA_MUTATE_LEAKS    1000

#ifdef UCT_VARUNA_MUTATIONS

extern const char *uct_varuna_mutation_names[];

/* Of all interfaces of the process; set when one is opened. */
extern int uct_varuna_mutation;

#  define uct_varuna_mutate(_name) \
    (uct_varuna_mutation == UCT_VARUNA_MUTATE_##_name)

#else

#  define uct_varuna_mutate(_name) ((int)UCT_VARUNA_MUTATE_##_name < 0)

#endif

/** Ring of an incarnation. */
static inline unsigned uct_varuna_log_ring(uint32_t epoch)
{
    return uct_varuna_mutate(ONE_LOG) ? 0 : (epoch % UCT_VARUNA_LOG_COUNT);
}

#endif
