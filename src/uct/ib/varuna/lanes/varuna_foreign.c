/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Active messages with ids that rc_varuna does not use. See varuna_foreign.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_foreign.h"

#include <ucs/debug/log.h>

static ucs_status_t uct_varuna_foreign_am(void *arg, void *data, size_t length,
                                          unsigned flags)
{
    __atomic_fetch_add((uint32_t*)arg, 1, __ATOMIC_RELAXED);
    return UCS_OK;
}

ucs_status_t uct_varuna_foreign_drop(uct_iface_h inner, unsigned am_id,
                                     unsigned cb_flags, uint32_t *count)
{
    ucs_status_t status;
    unsigned id;

    for (id = 0; id < UCT_AM_ID_MAX; ++id) {
        if (id == am_id) {
            continue;
        }

        status = uct_iface_set_am_handler(inner, id, uct_varuna_foreign_am, count,
                                          cb_flags);
        if (status != UCS_OK) {
            ucs_error("failed to set the handler of AM id %u: %s", id,
                      ucs_status_string(status));
            return status;
        }
    }

    return UCS_OK;
}
