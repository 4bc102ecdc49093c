/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Messages that do not fit a datagram: cutting them into fragments, and putting these
 * together again. Datagrams may be lost or overtake each other; then the message is lost,
 * and its sender asks again.
 */
#ifndef UCT_VARUNA_FRAG_H_
#define UCT_VARUNA_FRAG_H_

#include "varuna_wire.h"

#include <ucs/type/status.h>

/* Bytes of a message at most, and fragments of it with the smallest datagrams (256) */
#define UCT_VARUNA_FRAG_MAX_MSG      4096
#define UCT_VARUNA_FRAG_MAX          20

/* Incomplete messages that are kept at once; each process sends one at a time */
#define UCT_VARUNA_FRAG_MAX_OPEN     16

typedef struct uct_varuna_frag_msg {
    uint64_t                   sender;
    uint32_t                   number;
    uint32_t                   map;        /* Fragments that have come; 0: free */
    uint32_t                   age;        /* Of its first fragment */
    uint16_t                   length;
    uint16_t                   received;   /* Bytes */
    char                       data[UCT_VARUNA_FRAG_MAX_MSG];
} uct_varuna_frag_msg_t;

typedef struct uct_varuna_frags {
    uint32_t                   age;        /* Messages begun so far */
    uct_varuna_frag_msg_t      open[UCT_VARUNA_FRAG_MAX_OPEN];
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
 * Take a datagram, which may be anything.
 *
 * @param [out] am_id_p   Of the message.
 * @param [out] msg_p     The message, if it is complete. It is valid until the next call.
 * @param [out] length_p  Its length.
 *
 * @return UCS_OK; UCS_INPROGRESS if more fragments must come; UCS_ERR_INVALID_PARAM if
 *         the datagram is no fragment.
 */
ucs_status_t uct_varuna_frag_take(uct_varuna_frags_t *frags, const void *datagram,
                                  size_t size, uint8_t *am_id_p, const void **msg_p,
                                  size_t *length_p);

#endif
