/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * One atomic by this process's CPU: coherent with its other threads, with other processes that map
 * the memory, and with UCX's transports over shared memory.
 */
#ifndef UCT_VARUNA_CPU_OP_H_
#define UCT_VARUNA_CPU_OP_H_

#include <uct/ib/varuna/core/varuna_wire.h>

/**
 * Execute @a op, after uct_varuna_fault_init().
 *
 * @param [out] value_p  The word's previous value; 4 bytes are extended by zeros.
 *
 * @return UCS_ERR_INVALID_ADDR if the memory is not there, or cannot be written.
 */
ucs_status_t uct_varuna_cpu_op(const uct_varuna_ctl_atomic_op_t *op,
                               uint64_t *value_p);

#endif
