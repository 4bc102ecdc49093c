/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_pipe.h.
 */

#include "emu_pipe.h"
#include "emu_nic.h"
#include "emu_port.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How much a port queues of one sender: these bytes, or what it sends in this time. That is
 * enough for the keeper to bring the next in time, and so little that senders share the port */
#define EMU_PIPE_WINDOW     (64 * 1024ul)
#define EMU_PIPE_WINDOW_NS  5000000ul

/* How much a switch queues beyond what is on the cable: as a time, and in bytes */
#define EMU_PIPE_QUEUE      (64 * 1024ul)
#define EMU_PIPE_QUEUE_NS   2000000ul

/* Flights left for responses when requesters must wait */
#define EMU_PIPE_RESERVE    4096

/* Packets live that long at least: a busy machine would discard them at random */
#define EMU_PIPE_MIN_LIFE_NS 10000000ul

static emu_flight_t *emu_pipe_flight(uint32_t index)
{
    return &emu_fabric->flights[index - 1];
}

static uint32_t emu_pipe_index(const emu_flight_t *flight)
{
    return flight - emu_fabric->flights + 1;
}

uint8_t *emu_flight_data(const emu_flight_t *flight)
{
    return emu_fabric->flight_data +
           (flight - emu_fabric->flights) * (size_t)EMU_FLIGHT_BYTES;
}

uint64_t emu_pipe_lifetime_ns(void)
{
    /* Not scaled: programs wait as long as the port reports */
    return emu_max(4096ul << emu_fabric->cfg.subnet_timeout,
                   EMU_PIPE_MIN_LIFE_NS);
}

/* How long so many bytes take */
static uint64_t emu_pipe_ns(const emu_pipe_port_t *port, uint64_t bytes)
{
    return (port->speed.rate == 0) ? 0 :
           emu_scaled_ns((unsigned __int128)bytes * 8000000000ul /
                         port->speed.rate);
}

/* What it sends in so long */
static uint64_t emu_pipe_bytes(const emu_pipe_port_t *port, uint64_t ns)
{
    return (unsigned __int128)port->speed.rate * ns / 8000000000ul;
}

static uint64_t emu_pipe_latency(const emu_pipe_port_t *port)
{
    return emu_scaled_ns(port->speed.latency_ns);
}

static uint64_t emu_pipe_window(const emu_pipe_port_t *port)
{
    return emu_max(EMU_PIPE_WINDOW, emu_pipe_bytes(port, EMU_PIPE_WINDOW_NS));
}

/* Room in the switch for what goes to a port: by itself enough for a cable of the
 * same latency on the other side */
static uint64_t emu_pipe_room(const emu_pipe_port_t *port)
{
    if (port->speed.queue != 0) {
        return port->speed.queue;
    }
    return EMU_PIPE_QUEUE + emu_pipe_bytes(port, EMU_PIPE_QUEUE_NS +
                                                 2 * port->speed.latency_ns);
}

static void emu_pipe_append(emu_pipe_list_t *list, emu_flight_t *flight)
{
    flight->next = 0;
    if (list->first == 0) {
        list->first = emu_pipe_index(flight);
    } else {
        emu_pipe_flight(list->last)->next = emu_pipe_index(flight);
    }
    list->last = emu_pipe_index(flight);
}

/* Behind all that leave before it */
static void emu_pipe_insert(emu_pipe_list_t *list, emu_flight_t *flight)
{
    uint32_t *prev = &list->first;

    while ((*prev != 0) &&
           (emu_pipe_flight(*prev)->time_ns <= flight->time_ns)) {
        prev = &emu_pipe_flight(*prev)->next;
    }

    flight->next = *prev;
    *prev        = emu_pipe_index(flight);
    if (flight->next == 0) {
        list->last = emu_pipe_index(flight);
    }
}

static emu_flight_t *emu_pipe_pop(emu_pipe_list_t *list)
{
    emu_flight_t *flight = emu_pipe_flight(list->first);

    list->first = flight->next;
    return flight;
}

static uint64_t emu_pipe_head_ns(const emu_pipe_list_t *list)
{
    return (list->first == 0) ? EMU_PIPE_NEVER :
                                emu_pipe_flight(list->first)->time_ns;
}

/* A sender died while it held the lock. What it was about to send may be in the list
 * already, or not */
static void emu_pipe_repair(emu_pipe_t *pipe)
{
    emu_pipe_list_t *lists[2];
    emu_flight_t *flight;
    unsigned port, i;
    uint32_t index;

    memset(pipe->queued, 0, sizeof(pipe->queued));
    for (port = 0; port < EMU_MAX_PORTS; ++port) {
        lists[0] = &pipe->ports[port].up;
        lists[1] = &pipe->ports[port].near;
        for (i = 0; i < 2; ++i) {
            for (index = lists[i]->first; index != 0; index = flight->next) {
                flight                     = emu_pipe_flight(index);
                pipe->queued[flight->key] += (i == 0) ? flight->bytes : 0;
                lists[i]->last             = index;
            }
        }
    }
}

static emu_pipe_t *emu_pipe_lock(void)
{
    emu_pipe_t *pipe = emu_fabric->pipe;

    if (emu_unlikely(emu_lock(&pipe->lock))) {
        emu_pipe_repair(pipe);
    }
    return pipe;
}

void emu_pipe_set(uint32_t port, const emu_pipe_speed_t *speed)
{
    emu_pipe_t *pipe = emu_pipe_lock();

    pipe->ports[port].speed = *speed;
    emu_unlock(&pipe->lock);
    __atomic_store_n(&emu_fabric->timed, 1, __ATOMIC_RELEASE);
    emu_pipe_kick();
}

void emu_pipe_get(uint32_t port, emu_pipe_speed_t *speed_p)
{
    emu_pipe_t *pipe = emu_pipe_lock();

    *speed_p = pipe->ports[port].speed;
    emu_unlock(&pipe->lock);
}

emu_flight_t *emu_pipe_alloc(void)
{
    emu_pipe_t *pipe     = emu_pipe_lock();
    emu_flight_t *flight = NULL;

    if (pipe->free != 0) {
        flight     = emu_pipe_flight(pipe->free);
        pipe->free = flight->next;
    } else if (pipe->top < EMU_MAX_FLIGHTS) {
        flight = &emu_fabric->flights[pipe->top++];
    }
    pipe->num_flights += (flight != NULL);
    emu_unlock(&pipe->lock);
    if (flight != NULL) {
        flight->lost      = 0;
        flight->detour_ns = 0;
        flight->length    = 0;
    }
    return flight;
}

void emu_pipe_release(emu_flight_t *flight)
{
    emu_pipe_t *pipe = emu_pipe_lock();

    flight->next = pipe->free;
    pipe->free   = emu_pipe_index(flight);
    pipe->num_flights--;
    emu_unlock(&pipe->lock);
}

/* A packet leaves a NIC that lives */
static int emu_pipe_has_nic(uint32_t index, uint64_t time_ns)
{
    const emu_port_t *port = &emu_fabric->ports[index];
    uint32_t gen           = __atomic_load_n(&port->nic_gen, __ATOMIC_ACQUIRE);

    return !(gen & 1) || emu_nic_lingers(index, gen - 1) ||
           (time_ns < __atomic_load_n(&port->nic_died_ns, __ATOMIC_ACQUIRE));
}

/* A flight has been on the cable of a port since @a from_ns */
static int emu_pipe_is_whole(uint32_t port, uint64_t from_ns, uint64_t to_ns)
{
    return emu_link_was_up(&emu_fabric->ports[port], from_ns, to_ns);
}

void emu_pipe_kick(void)
{
    emu_pipe_keeper_t *keeper = &emu_fabric->pipe->keeper;

    __atomic_add_fetch(&keeper->kick, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &keeper->kick, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void emu_pipe_send(emu_flight_t *flight)
{
    emu_pipe_t *pipe     = emu_pipe_lock();
    emu_pipe_port_t *src = &pipe->ports[flight->src];
    uint64_t wake_ns     = emu_now_ns();
    int kick;

    flight->time_ns    = wake_ns;
    flight->sent_ns    = wake_ns;
    flight->entered_ns = wake_ns;
    if (flight->src == flight->dst) {
        flight->time_ns += emu_scaled_ns(flight->detour_ns);
        wake_ns          = flight->time_ns;
        emu_pipe_insert(&src->near, flight);
    } else {
        /* Those which wait before it have told the keeper */
        wake_ns = (src->up.first != 0) ? EMU_PIPE_NEVER :
                  emu_max(wake_ns, src->up_free_ns) + emu_pipe_latency(src) +
                  emu_pipe_latency(&pipe->ports[flight->dst]);
        pipe->queued[flight->key] += flight->bytes;
        emu_pipe_append(&src->up, flight);
    }
    kick = (wake_ns < pipe->keeper.wake_ns);
    emu_unlock(&pipe->lock);
    if (kick) {
        emu_pipe_kick();
    }
}

int emu_pipe_park(uint32_t key, uint32_t port)
{
    emu_pipe_t *pipe = emu_pipe_lock();
    int is_starved   = (pipe->num_flights > EMU_MAX_FLIGHTS - EMU_PIPE_RESERVE);
    int is_full      = is_starved || (pipe->queued[key] >=
                                      emu_pipe_window(&pipe->ports[port]));

    if (is_full && !pipe->parked[key]) {
        pipe->parked[key] = 1;
        pipe->num_parked++;
    }
    pipe->starved |= is_starved;
    emu_unlock(&pipe->lock);
    if (is_full) {
        emu_pipe_kick(); /* It must look earlier now */
    }
    return is_full;
}

/* Steps. All run in the keeper, with the lock held */

static int emu_pipe_has_room(const emu_pipe_t *pipe, const emu_flight_t *flight)
{
    const emu_pipe_port_t *dst = &pipe->ports[flight->dst];

    return pipe->lossy || (dst->down_bytes == 0) ||
           (dst->down_bytes + flight->bytes <= emu_pipe_room(dst));
}

/* When the port sends the first flight of its queue */
static uint64_t emu_pipe_leave_ns(const emu_pipe_t *pipe,
                                  const emu_pipe_port_t *port)
{
    const emu_flight_t *flight;
    uint64_t ns;

    if (port->up.first == 0) {
        return EMU_PIPE_NEVER;
    }

    flight = emu_pipe_flight(port->up.first);
    if (!emu_pipe_has_room(pipe, flight)) {
        return EMU_PIPE_NEVER;
    }

    ns = emu_max(flight->time_ns, port->up_free_ns);
    return pipe->lossy ? ns : emu_max(ns, pipe->ports[flight->dst].freed_ns);
}

/* @return whether its sender, which was parked, may go on */
static int emu_pipe_leave(emu_pipe_t *pipe, emu_pipe_port_t *src, uint64_t now,
                          uint64_t *key_p)
{
    emu_flight_t *flight = emu_pipe_pop(&src->up);
    uint64_t ns          = emu_pipe_ns(src, flight->bytes);
    uint64_t latency     = emu_pipe_latency(src);

    pipe->queued[flight->key] -= flight->bytes;
    src->up_free_ns            = now + ns;
    flight->lost               = !emu_pipe_has_nic(flight->src, now);
    flight->first_ns           = now + latency;
    flight->end_ns             = now + latency + ns;
    flight->time_ns            = emu_max(flight->first_ns, src->switch_ns);
    src->switch_ns             = flight->time_ns;
    if (!pipe->lossy && !flight->lost) {
        pipe->ports[flight->dst].down_bytes += flight->bytes;
    }
    emu_pipe_append(&src->cable, flight);
    if (!pipe->parked[flight->key] ||
        (pipe->queued[flight->key] > emu_pipe_window(src) / 2)) {
        return 0;
    }

    *key_p                     = flight->key;
    pipe->parked[flight->key]  = 0;
    pipe->num_parked          -= 1;
    return 1;
}

static emu_pipe_event_t emu_pipe_cross(emu_pipe_t *pipe, emu_pipe_port_t *src,
                                       emu_flight_t **flight_p)
{
    emu_flight_t *flight = emu_pipe_pop(&src->cable);
    emu_pipe_port_t *dst = &pipe->ports[flight->dst];
    int is_counted       = !pipe->lossy && !flight->lost;
    uint64_t start_ns;

    *flight_p = flight;
    if (flight->lost || !emu_pipe_is_whole(flight->src, flight->entered_ns,
                                           flight->time_ns)) {
        if (is_counted) {
            dst->down_bytes -= flight->bytes;
            dst->freed_ns    = flight->time_ns;
        }
        return EMU_PIPE_LOST;
    }

    if (!is_counted) {
        if (dst->down_bytes + flight->bytes > emu_pipe_room(dst)) {
            return EMU_PIPE_DROPPED;
        }
        dst->down_bytes += flight->bytes;
    }

    start_ns            = emu_max(flight->time_ns, dst->down_free_ns);
    flight->end_ns      = emu_max(flight->end_ns,
                                  start_ns + emu_pipe_ns(dst, flight->bytes));
    flight->entered_ns  = flight->time_ns;
    flight->time_ns     = emu_max(flight->end_ns + emu_pipe_latency(dst),
                                  dst->arrive_ns);
    dst->down_free_ns   = flight->end_ns;
    dst->arrive_ns      = flight->time_ns;
    emu_pipe_append(&dst->down, flight);
    if (dst->credit == 0) {
        dst->credit = emu_pipe_index(flight);
    }
    return EMU_PIPE_NOTHING;
}

static uint64_t emu_pipe_credit_ns(const emu_pipe_port_t *port)
{
    return (port->credit == 0) ? EMU_PIPE_NEVER :
                                 emu_pipe_flight(port->credit)->end_ns;
}

static void emu_pipe_give_credit(emu_pipe_port_t *dst)
{
    const emu_flight_t *flight = emu_pipe_flight(dst->credit);

    dst->down_bytes -= flight->bytes;
    dst->freed_ns    = flight->end_ns;
    dst->credit      = flight->next;
}

static emu_pipe_event_t emu_pipe_arrive(emu_pipe_port_t *dst,
                                        emu_flight_t **flight_p)
{
    emu_flight_t *flight = emu_pipe_pop(&dst->down);

    *flight_p = flight;
    if (!emu_pipe_is_whole(flight->dst, flight->entered_ns, flight->time_ns)) {
        return EMU_PIPE_LOST;
    }

    if (flight->detour_ns != 0) {
        flight->time_ns  += emu_scaled_ns(flight->detour_ns);
        flight->detour_ns = 0;
        emu_pipe_insert(&dst->near, flight);
        return EMU_PIPE_NOTHING;
    }
    return EMU_PIPE_ARRIVED;
}

/* Kinds of steps; of those at one time the first */
typedef enum emu_pipe_kind {
    EMU_PIPE_CREDIT,
    EMU_PIPE_CROSS,
    EMU_PIPE_ARRIVE,
    EMU_PIPE_NEAR,
    EMU_PIPE_LEAVE,
    EMU_PIPE_KIND_LAST
} emu_pipe_kind_t;

typedef struct emu_pipe_next {
    emu_pipe_port_t *port;
    emu_pipe_kind_t kind;
    uint64_t        time_ns;
    uint64_t        wait_ns;  /* of a port that leaves: since when it is free */
    uint64_t        wake_ns;  /* when the keeper must look, at the latest */
} emu_pipe_next_t;

static void emu_pipe_offer(emu_pipe_next_t *next, emu_pipe_port_t *port,
                           emu_pipe_kind_t kind, uint64_t time_ns,
                           uint64_t slack_ns)
{
    uint64_t wait_ns = (kind == EMU_PIPE_LEAVE) ? port->up_free_ns : 0;

    if (time_ns == EMU_PIPE_NEVER) {
        return;
    }

    next->wake_ns = emu_min(next->wake_ns, time_ns + slack_ns);
    if ((time_ns < next->time_ns) ||
        ((time_ns == next->time_ns) &&
         ((kind < next->kind) ||
          ((kind == next->kind) && (wait_ns < next->wait_ns))))) {
        next->port    = port;
        next->kind    = kind;
        next->time_ns = time_ns;
        next->wait_ns = wait_ns;
    }
}

/* How long after a packet can leave the keeper may look: before it arrives, and
 * before the port runs dry if somebody waits to send more */
static uint64_t emu_pipe_slack(const emu_pipe_t *pipe,
                               const emu_pipe_port_t *port)
{
    uint64_t slack_ns = emu_pipe_latency(port);

    if (pipe->num_parked > 0) {
        slack_ns = emu_min(slack_ns,
                           emu_pipe_ns(port, emu_pipe_window(port) / 8));
    }
    return slack_ns;
}

/* How long after the next flight has crossed the switch it arrives */
static uint64_t emu_pipe_after_ns(const emu_pipe_t *pipe,
                                  const emu_pipe_port_t *port)
{
    return (port->cable.first == 0) ? 0 :
           emu_pipe_latency(&pipe->ports[emu_pipe_flight(port->cable.first)->dst]);
}

static void emu_pipe_find(emu_pipe_t *pipe, emu_pipe_next_t *next)
{
    unsigned num = emu_fabric->cfg.hosts * emu_fabric->cfg.links;
    emu_pipe_port_t *port;
    uint64_t slack_ns;

    *next = (emu_pipe_next_t){ .kind    = EMU_PIPE_KIND_LAST,
                               .time_ns = EMU_PIPE_NEVER,
                               .wake_ns = EMU_PIPE_NEVER };
    for (port = pipe->ports; port < pipe->ports + num; ++port) {
        if ((port->up.first | port->cable.first | port->down.first |
             port->near.first) == 0) {
            continue;
        }

        slack_ns = emu_pipe_slack(pipe, port);
        emu_pipe_offer(next, port, EMU_PIPE_LEAVE,
                       emu_pipe_leave_ns(pipe, port), slack_ns);
        emu_pipe_offer(next, port, EMU_PIPE_CREDIT, emu_pipe_credit_ns(port),
                       slack_ns);
        emu_pipe_offer(next, port, EMU_PIPE_CROSS,
                       emu_pipe_head_ns(&port->cable),
                       emu_pipe_after_ns(pipe, port));
        emu_pipe_offer(next, port, EMU_PIPE_ARRIVE,
                       emu_pipe_head_ns(&port->down), 0);
        emu_pipe_offer(next, port, EMU_PIPE_NEAR, emu_pipe_head_ns(&port->near),
                       0);
    }
}

/* A sender that waits for flights may go on */
static int emu_pipe_feed(emu_pipe_t *pipe, uint64_t *key_p)
{
    const uint8_t *parked;

    if (emu_likely(!pipe->starved) ||
        (pipe->num_flights > EMU_MAX_FLIGHTS - 2 * EMU_PIPE_RESERVE)) {
        return 0;
    }

    parked = memchr(pipe->parked, 1, sizeof(pipe->parked));
    if (parked == NULL) {
        pipe->starved = 0;
        return 0;
    }

    *key_p = parked - pipe->parked;
    pipe->parked[*key_p] = 0;
    pipe->num_parked--;
    return 1;
}

static emu_pipe_event_t emu_pipe_take(emu_pipe_t *pipe,
                                      const emu_pipe_next_t *next,
                                      emu_flight_t **flight_p, uint64_t *key_p)
{
    switch (next->kind) {
    case EMU_PIPE_CREDIT:
        emu_pipe_give_credit(next->port);
        return EMU_PIPE_NOTHING;
    case EMU_PIPE_CROSS:
        return emu_pipe_cross(pipe, next->port, flight_p);
    case EMU_PIPE_ARRIVE:
        return emu_pipe_arrive(next->port, flight_p);
    case EMU_PIPE_NEAR:
        *flight_p = emu_pipe_pop(&next->port->near);
        return EMU_PIPE_ARRIVED;
    default:
        return emu_pipe_leave(pipe, next->port, next->time_ns, key_p) ?
               EMU_PIPE_RESUME : EMU_PIPE_NOTHING;
    }
}

emu_pipe_event_t emu_pipe_step(emu_flight_t **flight_p, uint64_t *value_p)
{
    emu_pipe_t *pipe       = emu_pipe_lock();
    emu_pipe_event_t event = EMU_PIPE_NOTHING;
    emu_pipe_next_t next;
    uint64_t now;

    do {
        if (emu_pipe_feed(pipe, value_p)) {
            event = EMU_PIPE_RESUME;
            break;
        }

        emu_pipe_find(pipe, &next);
        now = emu_now_ns();
        if (next.time_ns > now) {
            *value_p             = next.wake_ns;
            pipe->keeper.wake_ns = next.wake_ns;
            break;
        }
        event = emu_pipe_take(pipe, &next, flight_p, value_p);
        if ((event == EMU_PIPE_ARRIVED) &&
            (now - (*flight_p)->sent_ns > emu_pipe_lifetime_ns())) {
            /* By the time of programs, which rely on it, however late we are */
            event = EMU_PIPE_DROPPED;
        }
        if (event == EMU_PIPE_ARRIVED) {
            pipe->keeper.late_ns = emu_max(pipe->keeper.late_ns,
                                           now - next.time_ns);
        }
    } while (event == EMU_PIPE_NOTHING);

    emu_unlock(&pipe->lock);
    return event;
}

void emu_pipe_sleep(uint32_t kick, uint64_t until_ns)
{
    struct timespec ts = { .tv_sec  = until_ns / 1000000000ul,
                           .tv_nsec = until_ns % 1000000000ul };

    syscall(SYS_futex, &emu_fabric->pipe->keeper.kick, FUTEX_WAIT_BITSET, kick,
            &ts, NULL, FUTEX_BITSET_MATCH_ANY);
}
