/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Post one operation of a plan, of each kind. Called by ft_ops.c.
 */
#include "ft_ops.h"

#include <string.h>

static size_t ft_pack(void *dest, void *arg)
{
    ft_done_t *done = arg;
    size_t length   = done->client->plan.ops[done->index].length;

    memcpy(dest, done->local, length);
    return length;
}

static void ft_unpack(void *arg, const void *data, size_t length)
{
    memcpy(((ft_done_t*)arg)->local, data, length);
}

/* Of functions that return a length */
static ucs_status_t ft_status(ssize_t ret)
{
    return (ret >= 0) ? UCS_OK : (ucs_status_t)ret;
}

ucs_status_t ft_op_post(ft_client_t *client, ft_kind_t kind, const ft_op_t *op,
                        ft_done_t *done)
{
    /* The first word of a message's contents is UCT's header */
    const size_t header_length = (ft_kinds[kind].flags & FT_KIND_MESSAGE) ?
                                 sizeof(uint64_t) : 0;
    const uint64_t remote      = client->server.base + op->offset;
    const uct_rkey_t rkey      = client->rkey.rkey;
    uct_iov_t iov              = {
        .buffer = done->local + header_length,
        .length = op->length - header_length,
        .memh   = client->memh,
        .count  = 1
    };

    switch (kind) {
    case FT_PUT_SHORT:
        return uct_ep_put_short(client->ep, done->local, op->length, remote, rkey);
    case FT_PUT_BCOPY:
        return ft_status(uct_ep_put_bcopy(client->ep, ft_pack, done, remote, rkey));
    case FT_PUT_ZCOPY:
        return uct_ep_put_zcopy(client->ep, &iov, 1, remote, rkey, &done->comp);
    case FT_GET_BCOPY:
        return uct_ep_get_bcopy(client->ep, ft_unpack, done, op->length, remote, rkey,
                                &done->comp);
    case FT_GET_ZCOPY:
        return uct_ep_get_zcopy(client->ep, &iov, 1, remote, rkey, &done->comp);
    case FT_AM_SHORT:
        return uct_ep_am_short(client->ep, FT_AM_ID, *(uint64_t*)done->local, iov.buffer,
                               iov.length);
    case FT_AM_BCOPY:
        return ft_status(uct_ep_am_bcopy(client->ep, FT_AM_ID, ft_pack, done, 0));
    case FT_AM_ZCOPY:
        return uct_ep_am_zcopy(client->ep, FT_AM_ID, done->local, header_length, &iov, 1, 0,
                               &done->comp);
    case FT_FLUSH:
        return uct_ep_flush(client->ep, 0, &done->comp);
    case FT_FENCE:
        return uct_ep_fence(client->ep, 0);
    default:
        return UCS_ERR_INVALID_PARAM;
    }
}
