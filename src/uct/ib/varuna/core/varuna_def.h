/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Forward declarations, limits and names shared by all files of rc_varuna.
 */
#ifndef UCT_VARUNA_DEF_H_
#define UCT_VARUNA_DEF_H_

#include <uct/api/uct.h>
#include <ucs/sys/compiler_def.h>
#include <stdint.h>
#include <ucs/time/time_def.h>

#define UCT_VARUNA_COMPONENT_NAME    "varuna"
#define UCT_VARUNA_MD_NAME           "varuna"
#define UCT_VARUNA_TL_NAME           "rc_varuna"

/* Prefix that distinguishes our devices from the raw ones: UCP keys addresses by device
 * name, and must not mix our addresses with those of rc_mlx5. */
#define UCT_VARUNA_DEV_PREFIX        "varuna_"

/* Prefix of all options, as in UCX_RC_VARUNA_LINKS. */
#define UCT_VARUNA_CONFIG_PREFIX     "RC_VARUNA_"

#define UCT_VARUNA_INNER_COMPONENT   "ib"
#define UCT_VARUNA_RC_TL             "rc_mlx5"
#define UCT_VARUNA_DC_TL             "dc_mlx5"
#define UCT_VARUNA_VERBS_TL          "rc_verbs"

/* Links of one host. Bounded by the packed key, which is <= 255 bytes in UCP. */
#define UCT_VARUNA_MAX_LINKS         8
#define UCT_VARUNA_LINK_NONE         UINT8_MAX

/* Whose memory a region is: the host's, that of the device with this number, or that of some
 * device. Data for a device and for the host go different ways behind the NIC. */
#define UCT_VARUNA_DEVICE_HOST       0
#define UCT_VARUNA_DEVICE_UNKNOWN    UINT8_MAX

/* Inner transports of a link */
typedef enum {
    UCT_VARUNA_LANE_RC,
    UCT_VARUNA_LANE_DC,
    UCT_VARUNA_LANE_VERBS,
    UCT_VARUNA_LANE_LAST,
    UCT_VARUNA_LANE_UD = UCT_VARUNA_LANE_LAST, /* For control messages only */
    UCT_VARUNA_LANE_NONE
} uct_varuna_lane_kind_t;

/** As uct_iface_progress(), at less cost. It posts receive buffers after a message, but
 *  none that were missing then: call uct_varuna_tl_refill() from time to time. */
typedef unsigned (*uct_varuna_tl_poll_func_t)(uct_iface_h iface);

/* Entries of a completion log; a power of two, < 2^14 (timestamp window). */
#define UCT_VARUNA_LOG_SIZE          64

/* Operations that share one completion at most, if the user waits for none of them */
#define UCT_VARUNA_MAX_MODERATION    UCT_VARUNA_LOG_SIZE

/* Bytes of a request that is posted without a completion at most: far fewer than 2^23
 * packets may be acknowledged without one (uct_varuna_evidence_t). */
#define UCT_VARUNA_MAX_SILENT        UCS_BIT(20)

/* Completion logs of a vQP: one for the active lane incarnation, one for the
 * incarnation which is being recovered or drained. */
#define UCT_VARUNA_LOG_COUNT         2

/* Where the first write of a connection goes, in bytes from the first log */
#define UCT_VARUNA_LOG_SCRATCH \
    (UCT_VARUNA_LOG_COUNT * UCT_VARUNA_LOG_SIZE * sizeof(uint64_t))

/* Bytes of a vQP's logs, and of a cache line for first writes */
#define UCT_VARUNA_LOG_BYTES         (UCT_VARUNA_LOG_SCRATCH + 64)

/* Unfinished requests of one vQP, logged or not: more than a queue pair of rc_mlx5 takes.
 * About as many, the last slab of the ring may be full. */
#define UCT_VARUNA_MAX_REQS          1024

/* Requests that wait for the lane of a new endpoint, or for a planned change. */
#define UCT_VARUNA_MAX_WAITING       64

/* RC queue pairs that a responder keeps ready on each link. */
#define UCT_VARUNA_MAX_SPARE_QPS     256

/* DC initiators of a lane. UCX 1.13 counts those of all paths of a port in 8 bits. */
#define UCT_VARUNA_MAX_NUM_DCI       64

/* configure --disable-extended: 0, without the modes extended and reread of atomics */
#ifndef UCT_VARUNA_HAVE_EXTENDED
#  define UCT_VARUNA_HAVE_EXTENDED   1
#endif

/* How atomics are carried out (docs/ATOMICS.md). One mode for a responder: it
 * is part of packed keys and of OPEN_REP. */
typedef enum {
    UCT_VARUNA_ATOMIC_NATIVE,    /* As the inner transport does */
    UCT_VARUNA_ATOMIC_CPU,       /* By the responder's CPU on request */
    UCT_VARUNA_ATOMIC_REREAD,    /* Native; a lost CAS is judged by its target */
    UCT_VARUNA_ATOMIC_EXTENDED,  /* Two stages, with extended status */
    UCT_VARUNA_ATOMIC_LAST
} uct_varuna_atomic_mode_t;

/* Unfinished atomics of one vQP which are not native. */
#define UCT_VARUNA_MAX_AMOS          64

/* Atomics of one vQP that a target's CPU may have executed without knowing that the
 * result has come. */
#define UCT_VARUNA_AMO_WINDOW        UCT_VARUNA_MAX_AMOS

/* For file scope, where UCS_STATIC_ASSERT (a statement) is not allowed. */
#ifdef __cplusplus
#  define UCT_VARUNA_STATIC_ASSERT(_cond) static_assert(_cond, #_cond)
#else
#  define UCT_VARUNA_STATIC_ASSERT(_cond) _Static_assert(_cond, #_cond)
#endif

typedef struct uct_varuna_md         uct_varuna_md_t;
typedef struct uct_varuna_mem        uct_varuna_mem_t;
typedef struct uct_varuna_rkey       uct_varuna_rkey_t;
typedef struct uct_varuna_link       uct_varuna_link_t;
typedef struct uct_varuna_iface      uct_varuna_iface_t;
typedef struct uct_varuna_ep         uct_varuna_ep_t;
typedef struct uct_varuna_req        uct_varuna_req_t;
typedef struct uct_varuna_target     uct_varuna_target_t;
typedef struct uct_varuna_responder  uct_varuna_responder_t;
typedef struct uct_varuna_ctl        uct_varuna_ctl_t;
typedef struct uct_varuna_peer       uct_varuna_peer_t;
typedef struct uct_varuna_amo        uct_varuna_amo_t;
typedef struct uct_varuna_requester  uct_varuna_requester_t;

#endif
