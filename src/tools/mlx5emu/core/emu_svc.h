/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The service thread: one per process, asleep until something is due. It holds
 * the process's life lock, so that its end is the process's end.
 *
 * Called by: emu_attach.c (start), proto/ and wire/ (timers, delayed packets).
 */

#ifndef EMU_SVC_H_
#define EMU_SVC_H_

#include "../base/emu_def.h"

#include <stdint.h>

typedef void (*emu_svc_func_t)(void *arg, uint64_t cookie);

/**
 * Start the thread. Returns when it holds the life lock.
 *
 * @param [in] nudge  Called by the thread after emu_svc_nudge_all().
 */
int emu_svc_start(void (*nudge)(void));

/** Stop the thread; releases the life lock. What is queued is dropped. */
void emu_svc_stop(void);

/** Forget a parent's thread, in a forked child. */
void emu_svc_forget(void);

/** Have a function called by the thread at or after a time (emu_now_ns).
 *  Nothing can be cancelled: the function checks whether it is still wanted.
 *  Locks may be held by the caller. */
int emu_svc_add(uint64_t due_ns, emu_svc_func_t func, void *arg,
                uint64_t cookie);

/** Have the service thread of a process look at what is common to all, as @ref
 *  emu_svc_start says. */
void emu_svc_nudge(emu_proc_t *proc);

/** Have the service threads of all processes of the fabric look at what is
 *  common to them, as @ref emu_svc_start says. */
void emu_svc_nudge_all(void);

#endif
