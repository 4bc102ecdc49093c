/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's slots for atomics with extended status: one arena for the
 * process, since two interfaces of it may expose the same memory, and whoever
 * meets a UID must know where its slot is. Called by varuna_target.c, and by the
 * worker that looks after slots of dead owners.
 */
#ifndef UCT_VARUNA_ARENA_H_
#define UCT_VARUNA_ARENA_H_

#include <uct/ib/varuna/core/varuna_uid.h>

/** UCT_VARUNA_SLOTS_MAX of each; pages of their own. */
typedef struct uct_varuna_arena {
    uct_varuna_slot_t          *slots;    /* Bodies; NULL: there is no arena */
    uint64_t                   *marks;
} uct_varuna_arena_t;

/** Take a reference to the arena; the first one makes it. */
ucs_status_t uct_varuna_arena_get(uct_varuna_arena_t *arena);

/** Release a reference; the last one frees it. */
void uct_varuna_arena_put(void);

/**
 * Take a block of UCT_VARUNA_SLOT_BLOCK slots. The marks of all are PENDING, of
 * generations which they never had before in this process.
 *
 * @return Index of its first slot, UCT_VARUNA_SLOT_NONE if there is none left.
 */
uint32_t uct_varuna_arena_alloc(void);

/** Give a block back: nobody can write to it any more, and no target holds one
 *  of its UIDs (rule 7). */
void uct_varuna_arena_free(uint32_t first);

#endif
