/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Pure: decides for each unfinished request of a failed lane incarnation what
 * becomes of it, from the evidence of both sides. recovery carries it out, and an audit file
 * records it.
 */
#ifndef UCT_VARUNA_PLAN_H_
#define UCT_VARUNA_PLAN_H_

#include "varuna_def.h"
#include <stddef.h>

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

/* --- Comparison --- */

/* Pure: decides by the contents of the targets which operations of a window were
 * executed, where neither a PSN nor a log shows it.
 *
 * A queue pair executes in order, so what was executed is a prefix of the window. Each
 * prefix leaves some bytes in the targets: those of the last write to each of them. The
 * longest prefix whose bytes are all there counts as executed. It may be longer than
 * what was really executed; then the missing writes would change nothing that a later one
 * has not changed. To decide write by write would be wrong: of W1 = A and W2 = B to one
 * word, W1 seems to be lost when both were executed, and repeated it destroys B.
 *
 * The write after the prefix may have been executed in part: where it overlaps the
 * prefix, its bytes are accepted as well.
 *
 * Some operations leave no bytes that are known: atomics, and writes of data that the
 * CPU cannot read. They are part of the prefix if a write after them is.
 *
 * If the network may place packets out of order, what was executed need not be a prefix.
 * Then a write counts as executed if all of its bytes that no later write covers are
 * there, and it overlaps no earlier write which is not. If later writes cover all of its
 * bytes, these (or one that covers it alone) must have been executed, or its bytes be there:
 * otherwise it would be reported as complete before anybody can see its value, or a newer
 * one. */

typedef enum {
    UCT_VARUNA_WINDOW_EXECUTED,
    UCT_VARUNA_WINDOW_LOST,
    UCT_VARUNA_WINDOW_UNKNOWN    /* The targets do not tell */
} uct_varuna_window_verdict_t;

/* Copy @a length bytes at @a offset of what an operation writes. */
typedef void (*uct_varuna_window_copy_t)(const void *arg, size_t offset, void *dst,
                                         size_t length);

typedef struct uct_varuna_window_op {
    uint64_t                    addr;
    size_t                      length;
    void                        *arg;      /* Of copy */
    uint8_t                     is_known;  /* Its bytes can be copied */
    uint8_t                     matches;   /* Unordered: its bytes are there, */
    uint8_t                     is_seen;   /* and no later write covers all of them */
    uint8_t                     is_there;  /* Unordered: all of its bytes are there, also
                                              those that others cover */
    uct_varuna_window_verdict_t verdict;   /* Out */
} uct_varuna_window_op_t;

typedef struct uct_varuna_window uct_varuna_window_t;

/**
 * Begin to decide on a window.
 *
 * @param [in] max_ops    Operations that will be added at most, not 0.
 * @param [in] chunk      Bytes which are read at once at most.
 * @param [in] copy       Reads what the operations write.
 * @param [in] unordered  What was executed need not be a prefix.
 *
 * @return NULL if there is no memory.
 */
uct_varuna_window_t *uct_varuna_window_create(unsigned max_ops, size_t chunk,
                                              uct_varuna_window_copy_t copy,
                                              int unordered);

void uct_varuna_window_destroy(uct_varuna_window_t *window);

/** Add the next operation, in posting order. */
void uct_varuna_window_add(uct_varuna_window_t *window, uint64_t addr, size_t length,
                           void *arg, int is_known);

/**
 * What is to be read next.
 *
 * @param [out] index_p   Operation whose target it is.
 * @param [out] offset_p  There.
 *
 * @return Number of bytes, 0 if nothing is left to be read.
 */
size_t uct_varuna_window_next(const uct_varuna_window_t *window, unsigned *index_p,
                              size_t *offset_p);

/** The bytes which uct_varuna_window_next() has named were read. */
void uct_varuna_window_feed(uct_varuna_window_t *window, const void *target,
                            size_t length);

/**
 * Nothing is left to be read: fill in the verdicts.
 *
 * @return Nonzero if some operation is known to be executed. If none is, then either none
 *         was, or the targets were written since: all are UNKNOWN.
 */
int uct_varuna_window_decide(uct_varuna_window_t *window);

/** @return The operation @a index. */
const uct_varuna_window_op_t *
uct_varuna_window_op(const uct_varuna_window_t *window, unsigned index);

/** @return How many were added. */
unsigned uct_varuna_window_num_ops(const uct_varuna_window_t *window);

/* --- The audit file --- */

/* Why each recovery repeated what it repeated. The requester writes it
 * (UCX_RC_VARUNA_AUDIT), and rc_varuna_audit reads it. Pure: the format and its checks.
 *
 *   file:     uct_varuna_audit_file_t  record  record ...
 *   record:   uct_varuna_audit_record_t  body, by type:
 *   VERDICT:  uct_varuna_audit_verdict_t  uct_varuna_audit_op_t ...
 *   COMPARE:  uct_varuna_audit_compare_t  uct_varuna_audit_target_t ...
 *
 * All integers are in the byte order of the host that has written the file. A reader
 * refuses another version or byte order, and skips types of records that it does not
 * know. */

#define UCT_VARUNA_AUDIT_MAGIC       "VRNAUDIT"
#define UCT_VARUNA_AUDIT_ORDER       0x01020304
#define UCT_VARUNA_AUDIT_VERSION     2
#define UCT_VARUNA_AUDIT_HOST_MAX    64
#define UCT_VARUNA_AUDIT_LINK_MAX    32

typedef struct uct_varuna_audit_file {
    char                       magic[8];
    uint32_t                   order;
    uint16_t                   version;
    uint16_t                   log_size;    /* UCT_VARUNA_LOG_SIZE */
    uint64_t                   iface;       /* The interface's random number */
    uint32_t                   pid;
    uint32_t                   reserved;
    char                       host[UCT_VARUNA_AUDIT_HOST_MAX];
} UCS_S_PACKED uct_varuna_audit_file_t;

enum {
    UCT_VARUNA_AUDIT_VERDICT = 1,  /* The evidence of a dead lane, and the verdicts */
    UCT_VARUNA_AUDIT_COMPARE = 2   /* What was ambiguous was compared with its target */
};

typedef struct uct_varuna_audit_record {
    uint32_t                   length;      /* Of this structure and the body */
    uint16_t                   type;
    uint16_t                   reserved;
    uint64_t                   time;        /* Nanoseconds since 1970 */
    uint32_t                   vqp;         /* The endpoint, */
    uint32_t                   epoch;       /* and the incarnation of its lane */
} UCS_S_PACKED uct_varuna_audit_record_t;

enum {
    UCT_VARUNA_AUDIT_HAS_PSN   = UCS_BIT(0),
    UCT_VARUNA_AUDIT_UNORDERED = UCS_BIT(1),
    UCT_VARUNA_AUDIT_FENCED    = UCS_BIT(2), /* The responder's queue pair is at rest */
    UCT_VARUNA_AUDIT_WAITED    = UCS_BIT(3), /* The evidence was read after the longest
                                                lifetime of a packet */
    UCT_VARUNA_AUDIT_FAILED    = UCS_BIT(4), /* The endpoint fails */
    UCT_VARUNA_AUDIT_OVERTAKES = UCS_BIT(5),
    UCT_VARUNA_AUDIT_UNFENCED  = UCS_BIT(6)  /* Nobody was asked: the lane was drained, and
                                                all that it had written was in memory */
};

typedef struct uct_varuna_audit_verdict {
    char                       link[UCT_VARUNA_AUDIT_LINK_MAX];
    uint8_t                    kind;        /* UCT_VARUNA_LANE_ */
    uint8_t                    flags;       /* UCT_VARUNA_AUDIT_ */
    uint8_t                    doubt;       /* uct_varuna_doubt_t */
    uint8_t                    owes;        /* Writes of the lane may be on their way to
                                               memory: no read has returned since */
    uint32_t                   epsn;        /* As in uct_varuna_evidence_t */
    uint32_t                   acked_psn;
    uint32_t                   next_psn;
    uint64_t                   log[UCT_VARUNA_LOG_SIZE];
    uint32_t                   num_ops;
} UCS_S_PACKED uct_varuna_audit_verdict_t;

enum {
    UCT_VARUNA_AUDIT_OP_POSTED    = UCS_BIT(0),
    UCT_VARUNA_AUDIT_OP_FENCED    = UCS_BIT(1),
    UCT_VARUNA_AUDIT_OP_LOGGED    = UCS_BIT(2),
    UCT_VARUNA_AUDIT_OP_DONE      = UCS_BIT(3), /* Before this recovery */
    UCT_VARUNA_AUDIT_OP_AMBIGUOUS = UCS_BIT(4)  /* Since an earlier recovery */
};

/* What the recovery did with an operation. */
typedef enum {
    UCT_VARUNA_AUDIT_REPEATED,
    UCT_VARUNA_AUDIT_COMPLETED,
    UCT_VARUNA_AUDIT_COMPARED,   /* COMPARE follows */
    UCT_VARUNA_AUDIT_LEFT,       /* To the atomic of which it is a part */
    UCT_VARUNA_AUDIT_CONTINUED   /* An executed atomic whose result is asked for */
} uct_varuna_audit_action_t;

typedef struct uct_varuna_audit_op {
    uint64_t                   req;         /* Its identity in the log */
    uint64_t                   remote_addr;
    uint32_t                   length;
    uint32_t                   log_sn;
    uint32_t                   end_psn;
    uint8_t                    kind;        /* uct_varuna_op_kind_t */
    uint8_t                    bits;        /* UCT_VARUNA_AUDIT_OP_ */
    uint8_t                    verdict;     /* uct_varuna_verdict_t */
    uint8_t                    action;      /* uct_varuna_audit_action_t */
} UCS_S_PACKED uct_varuna_audit_op_t;

typedef struct uct_varuna_audit_compare {
    uint8_t                    flags;       /* UNORDERED, FAILED */
    uint8_t                    fails;       /* AMBIGUOUS=fail */
    uint16_t                   reserved;
    uint32_t                   num_targets;
} UCS_S_PACKED uct_varuna_audit_compare_t;

typedef struct uct_varuna_audit_target {
    uint64_t                   req;         /* 0: a step of an atomic */
    uint64_t                   addr;
    uint32_t                   length;
    uint8_t                    is_known;    /* Its bytes could be compared */
    uint8_t                    verdict;     /* uct_varuna_window_verdict_t */
    uint8_t                    action;      /* uct_varuna_audit_action_t */
    uint8_t                    reserved;
} UCS_S_PACKED uct_varuna_audit_target_t;

/* A record that was read. The pointers are into the caller's buffer, and unaligned. */
typedef struct uct_varuna_audit_view {
    uct_varuna_audit_record_t        head;
    const uct_varuna_audit_verdict_t *verdict;  /* Or NULL */
    const uct_varuna_audit_op_t      *ops;
    const uct_varuna_audit_compare_t *compare;  /* Or NULL */
    const uct_varuna_audit_target_t  *targets;
} uct_varuna_audit_view_t;

/**
 * Describe what a plan is made of.
 *
 * @param [in]  evidence  The evidence.
 * @param [out] verdict   Its fields that are in the evidence; the others remain.
 */
void uct_varuna_audit_pack_evidence(const uct_varuna_evidence_t *evidence,
                                    uct_varuna_audit_verdict_t *verdict);

/** Describe an operation of a plan; fields that the plan does not know remain. */
void uct_varuna_audit_pack_op(const uct_varuna_plan_op_t *plan_op,
                              uct_varuna_audit_op_t *op);

/**
 * The reverse: what the plan was made of.
 *
 * @param [in]  verdict   The record.
 * @param [in]  log       UCT_VARUNA_LOG_SIZE entries of memory, which the evidence uses.
 * @param [out] evidence  The evidence.
 */
void uct_varuna_audit_unpack_evidence(const uct_varuna_audit_verdict_t *verdict,
                                      uint64_t *log, uct_varuna_evidence_t *evidence);

/** The same of an operation. Its verdict is not filled in. */
void uct_varuna_audit_unpack_op(const uct_varuna_audit_op_t *op,
                                uct_varuna_plan_op_t *plan_op);

/**
 * Check the beginning of a file.
 *
 * @param [in] data    The file's first bytes; they may contain anything.
 * @param [in] length  Their number.
 *
 * @return NULL, or what is wrong.
 */
const char *uct_varuna_audit_check_file(const void *data, size_t length);

/**
 * Read a record.
 *
 * @param [in]  data      Where it begins; it may contain anything.
 * @param [in]  length    Bytes from there to the end of the file.
 * @param [out] view      The record. Both pointers are NULL if its type is unknown.
 * @param [out] reason_p  What is wrong, if it cannot be read.
 *
 * @return Its length, or 0 if it cannot be read. Then nothing after it can.
 */
size_t uct_varuna_audit_read(const void *data, size_t length,
                             uct_varuna_audit_view_t *view, const char **reason_p);

#endif
