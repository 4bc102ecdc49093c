/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A queue pair that is connected to itself: its NIC reads memory of this host. Requests to the
 * own port turn back inside the NIC, whether its link works or not. On PCIe a read does not
 * pass the NIC's earlier writes to the same device, so what the NIC has accepted is there when
 * it returns.
 */
#ifndef UCT_VARUNA_READBACK_H_
#define UCT_VARUNA_READBACK_H_

#include <uct/api/uct.h>
#include <ucs/time/time_def.h>

typedef struct uct_varuna_readback uct_varuna_readback_t;

/**
 * Make one. Gives commands to the NIC.
 *
 * @param [in]  inner       Inner interface of ib: its port and address are used.
 * @param [out] readback_p  To be released by uct_varuna_readback_close().
 */
ucs_status_t uct_varuna_readback_open(uct_iface_h inner, uct_varuna_readback_t **readback_p);

void uct_varuna_readback_close(uct_varuna_readback_t *readback);

/**
 * Read one byte, and wait for it. After an error no other read succeeds.
 *
 * @param [in] address  Of memory of this process.
 * @param [in] rkey     Key of ib, for the same NIC.
 * @param [in] until    When to give up.
 */
ucs_status_t uct_varuna_readback_run(uct_varuna_readback_t *readback, uint64_t address,
                                     uct_rkey_t rkey, ucs_time_t until);

#endif
