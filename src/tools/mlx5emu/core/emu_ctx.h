/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Contexts: opened devices.
 *
 * Called by: emu_port.c (open, events), verbs/ (close).
 */

#ifndef EMU_CTX_H_
#define EMU_CTX_H_

#include "../base/emu_def.h"

/** An opened device: ibv_open_device makes one. */
struct emu_ctx {
    uint32_t   used;
    uint32_t   index;
    uint32_t   proc;       /* index of the process */
    uint32_t   port;       /* index of the port */
    uint32_t   nic_gen;    /* emu_port_t::nic_gen when it was opened */
    emu_chan_t *async;     /* asynchronous events */
};

/** Open a port's device. @a nic_gen: see emu_port_t. @return 0 or -ENOSPC, ... */
int emu_ctx_open(uint32_t port, uint32_t nic_gen, emu_ctx_t **ctx_p);

/** Close a context; everything made in it must be destroyed before. */
void emu_ctx_close(emu_ctx_t *ctx);

/** Raise an event of a port on all contexts that were opened on this
 *  incarnation of its NIC. */
void emu_ctx_raise(uint32_t port, uint32_t nic_gen, enum ibv_event_type type);

#endif
