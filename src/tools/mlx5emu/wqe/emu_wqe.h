/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Send WQEs in the format of mlx5: bytes to an operation. Pure: nothing here
 * looks at keys, states or memory beyond the send queue.
 *
 * Called by: proto/ (requester, flush).
 */

#ifndef EMU_WQE_H_
#define EMU_WQE_H_

#include "../base/emu_def.h"

/** What an operation does, as the wire sees it. */
typedef enum emu_op_kind {
    EMU_OP_NONE,             /* also: NOP */
    EMU_OP_SEND,
    EMU_OP_WRITE,
    EMU_OP_READ,
    EMU_OP_CAS,
    EMU_OP_FAA,
    EMU_OP_LAST
} emu_op_kind_t;

/** One gather or scatter entry. */
typedef struct emu_sge {
    uint64_t   addr;
    uint32_t   length;
    uint32_t   lkey;
    const void *inl;         /* inline data in the send queue; no key then */
} emu_sge_t;

#define EMU_PATH_GRH (1u << 30) /* in mlx5_wqe_av::grh_gid_fl: has_grh */

/** Where a request goes: what an address vector says. */
typedef struct emu_path {
    uint16_t dlid;           /* InfiniBand */
    uint8_t  is_full;        /* the rest is given, which RoCE needs */
    uint8_t  has_grh;        /* InfiniBand: packets have a GRH */
    uint8_t  rmac[6];        /* RoCE */
    uint8_t  sgid_index;
    uint8_t  hop_limit;
    uint8_t  tclass;
    uint32_t flow_label;
    uint8_t  dgid[16];
} emu_path_t;

/** A send work request. */
typedef struct emu_op {
    uint8_t   kind;          /* emu_op_kind_t */
    uint8_t   opcode;        /* MLX5_OPCODE_x */
    uint8_t   has_imm;
    uint8_t   signaled;
    uint8_t   solicited;
    uint8_t   fence;         /* waits for reads and atomics before it */
    uint8_t   strong;        /* its data are placed after all before it */
    uint8_t   is_inline;     /* all data are in the WQE */
    uint8_t   has_av;
    uint16_t  num_bb;
    uint16_t  wqe_index;     /* as the WQE says */
    uint32_t  qpn;           /* as the WQE says */
    uint32_t  imm;           /* network order */
    /* Address vector: UD and DCI */
    uint64_t  dc_key;
    uint32_t  qkey;
    uint32_t  dqpn;
    uint8_t   sl;
    emu_path_t path;
    /* Remote memory */
    uint32_t  rkey;
    uint64_t  raddr;
    /* Atomics: CAS swaps the bits of swap_mask if those of compare_mask are
     * equal; in FAA no carry passes a bit that is set in compare */
    uint64_t  swap_add;
    uint64_t  compare;
    uint64_t  swap_mask;
    uint64_t  compare_mask;
    uint32_t  atomic_size;   /* 4 or 8 bytes */
    /* Local memory */
    uint32_t  length;
    uint32_t  num_sge;
    emu_sge_t sge[EMU_MAX_SGE];
} emu_op_t;

/**
 * Parse the WQE at a basic block.
 *
 * @param [in]  buf     Send queue.
 * @param [in]  bb_cnt  Its basic blocks, a power of two.
 * @param [in]  index   First basic block; wraps.
 * @param [in]  has_av  An address vector follows the control segment.
 * @param [out] op_p    kind, opcode, num_bb and signaled are set even on
 *                      failure.
 *
 * @return 0, or an MLX5_CQE_SYNDROME_x that says what is wrong with it.
 */
int emu_wqe_parse(const uint8_t *buf, uint32_t bb_cnt, uint16_t index,
                  int has_av, emu_op_t *op_p);

/** The basic blocks and the opcode of a WQE, and no more. */
uint16_t emu_wqe_peek(const uint8_t *buf, uint32_t bb_cnt, uint16_t index,
                      uint8_t *opcode_p);

#endif
