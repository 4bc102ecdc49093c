/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Fragments of messages. See varuna_frag.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_frag.h"

#include <ucs/debug/assert.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>
#include <string.h>

UCT_VARUNA_STATIC_ASSERT(UCT_VARUNA_FRAG_MAX <= 32); /* Bits of the map */

size_t uct_varuna_frag_room(size_t mtu)
{
    size_t room = (mtu > sizeof(uct_varuna_frag_hdr_t)) ?
                  (mtu - sizeof(uct_varuna_frag_hdr_t)) : 0;

    return ((room * UCT_VARUNA_FRAG_MAX) < UCT_VARUNA_FRAG_MAX_MSG) ? 0 : room;
}

unsigned uct_varuna_frag_cut(uct_varuna_frag_hdr_t *hdrs, uint64_t sender,
                             uint32_t number, uint8_t am_id, size_t room,
                             size_t length)
{
    unsigned count = ucs_max(ucs_div_round_up(length, room), 1);
    unsigned i;

    ucs_assert((length <= UCT_VARUNA_FRAG_MAX_MSG) && (count <= UCT_VARUNA_FRAG_MAX));
    for (i = 0; i < count; ++i) {
        hdrs[i].magic   = UCT_VARUNA_WIRE_MAGIC;
        hdrs[i].version = UCT_VARUNA_WIRE_VERSION;
        hdrs[i].am_id   = am_id;
        hdrs[i].number  = number;
        hdrs[i].sender  = sender;
        hdrs[i].length  = length;
        hdrs[i].offset  = i * room;
        hdrs[i].size    = ucs_min(room, length - (i * room));
        hdrs[i].index   = i;
    }

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

/* @return The size of all parts but the last, 0 if the part is at no multiple of it. The
 * last part may come first: its offset is that of all others together. */
static unsigned uct_varuna_frag_tile(const uct_varuna_frag_hdr_t *hdr)
{
    int is_last   = (hdr->offset + hdr->size) == hdr->length;
    unsigned tile = hdr->size;

    if (is_last && (hdr->index > 0)) {
        tile = hdr->offset / hdr->index;
    }

    return ((hdr->index * tile) == hdr->offset) && (hdr->size <= tile) ? tile : 0;
}

static int uct_varuna_frag_is_valid(const uct_varuna_frag_hdr_t *hdr, size_t size)
{
    if ((size < sizeof(*hdr)) || (hdr->magic != UCT_VARUNA_WIRE_MAGIC) ||
        (hdr->size != (size - sizeof(*hdr))) ||
        (hdr->length > UCT_VARUNA_FRAG_MAX_MSG)) {
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

static int uct_varuna_frag_is_of(const uct_varuna_frag_msg_t *msg,
                                 const uct_varuna_frag_source_t *source)
{
    return (msg->map != 0) && (memcmp(&msg->source, source, sizeof(*source)) == 0);
}

/* @return The older one, or one that is free. */
static uct_varuna_frag_msg_t *
uct_varuna_frag_older(uct_varuna_frag_msg_t *a, uct_varuna_frag_msg_t *b)
{
    if ((a == NULL) || (b == NULL) || (a->map == 0)) {
        return (a == NULL) ? b : a;
    }

    return ((b->map == 0) || ((int32_t)(b->age - a->age) < 0)) ? b : a;
}

/* @return The message of a fragment, or the place for a new one. */
static uct_varuna_frag_msg_t *
uct_varuna_frag_find(uct_varuna_frags_t *frags, const uct_varuna_frag_source_t *source,
                     const uct_varuna_frag_hdr_t *hdr)
{
    uct_varuna_frag_msg_t *place = NULL;
    uct_varuna_frag_msg_t *same  = NULL;
    unsigned num_same            = 0;
    uct_varuna_frag_msg_t *msg;

    for (msg = frags->open; msg < &frags->open[UCT_VARUNA_FRAG_MAX_OPEN]; ++msg) {
        if (uct_varuna_frag_is_of(msg, source)) {
            if ((msg->sender == hdr->sender) && (msg->number == hdr->number)) {
                return msg;
            }

            ++num_same;
            same = uct_varuna_frag_older(same, msg);
        }

        place = uct_varuna_frag_older(place, msg);
    }

    if (num_same >= UCT_VARUNA_FRAG_MAX_SAME) {
        place = same;
    }

    place->source = *source;
    place->sender = hdr->sender;
    place->number = hdr->number;
    place->length = hdr->length;
    place->tile   = uct_varuna_frag_tile(hdr);
    place->am_id  = hdr->am_id;
    place->map    = 0;
    place->age    = frags->age++;
    return place;
}

ucs_status_t uct_varuna_frag_take(uct_varuna_frags_t *frags,
                                  const uct_varuna_frag_source_t *source,
                                  const void *datagram, size_t size, uint8_t *am_id_p,
                                  const void **msg_p, size_t *length_p)
{
    const uct_varuna_frag_hdr_t *hdr = datagram;
    uct_varuna_frag_msg_t *msg;
    char *data;

    if (!uct_varuna_frag_is_valid(hdr, size)) {
        return UCS_ERR_INVALID_PARAM;
    }

    *am_id_p  = hdr->am_id;
    *length_p = hdr->length;
    if (hdr->size == hdr->length) {
        *msg_p = hdr + 1;
        return UCS_OK;
    }

    msg = uct_varuna_frag_find(frags, source, hdr);
    if ((msg->length != hdr->length) || (msg->tile != uct_varuna_frag_tile(hdr)) ||
        (msg->am_id != hdr->am_id)) {
        return UCS_ERR_INVALID_PARAM;
    }

    /* One that has come before changes nothing */
    if (!(msg->map & UCS_BIT(hdr->index))) {
        data = frags->data[msg - frags->open];
        memcpy(data + hdr->offset, hdr + 1, hdr->size);
        msg->map |= UCS_BIT(hdr->index);
        if (msg->map == UCS_MASK(ucs_div_round_up(msg->length, msg->tile))) {
            msg->map = 0;
            *msg_p   = data;
            return UCS_OK;
        }
    }

    return UCS_INPROGRESS;
}
