/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Fragments of messages: cutting, and what one fragment says. varuna_frags.c puts them
 * together. See varuna_frag.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_frag_priv.h"
#include "varuna_secret.h"

#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>
#include <string.h>

size_t uct_varuna_frag_room(size_t mtu)
{
    size_t room = (mtu > sizeof(uct_varuna_frag_hdr_t)) ?
                  (mtu - sizeof(uct_varuna_frag_hdr_t)) : 0;

    return ((room * UCT_VARUNA_FRAG_MAX) < UCT_VARUNA_FRAG_MAX_LENGTH) ? 0 : room;
}

unsigned uct_varuna_frag_count(size_t room, size_t length)
{
    return ucs_div_round_up(length + sizeof(uct_varuna_frag_sum_t), room);
}

/* The length is a part of the digest */
static uct_varuna_frag_sum_t
uct_varuna_frag_sum(const uct_varuna_frag_hdr_t *hdr, const void *data, size_t length)
{
    const uct_varuna_secret_key_t key = {
        .words = {hdr->sender, ((uint64_t)hdr->am_id << 32) | hdr->number}
    };

    return uct_varuna_secret_digest(&key, data, length);
}

unsigned uct_varuna_frag_cut(uct_varuna_frag_hdr_t *hdrs, void *data, uint64_t sender,
                             uint32_t number, uint8_t am_id, size_t room, size_t length)
{
    size_t total   = length + sizeof(uct_varuna_frag_sum_t);
    unsigned count = uct_varuna_frag_count(room, length);
    uct_varuna_frag_sum_t sum;
    unsigned i;

    ucs_assert((length <= UCT_VARUNA_FRAG_MAX_MSG) && (count <= UCT_VARUNA_FRAG_MAX));
    for (i = 0; i < count; ++i) {
        hdrs[i].magic   = UCT_VARUNA_WIRE_MAGIC;
        hdrs[i].version = UCT_VARUNA_WIRE_VERSION;
        hdrs[i].am_id   = am_id;
        hdrs[i].number  = number;
        hdrs[i].sender  = sender;
        hdrs[i].length  = total;
        hdrs[i].offset  = i * room;
        hdrs[i].size    = ucs_min(room, total - (i * room));
        hdrs[i].index   = i;
    }

    sum = uct_varuna_frag_sum(&hdrs[0], data, length);
    memcpy(UCS_PTR_BYTE_OFFSET(data, length), &sum, sizeof(sum));
    return count;
}

void uct_varuna_frag_source_init(uct_varuna_frag_source_t *source, const void *grh,
                                 uint16_t lid, uint32_t qp_num)
{
    const uint8_t *bytes = grh;

    memset(source, 0, sizeof(*source));
    source->qp_num = qp_num;
    source->lid    = lid;
    if (grh == NULL) {
        return;
    }

    if ((bytes[0] >> 4) == 6) {
        memcpy(source->gid, bytes + 8, sizeof(source->gid));
    } else {
        /* The source in an IPv4 header, which ends where the GRH does */
        memset(source->gid + 10, 0xff, 2);
        memcpy(source->gid + 12, bytes + 32, 4);
    }
}

unsigned uct_varuna_frag_tile(const uct_varuna_frag_hdr_t *hdr)
{
    int is_last   = (hdr->offset + hdr->size) == hdr->length;
    unsigned tile = hdr->size;

    if (is_last && (hdr->index > 0)) {
        tile = hdr->offset / hdr->index;
    }

    return ((hdr->index * tile) == hdr->offset) && (hdr->size <= tile) ? tile : 0;
}

int uct_varuna_frag_is_valid(const uct_varuna_frag_hdr_t *hdr, size_t size)
{
    if ((size < sizeof(*hdr)) || (hdr->magic != UCT_VARUNA_WIRE_MAGIC) ||
        (hdr->size != (size - sizeof(*hdr))) ||
        (hdr->length > UCT_VARUNA_FRAG_MAX_LENGTH)) {
        return 0;
    }

    if (hdr->length == 0) {
        return (hdr->size == 0) && (hdr->offset == 0) && (hdr->index == 0);
    }

    return (hdr->size > 0) && ((hdr->offset + hdr->size) <= hdr->length) &&
           (hdr->index < UCT_VARUNA_FRAG_MAX) && (uct_varuna_frag_tile(hdr) > 0) &&
           (ucs_div_round_up(hdr->length, uct_varuna_frag_tile(hdr)) <=
            UCT_VARUNA_FRAG_MAX);
}

ucs_status_t uct_varuna_frag_check(const uct_varuna_frag_hdr_t *hdr, const void *data,
                                   size_t *length_p)
{
    uct_varuna_frag_sum_t sum;

    *length_p = hdr->length;
    if (hdr->version != UCT_VARUNA_WIRE_VERSION) {
        return UCS_OK;
    }

    if (hdr->length < sizeof(sum)) {
        return UCS_ERR_INVALID_PARAM;
    }

    *length_p = hdr->length - sizeof(sum);
    memcpy(&sum, UCS_PTR_BYTE_OFFSET(data, *length_p), sizeof(sum));
    return (sum == uct_varuna_frag_sum(hdr, data, *length_p)) ? UCS_OK : UCS_ERR_IO_ERROR;
}
