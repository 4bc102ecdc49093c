/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the NICs of a memory domain are short of. See varuna_md_short.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_md_dead.h"
#include "varuna_md_short.h"

#include <ucs/sys/math.h>

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
