/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * The device's command interface: opcodes, statuses, and where fields are in
 * commands and contexts, as the PRM (Programmer's Reference Manual) defines
 * them. No code but the two accessors.
 *
 * A field is written as "first bit, number of bits" and passed as such:
 * emu_ifc_get(qpc, EMU_QPC_PD). Bits count from the most significant one of the
 * first big endian word, as the PRM counts.
 */

#ifndef EMU_IFC_H_
#define EMU_IFC_H_

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Opcodes */
#define EMU_CMD_QUERY_HCA_CAP      0x100
#define EMU_CMD_CREATE_MKEY        0x200
#define EMU_CMD_CREATE_CQ          0x400
#define EMU_CMD_QUERY_CQ           0x402
#define EMU_CMD_CREATE_QP          0x500
#define EMU_CMD_RST2INIT_QP        0x502
#define EMU_CMD_INIT2RTR_QP        0x503
#define EMU_CMD_RTR2RTS_QP         0x504
#define EMU_CMD_RTS2RTS_QP         0x505
#define EMU_CMD_2ERR_QP            0x507
#define EMU_CMD_2RST_QP            0x50a
#define EMU_CMD_QUERY_QP           0x50b
#define EMU_CMD_INIT2INIT_QP       0x50e
#define EMU_CMD_CREATE_DCT         0x710
#define EMU_CMD_DRAIN_DCT          0x712
#define EMU_CMD_QUERY_DCT          0x713
#define EMU_CMD_CREATE_RMP         0x90c
#define EMU_CMD_QUERY_RMP          0x90f
#define EMU_CMD_QUERY_HCA_VPORT    0x762
#define EMU_CMD_QUERY_LAG          0x842

/* Context of QUERY_LAG's output, at a byte */
#define EMU_LAG_OUT_OFFSET         8
#define EMU_LAG_STATE              0x01d, 3

/* Statuses */
#define EMU_CMD_ST_OK              0x00
#define EMU_CMD_ST_INT_ERR         0x01
#define EMU_CMD_ST_BAD_OP          0x02
#define EMU_CMD_ST_BAD_PARAM       0x03
#define EMU_CMD_ST_BAD_RES         0x05
#define EMU_CMD_ST_RES_BUSY        0x06
#define EMU_CMD_ST_LIM             0x08
#define EMU_CMD_ST_BAD_RES_STATE   0x09
#define EMU_CMD_ST_NO_RES          0x0f
#define EMU_CMD_ST_BAD_QP_STATE    0x10
#define EMU_CMD_ST_BAD_INP_LEN     0x50
#define EMU_CMD_ST_BAD_OUTP_LEN    0x51

/* All commands. Where an object has a number, it is in the third word of both
 * input and output. */
#define EMU_CMD_MIN_LEN            16
#define EMU_CMD_OPCODE             0x000, 16
#define EMU_CMD_OP_MOD             0x030, 16
#define EMU_CMD_OBJ_NUM            0x048, 24
#define EMU_CMD_STATUS             0x000, 8
#define EMU_CMD_SYNDROME           0x020, 32

/* QUERY_HCA_CAP: op_mod is capability << 1 | current */
#define EMU_CAP_OUT_OFFSET         16    /* Bytes */
#define EMU_CAP_SIZE               256
#define EMU_CAP_TYPE_GENERAL       0x00
#define EMU_CAP_TYPE_ODP           0x02
#define EMU_CAP_TYPE_ATOMIC        0x03
#define EMU_CAP_TYPE_GENERAL_2     0x20

#define EMU_CAP_PORT_TYPE_IB       0
#define EMU_CAP_PORT_TYPE_ETH      1

#define EMU_CAP_LOG_MAX_SRQ_SZ     0x080, 8
#define EMU_CAP_LOG_MAX_QP_SZ      0x088, 8
#define EMU_CAP_LOG_MAX_QP         0x09b, 5
#define EMU_CAP_LOG_MAX_SRQ        0x0ab, 5
#define EMU_CAP_LOG_MAX_CQ_SZ      0x0c8, 8
#define EMU_CAP_LOG_MAX_CQ         0x0db, 5
#define EMU_CAP_LOG_MAX_MKEY       0x0ea, 6
#define EMU_CAP_FIXED_BUFFER_SIZE  0x108, 1
#define EMU_CAP_LOG_MAX_KLM_LIST   0x11a, 6
#define EMU_CAP_LOG_MAX_RA_REQ_DC  0x12a, 6
#define EMU_CAP_OOO_SL_MASK        0x138, 1
#define EMU_CAP_LOG_MAX_RA_RES_DC  0x13a, 6
#define EMU_CAP_LOG_MAX_RA_REQ_QP  0x14a, 6
#define EMU_CAP_LOG_MAX_RA_RES_QP  0x15a, 6
#define EMU_CAP_PORT_TYPE          0x1b6, 2
#define EMU_CAP_NUM_PORTS          0x1b8, 8
#define EMU_CAP_LOG_MAX_MSG        0x1c3, 5
#define EMU_CAP_ORDER_RW_DC        0x1c9, 1
#define EMU_CAP_ORDER_RW_RC        0x1ca, 1
#define EMU_CAP_CQE_VERSION        0x1fc, 4
#define EMU_CAP_COMPACT_AV         0x200, 1
#define EMU_CAP_UMR_NO_ENTITY_SIZE 0x207, 1
#define EMU_CAP_UMR_NO_ATOMIC      0x208, 1
#define EMU_CAP_UMR_NO_INDIRECT    0x209, 1
#define EMU_CAP_SCTR_DATA_CQE      0x215, 1
#define EMU_CAP_DCT                0x21a, 1
#define EMU_CAP_ROCE               0x21d, 1
#define EMU_CAP_ATOMIC             0x21e, 1
#define EMU_CAP_CQ_RESIZE          0x221, 1
#define EMU_CAP_UD                 0x23d, 1
#define EMU_CAP_RC                 0x23f, 1
#define EMU_CAP_UAR_4K             0x240, 1
#define EMU_CAP_LOG_PG_SZ          0x258, 8
#define EMU_CAP_BF                 0x260, 1
#define EMU_CAP_LOG_BF_REG_SIZE    0x26b, 5
#define EMU_CAP_LAG_DCT            0x276, 2
#define EMU_CAP_LAG_MASTER         0x27b, 1
#define EMU_CAP_NUM_LAG_PORTS      0x27c, 4
#define EMU_CAP_MAX_WQE_SZ_SQ      0x290, 16
#define EMU_CAP_MAX_WQE_SZ_RQ      0x2b0, 16
#define EMU_CAP_MAX_WQE_SZ_SQ_DC   0x2d0, 16
#define EMU_CAP_LOG_MAX_PD         0x32b, 5
#define EMU_CAP_LOG_MAX_RMP        0x383, 5
#define EMU_CAP_LOG_MAX_WQ_SZ      0x3db, 5

#define EMU_CAP_2_ORDER_FORCE      0x088, 1

#define EMU_ATOMIC_8B_HOST_ORDER   0x040, 2   /* 1: results are in its order */
#define EMU_ATOMIC_CAN_HOST_ORDER  0x046, 1
#define EMU_ATOMIC_OPERATIONS      0x090, 16
#define EMU_ATOMIC_SIZE_QP         0x0b0, 16  /* Bit mask of sizes in bytes */
#define EMU_ATOMIC_SIZE_DC         0x0d0, 16
#define EMU_ATOMIC_OP_CS           0x1
#define EMU_ATOMIC_OP_FA           0x2
#define EMU_ATOMIC_OP_MASKED_CS    0x4
#define EMU_ATOMIC_OP_MASKED_FA    0x8

/* QUERY_HCA_VPORT_CONTEXT; programs may ask for the first part of the context */
#define EMU_VPORT_OUT_OFFSET       16    /* Bytes */
#define EMU_VPORT_SIZE             512
#define EMU_VPORT_IN_OTHER         0x040, 1
#define EMU_VPORT_IN_PORT_NUM      0x04c, 4
#define EMU_VPORT_IN_NUMBER        0x050, 16
#define EMU_VPORT_PHYS_STATE       0x110, 4
#define EMU_VPORT_PORT_STATE       0x118, 4
#define EMU_VPORT_STATE            0x11c, 4
#define EMU_VPORT_SYSTEM_GUID      0x140, 64
#define EMU_VPORT_PORT_GUID        0x180, 64
#define EMU_VPORT_NODE_GUID        0x1c0, 64
#define EMU_VPORT_OOO_SL_MASK      0x290, 16
#define EMU_VPORT_LID              0x300, 16
#define EMU_VPORT_SUBNET_TIMEOUT   0x31b, 5
#define EMU_VPORT_SM_LID           0x320, 16

/* CREATE_CQ, QUERY_CQ: the context is at the same place in both */
#define EMU_CQ_CMD_LEN             272
#define EMU_CQ_CMD_CQC             16
#define EMU_CQ_CMD_UMEM_OFFSET     0x280, 64
#define EMU_CQ_CMD_UMEM_ID         0x2c0, 32
#define EMU_CQC_STATUS             0x000, 4
#define EMU_CQC_CQE_SZ             0x008, 3
#define EMU_CQC_COLLAPSED          0x00b, 1
#define EMU_CQC_IGNORE_OVERRUN     0x00e, 1
#define EMU_CQC_COMPRESS           0x011, 1
#define EMU_CQC_STATE              0x014, 4
#define EMU_CQC_DBR_UMEM_ID        0x020, 32
#define EMU_CQC_PAGE_OFFSET        0x054, 6
#define EMU_CQC_LOG_SIZE           0x063, 5
#define EMU_CQC_UAR_PAGE           0x068, 24
#define EMU_CQC_EQN                0x0b8, 8
#define EMU_CQC_CONSUMER           0x148, 24
#define EMU_CQC_PRODUCER           0x168, 24
#define EMU_CQC_DBR_ADDR           0x1c0, 64
#define EMU_CQC_STATUS_OVERFLOW    0x9
#define EMU_CQC_CQE_SZ_64          0
#define EMU_CQC_CQE_SZ_128         1
#define EMU_CQC_STATE_SOLICITED    0x6
#define EMU_CQC_STATE_ARMED        0x9
#define EMU_CQC_STATE_FIRED        0xa

/* CREATE_QP, its modifications and its query: bytes of, and offset of the QP
 * context in, the command */
#define EMU_QP_CMD_LEN             272
#define EMU_QP_CMD_QPC             24
#define EMU_QP_CMD_OPT_MASK        0x080, 32
#define EMU_QP_CMD_WQ_UMEM_OFFSET  0x800, 64
#define EMU_QP_CMD_WQ_UMEM_ID      0x840, 32
#define EMU_QP_OPT_RRE             (1u << 1)
#define EMU_QP_OPT_RAE             (1u << 2)
#define EMU_QP_OPT_RWE             (1u << 3)

#define EMU_QPC_STATE              0x000, 4
#define EMU_QPC_ST                 0x008, 8
#define EMU_QPC_PM_STATE           0x013, 2
#define EMU_QPC_OFFLOAD_TYPE       0x018, 4
#define EMU_QPC_ORDER_0            0x026, 1
#define EMU_QPC_ORDER_FORCE        0x027, 1
#define EMU_QPC_PD                 0x028, 24
#define EMU_QPC_MTU                0x040, 3
#define EMU_QPC_LOG_MSG_MAX        0x043, 5
#define EMU_QPC_LOG_RQ_SIZE        0x049, 4
#define EMU_QPC_LOG_RQ_STRIDE      0x04d, 3
#define EMU_QPC_NO_SQ              0x050, 1
#define EMU_QPC_LOG_SQ_SIZE        0x051, 4
#define EMU_QPC_UAR_PAGE           0x068, 24
#define EMU_QPC_USER_INDEX         0x088, 24
#define EMU_QPC_REMOTE_QPN         0x0a8, 24
#define EMU_QPC_LOG_SRA_MAX        0x388, 3
#define EMU_QPC_RETRY_COUNT        0x38d, 3
#define EMU_QPC_RNR_RETRY          0x390, 3
#define EMU_QPC_NEXT_SEND_PSN      0x3c8, 24
#define EMU_QPC_CQN_SND            0x3e8, 24
#define EMU_QPC_LAST_ACKED_PSN     0x448, 24
#define EMU_QPC_LOG_RRA_MAX        0x488, 3
#define EMU_QPC_ATOMIC_MODE        0x48c, 4
#define EMU_QPC_RRE                0x490, 1
#define EMU_QPC_RWE                0x491, 1
#define EMU_QPC_RAE                0x492, 1
#define EMU_QPC_ORDER_1            0x49c, 1
#define EMU_QPC_MIN_RNR_NAK        0x4a3, 5
#define EMU_QPC_NEXT_RCV_PSN       0x4a8, 24
#define EMU_QPC_CQN_RCV            0x4e8, 24
#define EMU_QPC_DBR_ADDR           0x500, 64
#define EMU_QPC_RQ_TYPE            0x565, 3
#define EMU_QPC_SRQN               0x568, 24
#define EMU_QPC_RMSN               0x588, 24
#define EMU_QPC_HW_SQ_COUNTER      0x5a0, 16
#define EMU_QPC_SW_SQ_COUNTER      0x5b0, 16
#define EMU_QPC_CS_REQ             0x630, 8
#define EMU_QPC_CS_RES             0x638, 8
#define EMU_QPC_DBR_UMEM_ID        0x720, 32
/* The primary address path starts at bit 0xc0 of the context */
#define EMU_QPC_PKEY_INDEX         0x0d0, 16
#define EMU_QPC_GRH                0x0e8, 1
#define EMU_QPC_MLID               0x0e9, 7
#define EMU_QPC_RLID               0x0f0, 16
#define EMU_QPC_ACK_TIMEOUT        0x100, 5
#define EMU_QPC_SRC_ADDR_INDEX     0x108, 8
#define EMU_QPC_STAT_RATE          0x114, 4
#define EMU_QPC_HOP_LIMIT          0x118, 8
#define EMU_QPC_TCLASS             0x124, 8
#define EMU_QPC_FLOW_LABEL         0x12c, 20
#define EMU_QPC_RGID_BYTE          40
#define EMU_QPC_UDP_SPORT          0x1d0, 16
#define EMU_QPC_ETH_PRIO           0x1e1, 3
#define EMU_QPC_SL                 0x1e4, 4
#define EMU_QPC_PORT               0x1e8, 8
#define EMU_QPC_RMAC_BYTE          62

#define EMU_QPC_ST_RC              0x0
#define EMU_QPC_ST_DCI             0x5
#define EMU_QPC_PM_MIGRATED        0x3
#define EMU_QPC_RQ_TYPE_REGULAR    0
#define EMU_QPC_RQ_TYPE_SRQ        1
#define EMU_QPC_RQ_TYPE_NONE       3
#define EMU_QPC_LOG_MSG            30

#define EMU_QPC_STATE_RST          0
#define EMU_QPC_STATE_INIT         1
#define EMU_QPC_STATE_RTR          2
#define EMU_QPC_STATE_RTS          3
#define EMU_QPC_STATE_SQER         4
#define EMU_QPC_STATE_ERR          6
#define EMU_QPC_STATE_SQD          7

/* CREATE_DCT, QUERY_DCT */
#define EMU_DCT_CMD_LEN            80
#define EMU_DCT_CMD_DCTC           16
#define EMU_DCTC_STATE             0x004, 4
#define EMU_DCTC_OFFLOAD_TYPE      0x018, 4
#define EMU_DCTC_ORDER_FORCE       0x027, 1
#define EMU_DCTC_USER_INDEX        0x028, 24
#define EMU_DCTC_CQN               0x048, 24
#define EMU_DCTC_ATOMIC_MODE       0x068, 4
#define EMU_DCTC_RRE               0x06c, 1
#define EMU_DCTC_RWE               0x06d, 1
#define EMU_DCTC_RAE               0x06e, 1
#define EMU_DCTC_ORDER_0           0x073, 1
#define EMU_DCTC_ORDER_1           0x074, 1
#define EMU_DCTC_CS_RES            0x088, 8
#define EMU_DCTC_MIN_RNR_NAK       0x093, 5
#define EMU_DCTC_SRQN              0x0a8, 24
#define EMU_DCTC_PD                0x0c8, 24
#define EMU_DCTC_KEY               0x100, 64
#define EMU_DCTC_MTU               0x145, 3
#define EMU_DCTC_PORT              0x148, 8
#define EMU_DCTC_PKEY_INDEX        0x150, 16
#define EMU_DCTC_MY_ADDR_INDEX     0x168, 8
#define EMU_DCTC_STATE_ACTIVE      0
#define EMU_DCTC_STATE_DRAINED     2

/* CREATE_RMP, QUERY_RMP. The work queue starts 48 bytes into the context. */
#define EMU_RMP_CMD_LEN            272
#define EMU_RMP_CMD_RMPC           32
#define EMU_RMPC_STATE             0x008, 4
#define EMU_RMPC_BASIC_CYCLIC      0x020, 1
#define EMU_RMPC_WQ_TYPE           0x180, 4
#define EMU_RMPC_WQ_SIGNATURE      0x184, 1
#define EMU_RMPC_LWM               0x1b0, 16
#define EMU_RMPC_PD                0x1c8, 24
#define EMU_RMPC_DBR_ADDR          0x200, 64
#define EMU_RMPC_HW_COUNTER        0x240, 32
#define EMU_RMPC_SW_COUNTER        0x260, 32
#define EMU_RMPC_LOG_STRIDE        0x28c, 4
#define EMU_RMPC_LOG_SIZE          0x29b, 5
#define EMU_RMPC_DBR_UMEM_ID       0x2c0, 32
#define EMU_RMPC_WQ_UMEM_ID        0x2e0, 32
#define EMU_RMPC_WQ_UMEM_OFFSET    0x300, 64
#define EMU_RMPC_STATE_RDY         1
#define EMU_RMPC_WQ_LIST           0
#define EMU_RMPC_WQ_CYCLIC         1

/* CREATE_MKEY */
#define EMU_MKEY_CMD_LEN           272
#define EMU_MKEY_CMD_MKC           16
#define EMU_MKEY_CMD_KLM           272
#define EMU_MKEY_CMD_UMEM_VALID    0x061, 1
#define EMU_MKEY_CMD_COUNT         0x300, 32
#define EMU_MKC_FREE               0x001, 1
#define EMU_MKC_MODE_4_2           0x003, 3
#define EMU_MKC_UMR_EN             0x010, 1
#define EMU_MKC_A                  0x011, 1
#define EMU_MKC_RW                 0x012, 1
#define EMU_MKC_RR                 0x013, 1
#define EMU_MKC_LW                 0x014, 1
#define EMU_MKC_MODE_1_0           0x016, 2
#define EMU_MKC_MKEY_7_0           0x038, 8
#define EMU_MKC_LENGTH64           0x060, 1
#define EMU_MKC_PD                 0x068, 24
#define EMU_MKC_START_ADDR         0x080, 64
#define EMU_MKC_LEN                0x0c0, 64
#define EMU_MKC_LOG_ENTITY_SIZE    0x1db, 5
#define EMU_MKC_MODE_KSM           3
#define EMU_KLM_LEN                16
#define EMU_KLM_MKEY               0x020, 32
#define EMU_KLM_ADDRESS            0x040, 64

/* Events */
#define EMU_DEVX_EVENT_COMP        0x00
#define EMU_DEVX_EVENT_COMM_EST    0x02
#define EMU_DEVX_EVENT_SQ_DRAINED  0x03
#define EMU_DEVX_EVENT_CQ_ERROR    0x04
#define EMU_DEVX_EVENT_WQ_CATAS    0x05
#define EMU_DEVX_EVENT_WQ_INVAL    0x10
#define EMU_DEVX_EVENT_WQ_ACCESS   0x11
#define EMU_DEVX_EVENT_LAST_WQE    0x13


/**
 * Read a field. One of 64 bits starts at a multiple of 32, others don't cross
 * a word.
 */
static inline uint64_t
emu_ifc_get(const void *base, unsigned bit, unsigned num_bits)
{
    const uint8_t *word = (const uint8_t*)base + (bit / 32) * 4;
    uint64_t value64;
    uint32_t value32;

    if (num_bits == 64) {
        memcpy(&value64, word, sizeof(value64));
        return be64toh(value64);
    }

    memcpy(&value32, word, sizeof(value32));
    return (be32toh(value32) >> (32 - num_bits - (bit & 31))) &
           ((1ul << num_bits) - 1);
}

/** Write a field. */
static inline void
emu_ifc_set(void *base, unsigned bit, unsigned num_bits, uint64_t value)
{
    uint8_t *word = (uint8_t*)base + (bit / 32) * 4;
    unsigned shift;
    uint32_t value32, mask;

    if (num_bits == 64) {
        value = htobe64(value);
        memcpy(word, &value, sizeof(value));
        return;
    }

    shift = 32 - num_bits - (bit & 31);
    mask  = ((1ul << num_bits) - 1) << shift;
    memcpy(&value32, word, sizeof(value32));
    value32 = htobe32((be32toh(value32) & ~mask) |
                      (((uint32_t)value << shift) & mask));
    memcpy(word, &value32, sizeof(value32));
}

#endif
