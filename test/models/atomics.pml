/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The compare-and-swap of two stages (docs/ATOMICS.md), for spin.
 * test/models/test_models.sh searches all interleavings.
 *
 * Two clients use one word: the first executes CAS(0,1) and CAS(1,2), the second
 * CAS(1,0), which makes the old value return. A third client puts a 3, or a 0, which
 * also makes it return (PUT_VALUE). Each access to the responder's memory is one step:
 *
 *     owner: mark = PENDING | write body | occupy: CAS word compare -> UID |
 *            return | confirm: CAS word UID -> swap | flush
 *     a finder of a UID: read body | mark = DONE | read the word again, or CAS it
 *
 * Body and mark are in two arrays, and no client reads both at once: the CAS of the
 * mark detects whether the body was outdated. (After a fence, the model only reads the
 * owner's mark. The plugin also aborts there.)
 *
 * Once in a run, a client has a failure at its occupy: of an RC link (the occupy is
 * executed, or not, or later, until the fence), of a DC link (which cannot be fenced:
 * the operation is aborted, and its slot is in quarantine), or of the client itself
 * (the responder's worker cleans up).
 *
 * Asserted at the end: some order of the operations explains their results and the
 * word, and agrees with the order of returns and calls (linearizability; an operation
 * whose client died may be executed or not); no UID remains in the word; and after its
 * flush, none of a client's UIDs is in the word. No order explains an operation that
 * was executed twice or lost.
 *
 * Left out: several words, two widths, native operations (compare == swap), user
 * data that looks like a UID, slots running out.
 *
 * Each of these macros breaks one rule, and must make the search fail:
 *   NO_HELPING                a finder of a UID uses its value and marks nothing
 *   MARK_AFTER_REPLACE        ... marks it after it has replaced it
 *   FAILED_CAS_DOES_NOT_MARK  ... marks it only if it replaces it
 *   NO_SECOND_LOOK            ... does not read the word again
 *   IGNORE_ABORTED            ... ignores that it was aborted
 *   MARK_BEFORE_TARGET        recovery reads the mark, and then the word
 *   NO_FENCE                  recovery does not stop the occupy before
 *   NO_ABORT                  ... nor abort it if it cannot be stopped
 *   NO_UNDO                   a slot leaves quarantine without a last undo
 *   GENERATION_IGNORED        UID, body and mark have no generation
 *   CONFIRM_NOT_FLUSHED       a flush does not wait for the confirm
 *   RERUN_WITHOUT_ASKING      a failed operation is executed again
 */

/* The operations of the second client and the put */
#ifndef SECOND_COMPARE
#  define SECOND_COMPARE 1
#  define SECOND_SWAP    0
#endif
#ifndef PUT_VALUE
#  define PUT_VALUE      3
#endif

#define OPS             4       /* 0 and 1: first client, 2: second, 3: the put */
#define PUT             3
#define SLOTS           4       /* two of each client: 2 * c, 2 * c + 1 */
#define GENS            4
#define VALUES          4       /* 0..3 are the users' */
#define NO_OP           255

#ifdef GENERATION_IGNORED
#  define GEN(_gen)     1
#else
#  define GEN(_gen)     (_gen)
#endif

#define UID(_slot, _gen)  (VALUES + (_slot) * GENS + GEN(_gen))
#define IS_UID(_value)    ((_value) >= VALUES)
#define SLOT_OF(_uid)     (((_uid) - VALUES) / GENS)
#define GEN_OF(_uid)      (((_uid) - VALUES) % GENS)

mtype = { PENDING, DONE, ABORTED };
mtype = { RC, DC, CRASH };

/* The responder's memory */
typedef slot_t {
    byte  gen;                  /* body */
    byte  compare;
    byte  swap;
    byte  mark_gen;             /* mark: one word, only ever changed by CAS */
    mtype mark;
};

byte   word;
slot_t slot[SLOTS];

/* The failed occupy, while it is in flight */
bit    late;
byte   late_from;
byte   late_uid;

byte   failures = 1;
bit    dead[2];
byte   quarantine = SLOTS;      /* the slot in quarantine */
byte   finished;                /* number of processes */

/* History */
typedef op_t {
    byte compare;
    byte swap;
    byte result;
    byte before;                /* operations that had returned at its start */
};
op_t   ops[OPS];
byte   returned;                /* one bit for each operation */
byte   called;

inline call(_op)
{
    ops[_op].before = returned;
    called = called | (1 << _op)
}

inline return_from(_op, _result)
{
    printf("operation %d returns %d\n", _op, _result);
    ops[_op].result = _result;
    returned = returned | (1 << _op)
}

inline cas_word(_from, _to, _old)
{
    _old = word;
    if
    :: word == _from -> word = _to
    :: else
    fi
}

/* PENDING -> _to, only of this generation. Sets seen to the previous value, and same to
 * whether it was of this generation */
inline cas_mark(_slot, _gen, _to)
{
    seen = slot[_slot].mark;
    same = (slot[_slot].mark_gen == GEN(_gen));
    if
    :: same && seen == PENDING -> slot[_slot].mark = _to
    :: else
    fi
}

proctype client(byte c)
{
    byte op, last, s, gen, from, old, u, value, undo;
    mtype seen;
    bit same;

    op   = 2 * c;
    last = (c == 0 -> 1 : 2);
    s    = 2 * c;

attempt:
    /* Rule 3: the mark is of this generation before the UID is visible */
    atomic {
        old = 0; u = 0; value = 0; undo = 0; seen = 0; same = 0;
        from = ops[op].compare;
        if
        :: !(called & (1 << op)) -> call(op)
        :: else
        fi;
        gen = slot[s].mark_gen + 1;
        slot[s].mark_gen = GEN(gen);
        slot[s].mark     = PENDING
    };
    /* Rule 2 */
    d_step {
        slot[s].gen     = GEN(gen);
        slot[s].compare = ops[op].compare;
        slot[s].swap    = ops[op].swap
    };

occupy:
    if
    :: d_step {
           cas_word(from, UID(s, gen), old);
           printf("client %d: occupy for %d finds %d\n", c, op, old)
       };
       if
       :: old == from -> goto succeeded
       :: old != from && !IS_UID(old) && old != ops[op].compare -> goto failed
       :: old != from && !IS_UID(old) && old == ops[op].compare ->
          from = old; goto occupy
       :: old != from && IS_UID(old) -> u = old; goto met
       fi
    :: d_step {
           failures > 0 ->
           failures  = 0;
           late      = 1;
           late_from = from;
           late_uid  = UID(s, gen);
           printf("client %d: occupy for %d fails\n", c, op)
       };
       if
       :: goto recover
       :: goto recover_dc
       :: goto crash
       fi
    fi;

    /* --- A foreign UID (rules 4 and 5) --- */
met:
    atomic {
        if
        :: slot[SLOT_OF(u)].gen == GEN_OF(u) ->
           value = slot[SLOT_OF(u)].swap;
           undo  = slot[SLOT_OF(u)].compare
        :: else -> goto again
        fi
    };

#if !defined(NO_HELPING) && !defined(MARK_AFTER_REPLACE)
#ifdef FAILED_CAS_DOES_NOT_MARK
    if
    :: value != ops[op].compare -> goto marked
    :: else
    fi;
#endif
    d_step { cas_mark(SLOT_OF(u), GEN_OF(u), DONE) };
    if
    :: !same -> goto again
#ifndef IGNORE_ABORTED
    :: same && seen == ABORTED ->
       d_step { cas_word(u, undo, old) };
       goto again
    :: same && seen != ABORTED
#else
    :: same
#endif
    fi;
#endif

marked:
    if
    :: value == ops[op].compare ->
       from = u;
#ifdef MARK_AFTER_REPLACE
       d_step { cas_word(u, UID(s, gen), old) };
       if
       :: old == u ->
          d_step { cas_mark(SLOT_OF(u), GEN_OF(u), DONE) };
          goto succeeded
       :: else -> goto again
       fi
#endif
       goto occupy              /* fails if the word has changed */
    :: else ->
       old = value;
#ifdef NO_SECOND_LOOK
       goto failed
#else
       if
       :: word == u -> goto failed
       :: else
       fi
#endif
    fi;

again:
    from = ops[op].compare;
    goto occupy;

    /* --- Recovery (rule 6) --- */
recover:
#ifndef NO_FENCE
    late = 0;
#endif
#ifdef RERUN_WITHOUT_ASKING
    goto attempt;
#endif
#ifdef MARK_BEFORE_TARGET
    d_step { seen = slot[s].mark };
    old = word;
#else
    old = word;
    d_step { seen = slot[s].mark };
#endif
    if
    :: old == UID(s, gen) || seen == DONE -> goto succeeded
    :: else -> goto attempt
    fi;

recover_dc:
#ifdef NO_ABORT
    old = word;
    d_step { seen = slot[s].mark };
    if
    :: old == UID(s, gen) || seen == DONE -> goto succeeded
    :: else -> skip
    fi;
#else
    atomic { cas_mark(s, gen, ABORTED) };
    if
    :: seen == DONE -> goto succeeded
    :: else -> skip
    fi;
    d_step { cas_word(UID(s, gen), ops[op].compare, old) };
#endif
    d_step {
        quarantine = s;
        s = s + 1
    };
    goto attempt;

crash:
    dead[c] = 1;
    goto end;

    /* --- The result --- */
failed:
    atomic { return_from(op, old); goto flushed };

succeeded:
    atomic { return_from(op, ops[op].compare) };
#ifdef CONFIRM_NOT_FLUSHED
    assert(word != UID(s, gen));
#endif
    d_step { cas_word(UID(s, gen), ops[op].swap, old) };    /* confirm */
    assert(word != UID(s, gen));

flushed:
    atomic {
        if
        :: op < last -> op = op + 1; goto attempt
        :: else
        fi
    };

end:
    atomic {
        op = 0; s = 0; gen = 0; from = 0; old = 0; u = 0; value = 0; undo = 0;
        seen = 0; same = 0;
        finished = finished + 1
    }
}

/* The responder cleans up after a dead client (rules 6 and 7) */
proctype worker()
{
    byte i, old, u;
    mtype seen;
    bit same;

end:
    if
    :: quarantine < SLOTS ->
       late = 0;                /* the packet lifetime has passed */
#ifndef NO_UNDO
       d_step {
           i = quarantine;
           cas_word(UID(i, slot[i].mark_gen), slot[i].compare, old)
       }
#endif
    :: (dead[0] || dead[1]) ->
       late = 0;                /* its QPs are in ERR */
       d_step { u = word };
       if
       :: IS_UID(u) && dead[SLOT_OF(u) / 2] ->
          d_step { cas_mark(SLOT_OF(u), GEN_OF(u), DONE) };
          d_step { cas_word(u, slot[SLOT_OF(u)].swap, old) }
       :: else
       fi
    :: finished == 3 && quarantine == SLOTS && !dead[0] && !dead[1]
    fi;
    finished = finished + 1
}

/* The failed occupy is executed late */
proctype fabric()
{
    byte old;

end:
    do
    :: d_step { late -> late = 0; cas_word(late_from, late_uid, old) }
    od
}

proctype putter()
{
    d_step {
        call(PUT);
        word = ops[PUT].swap;
        return_from(PUT, 0);
        finished = finished + 1
    }
}

/* --- The judge: does an order explain everything? ------------------------- */

/* Apply _op to the value v; fits becomes 0 if its result differs, or if an operation
 * that had returned before it has not been applied yet */
inline apply(_op)
{
    if
    :: fits && (_op == NO_OP || !(called & (1 << _op))) -> skip
    :: fits && _op != NO_OP && (called & (1 << _op)) ->
       fits = !(applied & (1 << _op)) && !(ops[_op].before & ~applied);
       applied = applied | (1 << _op);
       if
       :: _op == PUT -> v = ops[_op].swap
       :: _op != PUT ->
          fits = fits && (!(returned & (1 << _op)) || ops[_op].result == v);
          v = (v == ops[_op].compare -> ops[_op].swap : v)
       fi
    :: else
    fi
}

inline try(_a, _b, _c, _d)
{
    fits = 1; applied = 0; v = 0;
    apply(_a);
    apply(_b);
    apply(_c);
    apply(_d);
    /* all that returned, and possibly that of a dead client */
    explained = explained ||
                (fits && (applied & returned) == returned && v == word)
}

init
{
    byte a, b, c, d, applied, v;
    bit fits, explained;

    ops[0].compare = 0; ops[0].swap = 1;
    ops[1].compare = 1; ops[1].swap = 2;
    ops[2].compare = SECOND_COMPARE; ops[2].swap = SECOND_SWAP;
    ops[PUT].swap = PUT_VALUE;
    atomic { run client(0); run client(1); run putter(); run fabric();
             run worker() };

    finished == 4 && !late;
    d_step {
        assert(!IS_UID(word));
        a = 0;
        do
        :: a < OPS && !explained ->
           b = 0;
           do
           :: b < OPS && !explained ->
              c = 0;
              do
              :: c < OPS && !explained ->
                 d = 0;
                 do
                 :: d <= OPS && !explained ->
                    try(a, b, c, (d == OPS -> NO_OP : d));
                    d = d + 1
                 :: else -> break
                 od;
                 c = c + 1
              :: else -> break
              od;
              b = b + 1
           :: else -> break
           od;
           a = a + 1
        :: else -> break
        od;
        assert(explained)
    }
}
