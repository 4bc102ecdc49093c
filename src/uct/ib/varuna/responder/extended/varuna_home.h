/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's part in mode extended (docs/ATOMICS.md, rules 7 and 12): its home NIC,
 * which executes single accesses for requesters that cannot reach it, and the worker, which
 * resolves UIDs of dead or slow owners. All of it runs in the async context with the lock
 * held, over a loopback of the home NIC.
 *
 *   HOME_REQ -> varuna_home.c -> loopback -> varuna_home.c -> REP
 *   timer    -> varuna_home_move.c --^
 *
 * varuna_home_move.c drives it, and moves the home NIC, which ends connections of
 * targets.
 */
#ifndef UCT_VARUNA_HOME_H_
#define UCT_VARUNA_HOME_H_

#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
#include <uct/ib/varuna/md/varuna_own.h>
#include <uct/ib/varuna/responder/amo/varuna_home_nic.h>
#include <uct/ib/varuna/responder/varuna_responder.h>

/* --- The arena of slots --- */

/* The responder's slots for atomics with extended status: one arena for the process,
 * because two of its interfaces may expose the same memory, and a client that meets a
 * UID must find its slot. varuna_arena.c. */

/** UCT_VARUNA_SLOTS_MAX of each; pages of their own. */
typedef struct uct_varuna_arena {
    uct_varuna_slot_t          *slots;    /* Bodies; NULL: there is no arena */
    uint64_t                   *marks;
    unsigned                   life;      /* Of this process, or of an ancestor */
} uct_varuna_arena_t;

/** Take a reference to the arena; the first one creates it. */
ucs_status_t uct_varuna_arena_get(uct_varuna_arena_t *arena);

/** Release a reference; the last one frees it. Nothing if it is the parent's. */
void uct_varuna_arena_put(const uct_varuna_arena_t *arena);

/** In a new child: the arena is the parent's. */
void uct_varuna_arena_forked(void);

/**
 * Take a block of UCT_VARUNA_SLOT_BLOCK slots. The marks of all are PENDING, with
 * generations that they have not had in this process.
 *
 * @return Index of its first slot, UCT_VARUNA_SLOT_NONE if there is none left.
 */
uint32_t uct_varuna_arena_alloc(void);

/** Free a block of @a arena: nobody can write to it any more, and no target holds one of its
 * UIDs (rule 7). */
void uct_varuna_arena_free(const uct_varuna_arena_t *arena, uint32_t first);

/** Whether a slot's target may hold its UID: a guess, because body and mark are read at
 *  different times. @return Its width, 0 if not. */
static inline unsigned
uct_varuna_arena_slot_width(const uct_varuna_slot_t *slot, uint64_t mark)
{
    unsigned width;

    if ((slot->addr == 0) || (slot->gen_head != slot->gen_tail) ||
        (uct_varuna_mark_gen(mark) != uct_varuna_slot_gen(slot))) {
        return 0;
    }

    width = (slot->gen_head & UCT_VARUNA_SLOT_WIDTH32) ? sizeof(uint32_t) :
            sizeof(uint64_t);
    return (slot->addr % width) ? 0 : width;
}

/* --- The home NIC --- */

extern const uct_varuna_served_ops_t uct_varuna_home_ops;

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
    uint8_t                    occupies;  /* Its access is an occupy, which was posted */
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
    uct_varuna_md_t            *md;       /* Its targets are in memory of */
    uint32_t                   first;
    ucs_time_t                 due;       /* Late packets have died by then */
} uct_varuna_dead_block_t;

typedef struct uct_varuna_home {
    ucs_list_link_t            list;      /* Of all interfaces. Owner: varuna_arena.c */
    uct_varuna_ctl_t           *ctl;
    uct_varuna_home_nic_t      nic;
    uct_varuna_arena_t         arena;
    uct_varuna_own_t           read_own;  /* For peers: all bodies */
    uct_varuna_own_t           mark_own;  /* ... all marks */
    uct_rkey_bundle_t          mark;      /* The same, unpacked */
    uct_varuna_access_t        *access;   /* Of the job under way */
    ucs_list_link_t            lost;      /* uct_varuna_access_t */
    ucs_list_link_t            jobs;      /* The first one is under way */
    int                        running;   /* access is on the loopback of */
    uint8_t                    running_on; /* ... this link, */
    ucs_time_t                 running_at; /* ... since then */
    ucs_time_t                 rest_at;   /* Packets of a failed access have expired
                                             by then */
    ucs_list_link_t            dead_blocks;
    uint64_t                   seen_marks[UCT_VARUNA_SLOTS_MAX];
    unsigned                   scan_next; /* Background scan of live slots */
    uct_varuna_slots_t         own;       /* Slots for what it executes itself */
    uint32_t                   own_left;  /* Those of atomics that have failed: their targets
                                             may hold UIDs */
    struct {
        uint64_t               executed, refused, swept, helped, moved, recovered;
    } stats;
} uct_varuna_home_t;

/** @return This mode's part of the responder. */
static inline uct_varuna_home_t *uct_varuna_home(uct_varuna_responder_t *resp)
{
    return (uct_varuna_home_t*)resp->amo_part;
}

/** Add a job, to be filled in. @return NULL if there are too many. */
uct_varuna_job_t *uct_varuna_home_job_create(uct_varuna_home_t *home);

/** Begin the first job in the list, unless it is under way. */
void uct_varuna_home_run(uct_varuna_home_t *home);

/* --- Blocks of slots --- */

/** Register the arena with this interface's memory domain. */
ucs_status_t uct_varuna_blocks_init(uct_varuna_home_t *home);

/** @return NICs that have keys of the arena. */
uint8_t uct_varuna_blocks_nics(const uct_varuna_home_t *home);

/** Nothing if it is not initialized. */
void uct_varuna_blocks_cleanup(uct_varuna_home_t *home);

/** Fill in OPEN_REP's part about slots. @return Bytes put at @a tail. */
size_t uct_varuna_blocks_fill_open(uct_varuna_home_t *home,
                                   uct_varuna_home_client_t *client,
                                   uct_varuna_ctl_open_rep_t *rep, void *tail);

/** The requester is gone: its slots are swept and freed. */
void uct_varuna_blocks_close_client(uct_varuna_home_t *home,
                                    uct_varuna_home_client_t *client);

/* --- Jobs --- */

/** The access failed. After home->rest_at it cannot be executed any more. */
void uct_varuna_job_failed(uct_varuna_home_t *home, uct_varuna_job_t *job,
                           ucs_status_t status);

/** The next access of a sweep ends the generation that its slot's owner has left: it is not used
 *  again (rule 1). */
void uct_varuna_job_advance(uct_varuna_home_t *home, uct_varuna_job_t *job);

/* --- Moves --- */

/** Register the rows of the bus, and the job of the clock. */
void uct_varuna_home_move_init(uct_varuna_responder_t *resp);

/** Take over the dead blocks that closed interfaces of the same memory domain have left. */
void uct_varuna_arena_adopt(uct_varuna_home_t *home);

/* --- The worker --- */

/** Read the targets of slots in own_left, and take back those whose generations are over. */
void uct_varuna_worker_free_own(uct_varuna_home_t *home);

#endif
