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

static int uct_varuna_frag_is_valid(const uct_varuna_frag_hdr_t *hdr, size_t size)
{
    return (size >= sizeof(*hdr)) && (hdr->magic == UCT_VARUNA_WIRE_MAGIC) &&
           (hdr->size == (size - sizeof(*hdr))) &&
           (hdr->length <= UCT_VARUNA_FRAG_MAX_MSG) &&
           ((hdr->offset + hdr->size) <= hdr->length) &&
           (hdr->index < UCT_VARUNA_FRAG_MAX) &&
           ((hdr->size > 0) || (hdr->length == 0));
}

/* @return The message of a fragment, or the place for a new one: the oldest makes room. */
static uct_varuna_frag_msg_t *
uct_varuna_frag_find(uct_varuna_frags_t *frags, const uct_varuna_frag_hdr_t *hdr)
{
    uct_varuna_frag_msg_t *place = NULL;
    uct_varuna_frag_msg_t *msg;

    for (msg = frags->open; msg < &frags->open[UCT_VARUNA_FRAG_MAX_OPEN]; ++msg) {
        if ((msg->map != 0) && (msg->sender == hdr->sender) &&
            (msg->number == hdr->number)) {
            return (msg->length == hdr->length) ? msg : NULL;
        }

        if ((place == NULL) || ((place->map != 0) &&
                                ((msg->map == 0) ||
                                 ((int32_t)(msg->age - place->age) < 0)))) {
            place = msg;
        }
    }

    place->sender   = hdr->sender;
    place->number   = hdr->number;
    place->length   = hdr->length;
    place->map      = 0;
    place->received = 0;
    place->age      = frags->age++;
    return place;
}

ucs_status_t uct_varuna_frag_take(uct_varuna_frags_t *frags, const void *datagram,
                                  size_t size, uint8_t *am_id_p, const void **msg_p,
                                  size_t *length_p)
{
    const uct_varuna_frag_hdr_t *hdr = datagram;
    uct_varuna_frag_msg_t *msg;

    if (!uct_varuna_frag_is_valid(hdr, size)) {
        return UCS_ERR_INVALID_PARAM;
    }

    *am_id_p  = hdr->am_id;
    *length_p = hdr->length;
    if (hdr->size == hdr->length) {
        *msg_p = hdr + 1;
        return UCS_OK;
    }

    msg = uct_varuna_frag_find(frags, hdr);
    if (msg == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }

    if (msg->map & UCS_BIT(hdr->index)) {
        return UCS_INPROGRESS; /* It has come before */
    }

    /* What a sender lies about is its own message */
    memcpy(msg->data + hdr->offset, hdr + 1, hdr->size);
    msg->map      |= UCS_BIT(hdr->index);
    msg->received += hdr->size;
    if (msg->received < msg->length) {
        return UCS_INPROGRESS;
    }

    msg->map = 0;
    *msg_p   = msg->data;
    return UCS_OK;
}
