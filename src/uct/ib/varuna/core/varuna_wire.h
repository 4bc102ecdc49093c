/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Everything that crosses the wire or is part of an address: structures and
 * limits, no code. All integers are in the sender's byte order, which the
 * version byte proves to be ours (a peer of the other endianness would send
 * the magic reversed and is refused).
 *
 *   full address:       uct_varuna_addr_t  link-entry  link-entry ...
 *   link entry:         uct_varuna_addr_link_t  device-addr  dc-addr  ctl-addr  name
 *   short address:      uct_varuna_addr_t  uct_varuna_addr_short_t
 *                       short-entry  short-entry ...
 *   short entry:        a byte (index << DEVICE_BITS) | device-length
 *                       device-addr, as its difference from the UCT device address
 *                       ctl-addr, from that of the link before (or from zeros)
 *   control message:    uct_varuna_ctl_hdr_t  body (by type)  [device-addr ctl-addr]
 *   active message:     uct_varuna_am_hdr_t  the user's header and payload
 */
#ifndef UCT_VARUNA_WIRE_H_
#define UCT_VARUNA_WIRE_H_

#include "varuna_def.h"

/* Bumped whenever anything in this file changes. */
#define UCT_VARUNA_WIRE_VERSION      22
#define UCT_VARUNA_WIRE_MAGIC        0x5652 /* "VR" */

/* UCP's address format v1 has six bits for the length. */
#define UCT_VARUNA_IFACE_ADDR_MAX    63
#define UCT_VARUNA_DEVICE_ADDR_MAX   31
#define UCT_VARUNA_NAME_MAX          32

/* AM ids on the inner interfaces: one for the user's messages (the user's own
 * id is in our header, so that all 32 ids stay the user's), one for control. */
#define UCT_VARUNA_AM_ID_DATA        1
#define UCT_VARUNA_AM_ID_CTL         2

/*
 * There are two forms of the interface address. Control messages carry the full one.
 * UCP has room for a short one only, so it only contains what is needed to open an
 * endpoint (OPEN_REQ): where the control plane is, on as many links as fit, each
 * written as its difference from another (varuna_msg.h). An endpoint posts nothing
 * before OPEN_REP, which brings the full address.
 */
typedef struct uct_varuna_addr {
    uint16_t                   magic;
    uint8_t                    version;
    uint8_t                    num_links;  /* Entries which follow; or flags */
    uint64_t                   uuid;       /* Identifies the interface. Random: a process
                                              that knows it was given this address */
} UCS_S_PACKED uct_varuna_addr_t;

/* In uct_varuna_addr_t::num_links: it is a short address; each interface of the process has
 * only some of its links (VQP_LINKS) */
#define UCT_VARUNA_ADDR_SHORT        0x80
#define UCT_VARUNA_ADDR_LIMITED      0x40

typedef struct uct_varuna_addr_link {
    uint8_t                    index;      /* NIC index on its host: the place
                                              of its key in packed rkeys */
    uint8_t                    device_len;
    uint8_t                    dc_len;     /* Data lane's DC address */
    uint8_t                    ctl_len;    /* Control lane's DC address */
    uint8_t                    name_len;   /* Of its port, for people */
    uint8_t                    is_named;   /* The user has chosen its place: LINKS names
                                              all of them */
    uint16_t                   generation; /* Of that NIC: how often its device was opened
                                              again, after a reset or by a command. What is
                                              of one generation is not used with another */
} UCS_S_PACKED uct_varuna_addr_link_t;

typedef struct uct_varuna_addr_short {
    uint8_t                    outer_len;  /* Of the UCT device address */
    uint8_t                    ctl_len;    /* Of each control lane's DC address */
} UCS_S_PACKED uct_varuna_addr_short_t;

#define UCT_VARUNA_ADDR_DEVICE_BITS  5

#define UCT_VARUNA_CTL_ADDR_MAX      16

/*
 * Active message header: the same 8 bytes are the inner AM's short header.
 * The sequence number makes a repeated message harmless.
 */
typedef union uct_varuna_am_hdr {
    struct {
        uint32_t               seq;        /* Of this vQP; starts as its opening
                                              says, see varuna_held.h */
        uint32_t               target;     /* (target's number << 5) | user's AM
                                              id; see varuna_numbers.h */
    } UCS_S_PACKED;
    uint64_t                   u64;
} UCS_S_PACKED uct_varuna_am_hdr_t;        /* Stands where UCX's header ends */

#define UCT_VARUNA_AM_ID_BITS        5
#define UCT_VARUNA_TARGET_BITS       (32 - UCT_VARUNA_AM_ID_BITS)
#define UCT_VARUNA_TARGET_ID_MAX     UCS_BIT(UCT_VARUNA_TARGET_BITS)

/*
 * On a bus of datagrams, before each of them: a control message or a part of one
 * (varuna_frag.h). The message ends with a check of 8 bytes: SipHash-2-4 of all others, whose
 * key are the sender, the number and the AM id. So parts of two messages never make one.
 */
typedef struct uct_varuna_frag_hdr {
    uint16_t                   magic;
    uint8_t                    version;
    uint8_t                    am_id;
    uint32_t                   number;     /* Of the message; all of a sender's differ */
    uint64_t                   sender;     /* Random, another one for each destination */
    uint16_t                   length;     /* Of the message, with its check */
    uint16_t                   offset;     /* Of this part in it */
    uint16_t                   size;       /* Of this part */
    uint16_t                   index;      /* Of this part, from 0 */
} UCS_S_PACKED uct_varuna_frag_hdr_t;

typedef uint64_t uct_varuna_frag_sum_t;

/*
 * Control messages. Requests are idempotent: a requester which hears nothing
 * sends again, on the next link. The epoch names the lane incarnation.
 */
typedef enum {
    UCT_VARUNA_CTL_OPEN_REQ    = 1,  /* New vQP: give me a target and logs   */
    UCT_VARUNA_CTL_OPEN_REP    = 2,
    UCT_VARUNA_CTL_CONNECT_REQ = 3,  /* Make an RC QP for this incarnation   */
    UCT_VARUNA_CTL_CONNECT_REP = 4,
    UCT_VARUNA_CTL_FENCE_REQ   = 5,  /* Stop all up to this incarnation and
                                        report what was executed            */
    UCT_VARUNA_CTL_FENCE_REP   = 6,
    UCT_VARUNA_CTL_CLOSE       = 7,  /* The vQP is gone                      */
    UCT_VARUNA_CTL_REJECT      = 8,  /* Not for this process, or unknown vQP, or
                                        refused; the reason is in the body   */
    UCT_VARUNA_CTL_PING        = 9,  /* Are you there, on this link? vqp is the
                                        asker's link, epoch the ping's number */
    UCT_VARUNA_CTL_PONG        = 10,
    UCT_VARUNA_CTL_PORTS       = 11, /* Ports of ours went down, or came back:
                                        once, to the peers that send to us */
    UCT_VARUNA_CTL_CLOSE_REP   = 12, /* The vQP is not there any more        */
    UCT_VARUNA_CTL_LINKS_REQ   = 13, /* What is your address now?            */
    UCT_VARUNA_CTL_LINKS_REP   = 14,
    UCT_VARUNA_CTL_HOME_REQ   = 16, /* One access of an atomic, for the home NIC */
    UCT_VARUNA_CTL_HOME_REP   = 17,
    UCT_VARUNA_CTL_ATOMIC_REQ  = 18, /* Atomics for the target's CPU             */
    UCT_VARUNA_CTL_ATOMIC_REP  = 19,
    UCT_VARUNA_CTL_KEY_REQ     = 20, /* What does a key have for a NIC that was
                                        opened again since?                  */
    UCT_VARUNA_CTL_KEY_REP     = 21,
    UCT_VARUNA_CTL_LAST
} uct_varuna_ctl_type_t;

typedef struct uct_varuna_ctl_hdr {
    uint16_t                   magic;
    uint8_t                    version;
    uint8_t                    type;       /* uct_varuna_ctl_type_t */
    uint32_t                   length;     /* Of the body, bytes */
    uint64_t                   dest;       /* The receiver's interface. A queue pair
                                              number may be another process's by
                                              now, see varuna_ctl_send.c; a sender
                                              that doesn't know it has no address of
                                              ours */
    uint64_t                   uuid;       /* The sender's interface */
    uint64_t                   secret;     /* The requester's for the responder, in
                                              requests and in answers: only these two
                                              know it (varuna_numbers.h) */
    uint64_t                   opening;    /* Of the responder's target: random, sent
                                              in OPEN_REP and repeated in all later
                                              messages about it. Messages on
                                              different paths may pass each other:
                                              one from before CLOSE may open the vQP
                                              once more, and other late ones must
                                              not be taken for the new target. 0: not
                                              opened yet; in CLOSE: OPEN_REP has not
                                              come, and the instance names the
                                              target */
    uint32_t                   vqp;        /* The requester's endpoint */
    uint32_t                   epoch;      /* Lane incarnation, from 1. OPEN_REQ
                                              and CLOSE: the endpoint's instance,
                                              as an id is used again */
    /* All requests but OPEN_REQ and CLOSE end with the requester's address, for a
     * receiver that does not know it */
    uint8_t                    from_device_len; /* 0: absent */
    uint8_t                    from_ctl_len;
    uint8_t                    from_nic;   /* As in uct_varuna_addr_link_t */
    uint8_t                    moves;      /* In these: of the receiver, as in PORTS, that
                                              the requester knows */
    uint16_t                   from_generation; /* Of from_nic */
} UCS_S_PACKED uct_varuna_ctl_hdr_t;

/* OPEN_REQ: followed by the requester's full interface address, to which replies
 * go. */
typedef struct uct_varuna_ctl_open_req {
    uint16_t                   addr_len;
    uint16_t                   reserved;
} UCS_S_PACKED uct_varuna_ctl_open_req_t;

/* The responder's home NIC, while it has none: ask by HOME_REQ. */
#define UCT_VARUNA_HOME_NONE         UINT8_MAX

/* Slots of a process (mode extended): those which a UID can name */
#define UCT_VARUNA_SLOTS_MAX         4096

/* Slots of one vQP, which limits its atomics in flight with extended status */
#define UCT_VARUNA_SLOT_BLOCK        16

/* OPEN_REP: followed by the packed key of the logs (rkey_len), by the responder's
 * full interface address (addr_len) and, if there is an arena, by packed keys, which
 * contain their lengths: of all slots' bodies, to read them, of all marks, and, if the vQP has
 * slots, to write their bodies; then the mark of each of the vQP's slots (8 bytes). */
typedef struct uct_varuna_ctl_open_rep {
    uint64_t                   log_addr;   /* UCT_VARUNA_LOG_COUNT rings, and a word
                                              for first writes, as the key names them */
    uint32_t                   target;     /* Goes into AM headers */
    uint16_t                   log_size;   /* Entries of each ring */
    uint16_t                   log_count;
    uint16_t                   rkey_len;
    uint16_t                   addr_len;
    uint64_t                   slots_addr; /* Arena for atomics: bodies of slots */
    uint64_t                   marks_addr; /* ... and their marks */
    uint64_t                   own_addr;   /* Bodies of this vQP's slots, as the key to write
                                              names them */
    uint32_t                   arena_slots;/* Of the whole arena, 0: none */
    uint32_t                   first_slot; /* Of this vQP */
    uint8_t                    num_slots;  /* Of this vQP, may be 0 */
    uint8_t                    atomic_mode;/* uct_varuna_atomic_mode_t */
    uint8_t                    home_nic;   /* Where all atomics are executed, or in whose
                                              order (mode proxy), or HOME_NONE */
    uint8_t                    reserved;
    uint32_t                   home_epoch; /* Of that name */
} UCS_S_PACKED uct_varuna_ctl_open_rep_t;

/* CONNECT_REQ and _REP: followed by the sender's RC device address
 * (device_len) and RC endpoint address (ep_len). */
typedef struct uct_varuna_ctl_connect {
    uint8_t                    link;       /* NIC index of the *responder* */
    uint8_t                    status;     /* In REP: 0, or -ucs_status_t */
    uint8_t                    device_len;
    uint8_t                    ep_len;
    uint32_t                   home_epoch; /* In REP: as in OPEN_REP, at the time */
    uint8_t                    home_nic;   /* of connecting or later */
    uint8_t                    reserved;
    uint16_t                   generation; /* Of the NIC that is named by its index */
    uint32_t                   in_use;     /* In REQ: all older incarnations are over,
                                              also those that were left without a fence */
    uint32_t                   am_acked;   /* In REQ: as in FENCE_REQ */
} UCS_S_PACKED uct_varuna_ctl_connect_t;

/* FENCE_REQ: the header names the incarnation which is left. */
typedef struct uct_varuna_ctl_fence_req {
    uint32_t                   newest;     /* Highest epoch that was ever given:
                                              earlier requests are void */
    uint32_t                   round;      /* Comes back in the answer */
    uint32_t                   am_acked;   /* Messages before this number are
                                              never sent again */
} UCS_S_PACKED uct_varuna_ctl_fence_req_t;

enum {
    UCT_VARUNA_FENCE_FLAG_PSN   = 1,  /* epsn is valid */
    UCT_VARUNA_FENCE_FLAG_QP    = 2,  /* A QP of this epoch existed and is at rest: what
                                         it has accepted is in memory */
    UCT_VARUNA_FENCE_FLAG_ERR   = 4,  /* It is in ERR: it accepts and answers nothing
                                         more */
    UCT_VARUNA_FENCE_FLAG_RESET = 8,  /* It is in RESET: nobody had to wait until it is
                                         at rest */
    UCT_VARUNA_FENCE_FLAG_GONE  = 16, /* Its NIC is gone, as the system says */
    UCT_VARUNA_FENCE_FLAG_ORDERED   = 32, /* It drops what comes before its predecessors */
    UCT_VARUNA_FENCE_FLAG_UNORDERED = 64, /* It places such writes */
    UCT_VARUNA_FENCE_FLAG_LAST  = 128
};

/* FENCE_REP: what the responder knows of the fenced incarnation. Followed by
 * the log ring of that incarnation (log_size entries of 8 bytes). */
typedef struct uct_varuna_ctl_fence_rep {
    uint32_t                   flags;
    uint32_t                   epsn;       /* Next PSN which the QP expected */
    uint16_t                   log_size;
    uint8_t                    dc_ordered; /* NICs (indices) whose DC target drops what comes
                                              before its predecessors, */
    uint8_t                    dc_unordered; /* and those whose target places such writes */
    uint32_t                   round;      /* Of the request */
} UCS_S_PACKED uct_varuna_ctl_fence_rep_t;

/* REJECT */
typedef struct uct_varuna_ctl_reject {
    uint64_t                   dest;       /* Whom the request was meant for */
    uint8_t                    type;       /* Of the message refused */
    uint8_t                    reserved;
    int16_t                    status;     /* ucs_status_t */
} UCS_S_PACKED uct_varuna_ctl_reject_t;

/* PORTS: a hint, by which the receiver judges its paths to the sender. */
typedef struct uct_varuna_ctl_ports {
    uint32_t                   number;     /* Of port events so far: the greatest
                                              one counts */
    uint8_t                    down;       /* NICs (indices) whose port is down:
                                              their paths are dead */
    uint8_t                    retired;    /* NICs which the receiver should leave as
                                              planned, if another path is good */
    uint16_t                   moves;      /* How often the address of a port has
                                              changed: a receiver that knows another
                                              number asks by LINKS_REQ */
} UCS_S_PACKED uct_varuna_ctl_ports_t;

/* LINKS_REP: followed by the sender's full interface address. */
typedef struct uct_varuna_ctl_links {
    uint16_t                   addr_len;
    uint16_t                   moves;      /* As in PORTS, of that address */
    uint32_t                   reserved;
} UCS_S_PACKED uct_varuna_ctl_links_t;

/* PONG: comes back over the link of its PING */
typedef struct uct_varuna_ctl_pong {
    uct_varuna_ctl_ports_t     ports;      /* Of the sender */
    uint32_t                   beat;       /* Moves on when its application calls
                                              progress */
} UCS_S_PACKED uct_varuna_ctl_pong_t;

/* HOME_REQ: the access is uct_varuna_amo_act_t. Repeated with the same number
 * until it is answered; the numbers of one vQP go up, one at a time. */
typedef struct uct_varuna_ctl_home_req {
    uint64_t                   seq;
    uint64_t                   addr;
    uint64_t                   rkeys[UCT_VARUNA_MAX_LINKS]; /* Inner keys by NIC:
                                              the peer alone knows its home */
    uint64_t                   compare;
    uint64_t                   swap;
    uint64_t                   mark_from;
    uint64_t                   mark_to;
    uint32_t                   slot;
    uint8_t                    type;       /* uct_varuna_amo_act_type_t */
    uint8_t                    width;      /* 4 or 8 */
    uint16_t                   reserved;
} UCS_S_PACKED uct_varuna_ctl_home_req_t;

typedef struct uct_varuna_ctl_home_rep {
    uint64_t                   seq;
    uint64_t                   value;      /* What the access gave */
    uint32_t                   home_epoch; /* As in OPEN_REP */
    int16_t                    status;     /* ucs_status_t */
    uint8_t                    home_nic;
    uint8_t                    reserved;
} UCS_S_PACKED uct_varuna_ctl_home_rep_t;

/* ATOMIC_REQ: atomics with consecutive numbers, from 1 for each opening of the target,
 * which executes them in order and keeps their results until they are acknowledged.
 * Followed by count times uct_varuna_ctl_atomic_op_t. */
typedef struct uct_varuna_ctl_atomic_req {
    uint64_t                   first;      /* Number of the first one */
    uint64_t                   acked;      /* The requester has all results before */
    uint16_t                   count;      /* 1..AMO_WINDOW */
    uint16_t                   via;        /* 0. In the responder's message to itself, see
                                              varuna_cpu.h: one more than the link over
                                              which this one came */
    uint16_t                   reserved[2];
} UCS_S_PACKED uct_varuna_ctl_atomic_req_t;

typedef struct uct_varuna_ctl_atomic_op {
    uint64_t                   addr;
    uint64_t                   token;      /* From the packed key */
    uint64_t                   compare;
    uint64_t                   value;      /* Operand, or the new value */
    uint8_t                    op;         /* uct_atomic_op_t */
    uint8_t                    width;      /* 4 or 8 */
    uint8_t                    reserved[6];
} UCS_S_PACKED uct_varuna_ctl_atomic_op_t;

/* ATOMIC_REP: followed by count times uct_varuna_ctl_atomic_result_t. */
typedef struct uct_varuna_ctl_atomic_rep {
    uint64_t                   first;      /* Number of the first result */
    uint16_t                   count;      /* 1..AMO_WINDOW */
    uint16_t                   reserved[3];
} UCS_S_PACKED uct_varuna_ctl_atomic_rep_t;

typedef struct uct_varuna_ctl_atomic_result {
    uint64_t                   value;      /* Of the word before */
    int16_t                    status;     /* ucs_status_t: not executed */
    uint16_t                   reserved[3];
} UCS_S_PACKED uct_varuna_ctl_atomic_result_t;

/* KEY_REQ: a key that the requester has contains nothing for a NIC. */
typedef struct uct_varuna_ctl_key_req {
    uint64_t                   token;      /* In that key; 0: it is that of the logs */
    uint64_t                   addr;       /* Of a byte in its region */
    uint8_t                    nic;        /* Of the responder */
    uint8_t                    reserved[5];
    uint16_t                   generation; /* Of that NIC */
} UCS_S_PACKED uct_varuna_ctl_key_req_t;

typedef struct uct_varuna_ctl_key_rep {
    uint64_t                   token;      /* Of the request */
    uint64_t                   key;        /* Inner key, packed */
    int16_t                    status;     /* ucs_status_t: there is none. NO_ELEM: the
                                              region was deregistered */
    uint8_t                    nic;        /* Of the request, */
    uint8_t                    reserved[3];
    uint16_t                   generation; /* and its generation */
} UCS_S_PACKED uct_varuna_ctl_key_rep_t;

/* Packed key of a memory region: one key for each NIC which is a link of its
 * host, in the order of NIC indices; none if all are away. Self-describing, since
 * rkey_unpack knows only the component. */
typedef struct uct_varuna_packed_rkey {
    uint16_t                   magic;
    uint8_t                    version;
    uint8_t                    num_keys;   /* Keys which follow */
    uint8_t                    key_size;   /* Bytes of each, uct_varuna_packed_key_t */
    uint8_t                    nic_map;    /* NICs which they belong to; as many
                                              bits are set as there are keys */
    uint8_t                    atomic_mode;/* Of the responder */
    uint8_t                    device;     /* Whose memory it is: UCT_VARUNA_DEVICE_xx, or
                                              a number of the responder's */
    uint64_t                   token;      /* Names the region to the responder: only
                                              owners of the key know it. 0: memory of
                                              rc_varuna itself */
    /* num_keys * key_size bytes follow */
} UCS_S_PACKED uct_varuna_packed_rkey_t;

typedef struct uct_varuna_packed_key {
    uint64_t                   key;        /* Inner key, packed */
    uint16_t                   generation; /* Of its NIC */
} UCS_S_PACKED uct_varuna_packed_key_t;

UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_addr_t) == 12);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_addr_short_t) == 2);
UCT_VARUNA_STATIC_ASSERT(UCT_VARUNA_DEVICE_ADDR_MAX <
                         (1 << UCT_VARUNA_ADDR_DEVICE_BITS));
UCT_VARUNA_STATIC_ASSERT((UCT_VARUNA_MAX_LINKS << UCT_VARUNA_ADDR_DEVICE_BITS) <=
                         (1 << 8));
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_am_hdr_t) == 8);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_frag_hdr_t) == 24);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_frag_sum_t) == 8);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_hdr_t) == 54);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_open_rep_t) == 60);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_fence_req_t) == 12);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_fence_rep_t) == 16);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_ports_t) == 8);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_links_t) == 8);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_pong_t) == 12);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_atomic_req_t) == 24);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_atomic_op_t) == 40);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_atomic_rep_t) == 16);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_atomic_result_t) == 16);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_key_req_t) == 24);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_key_rep_t) == 24);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_packed_rkey_t) == 16);
UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_packed_key_t) == 10);
UCT_VARUNA_STATIC_ASSERT(UCT_VARUNA_MAX_LINKS <= 8); /* nic_map */

#endif
