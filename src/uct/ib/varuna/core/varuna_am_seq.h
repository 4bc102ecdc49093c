/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Sequence numbers of a vQP's active messages: 32 bits, which wrap around. They start
 * with a number that only the vQP's two ends know, so that no other process can send a
 * message in the requester's name. Pure. Used by both ends.
 */
#ifndef UCT_VARUNA_AM_SEQ_H_
#define UCT_VARUNA_AM_SEQ_H_

#include "varuna_def.h"

#include <ucs/sys/math.h>

#include <stdint.h>

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

/** @return The first number of the vQP whose opening (varuna_secret.h) this is. */
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
