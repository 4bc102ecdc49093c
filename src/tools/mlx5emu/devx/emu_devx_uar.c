/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Doorbell registers by DEVX. All are on the page of the device's context: a
 * doorbell says which queue it is for. The kernel gives them to contexts that were
 * not opened for DEVX as well. Called by programs.
 */

#include "emu_devx.h"
#include "../uar/emu_uar.h"

#include <stdlib.h>

/* Non-cached, and not shared with other callers: older headers lack the name */
#define EMU_UAR_NC_DEDICATED    (UINT32_C(1) << 31)


struct mlx5dv_devx_uar *mlx5dv_devx_alloc_uar(struct ibv_context *context,
                                              uint32_t flags)
{
    struct mlx5dv_devx_uar *uar;

    if ((context == NULL) || !emu_vctx_is_mine(context)) {
        return emu_verbs_fail(EINVAL);
    }

    if (emu_vctx_refuses_dv(context, __func__)) {
        return NULL;
    }

    if (emu_fabric->cfg.no_devx) {
        return emu_refuse_object(__func__, "DEVX is, by --no-devx,");
    }

    if ((flags != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF) &&
        (flags != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC) &&
        (flags != EMU_UAR_NC_DEDICATED)) {
        return emu_verbs_fail(EOPNOTSUPP);
    }

    /* No BlueFlame, so no memory that combines writes */
    if (flags == MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF) {
        return emu_refuse_object(__func__, "BlueFlame is");
    }

    uar = calloc(1, sizeof(*uar));
    if (uar == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    uar->base_addr = emu_vctx(context)->uar;
    uar->reg_addr  = (char*)uar->base_addr + EMU_UAR_OFFSET_SQ;
    uar->page_id   = EMU_DEVX_UAR_PAGE;
    return uar;
}

void mlx5dv_devx_free_uar(struct mlx5dv_devx_uar *uar)
{
    free(uar);
}
