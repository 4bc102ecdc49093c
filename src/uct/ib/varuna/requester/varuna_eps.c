/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the endpoints of an interface share: pools, the list of endpoints with work,
 * flush and fence of the interface, the background scan.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_requester.h"
#include "varuna_ep.h"
#include "varuna_completion.h"
#include "varuna_sm.h"
#include "varuna_lane.h"
#include "varuna_stat.h"
#include "varuna_ring.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <ucs/vfs/base/vfs_obj.h>

#define UCT_VARUNA_MAX_STEPS         64   /* of endpoints, in one progress call */

/* Thousands of endpoints may recover at once, while others of the same application have
 * traffic. */
void uct_varuna_requester_progress(uct_varuna_requester_t *requester,
                                   ucs_time_t now)
{
    uct_varuna_ep_t *ep;
    ucs_list_link_t todo;
    unsigned i;

    /* Steps may put endpoints into the list again: look at each once. They may
     * also destroy any of them, so elements stay in one list or the other */
    ucs_list_head_init(&todo);
    for (i = 0; (i < UCT_VARUNA_MAX_STEPS) && !ucs_list_is_empty(&requester->work);
         ++i) {
        ep = ucs_list_extract_head(&requester->work, uct_varuna_ep_t, sm.work);
        ucs_list_add_tail(&todo, &ep->sm.work);
    }

    while (!ucs_list_is_empty(&todo)) {
        ep          = ucs_list_extract_head(&todo, uct_varuna_ep_t, sm.work);
        ep->sm.on_work = 0;
        if (uct_varuna_sm_step(ep, now)) {
            uct_varuna_ep_add_work(ep);
        }
    }

    uct_varuna_outage_write(requester);
}

int uct_varuna_requester_lane_error(uct_varuna_requester_t *requester,
                                    uct_ep_h inner, ucs_status_t status)
{
    khiter_t iter = kh_get(uct_varuna_inner_eps, &requester->inner_eps,
                           (uintptr_t)inner);

    if (iter == kh_end(&requester->inner_eps)) {
        return 0;
    }

    uct_varuna_ep_lane_error(kh_val(&requester->inner_eps, iter), inner, status);
    return 1;
}

/* What is on a link of a NIC that goes. A lane that failed is not needed any more once it is
 * decided how it ended: the NIC has been at rest for a packet lifetime. @return Whether anything
 * is there still. */
static int uct_varuna_ep_leave_link(uct_varuna_ep_t *ep, unsigned link, int is_ended)
{
    const uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);

    if (is_ended && uct_varuna_link_is_of(iface, link, ep->recovery.dead.ep) &&
        ((ep->hot.state == UCT_VARUNA_EP_FENCE) || (ep->hot.state == UCT_VARUNA_EP_REPEAT))) {
        uct_varuna_lane_destroy(ep, &ep->recovery.dead);
    }

    if (is_ended && uct_varuna_link_is_of(iface, link, ep->recovery.left)) {
        uct_varuna_ep_forget_left(ep);
    }

    if (is_ended && uct_varuna_link_is_of(iface, link, ep->next.lane.ep) && !ep->next.failed) {
        uct_varuna_ep_fail_next(ep);
    }

    return uct_varuna_link_is_of(iface, link, ep->lane.ep) ||
           uct_varuna_link_is_of(iface, link, ep->next.lane.ep) ||
           uct_varuna_link_is_of(iface, link, ep->recovery.dead.ep) ||
           (is_ended && uct_varuna_link_is_of(iface, link, ep->recovery.left));
}

unsigned uct_varuna_requester_leave_link(uct_varuna_requester_t *requester, unsigned link,
                                         int is_ended)
{
    unsigned count = 0;
    uct_varuna_ep_t *ep;
    unsigned i;

    ucs_ptr_array_for_each(ep, i, &requester->eps) {
        count += uct_varuna_ep_leave_link(ep, link, is_ended);
    }

    return count;
}

int uct_varuna_requester_is_on_link(const uct_varuna_requester_t *requester, unsigned link)
{
    khiter_t iter;

    for (iter = kh_begin(&requester->inner_eps); iter != kh_end(&requester->inner_eps); ++iter) {
        if (kh_exist(&requester->inner_eps, iter) &&
            uct_varuna_link_is_of(&requester->super, link,
                                  (uct_ep_h)kh_key(&requester->inner_eps, iter))) {
            return 1;
        }
    }

    return 0;
}

/* @return Whether a flush with these flags has to place completed writes of some endpoint,
 * which is begun. */
static int uct_varuna_requester_place(uct_varuna_requester_t *requester, unsigned flags)
{
    int is_left = 0;
    uct_varuna_ep_t *ep;
    unsigned i;

    if (ucs_likely(!requester->was_away && !(flags & UCT_VARUNA_COMPAT_FLUSH_REMOTE))) {
        return 0;
    }

    ucs_ptr_array_for_each(ep, i, &requester->eps) {
        if (!uct_varuna_ep_is_placed(ep, flags)) {
            (void)uct_varuna_ep_queue_flush(ep, flags, NULL);
            is_left = 1;
        }
    }

    return is_left;
}

ucs_status_t uct_varuna_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                    uct_completion_t *comp)
{
    uct_varuna_requester_t *requester = ucs_derived_of(tl_iface,
                                                       uct_varuna_requester_t);
    uct_varuna_ep_t *ep;
    unsigned i;

    if (comp != NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    ++requester->beats.flush;
    /* Other transports have pending requests only while something is outstanding,
     * and UCP relies on that: here they also wait for a connection or a swap */
    if (!uct_varuna_requester_place(requester, flags) && (requester->outstanding == 0) &&
        (requester->num_pending == 0)) {
        UCT_TL_IFACE_STAT_FLUSH(&requester->super.super);
        return UCS_OK;
    }

    ucs_ptr_array_for_each(ep, i, &requester->eps) {
        if (ep->hot.state == UCT_VARUNA_EP_ACTIVE) {
            uct_varuna_ep_signal(ep);
        }
    }

    UCT_TL_IFACE_STAT_FLUSH_WAIT(&requester->super.super);
    return UCS_INPROGRESS;
}

ucs_status_t uct_varuna_iface_fence(uct_iface_h tl_iface, unsigned flags)
{
    uct_varuna_requester_t *requester = ucs_derived_of(tl_iface,
                                                       uct_varuna_requester_t);

    ++requester->beats.fence;
    ++requester->super.beat;
    UCT_TL_IFACE_STAT_FENCE(&requester->super.super);
    return UCS_OK;
}

static void uct_varuna_bcopy_init(uct_iface_h tl_iface, void *obj, uct_mem_h memh)
{
    ((uct_varuna_bcopy_t*)obj)->memh = memh;
}

static ucs_mpool_ops_t uct_varuna_req_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
    .obj_init      = NULL,
    .obj_cleanup   = NULL,
    .obj_str       = NULL
};

ucs_status_t uct_varuna_requester_init_mpools(uct_varuna_requester_t *requester)
{
    const uct_iface_attr_t *attr    = &requester->super.attr;
    uct_iface_mpool_config_t config = UCT_VARUNA_COMPAT_MPOOL_CONFIG(256);
    size_t bcopy_size;
    ucs_status_t status;

    status = uct_varuna_compat_mpool_init(&requester->pools.slabs, UCT_VARUNA_SLAB_SIZE,
                                          64, &uct_varuna_req_mpool_ops, "varuna_slab");
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_compat_mpool_init(&requester->pools.reqs,
                                          sizeof(uct_varuna_req_t), 16,
                                          &uct_varuna_req_mpool_ops,
                                          "varuna_req");
    if (status != UCS_OK) {
        goto err_slab_mp;
    }

    bcopy_size = ucs_max(attr->cap.put.max_bcopy,
                         ucs_max(attr->cap.get.max_bcopy, attr->cap.am.max_bcopy));
    status = uct_iface_mpool_init(&requester->super.super, &requester->pools.bcopies,
                                  bcopy_size + UCT_VARUNA_BCOPY_OVERHEAD,
                                  UCT_VARUNA_BCOPY_OVERHEAD,
                                  UCS_SYS_CACHE_LINE_SIZE, &config, 256,
                                  uct_varuna_bcopy_init, "varuna_bcopy");
    if (status != UCS_OK) {
        goto err_req_mp;
    }

    return UCS_OK;

err_req_mp:
    ucs_mpool_cleanup(&requester->pools.reqs, 0);
err_slab_mp:
    ucs_mpool_cleanup(&requester->pools.slabs, 0);
    return status;
}

void uct_varuna_requester_cleanup_mpools(uct_varuna_requester_t *requester)
{
    ucs_mpool_cleanup(&requester->pools.bcopies, 1);
    ucs_mpool_cleanup(&requester->pools.reqs, 1);
    ucs_mpool_cleanup(&requester->pools.slabs, 1);
}

UCS_CLASS_INIT_FUNC(uct_varuna_requester_t, uct_iface_ops_t *ops,
                    uct_iface_internal_ops_t *internal_ops, uct_md_h tl_md,
                    uct_worker_h worker, const uct_iface_params_t *params,
                    const uct_iface_config_t *tl_config)
{
    UCS_CLASS_CALL_SUPER_INIT(uct_varuna_iface_t, ops, internal_ops, tl_md, worker,
                              params, tl_config);

    memset(UCS_PTR_BYTE_OFFSET(self, sizeof(self->super)), 0,
           sizeof(*self) - sizeof(self->super));
    ucs_list_head_init(&self->work);
    ucs_ptr_array_init(&self->eps, "varuna_eps");
    pthread_mutex_init(&self->eps_lock, NULL);
    kh_init_inplace(uct_varuna_inner_eps, &self->inner_eps);
    uct_varuna_keys_init(self);
    self->scan.scanned_at = ucs_get_time();
    return UCS_OK;
}

static UCS_CLASS_CLEANUP_FUNC(uct_varuna_requester_t)
{
    uct_varuna_outage_cleanup(self);
    uct_varuna_keys_cleanup(self);
    kh_destroy_inplace(uct_varuna_inner_eps, &self->inner_eps);
    pthread_mutex_destroy(&self->eps_lock);
    ucs_ptr_array_cleanup(&self->eps, 1);
}

UCS_CLASS_DEFINE(uct_varuna_requester_t, uct_varuna_iface_t);

/* --- The table of endpoints, by their ids --- */

/* An id is a slot of uct_varuna_requester(iface)->eps and a salt, so that a late answer to a destroyed
 * endpoint does not reach its slot's next owner. */
#define UCT_VARUNA_EP_SLOT_BITS      20

uct_varuna_ep_t *uct_varuna_ep_find(uct_varuna_iface_t *iface, uint32_t id)
{
    void *ptr;

    if (!ucs_ptr_array_lookup(&uct_varuna_requester(iface)->eps, id & UCS_MASK(UCT_VARUNA_EP_SLOT_BITS),
                              ptr)) {
        return NULL;
    }

    return (((uct_varuna_ep_t*)ptr)->id == id) ? ptr : NULL;
}

ucs_status_t uct_varuna_ep_add(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep)
{
    ucs_status_t status = UCS_OK;
    unsigned slot;

    pthread_mutex_lock(&uct_varuna_requester(iface)->eps_lock);
    slot = ucs_ptr_array_insert(&uct_varuna_requester(iface)->eps, ep);
    if (slot > UCS_MASK(UCT_VARUNA_EP_SLOT_BITS)) {
        ucs_ptr_array_remove(&uct_varuna_requester(iface)->eps, slot);
        status = UCS_ERR_EXCEEDS_LIMIT;
    } else {
        ep->id = slot | (uct_varuna_requester(iface)->ids.salt++ << UCT_VARUNA_EP_SLOT_BITS);
    }
    pthread_mutex_unlock(&uct_varuna_requester(iface)->eps_lock);
    return status;
}

void uct_varuna_ep_remove(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep)
{
    pthread_mutex_lock(&uct_varuna_requester(iface)->eps_lock);
    ucs_ptr_array_remove(&uct_varuna_requester(iface)->eps,
                         ep->id & UCS_MASK(UCT_VARUNA_EP_SLOT_BITS));
    pthread_mutex_unlock(&uct_varuna_requester(iface)->eps_lock);
    /* UCX has done this before it called us, but it may have been listed since */
    ucs_vfs_obj_remove(ep);
}


/* --- The background scan --- */

#define UCT_VARUNA_SCAN_EPS          16   /* endpoints per scan */

/* Requests without a completion that are still the oldest after this time are given one:
 * without it, a hanging request is not found */
#define UCT_VARUNA_SCAN_SIGNAL       0.1  /* seconds */

/* The user is told if a request waits for a peer that has no link: not of what is slow */
#define UCT_VARUNA_SCAN_STUCK        1.0  /* seconds */

/* Between two scans the clock of requests advances by this at most: while the application
 * does not call progress, completions are not polled either */
#define UCT_VARUNA_SCAN_STEP         0.2  /* seconds */

/* Called for each endpoint now and then; the requests themselves bear no timer. */
static void uct_varuna_ep_watch(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_req_t *head;

    if (uct_varuna_ring_is_empty(&ep->hot.reqs)) {
        ep->hot.gate = 1; /* The next post gets another slab */
        uct_varuna_ring_trim(&ep->hot.reqs);
        return;
    }

    if (ep->lane.ep == NULL) {
        return;
    }

    uct_varuna_heartbeat_use(ep->peer, ep->lane.link, now);
    head = ep->hot.reqs.tail;
    if (!(head->flags & UCT_VARUNA_REQ_FLAG_WATCHED)) {
        head->flags |= UCT_VARUNA_REQ_FLAG_WATCHED;
        uct_varuna_hang_new_head(ep);
        return;
    }

    if ((ep->hot.silent > 0) && !ep->hot.want_signal &&
        (uct_varuna_hang_head_age(ep) >= ucs_time_from_sec(UCT_VARUNA_SCAN_SIGNAL))) {
        ep->hot.want_signal = 1;
        uct_varuna_ep_add_work(ep);
    }

    if (uct_varuna_hang_head_age(ep) >= ucs_time_from_sec(UCT_VARUNA_SCAN_STUCK)) {
        uct_varuna_outage_check(ep);
    }

    uct_varuna_hang_check(ep, now);
}

void uct_varuna_scan(uct_varuna_requester_t *requester, ucs_time_t now)
{
    unsigned num_eps = requester->eps.size;
    unsigned i;
    void *ptr;

    if (requester->scan.failures != requester->super.failures) {
        requester->scan.failures = requester->super.failures;
        requester->scan.left     = num_eps;
    }

    requester->scan.at         = now + ucs_time_from_sec(UCT_VARUNA_SCAN_PERIOD);
    requester->scan.clock     += ucs_min(now - requester->scan.scanned_at,
                                         ucs_time_from_sec(UCT_VARUNA_SCAN_STEP));
    requester->scan.scanned_at = now;
    for (i = 0; i < ucs_min(num_eps, UCT_VARUNA_SCAN_EPS); ++i) {
        requester->scan.next = (requester->scan.next + 1) % num_eps;
        if (ucs_ptr_array_lookup(&requester->eps, requester->scan.next, ptr)) {
            uct_varuna_ep_watch(ptr, now);
            uct_varuna_ep_open_lane(ptr, now);
            uct_varuna_ep_connect_next(ptr, now);
            uct_varuna_stat_publish(ptr);
        }
    }
    requester->scan.left -= ucs_min(requester->scan.left, UCT_VARUNA_SCAN_EPS);
}
