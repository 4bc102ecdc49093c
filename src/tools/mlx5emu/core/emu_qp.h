/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Queue pairs: RC, UD, DC initiators and DC targets.
 *
 *              requester half                      responder half
 *      send queue -> packets -> retries     ePSN, MSN, receive queue or SRQ,
 *      (sq_* and req_* below)               results of atomics (resp_* below)
 *
 * Each half has a lock of its own, so that the owner's doorbell and a peer's
 * packets never wait for each other. The responder half of a DC initiator is
 * the responder context that its present target keeps for it.
 *
 * Called by: verbs/ and mlx5dv/ (create, modify, query, doorbell), proto/.
 *
 * Doorbell record: dbrec[0] receive counter, dbrec[1] send counter (in basic
 * blocks), big endian, 16 bits.
 */

#ifndef EMU_QP_H_
#define EMU_QP_H_

#include "../base/emu_def.h"
#include "../base/emu_lock.h"
#include "../wqe/emu_wqe.h"

/** What emu_qp_create needs. Sizes are rounded up to powers of two. */
/** Which packets a responder may place before their predecessors (dp_ordering). */
typedef enum emu_qp_order {
    EMU_QP_ORDER_IBTA,           /* none: they are dropped */
    EMU_QP_ORDER_RW,             /* reads and writes */
    EMU_QP_ORDER_ALL
} emu_qp_order_t;

typedef struct emu_qp_init_attr {
    emu_qp_type_t type;
    emu_pd_t      *pd;
    emu_cq_t      *send_cq;      /* NULL for a DCT */
    emu_cq_t      *recv_cq;
    emu_srq_t     *srq;          /* NULL: own receive queue */
    uint32_t      sq_bb_cnt;     /* basic blocks of the send queue */
    uint32_t      rq_wqe_cnt;    /* receive entries; 0 with an SRQ */
    uint32_t      rq_max_sge;    /* of one receive entry */
    int           sq_sig_all;    /* every send WQE is signalled */
    int           scatter_cqe;   /* received data of <= 32 bytes (<= 64 with
                                    128-byte CQEs) go into the CQE */
    uint64_t      dc_key;        /* DCT: access key */
    uint64_t      cookie;        /* of asynchronous events: the ibv_qp */
    uint32_t      cqe_uidx;      /* what CQEs carry in srqn_uidx (low 24 bits)
                                    for QPs without SRQ; normally 0 */
    /* Queues which the program brought along (DEVX), in memory that all
     * processes see; sq_bb_cnt, rq_wqe_cnt and rq_max_sge are powers of two
     * then. user_dbrec NULL: the engine allocates them. */
    uint8_t       *user_sq;
    uint8_t       *user_rq;
    uint32_t      *user_dbrec;
    emu_chan_t    *async;        /* channel of its events, ... */
    int           no_async;      /* ... or none; otherwise the context's */
    uint8_t       order;         /* emu_qp_order_t */
    uint8_t       order_forced;  /* whatever the device's default is */
} emu_qp_init_attr_t;

/** A send WQE in flight; at the index of its first basic block. */
typedef struct emu_sqe {
    uint32_t psn;          /* first PSN */
    uint32_t num_psn;      /* PSNs that it takes; 0: a NOP */
    uint32_t length;
    uint32_t prev_size;    /* of the work request before: length ... */
    uint32_t op;           /* low bits of its number, see emu_qp_t::ops */
    uint16_t num_bb;
    uint8_t  opcode;       /* MLX5_OPCODE_x */
    uint8_t  flags   : 4;  /* EMU_SQE_x */
    uint8_t  prev_op : 4;  /* ... and kind, emu_fault_op_t */
} emu_sqe_t;

/** The result of an atomic, for a request that comes again. */
typedef struct emu_atomic_result {
    uint32_t psn;
    uint32_t valid;
    uint64_t value;        /* as it was in memory */
} emu_atomic_result_t;

/** A packet of a write that came, and was placed, before its predecessors. */
typedef struct emu_resp_early {
    uint32_t psn;
    uint8_t  valid;
    uint8_t  is_last;      /* ends its message */
    uint8_t  reserved[2];
} emu_resp_early_t;

/** A message that a responder is in the middle of. */
typedef struct emu_resp_msg {
    uint8_t  kind;         /* emu_op_kind_t, 0: none */
    uint8_t  reserved;
    uint16_t wqe_index;    /* sends: the receive entry that was taken ... */
    uint32_t srqn;         /* ... and its SRQ, or 0 */
    uint32_t offset;       /* sends: bytes that came */
} emu_resp_msg_t;

struct emu_qp {
    /* Constant after creation */
    uint32_t            used;
    uint32_t            qpn;         /* index | generation << EMU_QP_IDX_BITS */
    uint32_t            gen;
    uint8_t             type;        /* emu_qp_type_t */
    uint8_t             sq_sig_all;
    uint8_t             scatter_cqe;
    uint8_t             locks_ready; /* locks outlive the slot's users */
    uint32_t            proc;
    uint32_t            ctx;
    uint32_t            pd;
    uint32_t            port;
    uint32_t            nic_gen;     /* emu_port_t::nic_gen of its context */
    uint32_t            cqe_uidx;
    emu_cq_t            *send_cq;
    emu_cq_t            *recv_cq;
    emu_srq_t           *srq;
    uint8_t             *sq_buf;
    uint32_t            sq_bb_cnt;   /* power of two */
    uint32_t            rq_wqe_cnt;  /* power of two, or 0 */
    uint8_t             *rq_buf;
    uint32_t            rq_stride;   /* bytes: 16 per gather entry */
    uint32_t            rq_max_sge;
    volatile uint32_t   *dbrec;
    emu_sqe_t           *sqes;       /* sq_bb_cnt of them */
    void                *mem;        /* what the engine allocated of these */
    uint32_t            user_mem;    /* queues and dbrec are the program's */
    emu_chan_t          *async;      /* of events; NULL: none */
    uint64_t            dc_key;
    uint64_t            cookie;
    uint32_t            known_rq_psn;/* what a driver knows that caches PSNs: */
    uint32_t            known_sq_psn;/*     of the last modify or query */
    struct ibv_qp_attr  attr;        /* as modified; PSNs and state live below;
                                        written with both locks held */
    emu_path_t          path;        /* attr.ah_attr, and the MAC address */
    uint8_t             fatal;       /* EMU_QP_FATAL_x; atomic */
    uint8_t             order;       /* as its program wants it, emu_qp_order_t; written */
    uint8_t             order_forced;/* before RTR */

    /* Requester half */
    emu_lock_t          req_lock __attribute__((aligned(64)));
    uint32_t            req_state;   /* enum ibv_qp_state */
    uint16_t            sq_ci;       /* oldest WQE that is not completed */
    uint16_t            sq_send;     /* WQE that is (to be) sent now */
    uint16_t            sq_new;      /* first WQE never sent: has no PSN yet */
    uint16_t            sq_posted;   /* shown to fault rules up to here */
    uint16_t            sq_pi;       /* dbrec[1] at the last doorbell: WQEs are
                                        the NIC's up to here */
    uint32_t            req_psn;     /* next PSN for a new WQE */
    uint32_t            req_send;    /* next PSN to be sent (<= req_psn) */
    uint32_t            req_una;     /* oldest PSN that is not acknowledged */
    uint32_t            req_max;     /* all PSNs below were sent before */
    uint32_t            req_rd_out;  /* reads and atomics in flight */
    uint8_t             req_retry;   /* tries left */
    uint8_t             req_rnr;     /* RNR tries left; 7: no limit */
    uint8_t             req_waiting; /* EMU_REQ_WAITS_x: nothing is sent */
    uint8_t             req_hung;    /* a fault has stopped it until it leaves
                                        RTS; set by anybody, atomic */
    uint8_t             last_op;     /* of the newest request that was begun:
                                        emu_fault_op_t ... */
    uint32_t            last_size;   /* ... and length */
    uint64_t            req_flush_due; /* quirk late-flush: when it comes (ns), or 0 */
    uint64_t            ops;         /* number of the next request: unique in
                                        the fabric, the queue pair's own number
                                        in the upper bits; read by anybody */
    uint64_t            req_deadline;/* of the running timer, 0: none */
    uint64_t            req_timer_due;/* earliest entry of the service thread */
    uint32_t            req_asked;   /* where time passes: what was asked for again
                                        last, with EMU_REQ_ASKED */
    uint64_t            req_serial;  /* of the DC connection, 0: none */
    uint64_t            dc_key_now;  /* ... its target */
    uint32_t            dc_dct_now;
    emu_path_t          dc_path_now;
    uint32_t            dc_psn;      /* ... and its first PSN */

    /* Responder half */
    emu_lock_t          resp_lock __attribute__((aligned(64)));
    uint32_t            resp_state;  /* enum ibv_qp_state */
    uint32_t            resp_psn;    /* expected PSN */
    uint32_t            resp_msn;
    uint16_t            rq_ci;       /* receive entries taken */
    uint8_t             resp_nak;    /* a sequence NAK was sent */
    uint8_t             resp_last_wqe; /* LAST_WQE_REACHED was raised */
    uint32_t            resp_atomic; /* next slot of resp_atomics */
    uint64_t            resp_serial; /* DC: connection that this is for */
    emu_resp_msg_t      resp_msg;
    uint32_t            resp_num_early; /* valid entries of resp_early */
    emu_atomic_result_t resp_atomics[EMU_MAX_RD_ATOMIC];
    emu_resp_early_t    resp_early[EMU_MAX_EARLY]; /* by PSN % EMU_MAX_EARLY */
} __attribute__((aligned(64)));

#define EMU_QP_IDX_BITS 14
#define EMU_QP_OPS_BITS 40      /* of emu_qp_t::ops: requests of one QP */
#define EMU_QP_FATAL_LOST 1     /* a completion was lost: will fail */
#define EMU_QP_FATAL_TOLD 2     /* ... failed, and raised QP_FATAL */
#define EMU_REQ_WAITS_RNR  1    /* for the RNR timer */
#define EMU_REQ_WAITS_PORT 2    /* for room in the queue of the port */
#define EMU_REQ_ASKED   (1u << 24)
#define EMU_SQE_SIGNALED  0x01  /* wants a completion */
#define EMU_SQE_SOLICITED 0x02
#define EMU_SQE_RD_ATOMIC 0x04  /* counts in req_rd_out */

/** Create a queue pair in state RESET. */
int emu_qp_create(emu_ctx_t *ctx, const emu_qp_init_attr_t *init,
                  emu_qp_t **qp_p);

/** Destroy it, in whatever state: nothing is flushed, packets to it are lost
 *  from now on. */
void emu_qp_destroy(emu_qp_t *qp);

/**
 * Query; -EIO if the NIC is dead. State, PSNs (rq_psn: the expected PSN of the responder half, sq_psn:
 * the next PSN of the requester half) and all that was modified.
 */
int emu_qp_query(emu_qp_t *qp, struct ibv_qp_attr *attr_p);

/** The same as it is, whatever quirks a driver has: for the device's own use. */
int emu_qp_read(emu_qp_t *qp, struct ibv_qp_attr *attr_p);

/** Queue pair by number, NULL if there is none (or no longer). */
emu_qp_t *emu_qp_find(uint32_t qpn);

/** The state of the whole, from the states of the halves: the responder half of a
 *  DC initiator belongs to its target. Both locks are held. */
enum ibv_qp_state emu_qp_state(const emu_qp_t *qp);

/** Put both halves in the state RESET. Both locks are held. */
void emu_qp_reset(emu_qp_t *qp);

/** A message ends in the middle: its receive entry is given back. resp_lock is
 *  held. */
void emu_qp_abandon_msg(emu_qp_t *qp);

/** Forget what came before its predecessors. resp_lock is held. */
void emu_qp_forget_early(emu_qp_t *qp);

/** How the responder places packets that come early: as its program has forced it, or at least
 *  as the port's adaptive routing (quirk ooo) needs it. */
emu_qp_order_t emu_qp_order(const emu_qp_t *qp);

/** The path MTU of a QP, in bytes. */
unsigned emu_qp_mtu(const emu_qp_t *qp);

#endif
