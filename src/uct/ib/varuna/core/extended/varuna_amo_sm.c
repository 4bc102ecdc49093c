/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The protocol of one atomic with extended status. The numbers of the rules are those
 * of docs/ATOMICS.md; each one is observed where it is named. Called by the driver, one
 * action at a time.
 */
#include "varuna_amo_sm.h"

#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>
#include <string.h>

/* --- Actions --- */

static void uct_varuna_amo_act_read(uct_varuna_amo_sm_t *sm,
                                    uct_varuna_amo_state_t state)
{
    uct_varuna_amo_act(sm, state, UCT_VARUNA_AMO_ACT_READ);
}

/* Rule 3: a mark is changed by CAS only, and only forwards. */
static void uct_varuna_amo_act_mark(uct_varuna_amo_sm_t *sm,
                                    uct_varuna_amo_state_t state, uint32_t slot,
                                    uint64_t from, uint64_t to)
{
    uct_varuna_amo_act(sm, state, UCT_VARUNA_AMO_ACT_CAS_MARK);
    sm->act.slot      = slot;
    sm->act.mark_from = from;
    sm->act.mark_to   = to;
}

/* Advance our slot's mark to the next generation, and start again. */
static void uct_varuna_amo_renew(uct_varuna_amo_sm_t *sm, uint64_t from)
{
    uct_varuna_amo_act_mark(sm, UCT_VARUNA_AMO_RENEW, sm->slot, from,
                            uct_varuna_mark(uct_varuna_gen_next(sm->gen),
                                            UCT_VARUNA_MARK_PENDING));
}

static void uct_varuna_amo_act_body(uct_varuna_amo_sm_t *sm, uint32_t slot)
{
    uct_varuna_amo_act(sm, UCT_VARUNA_AMO_BODY, UCT_VARUNA_AMO_ACT_READ_BODY);
    sm->act.slot = slot;
}

static void uct_varuna_amo_sm_end(uct_varuna_amo_sm_t *sm)
{
    uct_varuna_amo_act(sm, UCT_VARUNA_AMO_FINISHED, UCT_VARUNA_AMO_ACT_NONE);
}

/* --- Values of the target --- */

static uint64_t uct_varuna_amo_apply(const uct_varuna_amo_sm_t *sm,
                                     uint64_t value)
{
    switch (sm->op) {
    case UCT_ATOMIC_OP_ADD:
        return value + sm->value;
    case UCT_ATOMIC_OP_AND:
        return value & sm->value;
    case UCT_ATOMIC_OP_OR:
        return value | sm->value;
    case UCT_ATOMIC_OP_XOR:
        return value ^ sm->value;
    default:
        return sm->value; /* SWAP, CSWAP */
    }
}

/* The target held the user's value @a value a moment ago. */
static void uct_varuna_amo_got_value(uct_varuna_amo_sm_t *sm, uint64_t value)
{
    uint64_t desired = uct_varuna_amo_apply(sm, value) & uct_varuna_amo_mask(sm);

    value &= uct_varuna_amo_mask(sm);
    if ((uct_varuna_amo_is_cswap(sm) && (value != sm->compare)) ||
        (desired == value)) {
        /* Rule 8, and similar cases: nothing would change, so the operation took place
         * when the value was read */
        uct_varuna_amo_decide(sm, value);
        uct_varuna_amo_sm_end(sm);
        return;
    }

    uct_varuna_amo_occupy(sm, value, desired);
}

/* Look at the body of the slot that met names from @a half on. @return 0 if none is, or the
 * same one again. What a UID in the lower half stood for may look like the upper one's slot,
 * whose body nobody has seen. */
static int uct_varuna_amo_look(uct_varuna_amo_sm_t *sm, unsigned half)
{
    uint64_t value = (half == 0) ? sm->met : (sm->met & ~(uint64_t)UINT32_MAX);
    uint32_t slot;
    int found;

    found = uct_varuna_uid_parse(value, sm->width, sm->num_slots, half, &slot);
    if ((found < 0) || ((half > 0) && (slot == sm->seen_slot))) {
        return 0;
    }

    sm->half      = found;
    sm->whole     = 0;
    sm->seen_slot = slot;
    uct_varuna_amo_act_body(sm, slot);
    return 1;
}

/* Look whether @a value is a UID, contains one or is half of one. */
static int uct_varuna_amo_meet(uct_varuna_amo_sm_t *sm, uint64_t value)
{
    sm->met       = value;
    sm->value_met = value;
    return (sm->flags & UCT_VARUNA_AMO_FLAG_UIDS) && uct_varuna_amo_look(sm, 0);
}

/* The target held @a value, which may be a UID. */
static void uct_varuna_amo_got_word(uct_varuna_amo_sm_t *sm, uint64_t value)
{
    /* Rule 4, and rule 5: a *failed* CAS comes here as well, so the UID that it saw
     * is marked before its value is used */
    if (!uct_varuna_amo_meet(sm, value)) {
        uct_varuna_amo_got_value(sm, value);
    }
}

/* --- Resolving a UID --- */

/* Nothing remains to be done for what was found in this half. */
static void uct_varuna_amo_not_uid(uct_varuna_amo_sm_t *sm)
{
    if (uct_varuna_amo_look(sm, sm->half + 1)) {
        return;
    }

    if (sm->flags & UCT_VARUNA_AMO_FLAG_CMP_UID) {
        /* The user's compare is data like any other */
        sm->flags &= ~UCT_VARUNA_AMO_FLAG_CMP_UID;
        uct_varuna_amo_occupy(sm, sm->compare, sm->value);
        return;
    }

    /* Rule 4: unchanged means that it was the user's data */
    uct_varuna_amo_act_read(sm, UCT_VARUNA_AMO_REREAD);
}

/* Whether the UID is of the very word that we access. */
static int uct_varuna_amo_is_same(const uct_varuna_amo_sm_t *sm)
{
    return sm->seen.width == sm->width;
}

static void uct_varuna_amo_help(uct_varuna_amo_sm_t *sm, int aborted)
{
    uint64_t value = aborted ? sm->body.compare : sm->body.swap;

    if (sm->flags & UCT_VARUNA_AMO_FLAG_CMP_UID) {
        /* Rule 8: this is the value that the user has seen as this UID */
        sm->flags  &= ~UCT_VARUNA_AMO_FLAG_CMP_UID;
        sm->compare = value & uct_varuna_amo_mask(sm);
    }

    ++sm->helped;
    if ((sm->flags & UCT_VARUNA_AMO_FLAG_GET) && !uct_varuna_amo_is_same(sm)) {
        sm->value_met = uct_varuna_uid_replace(sm->value_met, sm->width, sm->addr,
                                               &sm->seen, value);
        uct_varuna_amo_not_uid(sm); /* See whether all is still there */
        return;
    }

    uct_varuna_amo_act(sm, aborted ? UCT_VARUNA_AMO_UNDO : UCT_VARUNA_AMO_HELP,
                       UCT_VARUNA_AMO_ACT_CAS);
    sm->act.addr    = sm->seen.addr;
    sm->act.width   = sm->seen.width;
    sm->act.compare = sm->seen.uid;
    sm->act.swap    = (sm->seen.width == sizeof(uint32_t)) ? (uint32_t)value : value;
    if (sm->flags & UCT_VARUNA_AMO_FLAG_GET) {
        /* The mark shows what the UID represents: see whether it is still there */
        sm->act.type = UCT_VARUNA_AMO_ACT_READ;
    }
}

/* Rule 5: a UID is not used, returned or replaced before its mark is DONE. The CAS also
 * shows whether that generation is over, or ABORTED; uct_varuna_slot_t explains why it
 * follows the read of the body. */
static void uct_varuna_amo_mark_seen(uct_varuna_amo_sm_t *sm)
{
    uint64_t gen = uct_varuna_slot_gen(&sm->body);

    uct_varuna_amo_act_mark(sm, UCT_VARUNA_AMO_MARK, sm->seen_slot,
                            uct_varuna_mark(gen, UCT_VARUNA_MARK_PENDING),
                            uct_varuna_mark(gen, UCT_VARUNA_MARK_DONE));
}

static void uct_varuna_amo_got_body(uct_varuna_amo_sm_t *sm,
                                    const uct_varuna_slot_t *slot)
{
    sm->body = *slot;
    if ((sm->flags & UCT_VARUNA_AMO_FLAG_SLOT) &&
        (sm->met == uct_varuna_amo_uid(sm))) {
        /* Rule 4: our own is nowhere, as it was not written or that was undone,
         * so it is the user's data. Renew ours, so that no client confuses the two. */
        uct_varuna_amo_renew(sm, uct_varuna_mark(sm->gen,
                                                 UCT_VARUNA_MARK_PENDING));
        return;
    }

    if (!uct_varuna_uid_find(sm->met, sm->width, sm->addr, sm->seen_slot, slot,
                             &sm->seen)) {
        uct_varuna_amo_not_uid(sm);
    } else if (uct_varuna_amo_is_same(sm)) {
        uct_varuna_amo_mark_seen(sm);
    } else if (sm->flags & UCT_VARUNA_AMO_FLAG_CMP_UID) {
        /* No value of our target. So see what that holds */
        sm->flags &= ~UCT_VARUNA_AMO_FLAG_CMP_UID;
        uct_varuna_amo_act_read(sm, UCT_VARUNA_AMO_READ);
    } else if ((sm->seen.width < sm->width) || (sm->seen.uid == sm->whole)) {
        uct_varuna_amo_mark_seen(sm);
    } else {
        /* The other half must match as well. Then read the body again, because it must
         * be read while all of its UID is there (uct_varuna_slot_t) */
        uct_varuna_amo_act_read(sm, UCT_VARUNA_AMO_WHOLE);
        sm->act.addr  = sm->seen.addr;
        sm->act.width = sm->seen.width;
    }
}

static void uct_varuna_amo_got_whole(uct_varuna_amo_sm_t *sm, uint64_t word)
{
    sm->whole = word;
    if (word == sm->seen.uid) {
        uct_varuna_amo_act_body(sm, sm->seen_slot);
    } else {
        uct_varuna_amo_not_uid(sm);
    }
}

static void uct_varuna_amo_got_mark(uct_varuna_amo_sm_t *sm, uint64_t mark)
{
    switch (uct_varuna_mark_check(mark, uct_varuna_slot_gen(&sm->body))) {
    case UCT_VARUNA_UID_PENDING: /* It was, and is DONE now */
    case UCT_VARUNA_UID_DONE:
        uct_varuna_amo_help(sm, 0);
        break;
    case UCT_VARUNA_UID_ABORTED:
        uct_varuna_amo_help(sm, 1);
        break;
    case UCT_VARUNA_UID_FOREIGN:
        /* Another generation: the UID that we have seen is over, or was none */
        uct_varuna_amo_not_uid(sm);
        break;
    }
}

/* Rule 4: the value counts only if the target still held the UID. */
static void uct_varuna_amo_helped(uct_varuna_amo_sm_t *sm, uint64_t old)
{
    if (uct_varuna_amo_is_same(sm)) {
        if (old == sm->seen.uid) {
            uct_varuna_amo_got_value(sm, sm->act.swap);
        } else {
            ++sm->retries;
            uct_varuna_amo_got_word(sm, old);
        }
    } else if (old == sm->seen.uid) {
        /* Not all of our target, or more than that: see whether this is what it holds */
        sm->met       = uct_varuna_uid_replace(sm->met, sm->width, sm->addr,
                                               &sm->seen, sm->act.swap);
        sm->value_met = sm->met;
        uct_varuna_amo_not_uid(sm);
    } else {
        ++sm->retries;
        uct_varuna_amo_act_read(sm, UCT_VARUNA_AMO_READ);
    }
}

/* --- Our own operation --- */

static void uct_varuna_amo_succeeded(uct_varuna_amo_sm_t *sm)
{
    uct_varuna_amo_decide(sm, sm->expect);
    if (sm->act.type == UCT_VARUNA_AMO_ACT_CAS) {
        uct_varuna_amo_sm_end(sm); /* A plain one */
    } else {
        uct_varuna_amo_confirm(sm);
    }
}

static void uct_varuna_amo_occupied(uct_varuna_amo_sm_t *sm, uint64_t old)
{
    if (old == sm->expect) {
        uct_varuna_amo_succeeded(sm);
        return;
    }

    ++sm->retries;
    uct_varuna_amo_got_word(sm, old);
}

/* The state at the start of each attempt. */
void uct_varuna_amo_sm_begin(uct_varuna_amo_sm_t *sm)
{
    sm->flags &= ~UCT_VARUNA_AMO_FLAG_CMP_UID;
    if (!uct_varuna_amo_is_cswap(sm) || (sm->compare == sm->value)) {
        /* Rule 8: compare == swap changes nothing. Rule 10: all others are a
         * loop of a read and a CAS. */
        uct_varuna_amo_act_read(sm, UCT_VARUNA_AMO_READ);
        return;
    }

    if (uct_varuna_amo_meet(sm, sm->compare)) {
        /* Rule 8: a compare value that is itself a UID is resolved first: our CAS
         * must not replace a UID without a mark */
        sm->flags |= UCT_VARUNA_AMO_FLAG_CMP_UID;
        return;
    }

    uct_varuna_amo_occupy(sm, sm->compare, sm->value);
}

/* Our CAS of the mark returned @a mark. If it did not change the mark, another client
 * has set it to DONE. */
static int uct_varuna_amo_is_next(const uct_varuna_amo_sm_t *sm, uint64_t mark)
{
    return (mark == sm->act.mark_from) || (mark == sm->act.mark_to);
}

/* Rule 7: the slot is ours to give back when the confirm has returned and the
 * mark has moved on, which is FINISHED. */
static void uct_varuna_amo_advanced(uct_varuna_amo_sm_t *sm, uint64_t mark)
{
    if (uct_varuna_amo_is_next(sm, mark)) {
        sm->gen = uct_varuna_gen_next(sm->gen);
        uct_varuna_amo_sm_end(sm);
        return;
    }

    uct_varuna_amo_act_mark(sm, UCT_VARUNA_AMO_ADVANCE, sm->slot, mark,
                            sm->act.mark_to);
}

/* --- Recovery, rule 6. Target, mark, target: the CAS that aborts finds out about the
 * mark as well --- */

static void uct_varuna_amo_recovered(uct_varuna_amo_sm_t *sm)
{
    sm->flags |= UCT_VARUNA_AMO_FLAG_RECOVERED;
    uct_varuna_amo_decide(sm, sm->expect);
    uct_varuna_amo_confirm(sm);
}

static void uct_varuna_amo_lost_abort(uct_varuna_amo_sm_t *sm)
{
    uct_varuna_amo_act_mark(sm, UCT_VARUNA_AMO_LOST_ABORT, sm->slot,
                            uct_varuna_mark(sm->gen, UCT_VARUNA_MARK_PENDING),
                            uct_varuna_mark(sm->gen, UCT_VARUNA_MARK_ABORTED));
}

static void uct_varuna_amo_lost_aborted(uct_varuna_amo_sm_t *sm, uint64_t mark)
{
    if (mark == uct_varuna_mark(sm->gen, UCT_VARUNA_MARK_DONE)) {
        uct_varuna_amo_recovered(sm);
        return;
    }

    /* Rule 6: undo the target once more. Late packets have expired by now: a lane is
     * only given up after its fence or the packet lifetime. */
    uct_varuna_amo_act(sm, UCT_VARUNA_AMO_LOST_UNDO, UCT_VARUNA_AMO_ACT_CAS);
    sm->act.compare = uct_varuna_amo_uid(sm) & uct_varuna_amo_mask(sm);
    sm->act.swap    = sm->expect & uct_varuna_amo_mask(sm);
}

void uct_varuna_amo_sm_lost(uct_varuna_amo_sm_t *sm)
{
    ucs_assert(sm->act.type == UCT_VARUNA_AMO_ACT_OCCUPY);

    /* Rule 6: the target first, awaited, and only then the mark: a client that takes
     * our UID out of the target has marked it before */
    uct_varuna_amo_act_read(sm, UCT_VARUNA_AMO_LOST_READ);
}

/* --- Dispatcher --- */

/* An operation that never changes anything: it ends with the value that it has read, and its
 * key need not allow atomics. */
void uct_varuna_amo_sm_start_get(uct_varuna_amo_sm_t *sm, unsigned width,
                                 uint64_t addr, uint32_t num_slots)
{
    uct_varuna_amo_sm_start(sm, UCT_ATOMIC_OP_ADD, width, addr, 0, 0, num_slots);
    sm->flags |= UCT_VARUNA_AMO_FLAG_GET;
}

void uct_varuna_amo_sm_hint(uct_varuna_amo_sm_t *sm, uint64_t value)
{
    uint64_t desired;

    /* Only where the guess is proved by a CAS */
    value  &= uct_varuna_amo_mask(sm);
    desired = uct_varuna_amo_apply(sm, value) & uct_varuna_amo_mask(sm);
    if (!uct_varuna_amo_is_cswap(sm) && (desired != value) &&
        (sm->state == UCT_VARUNA_AMO_READ)) {
        uct_varuna_amo_occupy(sm, value, desired);
    }
}

void uct_varuna_amo_sm_executed(uct_varuna_amo_sm_t *sm, uint64_t result)
{
    ucs_assert(uct_varuna_amo_sm_is_free(sm));
    uct_varuna_amo_decide(sm, result & uct_varuna_amo_mask(sm));
    uct_varuna_amo_sm_end(sm);
}

void uct_varuna_amo_sm_done(uct_varuna_amo_sm_t *sm, uint64_t value,
                            const uct_varuna_slot_t *slot)
{
    switch (sm->state) {
    case UCT_VARUNA_AMO_READ:
        uct_varuna_amo_got_word(sm, value);
        break;
    case UCT_VARUNA_AMO_OCCUPY:
        uct_varuna_amo_occupied(sm, value);
        break;
    case UCT_VARUNA_AMO_CONFIRM:
    case UCT_VARUNA_AMO_ADVANCE:
        uct_varuna_amo_advanced(sm, value);
        break;
    case UCT_VARUNA_AMO_BODY:
        uct_varuna_amo_got_body(sm, slot);
        break;
    case UCT_VARUNA_AMO_WHOLE:
        uct_varuna_amo_got_whole(sm, value);
        break;
    case UCT_VARUNA_AMO_REREAD:
        if (value == sm->met) {
            uct_varuna_amo_got_value(sm, sm->value_met);
        } else {
            uct_varuna_amo_got_word(sm, value);
        }
        break;
    case UCT_VARUNA_AMO_MARK:
        uct_varuna_amo_got_mark(sm, value);
        break;
    case UCT_VARUNA_AMO_HELP:
    case UCT_VARUNA_AMO_UNDO:
        uct_varuna_amo_helped(sm, value);
        break;
    case UCT_VARUNA_AMO_LOST_READ:
        if (value == uct_varuna_amo_uid(sm)) {
            uct_varuna_amo_recovered(sm);
        } else {
            uct_varuna_amo_lost_abort(sm);
        }
        break;
    case UCT_VARUNA_AMO_LOST_ABORT:
        uct_varuna_amo_lost_aborted(sm, value);
        break;
    case UCT_VARUNA_AMO_LOST_UNDO:
        /* A new generation, because others may know the old one */
        uct_varuna_amo_renew(sm, uct_varuna_mark(sm->gen,
                                                 UCT_VARUNA_MARK_ABORTED));
        break;
    case UCT_VARUNA_AMO_RENEW:
        if (uct_varuna_amo_is_next(sm, value)) {
            sm->gen = uct_varuna_gen_next(sm->gen);
            uct_varuna_amo_sm_begin(sm);
        } else {
            uct_varuna_amo_renew(sm, value);
        }
        break;
    default:
        ucs_assertv(0, "state=%u", sm->state);
        break;
    }
}

/* --- States --- */

/* Facts of the states of an atomic with extended status. */

const char *uct_varuna_amo_state_names[] = {
    [UCT_VARUNA_AMO_READ]         = "read",
    [UCT_VARUNA_AMO_OCCUPY]       = "occupy",
    [UCT_VARUNA_AMO_CONFIRM]      = "confirm",
    [UCT_VARUNA_AMO_ADVANCE]      = "advance",
    [UCT_VARUNA_AMO_BODY]         = "body",
    [UCT_VARUNA_AMO_WHOLE]        = "whole",
    [UCT_VARUNA_AMO_REREAD]       = "reread",
    [UCT_VARUNA_AMO_MARK]         = "mark",
    [UCT_VARUNA_AMO_HELP]         = "help",
    [UCT_VARUNA_AMO_UNDO]         = "undo",
    [UCT_VARUNA_AMO_LOST_READ]    = "lost-read",
    [UCT_VARUNA_AMO_LOST_ABORT]   = "lost-abort",
    [UCT_VARUNA_AMO_LOST_UNDO]    = "lost-undo",
    [UCT_VARUNA_AMO_RENEW]        = "renew",
    [UCT_VARUNA_AMO_FINISHED]     = "finished",
    [UCT_VARUNA_AMO_LAST]         = NULL
};

int uct_varuna_amo_sm_is_free(const uct_varuna_amo_sm_t *sm)
{
    switch (sm->state) {
    case UCT_VARUNA_AMO_READ:
    case UCT_VARUNA_AMO_OCCUPY:
    case UCT_VARUNA_AMO_BODY:
    case UCT_VARUNA_AMO_WHOLE:
    case UCT_VARUNA_AMO_REREAD:
    case UCT_VARUNA_AMO_MARK:
    case UCT_VARUNA_AMO_HELP:
    case UCT_VARUNA_AMO_UNDO:
        return 1;
    default:
        return 0;
    }
}

/* --- Back-off --- */

#define UCT_VARUNA_AMO_BACKOFF_FREE  2     /* Lost races without a wait */
#define UCT_VARUNA_AMO_BACKOFF_MIN   1000u /* Maximum of the first wait, nanoseconds */
#define UCT_VARUNA_AMO_BACKOFF_STEPS 7     /* How often that doubles */

/* Rule 10. Any client may lose two races. After that the maximum doubles, up to the time
 * that some dozens of clients need for one operation each. */
unsigned uct_varuna_amo_sm_backoff(const uct_varuna_amo_sm_t *sm,
                                   uint32_t random)
{
    if ((sm->retries <= UCT_VARUNA_AMO_BACKOFF_FREE) ||
        !uct_varuna_amo_sm_is_free(sm)) {
        return 0;
    }

    return 1 + (random % (UCT_VARUNA_AMO_BACKOFF_MIN <<
                          ucs_min(sm->retries - UCT_VARUNA_AMO_BACKOFF_FREE,
                                  UCT_VARUNA_AMO_BACKOFF_STEPS)));
}

/* --- UIDs --- */

static int uct_varuna_uid_parse_half(uint32_t value, uint32_t num_slots,
                                     uint32_t *slot_p)
{
    uint32_t slot = value & UCS_MASK(UCT_VARUNA_UID32_SLOT_BITS);

    if (!(value & UCS_BIT(31)) || (slot >= num_slots)) {
        return 0; /* Outside of the arena: nothing there is ever read */
    }

    *slot_p = slot;
    return 1;
}

int uct_varuna_uid_parse(uint64_t value, unsigned width, uint32_t num_slots,
                         unsigned half, uint32_t *slot_p)
{
    uint32_t lower = UCT_VARUNA_SLOT_NONE;
    uint32_t upper;

    if (uct_varuna_uid_parse_half(value, num_slots, &lower) && (half == 0)) {
        *slot_p = lower;
        return 0;
    }

    if ((width == sizeof(uint64_t)) && (half <= 1) &&
        uct_varuna_uid_parse_half(value >> 32, num_slots, &upper) &&
        (upper != lower)) {
        *slot_p = upper;
        return 1;
    }

    return -1;
}

int uct_varuna_uid_find(uint64_t value, unsigned width, uint64_t addr,
                        uint32_t index, const uct_varuna_slot_t *slot,
                        uct_varuna_uid_place_t *place_p)
{
    unsigned uid_width = (slot->gen_head & UCT_VARUNA_SLOT_WIDTH32) ?
                         sizeof(uint32_t) : sizeof(uint64_t);
    uint64_t uid       = uct_varuna_uid(index, uct_varuna_slot_gen(slot),
                                        uid_width);
    uint64_t part      = uid;

    /* Rule 4: both generations and the address must match */
    if ((slot->gen_head != slot->gen_tail) || (slot->addr % uid_width)) {
        return 0;
    }

    if (uid_width > width) {
        if ((addr & ~UCS_MASK(3)) != slot->addr) {
            return 0;
        }
        part = (addr == slot->addr) ? (uint32_t)uid : (uid >> 32);
    } else if (uid_width < width) {
        if ((slot->addr & ~UCS_MASK(3)) != addr) {
            return 0;
        }
        value = (addr == slot->addr) ? (uint32_t)value : (value >> 32);
    } else if (addr != slot->addr) {
        return 0;
    }

    place_p->addr  = slot->addr;
    place_p->uid   = uid;
    place_p->width = uid_width;
    return value == part;
}

uint64_t uct_varuna_uid_replace(uint64_t value, unsigned width, uint64_t addr,
                                const uct_varuna_uid_place_t *place,
                                uint64_t by)
{
    if (place->width == width) {
        return by;
    }

    if (place->width > width) {
        return (addr == place->addr) ? (uint32_t)by : (by >> 32);
    }

    return (addr == place->addr) ? ((value & ~(uint64_t)UINT32_MAX) | (uint32_t)by) :
           ((value & UINT32_MAX) | (by << 32));
}

uct_varuna_uid_verdict_t uct_varuna_mark_check(uint64_t mark, uint64_t gen)
{
    /* Rule 4: what has been confirmed is over, and its body is a leftover */
    if (uct_varuna_mark_gen(mark) != gen) {
        return UCT_VARUNA_UID_FOREIGN;
    }

    switch (uct_varuna_mark_state(mark)) {
    case UCT_VARUNA_MARK_PENDING:
        return UCT_VARUNA_UID_PENDING;
    case UCT_VARUNA_MARK_DONE:
        return UCT_VARUNA_UID_DONE;
    case UCT_VARUNA_MARK_ABORTED:
        return UCT_VARUNA_UID_ABORTED;
    default:
        return UCT_VARUNA_UID_FOREIGN;
    }
}

/* --- Slots --- */

/* An endpoint's slots. */

void uct_varuna_slots_init(uct_varuna_slots_t *slots, uint32_t first,
                           unsigned num, const void *marks, ucs_time_t now)
{
    uint64_t mark;
    unsigned i;

    ucs_assert(num <= UCT_VARUNA_SLOT_BLOCK);
    memset(slots, 0, sizeof(*slots));
    slots->first = first;
    slots->num   = num;
    for (i = 0; i < num; ++i) {
        memcpy(&mark, UCS_PTR_BYTE_OFFSET(marks, i * sizeof(mark)),
               sizeof(mark));
        slots->gens[i]    = uct_varuna_mark_gen(mark);
        slots->entered[i] = now; /* It is unknown when its last owner used it */
        if (uct_varuna_mark_state(mark) == UCT_VARUNA_MARK_PENDING) {
            slots->free_map |= UCS_BIT(i);
        }
    }

    if (slots->free_map == 0) {
        slots->num = 0; /* Nobody gives any back */
    }
}

static int uct_varuna_slots_is_time(const uct_varuna_slots_t *slots, unsigned i,
                                    ucs_time_t now)
{
    return (now - slots->entered[i]) > ucs_time_from_sec(UCT_VARUNA_SLOT_HALF_TIME);
}

uint32_t uct_varuna_slots_take_timed(uct_varuna_slots_t *slots, ucs_time_t now,
                                     uint64_t *gen_p)
{
    unsigned i;

    ucs_for_each_bit(i, slots->free_map) {
        /* Rule 1: refuse to come round early */
        if (uct_varuna_slots_is_new_half(slots, i)) {
            if (!uct_varuna_slots_is_time(slots, i, now)) {
                continue;
            }
            slots->entered[i] = now;
        }

        slots->free_map &= ~UCS_BIT(i);
        *gen_p           = slots->gens[i];
        return slots->first + i;
    }

    return UCT_VARUNA_SLOT_NONE;
}
