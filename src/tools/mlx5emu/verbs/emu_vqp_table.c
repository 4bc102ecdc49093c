/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * The queue pairs of this process, by number.
 */

#include "emu_verbs.h"


/* Queue pairs of this process by index; a slot is written under no lock, since
 * a number is in use by one queue pair at a time */
static emu_vqp_t *emu_vqp_table[1 << EMU_QP_IDX_BITS];


emu_vqp_t *emu_vqp_find(uint32_t qpn)
{
    emu_vqp_t *vqp = __atomic_load_n(&emu_vqp_table[qpn &
                                     ((1 << EMU_QP_IDX_BITS) - 1)],
                                     __ATOMIC_ACQUIRE);

    return ((vqp != NULL) && (vqp->ibv.qp_num == qpn)) ? vqp : NULL;
}

void emu_vqp_set(uint32_t qpn, emu_vqp_t *vqp)
{
    __atomic_store_n(&emu_vqp_table[qpn & ((1 << EMU_QP_IDX_BITS) - 1)], vqp,
                     __ATOMIC_RELEASE);
}
