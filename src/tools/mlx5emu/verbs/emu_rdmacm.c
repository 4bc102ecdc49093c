/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * librdmacm's entry points. No connection manager is emulated: the functions by
 * which its use begins report that there is no RDMA device, which programs take
 * as "not available". Without them the real library would look for the kernel
 * counterparts of the emulated devices.
 *
 * None looks at its arguments, so none declares them: headers of librdmacm are
 * not needed. Called by programs, and by libuct_rdmacm.
 */

#include "emu_refuse.h"

#include <errno.h>
#include <stddef.h>

/* Functions which return zero, or -1 and errno */
#define EMU_RDMACM_NO_INT(_name) \
    int _name(void); \
    int _name(void) \
    { \
        emu_rdmacm_refuse(#_name); \
        return -1; \
    }

/* Functions which return a new object */
#define EMU_RDMACM_NO_OBJ(_name) \
    void *_name(void); \
    void *_name(void) \
    { \
        emu_rdmacm_refuse(#_name); \
        return NULL; \
    }

static void emu_rdmacm_refuse(const char *func)
{
    emu_refuse(func, "the RDMA connection manager is");
    errno = ENODEV;
}

EMU_RDMACM_NO_OBJ(rdma_create_event_channel)
EMU_RDMACM_NO_INT(rdma_create_id)
EMU_RDMACM_NO_INT(rdma_create_ep)
EMU_RDMACM_NO_INT(rdma_getaddrinfo)
EMU_RDMACM_NO_INT(rsocket)

/** As the others, but the number of devices is set too. */
void *rdma_get_devices(int *num_devices);

void *rdma_get_devices(int *num_devices)
{
    if (num_devices != NULL) {
        *num_devices = 0;
    }

    emu_rdmacm_refuse(__func__);
    return NULL;
}
