/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Batches of operations, see batch_load.h.
 */
#include "batch_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define BATCH_COUNT_MAX 1024

/* A compare and swap is followed by this number of reads, less one */
#define BATCH_GROUP     4


int batch_load_parse(batch_load_t *load, const char *text)
{
    static const char *kinds[BATCH_LAST] = {"put", "cas", "casread"};
    char kind[16], how[8] = "";
    int fields;

    fields      = sscanf(text, "%15[a-z]:%zu:%u:%7s", kind, &load->size, &load->count,
                         how);
    load->each  = !strcmp(how, "each");
    load->watch = !strcmp(how, "watch");
    for (load->kind = BATCH_PUT; (load->kind < BATCH_LAST) && (fields >= 3) &&
                                 strcmp(kinds[load->kind], kind); ++load->kind);
    if ((fields < 3) || (load->kind == BATCH_LAST) ||
        ((fields == 4) && !load->each && !load->watch) ||
        (load->size < sizeof(uint64_t)) || (load->size % sizeof(uint64_t)) ||
        (load->count < 1) || (load->count > BATCH_COUNT_MAX)) {
        fprintf(stderr, "\"%s\" is not put|cas|casread:SIZE:COUNT[:each|:watch]\n", text);
        return -1;
    }

    return 0;
}

size_t batch_load_bytes(const batch_load_t *load)
{
    return load->size * load->count;
}

uint64_t batch_load_value(uint64_t batches)
{
    uint64_t value;

    memset(&value, COST_FILL, sizeof(value));
    return value + batches;
}

static int batch_is_cas(const batch_ep_t *ep, unsigned i)
{
    return (ep->load->kind == BATCH_CAS) ||
           ((ep->load->kind == BATCH_CAS_READ) && ((i % BATCH_GROUP) == 0));
}

static void batch_completed(uct_completion_t *self)
{
    batch_op_t *op = (batch_op_t*)self;
    batch_ep_t *ep = op->ep;
    unsigned i     = op - ep->ops;

    --ep->pending;
    if (self->status != UCS_OK) {
        ep->status = self->status;
        ++ep->failed;
        return;
    }

    ep->wrong += batch_is_cas(ep, i) && (op->result != batch_load_value(ep->batches));
    if (ep->completed != NULL) {
        ep->completed(op, batch_now());
    }
}

static ucs_status_t batch_post_one(batch_ep_t *ep, unsigned i)
{
    const batch_load_t *load = ep->load;
    batch_op_t *op           = &ep->ops[i];
    size_t offset            = ep->offset + (i * load->size);
    char *slot               = (char*)ep->uct->buffer + offset;
    uint64_t value           = batch_load_value(ep->batches);
    uct_rkey_t rkey          = ep->uct->rkey.rkey;
    uint64_t remote          = ep->uct->remote + offset;
    uct_completion_t *comp   = &op->comp;
    uct_iov_t iov            = {
        .buffer = slot,
        .length = load->size,
        .memh   = ep->uct->memh,
        .count  = 1
    };
    ucs_status_t status;

    comp->func   = batch_completed;
    comp->count  = 1;
    comp->status = UCS_OK;
    op->start    = (ep->completed != NULL) ? batch_now() : 0;
    if (batch_is_cas(ep, i)) {
        status = uct_ep_atomic_cswap64(ep->ep, value, value + 1, remote, rkey,
                                       &op->result, comp);
    } else if (load->kind == BATCH_CAS_READ) {
        status = uct_ep_get_zcopy(ep->ep, &iov, 1, remote, rkey, comp);
    } else {
        /* The last word is written last */
        value = batch_load_value(ep->batches + 1);
        memcpy(slot, &value, sizeof(value));
        memcpy(slot + load->size - sizeof(value), &value, sizeof(value));
        comp   = (load->each || (i == load->count - 1)) ? comp : NULL;
        status = uct_ep_put_zcopy(ep->ep, &iov, 1, remote, rkey, comp);
    }

    if (!UCS_STATUS_IS_ERR(status)) {
        ++ep->posted;
        ep->pending += (comp != NULL);
        if ((status == UCS_OK) && (comp != NULL)) {
            batch_completed(comp);
        }
    }

    return status;
}

/* Post the rest of the batch. @return UCS_ERR_NO_RESOURCE, or UCS_OK if there is none. */
static ucs_status_t batch_post(batch_ep_t *ep)
{
    ucs_status_t status = UCS_OK;

    while ((ep->posted < ep->load->count) && (ep->status == UCS_OK)) {
        status = batch_post_one(ep, ep->posted);
        if (status == UCS_ERR_NO_RESOURCE) {
            return status;
        } else if (UCS_STATUS_IS_ERR(status)) {
            ep->status = status;
        }
    }

    return UCS_OK;
}

/* The endpoint has resources again */
static ucs_status_t batch_resume(uct_pending_req_t *self)
{
    batch_ep_t *ep      = ucs_container_of(self, batch_ep_t, waiting);
    ucs_status_t status = batch_post(ep);

    ep->waits = (status != UCS_OK);
    return status;
}

int batch_ep_init(batch_ep_t *ep, cost_uct_t *uct, uct_ep_h uct_ep,
                  const batch_load_t *load, size_t offset)
{
    unsigned i;

    memset(ep, 0, sizeof(*ep));
    ep->uct    = uct;
    ep->ep     = uct_ep;
    ep->load   = load;
    ep->offset = offset;
    ep->waiting.func = batch_resume;
    ep->ops    = calloc(load->count, sizeof(*ep->ops));
    if (ep->ops == NULL) {
        fprintf(stderr, "out of memory\n");
        return -1;
    }

    for (i = 0; i < load->count; ++i) {
        ep->ops[i].ep = ep;
    }

    return 0;
}

static void batch_purged(uct_pending_req_t *self, void *arg)
{
    ucs_container_of(self, batch_ep_t, waiting)->waits = 0;
}

void batch_ep_cleanup(batch_ep_t *ep)
{
    uct_ep_pending_purge(ep->ep, batch_purged, NULL);
    free(ep->ops);
}

void batch_ep_start(batch_ep_t *ep)
{
    ep->posted = 0;
    ep->start  = batch_now();
}

int batch_ep_post(batch_ep_t *ep)
{
    ucs_status_t status;

    /* As UCP does it: those that retry one after the other share nothing fairly */
    while (!ep->waits && (batch_post(ep) == UCS_ERR_NO_RESOURCE)) {
        status    = uct_ep_pending_add(ep->ep, &ep->waiting, 0);
        ep->waits = (status == UCS_OK);
        if ((status != UCS_OK) && (status != UCS_ERR_BUSY)) {
            ep->status = status;
        }
    }

    if (ep->status != UCS_OK) {
        return 1;
    } else if (ep->waits || (ep->pending > 0)) {
        return 0;
    }

    ++ep->batches;
    return 1;
}
