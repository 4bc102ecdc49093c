/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's part in atomics (docs/ATOMICS.md, rules 7 and 12): its home NIC,
 * the proxy which executes single accesses on it for requesters that cannot reach
 * it, and the worker which resolves UIDs that dead or slow owners left. All of it
 * runs in the async context with the lock held, over a loopback of the home NIC.
 */
#ifndef UCT_VARUNA_PROXY_H_
#define UCT_VARUNA_PROXY_H_

#include "varuna_amo_sm.h"
#include "varuna_arena.h"
#include "varuna_ctl.h"

/* One access, or a row of them, on the home NIC. */
typedef struct uct_varuna_job {
    ucs_list_link_t            list;
    uct_completion_t           comp;
    struct uct_varuna_proxy    *proxy;
    uct_varuna_amo_act_t       act;
    uint64_t                   addr;
    uint64_t                   rkey;      /* Inner key for the home NIC */
    uint8_t                    width;
    uint8_t                    second;    /* CONFIRM: at the mark now */
    uint8_t                    is_sweep;
    uint8_t                    is_whole;  /* A whole operation: sm */
    uint8_t                    posted_cas; /* A CAS that must not come twice */
    uint8_t                    link;      /* Over which it was asked for */
    uint64_t                   value;
    uct_varuna_slot_t          slot;
    /* Asked for by a requester */
    uct_varuna_ctl_hdr_t       hdr;
    uint64_t                   seq;
    /* Sweep: reads a target, which resolves what it holds */
    uct_varuna_amo_sm_t        sm;
    uint32_t                   index;     /* Slot whose target it is */
    uint8_t                    is_advancing;
    uint8_t                    advance;   /* ... whose mark moves on then */
} uct_varuna_job_t;

/* A block of slots whose owner is gone. */
typedef struct uct_varuna_dead_block {
    ucs_list_link_t            list;
    uint32_t                   first;
    uint8_t                    swept;     /* Its jobs are done, or in the list */
    ucs_time_t                 due;       /* Late packets have died by then */
} uct_varuna_dead_block_t;

typedef struct uct_varuna_proxy {
    uct_varuna_ctl_t           *ctl;
    uct_varuna_slot_t          *slots;
    uct_mem_h                  memh;
    void                       *rkey;     /* Packed */
    uct_rkey_bundle_t          bundle;    /* The same, unpacked */
    uint8_t                    home;      /* Local link index */
    uint32_t                   home_epoch;
    uct_ep_h                   loopback;  /* NULL: to be made */
    uct_ep_h                   dead;      /* Failed, to be destroyed */
    ucs_list_link_t            jobs;      /* The first one is under way */
    int                        running;
    uint64_t                   word;      /* Result of the access under way */
    ucs_time_t                 retry_at;  /* Loopback failed */
    int                        timer_id;  /* -1: none */
    ucs_list_link_t            dead_blocks;
    uint64_t                   seen_marks[UCT_VARUNA_SLOTS_MAX];
    unsigned                   scan_next; /* Background scan of live slots */
    struct {
        uint64_t               executed, swept, helped, renamed;
    } stats;
} uct_varuna_proxy_t;

/* What a target remembers of its requester's last access. */
typedef struct uct_varuna_proxy_last {
    uint64_t                   seq;
    int                        busy;
    uct_varuna_ctl_proxy_rep_t rep;
} uct_varuna_proxy_last_t;

/** Register the arena with this interface's memory domain. Main thread. */
ucs_status_t uct_varuna_proxy_create(uct_varuna_ctl_t *ctl,
                                     uct_varuna_proxy_t **proxy_p);

/** Stop the worker; called before the async handlers of the interfaces stop. */
void uct_varuna_proxy_stop(uct_varuna_proxy_t *proxy);

void uct_varuna_proxy_destroy(uct_varuna_proxy_t *proxy);

/** Fill in what OPEN_REP tells of atomics. @return Bytes put at @a tail. */
size_t uct_varuna_proxy_fill_open(uct_varuna_proxy_t *proxy,
                                  uct_varuna_target_t *target,
                                  uct_varuna_ctl_open_rep_t *rep, void *tail);

/** The target's requester is gone: its slots are swept and given back. */
void uct_varuna_proxy_close_target(uct_varuna_proxy_t *proxy,
                                   uct_varuna_target_t *target);

/** PROXY_REQ; the message has been checked. */
void uct_varuna_proxy_handle_req(uct_varuna_proxy_t *proxy, unsigned link,
                                 const uct_varuna_ctl_hdr_t *hdr,
                                 const uct_varuna_ctl_proxy_req_t *req);

/** Add a job, to be filled in. @return NULL if there are too many. */
uct_varuna_job_t *uct_varuna_proxy_job_create(uct_varuna_proxy_t *proxy);

/** Begin the first job in the list, unless it is under way. */
void uct_varuna_proxy_run(uct_varuna_proxy_t *proxy);

/** An inner control endpoint failed. @return Nonzero if it was the loopback. */
int uct_varuna_proxy_ep_failed(uct_varuna_proxy_t *proxy, uct_ep_h inner);

/** Local links went down: the home NIC may have to be another one. */
void uct_varuna_proxy_links_down(uct_varuna_proxy_t *proxy, unsigned down_map);

/** NIC index of the home NIC, as peers know it. */
uint8_t uct_varuna_proxy_home_nic(const uct_varuna_proxy_t *proxy);

#endif
