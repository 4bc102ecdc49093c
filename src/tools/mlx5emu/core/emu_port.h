/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Ports: one per host and link. What a program reads as its port's attributes,
 * the state of the link, and the counters.
 *
 * Called by: verbs/ (query), ctl/ (link command, status), proto/ and wire/.
 */

#ifndef EMU_PORT_H_
#define EMU_PORT_H_

#include "../base/emu_def.h"
#include "../base/emu_lock.h"
#include "emu_addr.h"
#include "emu_fabric.h"
#include "emu_quirk.h"

/** State of the link between a port and its plane's switch. */
typedef enum emu_link_state {
    EMU_LINK_UP,
    EMU_LINK_DOWN,    /* packets are lost both ways; events were raised */
    EMU_LINK_SILENT,  /* packets are lost both ways, without an event */
    EMU_LINK_LAST
} emu_link_state_t;

/** What is counted, for each port and kind of queue pair. What a requester counts
 *  with each request is in cache lines of its own: the responders' counters of the
 *  same port are written by other processes. */
typedef enum emu_counter {
    EMU_CNT_DOORBELLS,     /* send doorbells rung */
    EMU_CNT_WQES,          /* send work requests fetched */
    EMU_CNT_TX_PKTS,       /* request packets put on the wire */
    EMU_CNT_TX_BYTES,      /* their payload */
    EMU_CNT_RETRANS_PKTS,  /* request packets sent again */
    EMU_CNT_TIMEOUTS,      /* retry timer expiries */
    EMU_CNT_RNR_WAITS,     /* RNR NAKs that a requester waited for */
    EMU_CNT_CQE_ERRS,      /* completions with an error, flushes not counted */
    EMU_CNT_RESPONDER,     /* what follows is on the next line: */
    EMU_CNT_TX_ACKS = EMU_CNT_RESPONDER, /* responses: acknowledgements */
    EMU_CNT_TX_RESP_PKTS,  /* responses with data: read and atomic */
    EMU_CNT_TX_NAKS,       /* responses: NAKs, RNR among them */
    EMU_CNT_DUP_REQS,      /* duplicate requests met by a responder */
    EMU_CNT_SEQ_ERRS,      /* requests out of sequence met by a responder */
    EMU_CNT_DROPS_LINK,    /* packets lost since a link was not up */
    EMU_CNT_DROPS_FAULT,   /* packets lost by a fault rule */
    EMU_CNT_DROPS_QUEUE,   /* packets lost since a queue was full, or their
                              lifetime over */
    EMU_CNT_DROPS_MTU,     /* packets longer than the MTU of the port at the
                              other end */
    EMU_CNT_DROPS_DEST,    /* packets without a receiver, or dropped */
    EMU_CNT_CQES,          /* completions written */
    EMU_CNT_RESET_BELLS,   /* send doorbells of queue pairs in RESET */
    EMU_CNT_LAST
} emu_counter_t;

#define EMU_CNT_STRIDE 24 /* EMU_CNT_LAST, rounded up to whole cache lines */

/** Speeds of a port with 4 lanes. */
typedef enum emu_speed {
    EMU_SPEED_SDR,
    EMU_SPEED_DDR,
    EMU_SPEED_QDR,
    EMU_SPEED_FDR,
    EMU_SPEED_EDR,
    EMU_SPEED_HDR,
    EMU_SPEED_NDR,
    EMU_SPEED_LAST
} emu_speed_t;

extern const char *emu_counter_names[EMU_CNT_LAST];
extern const char *emu_qp_type_names[EMU_QPT_LAST];
extern const char *emu_link_state_names[EMU_LINK_LAST];
extern const char *emu_speed_names[EMU_SPEED_LAST];

#define EMU_LINK_LOG 16 /* changes of a link that are remembered */

/** A change of a link, in a ring: number n, from 1, is at n % EMU_LINK_LOG. */
typedef struct emu_link_change {
    uint64_t time_ns;
    uint32_t state;        /* emu_link_state_t */
} emu_link_change_t;

/** One port. Index in the table: host * links + link. */
struct emu_port {
    uint16_t   index;
    uint16_t   host;
    uint16_t   link;
    uint16_t   hca;          /* atomics are atomic within one HCA */
    uint8_t    no_ip;        /* emu_addr_t, written with link_lock held */
    uint8_t    moves;        /* ... */
    uint8_t    cut_by_rule;  /* a fault rule changed it last; atomic */
    uint8_t    reserved;
    uint32_t   link_state;   /* emu_link_state_t; read without a lock */
    uint64_t   link_changes; /* generation: counts emu_link_set() */
    emu_link_change_t link_log[EMU_LINK_LOG]; /* the last of them */
    uint64_t   nic_died_ns;  /* when it died last */
    uint32_t   nic_gen;      /* of the NIC: odd while it is dead; changes with
                                each death and revival; read without a lock */
    uint32_t   fatal_gen;    /* the one that goes on until the time below ... */
    uint64_t   fatal_until_ns; /* ... after DEVICE_FATAL; 0: none; atomic */
    uint32_t   mtu;          /* bytes */
    uint32_t   speed;        /* emu_speed_t: what it says, not how fast it is */
    emu_lock_t link_lock;    /* guards changes of link_state and flap_*; that of
                                the device's port guards both of a bond */
    uint64_t   bond_ready_ns; /* bonded: packets are lost until then; atomic */
    uint64_t   flap_start_ns;
    uint64_t   flap_period_ns; /* 0: the link does not flap; read without */
    uint64_t   flap_down_ns; /* each period begins with so long down */
    uint64_t   neighbors[EMU_MAX_PORTS / 64]; /* RoCE: ports whose MAC addresses
                                the host knows, by index; atomic */
    emu_lock_t hca_lock;     /* of HCA number "index": guards atomics */
    uint64_t   counters[EMU_QPT_LAST][EMU_CNT_STRIDE]
               __attribute__((aligned(64)));
};

/** Port of a host, or NULL. */
emu_port_t *emu_port_get(unsigned host, unsigned link);

/**
 * Attributes as ibv_query_port gives them. Reported as PORT_DOWN if the link is
 * down, as PORT_ACTIVE if it is up or silent.
 */
void emu_port_query(const emu_port_t *port, struct ibv_port_attr *attr_p);

/** How many P_Keys a port has: 1, or 2 with the quirk limited-pkey. */
unsigned emu_port_num_pkeys(const emu_port_t *port);

/** The P_Key at an index; on RoCE there is one. */
uint16_t emu_port_pkey(const emu_port_t *port, unsigned index);

/** Whether a queue pair with the P_Key at @a index may have a packet with @a pkey. */
int emu_port_is_member(const emu_port_t *port, unsigned index, uint16_t pkey,
                       uint32_t qpn);

/** Service levels (bits) whose packets may be placed out of order. */
uint16_t emu_port_ooo_sls(const emu_port_t *port);

/** Attributes as ibv_query_device gives them. */
void emu_device_query(const emu_port_t *port, struct ibv_device_attr *attr_p);

/** MTU of a port as verbs name it. */
enum ibv_mtu emu_port_mtu(const emu_port_t *port);

/** Rate of the port as sysfs has it. */
const char *emu_port_rate(const emu_port_t *port);

/** Addresses of a port as they are now. */
void emu_port_addr(const emu_port_t *port, emu_addr_t *addr_p);

/** Whether a port's link layer is Ethernet. */
static inline int emu_port_is_roce(const emu_port_t *port)
{
    return emu_quirk_on(port->index, EMU_QUIRK_ROCE);
}

/** Service level, or on RoCE priority, from the field that an address vector has for
 *  it: a priority is in the upper bits. */
static inline uint8_t emu_port_sl(const emu_port_t *port, uint8_t sl)
{
    return emu_port_is_roce(port) ? (sl >> 1) : sl;
}

/** The plane whose switch a port is connected to. */
unsigned emu_port_plane(const emu_port_t *port);

/** LID of a port; 0 on RoCE. */
uint16_t emu_port_lid(const emu_port_t *port);

/** An entry of the GID table, as @ref emu_addr_gid. */
int emu_port_gid(const emu_port_t *port, unsigned index, union ibv_gid *gid_p,
                 emu_gid_type_t *type_p);

/**
 * With quirk bond two ports of a host belong to one device: its queue pairs are on
 * the first, and the second is another way for their packets.
 *
 * @return The port that has the device of a port.
 */
emu_port_t *emu_port_device(const emu_port_t *port);

/** Whether a port is the first of a bond. */
int emu_port_is_bond(const emu_port_t *port);

/**
 * The port that carries the packets of a device: the second of a bond while the
 * first is known to be down.
 *
 * @return NULL if the bond is just changing over: packets are lost.
 */
emu_port_t *emu_port_carrier(const emu_port_t *port);

/** Whether a device knows that it has no link, however its ports report that. */
int emu_port_is_down(const emu_port_t *port);

/** Name of the device that a port is seen by. */
#define EMU_PORT_NAME_MAX 24
void emu_port_device_name(const emu_port_t *port, char name[EMU_PORT_NAME_MAX]);

/** Whether that device has direct verbs of mlx5. */
int emu_port_is_mlx5(const emu_port_t *port);

/**
 * Change a link. Going down or up raises IBV_EVENT_PORT_ERR/PORT_ACTIVE on all
 * contexts of the port; to and from silent raises nothing, but "down" after
 * silent does. With quirk gid-moves the addresses change, too, which raises
 * IBV_EVENT_LID_CHANGE or, on RoCE, IBV_EVENT_GID_CHANGE.
 */
int emu_link_set(unsigned host, unsigned link, emu_link_state_t state);

/** Say whether a fault rule is about to cut a link, or the NIC there. */
void emu_link_mark(unsigned host, unsigned link, int is_cut_by_rule);

/**
 * Make a link go down and up until emu_link_set() ends it. It goes down at once. All
 * processes of the fabric keep the time, so that events come in time even if some of
 * them die.
 *
 * @param [in] period_ns  Of down and up together.
 * @param [in] up_ppm     The part of it that the link is up.
 */
int emu_link_flap(unsigned host, unsigned link, uint64_t period_ns,
                  uint32_t up_ppm);

/** Whether a link was up from one time to another, the latter not in the future; in
 *  doubt it was not. */
int emu_link_was_up(const emu_port_t *port, uint64_t from_ns, uint64_t to_ns);

/** Let a link that flaps be as the time demands. */
void emu_link_tick(emu_port_t *port);

/** Service thread: keep the time of the links that flap; begin anew. */
void emu_link_serve(void);
void emu_link_forget(void);

/** Whether a port's NIC lives, and is still the one that it was when @a gen
 *  was read: what belonged to a NIC that died never works again. */
static inline int emu_nic_is(uint32_t port, uint32_t gen)
{
    return __atomic_load_n(&emu_fabric->ports[port].nic_gen,
                           __ATOMIC_ACQUIRE) == gen;
}

#define EMU_COUNT(_port, _type, _cnt, _n) \
    ((void)__atomic_fetch_add(&(_port)->counters[_type][_cnt], (_n), \
                              __ATOMIC_RELAXED))

#endif
