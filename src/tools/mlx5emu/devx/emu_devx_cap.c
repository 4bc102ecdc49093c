/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * The commands that report the device's capabilities. Only what is modelled is
 * announced. Called by emu_devx_cmd.c.
 */

#include "emu_devx.h"
#include "../core/emu_quirk.h"

#define EMU_DEVX_LOG2(_pow2) (31 - __builtin_clz(_pow2))


static void emu_devx_fill_general(void *cap)
{
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_SRQ_SZ, EMU_DEVX_LOG2(EMU_RQ_MAX_WQE));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_QP_SZ, EMU_DEVX_LOG2(EMU_SQ_MAX_BB));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_QP, EMU_DEVX_LOG2(EMU_MAX_QPS));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_SRQ, EMU_DEVX_LOG2(EMU_MAX_SRQS));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_CQ_SZ, EMU_DEVX_LOG2(EMU_CQ_MAX_CQE));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_CQ, EMU_DEVX_LOG2(EMU_MAX_CQS));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_MKEY, EMU_DEVX_LOG2(EMU_MAX_MRS));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_PD, EMU_DEVX_LOG2(EMU_MAX_PDS));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_RMP, EMU_DEVX_LOG2(EMU_MAX_SRQS));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_WQ_SZ, EMU_DEVX_LOG2(EMU_RQ_MAX_WQE));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_RA_REQ_DC,
                EMU_DEVX_LOG2(EMU_MAX_RD_ATOMIC));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_RA_RES_DC,
                EMU_DEVX_LOG2(EMU_MAX_RD_ATOMIC));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_RA_REQ_QP,
                EMU_DEVX_LOG2(EMU_MAX_RD_ATOMIC));
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_RA_RES_QP,
                EMU_DEVX_LOG2(EMU_MAX_RD_ATOMIC));
    emu_ifc_set(cap, EMU_CAP_NUM_PORTS, 1);
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_MSG, EMU_DEVX_LOG2(EMU_MAX_MSG));
    emu_ifc_set(cap, EMU_CAP_CQE_VERSION, 1);
    emu_ifc_set(cap, EMU_CAP_COMPACT_AV, 1);
    emu_ifc_set(cap, EMU_CAP_SCTR_DATA_CQE, 1);
    emu_ifc_set(cap, EMU_CAP_DCT, 1);
    emu_ifc_set(cap, EMU_CAP_ATOMIC, 1);
    emu_ifc_set(cap, EMU_CAP_CQ_RESIZE, 1);
    emu_ifc_set(cap, EMU_CAP_UD, 1);
    emu_ifc_set(cap, EMU_CAP_RC, 1);
    emu_ifc_set(cap, EMU_CAP_UAR_4K, 1);
    emu_ifc_set(cap, EMU_CAP_LOG_PG_SZ, EMU_DEVX_LOG2(EMU_PAGE));
    emu_ifc_set(cap, EMU_CAP_MAX_WQE_SZ_SQ, EMU_WQE_MAX_DS * 16);
    emu_ifc_set(cap, EMU_CAP_MAX_WQE_SZ_SQ_DC, EMU_WQE_MAX_DS * 16);
    emu_ifc_set(cap, EMU_CAP_MAX_WQE_SZ_RQ, EMU_VERBS_MAX_RECV_SGE * 16);

    emu_ifc_set(cap, EMU_CAP_FIXED_BUFFER_SIZE, 1);
    emu_ifc_set(cap, EMU_CAP_LOG_MAX_KLM_LIST, 16);

    /* No memory keys are made by work requests. That atomics could be turned on
     * by one is not denied: programs take it for "indirect keys permit atomics",
     * which ours do. */
    emu_ifc_set(cap, EMU_CAP_UMR_NO_ENTITY_SIZE, 1);
    emu_ifc_set(cap, EMU_CAP_UMR_NO_INDIRECT, 1);
}

/* Service levels are InfiniBand's: so is the mask of those with adaptive routing. Queue pairs
 * may place data out of order where the fabric routes so */
static void emu_devx_fill_port(void *cap, const emu_port_t *port)
{
    int is_roce = emu_port_is_roce(port);

    emu_ifc_set(cap, EMU_CAP_PORT_TYPE, is_roce ? EMU_CAP_PORT_TYPE_ETH :
                                                  EMU_CAP_PORT_TYPE_IB);
    emu_ifc_set(cap, EMU_CAP_ROCE, is_roce);
    emu_ifc_set(cap, EMU_CAP_OOO_SL_MASK, !is_roce);
    emu_ifc_set(cap, EMU_CAP_ORDER_RW_RC, emu_port_ooo_sls(port) != 0);
    emu_ifc_set(cap, EMU_CAP_ORDER_RW_DC, emu_port_ooo_sls(port) != 0);
}

static void emu_devx_fill_atomic(void *cap)
{
    emu_ifc_set(cap, EMU_ATOMIC_8B_HOST_ORDER, 1);
    emu_ifc_set(cap, EMU_ATOMIC_CAN_HOST_ORDER, 1);
    emu_ifc_set(cap, EMU_ATOMIC_OPERATIONS,
                EMU_ATOMIC_OP_CS | EMU_ATOMIC_OP_FA | EMU_ATOMIC_OP_MASKED_CS |
                EMU_ATOMIC_OP_MASKED_FA);
    emu_ifc_set(cap, EMU_ATOMIC_SIZE_QP, 4 | 8);
    emu_ifc_set(cap, EMU_ATOMIC_SIZE_DC, 4 | 8);
}

static void emu_devx_fill_bond(void *cap, const emu_port_t *port)
{
    emu_ifc_set(cap, EMU_CAP_LAG_DCT,
                emu_quirk_value(port->index, EMU_QUIRK_BOND, 1));
    emu_ifc_set(cap, EMU_CAP_LAG_MASTER, 1);
    emu_ifc_set(cap, EMU_CAP_NUM_LAG_PORTS, 2);
}

int emu_devx_query_hca_cap(const emu_devx_cmd_t *cmd)
{
    const emu_port_t *port = emu_vctx(cmd->context)->port;
    uint8_t *cap           = (uint8_t*)cmd->out + EMU_CAP_OUT_OFFSET;

    if (cmd->outlen < EMU_CAP_OUT_OFFSET + EMU_CAP_SIZE) {
        return EMU_CMD_ST_BAD_OUTP_LEN;
    }

    /* The lowest bit selects maximal or present ones, which are the same */
    switch (emu_ifc_get(cmd->in, EMU_CMD_OP_MOD) >> 1) {
    case EMU_CAP_TYPE_GENERAL:
        emu_devx_fill_general(cap);
        emu_devx_fill_port(cap, port);
        if (emu_port_is_bond(port)) {
            emu_devx_fill_bond(cap, port);
        }
        return EMU_CMD_ST_OK;
    case EMU_CAP_TYPE_ATOMIC:
        emu_devx_fill_atomic(cap);
        return EMU_CMD_ST_OK;
    case EMU_CAP_TYPE_GENERAL_2:
        emu_ifc_set(cap, EMU_CAP_2_ORDER_FORCE, 1);
        return EMU_CMD_ST_OK;
    default:
        return EMU_CMD_ST_BAD_PARAM;
    }
}

int emu_devx_query_vport(const emu_devx_cmd_t *cmd)
{
    const emu_ctx_t *ctx   = emu_vctx(cmd->context)->ctx;
    const emu_port_t *port = &emu_fabric->ports[ctx->port];
    uint8_t vport[EMU_VPORT_SIZE];
    struct ibv_port_attr attr;
    emu_addr_t addr;
    uint64_t guid;

    /* Only the manager of the device may query other functions, and Ethernet ports have
     * another kind of context */
    if (emu_port_is_roce(port) ||
        (emu_ifc_get(cmd->in, EMU_VPORT_IN_PORT_NUM) != 1) ||
        (emu_ifc_get(cmd->in, EMU_VPORT_IN_OTHER) != 0) ||
        (emu_ifc_get(cmd->in, EMU_VPORT_IN_NUMBER) != 0)) {
        return EMU_CMD_ST_BAD_PARAM;
    }

    emu_port_query(port, &attr);
    emu_port_addr(port, &addr);
    guid = emu_addr_guid(&addr);
    memset(vport, 0, sizeof(vport));
    emu_ifc_set(vport, EMU_VPORT_PHYS_STATE, attr.phys_state);
    emu_ifc_set(vport, EMU_VPORT_PORT_STATE, attr.state);
    emu_ifc_set(vport, EMU_VPORT_STATE, attr.state == IBV_PORT_ACTIVE);
    emu_ifc_set(vport, EMU_VPORT_SYSTEM_GUID, guid);
    emu_ifc_set(vport, EMU_VPORT_PORT_GUID, guid);
    emu_ifc_set(vport, EMU_VPORT_NODE_GUID, guid);
    emu_ifc_set(vport, EMU_VPORT_OOO_SL_MASK, emu_port_ooo_sls(port));
    emu_ifc_set(vport, EMU_VPORT_LID, attr.lid);
    emu_ifc_set(vport, EMU_VPORT_SUBNET_TIMEOUT, attr.subnet_timeout);
    emu_ifc_set(vport, EMU_VPORT_SM_LID, attr.sm_lid);
    memcpy((uint8_t*)cmd->out + EMU_VPORT_OUT_OFFSET, vport,
           emu_min(sizeof(vport), cmd->outlen - EMU_VPORT_OUT_OFFSET));
    return EMU_CMD_ST_OK;
}

int emu_devx_query_lag(const emu_devx_cmd_t *cmd)
{
    if (cmd->outlen < EMU_CMD_MIN_LEN) {
        return EMU_CMD_ST_BAD_OUTP_LEN;
    }

    emu_ifc_set((uint8_t*)cmd->out + EMU_LAG_OUT_OFFSET, EMU_LAG_STATE,
                emu_port_is_bond(emu_vctx(cmd->context)->port));
    return EMU_CMD_ST_OK;
}
