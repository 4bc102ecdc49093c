/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Messages of rc_varuna's control plane, without rc_varuna. See ft_ctl.h.
 */
#include "ft_ctl.h"

#include <uct/ib/varuna/core/varuna_msg.h>

#include <ucs/sys/math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* The settings of the control plane: it never sends grants of flow control, and its
 * messages are longer than the default. More endpoints than DCIs may have messages in
 * flight: with "dcs" they queue for a DCI. */
static const ft_uct_option_t ft_ctl_options[] = {
    {"RC_FC_ENABLE", "n"},
    {"RC_TM_ENABLE", "n"},
    {"DC_NUM_DCI",   "4"},
    {"DC_TX_POLICY", "dcs_quota"},
    {"IB_SEG_SIZE",  "8256"},
    {NULL, NULL}
};

/* A peer's data lane has flow control: after some hundred messages it asks ours for a
 * grant, and an interface without flow control asserts that nobody does */
static const ft_uct_option_t ft_ctl_data_options[] = {
    {"RC_TM_ENABLE", "n"},
    {"IB_SEG_SIZE",  "8256"},
    {NULL, NULL}
};


/* --- Interfaces --- */

static ucs_status_t ft_ctl_received(ft_ctl_link_t *link, unsigned am_id,
                                    const void *data, size_t length)
{
    link->ctl->func(link->ctl->arg, link->index, am_id, data, length);
    return UCS_OK;
}

static ucs_status_t ft_ctl_am(void *arg, void *data, size_t length, unsigned flags)
{
    return ft_ctl_received(arg, UCT_VARUNA_AM_ID_CTL, data, length);
}

static ucs_status_t ft_ctl_data_am(void *arg, void *data, size_t length,
                                   unsigned flags)
{
    return ft_ctl_received(arg, UCT_VARUNA_AM_ID_DATA, data, length);
}

/* The next message creates a new endpoint. This one is destroyed at the end of the
 * program. */
static void ft_ctl_ep_failed(ft_uct_t *uct, uct_ep_h ep)
{
    ft_ctl_link_t *link = ucs_container_of(uct, ft_ctl_link_t, uct);
    ft_ctl_peer_t *peer;

    for (peer = link->ctl->peers; peer != NULL; peer = peer->next) {
        if (peer->links[link->index].ep == ep) {
            peer->links[link->index].ep = NULL;
            ++link->ctl->failed;
        }
    }
}

/* Of the control or of the data lane. @return 0, or -1 if there is no such device. */
static int ft_ctl_open_iface(ft_ctl_link_t *link, ft_uct_t *uct,
                             const ft_uct_option_t *options, uint8_t *addr)
{
    char name[32];

    snprintf(name, sizeof(name), "mlx5_%u:1", link->index);
    if (ft_uct_open_device(uct, "dc_mlx5", name, options) != 0) {
        return -1;
    }

    if ((uct->attr.device_addr_len > sizeof(link->device)) ||
        (uct->attr.iface_addr_len > sizeof(link->addr)) ||
        (uct_iface_get_device_address(uct->iface, (void*)link->device) != UCS_OK) ||
        (uct_iface_get_address(uct->iface, (void*)addr) != UCS_OK) ||
        (uct_iface_set_am_handler(uct->iface, UCT_VARUNA_AM_ID_CTL, ft_ctl_am, link,
                                  0) != UCS_OK) ||
        (uct_iface_set_am_handler(uct->iface, UCT_VARUNA_AM_ID_DATA, ft_ctl_data_am,
                                  link, 0) != UCS_OK)) {
        ft_die("link %u is not usable", link->index);
    }

    return 0;
}

static int ft_ctl_open_link(ft_ctl_t *ctl, ft_ctl_link_t *link, unsigned index)
{
    link->ctl   = ctl;
    link->index = index;
    if (ft_ctl_open_iface(link, &link->uct, ft_ctl_options, link->addr) != 0) {
        return -1;
    }

    link->uct.ep_failed = ft_ctl_ep_failed;
    if ((ft_ctl_open_iface(link, &link->data_uct, ft_ctl_data_options,
                           link->data_addr) != 0) ||
        (link->data_uct.attr.iface_addr_len != link->uct.attr.iface_addr_len)) {
        ft_die("link %u has no data lane", index);
    }

    return 0;
}

void ft_ctl_open(ft_ctl_t *ctl, ft_ctl_received_func_t func, void *arg)
{
    memset(ctl, 0, sizeof(*ctl));
    ctl->func = func;
    ctl->arg  = arg;
    if ((getrandom(&ctl->uuid, sizeof(ctl->uuid), 0) != sizeof(ctl->uuid)) ||
        (getrandom(&ctl->secret, sizeof(ctl->secret), 0) != sizeof(ctl->secret))) {
        ft_die("getrandom");
    }

    while ((ctl->num_links < UCT_VARUNA_MAX_LINKS) &&
           (ft_ctl_open_link(ctl, &ctl->links[ctl->num_links], ctl->num_links) ==
            0)) {
        ++ctl->num_links;
    }

    if (ctl->num_links == 0) {
        ft_die("there is no mlx5_0:1");
    }
}

void ft_ctl_close(ft_ctl_t *ctl, ft_ctl_peer_t *peers, unsigned num_peers)
{
    unsigned i, link;

    for (i = 0; i < num_peers; ++i) {
        for (link = 0; link < ctl->num_links; ++link) {
            if (peers[i].links[link].ep != NULL) {
                uct_ep_destroy(peers[i].links[link].ep);
            }
        }
    }

    for (link = 0; link < ctl->num_links; ++link) {
        ft_uct_close(&ctl->links[link].uct);
        ft_uct_close(&ctl->links[link].data_uct);
    }
}

unsigned ft_ctl_progress(ft_ctl_t *ctl)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < ctl->num_links; ++i) {
        count += uct_worker_progress(ctl->links[i].uct.worker);
        count += uct_worker_progress(ctl->links[i].data_uct.worker);
    }

    return count;
}


/* --- Addresses --- */

static int ft_ctl_meet_parsed(ft_ctl_peer_t *peer,
                              const uct_varuna_parsed_addr_t *parsed)
{
    const uct_varuna_parsed_link_t *link;
    unsigned i;

    memset(peer, 0, sizeof(*peer));
    peer->uuid = parsed->uuid;
    for (i = 0; i < parsed->num_links; ++i) {
        link            = &parsed->links[i];
        peer->link_map |= UCS_BIT(link->nic);
        memcpy(peer->links[link->nic].device, link->device_addr,
               link->device_len);
        memcpy(peer->links[link->nic].addr, link->ctl_addr, link->ctl_len);
    }

    return 0;
}

int ft_ctl_meet(ft_ctl_peer_t *peer, const ft_address_t *address)
{
    uct_varuna_parsed_addr_t parsed;
    const char *reason;

    if (uct_varuna_parse_addr(address->device, address->iface, SIZE_MAX, &parsed,
                              &reason) != UCS_OK) {
        return -1;
    }

    return ft_ctl_meet_parsed(peer, &parsed);
}

int ft_ctl_meet_full(ft_ctl_peer_t *peer, const void *addr, size_t length)
{
    uct_varuna_parsed_addr_t parsed;
    const char *reason;

    if (uct_varuna_parse_addr(NULL, addr, length, &parsed, &reason) != UCS_OK) {
        return -1;
    }

    return ft_ctl_meet_parsed(peer, &parsed);
}

static size_t ft_ctl_pack_header(const ft_ctl_t *ctl, unsigned flags,
                                 uct_varuna_addr_t *addr)
{
    addr->magic     = UCT_VARUNA_WIRE_MAGIC;
    addr->version   = UCT_VARUNA_WIRE_VERSION;
    addr->num_links = ctl->num_links | flags;
    addr->uuid      = ctl->uuid;
    return sizeof(*addr);
}

size_t ft_ctl_pack_address(const ft_ctl_t *ctl, void *buffer)
{
    size_t length = ft_ctl_pack_header(ctl, 0, buffer);
    const ft_ctl_link_t *link;
    uct_varuna_addr_link_t entry;
    unsigned i;

    for (i = 0; i < ctl->num_links; ++i) {
        link             = &ctl->links[i];
        memset(&entry, 0, sizeof(entry));
        entry.index      = link->index;
        entry.device_len = link->uct.attr.device_addr_len;
        entry.dc_len     = link->uct.attr.iface_addr_len;
        entry.ctl_len    = link->uct.attr.iface_addr_len;
        memcpy(UCS_PTR_BYTE_OFFSET(buffer, length), &entry, sizeof(entry));
        length          += sizeof(entry);
        memcpy(UCS_PTR_BYTE_OFFSET(buffer, length), link->device,
               entry.device_len);
        length          += entry.device_len;
        memcpy(UCS_PTR_BYTE_OFFSET(buffer, length), link->data_addr, entry.dc_len);
        length          += entry.dc_len;
        memcpy(UCS_PTR_BYTE_OFFSET(buffer, length), link->addr, entry.ctl_len);
        length          += entry.ctl_len;
    }

    return length;
}

size_t ft_ctl_pack_short_address(const ft_ctl_t *ctl, void *buffer)
{
    size_t length             = ft_ctl_pack_header(ctl, UCT_VARUNA_ADDR_SHORT,
                                                   buffer);
    const ft_ctl_link_t *last = NULL;
    const ft_ctl_link_t *link;
    unsigned i, ctl_len, device_len;
    uint8_t *pos;

    ctl_len    = ctl->links[0].uct.attr.iface_addr_len;
    device_len = ctl->links[0].uct.attr.device_addr_len;
    pos        = UCS_PTR_BYTE_OFFSET(buffer, length);
    *pos++     = device_len;
    *pos++     = ctl_len;
    for (i = 0; i < ctl->num_links; ++i) {
        link   = &ctl->links[i];
        *pos++ = (link->index << UCT_VARUNA_ADDR_DEVICE_BITS) | device_len;
        pos   += uct_varuna_delta_write(ctl->links[0].device, device_len,
                                        link->device, device_len, pos,
                                        FT_ADDR_MAX);
        pos   += uct_varuna_delta_write((last == NULL) ? NULL : last->addr,
                                        (last == NULL) ? 0 : ctl_len,
                                        link->addr, ctl_len, pos, FT_ADDR_MAX);
        last   = link;
    }

    return UCS_PTR_BYTE_DIFF(buffer, pos);
}


/* --- Messages --- */

void ft_ctl_begin(const ft_ctl_t *ctl, const ft_ctl_peer_t *peer, unsigned type,
                  ft_ctl_msg_t *msg)
{
    uct_varuna_ctl_hdr_t *hdr = ft_ctl_hdr(msg);

    memset(hdr, 0, sizeof(*hdr));
    hdr->magic   = UCT_VARUNA_WIRE_MAGIC;
    hdr->version = UCT_VARUNA_WIRE_VERSION;
    hdr->type    = type;
    hdr->dest    = peer->uuid;
    hdr->uuid    = ctl->uuid;
    hdr->secret  = ctl->secret;
    msg->length  = sizeof(*hdr);
}

void ft_ctl_append(ft_ctl_msg_t *msg, const void *data, size_t length)
{
    if (length > sizeof(msg->data) - msg->length) {
        ft_die("a message is too long");
    }

    if (length > 0) {
        memcpy(msg->data + msg->length, data, length);
    }
    msg->length += length;
}

void ft_ctl_end(const ft_ctl_t *ctl, unsigned link, ft_ctl_msg_t *msg)
{
    const ft_ctl_link_t *own  = &ctl->links[link];
    uct_varuna_ctl_hdr_t *hdr = ft_ctl_hdr(msg);

    hdr->length = msg->length - sizeof(*hdr);
    if (!uct_varuna_ctl_has_from(hdr->type)) {
        return;
    }

    hdr->from_device_len = own->uct.attr.device_addr_len;
    hdr->from_ctl_len    = own->uct.attr.iface_addr_len;
    hdr->from_nic        = own->index;
    ft_ctl_append(msg, own->device, hdr->from_device_len);
    ft_ctl_append(msg, own->addr, hdr->from_ctl_len);
}

typedef struct {
    const void *data;
    size_t     length;
} ft_ctl_pack_arg_t;

static size_t ft_ctl_pack(void *dest, void *arg)
{
    const ft_ctl_pack_arg_t *pack = arg;

    memcpy(dest, pack->data, pack->length);
    return pack->length;
}

ucs_status_t ft_ctl_send_am(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                            unsigned am_id, const void *data, size_t length)
{
    ft_ctl_pack_arg_t arg = {data, length};
    uct_ep_params_t params;
    ucs_status_t status;
    ssize_t packed;

    if ((link >= ctl->num_links) || !(peer->link_map & UCS_BIT(link))) {
        return UCS_ERR_UNREACHABLE;
    }

    if (!peer->is_known) {
        peer->is_known = 1;
        peer->next     = ctl->peers;
        ctl->peers     = peer;
    }

    if (peer->links[link].ep == NULL) {
        params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                            UCT_EP_PARAM_FIELD_DEV_ADDR |
                            UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.iface      = ctl->links[link].uct.iface;
        params.dev_addr   = (const uct_device_addr_t*)peer->links[link].device;
        params.iface_addr = (const uct_iface_addr_t*)peer->links[link].addr;
        status            = uct_ep_create(&params, &peer->links[link].ep);
        if (status != UCS_OK) {
            return status;
        }
    }

    packed = uct_ep_am_bcopy(peer->links[link].ep, am_id, ft_ctl_pack, &arg, 0);
    if (packed >= 0) {
        ++ctl->sent;
        return UCS_OK;
    }

    status = (ucs_status_t)packed;
    if (status != UCS_ERR_NO_RESOURCE) {
        ft_ctl_ep_failed(&ctl->links[link].uct, peer->links[link].ep);
    }
    return status;
}

ucs_status_t ft_ctl_send(ft_ctl_t *ctl, ft_ctl_peer_t *peer, unsigned link,
                         const ft_ctl_msg_t *msg)
{
    return ft_ctl_send_am(ctl, peer, link, UCT_VARUNA_AM_ID_CTL, msg->data,
                          msg->length);
}
