/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * One atomic by the CPU. See varuna_cpu_op.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_cpu_op.h"
#include "varuna_fault.h"

typedef struct uct_varuna_cpu_run {
    uct_varuna_ctl_atomic_op_t op;
    uint64_t                   result;
} uct_varuna_cpu_run_t;

#define UCT_VARUNA_CPU_OP(_bits) \
    static void uct_varuna_cpu_run##_bits(void *arg) \
    { \
        uct_varuna_cpu_run_t *run = arg; \
        uint##_bits##_t *word     = (uint##_bits##_t*)run->op.addr; \
        uint##_bits##_t value     = (uint##_bits##_t)run->op.value; \
        uint##_bits##_t compare   = (uint##_bits##_t)run->op.compare; \
        \
        switch (run->op.op) { \
        case UCT_ATOMIC_OP_ADD: \
            run->result = __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST); \
            break; \
        case UCT_ATOMIC_OP_AND: \
            run->result = __atomic_fetch_and(word, value, __ATOMIC_SEQ_CST); \
            break; \
        case UCT_ATOMIC_OP_OR: \
            run->result = __atomic_fetch_or(word, value, __ATOMIC_SEQ_CST); \
            break; \
        case UCT_ATOMIC_OP_XOR: \
            run->result = __atomic_fetch_xor(word, value, __ATOMIC_SEQ_CST); \
            break; \
        case UCT_ATOMIC_OP_SWAP: \
            run->result = __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST); \
            break; \
        default: \
            __atomic_compare_exchange_n(word, &compare, value, 0, \
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
            run->result = compare; \
            break; \
        } \
    }

UCT_VARUNA_CPU_OP(32)
UCT_VARUNA_CPU_OP(64)

ucs_status_t uct_varuna_cpu_op(const uct_varuna_ctl_atomic_op_t *op,
                               uint64_t *value_p)
{
    uct_varuna_cpu_run_t run = {.op = *op};

    if (uct_varuna_fault_run(op->addr,
                             (op->width == sizeof(uint64_t)) ?
                             uct_varuna_cpu_run64 : uct_varuna_cpu_run32, &run)) {
        return UCS_ERR_INVALID_ADDR;
    }

    *value_p = run.result;
    return UCS_OK;
}
