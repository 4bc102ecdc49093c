/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Robust locks in shared memory. If a process dies while it holds a lock, the next owner
 * is notified, and repairs what the lock protects.
 *
 * Order: requester half of a queue pair -> responder half of its peer -> HCA
 * (atomics) -> SRQ -> CQ -> tables -> heap. Never two of a kind.
 */

#ifndef EMU_LOCK_H_
#define EMU_LOCK_H_

#include <pthread.h>

typedef struct emu_lock {
    pthread_mutex_t mutex;
} emu_lock_t;

/** Initialize a lock in zeroed shared memory. */
void emu_lock_init(emu_lock_t *lock);

/** The same for a lock that is also taken by a thread which has to be in time: its owner
 *  runs with the priority of the threads that wait, and the most urgent one gets it next. */
void emu_lock_init_urgent(emu_lock_t *lock);

/** Take a lock. @return 1 if its last owner died inside it, otherwise 0. */
int emu_lock(emu_lock_t *lock);

/** Release a lock that the caller holds. */
void emu_unlock(emu_lock_t *lock);

/**
 * Whether the owner of a lock died, without taking the lock. Only a hint: the
 * death of an owner may be noticed late, never too early.
 */
int emu_lock_owner_died(const emu_lock_t *lock);

/** Take a lock if it is free. @return 1 if it was taken, 2 if it was taken from a dead
 *  owner, 0 if it is not free. */
int emu_trylock(emu_lock_t *lock);

#endif
