/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Fragments of messages: cutting, and putting them together. See varuna_frag.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_frag.h"
#include "varuna_numbers.h"

#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>
#include <string.h>
#include <ucs/datastruct/khash.h>
#include <ucs/debug/memtrack_int.h>
#include <stddef.h>

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

/** @return The size of all parts but the last, 0 if the part is at no multiple of it. The
 *  last part may come first: its offset is that of all others together. */
static unsigned uct_varuna_frag_tile(const uct_varuna_frag_hdr_t *hdr)
{
    int is_last   = (hdr->offset + hdr->size) == hdr->length;
    unsigned tile = hdr->size;

    if (is_last && (hdr->index > 0)) {
        tile = hdr->offset / hdr->index;
    }

    return ((hdr->index * tile) == hdr->offset) && (hdr->size <= tile) ? tile : 0;
}

/** @return Whether a datagram of @a size bytes is a part of a message. */
static int uct_varuna_frag_is_valid(const uct_varuna_frag_hdr_t *hdr, size_t size)
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

/**
 * Check a complete message.
 *
 * @param [in]  hdr       Of any of its fragments.
 * @param [in]  data      The message, and its check.
 * @param [out] length_p  Its length without the check.
 *
 * @return UCS_ERR_IO_ERROR if it is not as it was sent, UCS_ERR_INVALID_PARAM if it is too
 *         short.
 */
static ucs_status_t uct_varuna_frag_check(const uct_varuna_frag_hdr_t *hdr,
                                          const void *data, size_t *length_p)
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

/* --- Putting fragments together --- */

/*
 *     peers: source -> uct_varuna_frag_peer_t --> up to FRAG_MAX_SAME messages
 *     open:  messages of all sources, oldest first
 *
 * A source has a place while one of its messages is incomplete, so a process may have
 * thousands of peers: memory is limited by what is incomplete at one time. */

UCT_VARUNA_STATIC_ASSERT(UCT_VARUNA_FRAG_MAX <= 32); /* Bits of the map */

typedef struct uct_varuna_frag_peer uct_varuna_frag_peer_t;

typedef struct uct_varuna_frag_msg {
    ucs_list_link_t            list;
    uct_varuna_frag_peer_t     *peer;
    uint64_t                   sender;
    uint32_t                   number;
    uint32_t                   map;        /* Fragments that have come */
    uint16_t                   length;
    uint16_t                   tile;       /* Size of all fragments but the last */
    uint8_t                    am_id;
    uint8_t                    version;
    char                       data[];
} uct_varuna_frag_msg_t;

/* A source with incomplete messages */
struct uct_varuna_frag_peer {
    uct_varuna_frag_source_t   source;
    unsigned                   num;
    uct_varuna_frag_msg_t      *msgs[UCT_VARUNA_FRAG_MAX_SAME]; /* Oldest first */
};

static inline khint_t uct_varuna_frag_source_hash(uct_varuna_frag_source_t source)
{
    static const uct_varuna_secret_key_t key = {.words = {0, 0}};

    return uct_varuna_secret_digest(&key, &source, sizeof(source));
}

static inline int uct_varuna_frag_source_equal(uct_varuna_frag_source_t a,
                                               uct_varuna_frag_source_t b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

KHASH_INIT(uct_varuna_frag_peers, uct_varuna_frag_source_t, uct_varuna_frag_peer_t*, 1,
           uct_varuna_frag_source_hash, uct_varuna_frag_source_equal)

ucs_status_t uct_varuna_frags_init(uct_varuna_frags_t *frags)
{
    memset(frags, 0, sizeof(*frags));
    ucs_list_head_init(&frags->open);
    frags->peers = kh_init(uct_varuna_frag_peers);
    return (frags->peers == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

static size_t uct_varuna_frag_msg_bytes(size_t length)
{
    return sizeof(uct_varuna_frag_msg_t) + sizeof(uct_varuna_frag_peer_t) + length;
}

static uct_varuna_frag_peer_t *
uct_varuna_frag_peer_find(uct_varuna_frags_t *frags,
                          const uct_varuna_frag_source_t *source)
{
    khiter_t iter = kh_get(uct_varuna_frag_peers, frags->peers, *source);

    return (iter == kh_end(frags->peers)) ? NULL : kh_val(frags->peers, iter);
}

static uct_varuna_frag_peer_t *
uct_varuna_frag_peer_get(uct_varuna_frags_t *frags,
                         const uct_varuna_frag_source_t *source)
{
    uct_varuna_frag_peer_t *peer = uct_varuna_frag_peer_find(frags, source);
    khiter_t iter;
    int ret;

    if (peer != NULL) {
        return peer;
    }

    peer = ucs_calloc(1, sizeof(*peer), "varuna_frag_peer");
    if (peer == NULL) {
        return NULL;
    }

    iter = kh_put(uct_varuna_frag_peers, frags->peers, *source, &ret);
    if (ret < 0) {
        ucs_free(peer);
        return NULL;
    }

    peer->source               = *source;
    kh_val(frags->peers, iter) = peer;
    return peer;
}

static void uct_varuna_frag_peer_put(uct_varuna_frags_t *frags,
                                     uct_varuna_frag_peer_t *peer)
{
    if (peer->num == 0) {
        kh_del(uct_varuna_frag_peers, frags->peers,
               kh_get(uct_varuna_frag_peers, frags->peers, peer->source));
        ucs_free(peer);
    }
}

/* The message itself stays: the caller uses or releases it */
static void uct_varuna_frag_msg_remove(uct_varuna_frags_t *frags,
                                       uct_varuna_frag_msg_t *msg)
{
    uct_varuna_frag_peer_t *peer = msg->peer;
    unsigned i                   = 0;

    while (peer->msgs[i] != msg) {
        ++i;
    }

    --peer->num;
    memmove(&peer->msgs[i], &peer->msgs[i + 1], (peer->num - i) * sizeof(peer->msgs[0]));
    uct_varuna_frag_peer_put(frags, peer);
    ucs_list_del(&msg->list);
    frags->bytes -= uct_varuna_frag_msg_bytes(msg->length);
}

static void uct_varuna_frag_msg_drop(uct_varuna_frags_t *frags, uct_varuna_frag_msg_t *msg)
{
    uct_varuna_frag_msg_remove(frags, msg);
    ucs_free(msg);
}

static void uct_varuna_frag_drop_oldest(uct_varuna_frags_t *frags)
{
    UCT_VARUNA_STATIC_ASSERT(offsetof(uct_varuna_frag_msg_t, list) == 0);

    /* Not by ucs_list_head(), to which the sanitizers object */
    uct_varuna_frag_msg_drop(frags, (uct_varuna_frag_msg_t*)frags->open.next);
}

void uct_varuna_frags_cleanup(uct_varuna_frags_t *frags)
{
    while (!ucs_list_is_empty(&frags->open)) {
        uct_varuna_frag_drop_oldest(frags);
    }

    ucs_free(frags->done);
    kh_destroy(uct_varuna_frag_peers, frags->peers);
}

static uct_varuna_frag_msg_t *
uct_varuna_frag_msg_find(const uct_varuna_frag_peer_t *peer,
                         const uct_varuna_frag_hdr_t *hdr)
{
    unsigned i;

    for (i = 0; (peer != NULL) && (i < peer->num); ++i) {
        if ((peer->msgs[i]->sender == hdr->sender) &&
            (peer->msgs[i]->number == hdr->number)) {
            return peer->msgs[i];
        }
    }

    return NULL;
}

/* For a new message. If a source has lost its last one, it is forgotten. */
static void uct_varuna_frag_make_room(uct_varuna_frags_t *frags,
                                      const uct_varuna_frag_peer_t *peer, size_t length)
{
    UCT_VARUNA_STATIC_ASSERT(UCT_VARUNA_FRAG_MAX_SAME > 1);

    if ((peer != NULL) && (peer->num == UCT_VARUNA_FRAG_MAX_SAME)) {
        uct_varuna_frag_msg_drop(frags, peer->msgs[0]);
    }

    while ((frags->bytes + uct_varuna_frag_msg_bytes(length)) >
           UCT_VARUNA_FRAG_MAX_BYTES) {
        uct_varuna_frag_drop_oldest(frags);
    }
}

static uct_varuna_frag_msg_t *
uct_varuna_frag_msg_new(uct_varuna_frags_t *frags, const uct_varuna_frag_source_t *source,
                        const uct_varuna_frag_hdr_t *hdr)
{
    uct_varuna_frag_peer_t *peer;
    uct_varuna_frag_msg_t *msg;

    msg = ucs_malloc(sizeof(*msg) + hdr->length, "varuna_frag_msg");
    if (msg == NULL) {
        return NULL;
    }

    peer = uct_varuna_frag_peer_get(frags, source);
    if (peer == NULL) {
        ucs_free(msg);
        return NULL;
    }

    msg->peer               = peer;
    msg->sender             = hdr->sender;
    msg->number             = hdr->number;
    msg->map                = 0;
    msg->length             = hdr->length;
    msg->tile               = uct_varuna_frag_tile(hdr);
    msg->am_id              = hdr->am_id;
    msg->version            = hdr->version;
    peer->msgs[peer->num++] = msg;
    ucs_list_add_tail(&frags->open, &msg->list);
    frags->bytes           += uct_varuna_frag_msg_bytes(msg->length);
    return msg;
}

/* @return The message of a fragment, a new one if it is the first. */
static uct_varuna_frag_msg_t *
uct_varuna_frag_msg_get(uct_varuna_frags_t *frags, const uct_varuna_frag_source_t *source,
                        const uct_varuna_frag_hdr_t *hdr)
{
    uct_varuna_frag_peer_t *peer = uct_varuna_frag_peer_find(frags, source);
    uct_varuna_frag_msg_t *msg   = uct_varuna_frag_msg_find(peer, hdr);

    if (msg != NULL) {
        return msg;
    }

    uct_varuna_frag_make_room(frags, peer, hdr->length);
    return uct_varuna_frag_msg_new(frags, source, hdr);
}

ucs_status_t uct_varuna_frag_take(uct_varuna_frags_t *frags,
                                  const uct_varuna_frag_source_t *source,
                                  void *datagram, size_t size, uint8_t *am_id_p,
                                  void **msg_p, size_t *length_p)
{
    uct_varuna_frag_hdr_t *hdr = datagram;
    uct_varuna_frag_msg_t *msg;

    if (!uct_varuna_frag_is_valid(hdr, size)) {
        return UCS_ERR_INVALID_PARAM;
    }

    *am_id_p = hdr->am_id;
    if (hdr->size == hdr->length) {
        *msg_p = hdr + 1;
        return uct_varuna_frag_check(hdr, *msg_p, length_p);
    }

    msg = uct_varuna_frag_msg_get(frags, source, hdr);
    if (msg == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    if ((msg->length != hdr->length) || (msg->tile != uct_varuna_frag_tile(hdr)) ||
        (msg->am_id != hdr->am_id) || (msg->version != hdr->version)) {
        return UCS_ERR_INVALID_PARAM;
    }

    /* One that has come before changes nothing */
    if (!(msg->map & UCS_BIT(hdr->index))) {
        memcpy(msg->data + hdr->offset, hdr + 1, hdr->size);
        msg->map |= UCS_BIT(hdr->index);
    }

    if (msg->map != UCS_MASK(ucs_div_round_up(msg->length, msg->tile))) {
        return UCS_INPROGRESS;
    }

    uct_varuna_frag_msg_remove(frags, msg);
    ucs_free(frags->done);
    frags->done = msg;
    *msg_p      = msg->data;
    return uct_varuna_frag_check(hdr, *msg_p, length_p);
}
