/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The form of control messages. See varuna_msg.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_msg.h"
#include "varuna_parse.h"
#include "varuna_uid.h"

#include <ucs/sys/math.h>
#include <stddef.h>
#include <string.h>


/*
 * Bodies. Each check gets the body as a cursor, takes the fixed part and returns how
 * many bytes must follow it; -1 if the fixed part is wrong.
 */

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

static ssize_t uct_varuna_check_atomic_req(uct_varuna_reader_t *body)
{
    uct_varuna_ctl_atomic_req_t req;
    uct_varuna_ctl_atomic_op_t op;
    const void *ptr;
    unsigned i;

    ptr = uct_varuna_reader_take(body, sizeof(req));
    if (ptr == NULL) {
        return -1;
    }

    memcpy(&req, ptr, sizeof(req));
    if ((req.count == 0) || (req.count > UCT_VARUNA_AMO_WINDOW) ||
        (req.acked == 0) || (req.first < req.acked)) {
        return -1;
    }

    for (i = 0; i < req.count; ++i) {
        ptr = uct_varuna_reader_take(body, sizeof(op));
        if (ptr == NULL) {
            return -1;
        }

        memcpy(&op, ptr, sizeof(op));
        if (((op.width != 4) && (op.width != 8)) || (op.addr % op.width) ||
            (op.op >= UCT_ATOMIC_OP_LAST)) {
            return -1;
        }
    }

    return 0;
}

static ssize_t uct_varuna_check_atomic_rep(uct_varuna_reader_t *body)
{
    uct_varuna_ctl_atomic_rep_t rep;
    const void *ptr;

    ptr = uct_varuna_reader_take(body, sizeof(rep));
    if (ptr == NULL) {
        return -1;
    }

    memcpy(&rep, ptr, sizeof(rep));
    return ((rep.count == 0) || (rep.count > UCT_VARUNA_AMO_WINDOW)) ? -1 :
           (ssize_t)(rep.count * sizeof(uct_varuna_ctl_atomic_result_t));
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
        (rep.flags >= UCT_VARUNA_FENCE_FLAG_LAST) ||
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

static ssize_t uct_varuna_check_links(uct_varuna_reader_t *body)
{
    const void *ptr;
    uct_varuna_ctl_links_t msg;

    ptr = uct_varuna_reader_take(body, sizeof(msg));
    if (ptr == NULL) {
        return -1;
    }

    memcpy(&msg, ptr, sizeof(msg));
    return (msg.addr_len == 0) ? -1 : msg.addr_len;
}

const uct_varuna_msg_info_t uct_varuna_msg_infos[UCT_VARUNA_CTL_LAST] = {
    [UCT_VARUNA_CTL_OPEN_REQ]    = {"OPEN_REQ", uct_varuna_check_open_req, 0},
    [UCT_VARUNA_CTL_OPEN_REP]    = {"OPEN_REP", uct_varuna_check_open_rep,
                                    UCT_VARUNA_MSG_FLAG_ANSWER},
    [UCT_VARUNA_CTL_CONNECT_REQ] = {"CONNECT_REQ",
                                    uct_varuna_check_connect_req,
                                    UCT_VARUNA_MSG_FLAG_EPOCH |
                                    UCT_VARUNA_MSG_FLAG_FROM},
    [UCT_VARUNA_CTL_CONNECT_REP] = {"CONNECT_REP",
                                    uct_varuna_check_connect_rep,
                                    UCT_VARUNA_MSG_FLAG_EPOCH |
                                    UCT_VARUNA_MSG_FLAG_ANSWER},
    [UCT_VARUNA_CTL_FENCE_REQ]   = {"FENCE_REQ", uct_varuna_check_fence_req,
                                    UCT_VARUNA_MSG_FLAG_EPOCH |
                                    UCT_VARUNA_MSG_FLAG_FROM},
    [UCT_VARUNA_CTL_FENCE_REP]   = {"FENCE_REP", uct_varuna_check_fence_rep,
                                    UCT_VARUNA_MSG_FLAG_EPOCH |
                                    UCT_VARUNA_MSG_FLAG_ANSWER},
    [UCT_VARUNA_CTL_CLOSE]       = {"CLOSE", uct_varuna_check_empty, 0},
    [UCT_VARUNA_CTL_CLOSE_REP]   = {"CLOSE_REP", uct_varuna_check_empty,
                                    UCT_VARUNA_MSG_FLAG_ANSWER},
    [UCT_VARUNA_CTL_REJECT]      = {"REJECT", uct_varuna_check_reject,
                                    UCT_VARUNA_MSG_FLAG_ANSWER},
    [UCT_VARUNA_CTL_PING]        = {"PING", uct_varuna_check_empty,
                                    UCT_VARUNA_MSG_FLAG_EPOCH |
                                    UCT_VARUNA_MSG_FLAG_FROM |
                                    UCT_VARUNA_MSG_FLAG_FREQUENT},
    [UCT_VARUNA_CTL_PONG]        = {"PONG", uct_varuna_check_pong,
                                    UCT_VARUNA_MSG_FLAG_EPOCH |
                                    UCT_VARUNA_MSG_FLAG_ANSWER |
                                    UCT_VARUNA_MSG_FLAG_FREQUENT},
    /* It answers no question, but only peers that know our secret may send it */
    [UCT_VARUNA_CTL_PORTS]       = {"PORTS", uct_varuna_check_ports,
                                    UCT_VARUNA_MSG_FLAG_ANSWER},
    [UCT_VARUNA_CTL_LINKS_REQ]   = {"LINKS_REQ", uct_varuna_check_empty,
                                    UCT_VARUNA_MSG_FLAG_FROM},
    [UCT_VARUNA_CTL_LINKS_REP]   = {"LINKS_REP", uct_varuna_check_links,
                                    UCT_VARUNA_MSG_FLAG_ANSWER},
    [UCT_VARUNA_CTL_PROXY_REQ]   = {"PROXY_REQ", uct_varuna_check_proxy_req,
                                    UCT_VARUNA_MSG_FLAG_FROM |
                                    UCT_VARUNA_MSG_FLAG_FREQUENT},
    [UCT_VARUNA_CTL_PROXY_REP]   = {"PROXY_REP", uct_varuna_check_proxy_rep,
                                    UCT_VARUNA_MSG_FLAG_ANSWER |
                                    UCT_VARUNA_MSG_FLAG_FREQUENT},
    [UCT_VARUNA_CTL_ATOMIC_REQ]  = {"ATOMIC_REQ", uct_varuna_check_atomic_req,
                                    UCT_VARUNA_MSG_FLAG_FROM |
                                    UCT_VARUNA_MSG_FLAG_FREQUENT},
    [UCT_VARUNA_CTL_ATOMIC_REP]  = {"ATOMIC_REP", uct_varuna_check_atomic_rep,
                                    UCT_VARUNA_MSG_FLAG_ANSWER |
                                    UCT_VARUNA_MSG_FLAG_FREQUENT}
};

const char *uct_varuna_ctl_type_name(unsigned type)
{
    const uct_varuna_msg_info_t *info = uct_varuna_msg_info(type);

    return (info == NULL) ? "unknown" : info->name;
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

/* Whether it is a message of this version, with a whole header */
static ucs_status_t uct_varuna_parse_ctl_hdr(const void *data, size_t length,
                                             uct_varuna_ctl_hdr_t *hdr,
                                             const char **reason_p)
{
    /* That of another version may be shorter */
    memset(hdr, 0, sizeof(*hdr));
    memcpy(hdr, data, ucs_min(length, sizeof(*hdr)));
    if (length <= offsetof(uct_varuna_ctl_hdr_t, version)) {
        *reason_p = "it is shorter than its header";
        return UCS_ERR_INVALID_PARAM;
    }

    if (hdr->magic != UCT_VARUNA_WIRE_MAGIC) {
        *reason_p = UCT_VARUNA_REASON_MAGIC;
        return UCS_ERR_INVALID_PARAM;
    }

    if (hdr->version != UCT_VARUNA_WIRE_VERSION) {
        *reason_p = UCT_VARUNA_REASON_VERSION;
        return UCS_ERR_UNSUPPORTED;
    }

    if (length < sizeof(*hdr)) {
        *reason_p = "it is shorter than its header";
        return UCS_ERR_INVALID_PARAM;
    }

    return UCS_OK;
}

/* Whether a header is as the type of its message, and the length, demand.
 * @return What is wrong, or NULL. */
static const char *uct_varuna_check_ctl_hdr(const uct_varuna_ctl_hdr_t *hdr,
                                            const uct_varuna_msg_info_t *info,
                                            size_t length)
{
    if (info == NULL) {
        return "its type is unknown";
    }

    if (hdr->secret == 0) {
        return "it has no secret";
    }

    if (!uct_varuna_check_from(hdr)) {
        return "the address of its requester is out of range";
    }

    if (((size_t)hdr->length + hdr->from_device_len + hdr->from_ctl_len) !=
        (length - sizeof(*hdr))) {
        return "its length differs from what its header says";
    }

    if ((info->flags & UCT_VARUNA_MSG_FLAG_EPOCH) && (hdr->epoch == 0)) {
        return "it names no incarnation";
    }

    return NULL;
}

ucs_status_t uct_varuna_parse_ctl(const void *data, size_t length,
                                  const char **reason_p)
{
    const uct_varuna_msg_info_t *info;
    uct_varuna_reader_t reader;
    uct_varuna_ctl_hdr_t hdr;
    ucs_status_t status;
    const char *reason;
    ssize_t rest;

    status = uct_varuna_parse_ctl_hdr(data, length, &hdr, reason_p);
    if (status != UCS_OK) {
        return status;
    }

    info   = uct_varuna_msg_info(hdr.type);
    reason = uct_varuna_check_ctl_hdr(&hdr, info, length);
    if (reason != NULL) {
        *reason_p = reason;
        return UCS_ERR_INVALID_PARAM;
    }

    reader.pos  = UCS_PTR_BYTE_OFFSET(data, sizeof(hdr));
    reader.left = hdr.length;
    rest        = info->check(&reader);
    if ((rest < 0) || ((size_t)rest != reader.left)) {
        *reason_p = "its body is not as its type demands";
        return UCS_ERR_INVALID_PARAM;
    }

    return UCS_OK;
}

/* --- Older versions --- */

/* What is read of control messages of older wire versions: their sender, so that peers
 * of a process that was replaced by one of another version are informed. */

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
