/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The options of the transport, UCX_RC_VARUNA_*. Called by varuna_iface.c.
 */
#ifndef UCT_VARUNA_CONFIG_H_
#define UCT_VARUNA_CONFIG_H_

#include "varuna_tl_iface.h"

extern ucs_config_field_t uct_varuna_iface_config_table[];

/** Take over the options, within their limits. @return UCS_ERR_INVALID_PARAM, which is
 *  logged, if one of them has no meaning. */
ucs_status_t uct_varuna_iface_set_config(uct_varuna_iface_t *iface,
                                         const uct_varuna_iface_config_t *config);

/** Set the link table up; the file of links has the last word on the policy. */
void uct_varuna_iface_init_link_table(uct_varuna_iface_t *iface,
                                      const uct_varuna_iface_config_t *config);

#endif
