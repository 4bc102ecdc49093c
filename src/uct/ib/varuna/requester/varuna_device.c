/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What an endpoint has written to memory of the peer's devices, see varuna_ep.h. The place of
 * the newest write to each device is kept, to be read there.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ep.h"
#include "varuna_ring.h"

#include <ucs/debug/memtrack_int.h>

/* Of a peer, with writes that are not known to have arrived. More of them are for a fence */
#define UCT_VARUNA_MAX_DEVICES       8

typedef struct uct_varuna_device {
    uint8_t                    id;
    uint32_t                   written;   /* num_writes with the newest write to it */
    uint32_t                   reading;   /* ... when its newest read was posted, */
    uint32_t                   settled;   /* ... when the newest that has returned was */
    uint64_t                   addr;      /* Of the newest write */
    uint64_t                   token;     /* Of its key */
    uct_rkey_t                 keys[UCT_VARUNA_MAX_LINKS];
} uct_varuna_device_t;

struct uct_varuna_devices {
    unsigned                   num;
    unsigned                   is_full;   /* Writes to others are under way, too */
    uct_varuna_device_t        list[UCT_VARUNA_MAX_DEVICES];
};

static int uct_varuna_device_is_settled(const uct_varuna_device_t *device)
{
    return UCS_CIRCULAR_COMPARE32(device->settled, >=, device->written);
}

/* Devices that the peer cannot tell apart are as many as there are regions. */
static int uct_varuna_device_is(const uct_varuna_device_t *device, const uct_varuna_req_t *req)
{
    return (device->id == req->device) &&
           ((req->device != UCT_VARUNA_DEVICE_UNKNOWN) ||
            (device->token == req->user.token));
}

static uct_varuna_device_t *
uct_varuna_device_find(uct_varuna_devices_t *devices, const uct_varuna_req_t *req)
{
    unsigned i;

    for (i = 0; i < devices->num; ++i) {
        if (uct_varuna_device_is(&devices->list[i], req)) {
            return &devices->list[i];
        }
    }

    return NULL;
}

/* @return A place for one more, or NULL. */
static uct_varuna_device_t *uct_varuna_device_add(uct_varuna_devices_t *devices)
{
    unsigned i;

    for (i = 0; i < devices->num; ++i) {
        if (uct_varuna_device_is_settled(&devices->list[i])) {
            return &devices->list[i];
        }
    }

    return (devices->num < UCT_VARUNA_MAX_DEVICES) ? &devices->list[devices->num++] : NULL;
}

void uct_varuna_device_note_write(uct_varuna_ep_t *ep, const uct_varuna_req_t *req)
{
    uct_varuna_device_t *device;

    if (ep->devices == NULL) {
        ep->devices = ucs_calloc(1, sizeof(*ep->devices), "varuna_devices");
        ucs_assert_always(ep->devices != NULL); /* Once, and what is posted must be known */
    }

    device = uct_varuna_device_find(ep->devices, req);
    if (device == NULL) {
        device = uct_varuna_device_add(ep->devices);
        if (device == NULL) {
            ep->devices->is_full = 1;
            return;
        }
        device->id      = req->device;
        device->reading = ep->num_writes - 1;
        device->settled = ep->num_writes - 1;
    }

    device->written = ep->num_writes;
    device->addr    = req->remote_addr;
    device->token   = req->user.token;
    memcpy(device->keys, req->keys, sizeof(device->keys));
}

void uct_varuna_device_note_read(uct_varuna_ep_t *ep, const uct_varuna_req_t *req)
{
    uct_varuna_device_t *device = (ep->devices == NULL) ? NULL :
                                  uct_varuna_device_find(ep->devices, req);

    if (device != NULL) {
        device->settled = req->log_sn;
    }
}

int uct_varuna_devices_are_placed_slow(const uct_varuna_ep_t *ep, uint32_t sn)
{
    const uct_varuna_devices_t *devices = ep->devices;
    unsigned i;

    for (i = 0; i < devices->num; ++i) {
        if (!uct_varuna_device_is_settled(&devices->list[i]) &&
            UCS_CIRCULAR_COMPARE32(devices->list[i].settled, <, sn)) {
            return 0;
        }
    }

    return !devices->is_full;
}

/* Reads of ours have no use for the data */
static int uct_varuna_device_is_read_by(const uct_varuna_req_t *req)
{
    return (req->type == UCT_VARUNA_REQ_GET_BCOPY) &&
           (req->device != UCT_VARUNA_DEVICE_HOST) &&
           (req->get.cb == uct_varuna_req_unpack_nothing);
}

ucs_status_t uct_varuna_devices_make_read(uct_varuna_ep_t *ep, uct_varuna_req_t *req)
{
    const uct_varuna_devices_t *devices = ep->devices;
    const uct_varuna_device_t *device;
    unsigned i;

    if (ucs_likely(devices == NULL)) {
        return UCS_ERR_NO_ELEM;
    }

    if (devices->is_full) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    for (i = 0; i < devices->num; ++i) {
        device = &devices->list[i];
        if (!uct_varuna_device_is_settled(device) &&
            UCS_CIRCULAR_COMPARE32(device->reading, <, device->written)) {
            req->length      = 1; /* The write may have been as short */
            req->device      = device->id;
            req->get.cb      = uct_varuna_req_unpack_nothing;
            req->get.arg     = NULL;
            req->remote_addr = device->addr;
            req->user.token  = device->token;
            memcpy(req->keys, device->keys, sizeof(req->keys));
            return UCS_OK;
        }
    }

    return UCS_ERR_NO_ELEM;
}

void uct_varuna_devices_read_posted(uct_varuna_ep_t *ep, const uct_varuna_req_t *req)
{
    uct_varuna_device_find(ep->devices, req)->reading = ep->num_writes;
}

void uct_varuna_devices_settle(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *req;

    if (ucs_likely(ep->devices == NULL)) {
        return;
    }

    ep->devices->num     = 0;
    ep->devices->is_full = 0;
    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if (uct_varuna_device_is_read_by(req)) {
            req->flags |= UCT_VARUNA_REQ_FLAG_DONE;
        }
    }
}

int uct_varuna_devices_are_read(const uct_varuna_ep_t *ep)
{
    const uct_varuna_req_t *req;

    if (ep->devices == NULL) {
        return 0;
    }

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if (uct_varuna_device_is_read_by(req)) {
            return 1;
        }
    }

    return 0;
}

void uct_varuna_devices_forget_keys(uct_varuna_ep_t *ep, unsigned nic)
{
    unsigned i;

    for (i = 0; (ep->devices != NULL) && (i < ep->devices->num); ++i) {
        ep->devices->list[i].keys[nic] = UCT_INVALID_RKEY;
    }
}

void uct_varuna_devices_release(uct_varuna_ep_t *ep)
{
    ucs_free(ep->devices);
    ep->devices = NULL;
}
