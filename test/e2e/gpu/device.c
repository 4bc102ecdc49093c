/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Preloaded into programs of UCP by test_dmabuf.sh: what UCP registers with rc_varuna is memory
 * of a device, registered by a dmabuf, for which a memory file stands. UCP takes it for the host's,
 * so that it needs no transport that copies. Each registration adds a byte to $FT_DEVICES.
 */
#include <uct/api/uct.h>
#include <uct/api/v2/uct_v2.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICE_PAGE 4096ul
#define DEVICE_MAX  1024

/* Memory that is a device's. UCP's threads register one after the other */
static struct {
    uintptr_t first, last;
    int       fd;
} device_list[DEVICE_MAX];
static unsigned device_num;


static int device_is_of_varuna(uct_md_h md)
{
    uct_md_attr_t attr;

    return (uct_md_query(md, &attr) == UCS_OK) && !strcmp(attr.component_name, "varuna");
}

/* Whole pages, and not of the heap, where others write meanwhile */
static int device_is_possible(uintptr_t first, size_t length)
{
    static const char data[1] = {0};

    return (((first | length) % DEVICE_PAGE) == 0) && (length > 0) &&
           ((first > (uintptr_t)sbrk(0)) || (first < (uintptr_t)data)) &&
           (device_num < DEVICE_MAX);
}

/* @return The descriptor of this memory, which becomes a device's; -1: it does not */
static int device_get(void *address, size_t length, uint64_t *offset_p)
{
    uintptr_t first = (uintptr_t)address;
    unsigned i;
    int fd;

    for (i = 0; i < device_num; ++i) {
        if ((first >= device_list[i].first) && (first + length <= device_list[i].last)) {
            *offset_p = first - device_list[i].first;
            return device_list[i].fd;
        }
    }

    if (!device_is_possible(first, length)) {
        return -1;
    }

    fd = memfd_create("device", MFD_CLOEXEC);
    if ((fd < 0) || (ftruncate(fd, length) != 0) ||
        (pwrite(fd, address, length, 0) != (ssize_t)length) ||
        (mmap(address, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
         address)) {
        perror("device.c");
        abort();
    }

    device_list[device_num].first  = first;
    device_list[device_num].last   = first + length;
    device_list[device_num++].fd   = fd;
    *offset_p                      = 0;
    return fd;
}

static void device_count(void)
{
    int fd = open(getenv("FT_DEVICES"), O_WRONLY | O_CREAT | O_APPEND, 0600);

    if ((fd < 0) || (write(fd, ".", 1) != 1)) {
        perror("FT_DEVICES");
        abort();
    }
    close(fd);
}

ucs_status_t uct_md_mem_reg_v2(uct_md_h md, void *address, size_t length,
                               const uct_md_mem_reg_params_t *params, uct_mem_h *memh_p)
{
    static __typeof__(&uct_md_mem_reg_v2) next;
    uct_md_mem_reg_params_t of_device = *params;
    uint64_t offset                   = 0;
    int fd                            = -1;

    if (next == NULL) {
        *(void**)&next = dlsym(RTLD_NEXT, "uct_md_mem_reg_v2");
    }

    if (!(params->field_mask & UCT_MD_MEM_REG_FIELD_DMABUF_FD) && device_is_of_varuna(md)) {
        fd = device_get(address, length, &offset);
    }
    if (fd < 0) {
        return next(md, address, length, params, memh_p);
    }

    of_device.field_mask   |= UCT_MD_MEM_REG_FIELD_DMABUF_FD |
                              UCT_MD_MEM_REG_FIELD_DMABUF_OFFSET;
    of_device.dmabuf_fd     = fd;
    of_device.dmabuf_offset = offset;
    device_count();
    return next(md, address, length, &of_device, memh_p);
}
