/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's part in mode extended (docs/ATOMICS.md, rules 7 and 12): its home NIC,
 * which executes single accesses for requesters that cannot reach it, and the worker, which resolves UIDs of dead or slow owners. All of it runs in the async
 * context with the lock held, over a loopback of the home NIC.
 *
 *   HOME_REQ -> varuna_home.c -> varuna_home_job.c -> loopback -> varuna_home_job.c -> REP
 *   timer    -> varuna_worker.c -------^
 *
 * varuna_home_move.c drives it, and moves the home NIC, which ends connections of
 * targets.
 */
#ifndef UCT_VARUNA_HOME_H_
#define UCT_VARUNA_HOME_H_

#include <uct/ib/varuna/core/varuna_amo_sm.h>
#include "varuna_arena.h"
#include <uct/ib/varuna/responder/amo/varuna_home_name.h>
#include <uct/ib/varuna/md/varuna_own.h>
#include <uct/ib/varuna/core/varuna_uid.h>

/* The access of the job under way. Outlives the job if its NIC died with it. */
typedef struct uct_varuna_access {
    uct_completion_t           comp;
    struct uct_varuna_home     *home;     /* NULL: nobody waits for it */
    uint64_t                   word;      /* Its result */
    ucs_list_link_t            list;      /* In home->lost, if nobody does */
} uct_varuna_access_t;

/* What is kept for a requester: a part of its target. */
typedef struct uct_varuna_home_client {
    uct_varuna_peer_t          *peer;
    uint32_t                   first_slot; /* Of its block, or SLOT_NONE */
    uct_varuna_own_t           write_own; /* For it: the block's bodies */
    struct {
        uint64_t               seq;
        int                    busy;
        uct_varuna_ctl_home_rep_t rep;
    } last;                               /* Its last access */
} uct_varuna_home_client_t;

/* One access on the home NIC, or a sequence of them. */
typedef struct uct_varuna_job {
    ucs_list_link_t            list;
    uct_varuna_amo_act_t       act;
    uint64_t                   addr;
    uint64_t                   rkeys[UCT_VARUNA_MAX_LINKS]; /* Inner, by NIC */
    uint8_t                    width;
    uint8_t                    second;    /* CONFIRM: at the mark now */
    uint8_t                    is_sweep;
    uint8_t                    is_whole;  /* A whole operation: sm */
    uint8_t                    begun;     /* It has a slot, if it needs one */
    uint8_t                    lost;      /* It is unknown whether the access was
                                             executed; it cannot be any more */
    uint8_t                    link;      /* Over which the request came */
    uint64_t                   value;
    uct_varuna_slot_t          slot;
    /* Asked for by a requester */
    uct_varuna_home_client_t   *client;   /* NULL: it is gone, or a sweep */
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

/* A loopback: endpoint of a control interface to itself. */
typedef struct uct_varuna_loopback {
    struct uct_varuna_ctl_ep   *ep;       /* NULL: to be made */
    struct uct_varuna_ctl_ep   *dead;     /* Failed, to be destroyed */
    uint8_t                    in_err;    /* ep was moved to ERR */
    ucs_time_t                 gone_at;   /* When its NIC was gone; 0: it is not */
    ucs_time_t                 bad_until; /* It fails although the port is up */
    unsigned                   fails;     /* In a row */
} uct_varuna_loopback_t;

typedef struct uct_varuna_home {
    uct_varuna_ctl_t           *ctl;
    uct_varuna_arena_t         arena;
    uct_varuna_own_t           read_own;  /* For peers: all bodies */
    uct_varuna_own_t           mark_own;  /* ... all marks */
    uct_rkey_bundle_t          mark;      /* The same, unpacked */
    int                        joined;    /* home is valid */
    uct_varuna_home_member_t   member;
    uct_varuna_loopback_t      loopbacks[UCT_VARUNA_MAX_LINKS]; /* By link */
    uct_varuna_access_t        *access;   /* Of the job under way */
    ucs_list_link_t            lost;      /* uct_varuna_access_t */
    ucs_list_link_t            jobs;      /* The first one is under way */
    int                        running;   /* access is on the loopback of */
    uint8_t                    running_on; /* ... this link, */
    ucs_time_t                 running_at; /* ... since then */
    struct {
        ucs_time_t             down_at;   /* The home NIC's port is, since then; 0: it is
                                             not, or nobody has asked */
    } detour;                             /* Owner: varuna_cpu.c */
    ucs_time_t                 rest_at;   /* Packets of a failed access have expired
                                             by then */
    ucs_list_link_t            dead_blocks;
    uint64_t                   seen_marks[UCT_VARUNA_SLOTS_MAX];
    unsigned                   scan_next; /* Background scan of live slots */
    uct_varuna_slots_t         own;       /* Slots for what it executes itself */
    struct {
        uint64_t               executed, refused, swept, helped, moved, recovered;
    } stats;
} uct_varuna_home_t;

/** Main thread. */
ucs_status_t uct_varuna_home_create(uct_varuna_ctl_t *ctl,
                                    uct_varuna_home_t **home_p);

void uct_varuna_home_destroy(uct_varuna_home_t *home);

/** Start to serve a requester. */
void uct_varuna_home_client_init(uct_varuna_home_client_t *client, uct_varuna_peer_t *peer);

/** HOME_REQ of a requester; the message has been checked. */
void uct_varuna_home_request(uct_varuna_home_t *home,
                             uct_varuna_home_client_t *client, unsigned link,
                             const uct_varuna_ctl_hdr_t *hdr,
                             const uct_varuna_ctl_home_req_t *req);

/** Add a job, to be filled in. @return NULL if there are too many. */
uct_varuna_job_t *uct_varuna_home_job_create(uct_varuna_home_t *home);

/** Begin the first job in the list, unless it is under way. */
void uct_varuna_home_run(uct_varuna_home_t *home);

/** @return Nonzero if the loopback of @a link can be used: it is opened if there is none. */
int uct_varuna_home_use_loopback(uct_varuna_home_t *home, unsigned link);

/** @return Whether atomics are executed on the home NIC (mode extended). */
int uct_varuna_home_has_slots(const uct_varuna_home_t *home);

/** Take part in the choice of this process's home NIC, unless that is done. */
void uct_varuna_home_join(uct_varuna_home_t *home);

/** Local index of the link whose NIC is @a nic, UCT_VARUNA_LINK_NONE if it is none
 *  of ours. */
uint8_t uct_varuna_home_find_link(const uct_varuna_home_t *home,
                                  uint8_t nic);

/* --- varuna_arena.c --- */

/** Mode extended: register the arena with this interface's memory domain. */
ucs_status_t uct_varuna_blocks_init(uct_varuna_home_t *home);

/** Nothing if it is not initialized. */
void uct_varuna_blocks_cleanup(uct_varuna_home_t *home);

/** Fill in OPEN_REP's part about atomics. @return Bytes put at @a tail. */
size_t uct_varuna_home_fill_open(uct_varuna_home_t *home,
                                 uct_varuna_home_client_t *client,
                                 uct_varuna_ctl_open_rep_t *rep, void *tail);

/** The requester is gone: its slots are swept and freed. */
void uct_varuna_home_close_client(uct_varuna_home_t *home,
                                  uct_varuna_home_client_t *client);

/* --- varuna_home_job.c --- */

/** Post the access of the first job on the loopback of @a link, whose NIC is
 *  @a nic. @return As UCT does: UCS_INPROGRESS, or UCS_OK if it is done. */
ucs_status_t uct_varuna_job_post(uct_varuna_home_t *home,
                                 uct_varuna_job_t *job, unsigned link,
                                 uint8_t nic);

/** The access of the first job gave @a word. */
void uct_varuna_job_next(uct_varuna_home_t *home, uct_varuna_job_t *job,
                         uint64_t word);

/** The access failed. After home->rest_at it cannot be executed any more. */
void uct_varuna_job_failed(uct_varuna_home_t *home, uct_varuna_job_t *job,
                           ucs_status_t status);

/** Before its next access: get a slot, and decide what a lost access was. @return Zero if it has to wait. */
int uct_varuna_job_prepare(uct_varuna_home_t *home, uct_varuna_job_t *job);

/** Send the answer of the target's last access, or a first one. */
void uct_varuna_home_reply(uct_varuna_home_t *home, uct_varuna_job_t *job,
                           ucs_status_t status);

/* --- varuna_worker.c --- */

/** The worker's period is over: resolve slots of dead or slow owners. */
void uct_varuna_worker_step(uct_varuna_home_t *home);

#endif
