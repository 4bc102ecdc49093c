/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * The emulator and the program share SIGSEGV: the emulator's handler is the
 * one which the kernel knows; what the program installs is kept here, and gets
 * every fault that isn't a doorbell. Called by emu_uar.c; the interposed libc
 * functions (sigaction, signal, ...) are called by the program.
 */

#ifndef EMU_SIGNAL_H_
#define EMU_SIGNAL_H_

#include <signal.h>


/**
 * Handler of a fault.
 *
 * @return Nonzero if the fault was a doorbell and is dealt with.
 */
typedef int (*emu_signal_fault_func_t)(siginfo_t *info, void *context);


/**
 * Put the emulator's handler in front of the program's one. Done once, calling
 * it again has no effect.
 *
 * @param [in]  func  Gets each SIGSEGV first.
 *
 * @return 0 on success, otherwise a value of errno.
 */
int emu_signal_init(emu_signal_fault_func_t func);


/**
 * Until @ref emu_signal_pause_end, other threads that fault wait, and then execute their
 * instruction again: for memory that cannot be accessed in between. Must not be nested,
 * or called by two threads at once. Take no lock in between: a waiting thread may hold
 * it.
 */
void emu_signal_pause_begin(void);


/** @see emu_signal_pause_begin */
void emu_signal_pause_end(void);

#endif
