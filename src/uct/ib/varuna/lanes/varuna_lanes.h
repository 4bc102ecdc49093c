/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The interface as all rooms know it: the inner interfaces of all links, the states of
 * the links, identity and options, each part with one owner. The requester's part
 * (varuna_requester.h) and the transport's (iface/varuna_tl_iface.h) derive from it.
 */
#ifndef UCT_VARUNA_LANES_H_
#define UCT_VARUNA_LANES_H_

#include <uct/ib/varuna/core/varuna_link.h>
#include <uct/ib/varuna/core/varuna_oplog.h>
#include <uct/ib/varuna/core/varuna_numbers.h>
#include <uct/ib/varuna/core/varuna_wire.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/ucx/varuna_mlx5.h>
#include <uct/ib/varuna/ucx/varuna_mlx5_dev.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <uct/base/uct_iface.h>
#include <ucs/datastruct/list.h>
#include <ucs/sys/math.h>
#include <uct/ib/varuna/core/varuna_def.h>

/* "rc", "dc"; by uct_varuna_lane_kind_t */
extern const char *uct_varuna_lane_names[];

/* Which requests write log entries. */
typedef enum {
    UCT_VARUNA_LOG_ALL,
    UCT_VARUNA_LOG_FALLBACK,
    UCT_VARUNA_LOG_LAST
} uct_varuna_log_t;

/* What to do with a request that may or may not have been executed. */
typedef enum {
    UCT_VARUNA_AMBIGUOUS_REPEAT,
    UCT_VARUNA_AMBIGUOUS_FAIL,
    UCT_VARUNA_AMBIGUOUS_LAST
} uct_varuna_ambiguous_t;

#define UCT_VARUNA_MAX_LANES         (UCT_VARUNA_MAX_LINKS * UCT_VARUNA_LANE_LAST)

/* One inner data interface; the argument of its handlers */
typedef struct uct_varuna_lane_iface {
    uct_varuna_iface_t         *iface;
    uct_iface_h                inner;
    uct_iface_attr_t           attr;
    uint8_t                    link;   /* Index in iface->links */
    uint8_t                    kind;   /* uct_varuna_lane_kind_t */
    uint8_t                    want_dry; /* dry_at is waited for */
    uint8_t                    order;  /* Of the network on which it sends, an
                                          uct_varuna_order_t */
    uint8_t                    rx_order; /* Of its queue pairs that receive, as read from
                                            the first one. Protected by ctl's lock */
    uint8_t                    is_rx_order_read;
    unsigned                   num_eps;  /* Of requesters, in DC; their graves too */
    unsigned                   armed;    /* Its next completion raises one of these events.
                                            Owner: varuna_lanes.c */
    ucs_time_t                 dry_at; /* When it was last polled
                                  until it was empty, on demand */
} uct_varuna_lane_iface_t;

/* How to poll a lane */
typedef struct uct_varuna_lane_poll {
    uct_iface_h                inner;
    uct_varuna_tl_poll_func_t  func;
} uct_varuna_lane_poll_t;

/* One local link, as this interface uses it */
struct uct_varuna_link {
    const uct_varuna_set_t     *set;   /* Which lanes it has */
    uint8_t                    nic;    /* Index in md->nics and packed keys */
    uct_varuna_lane_iface_t    lanes[UCT_VARUNA_LANE_LAST];
    uct_device_addr_t          *device_addr;
    size_t                     device_addr_len;
    uct_varuna_mlx5_addr_t     addr;   /* Of its port, when device_addr was read.
                                          Main thread, with the lock of ctl */
    uct_varuna_sl_move_t       sl_move; /* To a level in order. Owner:
                                           varuna_lane_open.c */
    uint8_t                    sl_is_dead; /* ... which has carried nothing */
    uint8_t                    is_closed; /* Its NIC is away: nothing of it is open. With the
                                          lock of ctl */
    uint8_t                    is_user;   /* Of its NIC, see uct_varuna_md_link_open() */
    uint32_t                   left;      /* See uct_varuna_md_link_set_left() */
    uint32_t                   num_kept;  /* Receive buffers that the user has */
    uint8_t                    is_late; /* Its port was not active when its interfaces
                                          were opened. With the lock of ctl */
};

/* What the inner interfaces call; the argument is the uct_varuna_lane_iface_t. */
typedef struct uct_varuna_lane_handlers {
    uct_error_handler_t        error;
    uct_am_callback_t          am;
} uct_varuna_lane_handlers_t;

struct uct_varuna_iface {
    uct_base_iface_t           super;
    uct_varuna_md_t            *md;
    uct_varuna_ctl_t           *ctl;          /* NULL while it is not open */
    uct_varuna_responder_t     *responder;    /* NULL while it is not open */

    /* Who we are. Owner: varuna_lanes.c, which chooses them */
    uint64_t                   uuid;          /* Random, in our address */
    uct_varuna_secret_key_t    secret_key;    /* Of our secrets for peers */

    /* The inner interfaces. Owner: varuna_lane_open.c */
    unsigned                   num_links;
    uct_varuna_link_t          links[UCT_VARUNA_MAX_LINKS]; /* By priority */
    uct_iface_attr_t           attr;          /* Minimum over all lanes */
    struct {
        unsigned               num;
        uint8_t                nics[UCT_VARUNA_MAX_LINKS]; /* The nearest first */
    } further;                                /* Not used yet. Owner: varuna_lanes.c */
    size_t                     rx_headroom;   /* The user's, before AM descriptors */
    uint32_t                   foreign;       /* AMs of other ids; atomic */

    struct {                                  /* To open one of them once more. Owner:
                                                 varuna_lane_open.c */
        uct_worker_h           worker;
        uct_iface_params_t     params;
        const uct_varuna_lane_handlers_t *handlers;
        int                    epoll_fd;      /* -1: they are in no set */
        uint8_t                failed;        /* The link on which something could not be
                                                 opened, UCT_VARUNA_LINK_NONE: none */
    } opening;

    struct {                                  /* Commands to NICs. Owner:
                                                 varuna_link_cmd.c */
        uct_varuna_cmd_sink_t  sink;
        int                    is_open;
        uint8_t                left;          /* Links whose NIC hung when the interface
                                                 was closed: nothing of them is released */
    } cmds;

    /* The states of the links. Owner: varuna_lanes.c */
    uct_varuna_link_table_t    link_table;
    unsigned                   failures;      /* Of links and paths so far: the
                                                 background scan looks at all
                                                 endpoints after each */
    uint32_t                   beat;          /* Increases with these, and when the user
                                                 fences the interface: endpoints look
                                                 around before they post */

    /* What must be polled */
    ucs_list_link_t            graveyard;     /* uct_varuna_grave_t. Owner:
                                                 varuna_rest.c */
    struct {
        ucs_list_link_t        eps;           /* uct_varuna_rest_t */
        uint32_t               num;
        uint32_t               num_early;     /* Destroyed before their time */
        uint8_t                is_closed;     /* None rests any more */
    } rest;                                   /* Owner: varuna_rest.c */
    int                        want_dry;      /* Some lane must be polled dry. Owner:
                                                 varuna_lanes.c; set by all that need
                                                 it */
    int                        has_slow;      /* Progress has slow-path work: atomic.
                                                 Any thread stores the work first,
                                                 then this */
    struct {
        uint32_t               busy;          /* Those that are polled in each call */
        uint32_t               more;          /* Of these, all but the first */
        uct_varuna_lane_poll_t first;         /* The only busy one, or a function that
                                                 polls all of these */
        uint8_t                next;          /* Of the others, the next one */
        uint32_t               all;           /* Positions with a lane */
        uint16_t               idle[UCT_VARUNA_MAX_LANES]; /* Calls in which nothing
                                                 was found */
        uct_varuna_lane_poll_t lanes[UCT_VARUNA_MAX_LANES];
    } poll;                                   /* Lanes by position. Owner:
                                                 varuna_lanes.c */
    uint32_t                   app_beat;      /* Increases when the application
                                                 calls progress: atomic, for
                                                 answers to pings. Owner:
                                                 iface/varuna_progress.c */

    struct {                                  /* Options. Owner: varuna_config.c, they
                                                 do not change after opening */
        unsigned               dc_num_dci;
        unsigned               standby_rx_queue_len;
        unsigned               spare_qps;
        unsigned               tx_cq_moderation;   /* At least 1 */
        ucs_time_t             ctl_timeout;
        ucs_time_t             give_up;
        ucs_time_t             packet_lifetime;
        ucs_time_t             peer_timeout;       /* 0: never */
        ucs_time_t             drain_timeout;
        ucs_time_t             heartbeat_interval; /* 0: on demand only */
        unsigned               heartbeat_misses;
        ucs_time_t             hang_timeout;       /* 0: never */
        ucs_time_t             orphan_timeout;     /* 0: never */
        unsigned               max_targets;
        uct_varuna_ambiguous_t ambiguous;
        uct_varuna_log_t       log;
        uct_varuna_order_policy_t order;
        int                    ordered_sl; /* Service levels may change */
        int                    standby;  /* Without DC, RC is also connected in advance */
        int                    port_events;
    } config;
};

UCS_CLASS_DECLARE(uct_varuna_iface_t, uct_iface_ops_t*, uct_iface_internal_ops_t*,
                  uct_md_h, uct_worker_h, const uct_iface_params_t*,
                  const uct_iface_config_t*)

/** @return Name of a port, for people. */
static inline const char *
uct_varuna_link_name(const uct_varuna_iface_t *iface, unsigned link)
{
    return (link == UCT_VARUNA_LINK_NONE) ? "no link" :
           iface->md->nics[iface->links[link].nic].dev_name;
}

/** @return The transports of a link. */
static inline const uct_varuna_set_t *
uct_varuna_link_set(const uct_varuna_iface_t *iface, unsigned link)
{
    return iface->links[link].set;
}

/** @return Bytes of the primary's device address that UCP tells peers. */
static inline size_t uct_varuna_iface_outer_len(const uct_varuna_iface_t *iface)
{
    return ucs_min(iface->links[0].device_addr_len, iface->attr.device_addr_len);
}

/** @return The lane of a link whose endpoints are connected. */
static inline const uct_varuna_lane_iface_t *
uct_varuna_link_rc(const uct_varuna_link_t *link)
{
    return &link->lanes[link->set->fast];
}

/** @return The lane from which a link's address is read. */
static inline const uct_varuna_lane_iface_t *
uct_varuna_link_base(const uct_varuna_link_t *link)
{
    return &link->lanes[(link->set->fallback == UCT_VARUNA_LANE_NONE) ?
                        link->set->fast : link->set->fallback];
}

/** @return Whether an inner endpoint is on a data lane of this link. */
int uct_varuna_link_is_of(const uct_varuna_iface_t *iface, unsigned link, uct_ep_h ep);

/** @return The transport of an inner endpoint of a data lane. */
uct_varuna_lane_kind_t uct_varuna_lane_kind_of(const uct_varuna_iface_t *iface,
                                               uct_ep_h ep);

/** Open the inner interfaces of all links. In case of an error iface->opening.failed is the
 *  link to which it belongs. */
ucs_status_t uct_varuna_lanes_open(uct_varuna_iface_t *iface, uct_worker_h worker,
                                   const uct_iface_params_t *params,
                                   const uct_varuna_lane_handlers_t *handlers);

/** @return The NICs of all links, by the first port of each. */
uint8_t uct_varuna_lanes_nics(const uct_varuna_iface_t *iface);

/**
 * Close the inner interfaces of a link that nothing uses, while the others go on. Its address
 * and attributes stay. Main thread, not inside progress of an inner interface; lock of ctl.
 */
void uct_varuna_lanes_close_link(uct_varuna_iface_t *iface, unsigned link);

/** Open them again, on the same NIC in its next life. The link stays closed before
 *  uct_varuna_lanes_join(). Main thread, not inside progress of an inner interface; lock of
 *  ctl. */
ucs_status_t uct_varuna_lanes_open_link(uct_varuna_iface_t *iface, unsigned link);

/** The link can be used. Lock of ctl. */
void uct_varuna_lanes_join(uct_varuna_iface_t *iface, unsigned link);

/**
 * Open an inner interface once more, after its port has got another address, and close
 * the one that was open. No endpoint may be left on it, see uct_varuna_lane_iface_t.
 * Main thread, not inside progress of an inner interface.
 */
ucs_status_t uct_varuna_lane_reopen(uct_varuna_iface_t *iface, unsigned link,
                                    uct_varuna_lane_kind_t kind);

/**
 * Let the RC lane of a link connect from the address that its port has now, which UCX
 * chooses as for a new interface: one is opened for that, and closed. Queue pairs that are
 * connected keep theirs. Main thread.
 */
ucs_status_t uct_varuna_lane_renew_address(uct_varuna_iface_t *iface, unsigned link);

/** Read what peers are to know of a link. Main thread; with the lock of ctl, if that is
 *  open. */
ucs_status_t uct_varuna_link_read_address(uct_varuna_iface_t *iface, unsigned link);

/** Destroy an inner endpoint of a lane. */
void uct_varuna_lane_ep_destroy(uct_varuna_iface_t *iface, uct_ep_h ep,
                                uct_varuna_lane_kind_t kind);

/** Close the inner interfaces that are open. */
void uct_varuna_lanes_close(uct_varuna_iface_t *iface);

/** Progress all inner interfaces. @return Number of events. */
unsigned uct_varuna_lanes_progress(uct_varuna_iface_t *iface);

/** Poll the next one of those that seem to carry no traffic. All get receive buffers that
 *  were missing here. */
unsigned uct_varuna_lanes_poll_standby(uct_varuna_iface_t *iface);

static UCS_F_ALWAYS_INLINE unsigned
uct_varuna_lane_poll(const uct_varuna_lane_poll_t *lane)
{
    return lane->func(lane->inner);
}

/**
 * Progress the inner interfaces that carry traffic. One carries traffic from the call in
 * which something is found on it; the caller polls one of the others in every 32nd
 * call. After uct_varuna_lanes_event_arm(), all count as such for some calls, so that
 * progress finds what has woken the caller.
 *
 * @return Number of events.
 */
static UCS_F_ALWAYS_INLINE unsigned uct_varuna_lanes_poll(uct_varuna_iface_t *iface)
{
    return uct_varuna_lane_poll(&iface->poll.first);
}

/** The lanes are open: poll all of them at first. */
void uct_varuna_lanes_poll_init(uct_varuna_iface_t *iface);

/** There is slow-path work. Any thread, after it has stored what there is to do. */
static inline void uct_varuna_iface_set_slow(uct_varuna_iface_t *iface)
{
    __atomic_store_n(&iface->has_slow, 1, __ATOMIC_SEQ_CST);
}

/**
 * Poll the lanes with want_dry set until they have no completions. A lane that is not
 * flushed in time hangs, unless its completions were only not polled: with thousands of
 * endpoints, or after the application has computed, this is usual. Users' callbacks may
 * be called.
 */
void uct_varuna_lanes_poll_dry(uct_varuna_iface_t *iface);

/**
 * Poll more completions than one of each lane. When the queue pairs of thousands of
 * endpoints fail, their completion queue holds thousands of errors, of which UCX takes
 * one in each call, and completions of others follow them.
 */
void uct_varuna_lanes_poll_more(uct_varuna_iface_t *iface);

/**
 * Arm all inner interfaces, as uct_iface_event_arm(). Some NICs raise no event for what is
 * there when they are armed: then this returns UCS_ERR_BUSY until the caller has polled after
 * arming, and nothing was found.
 */
ucs_status_t uct_varuna_lanes_event_arm(uct_varuna_iface_t *iface,
                                        unsigned events);

/** The inner interface is about to be closed: deliver what has arrived, and do not poll it any
 *  more. */
void uct_varuna_lanes_poll_remove(uct_varuna_iface_t *iface,
                                  const uct_varuna_lane_iface_t *lane);

/** Another inner interface has taken the place of the one that is polled. */
void uct_varuna_lanes_poll_replace(uct_varuna_iface_t *iface,
                                   const uct_varuna_lane_iface_t *lane);

/** Add the event descriptor of an inner interface to the set @a epoll_fd. */
ucs_status_t uct_varuna_lane_event_add(const uct_varuna_lane_iface_t *lane,
                                       int epoll_fd);

/** Add the event descriptors of all inner interfaces to the set @a epoll_fd. */
ucs_status_t uct_varuna_lanes_event_add(uct_varuna_iface_t *iface, int epoll_fd);

/** Add those of one link, which is opened again, to the same set, if there is one. */
ucs_status_t uct_varuna_link_event_add(const uct_varuna_iface_t *iface,
                                       const uct_varuna_link_t *link);

/** Take them out of that set. */
void uct_varuna_link_event_remove(const uct_varuna_iface_t *iface, const uct_varuna_link_t *link);

/* --- Events of links --- */

/* The sink for events of links: a detector reports here that a link or a path has
 * failed, or works again. The background scan of the endpoints (varuna_eps.c) and
 * their next posts notice it; nothing here looks at an endpoint. */

/**
 * A detector reports that a link has failed. Every endpoint on it recovers. The cost
 * does not depend on the number of endpoints. Main thread.
 *
 * @param [in] link    Local link index.
 * @param [in] cause   UCT_VARUNA_LINK_CAUSE_xx: the detector.
 * @param [in] reason  For the log; it is kept.
 */
void uct_varuna_link_down(uct_varuna_iface_t *iface, unsigned link, unsigned cause,
                          const char *reason);

/** The detector @a cause no longer reports a failure of this link. Main thread. */
void uct_varuna_link_up(uct_varuna_iface_t *iface, unsigned link, unsigned cause);

/** A link or path has failed: endpoints that do not post must notice it soon. */
static inline void uct_varuna_link_raise(uct_varuna_iface_t *iface)
{
    ++iface->failures;
    ++iface->beat;
}

/* --- Messages of nobody --- */

/* Active messages with ids that rc_varuna does not use: they are dropped and counted.
 * UCX would write some lines and a backtrace to the log for each of them, and anyone on
 * the fabric may send any number of them. Called when an inner interface is opened. */

/**
 * @param [in] inner     Inner interface.
 * @param [in] am_id     The one id that is used on it.
 * @param [in] cb_flags  Of its handlers, UCT_CB_FLAG_xx.
 * @param [in] count     Counts those that are dropped, atomically. It must stay until
 *                       the interface is closed.
 */
ucs_status_t uct_varuna_foreign_drop(uct_iface_h inner, unsigned am_id,
                                     unsigned cb_flags, uint32_t *count);

/* --- The choice of links --- */

/** Leave out the links on which an interface of this process could not be opened lately, as
 *  long as there are others. */
void uct_varuna_choice_skip(uct_varuna_iface_t *iface);

/**
 * Something could not be opened on link iface->opening.failed: leave it out. Everything is
 * closed.
 *
 * @param [in] status  Why.
 *
 * @return Whether to open the others; if not, an error is logged.
 */
int uct_varuna_choice_leave_out(uct_varuna_iface_t *iface, ucs_status_t status);

/** All that were not left out are open. */
void uct_varuna_choice_done(uct_varuna_iface_t *iface);

/* --- The order of writes --- */

/* What is known of the order in which the writes of a lane are placed (core/varuna_oplog.h). */

/** Ask for order before an inner interface of a link is opened: see
 *  uct_varuna_mlx5_order_request(). All interfaces of a link use one service level, as long
 *  as it carries something. */
ucs_status_t uct_varuna_link_order_request(uct_varuna_iface_t *iface, unsigned link,
                                           unsigned kind, uct_iface_config_t *config);

/** A message over a link has failed, and none has arrived yet. If the link has moved to
 *  another service level, it moves back: what is connected from now on uses the first one. @a
 *  bus: the control plane's interface. With the lock of ctl. @return Whether it moves. */
int uct_varuna_link_sl_fall_back(uct_varuna_iface_t *iface, unsigned link,
                                 uct_iface_h bus);

/**
 * Find out how the queue pairs of the fast lane of a link place what comes early. Only the
 * first one is asked: UCX makes all of them in the same way, and a NIC that has died cannot be
 * asked. With the lock of ctl.
 *
 * @param [in] ep  An inner endpoint that was connected.
 */
void uct_varuna_lane_read_rx_order(uct_varuna_iface_t *iface, unsigned link, uct_ep_h ep);

#endif
