/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_ctx.h.
 */

#include "emu_ctx.h"
#include "emu_chan.h"
#include "emu_fabric.h"
#include "emu_proc.h"
#include "emu_table.h"

#include <errno.h>

int emu_ctx_open(uint32_t port, uint32_t nic_gen, emu_ctx_t **ctx_p)
{
    emu_chan_t *async;
    emu_ctx_t *ctx;
    int index, ret, fd;

    ret = emu_chan_open(&async, &fd);
    if (ret != 0) {
        return ret;
    }

    emu_lock(&emu_fabric->table_lock);
    index = emu_table_find(EMU_TABLE_CTX, emu_fabric->ctxs, sizeof(emu_ctx_t),
                           0, EMU_MAX_CTXS);
    if (index >= 0) {
        ctx          = &emu_fabric->ctxs[index];
        ctx->index   = index;
        ctx->proc    = emu_self->index;
        ctx->port    = port;
        ctx->nic_gen = nic_gen;
        ctx->async   = async;
        ctx->used    = 1;
        *ctx_p       = ctx;
    }
    emu_unlock(&emu_fabric->table_lock);

    if (index < 0) {
        emu_chan_close(async);
        return -ENOSPC;
    }
    return 0;
}

void emu_ctx_close(emu_ctx_t *ctx)
{
    __atomic_store_n(&ctx->used, 0, __ATOMIC_RELEASE);
    emu_chan_close(ctx->async);
}

void emu_ctx_raise(uint32_t port, uint32_t nic_gen, enum ibv_event_type type)
{
    const emu_ctx_t *ctx;
    unsigned i;

    for (i = 0; i < EMU_MAX_CTXS; i++) {
        ctx = &emu_fabric->ctxs[i];
        if (ctx->used && (ctx->port == port) && (ctx->nic_gen == nic_gen)) {
            emu_chan_post(ctx->async, type, 1, 0);
        }
    }
}
