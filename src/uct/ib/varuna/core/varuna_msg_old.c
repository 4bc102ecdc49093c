/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What is read of control messages of older wire versions: their sender, so that peers
 * of a process that was replaced by one of another version are informed.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_msg.h"

#include <string.h>

/* Version 10, the only one that was ever released */
#define UCT_VARUNA_OLD_VERSION       10

typedef struct uct_varuna_ctl_old {
    uint16_t                   magic;
    uint8_t                    version;
    uint8_t                    type;
    uint32_t                   length;
    uint64_t                   dest;
    uint64_t                   uuid;
    uint32_t                   vqp;
    uint32_t                   epoch;
    uint32_t                   opening;
    uint8_t                    from_device_len;
    uint8_t                    from_ctl_len;
    uint8_t                    from_nic;
    uint8_t                    reserved;
} UCS_S_PACKED uct_varuna_ctl_old_t;

UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ctl_old_t) == 40);

ucs_status_t uct_varuna_parse_ctl_old(const void *data, size_t length,
                                      uct_varuna_ctl_hdr_t *hdr_p,
                                      uct_varuna_parsed_addr_t *parsed)
{
    uct_varuna_parsed_link_t *link = &parsed->links[0];
    uct_varuna_ctl_old_t old;

    if (length < sizeof(old)) {
        return UCS_ERR_INVALID_PARAM;
    }

    memcpy(&old, data, sizeof(old));
    if ((old.magic != UCT_VARUNA_WIRE_MAGIC) ||
        (old.version != UCT_VARUNA_OLD_VERSION) ||
        (old.from_device_len == 0) || (old.from_ctl_len == 0) ||
        (old.from_device_len > UCT_VARUNA_DEVICE_ADDR_MAX) ||
        (old.from_ctl_len > UCT_VARUNA_CTL_ADDR_MAX) ||
        (((size_t)old.length + old.from_device_len + old.from_ctl_len) !=
         (length - sizeof(old)))) {
        return UCS_ERR_INVALID_PARAM;
    }

    memset(hdr_p, 0, sizeof(*hdr_p));
    hdr_p->type       = old.type;
    hdr_p->dest       = old.dest;
    hdr_p->uuid       = old.uuid;
    hdr_p->vqp        = old.vqp;
    hdr_p->epoch      = old.epoch;
    parsed->uuid      = old.uuid;
    parsed->length    = old.from_device_len + old.from_ctl_len;
    parsed->num_links = 1;
    parsed->is_short  = 1;
    link->nic         = old.from_nic;
    link->device_len  = old.from_device_len;
    link->device_addr = UCS_PTR_BYTE_OFFSET(data, sizeof(old) + old.length);
    link->dc_len      = 0;
    link->dc_addr     = NULL;
    link->ctl_len     = old.from_ctl_len;
    link->ctl_addr    = UCS_PTR_BYTE_OFFSET(link->device_addr,
                                            old.from_device_len);
    return UCS_OK;
}
