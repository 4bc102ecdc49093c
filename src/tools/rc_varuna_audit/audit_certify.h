/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Certifies one record of an audit file, or says what is wrong. Pure.
 */
#ifndef AUDIT_CERTIFY_H_
#define AUDIT_CERTIFY_H_

#include <uct/ib/varuna/core/varuna_plan.h>

#define AUDIT_WHY_MAX 256

/**
 * Certify the verdicts of a recovery: the plan gives the same ones again; the second
 * opinion (audit_oracle.h) agrees; the lane was fenced before; and the requester has
 * done what the verdicts say.
 *
 * @param [in]  view  A record with a verdict.
 * @param [out] why   What is wrong, AUDIT_WHY_MAX bytes.
 *
 * @return Nonzero if it is certified.
 */
int audit_certify_verdict(const uct_varuna_audit_view_t *view, char *why);

/**
 * Certify that ambiguous operations were treated as their targets show.
 *
 * @param [in]  view      A record of a comparison.
 * @param [in]  reqs      Requests which the recovery of this endpoint left ambiguous, in
 *                        posting order.
 * @param [in]  num_reqs  Their number.
 * @param [out] why       What is wrong, AUDIT_WHY_MAX bytes.
 *
 * @return Nonzero if it is certified.
 */
int audit_certify_compare(const uct_varuna_audit_view_t *view, const uint64_t *reqs,
                          unsigned num_reqs, char *why);

#endif
