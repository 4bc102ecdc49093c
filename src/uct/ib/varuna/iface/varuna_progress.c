/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Progress of the interface: the inner interfaces in each call, the bus in some, and
 * slow-path work now and then, or when there is some. Called by UCT.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_admin_iface.h"
#include <uct/ib/varuna/ctl/varuna_ctl_receive.h>
#include <uct/ib/varuna/ctl/varuna_moves_apply.h>
#include <uct/ib/varuna/ctl/varuna_notify.h>
#include "varuna_progress.h"
#include <uct/ib/varuna/lanes/varuna_grave.h>
#include <uct/ib/varuna/requester/varuna_eps.h>
#include <uct/ib/varuna/requester/varuna_scan.h>
#include <uct/ib/varuna/responder/varuna_gap.h>
#include <uct/ib/varuna/responder/varuna_responder_open.h>

#define UCT_VARUNA_PACE_CALLS        256  /* progress calls between slow-path work, at
                                             most */
#define UCT_VARUNA_BEAT_CALLS        64   /* ... that make the application beat */
#define UCT_VARUNA_BUS_CALLS         16   /* ... between looks at the bus and the clock */
#define UCT_VARUNA_UNASKED           8    /* times slow-path work is done unasked,
                                             the responder's once */
#define UCT_VARUNA_BUS_HOT           64   /* calls that poll the bus after each message */

/* The next @a calls end with slow-path work */
static void uct_varuna_iface_pace_set(uct_varuna_tl_iface_t *iface, unsigned calls)
{
    iface->pace.countdown = ucs_min(calls, (iface->pace.hot > 0) ? 1 :
                                    UCT_VARUNA_BUS_CALLS);
    iface->pace.left      = calls - iface->pace.countdown;
}

void uct_varuna_iface_init_pace(uct_varuna_tl_iface_t *iface)
{
    iface->pace.calls      = UCT_VARUNA_PACE_CALLS;
    iface->pace.beat_calls = 0;
    iface->pace.start      = ucs_get_time();
    iface->pace.received   = 0;
    iface->pace.hot        = 0;
    uct_varuna_iface_pace_set(iface, UCT_VARUNA_PACE_CALLS);
}

void uct_varuna_iface_pace_now(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_iface_pace_set(iface, 1);
}

/* Read the clock after as many calls as take a scan's period: in each call of an
 * application that calls progress every 10 ms. The application beats after the number of
 * calls in which UCX gives the receive queue new buffers. */
static void uct_varuna_iface_pace(uct_varuna_tl_iface_t *iface, ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;
    int is_early             = (iface->pace.countdown + iface->pace.left) > 0;
    ucs_time_t elapsed       = now - iface->pace.start;

    iface->pace.beat_calls += is_early ? UCT_VARUNA_BEAT_CALLS : iface->pace.calls;
    if (iface->pace.beat_calls >= UCT_VARUNA_BEAT_CALLS) {
        iface->pace.beat_calls = 0;
        __atomic_store_n(&base->app_beat, base->app_beat + 1, __ATOMIC_RELAXED);
    }

    if (!is_early) {
        iface->pace.calls = ucs_min(UCT_VARUNA_PACE_CALLS,
                                    iface->pace.calls *
                                    ucs_time_from_sec(UCT_VARUNA_SCAN_PERIOD) /
                                    ucs_max(elapsed, 1));
        iface->pace.calls = ucs_max(iface->pace.calls, 1);
    }

    iface->pace.start = now;
    uct_varuna_iface_pace_set(iface, iface->pace.calls);
}

static void uct_varuna_iface_scan(uct_varuna_tl_iface_t *iface, ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;

    uct_varuna_link_tick(&base->link_table, now);
    uct_varuna_admin_publish(&iface->admin, &base->link_table);
    uct_varuna_scan(&iface->super, now);
}

/* Everything beyond the inner interfaces' own progress. The result is never counted: a
 * count announces messages or completions of the caller, and UCP requires a new
 * interface to have none. */
static UCS_F_NOINLINE void uct_varuna_iface_progress_slow(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_requester_t *requester = &iface->super;
    uct_varuna_iface_t *base          = &requester->super;
    ucs_time_t now;
    int is_asked;

    /* What is stored from now on sets it again */
    is_asked = __atomic_exchange_n(&base->has_slow, 0, __ATOMIC_SEQ_CST);

    now = ucs_get_time();
    uct_varuna_iface_pace(iface, now);
    uct_varuna_moves_progress(base->ctl);
    if (uct_varuna_ctl_has_events(base->ctl)) {
        uct_varuna_ctl_dispatch(base->ctl);
    }

    if (is_asked || ((++iface->pace.unasked % UCT_VARUNA_UNASKED) == 0)) {
        uct_varuna_responder_progress(base->responder);
    }

    if (ucs_unlikely(base->want_dry)) {
        uct_varuna_lanes_poll_dry(base);
    } else if (ucs_unlikely(!ucs_list_is_empty(&requester->work))) {
        uct_varuna_lanes_poll_more(base);
    }

    now = ucs_get_time(); /* Users' callbacks may take their time */
    uct_varuna_admin_iface_obey(iface, now);
    if (uct_varuna_scan_is_due(requester, now)) {
        uct_varuna_iface_scan(iface, now);
    }

    uct_varuna_requester_progress(requester, now);
    uct_varuna_gap_progress(base->responder);
    if (ucs_unlikely(!ucs_list_is_empty(&base->graveyard))) {
        uct_varuna_graves_progress(base);
    }

    /* Nobody sets it when a control message arrives where there is no thread */
    if (!ucs_list_is_empty(&requester->work) || uct_varuna_ctl_has_events(base->ctl)) {
        uct_varuna_iface_set_slow(base);
    }
}

/* A peer that has sent something is likely to wait for an answer, and to send more */
static void uct_varuna_iface_pace_bus(uct_varuna_tl_iface_t *iface)
{
    unsigned received = uct_varuna_ctl_num_received(iface->super.super.ctl);

    if (received != iface->pace.received) {
        iface->pace.received = received;
        iface->pace.hot      = UCT_VARUNA_BUS_HOT;
    } else if (iface->pace.hot > 0) {
        --iface->pace.hot;
    }
}

/* The application calls progress less often than before */
static int uct_varuna_iface_pace_is_late(const uct_varuna_tl_iface_t *iface)
{
    return (ucs_get_time() - iface->pace.start) >=
           ucs_time_from_sec(UCT_VARUNA_SCAN_PERIOD);
}

/* What the bus brings may be slow-path work */
static UCS_F_NOINLINE unsigned uct_varuna_iface_progress_more(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_iface_t *base = &iface->super.super;

    if (!uct_varuna_ctl_has_events(base->ctl)) {
        uct_varuna_ctl_poll(base->ctl);
    } /* Else uct_varuna_ctl_dispatch() does */

    uct_varuna_iface_pace_bus(iface);
    if (!__atomic_load_n(&base->has_slow, __ATOMIC_RELAXED) &&
        (iface->pace.left > 0) && !uct_varuna_iface_pace_is_late(iface)) {
        uct_varuna_iface_pace_set(iface, iface->pace.left);
        return 0;
    }

    uct_varuna_iface_progress_slow(iface);
    if (iface->pace.calls > UCT_VARUNA_BUS_CALLS) {
        return 0; /* Soon it is each lane's turn */
    }

    return uct_varuna_lanes_progress(base);
}

/* Every eighth call, and while there is slow-path work */
static UCS_F_NOINLINE unsigned
uct_varuna_iface_progress_eighth(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_iface_t *base = &iface->super.super;
    unsigned count           = 0;

    if (__atomic_load_n(&base->has_slow, __ATOMIC_RELAXED) ||
        (iface->pace.countdown == 0)) {
        count = uct_varuna_iface_progress_more(iface);
    }

    count += uct_varuna_lanes_poll(base);
    return count + uct_varuna_lanes_poll_standby(base);
}

/* In most calls: is there slow-path work, and has a lane something? */
static UCS_F_ALWAYS_INLINE unsigned
uct_varuna_iface_progress_inline(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_iface_t *base = &iface->super.super;

    UCS_STATIC_ASSERT((UCT_VARUNA_BUS_CALLS % UCT_VARUNA_STANDBY_POLLS) == 0);
    if (ucs_unlikely(__atomic_load_n(&base->has_slow, __ATOMIC_RELAXED) ||
                     ((--iface->pace.countdown % UCT_VARUNA_STANDBY_POLLS) == 0))) {
        return uct_varuna_iface_progress_eighth(iface);
    }

    return uct_varuna_lanes_poll(base);
}

static unsigned uct_varuna_iface_progress_cb(void *arg)
{
    return uct_varuna_iface_progress_inline(arg);
}

unsigned uct_varuna_iface_progress(uct_iface_h tl_iface)
{
    return uct_varuna_iface_progress_inline(ucs_derived_of(tl_iface,
                                                           uct_varuna_tl_iface_t));
}

/* The callbacks of the inner interfaces are not registered: this one polls them. Their
 * receives are posted since they were opened. */
void uct_varuna_iface_progress_enable(uct_iface_h tl_iface, unsigned flags)
{
    uct_base_iface_progress_enable_cb(ucs_derived_of(tl_iface, uct_base_iface_t),
                                      uct_varuna_iface_progress_cb, flags);
}

void uct_varuna_iface_progress_disable(uct_iface_h tl_iface, unsigned flags)
{
    uct_base_iface_progress_disable(tl_iface, flags);
}
