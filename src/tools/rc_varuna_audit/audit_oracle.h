/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A second opinion on the verdicts of a recovery, which shares no code with the plan: it
 * tries each place at which the lane may have broken, and keeps those that agree with
 * all of the evidence. Pure.
 */
#ifndef AUDIT_ORACLE_H_
#define AUDIT_ORACLE_H_

#include <uct/ib/varuna/core/varuna_plan.h>

typedef struct audit_oracle {
    int            is_possible;  /* Some place agrees with the evidence */
    unsigned       first;        /* Operations before this one were executed, */
    unsigned       last;         /* those from this one on were not */
    int            use_psn;      /* The PSN was part of the evidence */
} audit_oracle_t;

/**
 * Find where the lane may have broken.
 *
 * @param [in]  verdict    The evidence.
 * @param [in]  ops        Operations in posting order.
 * @param [in]  use_psn    Whether the PSN counts.
 * @param [out] oracle     The result.
 */
void audit_oracle_find(const uct_varuna_audit_verdict_t *verdict,
                       const uct_varuna_audit_op_t *ops, int use_psn,
                       audit_oracle_t *oracle);

/** @return Whether the PSN can be that of a packet of this lane which was not acknowledged
 *  before. */
int audit_oracle_psn_is_possible(const uct_varuna_audit_verdict_t *verdict);

#endif
