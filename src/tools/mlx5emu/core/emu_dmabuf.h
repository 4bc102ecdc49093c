/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory that a program names by a descriptor of a dmabuf, as that of a GPU. The emulator maps
 * it at a place of its own, so that NICs access it whatever the program can do with it.
 *
 * Called by: verbs/ (regions).
 */

#ifndef EMU_DMABUF_H_
#define EMU_DMABUF_H_

#include <stddef.h>
#include <stdint.h>

/** A part of a dmabuf. All zeros: none. */
typedef struct emu_dmabuf {
    void     *map;
    size_t   size;         /* of the mapping */
    uint64_t addr;         /* in this process */
    uint64_t device;       /* not 0; the same for all parts of a dmabuf */
} emu_dmabuf_t;

/**
 * Map a part of a dmabuf of which the CPU can map pages: a memfd works as one, too.
 *
 * @return 0; -EBADF if there is no such descriptor; -EINVAL if it is no dmabuf, or shorter.
 */
int emu_dmabuf_map(int fd, uint64_t offset, uint64_t length, emu_dmabuf_t *dmabuf);

/** Does nothing if there is none. */
void emu_dmabuf_unmap(emu_dmabuf_t *dmabuf);

#endif
