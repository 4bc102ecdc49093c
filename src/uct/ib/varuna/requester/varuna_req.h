/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The saved request: facts by type, and how one is posted on a lane. The same
 * code posts a request for the first time and repeats it.
 */
#ifndef UCT_VARUNA_REQ_H_
#define UCT_VARUNA_REQ_H_

#include "varuna_ep.h"

/* Facts of a request type; one table, see varuna_req.c. */
typedef struct uct_varuna_req_info {
    const char                 *name;
    uct_varuna_op_kind_t       kind;    /* For the plan */
    uint8_t                    logged;  /* A log write follows it */
    uint8_t                    silent;  /* Its inner call takes no completion */
    ucs_status_t               (*post)(uct_varuna_req_t *req,
                                       uct_completion_t *comp);
} uct_varuna_req_info_t;

extern const uct_varuna_req_info_t uct_varuna_req_infos[];

static inline const uct_varuna_req_info_t *
uct_varuna_req_info(const uct_varuna_req_t *req)
{
    return &uct_varuna_req_infos[req->type];
}

/**
 * Post a saved request on the active lane, and its log write behind it.
 *
 * @param [in] signal  Ask for a completion even if the user wants none.
 *
 * @return UCS_OK if it is posted (its log write may still be owed, see
 *         uct_varuna_ep_post_owed_log()), UCS_ERR_NO_RESOURCE if nothing was
 *         posted, or the inner lane's error.
 */
ucs_status_t uct_varuna_req_post(uct_varuna_req_t *req, int signal);

/** Write the newest log entry once more: harmless, and an error tells that the
 *  lane is dead. */
ucs_status_t uct_varuna_ep_post_probe(uct_varuna_ep_t *ep);

/** The target and the number of the first message are known now: put them in the header
 *  of a message that was posted while the endpoint was being opened. */
void uct_varuna_req_set_target(uct_varuna_req_t *req, uint32_t target,
                               uint32_t first_seq);

/** Completion callback of all saved requests. */
void uct_varuna_req_completion(uct_completion_t *comp);

/** Make the request's own completion ready to be given to the lane. */
static inline void uct_varuna_req_init_comp(uct_varuna_req_t *req)
{
    req->comp.func   = uct_varuna_req_completion;
    req->comp.count  = 1;
    req->comp.status = UCS_OK;
}

#endif
