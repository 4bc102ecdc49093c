/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The faults of the sweep: templates of mlx5emu's rules, and when they apply.
 */
#ifndef FT_FAULTS_H_
#define FT_FAULTS_H_

#include <stdint.h>

#define FT_MAX_RULES 4
#define FT_RULE_MAX  256

enum {
    FT_PHASE_RC = 1 << 0, /* The fault hits RC */
    FT_PHASE_DC = 1 << 1, /* ... or DC, before RC is connected */
    FT_LINKS    = 1 << 2, /* Links change their state */
    FT_LATE     = 1 << 3, /* A packet arrives after the run */
    FT_SPREADS  = 1 << 4, /* The lane that takes over may fail, too */
    FT_SLOW     = 1 << 5, /* Only a timeout detects it: runs only if named */
    FT_KILLS    = 1 << 6, /* A NIC dies, for all processes that use it */
    FT_NO_PSN   = 1 << 7, /* The responder cannot read its PSN, as on DC */
    FT_STEPS    = 1 << 8, /* Only at a named step of the recovery */
    FT_PACKETS  = 1 << 9, /* Needs a packet in flight */
    FT_AWAY     = 1 << 10, /* The first link must be down */
    FT_AGAIN    = 1 << 11, /* The next recovery has the same step */
    FT_NEEDS_DC = 1 << 12  /* Not on NICs that have only verbs */
};

enum {
    FT_STEP_OLD    = 1 << 0, /* Event of the failed lane; another link fails */
    FT_STEP_RC     = 1 << 1, /* Only if the failed lane is RC */
    FT_STEP_WRITES = 1 << 2, /* Only if the plan's operations are logged */
    FT_STEP_RETURN = 1 << 3, /* Of a return to the first link */
    FT_STEP_FIRST  = 1 << 4, /* ... on the first link */
    FT_STEP_DC     = 1 << 5, /* Not on NICs that have only verbs */
    /* A control message; what else it contains */
    FT_STEP_CTL     = 1 << 6,
    FT_STEP_FROM    = 1 << 7, /* The sender's addresses */
    FT_STEP_RC_ADDR = 1 << 8, /* Those for RC */
    /* Without DC, the next link is connected, and nothing is fenced again */
    FT_STEP_ONCE    = 1 << 9
};

typedef struct {
    const char *name;
    unsigned   flags;
    const char *rules[FT_MAX_RULES];
} ft_fault_t;

/* A step of the recovery, by the event that belongs to it */
typedef struct {
    const char *name;
    const char *point;     /* Of a rule */
    const char *select;    /* The event; %u is replaced by size */
    unsigned   size;       /* Of a control message, its body */
    unsigned   flags;      /* FT_STEP_... */
} ft_step_t;

/* The faults of a run, and the events that they hit */
typedef struct {
    const char       *plan;
    unsigned         phase;
    const ft_fault_t *fault;
    unsigned         n;        /* Event that it hits */
    const ft_fault_t *second;  /* NULL: none */
    unsigned         m;        /* Event on the other link that it hits */
    const ft_step_t  *step;    /* Count only these events; NULL: all */
} ft_point_t;

/** @return The n-th fault, or NULL. */
const ft_fault_t *ft_fault(unsigned n);

/** @return Whether the emulated NICs have what the fault needs. */
int ft_fault_is_possible(const ft_fault_t *fault);

/** @return The n-th fault that can hit the recovery, or NULL. */
const ft_fault_t *ft_second_fault(unsigned n);

/** @return The n-th step of a recovery, or NULL. */
const ft_step_t *ft_step(unsigned n);

/** @return Whether the step is in @a list. "all" are the steps of a recovery, "return"
 *  those of a return. */
int ft_step_is_listed(const ft_step_t *step, const char *list);

/** @return Whether the second fault can hit this step of this plan. */
int ft_step_has(const ft_point_t *point);

/** Print the names of all faults and steps. */
void ft_faults_print(void);

/** @return The number of rules of a fault. */
unsigned ft_fault_num_rules(const ft_fault_t *fault);

/** Write the rules for a lane on @a link with queue pair @a qpn. @return Their number.
 *  Those of the second fault follow those of the first. */
unsigned ft_faults_format(const ft_point_t *point, unsigned link, uint32_t qpn,
                          char rules[][FT_RULE_MAX]);

#endif
