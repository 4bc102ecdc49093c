/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A link of an interface fails, or comes back. Main thread. Nothing here looks at
 * an endpoint: they compare generations when they post, and in the background scan.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_link_event.h"

#include <ucs/debug/log.h>

void uct_varuna_link_down(uct_varuna_iface_t *iface, unsigned link, unsigned cause,
                          const char *reason)
{
    /* This store moves all endpoints on the link */
    if (uct_varuna_link_add_cause(&iface->link_table, link, cause,
                                  ucs_get_time())) {
        iface->link_table.links[link].reason = reason;
        uct_varuna_link_raise(iface);
        ucs_info("rc_varuna: link %s is down: %s",
                 uct_varuna_link_name(iface, link), reason);
    }
}

void uct_varuna_link_up(uct_varuna_iface_t *iface, unsigned link, unsigned cause)
{
    const uct_varuna_link_entry_t *entry = &iface->link_table.links[link];

    if (uct_varuna_link_remove_cause(&iface->link_table, link, cause,
                                     ucs_get_time())) {
        ucs_info("rc_varuna: link %s is up again, and can be used in %.3f s",
                 uct_varuna_link_name(iface, link),
                 ucs_time_to_sec(entry->damp.usable_at - entry->damp.changed));
    }
}
