/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The endpoints of an interface by their ids.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ep_table.h"

#include <ucs/vfs/base/vfs_obj.h>

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
        ep->id = slot | (uct_varuna_requester(iface)->ep_salt++ << UCT_VARUNA_EP_SLOT_BITS);
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
