/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_dmabuf.h.
 */

#include "emu_dmabuf.h"
#include "emu_fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_GET_SEALS
#define F_GET_SEALS (1024 + 10)
#endif


/* Linux, ib_umem_dmabuf_get(): a descriptor, a dmabuf, and long enough. Memfds have seals,
 * other files have none; a dmabuf is no file, and tells its length to lseek() alone. */
static int emu_dmabuf_check(int fd, uint64_t end, uint64_t *device_p)
{
    struct stat st;
    off_t size;

    if (fstat(fd, &st) != 0) {
        return -EBADF;
    }

    if (S_ISREG(st.st_mode)) {
        size = (fcntl(fd, F_GET_SEALS) >= 0) ? st.st_size : -1;
    } else {
        size = lseek(fd, 0, SEEK_END);
    }

    *device_p = st.st_ino + 1;
    return ((size < 0) || (end > (uint64_t)size)) ? -EINVAL : 0;
}

int emu_dmabuf_map(int fd, uint64_t offset, uint64_t length, emu_dmabuf_t *dmabuf)
{
    uint64_t first = offset & ~(EMU_PAGE - 1);
    size_t size    = offset + length - first;
    uint64_t device;
    void *map;
    int ret;

    ret = (offset + length < offset) ? -EINVAL : emu_dmabuf_check(fd, offset + length, &device);
    if (ret != 0) {
        return ret;
    }

    map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, first);
    if (map == MAP_FAILED) {
        return -EINVAL;
    }

    dmabuf->map    = map;
    dmabuf->size   = size;
    dmabuf->addr   = (uintptr_t)map + (offset - first);
    dmabuf->device = device;
    return 0;
}

void emu_dmabuf_unmap(emu_dmabuf_t *dmabuf)
{
    if (dmabuf->map != NULL) {
        munmap(dmabuf->map, dmabuf->size);
        dmabuf->map = NULL;
    }
}
