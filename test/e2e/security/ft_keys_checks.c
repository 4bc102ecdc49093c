/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The checks of a client that abuses keys (ft_keys.c). Each check has at least one
 * access that is allowed.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "ft_clock.h"
#include "ft_keys.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- Log rings --- */

/* An unused entry of the first incarnation's ring. (The second one's ring is cleared
 * when its queue pair is connected.) */
static ft_place_t ft_ring(uct_varuna_ep_t *ep)
{
    return (ft_place_t) {
        .ep   = ep,
        .addr = ep->remote.logs_addr +
                (((uct_varuna_log_ring(1) * UCT_VARUNA_LOG_SIZE) +
                  (UCT_VARUNA_LOG_SIZE / 2)) * sizeof(uint64_t)),
        .rkey = ep->remote.log_bundle.rkey
    };
}

static void ft_check_rings(ft_client_t *client)
{
    uct_varuna_ep_t *mine   = ft_open(client);
    uct_varuna_ep_t *theirs = ft_open(client);
    ft_place_t own          = ft_ring(mine);
    ft_place_t other        = ft_ring(theirs);
    ft_place_t forged       = other;
    uint64_t value          = ft_peek(client, &other);

    ft_write(client, "own ring, own key", &own, 1);
    ft_cas(client, "own ring, atomic", &own, 1, 2);
    forged.rkey = own.rkey;
    ft_read(client, "other ring, own key, read", &forged);
    ft_write(client, "other ring, own key", &forged, FT_FORGED);
    ft_expect(client, "other ring", &other, value);

    /* Entries before and after the rings belong to other vQPs */
    forged.ep   = mine;
    forged.addr = mine->remote.logs_addr - sizeof(uint64_t);
    ft_write(client, "before own rings", &forged, FT_FORGED);
    forged.addr = mine->remote.logs_addr + UCT_VARUNA_LOG_BYTES;
    ft_write(client, "after own rings", &forged, FT_FORGED);
    ft_close(client, mine);
    ft_close(client, theirs);
}

/* --- Memory without a key --- */

static void ft_atomic_done(uct_completion_t *comp)
{
}

/* An atomic as any client posts it. */
static void ft_atomic(ft_client_t *client, const char *name,
                      const ft_place_t *place)
{
    uct_completion_t comp = {.func = ft_atomic_done, .count = 1,
                             .status = UCS_OK};
    uct_ep_h ep           = (uct_ep_h)&place->ep->super.super;
    double end            = ft_now() + FT_TIMEOUT;
    uint64_t result       = 0;
    ucs_status_t status;

    while ((status = uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_SWAP, FT_FORGED,
                                           &result, place->addr, place->rkey,
                                           &comp)) == UCS_ERR_NO_RESOURCE) {
        ft_progress(client, end, "posting an atomic");
    }

    while ((status == UCS_INPROGRESS) && (comp.count > 0)) {
        ft_progress(client, end, "an atomic");
    }

    status = (status == UCS_INPROGRESS) ? comp.status : status;
    ft_tell(name, status == UCS_OK);
}

/* The home NIC must refuse a key that was never given away. */
static void ft_check_home(ft_client_t *client)
{
    uct_varuna_ep_t *ep = ft_open(client);
    ft_place_t place    = {
        .ep   = ep,
        .addr = client->server.base + sizeof(uint64_t),
        .rkey = client->memory.rkey
    };

    ft_atomic(client, "atomic, given key", &place);
    place.addr = client->secret;
    place.rkey = (uct_rkey_t)&client->guessed;
    ft_atomic(client, "atomic, guessed key", &place);
    client->guessed.token ^= 1;
    place.addr             = client->server.base + sizeof(uint64_t);
    ft_atomic(client, "atomic, wrong token", &place);
    uct_ep_destroy(&ep->super.super);
}

/* --- Slots of atomics in mode extended --- */

/* Any slot, to read it */
static ft_place_t ft_slot(uct_varuna_ep_t *ep, uint32_t slot)
{
    return (ft_place_t) {
        .ep   = ep,
        .addr = uct_varuna_ep_ext(ep)->arena.slots_addr + (slot * sizeof(uct_varuna_slot_t)),
        .rkey = uct_varuna_ep_ext(ep)->arena.read.rkey
    };
}

/* One of its own slots, to write it */
static ft_place_t ft_own_slot(uct_varuna_ep_t *ep, uint32_t slot)
{
    return (ft_place_t) {
        .ep   = ep,
        .addr = uct_varuna_ep_ext(ep)->arena.own_addr +
                ((slot - uct_varuna_ep_ext(ep)->slots.first) * sizeof(uct_varuna_slot_t)),
        .rkey = uct_varuna_ep_ext(ep)->arena.write.rkey
    };
}

static ft_place_t ft_mark(uct_varuna_ep_t *ep, uint32_t slot)
{
    return (ft_place_t) {
        .ep   = ep,
        .addr = uct_varuna_ep_ext(ep)->arena.marks_addr + (slot * sizeof(uint64_t)),
        .rkey = uct_varuna_ep_ext(ep)->arena.mark.rkey
    };
}

/* --- Memory that is used again --- */

/* What shows that a vQP has got the rings of a closed one: on a NIC that gives the last key
 * out again they have the same key */
static uint64_t ft_ring_name(uct_varuna_ep_t *ep)
{
    return uct_varuna_rkey_inner(ep->remote.log_bundle.rkey, 0);
}

/* Another vQP gets the rings of a closed vQP, but by another address. The closed endpoint
 * must live until then, because it has the key; another one sends the CLOSE. */
static void ft_reuse(ft_client_t *client,
                     ft_place_t (*get)(uct_varuna_ep_t *ep),
                     uint64_t (*get_name)(uct_varuna_ep_t *ep))
{
    double end              = ft_now() + FT_TIMEOUT;
    uct_varuna_ep_t *first  = ft_open(client);
    ft_place_t old          = get(first);
    uint64_t name           = get_name(first);
    uct_varuna_rkey_t rkey  = *(const uct_varuna_rkey_t*)old.rkey;
    uct_varuna_ep_t *other  = ft_open(client);
    uct_varuna_ep_t *next;
    ft_place_t now;

    ft_write(client, "own key", &old, 1);
    ft_close(client, first);
    do {
        next = ft_open(client);
        now  = get(next);
        if (get_name(next) == name) {
            break;
        }

        ft_close(client, next);
        next = NULL;
    } while (ft_now() < end);

    if (next == NULL) {
        ft_die("no vQP got this memory again");
    }

    ft_write(client, "next key", &now, 2);
    old.ep   = other;
    old.rkey = (uct_rkey_t)&rkey;
    ft_write(client, "last key", &old, FT_FORGED);
    if (get == ft_ring) {
        ft_expect(client, "ring", &now, 2);
    } else {
        now = ft_slot(next, uct_varuna_ep_ext(next)->slots.first);
        ft_expect(client, "slot", &now, 2);
    }
    ft_close(client, next);
    ft_close(client, other);
}

static void ft_check_reuse(ft_client_t *client)
{
    ft_reuse(client, ft_ring, ft_ring_name);
}

/* Rings that keep their address: they have the same key there */
static uint64_t ft_ring_place_name(uct_varuna_ep_t *ep)
{
    return ft_ring_name(ep) ^ (ep->remote.logs_addr << 32) ^ ep->remote.logs_addr;
}

static void ft_check_reuse_place(ft_client_t *client)
{
    ft_reuse(client, ft_ring, ft_ring_place_name);
}

static ft_place_t ft_first_slot(uct_varuna_ep_t *ep)
{
    return ft_own_slot(ep, uct_varuna_ep_ext(ep)->slots.first);
}

static uint64_t ft_first_slot_name(uct_varuna_ep_t *ep)
{
    return uct_varuna_ep_ext(ep)->slots.first;
}

static void ft_check_slots_reuse(ft_client_t *client)
{
    ft_reuse(client, ft_first_slot, ft_first_slot_name);
}

/* Only the owner writes a slot's body, and only atomics write marks */
static void ft_check_slots(ft_client_t *client)
{
    uct_varuna_ep_t *mine   = ft_open(client);
    uct_varuna_ep_t *theirs = ft_open(client);
    ft_place_t own          = ft_own_slot(mine, uct_varuna_ep_ext(mine)->slots.first);
    ft_place_t other        = ft_slot(theirs, uct_varuna_ep_ext(theirs)->slots.first);
    ft_place_t mark         = ft_mark(theirs, uct_varuna_ep_ext(theirs)->slots.first);
    ft_place_t forged       = other;
    uint64_t body, value;

    if ((uct_varuna_ep_ext(mine)->slots.num == 0) || (uct_varuna_ep_ext(theirs)->slots.num == 0)) {
        ft_die("got no slots");
    }

    ft_write(client, "own slot", &own, 1);
    ft_read(client, "own slot, read by the key to write", &own);
    ft_cas(client, "own slot, atomic", &own, 1, 2);

    forged.rkey = uct_varuna_ep_ext(mine)->arena.read.rkey;
    body        = ft_peek(client, &forged);
    ft_write(client, "other slot, key to read", &forged, FT_FORGED);
    forged.rkey = own.rkey;
    ft_write(client, "other slot, own key", &forged, FT_FORGED);
    forged.rkey = mark.rkey;
    ft_write(client, "other slot, key of marks", &forged, FT_FORGED);
    forged      = own;
    forged.addr = own.addr - sizeof(uint64_t);
    ft_write(client, "before own slots", &forged, FT_FORGED);
    forged.addr = own.addr + (UCT_VARUNA_SLOT_BLOCK * sizeof(uct_varuna_slot_t));
    ft_write(client, "after own slots", &forged, FT_FORGED);
    other.rkey  = uct_varuna_ep_ext(mine)->arena.read.rkey;
    ft_expect(client, "other slot", &other, body);

    value       = ft_peek(client, &mark);
    ft_write(client, "other mark", &mark, FT_FORGED);
    forged      = mark;
    forged.rkey = own.rkey;
    ft_write(client, "other mark, key of own slots", &forged, FT_FORGED);
    ft_cas(client, "other mark, own key, atomic", &forged, value, FT_FORGED);
    ft_expect(client, "other mark", &mark, value);
    /* A client that finds a UID must mark it */
    ft_cas(client, "other mark, atomic", &mark, value, value);
    ft_close(client, mine);
    ft_close(client, theirs);
}

/* As if we had left the UID of our slot in a word. */
static void ft_forge(ft_client_t *client, uct_varuna_ep_t *ep,
                     uint32_t slot, uint64_t addr)
{
    uct_varuna_slot_t *body = (uct_varuna_slot_t*)client->buffer;
    ft_place_t place        = ft_mark(ep, slot);
    uint64_t mark           = ft_peek(client, &place);

    ft_cas(client, "own mark", &place, mark,
           uct_varuna_mark(FT_GEN, UCT_VARUNA_MARK_PENDING));
    memset(body, 0, sizeof(*body));
    body->gen_head = FT_GEN;
    body->addr     = addr;
    body->swap     = FT_FORGED;
    body->gen_tail = FT_GEN;
    place          = ft_own_slot(ep, slot);
    ft_tell("own slot", ft_write_bytes(client, &place,
                                       UCT_VARUNA_SLOT_BODY_SIZE));
}

/* The worker resolves idle slots, at the addresses written there, in the order of the
 * slots. When it has resolved the second one, whose address is in memory with a key, it
 * has checked the first one. */
static void ft_check_worker(ft_client_t *client)
{
    double end           = ft_now() + FT_TIMEOUT;
    uct_varuna_ep_t *ep  = ft_open(client);
    uint32_t slot        = uct_varuna_ep_ext(ep)->slots.first;
    ft_place_t known     = {
        .ep   = ep,
        .addr = client->server.base + ((slot + 1) * sizeof(uint64_t)),
        .rkey = client->memory.rkey
    };

    if ((uct_varuna_ep_ext(ep)->slots.num < 2) || ((slot + 1) >= FT_WORDS)) {
        ft_die("got %u slots from %u", uct_varuna_ep_ext(ep)->slots.num, slot);
    }

    ft_forge(client, ep, slot, client->secret + (slot * sizeof(uint64_t)));
    ft_forge(client, ep, slot + 1, known.addr);
    while (ft_peek(client, &known) == ft_uid(slot + 1)) {
        ft_progress(client, end, "the worker's next scan");
        usleep(50000);
    }

    ft_expect(client, "resolved by the worker", &known, FT_FORGED);
    ft_close(client, ep);
}

const ft_check_t ft_checks[] = {
    {"rings", ft_check_rings},
    {"reuse", ft_check_reuse},
    {"reuse_place", ft_check_reuse_place},
    {"home", ft_check_home},
    {"slots", ft_check_slots},
    {"slots_reuse", ft_check_slots_reuse},
    {"worker", ft_check_worker},
    {NULL, NULL}
};
