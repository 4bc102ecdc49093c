/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The plans and faults of the sweep of atomics. Pure.
 */
#ifndef FT_ATOM_PLAN_H_
#define FT_ATOM_PLAN_H_

#include <stdint.h>

#define FT_ATOM_CLIENTS_MAX 3

typedef struct {
    const char *name;
    uint64_t   first;                       /* Initial value of the word */
    const char *atoms[FT_ATOM_CLIENTS_MAX]; /* Of each client */
} ft_atom_plan_t;

/* $S: selects the first client; $N: the event; $M: the next event */
typedef struct {
    const char *name;
    const char *rules[2];
    int        breaks;   /* The first client's link */
    int        is_late;
} ft_atom_fault_t;

/** @return The n-th plan, or NULL. */
const ft_atom_plan_t *ft_atom_plan(unsigned n);

/** @return The n-th fault, or NULL. */
const ft_atom_fault_t *ft_atom_fault(unsigned n);

/** Write a rule of a fault that hits event @a n of queue pair @a qpn of the first
 *  client; 0: of its messages. @a delay: of slow operations, in milliseconds. */
void ft_atom_format_rule(const char *rule, uint32_t qpn, unsigned n,
                         unsigned delay, char *text);

#endif
