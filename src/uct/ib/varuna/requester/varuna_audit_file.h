/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Writes the audit file of an interface (UCX_RC_VARUNA_AUDIT). Called where verdicts are
 * applied. Main thread only. Costs nothing while no lane fails.
 */
#ifndef UCT_VARUNA_AUDIT_FILE_H_
#define UCT_VARUNA_AUDIT_FILE_H_

#include "varuna_ep.h"
#include "varuna_requester.h"
#include <uct/ib/varuna/core/varuna_plan.h>

/**
 * Take over the option. The file itself is created by the first record.
 *
 * @param [in] dir  The directory, or "none".
 *
 * @return UCS_ERR_INVALID_PARAM, which is logged, if no file can be created there.
 */
ucs_status_t uct_varuna_audit_open(uct_varuna_requester_t *requester, const char *dir);

/** Close the file. */
void uct_varuna_audit_close(uct_varuna_requester_t *requester);

/** A record that is being collected. */
typedef struct uct_varuna_audit_draft {
    uct_varuna_audit_record_t  *head;  /* Or NULL: there is no audit */
} uct_varuna_audit_draft_t;

/**
 * Begin the record of a recovery, before its verdicts are applied.
 *
 * @param [in]  ep        Endpoint whose lane has failed.
 * @param [in]  evidence  What the verdicts follow from.
 * @param [in]  flags     UCT_VARUNA_AUDIT_FENCED and WAITED.
 * @param [in]  ops       The plan, an entry per request of the endpoint's ring.
 * @param [in]  doubt     Of the plan.
 * @param [out] draft     The record.
 */
void uct_varuna_audit_begin(uct_varuna_ep_t *ep, const uct_varuna_evidence_t *evidence,
                            unsigned flags, const uct_varuna_plan_op_t *ops,
                            uct_varuna_doubt_t doubt, uct_varuna_audit_draft_t *draft);

/**
 * The verdicts were applied: add what was done, and write the record.
 *
 * @param [in] ep      Endpoint. Its ring has the same requests as before.
 * @param [in] status  Not UCS_OK if the endpoint fails.
 * @param [in] draft   The record, which is released.
 */
void uct_varuna_audit_commit(uct_varuna_ep_t *ep, ucs_status_t status,
                             uct_varuna_audit_draft_t *draft);

/**
 * Write that ambiguous operations were decided by their targets.
 *
 * @param [in] ep      Endpoint.
 * @param [in] window  What was decided. Its operations' arguments are requests, or NULL.
 * @param [in] status  Not UCS_OK if the endpoint fails.
 */
void uct_varuna_audit_compared(uct_varuna_ep_t *ep, const uct_varuna_window_t *window,
                               ucs_status_t status);

#endif
