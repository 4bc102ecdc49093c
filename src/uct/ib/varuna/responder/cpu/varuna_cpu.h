/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode proxy, the target's side: this process's CPU executes the atomics that peers
 * request, each once and in the order of their numbers, and keeps the results
 * (varuna_amo_mode.h). Lock held.
 */
#ifndef UCT_VARUNA_CPU_H_
#define UCT_VARUNA_CPU_H_

#include <uct/ib/varuna/core/varuna_amo_mode.h>
#include <uct/ib/varuna/core/varuna_wire.h>
#include <uct/ib/varuna/responder/varuna_responder.h>

extern const uct_varuna_served_ops_t uct_varuna_cpu_ops;

/* What is kept for a requester; a part of its target. */
typedef struct uct_varuna_cpu_client {
    uct_varuna_peer_t          *peer;
    uct_varuna_amo_kept_t      *kept;     /* NULL: it has requested none */
    struct {
        uint64_t               end;       /* Requests before this number were there */
        ucs_time_t             since;     /* ... at this time */
    } detour;
} uct_varuna_cpu_client_t;

/* --- One atomic --- */

/* It is executed by this process's CPU: coherent with its other threads, with other processes
 * that map the memory, and with UCX's transports over shared memory. */

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
