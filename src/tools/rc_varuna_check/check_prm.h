/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Commands of mlx5 devices (PRM), as far as this program gives them. Fields are named by their
 * first bit and their width; bit 0 is the highest one of the first byte. Sizes and offsets of
 * structures are in bytes.
 */
#ifndef CHECK_PRM_H_
#define CHECK_PRM_H_

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Commands */
#define CHECK_CMD_HCA_CAP       0x100
#define CHECK_CMD_CREATE_CQ     0x400
#define CHECK_CMD_CREATE_QP     0x500
#define CHECK_CMD_RST2INIT      0x502
#define CHECK_CMD_INIT2RTR      0x503
#define CHECK_CMD_RTR2RTS       0x504
#define CHECK_CMD_2ERR          0x507
#define CHECK_CMD_2RST          0x50a
#define CHECK_CMD_QUERY_QP      0x50b
#define CHECK_CMD_CREATE_DCT    0x710
#define CHECK_CMD_QUERY_DCT     0x713
#define CHECK_CMD_VPORT         0x762
#define CHECK_CMD_LAG           0x842
#define CHECK_CMD_OUT           16
#define CHECK_CMD_OPCODE        0x000, 16
#define CHECK_CMD_OBJ           0x048, 24

/* CREATE_CQ */
#define CHECK_CQ_IN             272
#define CHECK_CQ_CQC            16
#define CHECK_CQ_UMEM_OFFSET    0x280
#define CHECK_CQ_UMEM_ID        0x2c0, 32
#define CHECK_CQC_DBR_UMEM_ID   0x020, 32
#define CHECK_CQC_LOG_SIZE      0x063, 5
#define CHECK_CQC_UAR_PAGE      0x068, 24
#define CHECK_CQC_EQN           0x0b8, 8
#define CHECK_CQC_DBR_ADDR      0x1c0

/* CREATE_QP, what changes a queue pair, and QUERY_QP */
#define CHECK_QP_IN             272
#define CHECK_QP_QPC            24
#define CHECK_QP_OPT_MASK       0x080, 32
#define CHECK_QP_UMEM_ID        0x840, 32
#define CHECK_QP_OPT_RIGHTS     0xe     /* To read, to execute atomics, to write */
#define CHECK_QPC_SIZE          232
#define CHECK_QPC_PM_STATE      0x013, 2
#define CHECK_QPC_ORDER_0       0x026, 1
#define CHECK_QPC_ORDER_FORCE   0x027, 1
#define CHECK_QPC_PD            0x028, 24
#define CHECK_QPC_MTU           0x040, 3
#define CHECK_QPC_LOG_MSG_MAX   0x043, 5
#define CHECK_QPC_LOG_SQ_SIZE   0x051, 4
#define CHECK_QPC_UAR_PAGE      0x068, 24
#define CHECK_QPC_REMOTE_QPN    0x0a8, 24
#define CHECK_QPC_PKEY_INDEX    0x0d0, 16
#define CHECK_QPC_GRH           0x0e8, 1
#define CHECK_QPC_RLID          0x0f0, 16
#define CHECK_QPC_ACK_TIMEOUT   0x100, 5
#define CHECK_QPC_SGID_INDEX    0x108, 8
#define CHECK_QPC_HOP_LIMIT     0x118, 8
#define CHECK_QPC_RGID_BYTE     40
#define CHECK_QPC_UDP_SPORT     0x1d0, 16
#define CHECK_QPC_SL            0x1e4, 4
#define CHECK_QPC_PORT          0x1e8, 8
#define CHECK_QPC_RMAC_BYTE     62
#define CHECK_QPC_RETRY_COUNT   0x38d, 3
#define CHECK_QPC_RNR_RETRY     0x390, 3
#define CHECK_QPC_SND_PSN       0x3c8, 24
#define CHECK_QPC_CQN_SND       0x3e8, 24
#define CHECK_QPC_RRE           0x490, 1
#define CHECK_QPC_RWE           0x491, 1
#define CHECK_QPC_ORDER_1       0x49c, 1
#define CHECK_QPC_MIN_RNR       0x4a3, 5
#define CHECK_QPC_RCV_PSN       0x4a8, 24
#define CHECK_QPC_CQN_RCV       0x4e8, 24
#define CHECK_QPC_DBR_ADDR      0x500
#define CHECK_QPC_RQ_TYPE       0x565, 3
#define CHECK_QPC_SRQN          0x568, 24
#define CHECK_QPC_DBR_UMEM_ID   0x720, 32
#define CHECK_QPC_PM_MIGRATED   3
#define CHECK_QPC_RQ_SRQ        1
#define CHECK_QPC_LOG_MSG       30

#define CHECK_EVENT_LAST_WQE    0x13

/* CREATE_DCT, QUERY_DCT */
#define CHECK_DCT_LEN           176
#define CHECK_DCT_DCTC          16
#define CHECK_DCTC_ORDER_FORCE  0x027, 1
#define CHECK_DCTC_CQN          0x048, 24
#define CHECK_DCTC_RWE          0x06d, 1
#define CHECK_DCTC_ORDER_0      0x073, 1
#define CHECK_DCTC_ORDER_1      0x074, 1
#define CHECK_DCTC_SRQN         0x0a8, 24
#define CHECK_DCTC_PD           0x0c8, 24
#define CHECK_DCTC_MTU          0x145, 3
#define CHECK_DCTC_PORT         0x148, 8
#define CHECK_DCTC_PKEY_INDEX   0x150, 16
#define CHECK_DCTC_SGID_INDEX   0x168, 8
#define CHECK_DCTC_HOP_LIMIT    0x178, 8

/* QUERY_HCA_CAP: of the kind that the modifier names, of its present values */
#define CHECK_CAP_OUT           (16 + 4096)
#define CHECK_CAP_CAPS          16
#define CHECK_CAP_GENERAL       0x01
#define CHECK_CAP_GENERAL_2     0x41
#define CHECK_CAP_OOO_SL_MASK   0x138, 1
#define CHECK_CAP_DCT           0x21a, 1
#define CHECK_CAP_LAG_DCT       0x276, 2
#define CHECK_CAP_LAG_MASTER    0x27b, 1
#define CHECK_CAP_2_ORDER_FORCE 0x088, 1

/* QUERY_LAG, QUERY_HCA_VPORT_CONTEXT */
#define CHECK_LAG_OUT           32
#define CHECK_LAG_STATE         0x05d, 3
#define CHECK_VPORT_OUT         (16 + 512)
#define CHECK_VPORT_CONTEXT     16
#define CHECK_VPORT_OOO_SL_MASK 0x290, 16


/** Read a field, which is in one word of 32 bits. */
static inline uint32_t check_prm_get(const uint8_t *base, unsigned bit, unsigned width)
{
    uint32_t word;

    memcpy(&word, base + ((bit / 32) * 4), sizeof(word));
    word = be32toh(word) >> (32 - width - (bit % 32));
    return (width == 32) ? word : (word & ((1u << width) - 1));
}

/** Write a field that is zero. */
static inline void check_prm_set(uint8_t *base, unsigned bit, unsigned width,
                                 uint32_t value)
{
    uint8_t *place = base + ((bit / 32) * 4);
    uint32_t word;

    memcpy(&word, place, sizeof(word));
    word |= htobe32(value << (32 - width - (bit % 32)));
    memcpy(place, &word, sizeof(word));
}

/** Write 64 bits. */
static inline void check_prm_set64(uint8_t *base, unsigned bit, uint64_t value)
{
    value = htobe64(value);
    memcpy(base + (bit / 8), &value, sizeof(value));
}

#endif
