/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Devices without direct verbs (quirk no-mlx5dv). Called by mlx5dv/ and devx/.
 */

#include "emu_verbs.h"
#include "../core/emu_quirk.h"

int emu_vctx_refuses_dv(struct ibv_context *context, const char *func)
{
    return emu_quirk_hits(emu_vctx(context)->port->index, EMU_QUIRK_NO_MLX5DV, 0,
                          0, 0) &&
           emu_refuse(func, "direct verbs are, by quirk no-mlx5dv,");
}
