/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics in mode proxy (docs/ATOMICS.md), for spin. All interleavings are searched;
 * test/models/test_models.sh does that.
 *
 * Two clients ask two proxies of one process, each its own, to work on one word: the
 * first does two FADDs of 1, the second a CSWAP from 1 to 0, which makes the old value
 * return, or fails. Somebody puts a 3, or a 0 (PUT_VALUE). Requests and answers are
 * repeated and get lost; a link that fails is no more than that, since a client asks
 * again over another one.
 *
 *     proxy: claim the word | read it | CAS it | answer, and remember the answer
 *
 * Each proxy's loopback may fail once at its CAS, which then is executed, or not, or
 * later, until what was on the loopback is dead (the packet lifetime). The proxy waits
 * for that and looks at the word: another value than before means that it was executed.
 *
 * Asserted, when all is done: there is an order of the operations which agrees with what
 * they returned, with the word, and with which of them had returned before another was
 * called. An operation executed twice, or lost, fits in no such order.
 *
 * Left out: readers. While a put writes the old value just when a loopback fails, they
 * may see the new value twice (docs/ATOMICS.md, Limits).
 *
 * Each of these macros breaks one rule, and must make the search fail:
 *   NO_CACHE         a request that comes again is executed again
 *   NO_CLAIM         proxies do not take turns on the word
 *   NO_LIFETIME      the proxy looks before its CAS is dead
 *   BLIND_REPEAT     ... does not look
 *   NO_LOOK_FIRST    ... has not read the word before its first CAS
 */

#ifndef PUT_VALUE
#  define PUT_VALUE 3
#endif

#define OPS      4              /* 0 and 1: first client, 2: second, 3: the put */
#define CSWAP    2
#define PUT      3
#define NO_OP    255
#define NOBODY   2

byte word;

/* The CAS of a proxy that failed, and is still under way */
bit  late[2];
byte late_from[2], late_to[2];

byte claim = NOBODY;
byte finished;

chan request[2] = [1] of { byte };          /* Operation */
chan answer[2]  = [4] of { byte, byte };    /* Operation, result */
byte repeats = 1;               /* How often all clients ask again */

typedef op_t {
    byte result;
    byte before;                /* operations that had returned when it began */
};
op_t ops[OPS];
byte returned;                  /* one bit each */

inline cas_word(_from, _to, _old)
{
    _old = word;
    if
    :: word == _from -> word = _to
    :: else
    fi
}

proctype client(byte c)
{
    byte op, got, value;

    op = 2 * c;
next:
    atomic {
        ops[op].before = returned;
        request[c]!op
    };
wait:
    if
    :: atomic { answer[c]?got,value ->
           if
           :: got == op ->
              ops[op].result = value;
              returned = returned | (1 << op);
              if
              :: op == 0 -> op = 1; goto next
              :: else -> goto over
              fi
           :: else -> goto wait /* To a request that was repeated */
           fi }
    :: atomic { repeats > 0 && nfull(request[c]) ->
           repeats = repeats - 1;
           request[c]!op };
       goto wait
    fi;
over:
    atomic {
        got = 0; value = 0;
        finished = finished + 1
    }
}

proctype proxy(byte p)
{
    byte op, last, result, expect, next, old;
    byte failures = 1;
    bit done;

    last = NO_OP;
end:
idle:
    atomic {
        request[p]?op;
        old = 0; next = 0; expect = 0;
        if
#ifndef NO_CACHE
        :: op == last && done -> goto reply
#endif
        :: last != NO_OP && op < last -> goto idle
        :: else -> last = op; done = 0
        fi
    };

#ifndef NO_CLAIM
    atomic { claim == NOBODY -> claim = p };
#endif
#ifdef NO_LOOK_FIRST
    atomic {
        if
        :: op == CSWAP -> expect = 1; goto post
        :: else
        fi
    };
#endif
    expect = word;

post:
    atomic {
        if
        :: op == CSWAP && expect != 1 -> goto finish
        :: op == CSWAP && expect == 1 -> next = 0
        :: op != CSWAP -> next = expect + 1
        fi
    };
    if
    :: d_step { cas_word(expect, next, old) };
       if
       :: old == expect -> goto finish
       :: else -> expect = old; goto post
       fi
    :: d_step { failures > 0 ->
           failures     = 0;
           late[p]      = 1;
           late_from[p] = expect;
           late_to[p]   = next }
    fi;

    /* Lost. When it is dead: has it been executed? */
#ifndef NO_LIFETIME
    late[p] = 0;
#endif
#ifdef BLIND_REPEAT
    expect = word;
    goto post;
#endif
    if
    :: word != expect
    :: word == expect -> goto post
    fi;

finish:
    atomic {
        result = expect;
        done   = 1;
#ifndef NO_CLAIM
        claim  = NOBODY;
#endif
    };

reply:
    /* An answer is lost only if it is asked for again: nobody asks for ever here */
    atomic {
        if
        :: answer[p]!op,result
        :: nempty(request[p])
        fi;
        goto idle
    }
}

/* The CAS of a loopback that failed is executed after all */
proctype fabric()
{
    byte old;

end:
    do
    :: d_step { late[0] -> late[0] = 0; cas_word(late_from[0], late_to[0], old) }
    :: d_step { late[1] -> late[1] = 0; cas_word(late_from[1], late_to[1], old) }
    od
}

proctype putter()
{
    d_step {
        ops[PUT].before = returned;
        word            = PUT_VALUE;
        returned        = returned | (1 << PUT);
        finished        = finished + 1
    }
}

/* --- The judge: is there an order that explains it all? ------------------- */

inline apply(_op)
{
    fits    = fits && !(ops[_op].before & ~applied);
    applied = applied | (1 << _op);
    if
    :: _op == PUT -> v = PUT_VALUE
    :: _op == CSWAP ->
       fits = fits && ops[_op].result == v;
       v = (v == 1 -> 0 : v)
    :: else ->
       fits = fits && ops[_op].result == v;
       v = v + 1
    fi
}

inline try(_a, _b, _c, _d)
{
    fits = 1; applied = 0; v = 0;
    apply(_a);
    apply(_b);
    apply(_c);
    apply(_d);
    explained = explained || (fits && v == word)
}

init
{
    byte v, applied;
    bit fits, explained;

    atomic {
        run client(0);
        run client(1);
        run proxy(0);
        run proxy(1);
        run fabric();
        run putter()
    };
    /* Nothing of the proxies is under way: also what nobody waits for is executed */
    finished == 3 && empty(request[0]) && empty(request[1]) && claim == NOBODY &&
        !late[0] && !late[1];
    d_step {
        try(0, 1, 2, 3); try(0, 1, 3, 2); try(0, 2, 1, 3); try(0, 2, 3, 1);
        try(0, 3, 1, 2); try(0, 3, 2, 1); try(2, 0, 1, 3); try(2, 0, 3, 1);
        try(2, 3, 0, 1); try(3, 0, 1, 2); try(3, 0, 2, 1); try(3, 2, 0, 1);
        assert(explained)
    }
}
