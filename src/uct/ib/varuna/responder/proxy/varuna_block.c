/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which parts of the arena peers may access, and with which keys (docs/SECURITY.md):
 *
 *   all bodies          read             every requester
 *   all marks           read, atomic     every requester
 *   a block of bodies   write            the requester whose slots they are
 *
 * Called by the proxy, which has a block of its own, and by varuna_target.c.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_proxy.h"
#include <uct/ib/varuna/core/varuna_atomic_mode.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/md/varuna_component.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>


/* --- The arena --- */

/* Slots for atomics that we execute; the CPU writes them. Without them such an atomic
 * fails if its access is lost. */
static void uct_varuna_blocks_take_own(uct_varuna_proxy_t *proxy)
{
    uint32_t first = uct_varuna_arena_alloc();

    if (first == UCT_VARUNA_SLOT_NONE) {
        ucs_diag("no slots are left for the proxy of atomics");
        return;
    }

    uct_varuna_slots_init(&proxy->own, first, UCT_VARUNA_SLOT_BLOCK,
                          &proxy->arena.marks[first]);
}

ucs_status_t uct_varuna_blocks_init(uct_varuna_proxy_t *proxy)
{
    uct_varuna_md_t *md = proxy->ctl->iface->md;
    ucs_status_t status;

    status = uct_varuna_arena_get(&proxy->arena);
    if (status != UCS_OK) {
        return status;
    }

    /* Without relaxed ordering (rule 2) */
    status = uct_varuna_own_reg(md, proxy->arena.slots,
                                UCT_VARUNA_SLOTS_MAX *
                                sizeof(*proxy->arena.slots),
                                UCT_VARUNA_MR_READ, UCS_TIME_INFINITY,
                                &proxy->read_own);
    if (status != UCS_OK) {
        goto err_put;
    }

    status = uct_varuna_own_reg(md, proxy->arena.marks,
                                UCT_VARUNA_SLOTS_MAX *
                                sizeof(*proxy->arena.marks),
                                UCT_VARUNA_MR_READ | UCT_VARUNA_MR_ATOMIC,
                                UCS_TIME_INFINITY, &proxy->mark_own);
    if (status != UCS_OK) {
        goto err_dereg_read;
    }

    status = uct_rkey_unpack(&uct_varuna_component, proxy->mark_own.key,
                             &proxy->mark);
    if (status != UCS_OK) {
        goto err_dereg_mark;
    }

    uct_varuna_blocks_take_own(proxy);
    return UCS_OK;

err_dereg_mark:
    (void)uct_varuna_own_dereg(md, &proxy->mark_own);
err_dereg_read:
    (void)uct_varuna_own_dereg(md, &proxy->read_own);
err_put:
    uct_varuna_arena_put();
    memset(&proxy->arena, 0, sizeof(proxy->arena));
    return status;
}

void uct_varuna_blocks_cleanup(uct_varuna_proxy_t *proxy)
{
    uct_varuna_md_t *md = proxy->ctl->iface->md;
    int is_left;

    if (proxy->arena.slots == NULL) {
        return;
    }

    if (proxy->own.num > 0) {
        uct_varuna_arena_free(proxy->own.first);
    }

    uct_rkey_release(&uct_varuna_component, &proxy->mark);
    is_left  = (uct_varuna_own_dereg(md, &proxy->mark_own) != UCS_OK);
    is_left |= (uct_varuna_own_dereg(md, &proxy->read_own) != UCS_OK);
    if (!is_left) {
        uct_varuna_arena_put(); /* A NIC may access it otherwise */
    }
}


/* --- Blocks of requesters --- */

static void uct_varuna_block_get(uct_varuna_proxy_t *proxy,
                                 uct_varuna_client_t *client)
{
    uct_varuna_md_t *md = proxy->ctl->iface->md;
    uint32_t first      = uct_varuna_arena_alloc();
    ucs_status_t status;

    if (first == UCT_VARUNA_SLOT_NONE) {
        ucs_debug("an endpoint of peer 0x%lx gets no slots: its atomics use the proxy",
                  client->peer->uuid);
        return;
    }

    status = uct_varuna_own_reg(md, &proxy->arena.slots[first],
                                UCT_VARUNA_SLOT_BLOCK * sizeof(*proxy->arena.slots),
                                UCT_VARUNA_MR_WRITE,
                                ucs_time_from_sec(UCT_VARUNA_OWN_PATIENCE),
                                &client->write_own);
    if ((status == UCS_OK) && (client->write_own.missing == 0)) {
        client->first_slot = first;
        return;
    }

    /* The home may be, or move to, a NIC without a key for it: the proxy is used instead.
     * A block that a NIC does not let go stays taken */
    if (uct_varuna_own_dereg(md, &client->write_own) == UCS_OK) {
        uct_varuna_arena_free(first);
    }
}

static size_t uct_varuna_block_pack_key(void *tail, size_t length,
                                        const uct_varuna_own_t *own)
{
    memcpy(UCS_PTR_BYTE_OFFSET(tail, length), own->key, own->key_len);
    return length + own->key_len;
}

size_t uct_varuna_proxy_fill_open(uct_varuna_proxy_t *proxy,
                                  uct_varuna_client_t *client,
                                  uct_varuna_ctl_open_rep_t *rep, void *tail)
{
    size_t marks_size = UCT_VARUNA_SLOT_BLOCK *
                        sizeof(*proxy->arena.marks);
    uct_varuna_home_name_t name;
    size_t length;

    if (uct_varuna_atomic_modes[proxy->ctl->iface->md->atomic_mode].by_cpu) {
        /* UCP opens interfaces that it does not use: the first one that is used counts */
        uct_varuna_proxy_join(proxy);
    }

    uct_varuna_home_get(&name);
    rep->atomic_mode = proxy->ctl->iface->md->atomic_mode;
    rep->home_nic    = name.nic;
    rep->home_epoch  = name.epoch;
    if (proxy->arena.slots == NULL) {
        return 0;
    }

    if (client->first_slot == UCT_VARUNA_SLOT_NONE) {
        uct_varuna_block_get(proxy, client);
    }

    rep->slots_addr  = (uintptr_t)proxy->arena.slots;
    rep->marks_addr  = (uintptr_t)proxy->arena.marks;
    rep->arena_slots = UCT_VARUNA_SLOTS_MAX;
    length           = uct_varuna_block_pack_key(tail, 0, &proxy->read_own);
    length           = uct_varuna_block_pack_key(tail, length,
                                                 &proxy->mark_own);
    if (client->first_slot == UCT_VARUNA_SLOT_NONE) {
        return length;
    }

    rep->first_slot = client->first_slot;
    rep->num_slots  = UCT_VARUNA_SLOT_BLOCK;
    length          = uct_varuna_block_pack_key(tail, length, &client->write_own);
    memcpy(UCS_PTR_BYTE_OFFSET(tail, length),
           &proxy->arena.marks[client->first_slot], marks_size);
    return length + marks_size;
}

void uct_varuna_proxy_close_client(uct_varuna_proxy_t *proxy,
                                   uct_varuna_client_t *client)
{
    uct_varuna_dead_block_t *block;
    uct_varuna_job_t *job;

    ucs_list_for_each(job, &proxy->jobs, list) {
        if (job->client == client) {
            job->client = NULL; /* Nobody waits for its result */
        }
    }

    if (client->first_slot == UCT_VARUNA_SLOT_NONE) {
        return;
    }

    /* From now on the requester cannot write there */
    if (uct_varuna_own_dereg(proxy->ctl->iface->md, &client->write_own) != UCS_OK) {
        client->first_slot = UCT_VARUNA_SLOT_NONE;
        return; /* ... unless a NIC hangs: the block stays taken */
    }

    block = ucs_calloc(1, sizeof(*block), "varuna_dead_block");
    if (block == NULL) {
        return; /* The block stays taken, which is safe */
    }

    /* Its RC queue pairs are stopped; packets on other lanes expire until then */
    block->first     = client->first_slot;
    block->due       = uct_varuna_ctl_now(proxy->ctl) +
                       proxy->ctl->iface->config.packet_lifetime;
    client->first_slot = UCT_VARUNA_SLOT_NONE;
    ucs_list_add_tail(&proxy->dead_blocks, &block->list);
}
