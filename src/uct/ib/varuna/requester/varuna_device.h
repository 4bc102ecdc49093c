/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What an endpoint has written to memory of the peer's devices (GPUs). Neither a log entry
 * nor a read of host memory proves that it has arrived there: data for a device goes another
 * way behind the peer's NIC. A read of the same device, over the same NIC, does, and so does a
 * fence, for which the peer reads each device (ucx/varuna_readback.c). Main thread.
 */
#ifndef UCT_VARUNA_DEVICE_H_
#define UCT_VARUNA_DEVICE_H_

#include "varuna_ep.h"

typedef struct uct_varuna_devices uct_varuna_devices_t;

/** A write to a device was posted: num_writes counts it. */
void uct_varuna_device_note_write(uct_varuna_ep_t *ep, const uct_varuna_req_t *req);

/** A read of a device has returned. */
void uct_varuna_device_note_read(uct_varuna_ep_t *ep, const uct_varuna_req_t *req);

/** @return Whether all writes to devices up to number @a sn are known to be there. */
int uct_varuna_devices_are_placed_slow(const uct_varuna_ep_t *ep, uint32_t sn);

/** The same. Few endpoints write to devices. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_devices_are_placed(const uct_varuna_ep_t *ep, uint32_t sn)
{
    return ucs_likely(ep->devices == NULL) || uct_varuna_devices_are_placed_slow(ep, sn);
}

/** Make a GET_BCOPY of @a req that reads a device with writes that no read follows yet.
 *  @return UCS_ERR_NO_ELEM if there is none; UCS_ERR_EXCEEDS_LIMIT if only a fence proves
 *  anything, as there are too many devices. */
ucs_status_t uct_varuna_devices_make_read(uct_varuna_ep_t *ep, uct_varuna_req_t *req);

/** It was posted. */
void uct_varuna_devices_read_posted(uct_varuna_ep_t *ep, const uct_varuna_req_t *req);

/** Nothing of the lanes before is under way any more: they were fenced. Reads of ours need not
 *  be repeated. */
void uct_varuna_devices_settle(uct_varuna_ep_t *ep);

/** @return Whether a read of ours is under way. It may fail because the peer has deregistered
 *  what the user has long written, and that is no fault of the user's. */
int uct_varuna_devices_are_read(const uct_varuna_ep_t *ep);

/** The endpoint ends. */
void uct_varuna_devices_release(uct_varuna_ep_t *ep);

#endif
