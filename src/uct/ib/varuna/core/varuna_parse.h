/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checks of the addresses that a peer publishes, before they are used. Pure: bytes in,
 * verdict out; the caller informs the user. Messages: varuna_msg.h.
 */
#ifndef UCT_VARUNA_PARSE_H_
#define UCT_VARUNA_PARSE_H_

#include "varuna_wire.h"
#include <stddef.h>

/* One link entry of an interface address; the pointers are into the address, or,
 * if that is short, into the parsed one. */
typedef struct uct_varuna_parsed_link {
    uint8_t                    nic;        /* Remote NIC index */
    uint8_t                    port;       /* ... that this port had at first */
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

/** @return The byte that names a NIC in addresses. */
static inline uint8_t uct_varuna_wire_nic(unsigned nic, unsigned port)
{
    return nic | ((nic == port) ? 0 : ((port + 1) << UCT_VARUNA_WIRE_NIC_BITS));
}

/** @return Whether such a byte names a NIC. */
static inline int uct_varuna_wire_nic_is_valid(uint8_t wire)
{
    return ((wire & UCS_MASK(UCT_VARUNA_WIRE_NIC_BITS)) < UCT_VARUNA_MAX_LINKS) &&
           ((wire >> UCT_VARUNA_WIRE_NIC_BITS) <= UCT_VARUNA_MAX_LINKS);
}

/** Read it. */
static inline void uct_varuna_parse_nic(uint8_t wire, uct_varuna_parsed_link_t *link)
{
    unsigned port = wire >> UCT_VARUNA_WIRE_NIC_BITS;

    link->nic  = wire & UCS_MASK(UCT_VARUNA_WIRE_NIC_BITS);
    link->port = (port == 0) ? link->nic : (port - 1);
}

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
 * similar, fit into the few bytes that UCP has for an address. Pure; varuna_addr.c
 * writes, varuna_parse.c reads.
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

/* What the checks of addresses and of messages have in common. Used by varuna_parse.c
 * and varuna_msg.c. */

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

#endif
