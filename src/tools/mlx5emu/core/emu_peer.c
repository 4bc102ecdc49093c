/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Short accesses to the memory of other processes by /proc/PID/mem, which is kept open:
 * the permission is checked once, when it is opened. process_vm_writev() checks it each
 * time, and takes a quarter longer for some bytes. If this way fails, the caller uses
 * that one. Through this file, pages that their owner may not access can be accessed, as
 * debuggers do.
 *
 * The descriptors are above those of the program. If it closes them nevertheless, an
 * access fails, and that process is not accessed this way again.
 *
 * A slot of the table of processes may get another owner while a thread is about to write
 * to the old one's memory. So a user first registers, and then checks whose descriptor it
 * is; the thread that removes the owner closes the descriptor once it has no users. A
 * forked child closes them all: it has no threads that use them.
 */

#include "emu_peer.h"
#include "emu_fabric.h"
#include "emu_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* First descriptor, if a process may have twice as many. FD_SETSIZE is more, but
 * select() is for descriptors of the program. */
#define EMU_PEER_FD_BASE 512

typedef struct emu_peer {
    uint64_t owner;     /* of fd: emu_peer_owner(); 0: fd is not open */
    uint64_t refused;   /* an owner whose memory is not for us */
    uint32_t users;     /* threads that may use fd */
    int      fd;
} emu_peer_t;

static emu_peer_t emu_peers[EMU_MAX_PROCS];
static int emu_peer_is_locked; /* a thread opens or closes descriptors */

/* Not 0, and another one for each process that has the slot */
static uint64_t emu_peer_owner(const emu_proc_t *proc)
{
    return ((uint64_t)proc->gen << 32) | (uint32_t)proc->pid;
}

static int emu_peer_open_low(const emu_proc_t *proc)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/mem", proc->pid);
    return open(path, O_RDWR | O_CLOEXEC);
}

static int emu_peer_open_mem(const emu_proc_t *proc)
{
    struct rlimit limit;
    int low, fd;

    if ((getrlimit(RLIMIT_NOFILE, &limit) != 0) ||
        (limit.rlim_cur / 2 < EMU_PEER_FD_BASE)) {
        return -1;
    }

    low = emu_peer_open_low(proc);
    if (low < 0) {
        return -1;
    }

    fd = fcntl(low, F_DUPFD_CLOEXEC, EMU_PEER_FD_BASE);
    close(low);
    return fd;
}

/* @return whether there is no descriptor any more */
static int emu_peer_close(emu_peer_t *peer)
{
    uint64_t owner = peer->owner;

    if (owner == 0) {
        return 1;
    }

    __atomic_store_n(&peer->owner, 0, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&peer->users, __ATOMIC_SEQ_CST) != 0) {
        __atomic_store_n(&peer->owner, owner, __ATOMIC_SEQ_CST);
        return 0;
    }

    close(peer->fd);
    return 1;
}

/* Those of processes that are gone */
static void emu_peer_sweep(void)
{
    const emu_proc_t *proc;
    unsigned i;

    for (i = 0; i < EMU_MAX_PROCS; ++i) {
        proc = &emu_fabric->procs[i];
        if ((emu_peers[i].owner != 0) &&
            (!emu_proc_alive(proc) ||
             (emu_peers[i].owner != emu_peer_owner(proc)))) {
            (void)emu_peer_close(&emu_peers[i]);
        }
    }
}

/* Another thread is opening it: do without */
static void emu_peer_open(emu_peer_t *peer, const emu_proc_t *proc,
                          uint64_t owner)
{
    if (__atomic_exchange_n(&emu_peer_is_locked, 1, __ATOMIC_ACQUIRE)) {
        return;
    }

    emu_peer_sweep();
    if ((peer->owner != owner) && emu_peer_close(peer)) {
        peer->fd = emu_peer_open_mem(proc);
        if (peer->fd < 0) {
            __atomic_store_n(&peer->refused, owner, __ATOMIC_RELAXED);
        } else {
            __atomic_store_n(&peer->owner, owner, __ATOMIC_SEQ_CST);
        }
    }

    __atomic_store_n(&emu_peer_is_locked, 0, __ATOMIC_RELEASE);
}

static int emu_peer_enter(emu_peer_t *peer, uint64_t owner)
{
    __atomic_fetch_add(&peer->users, 1, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&peer->owner, __ATOMIC_SEQ_CST) == owner;
}

static void emu_peer_leave(emu_peer_t *peer)
{
    __atomic_fetch_sub(&peer->users, 1, __ATOMIC_RELEASE);
}

void emu_peer_forget(void)
{
    unsigned i;

    for (i = 0; i < EMU_MAX_PROCS; ++i) {
        emu_peers[i].users = 0;
        (void)emu_peer_close(&emu_peers[i]);
    }
    emu_peer_is_locked = 0;
}

static ssize_t emu_peer_copy(int fd, int is_put, void *local, uint64_t remote,
                             size_t length)
{
    return is_put ? pwrite(fd, local, length, (off_t)remote) :
                    pread(fd, local, length, (off_t)remote);
}

int emu_peer_access(uint32_t index, int is_put, void *local, uint64_t remote,
                    size_t length)
{
    const emu_proc_t *proc = &emu_fabric->procs[index];
    emu_peer_t *peer       = &emu_peers[index];
    uint64_t owner         = emu_peer_owner(proc);
    ssize_t ret;

    if (__atomic_load_n(&peer->refused, __ATOMIC_RELAXED) == owner) {
        return 0;
    }

    if (emu_unlikely(!emu_peer_enter(peer, owner))) {
        emu_peer_leave(peer);
        emu_peer_open(peer, proc, owner);
        if (!emu_peer_enter(peer, owner)) {
            emu_peer_leave(peer);
            return 0;
        }
    }

    ret = emu_peer_copy(peer->fd, is_put, local, remote, length);
    if (emu_unlikely((ret < 0) && (errno != EIO) && (errno != EFAULT))) {
        __atomic_store_n(&peer->refused, owner, __ATOMIC_RELAXED);
    }
    emu_peer_leave(peer);
    return ret == (ssize_t)length;
}

int emu_peer_force(uint32_t index, int is_put, void *local, uint64_t remote,
                   size_t length)
{
    const emu_proc_t *proc = &emu_fabric->procs[index];
    ssize_t ret;
    int fd;

    if (emu_peer_access(index, is_put, local, remote, length)) {
        return 0;
    }

    /* There may be no descriptor that can be kept */
    fd = emu_peer_open_low(proc);
    if (fd < 0) {
        return emu_proc_alive(proc) ? -EFAULT : -ESRCH;
    }

    ret = emu_peer_copy(fd, is_put, local, remote, length);
    close(fd);
    return (ret == (ssize_t)length) ? 0 :
           emu_proc_alive(proc) ? -EFAULT : -ESRCH;
}
