/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The inner transports, and what UCT's public interface does not provide about them. The
 * rooms above name a transport by its kind; varuna_tl.c has a row of functions for each.
 * The exception are the functions of varuna_mlx5.h that post: the hot path calls them
 * directly, for kind RC.
 */
#ifndef UCT_VARUNA_TL_H_
#define UCT_VARUNA_TL_H_

#include "varuna_mlx5_dev.h"
#include <uct/ib/varuna/core/varuna_def.h>


/**
 * Check whether an inner endpoint has anything in flight.
 *
 * @param [in] ep    Inner endpoint.
 * @param [in] kind  Its transport, an uct_varuna_lane_kind_t.
 *
 * @return nonzero if nothing that was posted awaits its completion (RC), or if the
 *         endpoint holds no DCI (DC).
 */
int uct_varuna_tl_is_drained(uct_ep_h ep, unsigned kind);

/**
 * The same for an endpoint in ERR; to be called until it returns nonzero.
 */
int uct_varuna_tl_drain(uct_ep_h ep, unsigned kind);

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
int uct_varuna_tl_get_mark(uct_ep_h ep, unsigned kind, uint16_t *mark_p);

/** @return whether completions of sends wait to be polled on an inner interface: its
 *          progress function may not count errors. */
int uct_varuna_tl_has_completions(uct_iface_h iface, unsigned kind);

/** @return whether anything waits to be polled on an inner interface. */
int uct_varuna_tl_has_input(uct_iface_h iface, unsigned kind);

/** uct_iface_progress() of an inner interface. No other function may call that: UCX loses
 *  receive buffers of queue pairs that were stopped. */
unsigned uct_varuna_tl_progress(uct_iface_h iface, unsigned kind);

/** @return How to poll an inner interface. */
uct_varuna_tl_poll_func_t uct_varuna_tl_poll_func(uct_iface_h iface, unsigned kind);

/** Post receive buffers if many are missing: the user, who kept them all, has released
 *  some. @return Number of events. */
unsigned uct_varuna_tl_refill(uct_iface_h iface, unsigned kind);

/**
 * As uct_ep_flush().
 *
 * @param [out] num_psns_p  Packets which were sent for that.
 */
ucs_status_t uct_varuna_tl_flush(uct_ep_h ep, unsigned kind, uct_completion_t *comp,
                                 unsigned *num_psns_p);

/** Move an endpoint's queue pair to ERR. Any thread. */
ucs_status_t uct_varuna_tl_stop(uct_ep_h ep, unsigned kind);

/** As uct_ep_destroy(). */
void uct_varuna_tl_destroy(uct_ep_h ep);

/** The same for an endpoint that was connected. Of a dead NIC, the queue pair is destroyed with the
 *  inner interface. Main thread. */
void uct_varuna_tl_destroy_lane(uct_ep_h ep, unsigned kind);

/**
 * A NIC is dead, which the user is told once. UCX reports each command that such a NIC refuses by
 * an error, and each request that it has not completed by a warning: what uct_varuna_tl_drain() and
 * the two functions above cause is shown at level debug only. Any thread.
 *
 * @param [in] md       Its memory domain.
 * @param [in] is_dead  0: it is about to be closed, or it is closed.
 */
void uct_varuna_tl_note_dead(uct_md_h md, int is_dead);

/*
 * Stopping the responder's queue pair of an RC connection, so that nothing it has
 * accepted is written to memory any more.
 *
 * ERR stops the queue pair from accepting packets. No document says that what it has
 * accepted is in memory then; RESET says so, because the queue pair's resources may be
 * used otherwise after it. In order:
 *
 *     uct_varuna_tl_stop()                  ERR
 *     uct_varuna_tl_wait_last_wqe()         the shared receive queue is left alone
 *     uct_varuna_tl_query_epsn()            RESET clears it
 *     uct_varuna_tl_reset()
 *     ...                                   what is in memory, is there
 *     uct_varuna_tl_destroy_reset()
 */

/**
 * Wait until a queue pair in ERR has taken its last buffer from its shared receive queue
 * (IBTA 10.3.1, event LAST_WQE_REACHED). A buffer that it holds at RESET is lost, and UCX
 * never destroys a queue pair without the event. Any thread.
 *
 * @param [in] deadline  Some NICs never raise the event. 0: only look whether it came.
 *
 * @return UCS_OK, or UCS_ERR_TIMED_OUT.
 */
ucs_status_t uct_varuna_tl_wait_last_wqe(uct_ep_h ep, unsigned kind,
                                         ucs_time_t deadline);

/** Responder: PSN which the RC endpoint's QP expects next. It is final once the QP is in
 * ERR. */
ucs_status_t uct_varuna_tl_query_epsn(uct_ep_h ep, unsigned kind, uint32_t *epsn_p);

/** Requester: first PSN and path MTU (bytes) of a connected RC endpoint. */
ucs_status_t uct_varuna_tl_query_sq(uct_ep_h ep, unsigned kind, uint32_t *psn_p,
                                    uint32_t *mtu_p);

/**
 * Move a queue pair from ERR to RESET. On return, all writes that it has accepted are in
 * memory. What it has sent (flow control's credits) may be unfinished: RESET discards it.
 * Messages that have arrived and are not polled yet are kept. Any thread.
 *
 * @return UCS_OK, or the device's error.
 */
ucs_status_t uct_varuna_tl_reset(uct_ep_h ep, unsigned kind);

/** As uct_ep_destroy(), for a queue pair in RESET: settle UCX's accounts of what RESET has discarded,
 *  and move it to where UCX can destroy it. If the event LAST_WQE_REACHED has not come yet, the
 *  queue pair is destroyed with the inner interface. Main thread. */
void uct_varuna_tl_destroy_reset(uct_ep_h ep, unsigned kind);

/** @return Bytes which a transport puts before an AM's header on the wire. */
unsigned uct_varuna_tl_am_overhead(unsigned kind);

/** Let an inner interface survive what UCX would end the process for. To be called before
 *  anything is posted. */
ucs_status_t uct_varuna_tl_guard(uct_iface_h iface, unsigned kind);

/** Allocate the first buffers for reads and buffered messages of an inner interface, which
 *  UCX does when the first one is posted. @return UCS_ERR_NO_MEMORY if there are none. */
ucs_status_t uct_varuna_tl_allocate_tx(uct_iface_h iface, unsigned kind);

/** @return Whether UCX could post receive buffers when an inner interface was opened. It opens
 *  one without them. */
int uct_varuna_tl_has_rx(uct_iface_h iface, unsigned kind);

/** uct_iface_event_arm() of an inner interface; for messages of all kinds. */
ucs_status_t uct_varuna_tl_event_arm(uct_iface_h iface, unsigned kind, unsigned events);

/** @return Whether what had come before uct_varuna_tl_event_arm(), and was not polled, may
 *  raise no event: it is to be polled once more. */
int uct_varuna_tl_arm_is_blind(unsigned kind);

/**
 * Ask for order before an inner interface is opened: see
 * uct_varuna_mlx5_order_request().
 */
ucs_status_t uct_varuna_tl_order_request(uct_md_h md, const char *dev_name,
                                         unsigned kind, uct_iface_config_t *config,
                                         uct_varuna_sl_move_t *move);

/** Let UCX take each peer for reachable before an inner interface is opened: see
 *  uct_varuna_compat_config_reachable(). */
ucs_status_t uct_varuna_tl_reach_all(unsigned kind, uct_iface_config_t *config);

/** Whether packets stay in order: see uct_varuna_mlx5_order(). */
uct_varuna_order_t uct_varuna_tl_order(uct_iface_h iface, unsigned kind, uint8_t *sl_p,
                                       uint16_t *mask_p);

/** What is known of the queue pair that receives on a lane: of @a ep, or of the interface if
 *  its peers share one (DC). @a ep NULL: nothing, if each peer has its own. */
uct_varuna_order_t uct_varuna_tl_order_of_qp(uct_iface_h iface, uct_ep_h ep,
                                             unsigned kind);

#endif
