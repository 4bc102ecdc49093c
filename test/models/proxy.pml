/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics in mode proxy (docs/ATOMICS.md), for spin. test/models/test_models.sh
 * searches all interleavings.
 *
 * A client requests OPS fetch-and-adds of one word, at most WINDOW at a time. A message
 * has the first number, the count, and the number before which the client has all
 * results. The network keeps all messages and delivers them at any time, in any order,
 * any number of times, or never, which includes failures of links. The target's CPU
 * also changes the word once. Once, the target and the client restart with a new
 * opening and numbers from 1, while all old messages still exist.
 *
 *     target: another opening: refuse | discarded, or beyond the window: refuse
 *             | executed: its kept result | the next one: execute and keep | later: wait
 *
 * Asserted: a number is executed once, after the previous one, and only for a message
 * of its own opening; the client gets the result of this execution; no result is
 * discarded before the client has it.
 *
 * Each of these macros breaks one rule, and must make the search fail:
 *   NO_KEEP          a repeated request is executed again
 *   NO_ORDER         a request is executed before earlier ones have arrived
 *   NO_WINDOW        no limit of requests in flight, so a kept result is overwritten
 *   FORGETFUL        the target forgets which results it has discarded
 *   EARLY_ACK        the client acknowledges results when it sends the request
 *   ANY_OPENING      the target ignores the opening of a message
 */

#define OPS       3             /* Numbers; CHOOSE_MESSAGE is for so many */
#define WINDOW    2

#ifdef NO_WINDOW
#  define IN_WINDOW(_number, _oldest) true
#else
#  define IN_WINDOW(_number, _oldest) ((_number) < (_oldest) + WINDOW)
#endif
#ifdef ANY_OPENING
#  define IS_MINE(_o) true
#else
#  define IS_MINE(_o) ((_o) == opening)
#endif
#ifdef EARLY_ACK
#  define ACK(_first) (_first)
#else
#  define ACK(_first) oldest
#endif
#ifdef FORGETFUL
#  define WHEN_DISCARDED(_number, _o) execute(_number, _o)
#else
#  define WHEN_DISCARDED(_number, _o) skip
#endif
#ifdef NO_KEEP
#  define WHEN_EXECUTED(_number, _o) execute(_number, _o)
#else
#  define WHEN_EXECUTED(_number, _o) skip
#endif
#ifdef NO_ORDER
#  define WHEN_LATER(_number, _o) execute(_number, _o)
#else
#  define WHEN_LATER(_number, _o) skip
#endif

#define OPENINGS  2
#define MOST      2             /* Requests in a message */
#define NUMBERS   (OPS + 2)

/* A message: opening, first number, count and acknowledgement */
#define MSG(_o, _f, _c, _a) \
    (((((_o) * NUMBERS) + (_f)) * (MOST + 1) + (_c)) * NUMBERS + (_a))
#define MSGS      (OPENINGS * NUMBERS * (MOST + 1) * NUMBERS)

/* One of the messages that were sent and are not ignored. Each is an option of one "if":
 * to choose a message first, and to look then whether it was sent, takes five times as
 * many steps to the same states */
#define CHOOSE(_o, _f, _c, _a) \
    :: sent[MSG(_o, _f, _c, _a)] && IS_MINE(_o) -> \
       o = _o; first = _f; count = _c; ack = _a
#define CHOOSE_ACK(_o, _f, _c) \
    CHOOSE(_o, _f, _c, 1) CHOOSE(_o, _f, _c, 2) CHOOSE(_o, _f, _c, 3) \
    CHOOSE(_o, _f, _c, 4)
#define CHOOSE_FIRST(_o, _c) \
    CHOOSE_ACK(_o, 1, _c) CHOOSE_ACK(_o, 2, _c) CHOOSE_ACK(_o, 3, _c)
#define CHOOSE_MESSAGE \
    if \
    CHOOSE_FIRST(0, 1) CHOOSE_FIRST(0, 2) CHOOSE_FIRST(1, 1) CHOOSE_FIRST(1, 2) \
    fi

bit  sent[MSGS];
byte answer[OPENINGS * NUMBERS];   /* Result + 1 of each number, 0: none was sent */

byte opening;                   /* Of the target */
byte word;
byte next = 1;                  /* The target's next number */
byte acked = 1;
byte kept[WINDOW];

/* The client's state */
byte asked = 1;                 /* Numbers before this one were sent */
byte oldest = 1;                /* It has all results before this one */
bit  got[NUMBERS];

/* The operations executed in this opening */
byte truth[NUMBERS];
bit  done[NUMBERS];

inline execute(_number, _meant_for)
{
    assert(!done[_number]);
    assert(_number == 1 || done[_number - 1]);
    assert(_meant_for == opening);
    done[_number]          = 1;
    truth[_number]         = word;
    kept[(_number) % WINDOW] = word;
    word                   = word + 1
}

inline reply(_number)
{
    answer[opening * NUMBERS + (_number)] = kept[(_number) % WINDOW] + 1
}

inline take(_number, _o)
{
    if
    :: _number >= NUMBERS -> skip                   /* There is none */
    :: _number < NUMBERS && _number < acked -> WHEN_DISCARDED(_number, _o)
    :: _number < NUMBERS && _number >= acked && !IN_WINDOW(_number, acked) -> skip
    :: _number < NUMBERS && _number >= acked && IN_WINDOW(_number, acked) ->
       if
       :: _number < next -> WHEN_EXECUTED(_number, _o); reply(_number)
       :: _number == next -> execute(_number, _o); next = next + 1; reply(_number)
       :: _number > next -> WHEN_LATER(_number, _o)
       fi
    fi
}

/* The network delivers any message */
proctype target()
{
    byte o, first, count, ack, i;

end:
    do
    :: atomic {
           CHOOSE_MESSAGE;
           if
           :: ack > acked && ack <= next ->
              i = acked;
              do
              :: i < ack -> assert(got[i]); i = i + 1
              :: else -> break
              od;
              acked = ack
           :: else
           fi;
           take(first, o);
           if
           :: count == 2 -> take(first + 1, o)
           :: else
           fi;
           o = 0; first = 0; count = 0; ack = 0; i = 0
       }
    od
}

/* Its first request is _f; to send a message again changes nothing */
#define SEND(_f, _c) \
    :: d_step { _f >= oldest && _f + _c <= asked && \
                !sent[MSG(opening, _f, _c, ACK(_f))] -> \
           sent[MSG(opening, _f, _c, ACK(_f))] = 1 }

proctype client()
{
    byte i;
    bit again = 1;

    do
    :: atomic { asked <= OPS && IN_WINDOW(asked, oldest) -> asked = asked + 1 }
    SEND(1, 1) SEND(1, 2) SEND(2, 1) SEND(2, 2) SEND(3, 1)
    :: d_step { oldest <= OPS && answer[opening * NUMBERS + oldest] && !got[oldest] ->
           i      = oldest;
           got[i] = 1;
           assert(answer[opening * NUMBERS + i] == truth[i] + 1);
           i = 0 }
    :: d_step { oldest < OPS && answer[opening * NUMBERS + oldest + 1] &&
                !got[oldest + 1] ->
           i      = oldest + 1;
           got[i] = 1;
           assert(answer[opening * NUMBERS + i] == truth[i] + 1);
           i = 0 }
    :: d_step { oldest <= OPS && got[oldest] -> oldest = oldest + 1 }
    :: atomic { oldest > OPS -> break }
    :: atomic { again ->         /* Both restart */
           again   = 0;
           opening = 1;
           next    = 1; acked = 1; asked = 1; oldest = 1;
           i = 0;
           do
           :: i < WINDOW -> kept[i] = 0; i = i + 1
           :: else -> break
           od;
           i = 0;
           do
           :: i < NUMBERS -> got[i] = 0; truth[i] = 0; done[i] = 0; i = i + 1
           :: else -> break
           od;
           i = 0 }
    od
}

proctype cpu()
{
    word = word + 10
}

init
{
    atomic {
        run target();
        run client();
        run cpu()
    }
}
