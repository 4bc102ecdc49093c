/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The life of a vQP's target at the responder (docs/RECOVERY.md, invariant 13), for
 * spin. test/models/test_models.sh searches all interleavings.
 *
 * A requester opens a vQP, sends one request, gets the answer, and closes the vQP; then
 * it does the same with another endpoint of the same name. There are two paths. Each is
 * in order, but not with the other one. Nothing is lost, but everything may be late.
 * Until there is an answer the requester repeats the request on any path.
 *
 * Asserted: a request is executed once, and only while its requester waits for it. When
 * all messages have arrived, no target is left. And no process waits forever.
 *
 * Each of these macros breaks one rule, and must make the search fail:
 *   ANY_OPENING      a message is for the present target of this name
 *   BY_INSTANCE      ... that the same endpoint has opened
 *   KEEP_LATE        an unexpected OPEN_REP is dropped
 *   OLD_REPLACES     a late OPEN_REQ of an older endpoint replaces the target
 */

#define ENDPOINTS 2
#define NONE      0

mtype = { open, ask, close, opened, answer };

chan to[2]   = [6] of { mtype, byte, byte };    /* Type, instance, opening */
chan from[2] = [6] of { mtype, byte, byte };

byte repeats = 3;           /* Remaining repetitions */
byte waiting = NONE;        /* The instance with an open request */
byte done[ENDPOINTS + 1];
bit  ended;

byte target = NONE;         /* The instance that opened it */
byte opening;               /* Of the target */
byte openings;              /* So far */

inline send(_type, _instance, _opening)
{
    if
    :: to[0]!_type(_instance, _opening)
    :: to[1]!_type(_instance, _opening)
    fi
}

inline receive()
{
    if
    :: from[0]?type(instance, number)
    :: from[1]?type(instance, number)
    fi
}

/* For another instance, or already handled */
inline refuse()
{
    if
#ifndef KEEP_LATE
    :: type == opened && number != mine -> send(close, instance, number)
#endif
    :: else
    fi
}

proctype requester()
{
    byte me   = 1;
    byte mine = NONE;       /* Opening of my target */
    byte instance, number;
    mtype type;

again:
    send(open, me, NONE);
    do
    :: atomic { receive();
           if
           :: type == opened && instance == me -> mine = number; break
           :: else -> refuse()
           fi }
    :: atomic { repeats > 0 -> repeats--; send(open, me, NONE) }
    od;

    atomic { waiting = me; send(ask, me, mine) };
    do
    :: atomic { receive();
           if
           :: type == answer && number == mine -> break
           :: else -> refuse()
           fi }
    :: atomic { repeats > 0 -> repeats--; send(ask, me, mine) }
    od;

    atomic {
        assert(done[me] == 1);
        waiting = NONE;
        send(close, me, mine);
        mine = NONE;
        me++;
        if
        :: me <= ENDPOINTS -> goto again
        :: else -> ended = 1
        fi
    };
end:
    do
    :: atomic { receive(); refuse() }
    od
}

inline reply(_type)
{
    if
    :: from[0]!_type(instance, opening)
    :: from[1]!_type(instance, opening)
    fi
}

inline make_target()
{
    openings++;
    target   = instance;
    opening  = openings;
    answered = 0;
    reply(opened)
}

proctype responder()
{
    byte instance, number;
    mtype type;
    bit answered, meant;

end:
    do
    :: atomic {
        if
        :: to[0]?type(instance, number)
        :: to[1]?type(instance, number)
        fi;
#if defined(ANY_OPENING)
        meant = (target != NONE);
#elif defined(BY_INSTANCE)
        meant = (target == instance);
#else
        meant = (target != NONE && number == opening);
#endif
        if
        :: type == open && target == instance -> reply(opened)
#ifndef OLD_REPLACES
        :: type == open && target > instance
#else
        :: type == open && target > instance -> make_target()
#endif
        :: type == open && target < instance -> make_target()
        :: type == ask && meant ->
           if
           :: answered
           :: else ->
              assert(waiting == instance && done[instance] == 0);
              done[instance]++;
              answered = 1
           fi;
           reply(answer)
        :: type == close && meant -> target = NONE
        :: type != open && !meant /* REJECT, which the requester drops */
        fi;
        meant = 0; instance = 0; number = 0; type = 0 }
    od
}

init
{
    atomic {
        run requester();
        run responder()
    };
    timeout;
    assert(ended && target == NONE)
}
