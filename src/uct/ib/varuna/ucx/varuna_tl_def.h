/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Types that the rows of varuna_tl.c share.
 */
#ifndef UCT_VARUNA_TL_DEF_H_
#define UCT_VARUNA_TL_DEF_H_

#include <ucs/time/time_def.h>
#include <uct/api/uct.h>
#include <stdint.h>

/** As uct_iface_progress(), at less cost. It posts receive buffers after a message, but
 *  none that were missing then: call uct_varuna_tl_refill() from time to time. */
typedef unsigned (*uct_varuna_tl_poll_func_t)(uct_iface_h iface);

#endif
