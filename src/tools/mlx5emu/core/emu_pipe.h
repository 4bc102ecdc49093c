/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Time: the cables of a fabric, with a rate, a latency and queues. What is on its way
 * is in the fabric's memory, and needs no process but the keeper (wire/emu_keep.h).
 *
 *        port A                      switch                        port B
 *     up: queue ---serialised---> cable ---> queue ---serialised---> cable: down
 *         |            A's rate,              |            B's rate,        |
 *       enters         A's latency         credit          B's latency    arrives
 *
 * All times are exact, however late the keeper looks: a step carries the time at which
 * it happens, and steps are taken in the order of time. A switch forwards a packet as
 * its first byte comes (cut-through). A packet leaves its port only if the queue of
 * the switch towards its destination has room, as credits have it on InfiniBand; with
 * "lossy", the queue drops what it has no room for.
 *
 * What a flight carries is not known here. Called by: wire/, ctl/ (rates).
 */

#ifndef EMU_PIPE_H_
#define EMU_PIPE_H_

#include "../base/emu_lock.h"
#include "emu_fabric.h"

#define EMU_MAX_FLIGHTS   16384 /* packets and responses on their way */
#define EMU_FLIGHT_HEAD   512   /* bytes of a header ... */
#define EMU_FLIGHT_BYTES  4096  /* ... and of payload: the largest MTU */
#define EMU_PIPE_KEYS     (2 * EMU_MAX_QPS) /* senders, see emu_flight_t::key */
#define EMU_PIPE_NEVER    UINT64_MAX

/** A packet on its way. Indices here are those of flights + 1; 0: none. */
typedef struct emu_flight {
    uint32_t next;         /* in the list that it is in */
    uint16_t src;          /* ports whose cables it takes; both the same: none */
    uint16_t dst;
    uint32_t key;          /* of its sender: how much of one may queue */
    uint32_t bytes;        /* on the wire */
    uint32_t length;       /* of the payload */
    uint8_t  lost;
    uint8_t  kind;         /* the caller's */
    uint64_t detour_ns;    /* it takes a longer way, and others overtake it */
    uint64_t time_ns;      /* when it leaves the list that it is in */
    uint64_t sent_ns;      /* when it was sent: its lifetime begins */
    uint64_t entered_ns;   /* when it came to this link: what is on one that is cut is
                              lost */
    uint64_t first_ns;     /* its first byte is at the switch */
    uint64_t end_ns;       /* the switch has sent it */
    uint8_t  head[EMU_FLIGHT_HEAD] __attribute__((aligned(16)));
} emu_flight_t;

typedef struct emu_pipe_list {
    uint32_t first;
    uint32_t last;
} emu_pipe_list_t;

/** What a cable can do, both ways. */
typedef struct emu_pipe_speed {
    uint64_t rate;         /* bits per second; 0: any */
    uint64_t latency_ns;   /* from the port to the switch */
    uint64_t queue;        /* bytes that the switch queues towards the port; 0: what
                              keeps the cable busy */
} emu_pipe_speed_t;

typedef struct emu_pipe_port {
    emu_pipe_speed_t speed;
    emu_pipe_list_t  up;           /* wait for the port */
    emu_pipe_list_t  cable;        /* to the switch */
    emu_pipe_list_t  down;         /* queued in the switch, and on the cable */
    emu_pipe_list_t  near;         /* arrive without the cable, by time */
    uint32_t         credit;       /* first in "down" that the switch has not sent */
    uint64_t         up_free_ns;   /* the port has sent all that left it */
    uint64_t         down_free_ns; /* ... the switch */
    uint64_t         freed_ns;     /* its queue had room for more */
    uint64_t         switch_ns;    /* of the last one on the cable */
    uint64_t         arrive_ns;
    uint64_t         down_bytes;
} emu_pipe_port_t;

/** The process that lets time pass, see wire/emu_keep.h. */
typedef struct emu_pipe_keeper {
    emu_lock_t life;       /* held while it lives */
    uint32_t   proc;       /* index + 1 */
    uint32_t   kick;       /* futex */
    uint32_t   stop;
    uint64_t   wake_ns;    /* until when it sleeps */
    uint64_t   late_ns;    /* how much later than due something has arrived, at most */
} emu_pipe_keeper_t;

typedef struct emu_pipe {
    emu_lock_t        lock;        /* guards all but keeper.life. No other is taken
                                      while it is held */
    uint32_t          lossy;
    uint32_t          free;        /* flights that were used */
    uint32_t          top;         /* those above never were */
    uint32_t          num_flights;
    uint32_t          num_parked;
    uint32_t          starved;     /* somebody is parked for want of flights */
    uint32_t          queued[EMU_PIPE_KEYS]; /* bytes that wait for a port */
    uint8_t           parked[EMU_PIPE_KEYS];
    emu_pipe_port_t   ports[EMU_MAX_PORTS];
    emu_pipe_keeper_t keeper;
} emu_pipe_t;

/** What happens next. */
typedef enum emu_pipe_event {
    EMU_PIPE_NOTHING,      /* until emu_pipe_step() has said */
    EMU_PIPE_ARRIVED,
    EMU_PIPE_LOST,         /* on a cable that was cut */
    EMU_PIPE_DROPPED,      /* by a queue that is full, or its lifetime was over */
    EMU_PIPE_RESUME        /* a parked sender may go on */
} emu_pipe_event_t;

/** Whether this fabric has time: all that one without pays for. */
static inline int emu_pipe_is_on(void)
{
    return emu_unlikely(__atomic_load_n(&emu_fabric->timed, __ATOMIC_RELAXED));
}

/** Set what a link can do, from now on. The first call makes the fabric a timed one. */
void emu_pipe_set(uint32_t port, const emu_pipe_speed_t *speed);

void emu_pipe_get(uint32_t port, emu_pipe_speed_t *speed_p);

/** The time that no packet survives: what ports report as subnet timeout. Switches
 *  discard what is older. 10 ms at least. */
uint64_t emu_pipe_lifetime_ns(void);

/** Payload of a flight. */
uint8_t *emu_flight_data(const emu_flight_t *flight);

/** A flight to be filled in, or NULL: there are none left. */
emu_flight_t *emu_pipe_alloc(void);

/** Give back a flight that has arrived or was lost, or never left. */
void emu_pipe_release(emu_flight_t *flight);

/** Send a flight. Those of one source arrive in order, but for detours. */
void emu_pipe_send(emu_flight_t *flight);

/** Whether a sender has queued so much for a port that it must wait; it is parked
 *  then, and EMU_PIPE_RESUME comes. */
int emu_pipe_park(uint32_t key, uint32_t port);

/**
 * Keeper: take the next step that is due.
 *
 * @param [out] flight_p  What arrived or was lost.
 * @param [out] value_p   The key to resume, or when to come again.
 */
emu_pipe_event_t emu_pipe_step(emu_flight_t **flight_p, uint64_t *value_p);

/** Keeper: sleep until a time, or until the counter of kicks is no longer @a kick. */
void emu_pipe_sleep(uint32_t kick, uint64_t until_ns);

/** Have the keeper look. */
void emu_pipe_kick(void);

#endif
