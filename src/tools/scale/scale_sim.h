/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A simulation of many hosts that lose a switch. Virtual time; no NICs, no threads.
 *
 * What decides is the plugin's own pure code: link tables, damping, heartbeat (alive),
 * pace of the rebuild, repetition of requests, and the state machine of an endpoint.
 * What the simulation supplies are times: of a message on the wire, of a host that
 * handles one, and of a NIC that executes a command. Each host handles its messages one
 * after the other, and so does each NIC with its commands.
 *
 * Each host has a port on two networks, and all endpoints begin with RC on network 0,
 * whose switch dies and returns.
 */
#ifndef SCALE_SIM_H_
#define SCALE_SIM_H_

#include <uct/ib/varuna/core/varuna_alive.h>
#include <uct/ib/varuna/core/varuna_link.h>
#include <uct/ib/varuna/core/varuna_clock.h>
#include <uct/ib/varuna/ctl/varuna_retry.h>
#include <uct/ib/varuna/requester/varuna_requester.h>
#include <uct/ib/varuna/requester/varuna_ep.h>

#define SCALE_NUM_LINKS 2

/* What happens at a time. */
typedef enum {
    SCALE_CUT,         /* The switch dies */
    SCALE_RETURN,      /* It is back */
    SCALE_TICK,        /* Timer of a host: heartbeat and background scan */
    SCALE_STEP,        /* An endpoint takes its next step */
    SCALE_ARRIVAL,     /* A message reaches a host */
    SCALE_HANDLED,     /* The host has handled it: the answer leaves */
    SCALE_NUM_TYPES
} scale_event_type_t;

/* Messages of the control plane. */
typedef enum {
    SCALE_PING,
    SCALE_PONG,
    SCALE_FENCE_REQ,
    SCALE_FENCE_REP,
    SCALE_CONNECT_REQ,
    SCALE_CONNECT_REP,
    SCALE_PORTS,       /* A port of the sender is down, or up */
    SCALE_NUM_MESSAGES
} scale_message_t;

typedef struct scale_event {
    ucs_time_t        time;
    uint64_t          order;      /* Of events at one time: as they were added */
    uint32_t          subject;    /* Host or endpoint */
    uint32_t          from;       /* ARRIVAL: sender of a PING, PONG or PORTS;
                                     otherwise the endpoint */
    uint32_t          number;     /* Of a ping, the incarnation, or is the port up */
    uint8_t           type;       /* scale_event_type_t */
    uint8_t           message;    /* scale_message_t */
    uint8_t           link;
} scale_event_t;

/* A peer of a host, to which it has endpoints. */
typedef struct scale_peer {
    uint32_t          host;
    unsigned          asking;
    unsigned          connecting;
    uct_varuna_alive_t alive;
    uct_varuna_damp_t path[SCALE_NUM_LINKS];
    uint32_t          path_gen[SCALE_NUM_LINKS];
} scale_peer_t;

typedef struct scale_ep {
    uint32_t          host;
    uint32_t          peer;         /* Index among the host's peers */
    uint32_t          epoch;
    uint8_t           state;        /* uct_varuna_ep_state_t */
    uint8_t           link;         /* Of its lane */
    uint8_t           is_rc;        /* Else it is on DC */
    uint8_t           next_link;    /* Of RC that is being connected; LINK_NONE: none */
    uint8_t           is_counted;   /* In asking of its peer */
    uint32_t          link_gen;     /* Of the lane */
    uint32_t          path_gen;
    uint8_t           is_stepping;  /* A STEP is under way */
    uct_varuna_retry_t ask;
    uct_varuna_retry_t connect;
    ucs_time_t        at_rest_at;   /* Its queue pair is flushed */
    ucs_time_t        moved_at;     /* Posts again; 0: not yet */
    ucs_time_t        rebuilt_at;   /* On RC of the other network */
    ucs_time_t        returned_at;  /* On RC of network 0 again */
} scale_ep_t;

typedef struct scale_host {
    uct_varuna_link_table_t links;
    uct_varuna_pace_t pace;
    ucs_time_t        busy_until;   /* Its thread */
    ucs_time_t        nic_until[SCALE_NUM_LINKS];
    scale_peer_t      *peers;
    unsigned          num_peers;
    uint32_t          *eps;
    unsigned          num_eps;
    unsigned          first;        /* Endpoint with which the scan begins */
    unsigned long     messages;     /* Handled */
} scale_host_t;

typedef struct scale_options {
    unsigned          hosts;
    unsigned          eps;
    unsigned          attached;     /* Hosts at the switch */
    int               is_silent;    /* Ports raise no event */
    unsigned          seed;
    double            outage;       /* Seconds; 0: the switch stays dead */
    double            limit;        /* Seconds after the cut */
} scale_options_t;

typedef struct scale_sim {
    scale_options_t   options;
    ucs_time_t        now;
    ucs_time_t        cut_at;
    uint8_t           is_cut;
    uint64_t          random;
    scale_host_t      *hosts;
    scale_ep_t        *eps;
    scale_event_t     *heap;
    size_t            num_events;
    size_t            max_events;
    uint64_t          order;
    unsigned          num_moved;
    unsigned          num_rebuilt;
    unsigned          num_returned;
    unsigned          (*sent)[SCALE_NUM_MESSAGES];  /* By bin of time after the cut */
    unsigned          num_bins;
} scale_sim_t;

#define SCALE_BIN 0.01 /* Seconds */

/* Times of the model, in seconds: a datagram between two hosts; a host's thread that
 * handles a message; a command to a NIC, such as a queue pair to ERR; creating and
 * connecting a queue pair; flushing one. */
#define SCALE_WIRE    5e-6
#define SCALE_HANDLE  5e-6
#define SCALE_COMMAND 100e-6
#define SCALE_CREATE  400e-6
#define SCALE_FLUSH   200e-6

/* The plugin's defaults. */
#define SCALE_CTL_TIMEOUT 0.05
#define SCALE_HEARTBEAT   0.1
#define SCALE_MISSES      5
#define SCALE_HOLD_MIN    0.1
#define SCALE_HOLD_MAX    10.0
#define SCALE_TICK_TIME   0.01 /* Of the background scan */

/* scale_sim.c */
void scale_sim_run(scale_sim_t *sim);
void scale_sim_add(scale_sim_t *sim, ucs_time_t time, const scale_event_t *event);
unsigned scale_sim_random(scale_sim_t *sim, unsigned limit);

/** Send a message. It is lost if its network is cut for one of the hosts. */
void scale_sim_send(scale_sim_t *sim, uint32_t from, uint32_t to, unsigned link,
                    scale_message_t message, uint32_t ep, uint32_t number,
                    ucs_time_t time);

/** @return Whether a host is at the switch that is dead now. */
int scale_sim_is_cut(const scale_sim_t *sim, uint32_t host, unsigned link);

/* scale_host.c */
void scale_host_init(scale_sim_t *sim, uint32_t host);
void scale_host_tick(scale_sim_t *sim, uint32_t host, unsigned number);
void scale_host_port(scale_sim_t *sim, uint32_t host, int is_up);
void scale_host_arrival(scale_sim_t *sim, const scale_event_t *event);
void scale_host_handled(scale_sim_t *sim, const scale_event_t *event);

/* scale_ep.c */
int scale_ep_is_stale(const scale_sim_t *sim, const scale_ep_t *ep);
void scale_ep_look(scale_sim_t *sim, uint32_t index);
void scale_ep_step(scale_sim_t *sim, uint32_t index);
void scale_ep_answer(scale_sim_t *sim, const scale_event_t *event);

/* scale_report.c */
void scale_report(const scale_sim_t *sim, int bins);

#endif
