/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The component: it opens memory domains and unpacks remote keys. varuna_module.c
 * registers it with UCX, together with the transport.
 */
#ifndef UCT_VARUNA_COMPONENT_H_
#define UCT_VARUNA_COMPONENT_H_

#include <uct/base/uct_component.h>

extern uct_component_t uct_varuna_component;

#endif
