/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Completion queue entries in the format of mlx5. Pure: bytes only.
 *
 * Called by: core/emu_cq.c (writes), verbs/ (may use the offsets to read).
 */

#ifndef EMU_CQE_H_
#define EMU_CQE_H_

#include <stdint.h>

/** A completion, in host terms. */
typedef struct emu_cqe {
    uint8_t    opcode;        /* MLX5_CQE_REQ, _RESP_SEND, _REQ_ERR, ... */
    uint8_t    wqe_opcode;    /* requester: MLX5_OPCODE_x */
    uint8_t    syndrome;      /* errors: MLX5_CQE_SYNDROME_x */
    uint8_t    vendor;        /* errors: vendor's syndrome */
    uint8_t    solicited;
    uint8_t    sl;
    uint8_t    has_grh;       /* receive: the data begin with network headers */
    uint16_t   slid;          /* receive: sender's LID */
    uint16_t   wqe_counter;
    uint32_t   qpn;
    uint32_t   src_qpn;       /* receive: sender's QP */
    uint32_t   byte_cnt;
    uint32_t   srqn_uidx;
    uint32_t   imm;           /* as it was in the WQE: network order */
    uint64_t   timestamp;
    const void *inl;          /* data to be put into the entry, or NULL; needs
                                 byte_cnt <= 32, or <= 64 if cqe_size is 128 */
} emu_cqe_t;

/**
 * Write an entry, its owner byte last.
 *
 * @param [in] buf       The entry, cqe_size bytes.
 * @param [in] cqe_size  64 or 128.
 * @param [in] owner     The owner bit of this round.
 */
void emu_cqe_write(void *buf, unsigned cqe_size, const emu_cqe_t *cqe,
                   unsigned owner);

/** Mark an entry as never written. */
void emu_cqe_init(void *buf, unsigned cqe_size);

/** Whether an entry was written in the round of index @a ci. */
int emu_cqe_is_valid(const void *buf, unsigned cqe_size, uint32_t ci,
                     uint32_t cqe_cnt);

/** The queue pair that an entry is about. */
uint32_t emu_cqe_qpn(const void *buf, unsigned cqe_size);

/** Copy an entry to the place of another round; @a owner as in @ref emu_cqe_write. */
void emu_cqe_copy(void *dst, const void *src, unsigned cqe_size, unsigned owner);

/** Copy an entry, but for the owner bit, which stays that of @a dst. */
void emu_cqe_move(void *dst, const void *src, unsigned cqe_size);

#endif
