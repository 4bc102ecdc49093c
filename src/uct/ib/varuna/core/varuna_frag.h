/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Messages that do not fit a datagram: cutting them into fragments, and putting these
 * together again. Datagrams may be lost or overtake each other; then the message is lost,
 * and its sender asks again.
 *
 * Anybody may send datagrams, and a message may carry a secret. So a message that is
 * handed over consists of bytes that one source has sent for it, each exactly once:
 *
 *   - all parts but the last have the same size (the tile), and part i is at i tiles.
 *     Each part says so by itself, and all must agree: there is neither an overlap nor a
 *     hole, in which bytes of the message that was here before would be left.
 *   - parts belong together only if the NIC says that they are from the same queue pair.
 */
#ifndef UCT_VARUNA_FRAG_H_
#define UCT_VARUNA_FRAG_H_

#include "varuna_wire.h"

#include <ucs/type/status.h>

/* Bytes of a message at most, and fragments of it with the smallest datagrams (256) */
#define UCT_VARUNA_FRAG_MAX_MSG      4096
#define UCT_VARUNA_FRAG_MAX          20

/* Incomplete messages that are kept at once, and those of one source: it sends one after
 * the other, so what is older than a few will not be completed */
#define UCT_VARUNA_FRAG_MAX_OPEN     128
#define UCT_VARUNA_FRAG_MAX_SAME     4

/* Of the GRH before a datagram */
#define UCT_VARUNA_FRAG_GRH_LEN      40

/* The queue pair that has sent a datagram, as the NIC says. Compared as bytes. */
typedef struct uct_varuna_frag_source {
    uint8_t                    gid[16];    /* 0: without a GRH */
    uint32_t                   qp_num;
    uint32_t                   lid;
} uct_varuna_frag_source_t;

typedef struct uct_varuna_frag_msg {
    uct_varuna_frag_source_t   source;
    uint64_t                   sender;
    uint32_t                   number;
    uint32_t                   map;        /* Fragments that have come; 0: free */
    uint32_t                   age;        /* Of its first fragment */
    uint16_t                   length;
    uint16_t                   tile;       /* Size of all fragments but the last */
    uint8_t                    am_id;
} uct_varuna_frag_msg_t;

typedef struct uct_varuna_frags {
    uint32_t                   age;        /* Messages begun so far */
    uct_varuna_frag_msg_t      open[UCT_VARUNA_FRAG_MAX_OPEN];
    char                       data[UCT_VARUNA_FRAG_MAX_OPEN][UCT_VARUNA_FRAG_MAX_MSG];
} uct_varuna_frags_t;

/** @return Bytes of a message in each datagram of @a mtu bytes; 0: too few for
 *          UCT_VARUNA_FRAG_MAX fragments. */
size_t uct_varuna_frag_room(size_t mtu);

/**
 * Write the headers of all fragments of a message.
 *
 * @param [out] hdrs    UCT_VARUNA_FRAG_MAX of them.
 * @param [in]  room    As uct_varuna_frag_room() says.
 * @param [in]  length  Of the message, up to UCT_VARUNA_FRAG_MAX_MSG.
 *
 * @return Their number, at least 1.
 */
unsigned uct_varuna_frag_cut(uct_varuna_frag_hdr_t *hdrs, uint64_t sender,
                             uint32_t number, uint8_t am_id, size_t room,
                             size_t length);

/**
 * Identify the sender of a datagram.
 *
 * @param [in]  grh       UCT_VARUNA_FRAG_GRH_LEN bytes before the datagram, of which the
 *                        NIC has written what it has; NULL if it says that there are none.
 *                        Before an IPv4 header (RoCE v2), it may leave the first 20 as
 *                        they are: they must have been 0.
 * @param [in]  lid       Source LID and
 * @param [in]  qp_num    queue pair, from the completion.
 */
void uct_varuna_frag_source_init(uct_varuna_frag_source_t *source, const void *grh,
                                 uint16_t lid, uint32_t qp_num);

/**
 * Take a datagram, which may be anything. If there is no place for a new message, the
 * oldest one makes room: of the same source if it has UCT_VARUNA_FRAG_MAX_SAME already,
 * else of all.
 *
 * @param [in]  source    As uct_varuna_frag_source_init() says.
 * @param [out] am_id_p   Of the message.
 * @param [out] msg_p     The message, if it is complete. It is valid until the next call.
 * @param [out] length_p  Its length.
 *
 * @return UCS_OK; UCS_INPROGRESS if more fragments must come; UCS_ERR_INVALID_PARAM if
 *         the datagram is no fragment.
 */
ucs_status_t uct_varuna_frag_take(uct_varuna_frags_t *frags,
                                  const uct_varuna_frag_source_t *source,
                                  const void *datagram, size_t size, uint8_t *am_id_p,
                                  const void **msg_p, size_t *length_p);

#endif
