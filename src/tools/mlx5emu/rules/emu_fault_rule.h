/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The fault rule: one line of text <-> one plain structure, and the pure
 * question "does this rule fire for this event?".
 *
 * Called by: the command (parses, prints), the hook in emu_fault.c (matches),
 * the unit tests. Depends on nothing of the engine: no lock, no shared memory.
 *
 *     POINT [SELECTOR=VALUE]... ACTION[=VALUE]
 *
 *     ack op=cas host=0 nth=3 drop          the third CAS's response is lost
 *     packet op=write size=64k- pkt=7 silent    cut a big write after 6 packets
 */

#ifndef EMU_FAULT_RULE_H
#define EMU_FAULT_RULE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMU_FAULT_MAX_RULES 64             /**< Rules in one fabric */
#define EMU_FAULT_LINE_MAX  256            /**< Longest rule, with the NUL */
#define EMU_FAULT_NAME_MAX  16             /**< Name of a rule, with the NUL */
#define EMU_FAULT_ANY       0xffffffffu    /**< A selector that is not given */


/** Where in the life of an operation the rule looks. */
typedef enum emu_fault_point {
    EMU_FAULT_POINT_POST,    /**< Requester: the WQE was fetched, no packet of
                                  it was sent, all before it were */
    EMU_FAULT_POINT_PACKET,  /**< Requester: one request packet enters the wire
                                  (retransmissions pass here again) */
    EMU_FAULT_POINT_EXEC,    /**< Responder: an operation was executed as a
                                  whole, its acknowledgement was not sent */
    EMU_FAULT_POINT_ACK,     /**< Responder: an ACK, a NAK or a response packet
                                  enters the wire */
    EMU_FAULT_POINT_RMW,     /**< Responder: an atomic has read memory, and is
                                  about to write it */
    EMU_FAULT_POINT_ERR,     /**< A queue pair enters the error state; nothing
                                  of it was flushed */
    EMU_FAULT_POINT_LAST
} emu_fault_point_t;


/** What kind of operation an event belongs to. */
typedef enum emu_fault_op {
    EMU_FAULT_OP_SEND,
    EMU_FAULT_OP_SEND_IMM,
    EMU_FAULT_OP_WRITE,
    EMU_FAULT_OP_WRITE_IMM,
    EMU_FAULT_OP_READ,
    EMU_FAULT_OP_CAS,
    EMU_FAULT_OP_FAA,
    EMU_FAULT_OP_NOP,        /* passes the point "post" only */
    EMU_FAULT_OP_LAST
} emu_fault_op_t;


/** Kinds of queue pair of requesters. */
typedef enum emu_fault_qp {
    EMU_FAULT_QP_RC,
    EMU_FAULT_QP_UD,
    EMU_FAULT_QP_DC,
    EMU_FAULT_QP_LAST
} emu_fault_qp_t;


/** What a rule does when it fires. */
typedef enum emu_fault_action {
    EMU_FAULT_ACTION_NONE,   /**< Count only */
    EMU_FAULT_ACTION_DROP,   /**< The packet is lost */
    EMU_FAULT_ACTION_DELAY,  /**< The packet arrives value_ns later */
    EMU_FAULT_ACTION_DUP,    /**< It arrives now, and again value_ns later */
    EMU_FAULT_ACTION_DOWN,   /**< The link goes down, with a port event, before
                                  the packet passes */
    EMU_FAULT_ACTION_SILENT, /**< As DOWN, without an event */
    EMU_FAULT_ACTION_UP,     /**< The link comes up */
    EMU_FAULT_ACTION_FLAP,   /**< The link goes down and up, over and over */
    EMU_FAULT_ACTION_KILL,   /**< The NIC dies, with an event */
    EMU_FAULT_ACTION_KILL_SILENT, /**< The NIC dies without one */
    EMU_FAULT_ACTION_HANG,   /**< The requester's QP stops: nothing more is
                                  sent, received, timed or completed */
    EMU_FAULT_ACTION_LAST
} emu_fault_action_t;


/** Which transmissions of a packet a rule sees. */
typedef enum emu_fault_try {
    EMU_FAULT_TRY_ANY,
    EMU_FAULT_TRY_FIRST,     /**< Never a retransmission */
    EMU_FAULT_TRY_AGAIN,     /**< Retransmissions only */
    EMU_FAULT_TRY_LAST
} emu_fault_try_t;


/** What a packet is held back for, instead of a time. */
typedef enum emu_fault_until {
    EMU_FAULT_UNTIL_NONE,
    EMU_FAULT_UNTIL_RULE,    /**< A rule of some name fires */
    EMU_FAULT_UNTIL_LINK,    /**< A link is up, down or silent */
    EMU_FAULT_UNTIL_POST,    /**< Its queue pair begins more work requests */
    EMU_FAULT_UNTIL_LAST
} emu_fault_until_t;


/** That, with what belongs to it. */
typedef struct emu_fault_wait {
    uint8_t  until;          /**< emu_fault_until_t */
    uint8_t  state;          /**< LINK: EMU_FAULT_ACTION_UP, DOWN, SILENT */
    uint8_t  host;           /**< LINK */
    uint8_t  link;           /**< LINK */
    uint32_t num;            /**< POST: so many of them */
    char     name[EMU_FAULT_NAME_MAX]; /**< RULE */
} emu_fault_wait_t;


/** Special values of emu_fault_rule_t::pkt, beside 1, 2, 3, ... */
#define EMU_FAULT_PKT_LAST   0xfffffffeu
#define EMU_FAULT_PKT_MIDDLE 0xfffffffdu


/** One thing that is about to happen. Filled by the engine. */
typedef struct emu_fault_event {
    uint8_t  point;      /**< emu_fault_point_t */
    uint8_t  op;         /**< emu_fault_op_t */
    uint8_t  host;       /**< Requester's host */
    uint8_t  peer;       /**< Responder's host */
    uint8_t  link;       /**< The plane; the same number on both hosts */
    uint8_t  is_retry;   /**< A packet that was sent before */
    uint16_t wqe_index;  /**< Of the request */
    uint32_t qpn;        /**< Requester's QP number */
    uint32_t pkt;        /**< Packet within its message, from 1; 0: no packet */
    uint32_t num_pkts;   /**< Packets of the message */
    uint64_t size;       /**< Bytes of the message */
    uint8_t  qp_type;    /**< emu_fault_qp_t */
    uint8_t  prev_op;    /**< Of the request posted before this one on its QP;
                              EMU_FAULT_OP_LAST: there is none */
    uint64_t prev_size;  /**< Bytes of that one */
} emu_fault_event_t;


/** A change of a link or a NIC. */
typedef struct emu_fault_change {
    uint8_t  op;         /**< EMU_FAULT_ACTION_DOWN, SILENT, UP or FLAP of a link;
                              KILL or KILL_SILENT of a NIC */
    uint8_t  host;       /**< Whose */
    uint8_t  index;      /**< Of the link or the NIC */
    uint32_t flap_ppm;   /**< Of FLAP: the part of a period that it is up */
    uint64_t flap_ns;    /**< ... and the period */
} emu_fault_change_t;


/** What comes of an event, all rules considered. */
typedef struct emu_fault_verdict {
    uint8_t  fate;       /**< EMU_FAULT_ACTION_NONE, DROP, DELAY or DUP */
    uint8_t  hang;       /**< Whether the requester's QP stops */
    uint64_t value_ns;   /**< Of DELAY and DUP */
    emu_fault_wait_t wait; /**< ... or this */
    uint32_t num_changes;
    emu_fault_change_t changes[EMU_FAULT_MAX_RULES]; /**< The engine makes them
                              first, in this order */
} emu_fault_verdict_t;


/** A rule, as it lies in shared memory. The first part is what was written,
 *  the second is counted. */
typedef struct emu_fault_rule {
    uint32_t id;         /**< 0: free slot */
    uint8_t  point;      /**< emu_fault_point_t */
    uint8_t  action;     /**< emu_fault_action_t */
    uint8_t  try_kind;   /**< emu_fault_try_t */
    uint8_t  have_seed;  /**< Otherwise the fabric's gives one */
    uint32_t op_mask;    /**< BIT(emu_fault_op_t); 0: all */
    uint32_t host;       /**< Or EMU_FAULT_ANY; so the next five */
    uint32_t peer;
    uint32_t link;
    uint32_t qpn;
    uint32_t wqe;
    uint32_t pkt;        /**< From 1, or EMU_FAULT_PKT_*, or EMU_FAULT_ANY */
    uint32_t type_mask;  /**< BIT(emu_fault_qp_t); 0: all */
    uint32_t prev_mask;  /**< As op_mask, of the request before; 0: any, none */
    uint32_t at_host;    /**< Where links and NICs change; EMU_FAULT_ANY: */
    uint32_t at_link;    /**<     at the requester's own port */
    uint64_t size_min;
    uint64_t size_max;
    uint64_t prev_min;   /**< As the two above, of the request before */
    uint64_t prev_max;
    uint64_t nth;        /**< First match that fires, from 1 */
    uint64_t count;      /**< Times it fires at most; UINT64_MAX: no limit */
    uint64_t value_ns;   /**< Of DELAY and DUP; of FLAP: the period */
    emu_fault_wait_t wait; /**< Of DELAY and DUP */
    uint32_t flap_ppm;   /**< Of FLAP: the part of a period that it is up */
    char     name[EMU_FAULT_NAME_MAX]; /**< For other rules; may be empty */
    uint32_t prob_ppm;   /**< Chance of each match, parts per million */
    uint32_t seed;       /**< Of that chance */

    uint64_t matched;    /**< Events that fitted */
    uint64_t fired;      /**< Events that were acted upon */
} emu_fault_rule_t;


/**
 * Parse one line.
 *
 * @param [in]  line    Text; blank space separates words.
 * @param [out] rule_p  Filled on success only; id and counters are zero.
 * @param [out] err     On failure: a sentence saying what is wrong and what
 *                      would be right.
 * @param [in]  err_max Room in @a err.
 *
 * @return 0, or -1.
 */
int emu_fault_rule_parse(const char *line, emu_fault_rule_t *rule_p, char *err,
                         size_t err_max);


/**
 * Write a rule as the line that would make it again, selectors in a fixed
 * order, defaults left out.
 *
 * @return @a buf, which needs EMU_FAULT_LINE_MAX bytes.
 */
char *emu_fault_rule_format(const emu_fault_rule_t *rule, char *buf,
                            size_t max);


/**
 * Does an event fit a rule's selectors? The counters play no part.
 */
int emu_fault_rule_fits(const emu_fault_rule_t *rule,
                        const emu_fault_event_t *event);


/**
 * Show an event to a rule: count it if it fits, and decide whether the rule fires. The
 * caller serializes calls for one rule.
 */
int emu_fault_rule_match(emu_fault_rule_t *rule,
                         const emu_fault_event_t *event);


/**
 * Show an event to a table of at most EMU_FAULT_MAX_RULES rules. Every rule counts its
 * matches. The first that is due with a packet's fate decides that fate, and all changes
 * of links and NICs are made. A rule that has nothing to add does not fire: it remains
 * due for its next match.
 */
void emu_fault_rules_apply(emu_fault_rule_t *rules, unsigned num_rules,
                           const emu_fault_event_t *event,
                           emu_fault_verdict_t *verdict_p);


/**
 * Could a rule ever look at a single packet of a message from this host and
 * link? If not, middle packets may travel as one train.
 */
int emu_fault_rules_need_split(const emu_fault_rule_t *rules,
                               unsigned num_rules, unsigned host,
                               unsigned link);


/**
 * The seed of a rule that has none of its own, from the fabric's: differs from
 * rule to rule.
 */
uint32_t emu_fault_derive_seed(uint64_t seed, uint32_t id);


/**
 * A number that depends on a seed and on @a n, and on nothing else.
 */
uint64_t emu_fault_random(uint32_t seed, uint64_t n);


/**
 * Parse "PERIOD" or "PERIOD,DUTY", such as 20ms,0.5.
 *
 * @return 0, or -1 and a sentence.
 */
int emu_fault_parse_flap(const char *text, uint64_t *period_p,
                         uint32_t *up_ppm_p, char *err, size_t err_max);


/** Names for messages and JSON. */
extern const char *emu_fault_point_names[EMU_FAULT_POINT_LAST];
extern const char *emu_fault_op_names[EMU_FAULT_OP_LAST];
extern const char *emu_fault_action_names[EMU_FAULT_ACTION_LAST];
extern const char *emu_fault_qp_names[EMU_FAULT_QP_LAST];

#ifdef __cplusplus
}
#endif

#endif
