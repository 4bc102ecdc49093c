/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Processes of a fabric, opened devices (contexts) and event channels.
 *
 * Called by: verbs/ (attach on the first ibv call, contexts, channels), ctl/
 * (listing processes, reaping dead ones).
 */

#ifndef EMU_PROC_H_
#define EMU_PROC_H_

#include "../base/emu_def.h"
#include "../base/emu_lock.h"

#define EMU_COMM_MAX      32
#define EMU_PROC_MR_HOLDS 64

/** A process. It is alive while its service thread holds @a life. */
struct emu_proc {
    uint32_t   used;       /* guarded by table_lock */
    uint32_t   gen;        /* changes with every new owner of the slot */
    uint32_t   index;
    int32_t    pid;
    uint32_t   host;
    uint32_t   dead;       /* being reaped */
    emu_lock_t life;
    uint32_t   kick;       /* futex: the service thread sleeps while it is the
                              same; atomic, so are the next two */
    uint32_t   sleeping;   /* whether somebody waits for that */
    uint32_t   nudged;     /* other processes have news for the thread */
    char       comm[EMU_COMM_MAX];
    /* Memory regions (indices) that its threads access now; 0: free. Others read
     * what is above, so not on the same cache line. */
    uint32_t   mr_held[EMU_PROC_MR_HOLDS] __attribute__((aligned(64)));
};

/** An opened device: ibv_open_device makes one. */
struct emu_ctx {
    uint32_t   used;
    uint32_t   index;
    uint32_t   proc;       /* index of the process */
    uint32_t   port;       /* index of the port */
    uint32_t   nic_gen;    /* emu_port_t::nic_gen when it was opened */
    emu_chan_t *async;     /* asynchronous events */
};

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

/** This process in the fabric, NULL while not attached. */
extern emu_proc_t *emu_self;

/**
 * Open the fabric and become a process of a host in it: takes a slot, starts
 * the service thread, reaps dead processes. Called again, it does nothing; in
 * a forked child it attaches the child anew.
 */
int emu_proc_attach(const char *fabric, unsigned host, char *err,
                    size_t err_max);

/** Leave: releases all that is still open. Called at exit by a destructor, if
 *  nobody else can be in the midst of anything (@ref emu_proc_is_alone). */
void emu_proc_detach(void);

/** Whether this process has no threads but the caller and the service thread. */
int emu_proc_is_alone(void);

/** Release what dead processes left behind. @return how many there were. */
int emu_proc_reap(void);

/** Whether a process slot has a living owner. Cheap; a hint. */
int emu_proc_alive(const emu_proc_t *proc);

int emu_ctx_open(unsigned link, emu_ctx_t **ctx_p);
/** Close a context; everything made in it must be destroyed before. */
void emu_ctx_close(emu_ctx_t *ctx);

/** Make a channel. @a fd_p is non-blocking neither way: verbs/ sets the flags
 *  of its end as the program wants (fcntl). */
int emu_chan_open(emu_chan_t **chan_p, int *fd_p);
/** Close the channel and its descriptor. */
void emu_chan_close(emu_chan_t *chan);

/** Write an event. Never blocks, never raises SIGPIPE. */
void emu_chan_post(emu_chan_t *chan, uint32_t type, uint32_t num,
                   uint64_t cookie);

#endif
