/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See ft_device.h.
 */
#include "ft_device.h"
#include "ft_uct.h"

#include <uct/api/version.h>
#if (UCT_VERNO_MAJOR > 1) || (UCT_VERNO_MINOR >= 14)
#  include <uct/api/v2/uct_v2.h>
#endif

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if (UCT_VERNO_MAJOR > 1) || (UCT_VERNO_MINOR >= 14)

/* @return A descriptor of the file that is mapped there, or -1; the place in it */
static int ft_device_open(uintptr_t address, uint64_t *offset_p)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int fd     = -1;
    char line[4096], path[4096];
    unsigned long first, last, offset;

    while ((maps != NULL) && (fgets(line, sizeof(line), maps) != NULL)) {
        if ((sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095s", &first, &last, &offset, path) == 4) &&
            (address >= first) && (address < last) && (path[0] == '/')) {
            fd        = open(path, O_RDWR | O_CLOEXEC);
            *offset_p = offset + (address - first);
        }
    }

    if (maps != NULL) {
        fclose(maps);
    }
    return fd;
}

/* @return A descriptor of what was made of this memory */
static int ft_device_make(void *address, size_t length)
{
    int fd = memfd_create("ft_device", MFD_CLOEXEC);

    if ((fd < 0) || (ftruncate(fd, length) != 0) ||
        (pwrite(fd, address, length, 0) != (ssize_t)length) ||
        (mmap(address, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
         address)) {
        ft_die("memory of a device");
    }

    return fd;
}

static uct_mem_h ft_device_reg(uct_md_h md, void *address, size_t length)
{
    uct_md_mem_reg_params_t params = {
        .field_mask = UCT_MD_MEM_REG_FIELD_FLAGS | UCT_MD_MEM_REG_FIELD_DMABUF_FD |
                      UCT_MD_MEM_REG_FIELD_DMABUF_OFFSET,
        .flags      = UCT_MD_MEM_ACCESS_ALL
    };
    uint64_t offset = 0;
    uct_mem_h memh;

    params.dmabuf_fd = ft_device_open((uintptr_t)address, &offset);
    if (params.dmabuf_fd < 0) {
        params.dmabuf_fd = ft_device_make(address, length);
    }

    params.dmabuf_offset = offset;
    ft_check_status(uct_md_mem_reg_v2(md, address, length, &params, &memh), "mem_reg_v2");
    close(params.dmabuf_fd);
    return memh;
}

#else

static uct_mem_h ft_device_reg(uct_md_h md, void *address, size_t length)
{
    ft_die("memory of a device: this UCX knows no dmabufs (%p, %p, %zu bytes)", (void*)md,
           address, length);
}

#endif

void ft_device_use(int is_server)
{
    const char *value = getenv(FT_DEVICE_ENV);

    if ((value != NULL) && (is_server || !strcmp(value, "all"))) {
        ft_uct_set_reg(ft_device_reg);
    }
}
