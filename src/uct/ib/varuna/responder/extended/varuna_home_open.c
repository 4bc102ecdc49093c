/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's table of mode extended: opening and closing the home NIC's part, and what
 * targets have of it. Lock held.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_home.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/responder/varuna_target.h>

#include <ucs/debug/memtrack_int.h>

static uct_varuna_home_client_t *uct_varuna_home_client(uct_varuna_target_t *target)
{
    return (uct_varuna_home_client_t*)target->amo_part;
}

static void uct_varuna_home_handle_req(void *arg, unsigned link,
                                       const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    uct_varuna_responder_t *resp = arg;
    uct_varuna_target_t *target  = uct_varuna_target_asked(resp, link, hdr);

    if (target != NULL) {
        uct_varuna_home_request(uct_varuna_home(resp), uct_varuna_home_client(target), link,
                                hdr, body);
    }
}

static void uct_varuna_home_close(uct_varuna_responder_t *resp)
{
    uct_varuna_home_t *home = uct_varuna_home(resp);
    uct_varuna_dead_block_t *block;
    uct_varuna_access_t *access;
    uct_varuna_job_t *job;

    if (home->access != NULL) {
        home->access->home = NULL;
    }

    uct_varuna_home_nic_cleanup(&home->nic);

    while (!ucs_list_is_empty(&home->lost)) {
        access = ucs_list_extract_head(&home->lost, uct_varuna_access_t, list);
        ucs_free(access);
    }

    while (!ucs_list_is_empty(&home->jobs)) {
        job = ucs_list_extract_head(&home->jobs, uct_varuna_job_t, list);
        ucs_free(job);
    }

    while (!ucs_list_is_empty(&home->dead_blocks)) {
        block = ucs_list_extract_head(&home->dead_blocks,
                                      uct_varuna_dead_block_t, list);
        uct_varuna_arena_free(block->first);
        ucs_free(block);
    }

    uct_varuna_blocks_cleanup(home);
    ucs_free(home->access);
    ucs_free(home);
}

static ucs_status_t uct_varuna_home_open(uct_varuna_responder_t *resp)
{
    static const uct_varuna_bus_reg_t row = {
        UCT_VARUNA_CTL_HOME_REQ, UCT_VARUNA_BUS_ASYNC, uct_varuna_home_handle_req
    };
    uct_varuna_home_t *home;
    ucs_status_t status;

    home = ucs_calloc(1, sizeof(*home), "varuna_home");
    if (home == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    resp->amo_part = home;
    home->ctl      = resp->ctl;
    uct_varuna_home_nic_init(&home->nic, resp->ctl);
    ucs_list_head_init(&home->jobs);
    ucs_list_head_init(&home->lost);
    ucs_list_head_init(&home->dead_blocks);
    home->access = ucs_calloc(1, sizeof(*home->access), "varuna_access");
    if (home->access == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err_close;
    }

    status = uct_varuna_blocks_init(home);
    if (status != UCS_OK) {
        goto err_close;
    }

    uct_varuna_home_nic_join(&home->nic);
    uct_varuna_bus_register(&resp->ctl->bus, &row, 1, resp);
    uct_varuna_home_move_init(resp);
    return UCS_OK;

err_close:
    uct_varuna_home_close(resp);
    return status;
}

static void uct_varuna_home_open_target(uct_varuna_target_t *target)
{
    uct_varuna_home_client(target)->peer       = target->peer;
    uct_varuna_home_client(target)->first_slot = UCT_VARUNA_SLOT_NONE;
}

/* Rule 7: a requester without queue pairs can't occupy any more, so what it has left is
 * swept, and its slots serve others */
static void
uct_varuna_home_close_target(uct_varuna_responder_t *resp, uct_varuna_target_t *target)
{
    uct_varuna_blocks_close_client(uct_varuna_home(resp), uct_varuna_home_client(target));
}

static size_t
uct_varuna_home_fill_open(uct_varuna_responder_t *resp, uct_varuna_target_t *target,
                          uct_varuna_ctl_open_rep_t *rep, void *tail)
{
    return uct_varuna_blocks_fill_open(uct_varuna_home(resp), uct_varuna_home_client(target),
                                       rep, tail);
}

const uct_varuna_served_ops_t uct_varuna_home_ops = {
    .target_part  = sizeof(uct_varuna_home_client_t),
    .open         = uct_varuna_home_open,
    .close        = uct_varuna_home_close,
    .open_target  = uct_varuna_home_open_target,
    .fill_open    = uct_varuna_home_fill_open,
    .close_target = uct_varuna_home_close_target,
    .tell_home    = uct_varuna_home_name_tell,
    .forked       = uct_varuna_arena_forked
};
