/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The slabs of a ring of requests. See varuna_ring.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ring.h"

/* From the beginning of a slab to the last place where a request may begin: any fits, and
 * the end of the slab after it */
#define UCT_VARUNA_SLAB_LIMIT \
    (UCT_VARUNA_SLAB_SIZE - sizeof(uct_varuna_slab_end_t) - \
     ucs_align_up_pow2(sizeof(uct_varuna_req_t), UCS_SYS_CACHE_LINE_SIZE))

static void *uct_varuna_ring_slab(const uct_varuna_ring_t *ring)
{
    return UCS_PTR_BYTE_OFFSET(ring->limit, -(ptrdiff_t)UCT_VARUNA_SLAB_LIMIT);
}

ucs_status_t uct_varuna_ring_open(uct_varuna_ep_t *ep, int is_flush)
{
    uct_varuna_ring_t *ring = &ep->hot.reqs;
    uct_varuna_req_t *slab;

    UCS_STATIC_ASSERT(sizeof(uct_varuna_slab_end_t) <= UCS_SYS_CACHE_LINE_SIZE);
    if (ring->head != NULL) {
        return UCS_OK;
    }

    if ((ep->hot.num_reqs >= UCT_VARUNA_MAX_REQS) && !is_flush) {
        return UCS_ERR_NO_RESOURCE;
    }

    slab = ucs_mpool_get(&uct_varuna_ep_requester(ep)->slab_mp);
    if (slab == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    if (ring->limit == NULL) {
        ring->tail = slab;
    } else {
        ((uct_varuna_slab_end_t*)ring->limit)->next = slab;
    }

    ring->head  = slab;
    ring->limit = UCS_PTR_BYTE_OFFSET(slab, UCT_VARUNA_SLAB_LIMIT);
    return UCS_OK;
}

void uct_varuna_ring_turn(uct_varuna_ep_t *ep, uct_varuna_req_t *newest)
{
    uct_varuna_ring_t *ring    = &ep->hot.reqs;
    uct_varuna_slab_end_t *end = uct_varuna_ring_slab_end(newest);

    newest->flags |= UCT_VARUNA_REQ_FLAG_LAST;
    end->slab      = uct_varuna_ring_slab(ring);
    end->next      = NULL;
    ring->head     = NULL;
    ring->limit    = end;
    if (uct_varuna_ring_open(ep, 0) != UCS_OK) {
        ep->hot.gate = 1; /* The next request tries again */
    }
}

void uct_varuna_ring_trim(uct_varuna_ring_t *ring)
{
    if (uct_varuna_ring_is_empty(ring) && (ring->head != NULL)) {
        ucs_mpool_put(uct_varuna_ring_slab(ring));
        memset(ring, 0, sizeof(*ring));
    }
}

void uct_varuna_ring_release(uct_varuna_ring_t *ring)
{
    while (!uct_varuna_ring_is_empty(ring)) {
        uct_varuna_req_release(ring->tail);
        uct_varuna_ring_pull(ring);
    }

    uct_varuna_ring_trim(ring);
}
