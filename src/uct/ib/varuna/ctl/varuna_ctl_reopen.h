/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opens the control plane's interface of a link once more.
 */
#ifndef UCT_VARUNA_CTL_REOPEN_H_
#define UCT_VARUNA_CTL_REOPEN_H_

#include "varuna_ctl.h"

/**
 * Open the control interface of a link once more, and close the one that was open: its
 * messages on their way are lost, as on a link that fails. Main thread, lock held.
 *
 * @return UCS_ERR_BUSY if a room above has an endpoint there; other errors are logged.
 *         The one that was open stays then.
 */
ucs_status_t uct_varuna_ctl_link_reopen(uct_varuna_ctl_t *ctl, unsigned link);

#endif
