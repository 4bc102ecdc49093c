/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Forks and the end of the process: what is left to whom.
 */

#ifndef EMU_VLIFE_H_
#define EMU_VLIFE_H_

/** What something above verbs/ has to do then. */
typedef struct emu_vlife_hooks {
    void (*fork_prepare)(void);
    void (*fork_parent)(void);
    void (*fork_child)(void);
    void (*leave)(void);       /* Before the process leaves the fabric */
} emu_vlife_hooks_t;


/* Counts forks: objects of a parent are dead in its child */
extern unsigned emu_verbs_fork_gen;


/** Have hooks called; there is room for one set. From a constructor. */
void emu_vlife_hook(const emu_vlife_hooks_t *hooks);

#endif
