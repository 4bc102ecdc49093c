/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The attributes of the interface.
 */
#ifndef UCT_VARUNA_IFACE_ATTR_H_
#define UCT_VARUNA_IFACE_ATTR_H_

#include "varuna_tl_iface.h"

/** Determine what all lanes can do, without our header and without what cannot be
 *  recovered. The links are open. */
void uct_varuna_iface_init_attr(uct_varuna_iface_t *iface);

/** As uct_iface_query(). */
ucs_status_t uct_varuna_iface_query(uct_iface_h tl_iface,
                                    uct_iface_attr_t *attr);

/** As uct_iface_estimate_perf(), for the link in use at present. */
ucs_status_t uct_varuna_iface_estimate_perf(uct_iface_h tl_iface,
                                            uct_perf_attr_t *perf_attr);


#endif
