/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_chan.h.
 */

#include "emu_chan.h"
#include "emu_fabric.h"
#include "emu_proc.h"
#include "emu_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EMU_CHAN_PIPE_SIZE (256 * 1024)

static void emu_chan_path(const emu_chan_t *chan, char *path, size_t max)
{
    snprintf(path, max, EMU_DIR_FMT "/event.%u", emu_fabric->cfg.name,
             chan->index);
}

/* A FIFO opened for both directions never hangs up */
static int emu_chan_make_fifo(const emu_chan_t *chan)
{
    char path[160];
    int fd;

    emu_chan_path(chan, path, sizeof(path));
    unlink(path);
    if (mkfifo(path, 0600) != 0) {
        return -errno;
    }

    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        fd = -errno;
        unlink(path);
        return fd;
    }

    /* Bigger is better; the default size does for a thousand events */
    (void)fcntl(fd, F_SETPIPE_SZ, EMU_CHAN_PIPE_SIZE);
    return fd;
}

int emu_chan_open(emu_chan_t **chan_p, int *fd_p)
{
    emu_chan_t *chan;
    int index, ret;

    emu_lock(&emu_fabric->table_lock);
    index = emu_table_find(EMU_TABLE_CHAN, emu_fabric->chans,
                           sizeof(emu_chan_t), 0, EMU_MAX_CHANS);
    if (index < 0) {
        ret = -ENOSPC;
        goto out;
    }

    chan        = &emu_fabric->chans[index];
    chan->index = index;
    chan->proc  = emu_self->index;
    chan->lost  = 0;
    chan->gen++;
    chan->fd = emu_chan_make_fifo(chan);
    if (chan->fd < 0) {
        ret = chan->fd;
        goto out;
    }

    chan->used = 1;
    *chan_p    = chan;
    *fd_p      = chan->fd;
    ret        = 0;
out:
    emu_unlock(&emu_fabric->table_lock);
    return ret;
}

void emu_chan_close(emu_chan_t *chan)
{
    char path[160];

    emu_chan_path(chan, path, sizeof(path));
    unlink(path);
    if ((emu_self != NULL) && (chan->proc == emu_self->index)) {
        close(chan->fd);
    }
    __atomic_store_n(&chan->used, 0, __ATOMIC_RELEASE);
}

void emu_chan_post(emu_chan_t *chan, uint32_t type, uint32_t num,
                   uint64_t cookie)
{
    emu_event_t event = { .type = type, .num = num, .cookie = cookie };
    char path[160];
    int fd;

    if ((chan == NULL) || !chan->used) {
        return;
    }

    /* Opened each time: events are rare, and some programs close all descriptors
     * that they find */
    emu_chan_path(chan, path, sizeof(path));
    fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return;
    }

    if (write(fd, &event, sizeof(event)) != sizeof(event)) {
        __atomic_fetch_add(&chan->lost, 1, __ATOMIC_RELAXED);
    }
    close(fd);
}
