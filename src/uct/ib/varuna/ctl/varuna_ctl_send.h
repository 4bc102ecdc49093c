/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Sending of control messages. Lock held in all but uct_varuna_ctl_send().
 */
#ifndef UCT_VARUNA_CTL_SEND_H_
#define UCT_VARUNA_CTL_SEND_H_

#include "varuna_ctl.h"
#include "varuna_peer.h"
#include <uct/ib/varuna/core/varuna_def.h>
#include <ucs/time/time.h>

/**
 * Send one control message on @a link (a local link index). Main thread or
 * async context. No resource: queued inside. Without a reference to @a peer of its
 * own, the caller must not use it afterwards.
 *
 * @param [in] whose  Its secret, vqp, epoch and opening are sent; nothing else of
 *                    it.
 */
ucs_status_t uct_varuna_ctl_send(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                 unsigned link, uct_varuna_ctl_type_t type,
                                 const uct_varuna_ctl_hdr_t *whose,
                                 const void *body, size_t length);

/** Answer the request @a hdr, which came over @a link. */
void uct_varuna_ctl_reply(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                          unsigned link, const uct_varuna_ctl_hdr_t *hdr,
                          uct_varuna_ctl_type_t type, const void *body,
                          size_t length);

/** Try again what waits in the queue. One peer which can't be sent to doesn't hold
 * up the others; messages to one peer stay in order on a link. */
void uct_varuna_ctl_flush_queue(uct_varuna_ctl_t *ctl);

void uct_varuna_ctl_msg_free(uct_varuna_ctl_t *ctl,
                             uct_varuna_ctl_msg_t *msg);

/** Append our address, for a receiver that has to refuse the message. There is room for
 * UCT_VARUNA_CTL_MAX_FROM bytes. @return The number of bytes used. */
size_t uct_varuna_ctl_append_from(const uct_varuna_ctl_t *ctl, unsigned link,
                                  uct_varuna_ctl_hdr_t *hdr);

/** Local link over which to answer: @a link if it reaches the peer, and its NIC is not gone
 *  since. */
unsigned uct_varuna_ctl_reply_link(const uct_varuna_ctl_t *ctl,
                                   const uct_varuna_peer_t *peer, unsigned link);

/* --- Repeated requests --- */

/* A request that is repeated, over one link after the other, until it is answered or
 * given up: when to send it, over which link, and when to stop. Pure; the caller
 * sends the message and brings the time.
 *
 *   start --> check: SEND --> next (a link) --> send --> check: WAIT ... SEND ...
 *                \                                          \
 *                 +-- stop (answered)                        +-- GIVE_UP */

/* How requests of one kind are repeated. */
typedef struct uct_varuna_retry_policy {
    ucs_time_t                 interval;   /* From a try to the next one */
    unsigned                   backoff;    /* The interval doubles with each try, so
                                              often at most */
    unsigned                   max_tries;  /* 0: no limit */
    ucs_time_t                 give_up;    /* Time without an answer; 0: no limit */
} uct_varuna_retry_policy_t;

typedef struct uct_varuna_retry {
    ucs_time_t                 since;      /* Start, by the give-up clock */
    ucs_time_t                 due;        /* Next try */
    unsigned                   tries;
    uint8_t                    link;       /* Of the last try, LINK_NONE: none yet */
    uint8_t                    is_active;  /* Started, and not stopped since */
} uct_varuna_retry_t;

typedef enum {
    UCT_VARUNA_RETRY_WAIT,                 /* Nothing to do now */
    UCT_VARUNA_RETRY_SEND,                 /* A try is due */
    UCT_VARUNA_RETRY_GIVE_UP               /* A limit of the policy is exceeded */
} uct_varuna_retry_verdict_t;

/**
 * Begin a request.
 *
 * @param [in] due    Time of the first try; 0: as soon as possible.
 * @param [in] clock  The clock for giving up. It need not be the one of @a due: one
 *                    that stops while the application does not call progress gives
 *                    answers a chance that arrived meanwhile.
 */
void uct_varuna_retry_start(uct_varuna_retry_t *retry, ucs_time_t due,
                            ucs_time_t clock);

/** End it: it was answered, or is not wanted any more. */
void uct_varuna_retry_stop(uct_varuna_retry_t *retry);

/** @return What to do at @a now, which is @a clock by the clock for giving up. WAIT if
 *  the request was not started. */
uct_varuna_retry_verdict_t
uct_varuna_retry_check(const uct_varuna_retry_t *retry,
                       const uct_varuna_retry_policy_t *policy, ucs_time_t now,
                       ucs_time_t clock);

/**
 * Count a try at @a now, and choose its link.
 *
 * @param [in] first  Link of the first try, if @a map has it; LINK_NONE: any. Later
 *                    tries use the links of @a map in turn, since silence may mean that
 *                    the last link is dead.
 * @param [in] map    Links over which the request may be sent; not empty.
 *
 * @return The link.
 */
unsigned uct_varuna_retry_next(uct_varuna_retry_t *retry,
                               const uct_varuna_retry_policy_t *policy,
                               unsigned first, unsigned map, ucs_time_t now);

/** @return Whether it was sent, and is not answered yet. */
static inline int uct_varuna_retry_is_asking(const uct_varuna_retry_t *retry)
{
    return retry->is_active && (retry->tries > 0);
}

#endif
