/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_pkt.h.
 */

#include "emu_pkt.h"
#include "../core/emu_mem.h"
#include "../core/emu_mr.h"
#include "../core/emu_proc.h"

#include <stdlib.h>

void emu_rsp_release(emu_rsp_t *rsp)
{
    if (rsp->mr != NULL) {
        emu_mr_put(rsp->mr);
        rsp->mr = NULL;
    }
    free(rsp->copy);
    rsp->copy = NULL;
}

unsigned emu_iov_slice(const emu_sge_t *sge, unsigned num_sge, uint32_t offset,
                       uint32_t length, struct iovec *iov)
{
    unsigned count = 0;
    const uint8_t *base;
    uint32_t part;
    unsigned i;

    for (i = 0; (i < num_sge) && (length > 0); i++) {
        if (offset >= sge[i].length) {
            offset -= sge[i].length;
            continue;
        }

        base = (sge[i].inl != NULL) ? sge[i].inl :
                                      (const void*)(uintptr_t)sge[i].addr;
        part = emu_min(sge[i].length - offset, length);
        iov[count].iov_base = (void*)(base + offset);
        iov[count].iov_len  = part;
        count++;
        length -= part;
        offset  = 0;
    }

    return count;
}

void emu_pkt_copy_out(const emu_pkt_t *pkt, uint32_t skip, void *buf,
                      uint32_t length)
{
    struct iovec src[EMU_MAX_SGE];
    struct iovec dst = { .iov_base = buf, .iov_len = length };
    unsigned num_src;

    num_src = emu_iov_slice(pkt->sge, pkt->num_sge, pkt->offset + skip, length,
                            src);
    if (num_src > 0) {
        emu_mem_put(emu_self->index, &dst, 1, src, num_src, length);
    }
}
