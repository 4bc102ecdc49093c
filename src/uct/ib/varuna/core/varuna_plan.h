/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Pure: decides for each unfinished request of a failed lane incarnation what
 * becomes of it, from the evidence of both sides. recovery carries it out.
 */
#ifndef UCT_VARUNA_PLAN_H_
#define UCT_VARUNA_PLAN_H_

#include "varuna_def.h"

typedef enum {
    UCT_VARUNA_OP_PUT,     /* Logged */
    UCT_VARUNA_OP_GET,     /* Idempotent */
    UCT_VARUNA_OP_AM,      /* Idempotent: the receiver drops duplicates */
    UCT_VARUNA_OP_ATOMIC,  /* Logged; its result may be lost */
    UCT_VARUNA_OP_FLUSH,   /* A marker, never on the wire */
    UCT_VARUNA_OP_STEP,    /* Part of an atomic: idempotent, or left to it */
    UCT_VARUNA_OP_LAST
} uct_varuna_op_kind_t;

typedef enum {
    UCT_VARUNA_VERDICT_REPEAT,     /* Lost, or harmless to repeat */
    UCT_VARUNA_VERDICT_EXECUTED,   /* Complete it, never repeat it */
    UCT_VARUNA_VERDICT_AMBIGUOUS,  /* Undecided: compare the target, then apply
                                      the user's policy */
    UCT_VARUNA_VERDICT_LOST_DATA   /* Evidence contradicts itself: fail loud */
} uct_varuna_verdict_t;

/* One unfinished request, in posting order. */
typedef struct uct_varuna_plan_op {
    uct_varuna_op_kind_t       kind;
    uint8_t                    posted;    /* It was posted on this lane */
    uint8_t                    fenced;    /* A fence directly precedes it */
    uint8_t                    logged;    /* A log write was posted after it */
    uint32_t                   log_sn;    /* Valid for PUT and ATOMIC */
    uint32_t                   end_psn;   /* Position after its last packet. Its
                                             log write, one packet, is not
                                             included. Needed of all posted kinds
                                             wherever a PSN may come; GET: after
                                             its answer */
    const void                 *req;      /* Identity in the log */
    uct_varuna_verdict_t       verdict;   /* Out */
} uct_varuna_plan_op_t;

/*
 * What the responder reported, and what is known of the lane.
 *
 * A position counts the packets of a lane: it begins with the initial PSN, and its low
 * 24 bits are the PSN. A reported PSN is one of the 2^24 positions from acked_psn on.
 * This is unique, although what is posted may have more packets: a responder that is
 * sent packets has acknowledged all but the last 2^23 of them (IBTA 9.7.7.2), and at
 * least each 2^23rd packet that is acknowledged has a completion.
 */
typedef struct uct_varuna_evidence {
    const uint64_t             *log;      /* UCT_VARUNA_LOG_SIZE entries */
    int                        has_psn;
    uint32_t                   epsn;      /* Responder QP's expected PSN, 24 bits */
    uint32_t                   acked_psn; /* Position after the newest completion */
    uint32_t                   next_psn;  /* Position of what is posted next */
    int                        unordered; /* The network may place packets of one
                                             queue pair out of order, so a log entry
                                             proves only itself */
    int                        overtakes; /* It is known to do that: a write beyond the
                                             PSN may be in memory */
} uct_varuna_evidence_t;

/* Evidence which cannot be true. It is to be read again before it counts. */
typedef enum {
    UCT_VARUNA_DOUBT_NONE,
    UCT_VARUNA_DOUBT_PSN,    /* The PSN is of no packet which can be the next: the
                                device does not report the present one. The verdicts
                                were found without it */
    UCT_VARUNA_DOUBT_LOG     /* The log and the PSN contradict each other: LOST_DATA */
} uct_varuna_doubt_t;

/* Counts of one recovery, for the user's log line and the counters. */
typedef struct uct_varuna_plan_result {
    unsigned                   executed;
    unsigned                   lost;
    unsigned                   repeated;
    unsigned                   ambiguous;
    unsigned                   lost_data;
    uct_varuna_doubt_t         doubt;
} uct_varuna_plan_result_t;

/* What had to pass until nothing of a dead lane could be executed any more */
typedef enum {
    UCT_VARUNA_FENCED_NOT,                 /* There was no fence */
    UCT_VARUNA_FENCED_RESET,               /* The responder's queue pair is in RESET */
    UCT_VARUNA_FENCED_DC,                  /* The lifetime of a packet: no end of it can be
                                              stopped, */
    UCT_VARUNA_FENCED_DEAD,                /* one of the NICs is gone, */
    UCT_VARUNA_FENCED_HUNG,                /* one takes no commands or flushes nothing, */
    UCT_VARUNA_FENCED_OTHER,               /* RESET failed, or the evidence was in doubt */
    UCT_VARUNA_FENCED_LAST
} uct_varuna_fenced_t;

/**
 * Classify the unfinished requests of one fenced incarnation.
 *
 * What the caller guarantees: @a ops are in posting order, those which were not
 * posted are the last; a log write directly follows its operation on the
 * lane, and nothing passes one which waits for resources; every packet which
 * the lane sends is counted in end_psn. The lane executes in posting order.
 *
 * Rules (paper, section "Log-based Fail Recognition"):
 *  - With a PSN, a PUT/ATOMIC is EXECUTED if the PSN is at or past its end_psn, else
 *    REPEAT. If the log contradicts, because there is an entry of a later operation,
 *    or none of one whose log write the PSN is past: LOST_DATA for those in between;
 *    unless the network is unordered, when the PSN alone counts. If packets are known to
 *    overtake each other, a PUT beyond the PSN is AMBIGUOUS: it may have been placed
 *    although an earlier packet is missing. An atomic waits for all before it.
 *  - Without a PSN, a PUT/ATOMIC whose log entry is there is EXECUTED; so is every
 *    logged-kind operation before it. The first posted one after those is AMBIGUOUS:
 *    it may have been executed though its log write was not. Later ones: REPEAT. One
 *    without a log write is no different from one whose log write was lost, except
 *    that it does not close the gap: the next one is AMBIGUOUS as well.
 *  - Without a PSN on an unordered network: AMBIGUOUS.
 *  - not posted: REPEAT (not ambiguous).
 *  - GET: REPEAT, but EXECUTED if a fenced operation after it was executed
 *    (its data had arrived; reading again would see too new a value).
 *  - AM: REPEAT (the receiver drops what it has). FLUSH: REPEAT (re-armed).
 *
 * @param [in,out] ops       Requests in posting order; verdicts are filled in.
 * @param [in]     num_ops   Their number.
 * @param [in]     evidence  The responder's evidence.
 * @param [out]    result_p  Counts: executed, lost (posted, not executed),
 *                           ambiguous and lost_data over PUT/ATOMIC; repeated
 *                           over all which go on the wire once more, be they
 *                           lost, ambiguous or idempotent; and whether the
 *                           evidence is to be read again.
 */
void uct_varuna_plan_make(uct_varuna_plan_op_t *ops, unsigned num_ops,
                          const uct_varuna_evidence_t *evidence,
                          uct_varuna_plan_result_t *result_p);

#endif
