/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Post one operation of a plan, of each kind. Called by ft_ops.c.
 */
#include "ft_ops.h"

#include <string.h>

static uint64_t ft_remote(const ft_client_t *client, const ft_op_t *op)
{
    return client->server.base + op->offset;
}

static uct_iov_t ft_iov(const ft_client_t *client, void *buffer, size_t length)
{
    uct_iov_t iov = {
        .buffer = buffer,
        .length = length,
        .memh   = client->memh,
        .stride = 0,
        .count  = 1
    };

    return iov;
}

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

static ucs_status_t ft_post_put_short(ft_client_t *client, const ft_op_t *op,
                                      ft_done_t *done)
{
    return uct_ep_put_short(client->ep, done->local, op->length,
                            ft_remote(client, op), client->rkey.rkey);
}

static ucs_status_t ft_post_put_bcopy(ft_client_t *client, const ft_op_t *op,
                                      ft_done_t *done)
{
    ssize_t ret = uct_ep_put_bcopy(client->ep, ft_pack, done,
                                   ft_remote(client, op), client->rkey.rkey);

    return (ret >= 0) ? UCS_OK : (ucs_status_t)ret;
}

static ucs_status_t ft_post_put_zcopy(ft_client_t *client, const ft_op_t *op,
                                      ft_done_t *done)
{
    uct_iov_t iov = ft_iov(client, done->local, op->length);

    return uct_ep_put_zcopy(client->ep, &iov, 1, ft_remote(client, op),
                            client->rkey.rkey, &done->comp);
}

static ucs_status_t ft_post_get_bcopy(ft_client_t *client, const ft_op_t *op,
                                      ft_done_t *done)
{
    return uct_ep_get_bcopy(client->ep, ft_unpack, done, op->length,
                            ft_remote(client, op), client->rkey.rkey,
                            &done->comp);
}

static ucs_status_t ft_post_get_zcopy(ft_client_t *client, const ft_op_t *op,
                                      ft_done_t *done)
{
    uct_iov_t iov = ft_iov(client, done->local, op->length);

    return uct_ep_get_zcopy(client->ep, &iov, 1, ft_remote(client, op),
                            client->rkey.rkey, &done->comp);
}

/* The first word of a message's contents is UCT's header */
static ucs_status_t ft_post_am_short(ft_client_t *client, const ft_op_t *op,
                                     ft_done_t *done)
{
    return uct_ep_am_short(client->ep, FT_AM_ID, *(uint64_t*)done->local,
                           done->local + sizeof(uint64_t),
                           op->length - sizeof(uint64_t));
}

static ucs_status_t ft_post_am_bcopy(ft_client_t *client, const ft_op_t *op,
                                     ft_done_t *done)
{
    ssize_t ret = uct_ep_am_bcopy(client->ep, FT_AM_ID, ft_pack, done, 0);

    return (ret >= 0) ? UCS_OK : (ucs_status_t)ret;
}

static ucs_status_t ft_post_am_zcopy(ft_client_t *client, const ft_op_t *op,
                                     ft_done_t *done)
{
    uct_iov_t iov = ft_iov(client, done->local + sizeof(uint64_t),
                           op->length - sizeof(uint64_t));

    return uct_ep_am_zcopy(client->ep, FT_AM_ID, done->local, sizeof(uint64_t),
                           &iov, 1, 0, &done->comp);
}

static ucs_status_t ft_post_flush(ft_client_t *client, const ft_op_t *op,
                                  ft_done_t *done)
{
    return uct_ep_flush(client->ep, 0, &done->comp);
}

static ucs_status_t ft_post_fence(ft_client_t *client, const ft_op_t *op,
                                  ft_done_t *done)
{
    return uct_ep_fence(client->ep, 0);
}

typedef ucs_status_t (*ft_post_func_t)(ft_client_t *client, const ft_op_t *op,
                                       ft_done_t *done);

static const ft_post_func_t ft_posts[FT_KIND_LAST] = {
    [FT_PUT_SHORT] = ft_post_put_short,
    [FT_PUT_BCOPY] = ft_post_put_bcopy,
    [FT_PUT_ZCOPY] = ft_post_put_zcopy,
    [FT_GET_BCOPY] = ft_post_get_bcopy,
    [FT_GET_ZCOPY] = ft_post_get_zcopy,
    [FT_AM_SHORT]  = ft_post_am_short,
    [FT_AM_BCOPY]  = ft_post_am_bcopy,
    [FT_AM_ZCOPY]  = ft_post_am_zcopy,
    [FT_FLUSH]     = ft_post_flush,
    [FT_FENCE]     = ft_post_fence
};

ucs_status_t ft_op_post(ft_client_t *client, ft_kind_t kind, const ft_op_t *op,
                        ft_done_t *done)
{
    return ft_posts[kind](client, op, done);
}
