/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Completion queues, in the format of mlx5: a ring of 64 or 128-byte entries
 * that the consumer reads by itself.
 *
 * Called by: verbs/ and mlx5dv/ (create, arm), proto/ (new completions).
 *
 * Doorbell record: dbrec[0] consumer index, dbrec[1] arm word, big endian.
 */

#ifndef EMU_CQ_H_
#define EMU_CQ_H_

#include "../base/emu_def.h"
#include "../base/emu_lock.h"

struct emu_cqe;

struct emu_cq {
    uint32_t          used;
    uint32_t          cqn;
    uint32_t          proc;
    uint32_t          ctx;
    uint32_t          cqe_cnt;    /* entries, a power of two */
    uint32_t          cqe_size;   /* 64 or 128 */
    uint8_t           *buf;
    volatile uint32_t *dbrec;
    emu_chan_t        *chan;      /* NULL: no completion channel */
    emu_chan_t        *async;     /* of its error; NULL: none */
    uint32_t          user_mem;   /* buf and dbrec are the program's */
    uint64_t          cookie;
    uint64_t          refs;       /* queue pairs; atomic */
    uint32_t          port;
    uint32_t          nic_gen;    /* emu_port_t::nic_gen of the context */
    uint32_t          gen;
    uint32_t          lock_ready; /* the lock outlives the slot's users */

    emu_lock_t        lock;       /* guards what follows, and the ring */
    uint32_t          pi;         /* entries ever written */
    uint32_t          resizing;   /* the ring and its size do not fit together */
    uint32_t          armed;      /* 0, 1: next, 2: next solicited or error */
    uint32_t          sol_pi;     /* pi after the last solicited one */
    uint32_t          ignore_overrun; /* the program promises not to, and need
                                         not report how far it has read */
    uint32_t          failed;     /* overrun: nothing is written any more */
    uint32_t          spread;     /* ... and its queue pairs are notified; atomic */
};

/** A queue which the program brought along (DEVX), in memory that all processes
 *  see. The program writes its first entries' owner bits. */
typedef struct emu_cq_user_attr {
    uint8_t  *buf;
    uint32_t *dbrec;
    unsigned cqe_cnt;             /* power of two */
    unsigned cqe_size;            /* 64 or 128 */
    int      ignore_overrun;
} emu_cq_user_attr_t;

/**
 * Create a completion queue.
 *
 * @param [in] cqe       Entries wanted; rounded up to a power of two.
 * @param [in] cqe_size  64 or 128.
 * @param [in] chan      Completion channel, or NULL.
 * @param [in] cookie    Comes back in the events (verbs/: the ibv_cq).
 */
int emu_cq_create(emu_ctx_t *ctx, unsigned cqe, unsigned cqe_size,
                  emu_chan_t *chan, uint64_t cookie, emu_cq_t **cq_p);

/** Create a completion queue in the program's memory. It has no events before
 *  @ref emu_cq_set_chans. */
int emu_cq_create_user(emu_ctx_t *ctx, const emu_cq_user_attr_t *attr,
                       uint64_t cookie, emu_cq_t **cq_p);

/**
 * Give a queue room for more or fewer entries; what the consumer has not polled stays.
 * For verbs-level consumers: entries and doorbell record move.
 *
 * @param [in] cqe  Entries wanted; rounded up to a power of two.
 * @param [in] ci   The next entry to be polled.
 *
 * @return -EINVAL if so many entries are too many, or too few for those that were not
 *         polled, or if the queue was overrun.
 */
int emu_cq_resize(emu_cq_t *cq, unsigned cqe, uint32_t ci);

/** Set where its events go: completions, and its error. Both may be NULL. */
void emu_cq_set_chans(emu_cq_t *cq, emu_chan_t *chan, emu_chan_t *async);

/** @return -EBUSY while a QP uses it. */
int emu_cq_destroy(emu_cq_t *cq);

emu_cq_t *emu_cq_find(uint32_t cqn);

/** Arm: the doorbell's two words in host byte order; @a sn_cmd_ci is
 *  sn << 28 | solicited-only << 24 | consumer index. If a completion that
 *  counts is there already, the event comes at once. */
void emu_cq_arm(uint32_t cqn, uint32_t sn_cmd_ci);

/** As above, with quirk blind-arm: no event for what is there. */
void emu_cq_arm_verbs(uint32_t cqn, uint32_t sn_cmd_ci);

/** Arm by verbs' ibv_req_notify_cq: @a ci is the next entry to be polled. */
static inline void
emu_cq_req_notify(emu_cq_t *cq, int solicited_only, uint32_t ci)
{
    emu_cq_arm_verbs(cq->cqn, (solicited_only ? (1u << 24) : 0) | (ci & 0xffffff));
}

/**
 * Remove a destroyed QP's entries as ibv_destroy_qp does, for verbs-level
 * consumers; @a ci is the next entry to be polled. What stays moves up.
 *
 * @return By how much the consumer must advance its index.
 */
uint32_t emu_cq_clean(emu_cq_t *cq, uint32_t qpn, uint32_t ci);

/**
 * Append a completion. Called by proto/, with no other CQ's lock held. If there
 * is no room, IBV_EVENT_CQ_ERR is raised and the queue is dead.
 *
 * @return 0, or -EOVERFLOW: the queue is dead, and the completion is lost.
 */
int emu_cq_push(emu_cq_t *cq, const struct emu_cqe *cqe);

#endif
