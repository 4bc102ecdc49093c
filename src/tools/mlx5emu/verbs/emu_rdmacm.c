/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * librdmacm's entry points. No connection manager is emulated: they report that
 * there is no RDMA device, which programs take as "not available". Without
 * these functions the real library would look for the kernel counterparts of
 * the emulated devices.
 *
 * Called by programs, and by libuct_rdmacm.
 */

#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>

#include <errno.h>
#include <stddef.h>


static int emu_rdmacm_no_device(void)
{
    errno = ENODEV;
    return -1;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    emu_rdmacm_no_device();
    return NULL;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
                   void *context, enum rdma_port_space ps)
{
    (void)channel;
    (void)id;
    (void)context;
    (void)ps;
    return emu_rdmacm_no_device();
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res,
                   struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
    (void)id;
    (void)res;
    (void)pd;
    (void)qp_init_attr;
    return emu_rdmacm_no_device();
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
    if (num_devices != NULL) {
        *num_devices = 0;
    }

    emu_rdmacm_no_device();
    return NULL;
}

int rdma_getaddrinfo(const char *node, const char *service,
                     const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo **res)
{
    (void)node;
    (void)service;
    (void)hints;
    (void)res;
    return emu_rdmacm_no_device();
}

int rsocket(int domain, int type, int protocol)
{
    (void)domain;
    (void)type;
    (void)protocol;
    return emu_rdmacm_no_device();
}
