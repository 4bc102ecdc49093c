/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The recovery protocol of one vQP (docs/RECOVERY.md), for spin.
 * test/models/test_models.sh searches all interleavings.
 *
 * The user writes A, then B to one word. A lane carries a data packet and a log packet
 * for each write. The fabric may deliver the next packet of a lane at any time while
 * the responder's end accepts it, even after the lane failed and was left. A packet is
 * lost if it is not delivered in time, and a late one arrives at the worst time.
 * Failures hit the lane in use, the one that is being connected, or both (on the same
 * link), at any moment, even during a recovery. Control messages are lost, repeated and
 * late.
 *
 *     requester             fabric           responder
 *     post, poll, drain     sent -> exec     fence, answer, connect
 *     plan, repeat          of each lane     ring[incarnation % RINGS]
 *     read
 *
 * A stranger writes to the word once, at any moment.
 *
 * Asserted: no write is executed twice, unless the fallback lane failed, the write was
 * counted as ambiguous, and the stranger interfered; none is executed after a later
 * one; each completes once, and not before its execution; the evidence is consistent; a
 * recovery starts only on a lane that failed. The search for invalid end states checks
 * that all writes complete.
 *
 * Left out: reads, messages (they have sequence numbers), the circular arithmetic
 * of logs and PSNs (the unit tests have it), writes of several packets, damping.
 *
 * -DFALLBACK: RC writes no log (UCX_RC_VARUNA_LOG=fallback). The PSN decides; where the
 * responder's end could not be stopped, the word decides on all writes as one prefix.
 * Where the stranger has written, all of them may be repeated.
 *
 * -DLATE: the responder's NIC accepts a packet, so that its PSN advances and it is
 * acknowledged, and places it in memory later. RESET waits until all is placed, so do the
 * packet lifetime and the read that ends a swap.
 *
 * Each of these macros breaks one rule, and must make the search fail:
 *   NO_FENCE          the responder answers without stopping its QP
 *   READ_BEFORE_FENCE ... stops it after it has read the log
 *   BLIND_RESEND      all unfinished writes are repeated, without evidence
 *   ONE_LOG           both lanes' logs are in one ring
 *   NO_GATE           the user may post before the lost ones are repeated
 *   LOG_BEFORE_DATA   the log write is first
 *   OLD_ERRORS        the error of an old incarnation starts a recovery
 *   NO_PSN            the responder does not send the PSN
 *   NO_LIFETIME       no wait for packets of a lane that cannot be fenced
 *   STALE_ANSWER      ... or with a wait, but an earlier answer is accepted
 *   ANY_ANSWER        the answer for another incarnation is accepted
 *   NO_COMPARE        ambiguous writes are repeated without reading the word
 *   COMPARE_EACH      ... or each write is compared alone (FALLBACK)
 *   NO_RESET          the responder's QP is in ERR, and was not reset (LATE)
 *   LATE_CONNECT      a fence ignores requests for connections
 *   NO_DRAIN          a swap does not wait until the old lane is empty
 *   FORGET_TAKEN      ... and does not post the writes queued meanwhile
 *   NEVER_OWES        a lane counts as settled when its writes are acknowledged (LATE)
 *   OTHER_RING        what follows a lane without a fence takes the other ring
 *
 * A failed lane whose writes a read has proved to be in memory is left without a fence.
 */

#define OPS       2             /* the user's writes */
#define LANES     16            /* incarnations, from 1 */

/* Numbers of failures. START_DC: start on DC, as an endpoint does, instead of RC */
#ifndef FAILURES
#  define FAILURES 2
#endif

#ifdef ONE_LOG
#  define RINGS   1
#else
#  define RINGS   2
#endif
#define RING(_lane)     ((_lane) % RINGS)

/* Which packet of a pair is the data */
#ifdef LOG_BEFORE_DATA
#  define DATA_PACKET   1
#else
#  define DATA_PACKET   0
#endif

/* Where the packets of a write are on a lane, and that there is no log packet */
#ifdef FALLBACK
#  define NO_LOG(_lane) (!lane[_lane].dc)
#else
#  define NO_LOG(_lane) 0
#endif
#define NEVER           255
#define DATA(_lane, _pos) \
    (NO_LOG(_lane) -> (_pos) : 2 * (_pos) + DATA_PACKET)
#define LOG(_lane, _pos) \
    (NO_LOG(_lane) -> NEVER : 2 * (_pos) + 1 - DATA_PACKET)
#define POS(_lane, _packet) \
    (NO_LOG(_lane) -> (_packet) : (_packet) / 2)
#define IS_DATA(_lane, _packet) \
    (NO_LOG(_lane) || (_packet) % 2 == DATA_PACKET)

typedef lane_t {
    bit  dc;                    /* has no end to fence, and no PSN */
    bit  live;                  /* the responder's end accepts packets */
    bit  failed;
    bit  connect;               /* a CONNECT_REQ for it is in flight, */
    byte in_use;                /* and the incarnation that it names */
    byte sent;                  /* packets posted, */
    byte exec;                  /* accepted by the responder's NIC, */
#ifdef LATE
    byte placed;                /* and in memory; else all that are accepted */
#endif
    byte ops;                   /* writes posted on it, in that order */
    byte op[OPS];
};

typedef ring_t {
    byte lane[OPS];             /* by request: the incarnation that logged it */
};

mtype = { ACTIVE, SWAP, DRAIN, FENCE, REPEAT };     /* as in varuna_ep.h */
mtype = { UNPOSTED, UNFINISHED, DONE, COMPLETED };

lane_t lane[LANES];
ring_t ring[RINGS];
byte   failures = FAILURES;

/* The word, and the executed writes */
#define NOBODY          OPS
#define STRANGER        (OPS + 1)
byte   word = NOBODY;
bit    executed[OPS];
#ifdef LATE
bit    accepted[OPS];           /* it will be executed */
#  define IS_CERTAIN(_op) accepted[_op]
#else
#  define IS_CERTAIN(_op) executed[_op]
#endif
bit    strange;                 /* the stranger has written */
bit    excused[OPS];            /* ... and ambiguous, as documented */

/* The requester */
mtype  state = ACTIVE;
mtype  op_state[OPS] = UNPOSTED;
bit    unclear[OPS];            /* ambiguous, to be compared with the word */
byte   next_op;                 /* the next write of the user */
byte   head;                    /* the oldest one that did not complete */
byte   cur = 1;                 /* the lane in use */
byte   dead;                    /* the lane that is recovered from */
byte   new;                     /* RC, being connected */
byte   epoch = 1;               /* the newest incarnation */
byte   placed_op;               /* of place() */
byte   unplaced;                /* packets that are accepted, and not in memory */
byte   settled;                 /* writes on cur that a read has proved to be in memory */
bit    unfenced;                /* dead was left without a fence */
bit    waited;                  /* the packet lifetime has passed since DRAIN */

/* The responder: all up to this incarnation are fenced */
byte   fenced;
byte   connected;               /* the newest connected one */

/* FENCE_REQ: the responder may get it any number of times */
byte   fence_req;
byte   fence_upto;              /* the newest incarnation then */

/* FENCE_REP: the last one, which the requester may get at any time */
typedef answer_t {
    byte lane;
    bit  stopped;               /* the QP of it is in ERR */
    bit  has_psn;
    byte psn;
    bit  log[OPS];
};
answer_t answer;

/* --- Rules that the macros break ----------------------------------------- */

/* May the user post? */
#ifdef NO_GATE
#  define IS_OPEN       (cur && (state == ACTIVE || state == REPEAT))
#else
#  define IS_OPEN       (state == ACTIVE)
#endif

/* Can the PSN of it be queried? */
#ifdef NO_PSN
#  define HAS_PSN(_lane)  0
#else
#  define HAS_PSN(_lane)  (!lane[_lane].dc)
#endif

/* Is there an answer for this lane? */
#ifdef ANY_ANSWER
#  define IS_FOR(_lane)   (answer.lane > 0)
#else
#  define IS_FOR(_lane)   (answer.lane == (_lane))
#endif

/* May a planned swap continue? All posted writes are complete, and a read has returned.
 * Writes queued meanwhile are on no lane yet */
#define IS_OPEN_ON(_lane, _pos) \
    (lane[_lane].ops > _pos && op_state[lane[_lane].op[_pos]] != COMPLETED)
#ifdef NO_DRAIN
#  define IS_EMPTY(_lane) 1
#else
#  define IS_EMPTY(_lane) \
    (!IS_OPEN_ON(_lane, 0) && !IS_OPEN_ON(_lane, 1) && \
     lane[_lane].exec == lane[_lane].sent)
#endif

/* May the dead lane be left without a fence? */
#ifdef NEVER_OWES
#  define OWES_NOTHING  (!OWED(dead) && !IS_OPEN_ON(dead, 0) && !IS_OPEN_ON(dead, 1))
#else
#  define OWES_NOTHING  (settled == lane[dead].ops && !OWED(dead))
#endif

/* Does what follows it go on in its ring? */
#ifdef OTHER_RING
#  define GOES_ON       0
#else
#  define GOES_ON       unfenced
#endif

/* State after a swap: queued writes are posted first */
#ifdef FORGET_TAKEN
#  define AFTER_SWAP    ACTIVE
#else
#  define AFTER_SWAP    REPEAT
#endif

/* Incarnations that a fence stops, besides the failed lane */
#ifdef LATE_CONNECT
#  define FENCE_UPTO      dead
#else
#  define FENCE_UPTO      epoch
#endif

/* The log write of the last request is owed, and must be posted first */
#define OWED(_lane)     (!NO_LOG(_lane) && lane[_lane].sent % 2)

/* What a write may follow: none after it, unless the policy repeats all (FALLBACK) */
#ifdef FALLBACK
#  define IS_EXCUSED(_op) (excused[_op] && strange)
#else
#  define IS_EXCUSED(_op) 0
#endif

/* --- Memory -------------------------------------------------------------- */

/* A packet reaches memory, in the order of its lane */
inline place(_lane, _packet)
{
    placed_op = lane[_lane].op[POS(_lane, _packet)];
    if
    :: IS_DATA(_lane, _packet) ->
       printf("lane %d: %c is executed\n", _lane, 'A' + placed_op);
       /* not twice, in order */
       assert(!executed[placed_op] || excused[placed_op] && strange);
       assert(placed_op == OPS - 1 || !executed[placed_op + 1] ||
              IS_EXCUSED(placed_op));
       word = placed_op;
       executed[placed_op] = 1
    :: else ->
       printf("lane %d: %c is logged\n", _lane, 'A' + placed_op);
       ring[RING(_lane)].lane[placed_op] = _lane
    fi;
    placed_op = 0
}

#ifdef LATE
#  define PLACED(_lane) lane[_lane].placed
inline place_all(_lane)
{
    do
    :: lane[_lane].placed < lane[_lane].exec ->
       place(_lane, lane[_lane].placed);
       lane[_lane].placed = lane[_lane].placed + 1;
       unplaced = unplaced - 1
    :: else -> break
    od
}
#else
#  define PLACED(_lane) lane[_lane].exec
#  define place_all(_lane) skip
#endif

/* --- Requester ----------------------------------------------------------- */

inline reset_lane(_lane)
{
    lane[_lane].dc      = 0;
    lane[_lane].failed  = 0;
    lane[_lane].sent    = 0;
    lane[_lane].exec    = 0;
#ifdef LATE
    lane[_lane].placed  = 0;
#endif
    lane[_lane].ops     = 0;
    lane[_lane].op[0]   = 0;
    lane[_lane].op[1]   = 0
}

/* The ring of a new one is not the last one's, unless it goes on there
 * (uct_varuna_ep_new_epoch) */
inline new_lane(_last, _goes_on, _dc, _lane)
{
    epoch = epoch + 1;
    if
    :: RINGS > 1 && (RING(epoch) == RING(_last)) != (_goes_on) -> epoch = epoch + 1
    :: else
    fi;
    _lane = epoch;
    lane[_lane].dc   = _dc;
    lane[_lane].live = _dc;
    printf("lane %d is made, DC %d\n", _lane, _dc)
}

inline post_data(_op)
{
    lane[cur].op[lane[cur].ops] = _op;
    lane[cur].ops  = lane[cur].ops + 1;
    lane[cur].sent = lane[cur].sent + 1;
    printf("lane %d: %c is posted\n", cur, 'A' + _op)
}

/* Completions are called in posting order */
inline complete()
{
    do
    :: head < OPS && op_state[head] == DONE ->
       printf("%c completes\n", 'A' + head);
       assert(IS_CERTAIN(head));                        /* none is lost */
       op_state[head] = COMPLETED;
       head = head + 1
    :: else -> break
    od;
    i = 0
}

/* Poll success completions of _lane, of all acknowledged writes */
inline poll(_lane)
{
    i = 0;
    do
    :: i < lane[_lane].ops && DATA(_lane, i) < lane[_lane].exec ->
       if
       :: op_state[lane[_lane].op[i]] == UNFINISHED ->
          op_state[lane[_lane].op[i]] = DONE
       :: else
       fi;
       i = i + 1
    :: else -> break
    od;
    complete()
}

#define HAS_ACK(_lane, _pos) \
    (lane[_lane].ops > _pos && DATA(_lane, _pos) < lane[_lane].exec && \
     op_state[lane[_lane].op[_pos]] == UNFINISHED)
#define HAS_ACKS(_lane)  (HAS_ACK(_lane, 0) || HAS_ACK(_lane, 1))

/* varuna_plan.c */
inline plan()
{
    i = 0;
    do
    :: i < lane[dead].ops ->
       if
       :: LOG(dead, i) < lane[dead].sent && answer.log[lane[dead].op[i]] ->
          proved = i + 1        /* and all earlier ones */
       :: else
       fi;
       i = i + 1
    :: else -> break
    od;

    gap = 1;
    i = 0;
    do
    :: i < lane[dead].ops ->
       op = lane[dead].op[i];
       was_here = (i < proved);
       if
       :: answer.has_psn ->
          /* log and PSN must not contradict each other */
          assert(i >= proved || DATA(dead, i) < answer.psn);
          assert(i < proved || LOG(dead, i) >= lane[dead].sent ||
                 LOG(dead, i) >= answer.psn);
          was_here = (DATA(dead, i) < answer.psn)
       :: !answer.has_psn && i >= proved && op_state[op] == UNFINISHED ->
          /* only a lane without a PSN has ambiguous writes */
          if
          :: gap ->
             printf("%c is ambiguous\n", 'A' + op);
             unclear[op] = 1;
             excused[op] = lane[dead].dc || !answer.stopped
          :: else
          fi;
          gap = gap && LOG(dead, i) >= lane[dead].sent
       :: else
       fi;
       if
       :: was_here && op_state[op] == UNFINISHED -> op_state[op] = DONE
       :: else
       fi;
       i = i + 1
    :: else -> break
    od;
    op = 0; proved = 0; gap = 0; was_here = 0;
    complete()
}

inline start_recovery()
{
    printf("lane %d is left\n", cur);
    assert(lane[cur].failed);
    dead  = cur;
    cur   = 0;
    new   = 0;
    unfenced = 0;
    state = DRAIN
}

inline end_fence()
{
    printf("lane %d: PSN %d (known: %d), log A %d B %d\n", dead, answer.psn,
           answer.has_psn, answer.log[0], answer.log[1]);
    plan();
    if
    :: !lane[dead].live && PLACED(dead) == lane[dead].exec -> reset_lane(dead)
    :: else
    fi;
    answer.lane = 0; answer.stopped = 0; answer.has_psn = 0; answer.psn = 0;
    answer.log[0] = 0; answer.log[1] = 0;
    waited  = 0;
    settled = 0;
    state   = REPEAT
}

inline end_swap()
{
    printf("lane %d is swapped for %d\n", cur, new);
#ifndef NO_DRAIN
    lane[cur].live = 0;
    place_all(cur);             /* the read has returned */
    reset_lane(cur);            /* forget its state */
#endif
    cur     = new;
    new     = 0;
    settled = 0;
    state   = AFTER_SWAP
}

#define IS_ON(_op, _lane) \
    (lane[_lane].ops > 0 && lane[_lane].op[0] == _op || \
     lane[_lane].ops > 1 && lane[_lane].op[1] == _op)
#define TO_REPEAT(_op) \
    (op_state[_op] == UNFINISHED && !IS_ON(_op, cur))

#define IS_UNCLEAR(_op) (TO_REPEAT(_op) && unclear[_op])
#ifdef NO_COMPARE
#  define NEXT_UNCLEAR    0
#elif defined(COMPARE_EACH)
#  define NEXT_UNCLEAR    (IS_UNCLEAR(0) || !TO_REPEAT(0) && IS_UNCLEAR(1))
#else
#  define NEXT_UNCLEAR    (IS_UNCLEAR(0) || IS_UNCLEAR(1))
#endif

active proctype requester()
{
    byte i, op, proved;
    bit gap, was_here;

    lane[1].live = 1;
#ifdef START_DC
    lane[1].dc = 1;
#endif

    do
    /* The user posts */
    :: d_step {
           IS_OPEN && next_op < OPS && !OWED(cur) ->
           op_state[next_op] = UNFINISHED;
           post_data(next_op);
           next_op = next_op + 1
       }

    /* ... and writes are queued during a swap */
    :: d_step {
           state == SWAP && next_op < OPS ->
           printf("%c is taken\n", 'A' + next_op);
           op_state[next_op] = UNFINISHED;
           next_op = next_op + 1
       }

    /* In any state with a lane */
    :: d_step { cur && OWED(cur) -> lane[cur].sent = lane[cur].sent + 1 }
    :: d_step { cur && HAS_ACKS(cur) -> poll(cur) }

    /* Errors and events */
    :: d_step { cur && lane[cur].failed -> start_recovery() }
#ifdef OLD_ERRORS
    :: d_step { cur && dead -> start_recovery() }
#endif
    :: d_step {
           new && lane[new].failed ->
           new = 0;
           if
           :: state == SWAP -> state = AFTER_SWAP
           :: else
           fi
       }

    /* Completions in the queue are evidence */
    :: d_step { state == DRAIN && HAS_ACKS(dead) -> poll(dead) }
    :: d_step {
           state == DRAIN && !HAS_ACKS(dead) && OWES_NOTHING ->
           printf("lane %d is left without a fence\n", dead);
#ifndef NEVER_OWES
           lane[dead].live = 0;         /* nothing of it is left: forget its state */
           reset_lane(dead);
#endif
           settled  = 0;
           unfenced = 1;
           state    = REPEAT
       }
    :: d_step {
           state == DRAIN ->
#ifdef BLIND_RESEND
           state = REPEAT
#else
           fence_req  = dead;
           fence_upto = FENCE_UPTO;
           state      = FENCE
#endif
       }

    :: d_step {
           state == FENCE && !waited ->
           waited = 1;
#ifndef NO_LIFETIME
           lane[dead].live = 0;
           place_all(dead);
#endif
#ifndef STALE_ANSWER
           answer.lane = 0      /* accept only later answers */
#endif
       }
    :: d_step {
           state == FENCE && IS_FOR(dead) && (waited || answer.stopped) ->
           end_fence()
       }

    :: d_step {
           state == REPEAT && !cur ->
           new_lane(dead, GOES_ON, 1, cur);
           unfenced = 0
       }
#ifdef COMPARE_EACH
    :: d_step {
           state == REPEAT && cur && NEXT_UNCLEAR ->
           op = (TO_REPEAT(0) -> 0 : 1);
           printf("%c is compared: %d\n", 'A' + op, word == op);
           if
           :: word == op -> op_state[op] = DONE
           :: else
           fi;
           unclear[op] = 0;
           op = 0;
           complete()
       }
#else
    /* varuna_plan.c: the longest prefix whose last write is what the word contains */
    :: d_step {
           state == REPEAT && cur && NEXT_UNCLEAR ->
           printf("compared: the word contains %d\n", word);
           if
           :: IS_UNCLEAR(0) && (word == 0 || IS_UNCLEAR(1) && word == 1) ->
              op_state[0] = DONE
           :: else
           fi;
           if
           :: IS_UNCLEAR(1) && word == 1 -> op_state[1] = DONE
           :: else
           fi;
           unclear[0] = 0;
           unclear[1] = 0;
           complete()
       }
#endif
    :: d_step {
           state == REPEAT && cur && !OWED(cur) && !NEXT_UNCLEAR ->
           if
           :: TO_REPEAT(0) -> post_data(0)
           :: !TO_REPEAT(0) && TO_REPEAT(1) -> post_data(1)
           :: else -> state = ACTIVE
           fi
       }

    /* A read of the user returns */
    :: d_step {
           state == ACTIVE && settled < lane[cur].ops && !OWED(cur) && IS_EMPTY(cur) ->
           place_all(cur);
           settled = lane[cur].ops
       }

    /* Connect RC in the background */
    :: d_step {
           state == ACTIVE && lane[cur].dc && !new ->
           new_lane(cur, 0, 0, new);
           lane[new].in_use  = cur;
           lane[new].connect = 1
       }
    :: d_step { state == ACTIVE && new && lane[new].live -> state = SWAP }
    :: d_step {
           state == SWAP && !OWED(cur) && IS_EMPTY(cur) ->
           end_swap()
       }

    :: head == OPS && unplaced == 0 -> break
    od;

    assert(word == OPS - 1 || strange)
}

/* --- Responder ----------------------------------------------------------- */

inline clear_ring(_lane)
{
    printf("the ring of lane %d is cleared\n", _lane);
    ring[RING(_lane)].lane[0] = 0;
    ring[RING(_lane)].lane[1] = 0
}

inline read_log(_lane)
{
    answer.log[0] = (ring[RING(_lane)].lane[0] == _lane);
    answer.log[1] = (ring[RING(_lane)].lane[1] == _lane)
}

/* A dying NIC may fail to stop the QP; the next request tries again */
inline stop_lanes(_lane)
{
    i = 1;
    do
    :: i <= _lane ->
       if
       :: !lane[i].dc && (stopped || i < _lane) ->
          lane[i].live = 0;
#ifndef NO_RESET
          place_all(i)
#endif
       :: else
       fi;
       i = i + 1
    :: else -> break
    od;
    i = 0
}

inline answer_fence(_lane)
{
    answer.lane    = _lane;
    answer.stopped = stopped;
    answer.has_psn = HAS_PSN(_lane) && answer.stopped;
    answer.psn     = (answer.has_psn -> lane[_lane].exec : 0);
    stopped        = 0
}

/* varuna_target.c */
active proctype responder()
{
    byte e, i, answered;
    bit first, stopped;

end:
    do
    :: d_step {
           fence_req > 0 && state == FENCE ->
           e = fence_req;
           first = (e > answered);
           if
           :: first -> answered = e
           :: else
           fi;
           fenced = fence_upto
       };
#ifdef READ_BEFORE_FENCE
       d_step { read_log(e) };
#endif
       if
       :: stopped = !lane[e].dc
       :: lane[e].failed -> stopped = 0
       fi;
#ifndef NO_FENCE
       d_step { stop_lanes(e) };
#endif
       d_step {
           answer_fence(e);
#ifndef READ_BEFORE_FENCE
           read_log(e);
#endif
           if
           :: first -> clear_ring(e + 1)    /* the next incarnation uses it */
           :: else
           fi;
           first = 0; e = 0
       }
    od
}

#define CONNECT(_lane) \
    :: d_step { \
           lane[_lane].connect -> \
           lane[_lane].connect = 0; \
           if \
           :: lane[_lane].in_use > fenced + 1 -> fenced = lane[_lane].in_use - 1 \
           :: else \
           fi; \
           lane[_lane].in_use = 0; \
           if \
           :: _lane > fenced && _lane > connected -> \
              connected = _lane; \
              clear_ring(_lane); \
              lane[_lane].live = 1 \
           :: else \
           fi \
       }

/* The responder's main thread, which may be late */
active proctype connector()
{
end:
    do
    CONNECT(2)
    CONNECT(3)
    CONNECT(4)
    CONNECT(5)
    CONNECT(6)
    CONNECT(7)
    CONNECT(8)
    CONNECT(9)
    CONNECT(10)
    CONNECT(11)
    CONNECT(12)
    CONNECT(13)
    CONNECT(14)
    CONNECT(15)
    od
}

/* --- Fabric -------------------------------------------------------------- */

/* The responder's NIC accepts a packet */
inline execute(_lane)
{
#ifdef LATE
    if
    :: IS_DATA(_lane, lane[_lane].exec) ->
       accepted[lane[_lane].op[POS(_lane, lane[_lane].exec)]] = 1
    :: else
    fi;
    unplaced = unplaced + 1;
    printf("lane %d: packet %d is accepted\n", _lane, lane[_lane].exec);
#else
    place(_lane, lane[_lane].exec);
#endif
    lane[_lane].exec = lane[_lane].exec + 1
}

#ifdef LATE
#  define PLACEMENT(_lane) \
    :: d_step { lane[_lane].placed < lane[_lane].exec -> \
                place(_lane, lane[_lane].placed); \
                lane[_lane].placed = lane[_lane].placed + 1; \
                unplaced = unplaced - 1 }
#else
#  define PLACEMENT(_lane)
#endif

#define DELIVERY(_lane) \
    :: d_step { lane[_lane].live && lane[_lane].exec < lane[_lane].sent -> \
                execute(_lane) } \
    PLACEMENT(_lane)

active proctype fabric()
{
end:
    do
    DELIVERY(1)
    DELIVERY(2)
    DELIVERY(3)
    DELIVERY(4)
    DELIVERY(5)
    DELIVERY(6)
    DELIVERY(7)
    DELIVERY(8)
    DELIVERY(9)
    DELIVERY(10)
    DELIVERY(11)
    DELIVERY(12)
    DELIVERY(13)
    DELIVERY(14)
    DELIVERY(15)
    :: d_step {
           !strange ->
           printf("a stranger writes\n");
           strange = 1;
           word = STRANGER
       }
    :: d_step {
           failures > 0 && cur && !lane[cur].failed ->
           printf("lane %d fails\n", cur);
           failures = failures - 1;
           lane[cur].failed = 1
       }
    :: d_step {
           failures > 0 && new && !lane[new].failed ->
           printf("lane %d fails\n", new);
           failures = failures - 1;
           lane[new].failed = 1
       }
    :: d_step {
           failures > 0 && cur && new && !lane[cur].failed &&
           !lane[new].failed ->
           printf("lanes %d and %d fail\n", cur, new);
           failures = failures - 1;
           lane[cur].failed = 1;
           lane[new].failed = 1
       }
    od
}
