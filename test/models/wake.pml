/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Waking an application that sleeps on the event descriptor (varuna_bus.c), for
 * spin. test/models/test_models.sh searches all interleavings.
 *
 * The async thread adds work for the main thread, under the lock of the dispatcher; an
 * external detector pokes the main thread without the lock. The application repeatedly
 * makes progress, arms, and sleeps until the descriptor is readable.
 *
 * Asserted: the application does not sleep forever while there is work.
 *
 * Each of these macros breaks one rule, and must make the search fail:
 *   LOOK_FIRST       the arming thread checks for events before it sets "armed"
 *   DRAIN_LAST       the descriptor is drained after arming, and not before
 *   WAKE_FIRST       the application is woken before the work is visible
 *   POKED_LATE       the poke is cleared after the check of its cause
 */

#define ITEMS 3
#define POKES 2

byte items, poked_for;      /* Work: in the inbox, and of the external detector */
byte given, done;
bit  has_events, poked;
bit  armed, signalled;
byte readable;              /* The descriptor's value */
bit  locked;

inline lock()
{
    atomic { !locked -> locked = 1 }
}

inline unlock()
{
    locked = 0
}

/* The exchange is atomic, but the flag and the descriptor change separately */
inline wake(was)
{
    atomic { was = armed; armed = 0 }
    if
    :: was -> readable++; signalled = 1
    :: else
    fi
}

proctype async_thread()
{
    byte i;
    bit was;

    for (i : 1 .. ITEMS) {
        lock();
        items++;
        if
        :: !has_events ->
#ifdef WAKE_FIRST
            wake(was);
            has_events = 1
#else
            has_events = 1;
            wake(was)
#endif
        :: else
        fi;
        unlock()
    }
}

proctype outside()
{
    byte i;
    bit was;

    for (i : 1 .. POKES) {
        poked_for++;
        poked = 1;
        wake(was)
    }
}

inline dispatch()
{
    lock();
#ifndef POKED_LATE
    poked = 0;
#endif
    has_events = 0;
    atomic { done = done + items; items = 0 };
    unlock();
    atomic { done = done + poked_for; poked_for = 0 };
#ifdef POKED_LATE
    poked = 0
#endif
}

inline drain()
{
    atomic { was = signalled; signalled = 0 };
    if
    :: was -> readable = 0
    :: else
    fi
}

active proctype application()
{
    bit was, busy;

    run async_thread();
    run outside();

progress:
    dispatch();
    if
    :: done == ITEMS + POKES -> goto finished
    :: else
    fi;

#ifndef DRAIN_LAST
    drain();
#endif
#ifdef LOOK_FIRST
    busy = has_events || poked;
    armed = 1;
#else
    armed = 1;
    busy = has_events || poked;
#endif
    if
    :: busy -> armed = 0; goto progress
    :: else
    fi;
#ifdef DRAIN_LAST
    drain();
#endif
    readable > 0;           /* No end state: a process that stays here sleeps forever */
    goto progress;

finished:
    skip
}
