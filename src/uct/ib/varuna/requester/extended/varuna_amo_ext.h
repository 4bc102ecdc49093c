/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode extended, the requester's side: an atomic with its state machine (varuna_amo_sm.h),
 * what an endpoint has for them, and the functions that the files of this room share:
 * varuna_amo.c accepts, paces and finishes atomics, and sends their actions to the peer's home
 * NIC; varuna_amo_lane.c and varuna_amo_pair.inl post them on the lane. And the table of mode
 * reread. Main thread only.
 */
#ifndef UCT_VARUNA_AMO_EXT_H_
#define UCT_VARUNA_AMO_EXT_H_

#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/requester/amo/varuna_amo_priv.h>

extern const uct_varuna_amo_ops_t uct_varuna_amo_reread_ops;
extern const uct_varuna_amo_ops_t uct_varuna_amo_extended_ops;

/* Classes of targets */
#define UCT_VARUNA_AMO_WORDS         8

/* An atomic of this mode */
typedef struct uct_varuna_amo_ext {
    uct_varuna_amo_t           super;
    uct_varuna_rkey_t          key;       /* The user may release its own */
    uint8_t                    lost;      /* The lane failed with its action */
    uint8_t                    begun;     /* Its first action may be posted */
    uint8_t                    is_get;    /* A user's GET: it changes no target */
    uint32_t                   races;     /* Lost ones, when last looked at */
    ucs_time_t                 not_before; /* Backs off until then, or 0 */
    uint64_t                   value;     /* What the action gave */
    uct_varuna_slot_t          slot;      /* READ_BODY: what is there */
    uct_varuna_amo_sm_t        sm;
} uct_varuna_amo_ext_t;

/* The peer's arena: where it is, and keys for what we do there. */
typedef struct uct_varuna_ep_arena {
    uint64_t                   slots_addr;
    uint64_t                   marks_addr;
    uint64_t                   own_addr;    /* By which the key to write names the first of
                                               our slots */
    uint32_t                   num_slots; /* 0: there is none */
    uct_rkey_bundle_t          read;      /* All bodies */
    uct_rkey_bundle_t          mark;      /* All marks */
    uct_rkey_bundle_t          write;     /* Bodies of our slots, if we have any */
} uct_varuna_ep_arena_t;

/* This mode's part of an endpoint */
typedef struct uct_varuna_ep_ext {
    uct_varuna_amo_home_t      home;
    uint32_t                   random;    /* For the back-off */
    uint8_t                    words[UCT_VARUNA_AMO_WORDS]; /* Unfinished, by target */
    uct_varuna_ep_arena_t      arena;
    uct_varuna_slots_t         slots;     /* Ours in the arena */
    uct_varuna_amo_ext_t       *at_home;  /* Its access is with the peer's home NIC; one at
                                             a time */
    uint64_t                   seq;       /* Newest number of such an access */
} uct_varuna_ep_ext_t;

UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ep_ext_t) <=
                         sizeof(((uct_varuna_ep_amo_t*)NULL)->part));

static UCS_F_ALWAYS_INLINE uct_varuna_ep_ext_t *uct_varuna_ep_ext(uct_varuna_ep_t *ep)
{
    return (uct_varuna_ep_ext_t*)ep->amo.part;
}

static UCS_F_ALWAYS_INLINE uct_varuna_amo_ext_t *uct_varuna_amo_ext(uct_varuna_amo_t *amo)
{
    return ucs_derived_of(amo, uct_varuna_amo_ext_t);
}

/** The slow part of uct_varuna_amo_take_slot(): a slot comes to a new half. */
uint32_t uct_varuna_amo_take_slot_timed(uct_varuna_amo_ext_t *amo, uint64_t *gen_p);

/** Take a slot for it. @return 0 if there is none: it waits, and never fails. */
static UCS_F_ALWAYS_INLINE int uct_varuna_amo_take_slot(uct_varuna_amo_ext_t *amo)
{
    uint64_t gen;
    uint32_t slot;

    slot = uct_varuna_slots_take(&uct_varuna_ep_ext(amo->super.ep)->slots, &gen);
    if (ucs_unlikely(slot == UCT_VARUNA_SLOT_NONE) &&
        uct_varuna_slots_wait_for_time(&uct_varuna_ep_ext(amo->super.ep)->slots)) {
        slot = uct_varuna_amo_take_slot_timed(amo, &gen);
    }

    if (ucs_unlikely(slot == UCT_VARUNA_SLOT_NONE)) {
        return 0;
    }

    uct_varuna_amo_sm_set_slot(&amo->sm, slot, gen);
    return 1;
}

/** Return the slot, if it has one. Rule 7: its owner returns it when the state machine has
 *  finished. */
static UCS_F_ALWAYS_INLINE void uct_varuna_amo_give_slot(uct_varuna_amo_ext_t *amo)
{
    if (amo->sm.flags & UCT_VARUNA_AMO_FLAG_SLOT) {
        uct_varuna_slots_give(&uct_varuna_ep_ext(amo->super.ep)->slots, amo->sm.slot, amo->sm.gen);
        amo->sm.flags &= ~UCT_VARUNA_AMO_FLAG_SLOT;
    }
}

/** The body of one of our own slots, as the key to write it names it. */
static UCS_F_ALWAYS_INLINE uint64_t
uct_varuna_amo_own_slot_addr(uct_varuna_ep_t *ep, uint32_t slot)
{
    const uct_varuna_ep_ext_t *ext = uct_varuna_ep_ext(ep);

    return ext->arena.own_addr +
           ((slot - ext->slots.first) * sizeof(uct_varuna_slot_t));
}

/** @return Nonzero if an action on a word may go on the lane in use. Rule 12: it needs the
 *  home NIC, and an OCCUPY needs a lane that can be fenced. So atomics are requests on
 *  DC too. */
static inline int uct_varuna_amo_lane_is_home(uct_varuna_ep_t *ep)
{
    return (uct_varuna_ep_ext(ep)->slots.num > 0) && (ep->lane.kind == UCT_VARUNA_LANE_RC) &&
           (ep->peer->links[ep->lane.link].nic == uct_varuna_ep_ext(ep)->home.nic);
}

/**
 * Take a new atomic, or a read.
 *
 * @return As UCT's operations do; UCS_ERR_NO_RESOURCE to try again.
 */
ucs_status_t uct_varuna_amo_start(uct_varuna_ep_t *ep, const uct_varuna_amo_args_t *args);

/**
 * Post the action on the lane, with a slot if it needs one.
 *
 * @return UCS_OK, UCS_ERR_NO_RESOURCE if the lane takes no more, UCS_ERR_BUSY if
 *         no slot is free; otherwise the lane failed.
 */
ucs_status_t uct_varuna_amo_post_lane(uct_varuna_iface_t *iface,
                                      uct_varuna_amo_ext_t *amo);

/** Completion of an action on the lane. */
void uct_varuna_amo_step_completion(uct_completion_t *comp);

/** Completion of a saved request that is all of an action: the lane's, instead of
 *  uct_varuna_req_completion(). */
void uct_varuna_amo_pair_completion(uct_completion_t *comp);

#endif
