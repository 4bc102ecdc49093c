/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The emulator's engine in one process, without the preloaded library: a fabric of one
 * host, and queue pairs that are connected to each other. For fuzzing with forged
 * packets, and for the thread sanitizer, which supports only one process.
 */
#ifndef ENGINE_H_
#define ENGINE_H_

#include "core/emu_attach.h"
#include "core/emu_cq.h"
#include "core/emu_ctx.h"
#include "core/emu_fabric.h"
#include "core/emu_map.h"
#include "core/emu_mr.h"
#include "core/emu_nic.h"
#include "core/emu_port.h"
#include "core/emu_proc.h"
#include "core/emu_qp.h"
#include "core/emu_srq.h"
#include "core/emu_svc.h"
#include "proto/emu_engine.h"
#include "proto/emu_proto.h"

#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENGINE_CHECK(_cond) \
    do { \
        if (!(_cond)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #_cond); \
            abort(); \
        } \
    } while (0)

#define ENGINE_SQ_BB  64
#define ENGINE_CQES   4096
#define ENGINE_DC_KEY 0x1122

typedef struct engine {
    char      name[EMU_NAME_MAX];
    emu_ctx_t *ctx;
    emu_pd_t  *pd;
    emu_mr_t  *mr;
    uint8_t   *mem;
    size_t    length;
} engine_t;

/** Create a fabric and attach to it, with a region of @a length bytes. The fabric is
 *  removed at exit, even if a sanitizer ends the process. */
void engine_open(engine_t *engine, size_t length);

/** Create a queue pair in RESET, with its own completion queues; @a srq may be NULL. */
emu_qp_t *engine_qp(engine_t *engine, emu_qp_type_t type, emu_srq_t *srq);

/** Take it from any state to RESET. It sends nothing then, and takes nothing. */
void engine_qp_reset(emu_qp_t *qp);

/** Take it from any state to RTS (a DCT to RTR); RC: connected to @a peer. */
void engine_qp_start(engine_t *engine, emu_qp_t *qp, emu_qp_t *peer);

/**
 * Post the bytes of a work request of @a num_bb basic blocks, and ring.
 *
 * @param index  Its first basic block: the caller counts them.
 */
void engine_post(emu_qp_t *qp, uint16_t index, const void *wqe,
                 unsigned num_bb);

/** Fill in a work request of one basic block: RDMA write, read or atomic of 8 bytes
 *  at offset @a remote of the region, from or to offset @a local. */
void engine_wqe(const engine_t *engine, const emu_qp_t *qp, uint16_t index,
                uint8_t opcode, uint64_t remote, uint64_t local, void *wqe);

#endif
