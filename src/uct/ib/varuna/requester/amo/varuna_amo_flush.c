/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Flushes that wait for atomics: such a flush completes when all atomics before it, and then
 * the requests before it on the lane, are complete. Main thread only.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_priv.h"
#include <uct/ib/varuna/requester/varuna.inl>
#include <uct/ib/varuna/requester/varuna_placed.h>

/* Whether an atomic before @a flush is unfinished. */
static int uct_varuna_amo_is_before(uct_varuna_ep_t *ep,
                                    const uct_varuna_req_t *flush)
{
    const uct_varuna_amo_t *oldest;

    if (ucs_list_is_empty(&ep->amo.all)) {
        return 0;
    }

    oldest = ucs_list_head(&ep->amo.all, uct_varuna_amo_t, all);
    return UCS_CIRCULAR_COMPARE32(oldest->sn, <=, flush->log_sn);
}

/* The flush waits for the requests on the lane */
static int uct_varuna_amo_move_flush(uct_varuna_ep_t *ep, uct_varuna_req_t *flush)
{
    ep->hot.want_signal = 1;
    uct_varuna_ep_add_work(ep);
    if (uct_varuna_ep_queue_flush(ep, flush->opcode, flush->user_comp) != UCS_INPROGRESS) {
        return 0;
    }

    ucs_queue_pull_non_empty(&ep->amo.flushes);
    ucs_mpool_put(flush);
    return 1;
}

static int uct_varuna_amo_is_flushed(const uct_varuna_ep_t *ep, const uct_varuna_req_t *flush)
{
    return !uct_varuna_ep_is_busy(ep) && uct_varuna_ep_is_placed(ep, flush->opcode);
}

/* Both lists are in order of age, and there are no counters, because a user's callback may
 * add atomics and flushes at any point. */
void uct_varuna_amo_finish_flushes(uct_varuna_ep_t *ep, ucs_status_t status)
{
    uct_varuna_req_t *flush;
    uct_completion_t *comp;

    while (!ucs_queue_is_empty(&ep->amo.flushes)) {
        flush = ucs_queue_head_elem_non_empty(&ep->amo.flushes,
                                              uct_varuna_req_t, queue);
        if (uct_varuna_amo_is_before(ep, flush)) {
            return;
        }

        if ((status == UCS_OK) && !uct_varuna_amo_is_flushed(ep, flush)) {
            if (!uct_varuna_amo_move_flush(ep, flush)) {
                return;
            }
            continue;
        }

        ucs_queue_pull_non_empty(&ep->amo.flushes);
        comp = flush->user_comp;
        ucs_mpool_put(flush);
        uct_invoke_completion(comp, status);
    }
}

int uct_varuna_amo_retry_flushes(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *flush;

    while (!ucs_queue_is_empty(&ep->amo.flushes)) {
        flush = ucs_queue_head_elem_non_empty(&ep->amo.flushes,
                                              uct_varuna_req_t, queue);
        if (uct_varuna_amo_is_before(ep, flush)) {
            return 0;
        }

        if (uct_varuna_amo_is_flushed(ep, flush)) {
            uct_varuna_amo_finish_flushes(ep, UCS_OK); /* The user may destroy it */
            return 0;
        }

        if (!uct_varuna_amo_move_flush(ep, flush)) {
            return 1;
        }
    }

    return 0;
}
