/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Runs a function that may access memory which is not there. The CPU's atomics must be
 * executed by an instruction of this process: no system call does them on memory that may be
 * unmapped, read-only, or beyond the end of its file. A look before the access proves
 * nothing, since another thread may unmap the page right after it. So a handler of SIGSEGV and
 * SIGBUS catches the fault:
 *
 *   - it acts on faults of a thread that is inside uct_varuna_fault_run(), and on no
 *     others: those go to the handler that was there before;
 *   - it is installed when the first atomic comes, and looked at before each message: if
 *     the application, or UCX (UCX_HANDLE_ERRORS), has replaced it, it is installed again,
 *     before that handler, which still gets all other faults;
 *   - it is never removed, since somebody may have noted it as the one to go on with.
 */
#ifndef UCT_VARUNA_FAULT_H_
#define UCT_VARUNA_FAULT_H_

#include <ucs/type/status.h>

/** See that faults are caught. Any thread.
 *  @return UCS_ERR_UNSUPPORTED if they cannot be. */
ucs_status_t uct_varuna_fault_init(void);

/**
 * Call @a func, which takes no lock and calls no other function.
 *
 * @return Zero; nonzero if it accessed memory that is not there, and did not return.
 */
int uct_varuna_fault_run(void (*func)(void *arg), void *arg);

#endif
