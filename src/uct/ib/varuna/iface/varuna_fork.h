/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Children of fork(). A child can open interfaces of its own; what it has inherited is the
 * parent's, and the child only forgets it. This file has the list of all that a process has
 * once, whichever interface uses it.
 */
#ifndef UCT_VARUNA_FORK_H_
#define UCT_VARUNA_FORK_H_

/** The library was loaded: handle each fork() from now on. */
void uct_varuna_fork_init(void);

#endif
