/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the sweep of atomics runs, and with which faults. Pure.
 */
#ifndef FT_ATOM_PLAN_H_
#define FT_ATOM_PLAN_H_

#include <stdint.h>

#define FT_ATOM_CLIENTS_MAX 3

typedef struct {
    const char *name;
    uint64_t   first;                       /* What is in the word before */
    const char *atoms[FT_ATOM_CLIENTS_MAX]; /* Of each client */
} ft_atom_plan_t;

/* $S: what is the first client's; $N: the event; $M: the one behind it */
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

/** Write a rule of a fault which hits event @a n of queue pair @a qpn of the first
 *  client; 0: of its messages. @a delay: of what is slow, milliseconds. */
void ft_atom_format_rule(const char *rule, uint32_t qpn, unsigned n,
                         unsigned delay, char *text);

#endif
