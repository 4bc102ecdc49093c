/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Messages of a vQP that came before their predecessors and wait for them, found by
 * number. Pure; main thread. Used by varuna_am.c, varuna_fence.c and varuna_target.c.
 *
 * Only what is in a receive queue when its lane is left can be late. It is one queue for
 * all vQPs of a lane's kind and link, so the limits hold for all vQPs of a peer, and for
 * all peers: a peer that deliberately sends numbers out of order takes no more memory than that.
 */
#ifndef UCT_VARUNA_HELD_H_
#define UCT_VARUNA_HELD_H_

#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>
#include "varuna_def.h"
#include <ucs/sys/math.h>

#define UCT_VARUNA_HELD_MAX_PEER     16384 /* Messages of one peer */
#define UCT_VARUNA_HELD_MAX          65536 /* ... of all */

typedef struct uct_varuna_held_am {
    unsigned                   length;
    uint8_t                    am_id;
    /* payload follows */
} uct_varuna_held_am_t;

typedef struct uct_varuna_held {
    struct kh_uct_varuna_held_s *table;   /* NULL while none is held */
    unsigned                   num;
    unsigned                   *num_peer; /* Held of all vQPs of the peer */
    unsigned                   *num_all;  /* ... of all peers */
} uct_varuna_held_t;

/** Start with none. The two counters are the caller's; they start with 0. */
void uct_varuna_held_init(uct_varuna_held_t *held, unsigned *num_peer,
                          unsigned *num_all);

/**
 * Copy a message. Takes the same time however many are held.
 *
 * @return UCS_ERR_ALREADY_EXISTS if that number is held, UCS_ERR_EXCEEDS_LIMIT if too
 *         many of the peer are, UCS_ERR_NO_RESOURCE if too many of all peers are,
 *         UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_varuna_held_add(uct_varuna_held_t *held, uint32_t seq,
                                 uint8_t am_id, const void *data,
                                 size_t length);

/** Take out the message with a number. @return NULL if it is not held; else it is the
 *  caller's, to be released by ucs_free(). */
uct_varuna_held_am_t *uct_varuna_held_take(uct_varuna_held_t *held,
                                           uint32_t seq);

/** Forget all. */
void uct_varuna_held_clear(uct_varuna_held_t *held);

/* --- Sequence numbers --- */

/* Sequence numbers of a vQP's active messages: 32 bits, which wrap around. They start
 * with a number that only the vQP's two ends know, so that no other process can send a
 * message in the requester's name. Pure. Used by both ends. */

/*
 * A message comes before its predecessors if these are in another lane's receive queue,
 * and again if its acknowledgement was lost. Both ends keep fewer messages than this: a
 * receive queue of a NIC has at most 2^15 entries, or 2^16 for all lanes that one vQP had
 * within a packet lifetime, and a send queue has fewer.
 */
#define UCT_VARUNA_AM_WINDOW         UCS_BIT(17)

typedef enum {
    UCT_VARUNA_AM_SEQ_NEXT,
    UCT_VARUNA_AM_SEQ_LATER,    /* Predecessors are missing */
    UCT_VARUNA_AM_SEQ_REPEATED, /* It has been delivered */
    UCT_VARUNA_AM_SEQ_FOREIGN   /* The requester has not sent it */
} uct_varuna_am_seq_t;

/** @return The first number of the vQP whose opening (varuna_numbers.h) this is. */
static inline uint32_t uct_varuna_am_seq_first(uint64_t opening)
{
    return (uint32_t)(opening ^ (opening >> 32));
}

/** What is @a seq, if @a next is the first number that has not been delivered? */
static inline uct_varuna_am_seq_t
uct_varuna_am_seq_judge(uint32_t seq, uint32_t next)
{
    uint32_t ahead = seq - next;

    if (ahead == 0) {
        return UCT_VARUNA_AM_SEQ_NEXT;
    } else if (ahead < UCT_VARUNA_AM_WINDOW) {
        return UCT_VARUNA_AM_SEQ_LATER;
    }

    return ((uint32_t)(next - seq) <= UCT_VARUNA_AM_WINDOW) ?
           UCT_VARUNA_AM_SEQ_REPEATED : UCT_VARUNA_AM_SEQ_FOREIGN;
}

#endif
