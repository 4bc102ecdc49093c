/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The transport's interface: the inner interfaces of all links, what endpoints
 * share, and the progress function which drives slow-path work.
 */
#ifndef UCT_VARUNA_IFACE_H_
#define UCT_VARUNA_IFACE_H_

#include "varuna_admin.h"
#include <uct/ib/varuna/core/varuna_link.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/core/varuna_pace.h>
#include <uct/ib/varuna/core/varuna_secret.h>
#include <uct/ib/varuna/core/varuna_wire.h>

#include <uct/base/uct_iface.h>
#include <ucs/datastruct/khash.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/mpool.h>
#include <ucs/datastruct/ptr_array.h>
#include <ucs/datastruct/queue.h>
#include <pthread.h>

extern const char *uct_varuna_lane_names[];

typedef enum {
    UCT_VARUNA_RECOVERY_VARUNA,
    UCT_VARUNA_RECOVERY_RESEND,
    UCT_VARUNA_RECOVERY_RESEND_CACHE,
    UCT_VARUNA_RECOVERY_NONE,
    UCT_VARUNA_RECOVERY_LAST
} uct_varuna_recovery_mode_t;

/* What becomes of a request of which nobody knows whether it was executed. */
typedef enum {
    UCT_VARUNA_AMBIGUOUS_REPEAT,
    UCT_VARUNA_AMBIGUOUS_FAIL,
    UCT_VARUNA_AMBIGUOUS_LAST
} uct_varuna_ambiguous_t;

typedef struct uct_varuna_iface_config {
    uct_iface_config_t         super;
    unsigned                   dc_num_dci;     /* DCI pool of each NIC */
    unsigned                   standby_rx_queue_len; /* 0: inner default */
    unsigned                   spare_qps;      /* RC QPs ready for requesters */
    unsigned                   signal_period;  /* Silent posts per signal */
    double                     hold_min;       /* Link hold-down, seconds */
    double                     hold_max;
    double                     ctl_timeout;    /* Resend control requests */
    double                     give_up;        /* No link left: then fail */
    double                     packet_lifetime;/* Unfenced lanes wait it out */
    double                     peer_timeout;
    double                     drain_timeout;
    int                        return_primary;
    double                     return_delay;
    int                        port_events;    /* Listen to port events */
    double                     heartbeat_interval;
    unsigned                   heartbeat_misses;
    int                        heartbeat_idle; /* Without traffic, too */
    double                     hang_timeout;
    double                     orphan_timeout; /* 0: never */
    unsigned                   max_targets;
    unsigned                   max_peer_targets;
    double                     rebuild_rate;   /* RC connections a second */
    char                       *ctl_dir;       /* Of rc_varuna_ctl's sockets */
    int                        recovery;       /* uct_varuna_recovery_mode_t */
    int                        ambiguous;      /* uct_varuna_ambiguous_t */
    int                        psn;            /* Ask for it */
#ifdef UCT_VARUNA_MUTATIONS
    int                        mutation;       /* uct_varuna_mutation_t */
#endif
} uct_varuna_iface_config_t;

/* One inner data interface; the argument of its AM trampoline. */
typedef struct uct_varuna_lane_iface {
    uct_varuna_iface_t         *iface;
    uct_iface_h                inner;
    uct_iface_attr_t           attr;
    uint8_t                    link;   /* Index in iface->links */
    uint8_t                    kind;   /* uct_varuna_lane_kind_t */
    uint8_t                    want_dry; /* Somebody waits for dry_at */
    ucs_time_t                 dry_at; /* Polled dry on demand, last time */
} uct_varuna_lane_iface_t;

/* Inner endpoint -> outer endpoint, for errors. */
KHASH_MAP_INIT_INT64(uct_varuna_inner_eps, uct_varuna_ep_t*)

/* One local link, as this interface uses it. */
struct uct_varuna_link {
    uint8_t                    nic;    /* Index in md->nics and packed keys */
    uct_varuna_lane_iface_t    lanes[UCT_VARUNA_LANE_LAST];
    uct_device_addr_t          *device_addr;
    size_t                     device_addr_len;
};

/* An inner endpoint whose owner is gone: destroyed once it is drained, as UCX
 * does not expect a success completion of a destroyed one. Until then the lane
 * may still complete, or write into, what it was given. */
typedef struct uct_varuna_grave {
    ucs_list_link_t            list;
    uct_ep_h                   inner;
    uct_varuna_lane_kind_t     kind;
    ucs_queue_head_t           reqs;   /* Unfinished; they have no endpoint */
} uct_varuna_grave_t;

struct uct_varuna_iface {
    uct_base_iface_t           super;
    uct_varuna_md_t            *md;
    uint64_t                   uuid;          /* Random, in our address */
    uct_varuna_secret_key_t    secret_key;    /* Of our secrets for peers */
    unsigned                   num_links;
    uct_varuna_link_t          links[UCT_VARUNA_MAX_LINKS]; /* By priority */
    uct_varuna_link_table_t    link_table;
    uct_varuna_ctl_t           *ctl;
    size_t                     rx_headroom;
    uct_recv_desc_t            release_desc;  /* Of kept AM descriptors */

    ucs_mpool_t                req_mp;        /* uct_varuna_req_t */
    ucs_mpool_t                amo_mp;        /* uct_varuna_amo_t */
    ucs_mpool_t                bcopy_mp;      /* Registered packing buffers */
    ucs_ptr_array_t            eps;           /* vQP id -> endpoint. Changed by the
                                                 main thread alone, and with */
    pthread_mutex_t            eps_lock;      /* this, which others need: VFS */
    khash_t(uct_varuna_inner_eps) inner_eps;
    ucs_list_link_t            work;          /* Endpoints with slow-path work */
    ucs_list_link_t            graveyard;     /* uct_varuna_grave_t */
    int                        want_dry;      /* Some lane is to be polled dry */
    ucs_list_link_t            gaps;          /* Targets, see varuna_gap.c */
    unsigned                   num_held;      /* Messages, see varuna_held.h */
    unsigned                   scan_countdown;/* Progress calls until the next
                                                 background scan */
    unsigned                   scan_calls;    /* ... between two of them */
    unsigned                   beat_calls;    /* Since app_beat moved on */
    ucs_time_t                 scan_start;    /* The countdown's begin */
    uint32_t                   app_beat;      /* The application calls progress:
                                                 atomic, for answers to pings */
    struct {
        unsigned               next;          /* Background scan's position */
        unsigned               left;          /* Slots not yet looked at since
                                                 the last failure */
        ucs_time_t             at;            /* Next scan */
        ucs_time_t             scanned_at;    /* Last one */
        ucs_time_t             clock;         /* Stands while nobody scans */
        int                    timer_fd;      /* Wakes a sleeping application */
        int                    timer_is_set;
        unsigned               fast_wakes;    /* In a row */
    } watch;
    uct_varuna_admin_t         admin;         /* What was said from outside */
    uct_varuna_pace_t          rebuild_pace;  /* Of new RC connections */
    unsigned                   outstanding;   /* Unfinished requests of all */
    unsigned                   num_pending;   /* Pending requests of all */
    uint32_t                   fence_beat;    /* Bumped by iface_fence */
    uint32_t                   ep_salt;       /* Makes vQP ids unique */
    uint32_t                   ep_instances;  /* Endpoints made so far */
    struct {
        uint32_t               open;
        uint32_t               orphans;       /* Given up, kept for a while */
        uint32_t               given_up;
        uint32_t               stale;         /* Requests meant for others */
        uint32_t               mismatched;    /* Of unknown secret or opening */
        uint32_t               foreign;       /* AMs of other ids; atomic */
        uint32_t               answered;      /* To strangers */
        uint32_t               ignored;       /* Of strangers */
        uint32_t               late_opens;    /* Of our closed endpoints */
    } target_stats;                           /* Shown in the VFS tree */
    struct {
        uint64_t               posted;        /* By lanes which are gone */
        uint64_t               switches;      /* Away from it, */
        uint64_t               executed;      /* and what was found then */
        uint64_t               lost;
        uint64_t               ambiguous;
        uint64_t               repeated;
    } link_stats[UCT_VARUNA_MAX_LINKS];       /* Sums over all endpoints */
    int                        event_fd;      /* epoll over inner fds, or -1 */
    uint8_t                    uses_events;   /* It was asked for */
    uct_iface_attr_t           attr;          /* Minimum over all lanes */

    struct {
        unsigned               signal_period;
        unsigned               dc_num_dci;
        unsigned               standby_rx_queue_len;
        unsigned               spare_qps;
        ucs_time_t             ctl_timeout;
        ucs_time_t             give_up;
        ucs_time_t             packet_lifetime;
        ucs_time_t             peer_timeout;       /* 0: never */
        ucs_time_t             drain_timeout;
        ucs_time_t             heartbeat_interval; /* 0: on demand only */
        unsigned               heartbeat_misses;
        int                    heartbeat_idle;
        ucs_time_t             hang_timeout;       /* 0: never */
        ucs_time_t             orphan_timeout;     /* 0: never */
        unsigned               max_targets;
        unsigned               max_peer_targets;
        uct_varuna_recovery_mode_t recovery;
        uct_varuna_ambiguous_t ambiguous;
        int                    psn;
        int                    port_events;
    } config;
};

/** Order the links: the device which was asked for is the primary, the others
 *  follow in the configured order. */
ucs_status_t uct_varuna_iface_order_links(uct_varuna_iface_t *iface,
                                          const char *dev_name);

/** @return Name of a port, for people. */
static inline const char *
uct_varuna_link_name(const uct_varuna_iface_t *iface, unsigned link)
{
    return (link == UCT_VARUNA_LINK_NONE) ? "no link" :
           iface->md->nics[iface->links[link].nic].dev_name;
}

/** Work out what all lanes can do, less our header, and less what cannot be
 *  guarded. The links are open. */
void uct_varuna_iface_init_attr(uct_varuna_iface_t *iface);

/** Operations of the interface: what it offers, and how fast it is at present. */
ucs_status_t uct_varuna_iface_query(uct_iface_h tl_iface,
                                    uct_iface_attr_t *attr);

ucs_status_t uct_varuna_iface_estimate_perf(uct_iface_h tl_iface,
                                            uct_perf_attr_t *perf_attr);

/** Open the inner interfaces of all links. */
ucs_status_t uct_varuna_iface_open_links(uct_varuna_iface_t *iface,
                                         uct_worker_h worker,
                                         const uct_iface_params_t *params);

/** Close what is open of them. */
void uct_varuna_iface_close_links(uct_varuna_iface_t *iface);

/** Progress all inner interfaces. @return number of events. */
unsigned uct_varuna_iface_progress_lanes(uct_varuna_iface_t *iface);

/** Somebody (UCT_VARUNA_LINK_CAUSE_xx) says that the link failed: mark it and let
 *  every endpoint on it recover. Main thread. Cost does not grow with the number
 *  of endpoints. @a reason is kept. */
void uct_varuna_iface_link_down(uct_varuna_iface_t *iface, unsigned link,
                                unsigned cause, const char *reason);

/** ... and says so no more. Main thread. */
void uct_varuna_iface_link_up(uct_varuna_iface_t *iface, unsigned link,
                              unsigned cause);

/** Endpoints which don't post shall notice soon that a link or path failed. */
void uct_varuna_iface_look_at_all(uct_varuna_iface_t *iface);

/** Destroy an inner endpoint: cancel the requests which are unfinished on it, and
 *  release them, now or when it is drained. @a reqs is empty afterwards. */
void uct_varuna_iface_bury(uct_varuna_iface_t *iface, uct_ep_h inner,
                           uct_varuna_lane_kind_t kind,
                           ucs_queue_head_t *reqs);

/** Write the full interface address (varuna_addr.c). @return bytes used. */
size_t uct_varuna_iface_pack_full_address(uct_varuna_iface_t *iface,
                                          void *buffer, size_t max);

/** Write the short interface address, which has UCT_VARUNA_IFACE_ADDR_MAX bytes always:
 *  in unified mode, UCP takes the length of its own for that of its peers'. What is
 *  left behind the last link is zero. @return how many links have found room. */
unsigned uct_varuna_iface_pack_short_address(const uct_varuna_iface_t *iface,
                                             void *buffer);

#endif
