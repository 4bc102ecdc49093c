/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The audit file: why each recovery repeated what it repeated. The requester writes it
 * (UCX_RC_VARUNA_AUDIT), and rc_varuna_audit reads it. Pure: the format and its checks.
 *
 *   file:     uct_varuna_audit_file_t  record  record ...
 *   record:   uct_varuna_audit_record_t  body, by type:
 *   VERDICT:  uct_varuna_audit_verdict_t  uct_varuna_audit_op_t ...
 *   COMPARE:  uct_varuna_audit_compare_t  uct_varuna_audit_target_t ...
 *
 * All integers are in the byte order of the host that has written the file. A reader
 * refuses another version or byte order, and skips types of records that it does not
 * know.
 */
#ifndef UCT_VARUNA_AUDIT_H_
#define UCT_VARUNA_AUDIT_H_

#include "varuna_plan.h"

#include <stddef.h>

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
