/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Active messages with ids that rc_varuna does not use: they are dropped and counted.
 * UCX would write some lines and a backtrace to the log for each of them, and anyone on
 * the fabric may send any number of them. Called when an inner interface is opened.
 */
#ifndef UCT_VARUNA_FOREIGN_H_
#define UCT_VARUNA_FOREIGN_H_

#include <uct/ib/varuna/core/varuna_def.h>

/**
 * @param [in] inner     Inner interface.
 * @param [in] am_id     The one id that is used on it.
 * @param [in] cb_flags  Of its handlers, UCT_CB_FLAG_xx.
 * @param [in] count     Counts those that are dropped, atomically. It must stay until
 *                       the interface is closed.
 */
ucs_status_t uct_varuna_foreign_drop(uct_iface_h inner, unsigned am_id,
                                     unsigned cb_flags, uint32_t *count);

#endif
