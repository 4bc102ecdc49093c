/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The processes of a fabric, and which of them this one is.
 */

#ifndef EMU_PROC_H_
#define EMU_PROC_H_

#include "../base/emu_def.h"
#include "../base/emu_lock.h"

#define EMU_COMM_MAX      32
#define EMU_PROC_MR_HOLDS 64

/** A process. It is alive while its service thread holds @a life. */
struct emu_proc {
    uint32_t   used;       /* guarded by table_lock */
    uint32_t   gen;        /* changes with every new owner of the slot */
    uint32_t   index;
    int32_t    pid;
    uint32_t   host;
    emu_lock_t life;
    uint32_t   kick;       /* futex: the service thread sleeps while it is the
                              same; atomic, so are the next two */
    uint32_t   sleeping;   /* whether a thread waits for that */
    uint32_t   nudged;     /* other processes have news for the thread */
    char       comm[EMU_COMM_MAX];
    /* Memory regions (indices) that its threads access now; 0: free. Others read
     * what is above, so not on the same cache line. */
    uint32_t   mr_held[EMU_PROC_MR_HOLDS] __attribute__((aligned(64)));
};

/** This process in the fabric, NULL while not attached. */
extern emu_proc_t *emu_self;

/** Whether a process slot has a living owner. Cheap; a hint. */
int emu_proc_alive(const emu_proc_t *proc);

#endif
