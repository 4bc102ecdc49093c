/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Commands of memory keys: indirect ones in KSM mode, which name a memory
 * region by other addresses or with fewer rights. Called by emu_devx_cmd.c.
 *
 *      start_addr                                        start_addr + len
 *          |---------|---------|---------|-----                 entries
 *               |=====================|                         what the
 *             region's begin    region's end                    region has
 */

#include "emu_devx.h"


static unsigned emu_devx_mkey_access(const void *mkc)
{
    return (emu_ifc_get(mkc, EMU_MKC_LW) ? IBV_ACCESS_LOCAL_WRITE : 0) |
           (emu_ifc_get(mkc, EMU_MKC_RR) ? IBV_ACCESS_REMOTE_READ : 0) |
           (emu_ifc_get(mkc, EMU_MKC_RW) ? IBV_ACCESS_REMOTE_WRITE : 0) |
           (emu_ifc_get(mkc, EMU_MKC_A) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* All entries must belong to one region and follow each other in it */
static int emu_devx_mkey_check_list(const emu_devx_cmd_t *cmd,
                                    uint64_t entity_size)
{
    const uint8_t *klm = (const uint8_t*)cmd->in + EMU_MKEY_CMD_KLM;
    uint32_t count     = emu_ifc_get(cmd->in, EMU_MKEY_CMD_COUNT);
    uint32_t i;

    if ((count == 0) ||
        (count > (cmd->inlen - EMU_MKEY_CMD_KLM) / EMU_KLM_LEN)) {
        return EMU_CMD_ST_BAD_INP_LEN;
    }

    for (i = 1; i < count; ++i) {
        if ((emu_ifc_get(klm + i * EMU_KLM_LEN, EMU_KLM_MKEY) !=
             emu_ifc_get(klm, EMU_KLM_MKEY)) ||
            (emu_ifc_get(klm + i * EMU_KLM_LEN, EMU_KLM_ADDRESS) !=
             emu_ifc_get(klm, EMU_KLM_ADDRESS) + i * entity_size)) {
            return EMU_CMD_ST_BAD_PARAM;
        }
    }

    return EMU_CMD_ST_OK;
}

int emu_devx_create_mkey(emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd)
{
    const uint8_t *mkc   = (const uint8_t*)cmd->in + EMU_MKEY_CMD_MKC;
    const uint8_t *klm   = (const uint8_t*)cmd->in + EMU_MKEY_CMD_KLM;
    uint64_t entity_size = 1ul << emu_ifc_get(mkc, EMU_MKC_LOG_ENTITY_SIZE);
    uint64_t capacity    = entity_size *
                           emu_ifc_get(cmd->in, EMU_MKEY_CMD_COUNT);
    emu_mr_window_t window;
    emu_pd_t *pd;
    int status, ret;

    if ((emu_ifc_get(mkc, EMU_MKC_MODE_1_0) != EMU_MKC_MODE_KSM) ||
        emu_ifc_get(mkc, EMU_MKC_MODE_4_2) || emu_ifc_get(mkc, EMU_MKC_FREE) ||
        emu_ifc_get(mkc, EMU_MKC_UMR_EN) || emu_ifc_get(mkc, EMU_MKC_LENGTH64) ||
        emu_ifc_get(cmd->in, EMU_MKEY_CMD_UMEM_VALID)) {
        return EMU_CMD_ST_BAD_PARAM;
    }

    status = emu_devx_mkey_check_list(cmd, entity_size);
    if (status != EMU_CMD_ST_OK) {
        return status;
    }

    pd = emu_devx_find_pd(cmd->context, emu_ifc_get(mkc, EMU_MKC_PD));
    if (pd == NULL) {
        return EMU_CMD_ST_BAD_RES;
    }

    window.key     = emu_ifc_get(klm, EMU_KLM_MKEY);
    window.address = emu_ifc_get(klm, EMU_KLM_ADDRESS);
    window.start   = emu_ifc_get(mkc, EMU_MKC_START_ADDR);
    window.length  = emu_ifc_get(mkc, EMU_MKC_LEN);
    window.access  = emu_devx_mkey_access(mkc);
    window.variant = emu_ifc_get(mkc, EMU_MKC_MKEY_7_0);
    if (window.length > capacity) {
        return EMU_CMD_ST_BAD_PARAM;
    }

    ret = emu_mr_reg_window(pd, &window, &obj->mr);
    if (ret != 0) {
        return emu_devx_status(ret);
    }

    obj->num = obj->mr->key >> 8;
    return EMU_CMD_ST_OK;
}
