/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checks of the addresses that a peer publishes, before they are used. Pure: bytes in,
 * verdict out; the caller informs the user. Messages: varuna_msg.h.
 */
#ifndef UCT_VARUNA_PARSE_H_
#define UCT_VARUNA_PARSE_H_

#include "varuna_wire.h"

/* One link entry of an interface address; the pointers are into the address, or,
 * if that is short, into the parsed one. */
typedef struct uct_varuna_parsed_link {
    uint8_t                    nic;        /* Remote NIC index */
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

#endif
