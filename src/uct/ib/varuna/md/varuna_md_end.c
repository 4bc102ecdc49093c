/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Since when a NIC does nothing more. See varuna_md_end.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_md_end.h"
#include "varuna_md_cmd.h"
#include "varuna_md_dead.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>

struct uct_varuna_md_end {
    uct_varuna_cmd_t             super;
    uct_md_h                     inner;
    uct_varuna_md_is_dead_func_t is_dead;
    ucs_time_t                   failed_at; /* Written by the NIC's thread */
    int                          is_asked;  /* Until the command has come back */
};

static ucs_status_t uct_varuna_md_end_run(uct_varuna_cmd_t *cmd)
{
    uct_varuna_md_end_t *end = ucs_derived_of(cmd, uct_varuna_md_end_t);

    /* It may have been asked once more by a thread that had seen no failure yet */
    if ((end->failed_at == 0) && end->is_dead(end->inner)) {
        __atomic_store_n(&end->failed_at, ucs_get_time(), __ATOMIC_RELEASE);
    }

    return UCS_OK;
}

static void uct_varuna_md_end_done(uct_varuna_cmd_t *cmd, ucs_status_t status)
{
    uct_varuna_md_end_t *end = ucs_derived_of(cmd, uct_varuna_md_end_t);

    (void)status; /* Without a sink it says nothing */
    __atomic_store_n(&end->is_asked, 0, __ATOMIC_RELEASE);
}

static uct_varuna_md_end_t *uct_varuna_md_end_get(uct_varuna_md_t *md, unsigned owner)
{
    uct_varuna_md_end_t *end   = __atomic_load_n(&md->ends[owner], __ATOMIC_ACQUIRE);
    uct_varuna_md_end_t *other = NULL;

    if (end != NULL) {
        return end;
    }

    end = ucs_calloc(1, sizeof(*end), "varuna_md_end");
    if (end == NULL) {
        return NULL; /* Asked again */
    }

    end->super.run  = uct_varuna_md_end_run;
    end->super.done = uct_varuna_md_end_done;
    end->inner      = md->nics[owner].md;
    end->is_dead    = md->is_dead;
    /* Not under the lock of the memory domain, whose owner may wait for a NIC */
    if (!__atomic_compare_exchange_n(&md->ends[owner], &other, end, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        ucs_free(end);
        return other;
    }

    return end;
}

ucs_time_t uct_varuna_md_ended_at(uct_varuna_md_t *md, unsigned nic)
{
    unsigned owner = uct_varuna_md_inner_owner(md, nic);
    uct_varuna_md_end_t *end;
    ucs_time_t failed_at;

    if ((owner >= UCT_VARUNA_MAX_LINKS) || (md->is_dead == NULL)) {
        return 1; /* There is nothing that could still act: it ended long ago */
    }

    end = uct_varuna_md_end_get(md, owner);
    if (end == NULL) {
        return 0;
    }

    failed_at = __atomic_load_n(&end->failed_at, __ATOMIC_ACQUIRE);
    if ((failed_at == 0) &&
        !__atomic_exchange_n(&end->is_asked, 1, __ATOMIC_ACQ_REL)) {
        if (md->cmds[owner] != NULL) {
            uct_varuna_cmds_submit(md->cmds[owner], &end->super);
        } else {
            end->super.done(&end->super, end->super.run(&end->super));
            failed_at = end->failed_at;
        }
    }

    return failed_at;
}

int uct_varuna_md_has_ended(const uct_varuna_md_t *md, unsigned nic)
{
    unsigned owner = uct_varuna_md_inner_owner(md, nic);
    const uct_varuna_md_end_t *end;

    if (owner >= UCT_VARUNA_MAX_LINKS) {
        return 0;
    }

    end = __atomic_load_n(&md->ends[owner], __ATOMIC_ACQUIRE);
    return (end != NULL) && (__atomic_load_n(&end->failed_at, __ATOMIC_ACQUIRE) != 0);
}

void uct_varuna_md_end_release(uct_varuna_md_t *md, unsigned nic, int is_left)
{
    if (!is_left) {
        ucs_free(md->ends[nic]);
    }
    md->ends[nic] = NULL;
}
