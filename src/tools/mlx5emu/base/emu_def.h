/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Limits, forward declarations and small helpers of the emulator's engine.
 * Included by every other file of it. No code that needs linking.
 *
 * Functions of the engine return 0 or a negative errno unless said otherwise;
 * nothing in it prints.
 */

#ifndef EMU_DEF_H_
#define EMU_DEF_H_

#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#define EMU_MAX_HOSTS        32
#define EMU_MAX_LINKS        8
#define EMU_MIN_MTU          256
#define EMU_MAX_MTU          4096
#define EMU_MAX_PORTS        (EMU_MAX_HOSTS * EMU_MAX_LINKS)
#define EMU_MAX_PROCS        512
#define EMU_MAX_CTXS         2048
#define EMU_MAX_CHANS        8192
#define EMU_MAX_PDS          8192
#define EMU_MAX_MRS          65536
#define EMU_MAX_QPS          16384   /* RC, UD, DCI and DCT together */
#define EMU_MAX_SRQS         4096
#define EMU_MAX_CQS          8192
#define EMU_NAME_MAX         64      /* fabric name with the NUL */

#define EMU_SEND_BB          64      /* one basic block of a send queue */
#define EMU_SQ_MAX_BB        32768   /* largest send queue */
#define EMU_RQ_MAX_WQE       32768
#define EMU_CQ_MAX_CQE       (1 << 20)
#define EMU_WQE_MAX_DS       63      /* 16-byte segments of one send WQE */
#define EMU_MAX_SGE          60      /* gather entries after parsing */
#define EMU_SRQ_MAX_SGE      16
#define EMU_MAX_MSG          (1u << 30)
#define EMU_MAX_RD_ATOMIC    16      /* reads and atomics in flight per QP */
#define EMU_MAX_EARLY        64      /* packets that come before others */
#define EMU_MAX_LATE         1024    /* packets accepted and not yet placed */
#define EMU_PSN_MASK         0xffffffu

typedef struct emu_fabric  emu_fabric_t;
typedef struct emu_port    emu_port_t;
typedef struct emu_proc    emu_proc_t;
typedef struct emu_ctx     emu_ctx_t;
typedef struct emu_chan    emu_chan_t;
typedef struct emu_pd      emu_pd_t;
typedef struct emu_mr      emu_mr_t;
typedef struct emu_cq      emu_cq_t;
typedef struct emu_srq     emu_srq_t;
typedef struct emu_qp      emu_qp_t;
typedef struct emu_late    emu_late_t;

#define emu_likely(_x)     __builtin_expect(!!(_x), 1)
#define emu_unlikely(_x)   __builtin_expect(!!(_x), 0)
#define emu_min(_a, _b)    (((_a) < (_b)) ? (_a) : (_b))
#define emu_max(_a, _b)    (((_a) > (_b)) ? (_a) : (_b))

/** Queue pairs that the engine distinguishes. */
typedef enum emu_qp_type {
    EMU_QPT_RC,
    EMU_QPT_UD,
    EMU_QPT_DCI,
    EMU_QPT_DCT,
    EMU_QPT_LAST
} emu_qp_type_t;

#endif
