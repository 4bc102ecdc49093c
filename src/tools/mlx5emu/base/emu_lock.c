/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Robust process-shared locks. See emu_lock.h.
 */

#include "emu_lock.h"

#include <errno.h>
#include <linux/futex.h>

static void emu_lock_init_protocol(emu_lock_t *lock, int protocol)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setprotocol(&attr, protocol);
    pthread_mutex_init(&lock->mutex, &attr);
    pthread_mutexattr_destroy(&attr);
}

void emu_lock_init(emu_lock_t *lock)
{
    emu_lock_init_protocol(lock, PTHREAD_PRIO_NONE);
}

void emu_lock_init_urgent(emu_lock_t *lock)
{
    emu_lock_init_protocol(lock, PTHREAD_PRIO_INHERIT);
}

int emu_lock(emu_lock_t *lock)
{
    if (pthread_mutex_lock(&lock->mutex) != EOWNERDEAD) {
        return 0;
    }

    pthread_mutex_consistent(&lock->mutex);
    return 1;
}

void emu_unlock(emu_lock_t *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

int emu_lock_owner_died(const emu_lock_t *lock)
{
    /* The kernel sets this bit in the futex word of a robust mutex when its
     * owner dies. glibc has no call to look at it without locking. */
    return !!(__atomic_load_n(&lock->mutex.__data.__lock, __ATOMIC_RELAXED) &
              FUTEX_OWNER_DIED);
}

int emu_trylock(emu_lock_t *lock)
{
    switch (pthread_mutex_trylock(&lock->mutex)) {
    case 0:
        return 1;
    case EOWNERDEAD:
        pthread_mutex_consistent(&lock->mutex);
        return 2;
    default:
        return 0;
    }
}
