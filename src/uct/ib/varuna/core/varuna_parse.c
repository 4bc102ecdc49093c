/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checks of the addresses that a peer publishes. See varuna_parse.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_parse.h"

#include <ucs/sys/math.h>
#include <ctype.h>
#include <string.h>
#include <stdint.h>

static int uct_varuna_parse_is_name(const char *name, size_t length)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        if (!isgraph((unsigned char)name[i])) {
            return 0;
        }
    }

    return length <= UCT_VARUNA_NAME_MAX;
}

static ucs_status_t
uct_varuna_parse_link(uct_varuna_reader_t *reader,
                      uct_varuna_parsed_link_t *link)
{
    uct_varuna_addr_link_t entry;
    const void *ptr;

    ptr = uct_varuna_reader_take(reader, sizeof(entry));
    if (ptr == NULL) {
        return UCS_ERR_INVALID_ADDR;
    }

    memcpy(&entry, ptr, sizeof(entry));
    uct_varuna_parse_nic(entry.index, link);
    link->device_len  = entry.device_len;
    link->dc_len      = entry.dc_len;
    link->ctl_len     = entry.ctl_len;
    link->device_addr = uct_varuna_reader_take(reader, link->device_len);
    link->dc_addr     = uct_varuna_reader_take(reader, entry.dc_len);
    link->ctl_addr    = uct_varuna_reader_take(reader, entry.ctl_len);
    link->name        = uct_varuna_reader_take(reader, entry.name_len);
    link->name_len    = entry.name_len;
    link->is_named    = entry.is_named;
    if ((link->device_addr == NULL) || (link->dc_addr == NULL) ||
        (link->ctl_addr == NULL) || (link->name == NULL) ||
        !uct_varuna_parse_is_name(link->name, link->name_len) ||
        !uct_varuna_wire_nic_is_valid(entry.index) ||
        (link->device_len == 0) ||
        (link->device_len > UCT_VARUNA_DEVICE_ADDR_MAX)) {
        return UCS_ERR_INVALID_ADDR;
    }

    return UCS_OK;
}

/* Take an address that is sent as its difference from @a base. */
static int uct_varuna_reader_take_delta(uct_varuna_reader_t *reader,
                                        const void *base, size_t base_len,
                                        void *data, size_t length)
{
    size_t size = uct_varuna_delta_read(base, base_len, data, length,
                                        reader->pos, reader->left);

    return (size > 0) && (uct_varuna_reader_take(reader, size) != NULL);
}

/* Entry @a index of a short address */
static ucs_status_t
uct_varuna_parse_short_link(uct_varuna_reader_t *reader,
                            const void *device_addr,
                            const uct_varuna_addr_short_t *shared,
                            uct_varuna_parsed_addr_t *parsed, unsigned index)
{
    uct_varuna_parsed_link_t *link = &parsed->links[index];
    char *device                   = parsed->room[index].device;
    char *ctl                      = parsed->room[index].ctl;
    const void *last               = (index == 0) ? NULL :
                                     parsed->room[index - 1].ctl;
    const uint8_t *entry;

    entry = uct_varuna_reader_take(reader, sizeof(*entry));
    if (entry == NULL) {
        return UCS_ERR_INVALID_ADDR;
    }

    uct_varuna_parse_nic(*entry >> UCT_VARUNA_ADDR_DEVICE_BITS, link);
    link->device_len  = *entry & UCS_MASK(UCT_VARUNA_ADDR_DEVICE_BITS);
    link->device_addr = device;
    link->dc_len      = 0;
    link->dc_addr     = NULL;
    link->ctl_len     = shared->ctl_len;
    link->ctl_addr    = ctl;
    link->name        = NULL;
    link->name_len    = 0;
    link->is_named    = 0;
    if ((link->device_len == 0) ||
        !uct_varuna_reader_take_delta(reader, device_addr, shared->outer_len,
                                      device, link->device_len) ||
        !uct_varuna_reader_take_delta(reader, last,
                                      (last == NULL) ? 0 : shared->ctl_len,
                                      ctl, shared->ctl_len)) {
        return UCS_ERR_INVALID_ADDR;
    }

    return UCS_OK;
}

/* All entries; their number is known to be in range. */
static ucs_status_t
uct_varuna_parse_links(uct_varuna_reader_t *reader, const void *device_addr,
                       uct_varuna_parsed_addr_t *parsed, const char **reason_p)
{
    uct_varuna_addr_short_t shared = {0};
    unsigned nic_map               = 0;
    ucs_status_t status;
    const void *ptr;
    unsigned i;

    if (parsed->is_short) {
        ptr = uct_varuna_reader_take(reader, sizeof(shared));
        if (ptr != NULL) {
            memcpy(&shared, ptr, sizeof(shared));
        }

        if ((shared.outer_len == 0) ||
            (shared.outer_len > UCT_VARUNA_DEVICE_ADDR_MAX) ||
            (shared.ctl_len == 0) ||
            (shared.ctl_len > UCT_VARUNA_CTL_ADDR_MAX)) {
            *reason_p = "its lengths are out of range";
            return UCS_ERR_INVALID_ADDR;
        }
    }

    for (i = 0; i < parsed->num_links; ++i) {
        status = parsed->is_short ?
                 uct_varuna_parse_short_link(reader, device_addr, &shared,
                                             parsed, i) :
                 uct_varuna_parse_link(reader, &parsed->links[i]);
        if (status != UCS_OK) {
            *reason_p = "a link in it is cut off or out of range";
            return status;
        }

        if (nic_map & UCS_BIT(parsed->links[i].nic)) {
            *reason_p = "it names one link twice";
            return UCS_ERR_INVALID_ADDR;
        }

        nic_map |= UCS_BIT(parsed->links[i].nic);
    }

    return UCS_OK;
}

/* Take the header and check whose it is. */
static ucs_status_t
uct_varuna_parse_addr_header(uct_varuna_reader_t *reader, uct_varuna_addr_t *hdr,
                             const char **reason_p)
{
    const void *ptr = uct_varuna_reader_take(reader, sizeof(*hdr));

    if (ptr == NULL) {
        *reason_p = "it is too short";
        return UCS_ERR_INVALID_ADDR;
    }

    memcpy(hdr, ptr, sizeof(*hdr));
    if (hdr->magic != UCT_VARUNA_WIRE_MAGIC) {
        *reason_p = UCT_VARUNA_REASON_MAGIC;
        return UCS_ERR_INVALID_ADDR;
    }

    if (hdr->version != UCT_VARUNA_WIRE_VERSION) {
        *reason_p = UCT_VARUNA_REASON_VERSION;
        return UCS_ERR_UNSUPPORTED;
    }

    return UCS_OK;
}

int uct_varuna_parse_addr_is_of(const void *addr, uint64_t uuid)
{
    uct_varuna_reader_t reader = {addr, UCT_VARUNA_IFACE_ADDR_MAX};
    uct_varuna_addr_t hdr;
    const char *reason;

    return (uct_varuna_parse_addr_header(&reader, &hdr, &reason) == UCS_OK) &&
           (hdr.uuid == uuid);
}

ucs_status_t uct_varuna_parse_addr(const void *device_addr, const void *addr,
                                   size_t length,
                                   uct_varuna_parsed_addr_t *parsed,
                                   const char **reason_p)
{
    uct_varuna_reader_t reader;
    uct_varuna_addr_t hdr;
    ucs_status_t status;

    reader.pos  = addr;
    reader.left = (length == SIZE_MAX) ? UCT_VARUNA_IFACE_ADDR_MAX : length;
    status      = uct_varuna_parse_addr_header(&reader, &hdr, reason_p);
    if (status != UCS_OK) {
        return status;
    }

    parsed->is_short   = !!(hdr.num_links & UCT_VARUNA_ADDR_SHORT);
    parsed->is_limited = !!(hdr.num_links & UCT_VARUNA_ADDR_LIMITED);
    parsed->num_links  = hdr.num_links & ~(UCT_VARUNA_ADDR_SHORT | UCT_VARUNA_ADDR_LIMITED);
    if ((parsed->num_links == 0) ||
        (parsed->num_links > UCT_VARUNA_MAX_LINKS)) {
        *reason_p = "its number of links is out of range";
        return UCS_ERR_INVALID_ADDR;
    }

    if (parsed->is_short && (device_addr == NULL)) {
        *reason_p = "it is a short one, and all links are due here";
        return UCS_ERR_INVALID_ADDR;
    }

    status = uct_varuna_parse_links(&reader, device_addr, parsed, reason_p);
    if (status != UCS_OK) {
        return status;
    }

    if ((length != SIZE_MAX) && (reader.left > 0)) {
        *reason_p = "bytes remain after its last link";
        return UCS_ERR_INVALID_ADDR;
    }

    parsed->uuid   = hdr.uuid;
    parsed->length = UCS_PTR_BYTE_DIFF(addr, reader.pos);
    return UCS_OK;
}

/* --- Addresses that differ little --- */

/* Addresses as their difference from another one. */

static uint8_t uct_varuna_delta_base(const void *base, size_t base_len,
                                     size_t index)
{
    return (index < base_len) ? ((const uint8_t*)base)[index] : 0;
}

size_t uct_varuna_delta_write(const void *base, size_t base_len,
                              const void *data, size_t length, void *buffer,
                              size_t max)
{
    const uint8_t *bytes = data;
    uint8_t *out         = buffer;
    size_t pos           = UCT_VARUNA_DELTA_MAP_SIZE(length);
    size_t i;

    if (pos > max) {
        return 0;
    }

    memset(out, 0, pos);
    for (i = 0; i < length; ++i) {
        if (bytes[i] == uct_varuna_delta_base(base, base_len, i)) {
            continue;
        }

        if (pos == max) {
            return 0;
        }

        out[i / 8] |= 1u << (i % 8);
        out[pos++]  = bytes[i];
    }

    return pos;
}

size_t uct_varuna_delta_read(const void *base, size_t base_len, void *data,
                             size_t length, const void *buffer, size_t max)
{
    const uint8_t *in = buffer;
    uint8_t *bytes    = data;
    size_t pos        = UCT_VARUNA_DELTA_MAP_SIZE(length);
    size_t i;

    if (pos > max) {
        return 0;
    }

    for (i = 0; i < length; ++i) {
        if (!(in[i / 8] & (1u << (i % 8)))) {
            bytes[i] = uct_varuna_delta_base(base, base_len, i);
        } else if (pos < max) {
            bytes[i] = in[pos++];
        } else {
            return 0;
        }
    }

    return pos;
}
