/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The fabric: one file in shared memory, mapped by all processes at one fixed
 * address, so that plain pointers into it are good everywhere.
 *
 *   EMU_BASE  +----------------+
 *             | emu_fabric_t   | configuration, locks, fault rules
 *             +----------------+
 *             | tables         | processes, ports, contexts, PDs, MRs, ...
 *             +----------------+
 *             | trace ring     |
 *             +----------------+
 *             | heap           | queue buffers and doorbell records, by pages
 *             +----------------+
 *
 * It is created and mapped by emu_map.h.
 */

#ifndef EMU_FABRIC_H_
#define EMU_FABRIC_H_

#include "../base/emu_def.h"
#include "../base/emu_lock.h"
#include "../rules/emu_fault_rule.h"
#include "../rules/emu_quirk_rule.h"

#define EMU_BASE             0x7e9000000000ul
#define EMU_MAGIC            0x75656d35786c6dul /* "mlx5emu" */
#define EMU_VERSION          1
#define EMU_SHM_DIR          "/dev/shm"
#define EMU_FILE_FMT         EMU_SHM_DIR "/mlx5emu.%s"    /* the file */
#define EMU_DIR_FMT          EMU_SHM_DIR "/mlx5emu.%s.d"  /* everything else */
#define EMU_DEFAULT_TRACE    65536
#define EMU_DEFAULT_HEAP     (4ul << 30)        /* sparse: costs what is used */
#define EMU_DEFAULT_SUBNET_TIMEOUT 18           /* OpenSM's */
#define EMU_MAX_SUBNET_TIMEOUT 31               /* it has 5 bits */
#define EMU_PAGE             4096ul

/** What "mlx5emu up" decides. */
typedef struct emu_fabric_config {
    char     name[EMU_NAME_MAX];
    uint32_t hosts;          /* 1..EMU_MAX_HOSTS */
    uint32_t links;          /* 1..EMU_MAX_LINKS */
    uint16_t mtu[EMU_MAX_HOSTS][EMU_MAX_LINKS]; /* of each port: 256, 512, 1024, 2048
                                or 4096 bytes */
    uint32_t shared_hca;     /* all links of a host are one HCA (atomics) */
    uint32_t speeds[EMU_MAX_LINKS]; /* emu_speed_t of the ports of each link */
    uint32_t subnet_timeout; /* of all ports, see ibv_query_port() */
    uint8_t  pci_switch[EMU_MAX_LINKS]; /* of each link's NIC, from 1 */
    uint8_t  pci_root[EMU_MAX_LINKS];
    uint32_t no_devx;        /* devices can't be opened for DEVX */
    uint32_t reuse_qpns;     /* numbers of queue pairs have no generation */
    uint64_t trace_entries;  /* 0: no trace */
    uint64_t heap_size;      /* bytes, a multiple of EMU_PAGE */
    uint64_t seed;           /* of all that is random */
    double   time_scale;     /* timers and delays run so many times faster */
} emu_fabric_config_t;

/** The head of the file. */
struct emu_fabric {
    uint64_t            magic;
    uint32_t            version;
    uint32_t            ready;         /* 1 once everything is initialized */
    uint64_t            layout;        /* a hash of structure sizes */
    uint64_t            uid;           /* unlike any other fabric's */
    uint64_t            total_size;
    uint64_t            start_ns;      /* CLOCK_MONOTONIC at creation */
    emu_fabric_config_t cfg;

    /* Tables, all in this file */
    emu_proc_t          *procs;
    emu_ctx_t           *ctxs;
    emu_chan_t          *chans;
    emu_pd_t            *pds;
    emu_mr_t            *mrs;
    emu_cq_t            *cqs;
    emu_srq_t           *srqs;
    emu_qp_t            *qps;
    emu_port_t          *ports;
    struct emu_trace    *trace;
    uint32_t            *heap_pages;   /* owner of each heap page + 1 */
    uint8_t             *heap;
    uint64_t            heap_num_pages;
    uint64_t            heap_hint;     /* where to search first */
    uint64_t            heap_top;      /* pages above were never used */

    emu_lock_t          table_lock;    /* guards slots of all tables */
    emu_lock_t          heap_lock;     /* guards heap_* */
    uint32_t            hints[16];     /* next slot to try, per table */
    uint64_t            mr_freed;      /* regions that were deregistered; table_lock */

    /* Fault rules: guarded by fault_lock; the two words are read without */
    emu_lock_t          fault_lock;
    uint32_t            fault_active;  /* number of rules loaded */
    uint32_t            fault_next_id;
    emu_fault_rule_t    fault_rules[EMU_FAULT_MAX_RULES];

    /* Quirks, by port: guarded by quirk_lock, read without */
    emu_lock_t          quirk_lock;
    emu_quirk_port_t    quirks[EMU_MAX_PORTS];

    /* Quirk late-write: guarded by late_lock; num_late is read without */
    emu_lock_t          late_lock;
    emu_late_t          *lates;        /* EMU_MAX_LATE of them ... */
    uint8_t             *late_data;    /* ... and their payload */
    uint64_t            late_order;
    uint32_t            num_late;

    /* Time: guarded by its own lock; timed is read without */
    uint32_t            timed;         /* some link has a rate or a latency */
    struct emu_pipe     *pipe;
    struct emu_flight   *flights;      /* EMU_MAX_FLIGHTS of them ... */
    uint8_t             *flight_data;  /* ... and their payload */

    uint64_t            next_qp_id;    /* incarnations of queue pairs, for the
                                          names of operations; atomic */
};

/** The fabric of this process, NULL while none is open. */
extern emu_fabric_t *emu_fabric;

/** Descriptor of its file, -1 while none is open. */
extern int emu_fabric_fd;

/** CLOCK_MONOTONIC in nanoseconds. */
uint64_t emu_now_ns(void);

/** How long a timer of so many nanoseconds takes in this fabric. */
static inline uint64_t emu_scaled_ns(uint64_t ns)
{
    return emu_likely(emu_fabric->cfg.time_scale == 1) ? ns :
           (uint64_t)(ns / emu_fabric->cfg.time_scale);
}

#endif
