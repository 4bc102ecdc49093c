/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Runs a function that may access memory which is not there. The CPU's atomics must be
 * executed by an instruction of this process: no system call does them on memory that may be
 * unmapped, read-only, or beyond the end of its file. A look before the access does not prove
 * enough, since another thread may unmap or protect the page right after it. So a handler of
 * SIGSEGV and SIGBUS catches the fault:
 *
 *   - it acts on faults of a thread that is inside uct_varuna_fault_run(), at the memory that
 *     was named there, and on no others: those go to the handler that was there before, which
 *     may return or jump;
 *   - it is installed when the first atomic comes, and not over a handler that is set
 *     later: that may count on being the only one, or go on with ours. Then the memory is
 *     looked at before each access instead, and only memory that vanishes right after the
 *     look is a fault for that handler;
 *   - it is never removed, since somebody may have noted it as the one to go on with.
 */
#ifndef UCT_VARUNA_FAULT_H_
#define UCT_VARUNA_FAULT_H_

#include <stddef.h>
#include <stdint.h>

/** Install the handler at the first call, and find out whether it is the one that the kernel
 *  calls. Any thread. */
void uct_varuna_fault_init(void);

/** In a new child: the handlers are installed there as well. */
void uct_varuna_fault_forked(void);

/**
 * Call @a func, which takes no lock, calls no other function, and accesses one word of 4 or 8
 * bytes at @a addr.
 *
 * @return Zero; nonzero if the word is not there, or cannot be written, and @a func did not
 *         return.
 */
int uct_varuna_fault_run(uint64_t addr, void (*func)(void *arg), void *arg);

#endif
