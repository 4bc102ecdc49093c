/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What UCT's public interface does not provide about the inner rc_mlx5 and dc_mlx5
 * interfaces and endpoints. All else goes through the public interface.
 */
#ifndef UCT_VARUNA_MLX5_H_
#define UCT_VARUNA_MLX5_H_

#include <uct/ib/varuna/core/varuna_def.h>

#include <ucs/time/time_def.h>
#include <uct/api/uct.h>
#include <stdint.h>

/**
 * Check whether an inner endpoint has anything in flight.
 *
 * @param [in] ep    Inner endpoint.
 * @param [in] kind  Its transport, an uct_varuna_lane_kind_t.
 *
 * @return nonzero if no posted WQE awaits its completion (RC), or if the endpoint
 *         holds no DCI (DC).
 */
int uct_varuna_mlx5_is_drained(uct_ep_h ep, unsigned kind);

/**
 * The same for an endpoint in ERR; to be called until it returns nonzero.
 */
int uct_varuna_mlx5_drain(uct_ep_h ep, unsigned kind);

/**
 * What a lane's queue pair has completed.
 *
 * @param [in]  ep      Inner endpoint.
 * @param [in]  kind    Its transport, an uct_varuna_lane_kind_t.
 * @param [out] mark_p  A number which changes when something completes, and by
 *                      nothing else as long as the endpoint has work there.
 *
 * @return 0 if nothing of this endpoint is on a queue pair.
 */
int uct_varuna_mlx5_get_mark(uct_ep_h ep, unsigned kind, uint16_t *mark_p);

/** Responder: PSN which the RC endpoint's QP expects next. It is final once the QP is in
 * ERR. */
ucs_status_t uct_varuna_mlx5_ep_query_epsn(uct_ep_h ep, uint32_t *epsn_p);

/** Requester: first PSN and path MTU (bytes) of a connected RC endpoint. */
ucs_status_t uct_varuna_mlx5_ep_query_sq(uct_ep_h ep, uint32_t *psn_p,
                                         uint32_t *mtu_p);

/**
 * The fused post: two WQEs of an endpoint with one doorbell (paper, section
 * "Compacted and lightweight completion-log design"). Between hold and join, what
 * is posted only updates the doorbell record; between join and ring, the next post
 * rings for both.
 *
 *     uct_varuna_mlx5_bell_hold(ep, kind, &bell);
 *     post the operation              failed: uct_varuna_mlx5_bell_restore()
 *     uct_varuna_mlx5_bell_join(&bell);
 *     post its log entry
 *     uct_varuna_mlx5_bell_restore(&bell, whether the entry was not posted);
 */
typedef struct uct_varuna_mlx5_bell {
    void                       *wq;      /* Send queue of the endpoint */
    void                       *reg;     /* Its doorbell register */
    const void                 *ctrl;    /* First WQE, NULL: nothing is held */
    uint64_t                   sink;     /* Takes the held doorbell */
    uint64_t                   stand_in[8]; /* For the register */
} uct_varuna_mlx5_bell_t;

/** Hold back the doorbell of what is posted next. @return 0 if that is not possible: an
 *  endpoint of DC has no DCI yet, and the first post gives it one. */
int uct_varuna_mlx5_bell_hold(uct_ep_h ep, unsigned kind, uct_varuna_mlx5_bell_t *bell);

/** The next post rings, also for what is held. */
void uct_varuna_mlx5_bell_join(uct_varuna_mlx5_bell_t *bell);

/** Back to normal. With @a ring, ring for what is held, because no other post did. */
void uct_varuna_mlx5_bell_restore(uct_varuna_mlx5_bell_t *bell, int ring);

/* A log entry: 8 bytes for the responder's memory. */
typedef struct uct_varuna_mlx5_log {
    uint64_t                   entry;
    uint64_t                   remote_addr;
    uct_rkey_t                 rkey;       /* Inner */
} uct_varuna_mlx5_log_t;

/* What becomes of the data of a read. It may be changed until the data has come. */
typedef struct uct_varuna_mlx5_read {
    uct_unpack_callback_t      cb;
    void                       *arg;
} uct_varuna_mlx5_read_t;

/** @return Bytes which rc_mlx5 puts before an AM's header on the wire. */
unsigned uct_varuna_mlx5_am_overhead(void);

/** @return Nonzero if the NIC of a memory domain of ib can do nothing any more. */
int uct_varuna_mlx5_is_md_dead(uct_md_h md);

/**
 * Let an inner dc_mlx5 interface survive a NIC that dies after an error of one of its
 * queue pairs: UCX ends the process if it cannot reset that. The error is dropped then,
 * and the death is detected as if the NIC had died before that error. To be called
 * before anything is posted.
 */
ucs_status_t uct_varuna_mlx5_guard_dc(uct_iface_h iface);

/**
 * The same, and make all its DCIs, which UCX makes when it needs them since 1.18.
 *
 * @return UCS_ERR_NO_RESOURCE if the NIC has not so many queue pairs left: UCX has reported it.
 */
ucs_status_t uct_varuna_mlx5_prepare_dc(uct_iface_h iface);

/** See uct_varuna_tl_allocate_tx(). */
ucs_status_t uct_varuna_mlx5_allocate_tx(uct_iface_h iface);

/** See uct_varuna_tl_has_rx(). */
int uct_varuna_mlx5_has_rx(uct_iface_h iface);

/** uct_iface_event_arm() of an inner interface; for messages of all kinds. */
ucs_status_t uct_varuna_mlx5_event_arm(uct_iface_h inner, unsigned events);

/* --- Polling completion queues --- */

/** @return whether completions of sends wait to be polled on an inner interface: its
 *          progress function does not count errors. */
int uct_varuna_mlx5_has_completions(uct_iface_h iface);

/** @return whether anything waits to be polled on an inner interface. */
int uct_varuna_mlx5_has_input(uct_iface_h iface);

/** As uct_iface_progress(), for RC. */
unsigned uct_varuna_mlx5_progress(uct_iface_h iface);

/* See uct_varuna_tl_refill() and uct_varuna_tl_poll_func(). */
unsigned uct_varuna_mlx5_refill(uct_iface_h iface);

uct_varuna_tl_poll_func_t uct_varuna_mlx5_poll_func(uct_iface_h iface, unsigned kind);

/* --- Functions by name --- */

/* Functions of UCX's library with rc_mlx5. UCX opens that library for itself alone, so
 * what we call by name would end the process ("undefined symbol") at the first call. */

/**
 * Find a function. It takes a search: keep the result.
 *
 * @param [in] iface  An inner interface, whose code is in the library.
 * @param [in] name   Name of the function.
 *
 * @return The function, or NULL if this UCX has none.
 */
void *uct_varuna_ib_symbol(uct_iface_h iface, const char *name);

/* --- Stopping a queue pair --- */

/* See uct_varuna_tl_reset(). */
ucs_status_t uct_varuna_mlx5_ep_reset(uct_ep_h ep);

/** Move a queue pair from RESET to INIT, from where UCX can move it to ERR, and settle
 *  UCX's accounts of what RESET has discarded. Main thread. */
void uct_varuna_mlx5_ep_end_reset(uct_ep_h ep);

/* --- LAST_WQE_REACHED --- */

/** The event of a queue pair, which UCX counts for each device. */
typedef struct uct_varuna_last_wqe {
    struct uct_ib_device *dev;
    uint32_t             qp_num;
    int                  channel_fd; /* Where it may come besides the device's file, or -1 */
} uct_varuna_last_wqe_t;

/** Find the event of an RC endpoint. */
void uct_varuna_mlx5_ep_last_wqe(uct_ep_h ep, uct_varuna_last_wqe_t *event);

/** See uct_varuna_tl_wait_last_wqe(). */
ucs_status_t
uct_varuna_last_wqe_wait(const uct_varuna_last_wqe_t *event, ucs_time_t deadline);

/** The next ERR raises the event again, for which UCX waits before it destroys the queue
 *  pair. Main thread. */
void uct_varuna_last_wqe_forget(const uct_varuna_last_wqe_t *event);

/**
 * UCX does not wait for the event of a destroyed endpoint any longer, and destroys the queue pair
 * with the interface. For one whose event may come twice: UCX (as of 1.22) makes a callback of each
 * that comes before it has progressed, knows only of the last of them, and calls the first one when
 * the endpoint's memory is freed. Main thread.
 */
void uct_varuna_last_wqe_ignore(const uct_varuna_last_wqe_t *event);

/* --- Credits --- */

/* Credits of flow control, which rc_mlx5 grants to the sender of a message when that is polled.
 * A queue pair that is moved to RESET, by the thread of its NIC, must not grant any more: a
 * doorbell in RESET would be remembered. UCX's own flag for that belongs to the main thread. So
 * a lock of the interface keeps grants and the transition apart:
 *
 *     main thread                              thread of the NIC
 *     uct_rc_mlx5_ep_fc_ctrl(), or nothing     uct_varuna_mlx5_grants_stop(), RESET */

/**
 * Replace UCX's function that grants credits, in an interface of rc_mlx5.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_varuna_mlx5_guard_rc(uct_iface_h iface);

/**
 * On return, and from then on, nothing is being posted for this endpoint, but for what its owner
 * posts. Any thread.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_varuna_mlx5_grants_stop(uct_ep_h ep);

/** The endpoint is about to be destroyed, or was not moved. Any thread. */
void uct_varuna_mlx5_grants_forget(uct_ep_h ep);

#endif
