/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Ids of the responder's targets, and the completion logs that belong to them. The
 * logs are evidence, so each target's rings have a registration of their own: only its
 * requester can write to them. An id that is used again gets a new one: peers name its rings by
 * another address then, because the key may be the one that the last requester knows.
 *
 *   never used ---> ready ---> open ---> freed --(packet lifetime)--+
 *                     ^    OPEN_REQ  CLOSE                           |
 *                     +----------------------------------------------+
 *
 * Registering takes a command of each NIC. The main thread keeps some ids ready, as
 * it does with queue pairs (varuna_connect.c); the async context registers only if there
 * are none. Neither waits long for a NIC that hangs: the key does without it, and
 * requesters without that link.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_responder.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>

#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sys.h>
#include <string.h>

/* Of requesters, to their rings */
#define UCT_VARUNA_LOG_RIGHTS        (UCT_VARUNA_MR_READ | UCT_VARUNA_MR_WRITE)


static inline uct_varuna_target_chunk_t *
uct_varuna_target_chunk(const uct_varuna_target_table_t *table, uint32_t id)
{
    return table->chunks[id >> UCT_VARUNA_TARGET_CHUNK_BITS];
}

static inline unsigned uct_varuna_target_slot(uint32_t id)
{
    return id & UCS_MASK(UCT_VARUNA_TARGET_CHUNK_BITS);
}

static uct_varuna_own_t *
uct_varuna_target_log_own(const uct_varuna_target_table_t *table, uint32_t id)
{
    return &uct_varuna_target_chunk(table,
                                    id)->owns[uct_varuna_target_slot(id)];
}

uint64_t *uct_varuna_target_log(const uct_varuna_responder_t *resp, uint32_t id)
{
    return UCS_PTR_BYTE_OFFSET(
            uct_varuna_target_chunk(&resp->targets, id)->logs,
            uct_varuna_target_slot(id) * UCT_VARUNA_LOG_BYTES);
}

const uct_varuna_own_t *
uct_varuna_target_log_key(const uct_varuna_responder_t *resp, uint32_t id)
{
    return uct_varuna_target_log_own(&resp->targets, id);
}


/* --- Chunks --- */

/* Make the next chunk. The main thread sees it once num_chunks says so. */
static ucs_status_t
uct_varuna_target_chunk_add(uct_varuna_target_table_t *table)
{
    size_t length = UCT_VARUNA_TARGET_CHUNK * UCT_VARUNA_LOG_BYTES;
    uct_varuna_target_chunk_t *chunk;
    void *logs;

    if (table->num_chunks == UCT_VARUNA_TARGET_MAX_CHUNKS) {
        ucs_error("peers have more than %u endpoints to this process",
                  UCT_VARUNA_TARGET_MAX_CHUNKS << UCT_VARUNA_TARGET_CHUNK_BITS);
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    chunk = ucs_calloc(1, sizeof(*chunk), "varuna_target_chunk");
    if (chunk == NULL) {
        goto err;
    }

    if (ucs_posix_memalign(&logs, ucs_get_page_size(), length,
                           "varuna_logs") != 0) {
        goto err_free_chunk;
    }

    memset(logs, 0, length);
    chunk->logs = logs;
    __atomic_store_n(&table->chunks[table->num_chunks], chunk,
                     __ATOMIC_RELEASE);
    __atomic_store_n(&table->num_chunks, table->num_chunks + 1,
                     __ATOMIC_RELEASE);
    return UCS_OK;

err_free_chunk:
    ucs_free(chunk);
err:
    ucs_error("failed to allocate completion logs for peers");
    return UCS_ERR_NO_MEMORY;
}

static void uct_varuna_target_chunk_free(uct_varuna_md_t *md,
                                         uct_varuna_target_chunk_t *chunk)
{
    int is_left = 0;
    unsigned slot;

    for (slot = 0; slot < UCT_VARUNA_TARGET_CHUNK; ++slot) {
        is_left |= (uct_varuna_own_dereg(md, &chunk->owns[slot]) != UCS_OK);
    }

    if (!is_left) {
        ucs_free(chunk->logs); /* A NIC may write there otherwise */
    }
    ucs_free(chunk);
}


/* --- Lists of ids, lock held --- */

static void uct_varuna_target_ids_push(uct_varuna_target_table_t *table,
                                       uct_varuna_target_ids_t *ids,
                                       uint32_t id)
{
    uct_varuna_target_chunk_t *chunk = uct_varuna_target_chunk(table, id);
    uint32_t tail                    = ids->tail;

    chunk->next[uct_varuna_target_slot(id)] = UCT_VARUNA_TARGET_ID_NONE;
    ids->tail                               = id;
    if (tail == UCT_VARUNA_TARGET_ID_NONE) {
        ids->head = id;
    } else {
        uct_varuna_target_chunk(table, tail)
                ->next[uct_varuna_target_slot(tail)] = id;
    }
}

static uint32_t uct_varuna_target_ids_pop(uct_varuna_target_table_t *table,
                                          uct_varuna_target_ids_t *ids)
{
    uint32_t id = ids->head;

    if (id != UCT_VARUNA_TARGET_ID_NONE) {
        ids->head = uct_varuna_target_chunk(table, id)
                            ->next[uct_varuna_target_slot(id)];
        if (ids->head == UCT_VARUNA_TARGET_ID_NONE) {
            ids->tail = UCT_VARUNA_TARGET_ID_NONE;
        }
    }

    return id;
}

static void uct_varuna_target_ids_init(uct_varuna_target_ids_t *ids)
{
    ids->head = UCT_VARUNA_TARGET_ID_NONE;
    ids->tail = UCT_VARUNA_TARGET_ID_NONE;
}

/* An id for a new registration. One is used again only after what the network may still
 * hold of its last use has died, and not while a NIC cannot end that registration. */
static ucs_status_t uct_varuna_target_id_take(uct_varuna_responder_t *resp,
                                              uint32_t *id_p)
{
    uct_varuna_target_table_t *table = &resp->targets;
    uint32_t id                      = table->freed.head;
    uct_varuna_target_chunk_t *chunk;
    ucs_status_t status;

    if (id != UCT_VARUNA_TARGET_ID_NONE) {
        chunk = uct_varuna_target_chunk(table, id);
        if (((chunk->freed_at[uct_varuna_target_slot(id)] +
              resp->iface->config.packet_lifetime) < uct_varuna_ctl_now(resp->ctl)) &&
            !uct_varuna_own_is_stuck(resp->iface->md,
                                     uct_varuna_target_log_own(table, id))) {
            *id_p = uct_varuna_target_ids_pop(table, &table->freed);
            return UCS_OK;
        }
    }

    if (table->next_id >=
        (table->num_chunks << UCT_VARUNA_TARGET_CHUNK_BITS)) {
        status = uct_varuna_target_chunk_add(table);
        if (status != UCS_OK) {
            return status;
        }
    }

    *id_p = table->next_id++;
    return UCS_OK;
}


/* --- Registrations --- */

/* The id is in no list, and its rings are not in use. Any thread: it does not need the
 * lock. */
static ucs_status_t uct_varuna_target_log_register(uct_varuna_responder_t *resp,
                                                   uint32_t id, ucs_time_t patience)
{
    uct_varuna_own_t *own = uct_varuna_target_log_own(&resp->targets, id);

    if (uct_varuna_own_dereg(resp->iface->md, own) != UCS_OK) {
        ucs_diag("target %u: a NIC does not end the registration of its log, which is "
                 "not used again", id);
        return UCS_ERR_BUSY;
    }

    /* UCX registers nothing here with relaxed ordering, and neither do we: an entry
     * is not visible before the data that it confirms */
    return uct_varuna_own_reg(resp->iface->md, uct_varuna_lanes_nics(resp->iface),
                              uct_varuna_target_log(resp, id),
                              UCT_VARUNA_LOG_BYTES, UCT_VARUNA_LOG_RIGHTS, 0, patience, own);
}

ucs_status_t uct_varuna_target_log_add(uct_varuna_responder_t *resp, uint32_t id, unsigned nic,
                                       unsigned generation, uint64_t *key_p)
{
    const uct_varuna_md_t *md = resp->iface->md;

    if ((nic >= md->num_nics) || (md->nics[nic].generation != generation)) {
        return UCS_ERR_NO_DEVICE;
    }

    return uct_varuna_own_add(resp->iface->md, uct_varuna_target_log(resp, id),
                              UCT_VARUNA_LOG_BYTES, UCT_VARUNA_LOG_RIGHTS, nic,
                              ucs_time_from_sec(UCT_VARUNA_OWN_PATIENCE),
                              uct_varuna_target_log_own(&resp->targets, id), key_p);
}

void uct_varuna_target_logs_leave(uct_varuna_responder_t *resp, unsigned owner)
{
    uct_varuna_target_table_t *table = &resp->targets;
    uint32_t id;

    for (id = 1; id < table->next_id; ++id) {
        uct_varuna_own_remove(resp->iface->md, uct_varuna_target_log_own(table, id), owner);
    }
}

/* An id that could not be registered. One whose last key may be valid still is lost. */
static void uct_varuna_target_id_return(uct_varuna_responder_t *resp, uint32_t id,
                                        ucs_status_t status)
{
    if (status != UCS_ERR_BUSY) {
        uct_varuna_target_id_put(resp, id);
    }
}

ucs_status_t uct_varuna_target_id_get(uct_varuna_responder_t *resp, uint32_t *id_p)
{
    uct_varuna_target_table_t *table = &resp->targets;
    ucs_status_t status;
    uint32_t id;

    id = uct_varuna_target_ids_pop(table, &table->ready);
    if (id != UCT_VARUNA_TARGET_ID_NONE) {
        __atomic_store_n(&table->num_ready, table->num_ready - 1,
                         __ATOMIC_RELAXED);
        *id_p = id;
        return UCS_OK;
    }

    status = uct_varuna_target_id_take(resp, &id);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_target_log_register(resp, id,
                                            ucs_time_from_sec(UCT_VARUNA_OWN_PATIENCE));
    if (status != UCS_OK) {
        uct_varuna_target_id_return(resp, id, status);
        return UCS_ERR_BUSY;
    }

    *id_p = id;
    return UCS_OK;
}

void uct_varuna_target_id_put(uct_varuna_responder_t *resp, uint32_t id)
{
    uct_varuna_target_table_t *table = &resp->targets;

    uct_varuna_target_chunk(table, id)->freed_at[uct_varuna_target_slot(id)] =
            uct_varuna_ctl_now(resp->ctl);
    uct_varuna_target_ids_push(table, &table->freed, id);
}

/* Make one id ready. Main thread, lock not held. */
static ucs_status_t uct_varuna_target_logs_make(uct_varuna_responder_t *resp,
                                                ucs_time_t patience)
{
    uct_varuna_target_table_t *table = &resp->targets;
    ucs_status_t status;
    uint32_t id;

    uct_varuna_ctl_lock(resp->ctl);
    status = uct_varuna_target_id_take(resp, &id);
    uct_varuna_ctl_unlock(resp->ctl);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_target_log_register(resp, id, patience);
    uct_varuna_ctl_lock(resp->ctl);
    if (status == UCS_OK) {
        uct_varuna_target_ids_push(table, &table->ready, id);
        __atomic_store_n(&table->num_ready, table->num_ready + 1,
                         __ATOMIC_RELAXED);
    } else {
        uct_varuna_target_id_return(resp, id, status);
    }
    uct_varuna_ctl_unlock(resp->ctl);
    return status;
}

void uct_varuna_target_logs_progress(uct_varuna_responder_t *resp)
{
    uct_varuna_backoff_t *backoff = &resp->targets.no_logs;
    ucs_time_t now                = uct_varuna_ctl_now(resp->ctl);
    ucs_status_t status;

    if ((__atomic_load_n(&resp->targets.num_ready, __ATOMIC_RELAXED) >=
         resp->iface->config.spare_qps) || !uct_varuna_backoff_is_due(backoff, now)) {
        return;
    }

    status = uct_varuna_target_logs_make(resp, ucs_time_from_sec(UCT_VARUNA_OWN_PATIENCE));
    if (status == UCS_OK) {
        (void)uct_varuna_backoff_succeeded(backoff);
    } else if (uct_varuna_backoff_failed(backoff, status, now)) {
        ucs_diag("rc_varuna: no log can be registered for the next peers: %s; it is tried "
                 "again", ucs_status_string(status));
    }
}

ucs_status_t uct_varuna_target_logs_init(uct_varuna_responder_t *resp)
{
    uct_varuna_target_table_t *table = &resp->targets;
    ucs_status_t status;

    table->chunks = ucs_calloc(UCT_VARUNA_TARGET_MAX_CHUNKS,
                               sizeof(*table->chunks), "varuna_targets");
    if (table->chunks == NULL) {
        ucs_error("failed to allocate the table of targets");
        return UCS_ERR_NO_MEMORY;
    }

    table->next_id   = 1; /* 0 is not used */
    table->num_ready = 0;
    uct_varuna_target_ids_init(&table->freed);
    uct_varuna_target_ids_init(&table->ready);

    /* The first ones are made here, in the main thread, where a failure can be
     * reported to the user */
    do {
        status = uct_varuna_target_logs_make(resp, UCS_TIME_INFINITY);
    } while ((status == UCS_OK) &&
             (table->num_ready < resp->iface->config.spare_qps));

    if (status != UCS_OK) {
        ucs_error("no NIC registers logs for peers: %s (ulimit -l may be too small)",
                  ucs_status_string(status));
        uct_varuna_target_logs_cleanup(resp);
    }

    return status;
}

void uct_varuna_target_logs_cleanup(uct_varuna_responder_t *resp)
{
    uct_varuna_target_table_t *table = &resp->targets;
    unsigned i;

    for (i = 0; i < table->num_chunks; ++i) {
        uct_varuna_target_chunk_free(resp->iface->md, table->chunks[i]);
    }

    ucs_free(table->chunks);
}
