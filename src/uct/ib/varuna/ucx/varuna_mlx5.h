/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What UCT's public interface does not provide about the inner rc_mlx5 and dc_mlx5
 * endpoints. All else goes through the public interface.
 */
#ifndef UCT_VARUNA_MLX5_H_
#define UCT_VARUNA_MLX5_H_

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
void uct_varuna_mlx5_guard_dc(uct_iface_h iface);

/** See uct_varuna_tl_allocate_tx(). */
ucs_status_t uct_varuna_mlx5_allocate_tx(uct_iface_h iface);

/** See uct_varuna_tl_has_rx(). */
int uct_varuna_mlx5_has_rx(uct_iface_h iface);

/** uct_iface_event_arm() of an inner interface; for messages of all kinds. */
ucs_status_t uct_varuna_mlx5_event_arm(uct_iface_h inner, unsigned events);

#endif
