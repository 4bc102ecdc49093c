/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Links that an endpoint avoids, as it cannot reach memory over them, and the lives of the peer's
 * NICs of which its keys are. Main thread only.
 */
#ifndef UCT_VARUNA_AVOID_H_
#define UCT_VARUNA_AVOID_H_

#include "varuna_ep.h"

/* --- Generations of the peer's NICs --- */

/** A NIC of the peer may have another generation: drop all keys of earlier ones. */
void uct_varuna_ep_renew_keys(uct_varuna_ep_t *ep);

/** OPEN_REP has brought the key of the logs: drop what is of other generations than those of the
 *  peer's NICs, as far as is known. */
void uct_varuna_ep_check_log_key(uct_varuna_ep_t *ep);

/** @return The generation of a NIC of the peer of which all keys are, since
 *  uct_varuna_ep_renew_keys(). */
static inline uint16_t uct_varuna_ep_generation(const uct_varuna_ep_t *ep, unsigned nic)
{
    return ep->keyless.generations[nic];
}

/** The next lane is made, for the present generation of the peer's NIC. */
static inline void uct_varuna_ep_note_next_generation(uct_varuna_ep_t *ep)
{
    ep->keyless.of_next = ep->peer->links[ep->next.lane.link].generation;
}

/** @return Whether the peer's NIC has another one since then. */
static inline int uct_varuna_ep_next_is_former(const uct_varuna_ep_t *ep)
{
    return ep->keyless.of_next != ep->peer->links[ep->next.lane.link].generation;
}

/* --- Links without a key --- */

/* Links over which an endpoint cannot reach memory, because a NIC of ours or of the peer has not
 * registered it: it was reset since, it hung, or was short of regions. Other links carry the
 * traffic. */

/** @return Links on which the peer's log cannot be written. */
unsigned uct_varuna_ep_logless_links(const uct_varuna_ep_t *ep);

/** @return Links that are not to be used: there is no key for the peer's log, or a request was
 *  refused lately. */
unsigned uct_varuna_ep_keyless_links(const uct_varuna_ep_t *ep);

/** A request on the active lane was refused. @return Whether that is due to a region that a
 *  NIC lacks. Then the lane's link is avoided for a while, longer after each time. */
int uct_varuna_ep_note_keyless(uct_varuna_ep_t *ep);

/**
 * Do not use links for a while, longer after each time.
 *
 * @param [in] refused  Those of them on which a request cannot be executed.
 */
void uct_varuna_ep_avoid_links(uct_varuna_ep_t *ep, unsigned links, unsigned refused);

/** @return Whether there are such links. */
static inline int uct_varuna_ep_avoids_links(const uct_varuna_ep_t *ep)
{
    return ep->keyless.links != 0;
}

/**
 * Use links again on which what waits lacks nothing; those that have refused a request if there is
 * no other one, or for a reason.
 *
 * @param [in] has_learned  The reason: what waits has been given a key, uct_varuna_ep_learn_keys().
 */
void uct_varuna_ep_review_avoided(uct_varuna_ep_t *ep, int has_learned);

#endif
