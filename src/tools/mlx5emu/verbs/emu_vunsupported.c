/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Verbs which the emulated NIC doesn't have: multicast, enhanced connections,
 * import of objects from other processes. Without these functions a program
 * would reach the real library, which takes the emulator's objects for its own.
 */

#include "emu_verbs.h"


int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp;
    (void)gid;
    (void)lid;
    return emu_refuse(__func__, NULL);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp;
    (void)gid;
    (void)lid;
    return emu_refuse(__func__, NULL);
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    return ((ece == NULL) || (ece->vendor_id == 0)) ?
           0 : emu_refuse(__func__, NULL);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    ece->vendor_id = 0; /* As a device without them says */
    ece->options   = 0;
    ece->comp_mask = 0;
    return 0;
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
    (void)cmd_fd;
    return emu_refuse_object(__func__, NULL);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
    (void)context;
    (void)pd_handle;
    return emu_refuse_object(__func__, NULL);
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd;
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    (void)pd;
    (void)mr_handle;
    return emu_refuse_object(__func__, NULL);
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
    (void)context;
    (void)dm_handle;
    return emu_refuse_object(__func__, NULL);
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
    (void)dm;
}
