/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Keeps dead peers from occupying all DCIs of the control plane: a message to a dead
 * process holds one until its retries are exhausted, and messages to living ones would
 * wait. A peer is doubtful on a link while the last message to it there has failed; such
 * peers share UCT_VARUNA_CTL_MAX_DOUBTFUL DCIs, and a message that finds none of them free
 * is not sent. Called by varuna_ctl_send.c, lock held.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_doubt.h"
#include "varuna_ctl.h"
#include "varuna_peer.h"


/* Free the places of messages which have left, and believe in those peers again. */
static void uct_varuna_doubt_sweep(uct_varuna_ctl_link_t *link)
{
    const uct_varuna_ctl_t *ctl = link->ctl;
    uct_varuna_ctl_ep_t *ep;
    unsigned i;

    for (i = 0; i < UCT_VARUNA_CTL_MAX_DOUBTFUL; ++i) {
        ep = link->doubtful[i];
        if ((ep == NULL) ||
            !uct_varuna_ctl_ep_is_drained(ctl, ep)) {
            continue;
        }

        if (!ep->failed && (ep->peer != NULL)) {
            ep->peer->doubtful &= ~UCS_BIT(ep->link);
        }
        link->doubtful[i] = NULL;
    }
}

/* @return the place of @a ep, or with NULL a free one; -1 if there is none. */
static int uct_varuna_doubt_find(const uct_varuna_ctl_link_t *link,
                                 const uct_varuna_ctl_ep_t *ep)
{
    unsigned i;

    for (i = 0; i < UCT_VARUNA_CTL_MAX_DOUBTFUL; ++i) {
        if (link->doubtful[i] == ep) {
            return i;
        }
    }

    return -1;
}

static uct_varuna_ctl_ep_t *
uct_varuna_doubt_ctl_ep(const uct_varuna_ctl_t *ctl,
                        const uct_varuna_peer_t *peer, unsigned link)
{
    khiter_t iter;

    if (peer->ctl_eps[link] == NULL) {
        return NULL;
    }

    iter = kh_get(uct_varuna_ctl_eps, &ctl->eps, (uintptr_t)peer->ctl_eps[link]);
    return kh_val(&ctl->eps, iter);
}

int uct_varuna_doubt_may_post(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                              unsigned link)
{
    uct_varuna_ctl_ep_t *ep;

    if (!(peer->doubtful & UCS_BIT(link))) {
        return 1;
    }

    uct_varuna_doubt_sweep(&ctl->links[link]);
    ep = uct_varuna_doubt_ctl_ep(ctl, peer, link);
    return ((ep != NULL) &&
            (uct_varuna_doubt_find(&ctl->links[link], ep) >= 0)) ||
           (uct_varuna_doubt_find(&ctl->links[link], NULL) >= 0);
}

int uct_varuna_doubt_admit(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep)
{
    uct_varuna_ctl_link_t *link = &ctl->links[ep->link];
    int place;

    uct_varuna_doubt_sweep(link);
    if (uct_varuna_doubt_find(link, ep) >= 0) {
        return 1;
    }

    place = uct_varuna_doubt_find(link, NULL);
    if (place < 0) {
        return 0;
    }

    link->doubtful[place] = ep;
    return 1;
}

void uct_varuna_doubt_posted(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                             unsigned link)
{
    uct_varuna_ctl_ep_t *ep;
    int place;

    if (!(peer->doubtful & UCS_BIT(link))) {
        return;
    }

    ep = uct_varuna_doubt_ctl_ep(ctl, peer, link);
    if (uct_varuna_doubt_find(&ctl->links[link], ep) < 0) {
        place = uct_varuna_doubt_find(&ctl->links[link], NULL);
        if (place >= 0) {
            ctl->links[link].doubtful[place] = ep;
            ep->since                        = uct_varuna_ctl_now(ctl);
        }
    }
}

void uct_varuna_doubt_failed(uct_varuna_peer_t *peer, unsigned link)
{
    peer->doubtful |= UCS_BIT(link);
}

int uct_varuna_doubt_has_place(const uct_varuna_ctl_t *ctl,
                               const uct_varuna_ctl_ep_t *ep)
{
    return uct_varuna_doubt_find(&ctl->links[ep->link], ep) >= 0;
}

void uct_varuna_doubt_forget(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep)
{
    uct_varuna_ctl_link_t *link = &ctl->links[ep->link];
    int place                   = uct_varuna_doubt_find(link, ep);

    if (place >= 0) {
        link->doubtful[place] = NULL;
    }
}
