/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Creation and destruction of the vQP.
 */
#ifndef UCT_VARUNA_EP_LIFE_H_
#define UCT_VARUNA_EP_LIFE_H_

#include "varuna_ep.h"

UCS_CLASS_DECLARE_NEW_FUNC(uct_varuna_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_varuna_ep_t, uct_ep_t);

#endif
