/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Event channels.
 *
 * Called by: verbs/ and devx/ (channels of programs), and all code that raises events.
 */

#ifndef EMU_CHAN_H_
#define EMU_CHAN_H_

#include "../base/emu_def.h"

/**
 * An event channel: a FIFO below the fabric's directory whose readers are in
 * the owner, while any process may write. Each event is one emu_event_t, read
 * from the descriptor as a whole. Readable means that there is an event.
 */
struct emu_chan {
    uint32_t   used;
    uint32_t   gen;
    uint32_t   index;
    uint32_t   proc;
    int32_t    fd;         /* in the owner's process */
    uint32_t   lost;       /* events that did not fit in */
};

/** What is read from a channel's descriptor. */
typedef struct emu_event {
    uint32_t   type;       /* enum ibv_event_type; EMU_EVENT_CQ for a CQ's */
    uint32_t   num;        /* QPN, SRQN, CQN or port number (1) */
    uint64_t   cookie;     /* cookie of that object; 0 for a port */
} emu_event_t;

#define EMU_EVENT_CQ 0x1000u

/** Make a channel. @a fd_p is non-blocking neither way: verbs/ sets the flags
 *  of its end as the program wants (fcntl). */
int emu_chan_open(emu_chan_t **chan_p, int *fd_p);
/** Close the channel and its descriptor. */
void emu_chan_close(emu_chan_t *chan);

/** Write an event. Never blocks, never raises SIGPIPE. */
void emu_chan_post(emu_chan_t *chan, uint32_t type, uint32_t num,
                   uint64_t cookie);

#endif
