/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Joining a fabric, leaving it, and cleaning up after processes that died in it.
 *
 * Called by: verbs/ (on the first ibv call), ctl/ (reaping dead processes).
 */

#ifndef EMU_ATTACH_H_
#define EMU_ATTACH_H_

#include <stddef.h>

/**
 * Open the fabric and become a process of a host in it: takes a slot, starts
 * the service thread, reaps dead processes. Called again, it does nothing; in
 * a forked child it attaches the child anew.
 */
int emu_proc_attach(const char *fabric, unsigned host, char *err,
                    size_t err_max);

/** Leave: releases all that is still open. Called at exit by a destructor, if no other
 *  thread can be using the fabric (@ref emu_proc_is_alone). */
void emu_proc_detach(void);

/** Whether this process has no threads but the caller and the service thread. */
int emu_proc_is_alone(void);

/** Release the objects of dead processes. @return The number of these processes. */
int emu_proc_reap(void);

#endif
