/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Registering memory where NICs may be dead. See varuna_md_dead.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_md_dead.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sys.h>
#include <ucs/sys/math.h>


/* Once, while the NIC is alive and has regions, for all of its ports. Without one, the NIC's
 * death makes registrations fail. */
static ucs_status_t uct_varuna_md_make_spare(uct_varuna_md_t *md, unsigned owner)
{
    size_t size         = ucs_get_page_size();
    ucs_status_t status = UCS_OK;
    uct_mem_h spare     = NULL;
    unsigned nic;

    pthread_mutex_lock(&md->lock);
    if ((md->nics[owner].spare != NULL) || (md->is_dead == NULL)) {
        goto out;
    }

    if ((md->spare_page == NULL) &&
        (ucs_posix_memalign(&md->spare_page, size, size, "varuna_spare") !=
         0)) {
        md->spare_page = NULL;
        status         = UCS_ERR_NO_MEMORY;
        goto out;
    }

    status = uct_md_mem_reg(md->nics[owner].md, md->spare_page, size,
                            UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS, &spare);
    if (status != UCS_OK) {
        goto out;
    }

    for (nic = owner; nic < md->num_nics; ++nic) {
        if (md->nics[nic].md == md->nics[owner].md) {
            md->nics[nic].spare = spare;
        }
    }

out:
    pthread_mutex_unlock(&md->lock);
    return status;
}

void uct_varuna_md_release_spares(uct_varuna_md_t *md)
{
    unsigned nic;

    uct_varuna_md_for_each_inner(md, nic) {
        if (md->nics[nic].spare != NULL) {
            (void)uct_md_mem_dereg(md->nics[nic].md, md->nics[nic].spare);
        }
    }
    ucs_free(md->spare_page);
}

int uct_varuna_md_is_nic_dead(uct_varuna_md_t *md, unsigned nic)
{
    uct_varuna_nic_t *inner = &md->nics[nic];

    if (!inner->is_dead && (md->is_dead != NULL) && md->is_dead(inner->md)) {
        inner->is_dead = 1;
        ucs_info("rc_varuna: %s is dead: memory is registered without it",
                 inner->md_name);
    }

    return inner->is_dead;
}

ucs_status_t uct_varuna_md_prepare_nic(uct_varuna_md_t *md, unsigned nic)
{
    unsigned owner      = uct_varuna_md_inner_owner(md, nic);
    ucs_status_t status = md->nics[owner].is_barred ? UCS_ERR_NO_MEMORY :
                          uct_varuna_md_make_spare(md, owner);

    if ((status != UCS_OK) && !uct_varuna_md_is_nic_dead(md, owner)) {
        uct_varuna_md_note_answer(md, owner, UCT_VARUNA_SHORT_MR, status, ucs_get_time());
    }

    return status;
}

ucs_status_t uct_varuna_md_reg_inner(uct_varuna_md_t *md, unsigned nic,
                                     void *address, size_t length,
                                     uct_varuna_reg_arg_t arg, int is_urgent,
                                     uct_mem_h *memh_p)
{
    uct_varuna_nic_t *inner = &md->nics[nic];
    ucs_status_t status     = UCS_ERR_IO_ERROR;

    if (!inner->is_dead && !is_urgent &&
        !uct_varuna_md_may_ask(md, nic, UCT_VARUNA_SHORT_MR, ucs_get_time())) {
        return UCS_ERR_NO_RESOURCE;
    }

    if (!inner->is_dead) {
        status = uct_varuna_compat_mem_reg(inner->md, address, length, arg,
                                           memh_p);
        if (status == UCS_OK) {
            (void)uct_varuna_md_make_spare(md, nic);
            uct_varuna_md_note_answer(md, nic, UCT_VARUNA_SHORT_MR, UCS_OK, 0);
            return UCS_OK;
        }
    }

    if ((inner->spare == NULL) || !uct_varuna_md_is_nic_dead(md, nic)) {
        return status;
    }

    *memh_p = inner->spare;
    return UCS_OK;
}

ucs_status_t uct_varuna_md_do_without(uct_varuna_md_t *md, unsigned nic,
                                      ucs_status_t status, uct_mem_h *memh_p)
{
    uct_varuna_nic_t *inner = &md->nics[nic];

    if (md->is_dead == NULL) {
        return status;
    }

    if ((status != UCS_ERR_NO_RESOURCE) && !uct_varuna_md_is_nic_dead(md, nic)) {
        uct_varuna_md_note_answer(md, nic, UCT_VARUNA_SHORT_MR, status, ucs_get_time());
    }

    if (uct_varuna_md_make_spare(md, nic) != UCS_OK) {
        inner->is_barred = 1;
    }

    *memh_p = inner->spare;
    return UCS_OK;
}

/* --- Shortage --- */

/* What the NICs of a memory domain are short of. */

/* For people, in the singular */
static const char *uct_varuna_short_names[] = {
    [UCT_VARUNA_SHORT_QP] = "queue pair",
    [UCT_VARUNA_SHORT_MR] = "memory region",
    [UCT_VARUNA_SHORT_AH] = "address handle"
};

UCT_VARUNA_STATIC_ASSERT(ucs_static_array_size(uct_varuna_short_names) ==
                         UCT_VARUNA_SHORT_LAST);


/* The ports of a device share it */
static uct_varuna_shortage_t *
uct_varuna_md_shortage(uct_varuna_md_t *md, unsigned nic, uct_varuna_short_t what)
{
    return &md->nics[ucs_min(uct_varuna_md_inner_owner(md, nic), nic)].shortages[what];
}

int uct_varuna_md_may_ask(uct_varuna_md_t *md, unsigned nic, uct_varuna_short_t what,
                          ucs_time_t now)
{
    int may_ask;

    pthread_mutex_lock(&md->lock);
    may_ask = uct_varuna_shortage_may_ask(uct_varuna_md_shortage(md, nic, what), now);
    pthread_mutex_unlock(&md->lock);
    return may_ask;
}

void uct_varuna_md_note_answer(uct_varuna_md_t *md, unsigned nic, uct_varuna_short_t what,
                               ucs_status_t status, ucs_time_t now)
{
    pthread_mutex_lock(&md->lock);
    uct_varuna_shortage_note(uct_varuna_md_shortage(md, nic, what),
                             uct_varuna_short_names[what], md->nics[nic].dev_name, status,
                             now);
    pthread_mutex_unlock(&md->lock);
}

void uct_varuna_md_note_handle(uct_varuna_md_t *md, unsigned nic,
                               uct_varuna_backoff_t *backoff, ucs_status_t status,
                               ucs_time_t now)
{
    if (status != UCS_OK) {
        (void)uct_varuna_backoff_failed(backoff, status, now);
    } else if (uct_varuna_backoff_succeeded(backoff) == 0) {
        return;
    }

    uct_varuna_md_note_answer(md, nic, UCT_VARUNA_SHORT_AH, status, now);
}
