/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See varuna_held.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_held.h"

#include <ucs/datastruct/khash.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>

KHASH_MAP_INIT_INT(uct_varuna_held, uct_varuna_held_am_t*)

void uct_varuna_held_init(uct_varuna_held_t *held, unsigned *num_peer,
                          unsigned *num_all)
{
    held->table    = NULL;
    held->num      = 0;
    held->num_peer = num_peer;
    held->num_all  = num_all;
}

static void uct_varuna_held_count(uct_varuna_held_t *held, int n)
{
    held->num       += n;
    *held->num_peer += n;
    *held->num_all  += n;
}

ucs_status_t uct_varuna_held_add(uct_varuna_held_t *held, uint32_t seq,
                                 uint8_t am_id, const void *data,
                                 size_t length)
{
    uct_varuna_held_am_t *am;
    khiter_t iter;
    int ret;

    if ((held->table != NULL) &&
        (kh_get(uct_varuna_held, held->table, seq) != kh_end(held->table))) {
        return UCS_ERR_ALREADY_EXISTS;
    } else if (*held->num_peer >= UCT_VARUNA_HELD_MAX_PEER) {
        return UCS_ERR_EXCEEDS_LIMIT;
    } else if (*held->num_all >= UCT_VARUNA_HELD_MAX) {
        return UCS_ERR_NO_RESOURCE;
    }

    if (held->table == NULL) {
        held->table = kh_init(uct_varuna_held);
    }

    am = ucs_malloc(sizeof(*am) + length, "varuna_held_am");
    if ((held->table == NULL) || (am == NULL)) {
        goto err_free;
    }

    iter = kh_put(uct_varuna_held, held->table, seq, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        goto err_free;
    }

    am->length = length;
    am->am_id  = am_id;
    memcpy(am + 1, data, length);
    kh_val(held->table, iter) = am;
    uct_varuna_held_count(held, 1);
    return UCS_OK;

err_free:
    ucs_free(am);
    return UCS_ERR_NO_MEMORY;
}

/* A table never shrinks, so it does not outlive the last message. */
static void uct_varuna_held_put_table(uct_varuna_held_t *held)
{
    if ((held->num == 0) && (held->table != NULL)) {
        kh_destroy(uct_varuna_held, held->table);
        held->table = NULL;
    }
}

uct_varuna_held_am_t *uct_varuna_held_take(uct_varuna_held_t *held,
                                           uint32_t seq)
{
    uct_varuna_held_am_t *am;
    khiter_t iter;

    if (held->table == NULL) {
        return NULL;
    }

    iter = kh_get(uct_varuna_held, held->table, seq);
    if (iter == kh_end(held->table)) {
        return NULL;
    }

    am = kh_val(held->table, iter);
    kh_del(uct_varuna_held, held->table, iter);
    uct_varuna_held_count(held, -1);
    uct_varuna_held_put_table(held);
    return am;
}

void uct_varuna_held_clear(uct_varuna_held_t *held)
{
    uct_varuna_held_am_t *am;

    if (held->table != NULL) {
        kh_foreach_value(held->table, am, {
            ucs_free(am);
        })
    }

    uct_varuna_held_count(held, -(int)held->num);
    uct_varuna_held_put_table(held);
}
