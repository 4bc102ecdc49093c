/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Messages that do not fit a datagram: cutting them into fragments, and putting these
 * together again. Datagrams may be lost, come twice or overtake each other; if one is
 * missing, the message is lost, and its sender asks again.
 *
 * Anybody may send datagrams, and a message may carry a secret. So a message that is
 * handed over consists of bytes that one source has sent for it, each exactly once:
 *
 *   - all parts but the last have the same size (the tile), and part i is at i tiles.
 *     Each part says so by itself, and all must agree: there is neither an overlap nor a
 *     hole, in which bytes of the message that was here before would be left.
 *   - parts belong together only if the NIC says that they are from the same queue pair.
 *   - the message ends with a check of the whole, which depends on its number: if a sender
 *     gives parts of two messages one number, or changes what the NIC has not read yet,
 *     nothing is handed over.
 *
 * Messages of other wire versions are handed over without the check, which they may not
 * have: nothing but the version may be read in them.
 */
#ifndef UCT_VARUNA_FRAG_H_
#define UCT_VARUNA_FRAG_H_

#include "varuna_wire.h"

#include <ucs/datastruct/list.h>
#include <ucs/sys/math.h>
#include <ucs/type/status.h>

/* Bytes of a message at most, without and with its check, and fragments of it with the
 * smallest datagrams (256) */
#define UCT_VARUNA_FRAG_MAX_MSG      4096
#define UCT_VARUNA_FRAG_MAX_LENGTH   (UCT_VARUNA_FRAG_MAX_MSG + \
                                      sizeof(uct_varuna_frag_sum_t))
#define UCT_VARUNA_FRAG_MAX          20

/* Memory of all incomplete messages, and those of one source: it sends one after the
 * other, so what is older than a few will not be completed */
#define UCT_VARUNA_FRAG_MAX_BYTES    (4 * UCS_MBYTE)
#define UCT_VARUNA_FRAG_MAX_SAME     4

/* Of the GRH before a datagram */
#define UCT_VARUNA_FRAG_GRH_LEN      40

/* The queue pair that has sent a datagram, as the NIC says. Compared as bytes. */
typedef struct uct_varuna_frag_source {
    uint8_t                    gid[16];    /* 0: without a GRH */
    uint32_t                   qp_num;
    uint32_t                   lid;
} uct_varuna_frag_source_t;

/* Incomplete messages of all sources; of one source they are a uct_varuna_frag_peer_t */
typedef struct uct_varuna_frags {
    struct kh_uct_varuna_frag_peers_s *peers;
    ucs_list_link_t            open;       /* uct_varuna_frag_msg_t, oldest first */
    size_t                     bytes;      /* Of memory that they take */
    struct uct_varuna_frag_msg *done;      /* The one that was handed over last */
} uct_varuna_frags_t;

/** @return Bytes of a message in each datagram of @a mtu bytes; 0: too few for
 *          UCT_VARUNA_FRAG_MAX fragments. */
size_t uct_varuna_frag_room(size_t mtu);

/** @return How many fragments a message of @a length bytes has. */
unsigned uct_varuna_frag_count(size_t room, size_t length);

/**
 * Add the check to a message, and write the headers of all its fragments.
 *
 * @param [out]   hdrs    UCT_VARUNA_FRAG_MAX of them.
 * @param [inout] data    The message; there is room for UCT_VARUNA_FRAG_MAX_LENGTH bytes.
 * @param [in]    number  Of the message; no other of this sender has it.
 * @param [in]    room    As uct_varuna_frag_room() says.
 * @param [in]    length  Of the message, up to UCT_VARUNA_FRAG_MAX_MSG.
 *
 * @return uct_varuna_frag_count().
 */
unsigned uct_varuna_frag_cut(uct_varuna_frag_hdr_t *hdrs, void *data, uint64_t sender,
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

/** Start without messages. */
ucs_status_t uct_varuna_frags_init(uct_varuna_frags_t *frags);

/** Forget all. */
void uct_varuna_frags_cleanup(uct_varuna_frags_t *frags);

/**
 * Take a datagram, which may be anything. If there is no place for a new message, the
 * oldest one makes room: of the same source if it has UCT_VARUNA_FRAG_MAX_SAME already,
 * else of all, until they take UCT_VARUNA_FRAG_MAX_BYTES.
 *
 * @param [in]  source    As uct_varuna_frag_source_init() says.
 * @param [out] am_id_p   Of the message.
 * @param [out] msg_p     The message, if it is complete: in the datagram, or a copy that is
 *                        valid until the next call.
 * @param [out] length_p  Its length.
 *
 * @return UCS_OK; UCS_INPROGRESS if more fragments must come; UCS_ERR_INVALID_PARAM if
 *         the datagram is no fragment; UCS_ERR_IO_ERROR if the message is not as it was
 *         sent; UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_varuna_frag_take(uct_varuna_frags_t *frags,
                                  const uct_varuna_frag_source_t *source,
                                  void *datagram, size_t size, uint8_t *am_id_p,
                                  void **msg_p, size_t *length_p);

#endif
