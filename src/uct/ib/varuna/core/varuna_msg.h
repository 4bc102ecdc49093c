/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What peers send, addresses and control messages: their form, and their checks. Pure: bytes
 * in, verdict out; the caller informs the user.
 */
#ifndef UCT_VARUNA_MSG_H_
#define UCT_VARUNA_MSG_H_

#include "varuna_wire.h"

#include <ucs/sys/math.h>
#include <string.h>
#include <stddef.h>

/* --- Addresses --- */

/* Checks of the addresses that a peer publishes, before they are used. */

/* One link entry of an interface address; the pointers are into the address, or,
 * if that is short, into the parsed one. */
typedef struct uct_varuna_parsed_link {
    uint8_t                    nic;        /* Remote NIC index */
    uint16_t                   generation; /* ... and its generation; 0 in a short address,
                                              which does not say it */
    uint8_t                    dc_len;
    uint8_t                    ctl_len;
    uint8_t                    device_len;
    const void                 *device_addr;
    const void                 *dc_addr;   /* NULL: a short address has none */
    const void                 *ctl_addr;
    const char                 *name;      /* Of its port, name_len printable characters.
                                              A short address has none */
    uint8_t                    name_len;
    uint8_t                    is_named;   /* By its user */
} uct_varuna_parsed_link_t;

typedef struct uct_varuna_parsed_addr {
    uint64_t                   uuid;
    size_t                     length;     /* Bytes used */
    unsigned                   num_links;
    int                        is_short;   /* There may be more links */
    int                        is_limited; /* Other interfaces of the process may have
                                              others */
    uct_varuna_parsed_link_t   links[UCT_VARUNA_MAX_LINKS];
    struct {
        char                   device[UCT_VARUNA_DEVICE_ADDR_MAX];
        char                   ctl[UCT_VARUNA_CTL_ADDR_MAX];
    } room[UCT_VARUNA_MAX_LINKS];          /* Addresses of a short address */
} uct_varuna_parsed_addr_t;

/**
 * Parse an interface address.
 *
 * @param [in]  device_addr  The UCT device address that belongs to it, or NULL if it
 *                           must be a full one. A short address contains its length.
 * @param [in]  addr         Interface address.
 * @param [in]  length       Its length, or SIZE_MAX where the caller cannot know: it
 *                           is then at most UCT_VARUNA_IFACE_ADDR_MAX.
 * @param [out] parsed       Filled in case of success; not to be copied.
 * @param [out] reason_p     A sentence for the user in case of failure.
 *
 * @return UCS_ERR_UNSUPPORTED for another wire version,
 *         UCS_ERR_INVALID_ADDR if it is malformed.
 */
ucs_status_t uct_varuna_parse_addr(const void *device_addr, const void *addr,
                                   size_t length,
                                   uct_varuna_parsed_addr_t *parsed,
                                   const char **reason_p);

/** @return Length of a packed key, as its header says. */
static inline size_t uct_varuna_rkey_length(const void *buffer)
{
    const uct_varuna_packed_rkey_t *packed = (const uct_varuna_packed_rkey_t*)buffer;

    return sizeof(*packed) + (packed->num_keys * packed->key_size);
}

/** @return Nonzero if @a addr is an interface address of @a uuid. */
int uct_varuna_parse_addr_is_of(const void *addr, uint64_t uuid);

/* --- Addresses that differ little --- */

/* Addresses that differ little from another one: only the bytes which differ are
 * written, after a bit map of them. So the links of a host, whose addresses are
 * similar, fit into the few bytes that UCP has for an address. varuna_ports.c writes them.
 *
 *     base     02 31 00 fe 80 00 01
 *     new      02 34 00 fe 80 00 02
 *     written  42 34 02                  (bits 1 and 6) */

/* Bytes of the bit map */
#define UCT_VARUNA_DELTA_MAP_SIZE(_length)    (((_length) + 7) / 8)

/**
 * Write what makes @a base into @a data.
 *
 * @param [in]  base      What the reader knows.
 * @param [in]  base_len  Its length; bytes after it count as zero.
 * @param [in]  data      What the reader will get.
 * @param [in]  length    Its length, which the reader must know.
 * @param [out] buffer    Where to write.
 * @param [in]  max       Its size.
 *
 * @return Bytes written; 0 if there is not enough room.
 */
size_t uct_varuna_delta_write(const void *base, size_t base_len,
                              const void *data, size_t length, void *buffer,
                              size_t max);

/**
 * Read the output of a peer's uct_varuna_delta_write(), which is not trusted.
 *
 * @param [in]  base      What the writer called so.
 * @param [in]  base_len  Its length.
 * @param [out] data      What was meant, @a length bytes.
 * @param [in]  length    Of @a data.
 * @param [in]  buffer    What was written.
 * @param [in]  max       Its size; no more is read.
 *
 * @return Bytes read; 0 if it is cut off.
 */
size_t uct_varuna_delta_read(const void *base, size_t base_len, void *data,
                             size_t length, const void *buffer, size_t max);

/* --- The reader --- */

/* What the checks of addresses and of messages have in common. */

#define UCT_VARUNA_REASON_VERSION \
    "it speaks another wire version of rc_varuna: install the same rc_varuna " \
    "on all hosts"

#define UCT_VARUNA_REASON_MAGIC \
    "it is not of rc_varuna, or of a host of the other byte order"

/* A cursor over bytes that are not trusted. */
typedef struct uct_varuna_reader {
    const char                 *pos;
    size_t                     left;
} uct_varuna_reader_t;

/** Take @a size bytes. @return NULL if there are fewer. */
static inline const void *
uct_varuna_reader_take(uct_varuna_reader_t *reader, size_t size)
{
    const char *pos = reader->pos;

    if (size > reader->left) {
        return NULL;
    }

    reader->pos  += size;
    reader->left -= size;
    return pos;
}

/* --- Control messages --- */

/* The name of each type, the check of its body, and other facts that do not depend on what
 * the message does. The bus (varuna_bus.h) adds the handlers. */

enum {
    UCT_VARUNA_MSG_FLAG_EPOCH    = UCS_BIT(0), /* It is about one incarnation */
    UCT_VARUNA_MSG_FLAG_FROM     = UCS_BIT(1), /* Its sender's address follows */
    UCT_VARUNA_MSG_FLAG_ANSWER   = UCS_BIT(2), /* It answers a request of its receiver,
                                                  which is repeated if it is lost */
    UCT_VARUNA_MSG_FLAG_FREQUENT = UCS_BIT(3)  /* Not logged at level debug */
};

/* Bounds of a member of a body's fixed part */
typedef struct uct_varuna_msg_field {
    uint16_t                   offset;
    uint8_t                    size;      /* 0: the row has no more */
    uint8_t                    unit;      /* So many bytes follow the fixed part for each of
                                             its value */
    uint64_t                   min;
    uint64_t                   max;       /* Of a negative number: as an unsigned one */
} uct_varuna_msg_field_t;

#define UCT_VARUNA_MSG_MAX_FIELDS    7

/* All that is known of a message type. What peers send is checked by it, and the fuzzers'
 * messages are made by it (test/fuzz/fuzz_msg.h). */
typedef struct uct_varuna_msg_info {
    uint8_t                    type;      /* uct_varuna_ctl_type_t */
    const char                 *name;     /* NULL: there is no such type */
    uint16_t                   size;      /* Of the body's fixed part */
    uint8_t                    flags;     /* UCT_VARUNA_MSG_FLAG_xx */
    uint8_t                    answer;    /* The type that answers it, 0: none */
    uct_varuna_msg_field_t     fields[UCT_VARUNA_MSG_MAX_FIELDS];
    /* What the bounds do not say, or NULL. May take bytes after the fixed part, which then
     * count no more. @return whether it is right */
    int                        (*check)(const void *fixed, uct_varuna_reader_t *rest);
} uct_varuna_msg_info_t;

extern const uct_varuna_msg_info_t uct_varuna_msg_infos[];

/**
 * Check a control message: its header, and that its body is as long as its type
 * and the lengths in it say. Inner addresses and keys are not looked into.
 *
 * @param [in]  data      Message.
 * @param [in]  length    Its length.
 * @param [out] reason_p  A sentence for the user in case of failure.
 *
 * @return UCS_ERR_UNSUPPORTED for another wire version, of which nothing but
 *         the header may be read; UCS_ERR_INVALID_PARAM if it is malformed.
 */
ucs_status_t uct_varuna_parse_ctl(const void *data, size_t length,
                                  const char **reason_p);

/**
 * The address to which the requester of a control message, which has passed the check,
 * wants the answer.
 *
 * @param [in]  data    Message.
 * @param [out] parsed  A short address with one link.
 *
 * @return UCS_ERR_NO_ELEM if the message has no address.
 */
ucs_status_t uct_varuna_parse_ctl_from(const void *data,
                                       uct_varuna_parsed_addr_t *parsed);

/**
 * The same of a message of the wire version before this one, which has not been
 * checked.
 *
 * @param [out] hdr_p   Its header; what it did not have then is 0.
 * @param [out] parsed  A short address with one link.
 *
 * @return UCS_ERR_INVALID_PARAM if it is not such a message, or has no address.
 */
ucs_status_t uct_varuna_parse_ctl_old(const void *data, size_t length,
                                      uct_varuna_ctl_hdr_t *hdr_p,
                                      uct_varuna_parsed_addr_t *parsed);

/** @return What is known of @a type, NULL if there is no such type. */
static inline const uct_varuna_msg_info_t *uct_varuna_msg_info(unsigned type)
{
    return ((type < UCT_VARUNA_CTL_LAST) &&
            (uct_varuna_msg_infos[type].name != NULL)) ?
           &uct_varuna_msg_infos[type] : NULL;
}

/** @return Whether a body is as the row of @a type, which exists, says. */
int uct_varuna_msg_check_body(unsigned type, const void *body, size_t length);

/** @return Value of a member of the fixed part of a body. */
static inline uint64_t
uct_varuna_msg_value(const uct_varuna_msg_field_t *field, const void *fixed)
{
    const void *ptr = UCS_PTR_BYTE_OFFSET(fixed, field->offset);
    union {
        uint8_t                u8;
        uint16_t               u16;
        uint32_t               u32;
        uint64_t               u64;
    } value;

    memcpy(&value, ptr, field->size);
    return (field->size == 1) ? value.u8 : (field->size == 2) ? value.u16 :
           (field->size == 4) ? value.u32 : value.u64;
}

/** @return Name of a control message type, for logs. */
const char *uct_varuna_ctl_type_name(unsigned type);

/** @return Whether @a type is known and has @a flag. */
static inline int uct_varuna_msg_has(unsigned type, unsigned flag)
{
    const uct_varuna_msg_info_t *info = uct_varuna_msg_info(type);

    return (info != NULL) && !!(info->flags & flag);
}

/** @return Whether messages of @a type carry the address of their requester. */
static inline int uct_varuna_ctl_has_from(unsigned type)
{
    return uct_varuna_msg_has(type, UCT_VARUNA_MSG_FLAG_FROM);
}

#endif
