/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checks of everything which a peer sends or publishes. See varuna_parse.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_parse.h"
#include "varuna_delta.h"
#include "varuna_uid.h"

#include <ucs/sys/math.h>
#include <stddef.h>
#include <string.h>

#define UCT_VARUNA_REASON_VERSION \
    "it speaks another wire version of rc_varuna: install the same rc_varuna " \
    "on all hosts"

#define UCT_VARUNA_REASON_MAGIC \
    "it is not of rc_varuna, or of a host of the other byte order"


/* A cursor over bytes which somebody else wrote. */
typedef struct uct_varuna_reader {
    const char                 *pos;
    size_t                     left;
} uct_varuna_reader_t;

/* Take @a size bytes. @return NULL if there are not so many. */
static const void *uct_varuna_reader_take(uct_varuna_reader_t *reader,
                                          size_t size)
{
    const char *pos = reader->pos;

    if (size > reader->left) {
        return NULL;
    }

    reader->pos  += size;
    reader->left -= size;
    return pos;
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
    link->nic         = entry.index;
    link->device_len  = entry.device_len;
    link->dc_len      = entry.dc_len;
    link->ctl_len     = entry.ctl_len;
    link->device_addr = uct_varuna_reader_take(reader, link->device_len);
    link->dc_addr     = uct_varuna_reader_take(reader, entry.dc_len);
    link->ctl_addr    = uct_varuna_reader_take(reader, entry.ctl_len);
    if ((link->device_addr == NULL) || (link->dc_addr == NULL) ||
        (link->ctl_addr == NULL) || (entry.index >= UCT_VARUNA_MAX_LINKS) ||
        (link->device_len == 0) ||
        (link->device_len > UCT_VARUNA_DEVICE_ADDR_MAX)) {
        return UCS_ERR_INVALID_ADDR;
    }

    return UCS_OK;
}

/* Take an address that is told as its difference from @a base. */
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

    link->nic         = *entry >> UCT_VARUNA_ADDR_DEVICE_BITS;
    link->device_len  = *entry & UCS_MASK(UCT_VARUNA_ADDR_DEVICE_BITS);
    link->device_addr = device;
    link->dc_len      = 0;
    link->dc_addr     = NULL;
    link->ctl_len     = shared->ctl_len;
    link->ctl_addr    = ctl;
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

    parsed->is_short  = !!(hdr.num_links & UCT_VARUNA_ADDR_SHORT);
    parsed->num_links = hdr.num_links & ~UCT_VARUNA_ADDR_SHORT;
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
        *reason_p = "bytes are left behind its last link";
        return UCS_ERR_INVALID_ADDR;
    }

    parsed->uuid   = hdr.uuid;
    parsed->length = UCS_PTR_BYTE_DIFF(addr, reader.pos);
    return UCS_OK;
}


/*
 * Bodies. Each check gets the body as a cursor, takes the fixed part and tells
 * how many bytes must follow it; -1 if the fixed part is wrong.
 */
typedef ssize_t (*uct_varuna_check_func_t)(uct_varuna_reader_t *body);

static ssize_t uct_varuna_check_empty(uct_varuna_reader_t *body)
{
    (void)body;
    return 0;
}

static ssize_t uct_varuna_check_open_req(uct_varuna_reader_t *body)
{
    const void *ptr;
    uct_varuna_ctl_open_req_t req;

    ptr = uct_varuna_reader_take(body, sizeof(req));
    if (ptr == NULL) {
        return -1;
    }

    memcpy(&req, ptr, sizeof(req));
    return req.addr_len;
}

/* A key is unpacked without its length. @return that, 0 if it is not whole. */
static size_t uct_varuna_take_rkey(uct_varuna_reader_t *body)
{
    const void *ptr;
    size_t length;

    ptr = uct_varuna_reader_take(body, sizeof(uct_varuna_packed_rkey_t));
    if (ptr == NULL) {
        return 0;
    }

    length = uct_varuna_rkey_length(ptr);
    return (uct_varuna_reader_take(body, length -
                                   sizeof(uct_varuna_packed_rkey_t)) == NULL) ?
           0 : length;
}

static int uct_varuna_check_open_arena(const uct_varuna_ctl_open_rep_t *rep)
{
    if ((rep->atomic_mode >= UCT_VARUNA_ATOMIC_LAST) ||
        ((rep->home_nic >= UCT_VARUNA_MAX_LINKS) &&
         (rep->home_nic != UCT_VARUNA_HOME_NONE))) {
        return 0;
    }

    if (rep->arena_slots == 0) {
        return rep->num_slots == 0;
    }

    /* A UID is looked up among all slots that it can name: none may be missing */
    return (rep->arena_slots == UCT_VARUNA_SLOTS_MAX) &&
           (rep->slots_addr != 0) && (rep->marks_addr != 0) &&
           (rep->num_slots <= UCT_VARUNA_SLOT_BLOCK) &&
           (rep->first_slot < rep->arena_slots) &&
           (rep->num_slots <= (rep->arena_slots - rep->first_slot));
}

static ssize_t uct_varuna_check_open_rep(uct_varuna_reader_t *body)
{
    const void *ptr;
    uct_varuna_ctl_open_rep_t rep;

    ptr = uct_varuna_reader_take(body, sizeof(rep));
    if (ptr == NULL) {
        return -1;
    }

    memcpy(&rep, ptr, sizeof(rep));
    if ((rep.log_size != UCT_VARUNA_LOG_SIZE) ||
        (rep.log_count != UCT_VARUNA_LOG_COUNT) || (rep.log_addr == 0) ||
        (rep.target >= UCT_VARUNA_TARGET_ID_MAX) || (rep.addr_len == 0) ||
        !uct_varuna_check_open_arena(&rep) || (rep.rkey_len == 0) ||
        (uct_varuna_take_rkey(body) != rep.rkey_len)) {
        return -1;
    }

    if (rep.arena_slots == 0) {
        return rep.addr_len;
    }

    if ((uct_varuna_reader_take(body, rep.addr_len) == NULL) ||
        !uct_varuna_take_rkey(body) || !uct_varuna_take_rkey(body) ||
        ((rep.num_slots > 0) && !uct_varuna_take_rkey(body))) {
        return -1;
    }

    return rep.num_slots * sizeof(uint64_t);
}

static ssize_t uct_varuna_check_proxy_req(uct_varuna_reader_t *body)
{
    const void *ptr;
    uct_varuna_ctl_proxy_req_t req;

    ptr = uct_varuna_reader_take(body, sizeof(req));
    if (ptr == NULL) {
        return -1;
    }

    memcpy(&req, ptr, sizeof(req));
    return ((req.seq == 0) || ((req.width != 4) && (req.width != 8)) ||
            (req.addr % req.width) || (req.slot >= UCT_VARUNA_SLOTS_MAX)) ?
           -1 : 0;
}

static ssize_t uct_varuna_check_proxy_rep(uct_varuna_reader_t *body)
{
    return (uct_varuna_reader_take(body, sizeof(uct_varuna_ctl_proxy_rep_t)) ==
            NULL) ? -1 : 0;
}

static ssize_t uct_varuna_check_connect(uct_varuna_reader_t *body, int is_rep)
{
    const void *ptr;
    uct_varuna_ctl_connect_t msg;

    ptr = uct_varuna_reader_take(body, sizeof(msg));
    if (ptr == NULL) {
        return -1;
    }

    memcpy(&msg, ptr, sizeof(msg));
    if (is_rep && (msg.status != 0)) {
        return ((msg.device_len == 0) && (msg.ep_len == 0)) ? 0 : -1;
    }

    if ((msg.status != 0) || (msg.link >= UCT_VARUNA_MAX_LINKS) ||
        (msg.device_len == 0) || (msg.ep_len == 0) ||
        (msg.device_len > UCT_VARUNA_DEVICE_ADDR_MAX)) {
        return -1;
    }

    return (ssize_t)msg.device_len + msg.ep_len;
}

static ssize_t uct_varuna_check_connect_req(uct_varuna_reader_t *body)
{
    return uct_varuna_check_connect(body, 0);
}

static ssize_t uct_varuna_check_connect_rep(uct_varuna_reader_t *body)
{
    return uct_varuna_check_connect(body, 1);
}

static ssize_t uct_varuna_check_fence_req(uct_varuna_reader_t *body)
{
    return (uct_varuna_reader_take(body, sizeof(uct_varuna_ctl_fence_req_t)) ==
            NULL) ? -1 : 0;
}

static ssize_t uct_varuna_check_fence_rep(uct_varuna_reader_t *body)
{
    const void *ptr;
    uct_varuna_ctl_fence_rep_t rep;

    ptr = uct_varuna_reader_take(body, sizeof(rep));
    if (ptr == NULL) {
        return -1;
    }

    memcpy(&rep, ptr, sizeof(rep));
    if ((rep.log_size != UCT_VARUNA_LOG_SIZE) ||
        (rep.flags & ~(UCT_VARUNA_FENCE_FLAG_PSN | UCT_VARUNA_FENCE_FLAG_QP)) ||
        (rep.epsn & ~UCS_MASK(24))) {
        return -1;
    }

    return rep.log_size * sizeof(uint64_t);
}

static ssize_t uct_varuna_check_reject(uct_varuna_reader_t *body)
{
    const void *ptr;
    uct_varuna_ctl_reject_t msg;

    ptr = uct_varuna_reader_take(body, sizeof(msg));
    if (ptr == NULL) {
        return -1;
    }

    memcpy(&msg, ptr, sizeof(msg));
    return (msg.status < 0) ? 0 : -1;
}

static ssize_t uct_varuna_check_pong(uct_varuna_reader_t *body)
{
    return (uct_varuna_reader_take(body, sizeof(uct_varuna_ctl_pong_t)) ==
            NULL) ? -1 : 0;
}

static ssize_t uct_varuna_check_ports(uct_varuna_reader_t *body)
{
    return (uct_varuna_reader_take(body, sizeof(uct_varuna_ctl_ports_t)) ==
            NULL) ? -1 : 0;
}

/* Facts of each message type */
static const struct {
    const char                 *name;
    uct_varuna_check_func_t    check;
    uint8_t                    has_epoch; /* It is about one incarnation */
    uint8_t                    has_from;  /* It tells where its requester is */
} uct_varuna_ctl_types[UCT_VARUNA_CTL_LAST] = {
    [UCT_VARUNA_CTL_OPEN_REQ]    = {"OPEN_REQ", uct_varuna_check_open_req, 0},
    [UCT_VARUNA_CTL_OPEN_REP]    = {"OPEN_REP", uct_varuna_check_open_rep, 0},
    [UCT_VARUNA_CTL_CONNECT_REQ] = {"CONNECT_REQ",
                                    uct_varuna_check_connect_req, 1, 1},
    [UCT_VARUNA_CTL_CONNECT_REP] = {"CONNECT_REP",
                                    uct_varuna_check_connect_rep, 1},
    [UCT_VARUNA_CTL_FENCE_REQ]   = {"FENCE_REQ",
                                    uct_varuna_check_fence_req, 1, 1},
    [UCT_VARUNA_CTL_FENCE_REP]   = {"FENCE_REP", uct_varuna_check_fence_rep, 1},
    [UCT_VARUNA_CTL_CLOSE]       = {"CLOSE", uct_varuna_check_empty, 0},
    [UCT_VARUNA_CTL_CLOSE_REP]   = {"CLOSE_REP", uct_varuna_check_empty, 0},
    [UCT_VARUNA_CTL_REJECT]      = {"REJECT", uct_varuna_check_reject, 0},
    [UCT_VARUNA_CTL_PING]        = {"PING", uct_varuna_check_empty, 1, 1},
    [UCT_VARUNA_CTL_PONG]        = {"PONG", uct_varuna_check_pong, 1},
    [UCT_VARUNA_CTL_PORTS]       = {"PORTS", uct_varuna_check_ports, 0},
    [UCT_VARUNA_CTL_PROXY_REQ]   = {"PROXY_REQ", uct_varuna_check_proxy_req, 0,
                                    1},
    [UCT_VARUNA_CTL_PROXY_REP]   = {"PROXY_REP", uct_varuna_check_proxy_rep, 0}
};

const char *uct_varuna_ctl_type_name(unsigned type)
{
    if ((type >= UCT_VARUNA_CTL_LAST) ||
        (uct_varuna_ctl_types[type].name == NULL)) {
        return "unknown";
    }

    return uct_varuna_ctl_types[type].name;
}

int uct_varuna_ctl_has_from(unsigned type)
{
    return (type < UCT_VARUNA_CTL_LAST) && uct_varuna_ctl_types[type].has_from;
}

/* The requester's address is there exactly where it has to be. */
static int uct_varuna_check_from(const uct_varuna_ctl_hdr_t *hdr)
{
    if (!uct_varuna_ctl_has_from(hdr->type)) {
        return (hdr->from_device_len == 0) && (hdr->from_ctl_len == 0);
    }

    return (hdr->from_device_len > 0) && (hdr->from_ctl_len > 0) &&
           (hdr->from_device_len <= UCT_VARUNA_DEVICE_ADDR_MAX) &&
           (hdr->from_ctl_len <= UCT_VARUNA_CTL_ADDR_MAX) &&
           (hdr->from_nic < UCT_VARUNA_MAX_LINKS);
}

ucs_status_t uct_varuna_parse_ctl_from(const void *data,
                                       uct_varuna_parsed_addr_t *parsed)
{
    uct_varuna_parsed_link_t *link = &parsed->links[0];
    uct_varuna_ctl_hdr_t hdr;

    memcpy(&hdr, data, sizeof(hdr));
    if (hdr.from_device_len == 0) {
        return UCS_ERR_NO_ELEM;
    }

    parsed->uuid      = hdr.uuid;
    parsed->length    = hdr.from_device_len + hdr.from_ctl_len;
    parsed->num_links = 1;
    parsed->is_short  = 1;
    link->nic         = hdr.from_nic;
    link->device_len  = hdr.from_device_len;
    link->device_addr = UCS_PTR_BYTE_OFFSET(data, sizeof(hdr) + hdr.length);
    link->dc_len      = 0;
    link->dc_addr     = NULL;
    link->ctl_len     = hdr.from_ctl_len;
    link->ctl_addr    = UCS_PTR_BYTE_OFFSET(link->device_addr,
                                            hdr.from_device_len);
    return UCS_OK;
}

ucs_status_t uct_varuna_parse_ctl(const void *data, size_t length,
                                  const char **reason_p)
{
    uct_varuna_reader_t reader;
    uct_varuna_ctl_hdr_t hdr;
    ssize_t rest;

    /* That of another version may be shorter */
    memset(&hdr, 0, sizeof(hdr));
    memcpy(&hdr, data, ucs_min(length, sizeof(hdr)));
    if (length <= offsetof(uct_varuna_ctl_hdr_t, version)) {
        *reason_p = "it is shorter than its header";
        return UCS_ERR_INVALID_PARAM;
    }

    if (hdr.magic != UCT_VARUNA_WIRE_MAGIC) {
        *reason_p = UCT_VARUNA_REASON_MAGIC;
        return UCS_ERR_INVALID_PARAM;
    }

    if (hdr.version != UCT_VARUNA_WIRE_VERSION) {
        *reason_p = UCT_VARUNA_REASON_VERSION;
        return UCS_ERR_UNSUPPORTED;
    }

    if (length < sizeof(hdr)) {
        *reason_p = "it is shorter than its header";
        return UCS_ERR_INVALID_PARAM;
    }

    if ((hdr.type >= UCT_VARUNA_CTL_LAST) ||
        (uct_varuna_ctl_types[hdr.type].check == NULL)) {
        *reason_p = "its type is unknown";
        return UCS_ERR_INVALID_PARAM;
    }

    if (hdr.secret == 0) {
        *reason_p = "it has no secret";
        return UCS_ERR_INVALID_PARAM;
    }

    if (!uct_varuna_check_from(&hdr)) {
        *reason_p = "the address of its requester is out of range";
        return UCS_ERR_INVALID_PARAM;
    }

    if (((size_t)hdr.length + hdr.from_device_len + hdr.from_ctl_len) !=
        (length - sizeof(hdr))) {
        *reason_p = "its length differs from what its header says";
        return UCS_ERR_INVALID_PARAM;
    }

    if (uct_varuna_ctl_types[hdr.type].has_epoch && (hdr.epoch == 0)) {
        *reason_p = "it names no incarnation";
        return UCS_ERR_INVALID_PARAM;
    }

    reader.pos  = UCS_PTR_BYTE_OFFSET(data, sizeof(hdr));
    reader.left = hdr.length;
    rest        = uct_varuna_ctl_types[hdr.type].check(&reader);
    if ((rest < 0) || ((size_t)rest != reader.left)) {
        *reason_p = "its body is not as its type demands";
        return UCS_ERR_INVALID_PARAM;
    }

    return UCS_OK;
}
