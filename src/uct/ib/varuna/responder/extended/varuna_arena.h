/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's slots for atomics with extended status: one arena for the process,
 * because two of its interfaces may expose the same memory, and a client that meets a
 * UID must find its slot. Called by varuna_arena.c and the worker.
 */
#ifndef UCT_VARUNA_ARENA_H_
#define UCT_VARUNA_ARENA_H_

#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>

/** UCT_VARUNA_SLOTS_MAX of each; pages of their own. */
typedef struct uct_varuna_arena {
    uct_varuna_slot_t          *slots;    /* Bodies; NULL: there is no arena */
    uint64_t                   *marks;
} uct_varuna_arena_t;

/** Take a reference to the arena; the first one creates it. */
ucs_status_t uct_varuna_arena_get(uct_varuna_arena_t *arena);

/** Release a reference; the last one frees it. */
void uct_varuna_arena_put(void);

/** In a new child: the arena is the parent's. */
void uct_varuna_arena_forked(void);

/**
 * Take a block of UCT_VARUNA_SLOT_BLOCK slots. The marks of all are PENDING, with
 * generations that they have not had in this process.
 *
 * @return Index of its first slot, UCT_VARUNA_SLOT_NONE if there is none left.
 */
uint32_t uct_varuna_arena_alloc(void);

/** Free a block: nobody can write to it any more, and no target holds one of its UIDs
 * (rule 7). */
void uct_varuna_arena_free(uint32_t first);

#endif
