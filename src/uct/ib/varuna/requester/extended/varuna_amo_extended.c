/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode extended: two stages, occupy and confirm, on a lane to the peer's home NIC, by the
 * slots of an arena in the peer's memory (docs/ATOMICS.md). varuna_amo.c drives them.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_ext.h"
#include <uct/ib/varuna/core/varuna_msg.h>
#include <uct/ib/varuna/md/varuna_md.h>


static ucs_status_t uct_varuna_amo_take_key(const char **tail_p,
                                            uct_rkey_bundle_t *bundle)
{
    ucs_status_t status;

    status = uct_rkey_unpack(&uct_varuna_component, *tail_p, bundle);
    *tail_p += uct_varuna_rkey_length(*tail_p);
    return status;
}

/* The message was checked: its keys are whole. */
static ucs_status_t
uct_varuna_amo_open_arena(uct_varuna_ep_t *ep, const char *tail,
                          const uct_varuna_ctl_open_rep_t *rep)
{
    uct_varuna_ep_arena_t *arena = &uct_varuna_ep_ext(ep)->arena;
    ucs_status_t status;

    status = uct_varuna_amo_take_key(&tail, &arena->read);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_amo_take_key(&tail, &arena->mark);
    if (status != UCS_OK) {
        goto err_release_read;
    }

    if (rep->num_slots > 0) {
        status = uct_varuna_amo_take_key(&tail, &arena->write);
        if (status != UCS_OK) {
            goto err_release_mark;
        }
    }

    arena->slots_addr = rep->slots_addr;
    arena->marks_addr = rep->marks_addr;
    arena->own_addr   = rep->own_addr;
    arena->num_slots  = rep->arena_slots;
    uct_varuna_slots_init(&uct_varuna_ep_ext(ep)->slots, rep->first_slot, rep->num_slots, tail,
                          ucs_get_time());
    return UCS_OK;

err_release_mark:
    uct_rkey_release(&uct_varuna_component, &arena->mark);
err_release_read:
    uct_rkey_release(&uct_varuna_component, &arena->read);
    return status;
}

static ucs_status_t
uct_varuna_amo_extended_open(uct_varuna_ep_t *ep,
                             const uct_varuna_ctl_open_rep_t *rep)
{
    uct_varuna_amo_learn_home(ep, rep->home_nic, rep->home_epoch);
    return (rep->arena_slots == 0) ? UCS_OK :
           uct_varuna_amo_open_arena(
                   ep, UCS_PTR_BYTE_OFFSET(rep + 1,
                                           rep->rkey_len + rep->addr_len), rep);
}

static void uct_varuna_amo_extended_close(uct_varuna_ep_t *ep)
{
    uct_varuna_ep_arena_t *arena = &uct_varuna_ep_ext(ep)->arena;

    if (arena->num_slots == 0) {
        return;
    }

    uct_rkey_release(&uct_varuna_component, &arena->read);
    uct_rkey_release(&uct_varuna_component, &arena->mark);
    if (uct_varuna_ep_ext(ep)->slots.num > 0) {
        uct_rkey_release(&uct_varuna_component, &arena->write);
    }
}

/* A word may hold a UID: read it, and resolve that. Other modes write none. */
static ucs_status_t
uct_varuna_amo_extended_get(uct_varuna_ep_t *ep,
                            const uct_varuna_amo_args_t *args)
{
    const uct_varuna_rkey_t *rkey = (const uct_varuna_rkey_t*)args->rkey;

    return (((args->width == sizeof(uint64_t)) || (args->width == sizeof(uint32_t))) &&
            ((args->remote_addr & (args->width - 1)) == 0) &&
            (rkey->atomic_mode == UCT_VARUNA_ATOMIC_EXTENDED)) ?
           uct_varuna_amo_start(ep, args) : UCS_ERR_UNSUPPORTED;
}

static void uct_varuna_amo_extended_init(uct_varuna_ep_t *ep)
{
    uct_varuna_ep_ext(ep)->random   = (uint32_t)ucs_get_time();
    uct_varuna_ep_ext(ep)->home.nic = UCT_VARUNA_HOME_NONE;
}

static int uct_varuna_amo_extended_is_away(uct_varuna_ep_t *ep)
{
    return ep->hot.far_nic != uct_varuna_ep_ext(ep)->home.nic;
}

const uct_varuna_amo_ops_t uct_varuna_amo_extended_ops = {
    .start      = uct_varuna_amo_start,
    .get        = uct_varuna_amo_extended_get,
    .init       = uct_varuna_amo_extended_init,
    .listen     = uct_varuna_amo_home_listen,
    .open       = uct_varuna_amo_extended_open,
    .close      = uct_varuna_amo_extended_close,
    .learn_home = uct_varuna_amo_learn_home,
    .is_away    = uct_varuna_amo_extended_is_away,
    .progress   = uct_varuna_amo_progress,
    .collect    = uct_varuna_amo_collect,
    .executed   = uct_varuna_amo_native_executed,
    .fail_all   = uct_varuna_amo_fail_all,
    .query      = uct_varuna_amo_query_all_ops,
    .size       = sizeof(uct_varuna_amo_ext_t)
};
