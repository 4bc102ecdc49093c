/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_pin.h. madvise() has the kernel fault pages in as it does to pin them, without a
 * change of their contents. It is called directly: programs watch memory by a function of
 * their own in place of libc's.
 */

#include "emu_pin.h"
#include "emu_fabric.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif


static int emu_pin_populate(uint64_t addr, uint64_t length, int advice)
{
    return (syscall(SYS_madvise, addr, length, advice) == 0) ? 0 : errno;
}

/* A kernel that does not know the advice says the same as of memory without the rights */
static int emu_pin_is_known(int advice)
{
    static char page[2 * EMU_PAGE];
    uint64_t addr = ((uintptr_t)page + EMU_PAGE - 1) & ~(EMU_PAGE - 1);

    return emu_pin_populate(addr, EMU_PAGE, advice) == 0;
}

/* Linux, ib_access_writable() */
int emu_pin_is_writable(unsigned access)
{
    return (access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)) != 0;
}

int emu_pin(uint64_t addr, uint64_t length, unsigned access)
{
    uint64_t first = addr & ~(EMU_PAGE - 1);
    int advice     = emu_pin_is_writable(access) ? MADV_POPULATE_WRITE :
                                                   MADV_POPULATE_READ;
    int saved      = errno;
    int ret        = 0;

    if ((length > 0) && (emu_pin_populate(first, addr + length - first, advice) != 0)) {
        ret = emu_pin_is_known(advice) ? -EFAULT : 0;
    }

    errno = saved;
    return ret;
}
