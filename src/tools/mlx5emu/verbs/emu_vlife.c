/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * See emu_vlife.h. Called by libc: before and after forks, and at the end.
 */

#include "emu_vlife.h"
#include "../core/emu_attach.h"

#include <pthread.h>
#include <stddef.h>


unsigned emu_verbs_fork_gen;

static void emu_vlife_nothing(void)
{
}

static const emu_vlife_hooks_t emu_vlife_no_hooks = {
    emu_vlife_nothing, emu_vlife_nothing, emu_vlife_nothing, emu_vlife_nothing
};

static const emu_vlife_hooks_t *emu_vlife_hooks = &emu_vlife_no_hooks;


void emu_vlife_hook(const emu_vlife_hooks_t *hooks)
{
    emu_vlife_hooks = hooks;
}

static void emu_vlife_fork_prepare(void)
{
    emu_vlife_hooks->fork_prepare();
}

static void emu_vlife_fork_parent(void)
{
    emu_vlife_hooks->fork_parent();
}

static void emu_vlife_fork_child(void)
{
    ++emu_verbs_fork_gen;
    emu_vlife_hooks->fork_child();
}

static void __attribute__((constructor)) emu_vlife_init(void)
{
    pthread_atfork(emu_vlife_fork_prepare, emu_vlife_fork_parent,
                   emu_vlife_fork_child);
}

/* Leave the fabric. Libraries of the program may be cleaned up later than this:
 * what they still destroy is then only memory of their own.
 *
 * Threads that the program has left running may be in the midst of a doorbell, and
 * hold locks of what would be released here. Then nothing is released: they end with
 * the process, as if it was killed, and others clean up after it. */
static void __attribute__((destructor)) emu_vlife_cleanup(void)
{
    ++emu_verbs_fork_gen;
    if (emu_proc_is_alone()) {
        emu_vlife_hooks->leave();
        emu_proc_detach();
    }
}
