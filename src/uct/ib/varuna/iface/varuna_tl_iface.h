/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The transport's interface. It derives from the requester's part and from what all
 * rooms share, and adds what belongs to neither: commands from outside, the pace of
 * slow-path work, events.
 */
#ifndef UCT_VARUNA_TL_IFACE_H_
#define UCT_VARUNA_TL_IFACE_H_

#include "varuna_admin.h"
#include <uct/ib/varuna/requester/varuna_requester.h>
#include <uct/ib/varuna/requester/varuna_amo_ops.h>
#include <uct/ib/varuna/responder/varuna_responder.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/api/uct.h>
#include <ucs/config/parser.h>

typedef struct uct_varuna_iface_config {
    uct_iface_config_t         super;
    unsigned                   dc_num_dci;     /* DCI pool of each NIC */
    unsigned                   standby_rx_queue_len; /* 0: inner default */
    unsigned                   spare_qps;      /* RC QPs ready for requesters */
    unsigned                   tx_cq_moderation; /* Operations with one completion */
    double                     hold_min;       /* Link hold-down, seconds */
    double                     hold_max;
    double                     ctl_timeout;    /* Resend control requests */
    double                     give_up;        /* No link left: then fail */
    ucs_time_t                 packet_lifetime;/* Unfenced lanes wait it out */
    double                     peer_timeout;
    double                     drain_timeout;
    ucs_time_t                 return_delay;
    int                        port_events;    /* Listen to port events */
    double                     heartbeat_interval;
    unsigned                   heartbeat_misses;
    double                     hang_timeout;
    double                     orphan_timeout; /* 0: never */
    unsigned                   max_targets;
    char                       *ctl_dir;       /* Of rc_varuna_ctl's sockets */
    int                        ambiguous;      /* uct_varuna_ambiguous_t */
    int                        log;            /* uct_varuna_log_t */
    int                        order;          /* uct_varuna_order_policy_t */
    int                        ordered_sl;
    int                        standby;
    char                       *audit;         /* Directory, or "none" */
} uct_varuna_iface_config_t;

typedef struct uct_varuna_tl_iface {
    uct_varuna_requester_t     super;
    struct {
        unsigned               countdown;     /* Progress calls until the next
                                                 look at the bus, */
        unsigned               left;          /* and from there until the next
                                                 slow-path work */
        unsigned               calls;         /* ... between two of them */
        unsigned               beat_calls;    /* Since app_beat increased */
        ucs_time_t             start;         /* When the countdown began */
        unsigned               received;      /* Messages of the bus, last seen */
        unsigned               hot;           /* Calls in which the bus is polled */
        unsigned               unasked;       /* Times nobody has asked for slow-path
                                                 work */
    } pace;                                   /* varuna_progress.c */
    int                        event_fd;      /* epoll over inner fds, or -1 */
    struct {
        int                    timer_fd;      /* Wakes a sleeping application */
        int                    timer_is_set;
        unsigned               fast_wakes;    /* In a row */
    } wake;                                   /* varuna_progress.c */
    uct_varuna_admin_t         admin;         /* Commands from outside */
    uint8_t                    lives;         /* Links that are to be closed or opened. Owner
                                                 of this and the next two: varuna_join.c */
    struct {
        ucs_time_t             since;         /* So many are there; 0: it is not to be left */
        unsigned               targets;
    } leaves[UCT_VARUNA_MAX_LINKS];
    uct_varuna_backoff_t       joins[UCT_VARUNA_MAX_LINKS]; /* Of links that cannot be
                                                 opened yet */
} uct_varuna_tl_iface_t;

/* --- The VFS tree --- */

/* The interface's counters in UCX's VFS tree. */

/** Show links and vQPs: uct_iface_internal_ops_t::iface_vfs_refresh. */
void uct_varuna_iface_vfs_refresh(uct_iface_h tl_iface);

/* --- Commands from outside --- */

/* An interface as a user of rc_varuna_ctl and rc_varuna.h: obeys their commands, and
 * shows them the states of its links. Main thread. */

/** Register the interface. @a ctl_dir: directory of the socket, see varuna_admin.h. */
void uct_varuna_admin_iface_register(uct_varuna_tl_iface_t *iface,
                                     const char *ctl_dir);

void uct_varuna_admin_iface_unregister(uct_varuna_tl_iface_t *iface);

/** The NIC of a link is used again: the link is up, unless another one was commanded to go. */
void uct_varuna_admin_iface_nic_is_back(uct_varuna_tl_iface_t *iface, unsigned link);

/** Obey the commands given since the last call. */
void uct_varuna_admin_iface_obey(uct_varuna_tl_iface_t *iface, ucs_time_t now);

/* --- Options that are times --- */

/* UCX's parser accepts numbers that cannot be used as a time. varuna_config.c. */

/* Longer times become this one: nobody lives to see the difference, and sums of some of
 * them do not overflow (seconds, 10 years) */
#define UCT_VARUNA_TIMES_MAX         315360000.0

/**
 * Check all options of a table that are times, whichever these are. A time in seconds
 * that is infinite or too long becomes UCT_VARUNA_TIMES_MAX. Negative ones, and those
 * that are no number, are refused with a message.
 *
 * @param [in]    table   Its options of type TIME and TIME_UNITS are looked at.
 * @param [in]    prefix  Of their names.
 * @param [inout] config  Their values.
 *
 * @return UCS_ERR_INVALID_PARAM if one was refused.
 */
ucs_status_t uct_varuna_times_check(const ucs_config_field_t *table, const char *prefix,
                                    void *config);

/* --- Options --- */

/* UCX_RC_VARUNA_*. Called by varuna_iface.c. */

extern ucs_config_field_t uct_varuna_iface_config_table[];

/** Take over the options, within their limits. @return UCS_ERR_INVALID_PARAM, which is
 *  logged, if one of them has no meaning. */
ucs_status_t uct_varuna_iface_set_config(uct_varuna_iface_t *iface,
                                         const uct_varuna_iface_config_t *config);

/** Set the link table up; the file of links has the last word on the policy. */
void uct_varuna_iface_init_link_table(uct_varuna_iface_t *iface,
                                      const uct_varuna_iface_config_t *config);

/* --- Modes of atomics --- */

/* Which code serves a mode of atomics. varuna_modes.c. */

typedef struct uct_varuna_mode {
    const uct_varuna_amo_ops_t    *requester; /* NULL: it is not built */
    const uct_varuna_served_ops_t *responder; /* NULL: the NIC alone serves peers */
} uct_varuna_mode_t;

/** @return The code that serves the mode of a memory domain. */
const uct_varuna_mode_t *uct_varuna_mode(const uct_varuna_md_t *md);

/** In a new child: forget what modes have once for each process. */
void uct_varuna_modes_forked(void);

/* --- Links whose NIC goes and comes back --- */

/* A link is closed when the life of its NIC ends and nothing is there any more, and opened again, as
 * the same link, in the next one (md/varuna_health.h). In between it has no inner interfaces, and
 * peers know it as down. */

/** Close and open what is to be closed and opened. Main thread, not inside progress of an inner
 *  interface. Called in each scan, as long as there is anything. */
void uct_varuna_join_scan(uct_varuna_tl_iface_t *iface, ucs_time_t now);

/** Take what the control plane has noted. */
void uct_varuna_join_take(uct_varuna_tl_iface_t *iface);

/** The same, if there is anything. */
static inline void uct_varuna_join_progress(uct_varuna_tl_iface_t *iface)
{
    if (__atomic_load_n(&iface->super.super.ctl->announce.lives, __ATOMIC_ACQUIRE) != 0) {
        uct_varuna_join_take(iface);
    }
}

#endif
