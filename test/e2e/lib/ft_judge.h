/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The judge: compares the puts of a plan with what the emulator's trace says was
 * executed in the server's memory.
 */
#ifndef FT_JUDGE_H_
#define FT_JUDGE_H_

#include "ft_plan.h"

#define FT_JUDGE_TEXT 256

typedef struct {
    uint64_t last_seq;       /* Of the trace */
    unsigned executed;       /* Puts which were executed */
    unsigned again;          /* Extra executions of puts */
    unsigned covered;        /* Puts which were not, unlike a later one to their place */
    unsigned duplicates;     /* Repeated packets that were not executed */
    unsigned errors;         /* Anything else that is wrong */
    uint32_t qpn;            /* Of the requester, for the first entry */
    unsigned link;
    int      is_rc;
    char     text[FT_JUDGE_TEXT]; /* The first thing that was wrong */
} ft_verdict_t;

/** Judge the lines of @a trace (JSON) for the memory at @a base of host 0. Each put of
 *  @a plan must have been executed as a whole once, in order. */
void ft_judge_run(char *trace, uint64_t base, uint32_t run,
                  const ft_plan_t *plan, ft_verdict_t *verdict);

/** Find the lane of the put of ft_client_warm() with this number. @return Whether it
 *  was found. */
int ft_judge_warm(char *trace, uint64_t base, uint32_t number,
                  ft_verdict_t *verdict);

#endif
