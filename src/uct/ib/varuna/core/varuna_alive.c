/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Judges the paths to one peer. See varuna_alive.h.
 */
#include "varuna_alive.h"

#include <ucs/sys/math.h>

#include <limits.h>
#include <string.h>
#include <stddef.h>

/* Answers to older pings than this are no news */
#define UCT_VARUNA_ALIVE_WINDOW 1024

/* Count the answers of the last interval. */
static void uct_varuna_alive_count(uct_varuna_alive_path_t *path)
{
    if (path->heard) {
        path->misses = 0;
    } else if (path->asked && (path->misses < UINT_MAX)) {
        ++path->misses;
    }

    path->asked = 0;
    path->heard = 0;
}

/* Another path has answered since @a link has not. */
static int uct_varuna_alive_has_witness(const uct_varuna_alive_t *alive,
                                        unsigned reach, unsigned link)
{
    ucs_time_t since = alive->paths[link].since;
    unsigned witness;

    ucs_for_each_bit(witness, reach & ~UCS_BIT(link)) {
        if ((alive->paths[witness].answered_at >= since) &&
            (alive->paths[witness].misses == 0)) {
            return 1;
        }
    }

    return 0;
}

int uct_varuna_alive_is_silent(const uct_varuna_alive_t *alive, unsigned reach,
                               unsigned link, unsigned misses)
{
    return (alive->paths[link].misses >= misses) &&
           uct_varuna_alive_has_witness(alive, reach, link);
}

void uct_varuna_alive_tick(uct_varuna_alive_t *alive, unsigned reach,
                           unsigned used, unsigned far_down,
                           unsigned max_misses,
                           uct_varuna_alive_verdict_t *verdict)
{
    int is_silent = 0;
    int is_heard  = 0;
    unsigned held = 0;
    uct_varuna_alive_path_t *path;
    unsigned link, enough;

    memset(verdict, 0, sizeof(*verdict));
    verdict->ping = used & reach;
    ucs_for_each_bit(link, reach) {
        path      = &alive->paths[link];
        is_heard |= path->heard;
        if (path->held && !path->heard) {
            held |= UCS_BIT(link);
        } else {
            uct_varuna_alive_count(path);
        }
        path->held = 0;
    }

    ucs_for_each_bit(link, used & reach) {
        path = &alive->paths[link];
        if (path->misses == 0) {
            continue;
        }

        verdict->ping = reach; /* Call for witnesses */
        enough        = (far_down & UCS_BIT(link)) ? 1 : max_misses;
        if (path->misses < enough) {
            continue;
        }

        if (!uct_varuna_alive_has_witness(alive, reach, link)) {
            is_silent |= (path->misses >= max_misses);
        } else if (!path->condemned) {
            path->condemned = 1;
            verdict->dead  |= UCS_BIT(link);
        }
    }

    if (is_heard) {
        verdict->spoke = alive->silent;
        alive->silent  = 0;
    } else if (is_silent && !alive->silent) {
        verdict->became_silent = 1;
        alive->silent          = 1;
    }

    verdict->ping &= ~held;
}

uint32_t uct_varuna_alive_next(const uct_varuna_alive_t *alive, unsigned link)
{
    uint32_t seq = alive->paths[link].seq + 1;

    return (seq == 0) ? 1 : seq;
}

uint32_t uct_varuna_alive_ping(uct_varuna_alive_t *alive, unsigned link,
                               ucs_time_t now)
{
    uct_varuna_alive_path_t *path = &alive->paths[link];

    if ((path->misses == 0) && !path->asked) {
        path->since = now;
    }

    if (!path->asked) {
        path->first_at = now;
    }

    path->asked    = 1;
    path->asked_at = now;
    path->seq      = uct_varuna_alive_next(alive, link);
    return path->seq;
}

void uct_varuna_alive_hold(uct_varuna_alive_t *alive, unsigned link)
{
    alive->paths[link].held = 1;
}

void uct_varuna_alive_unask(uct_varuna_alive_t *alive, unsigned link)
{
    alive->paths[link].asked = 0;
}

void uct_varuna_alive_reset(uct_varuna_alive_t *alive, unsigned link)
{
    uct_varuna_alive_path_t *path = &alive->paths[link];

    path->misses    = 0;
    path->asked     = 0;
    path->condemned = 0;
}

int uct_varuna_alive_pong(uct_varuna_alive_t *alive, unsigned link,
                          uint32_t seq, ucs_time_t now)
{
    uct_varuna_alive_path_t *path = &alive->paths[link];

    if ((path->seq == 0) || ((path->seq - seq) > UCT_VARUNA_ALIVE_WINDOW)) {
        return 0;
    }

    path->heard     = 1;
    path->condemned = 0;
    if (seq == path->seq) {
        path->proved_at = path->asked_at;
    }
    __atomic_store_n(&path->answered_at, now, __ATOMIC_RELEASE);
    return 1;
}

/* --- Diagnosis: the evidence on a silent path --- */

const char *uct_varuna_fault_names[] = {
    [UCT_VARUNA_FAULT_UNKNOWN] = "unknown fault",
    [UCT_VARUNA_FAULT_LOCAL]   = "local fault",
    [UCT_VARUNA_FAULT_REMOTE]  = "remote fault",
    [UCT_VARUNA_FAULT_BOTH]    = "local and remote fault",
    [UCT_VARUNA_FAULT_LAST]    = NULL
};

uct_varuna_fault_t uct_varuna_diagnose(const uct_varuna_symptoms_t *evidence,
                                       const char **why_p)
{
    if (evidence->our_port_down && evidence->far_port_down) {
        *why_p = "our port is down, and the peer says that its port is";
        return UCT_VARUNA_FAULT_BOTH;
    }

    if (evidence->our_port_down) {
        *why_p = "our port is down";
        return UCT_VARUNA_FAULT_LOCAL;
    }

    if (evidence->far_port_down) {
        *why_p = "the peer says that its port is down";
        return UCT_VARUNA_FAULT_REMOTE;
    }

    if (evidence->inside) {
        *why_p = "what we send to the peer does not leave our port";
        return UCT_VARUNA_FAULT_LOCAL;
    }

    if (evidence->neighbours_answer) {
        *why_p = "other peers answer on this link, behind the same port";
        return UCT_VARUNA_FAULT_REMOTE;
    }

    if (evidence->others_answer) {
        *why_p = "other peers answer on this link";
        return UCT_VARUNA_FAULT_REMOTE;
    }

    if (evidence->others_silent) {
        *why_p = "peers behind other ports are silent on this link, too, and "
                 "none answers: it is our port, its cable or its switch";
        return UCT_VARUNA_FAULT_LOCAL;
    }

    *why_p = "our port, the peer's, or what is between them: no other peer "
             "answered on this link";
    return UCT_VARUNA_FAULT_UNKNOWN;
}
