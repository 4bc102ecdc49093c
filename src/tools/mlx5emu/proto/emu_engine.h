/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What programs make queue pairs do: the entrance to proto/.
 *
 * Called by: verbs/, devx/ and mlx5dv/.
 */

#ifndef EMU_ENGINE_H_
#define EMU_ENGINE_H_

#include "../core/emu_qp.h"

/**
 * Modify, as ibv_modify_qp: -EINVAL for a transition, an attribute or a mask
 * that is not allowed, -EIO if the NIC is dead. To ERR flushes what is posted.
 */
int emu_qp_modify(emu_qp_t *qp, const struct ibv_qp_attr *attr, int mask);

/** The same on RoCE: with IBV_QP_AV, @a rmac is the MAC address that the path leads
 *  to; NULL: not known. */
int emu_qp_modify_to(emu_qp_t *qp, const struct ibv_qp_attr *attr, int mask,
                     const uint8_t *rmac);

/**
 * The send doorbell: runs all WQEs up to the producer counter in the doorbell
 * record. Called from the trap of a UAR page, or by verbs-level posts.
 *
 * @note In a signal handler, asynchronous signals must be held off (sa_mask):
 *       locks are taken.
 */
void emu_sq_doorbell(uint32_t qpn);

/** Keep the time of a fabric that has one, see wire/emu_keep.h. */
int emu_keeper_run(void);

/** Receive doorbell of a QP in ERR: flush what was posted there. Verbs-level
 *  ibv_post_recv calls it after the doorbell record; otherwise a no-op. */
void emu_rq_doorbell(emu_qp_t *qp);

#endif
