/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Whether NICs register the memory of GPUs by dmabufs.
 */
#include "check_def.h"

#include <errno.h>
#include <string.h>

/* A driver that registers dmabufs looks for this one, and there is none. UCX asks in the same
 * way. */
static int check_dmabuf_error(check_nic_t *nic)
{
    struct ibv_mr *mr;

    errno = 0;
    mr    = ibv_reg_dmabuf_mr(nic->pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE);
    if (mr != NULL) {
        ibv_dereg_mr(mr);
    }

    return errno;
}

void check_dmabuf(check_run_t *run)
{
    check_nic_t *nic;
    unsigned i;
    int error;

    for (i = 0; i < run->nics.count; ++i) {
        nic   = &run->nics.nic[i];
        error = check_dmabuf_error(nic);
        if (error == EBADF) {
            check_row(run, "dmabuf", CHECK_OK, nic->wire.name,
                      "the driver registers memory of GPUs");
        } else {
            check_row(run, "dmabuf", CHECK_NOTE, nic->wire.name,
                      "the driver registers no memory of GPUs: %s", strerror(error));
        }
    }
}
