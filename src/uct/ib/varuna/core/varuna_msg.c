/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The form of control messages, and of addresses. See varuna_msg.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_msg.h"

#include <ucs/sys/math.h>
#include <stddef.h>
#include <string.h>
#include <ctype.h>
#include <stdint.h>

/* --- What the bounds of a body's members do not say --- */

/* A key is unpacked without its length. @return that, 0 if it is not whole. */
static size_t uct_varuna_take_rkey(uct_varuna_reader_t *rest)
{
    const void *ptr;
    size_t length;

    ptr = uct_varuna_reader_take(rest, sizeof(uct_varuna_packed_rkey_t));
    if (ptr == NULL) {
        return 0;
    }

    length = uct_varuna_rkey_length(ptr);
    return (uct_varuna_reader_take(rest, length -
                                   sizeof(uct_varuna_packed_rkey_t)) == NULL) ?
           0 : length;
}

static int uct_varuna_check_open_arena(const uct_varuna_ctl_open_rep_t *rep)
{
    if ((rep->home_nic >= UCT_VARUNA_MAX_LINKS) &&
        (rep->home_nic != UCT_VARUNA_HOME_NONE)) {
        return 0;
    }

    if (rep->arena_slots == 0) {
        return rep->num_slots == 0;
    }

    /* A UID is looked up among all slots that it can name: none may be missing */
    return (rep->arena_slots == UCT_VARUNA_SLOTS_MAX) &&
           (rep->slots_addr != 0) && (rep->marks_addr != 0) &&
           ((rep->own_addr != 0) || (rep->num_slots == 0)) &&
           (rep->num_slots <= UCT_VARUNA_SLOT_BLOCK) &&
           (rep->first_slot < rep->arena_slots) &&
           (rep->num_slots <= (rep->arena_slots - rep->first_slot));
}

static int uct_varuna_check_open_rep(const void *fixed, uct_varuna_reader_t *rest)
{
    const uct_varuna_ctl_open_rep_t *rep = fixed;

    if (!uct_varuna_check_open_arena(rep) ||
        (uct_varuna_take_rkey(rest) != rep->rkey_len) ||
        (uct_varuna_reader_take(rest, rep->addr_len) == NULL)) {
        return 0;
    }

    return (rep->arena_slots == 0) ||
           (uct_varuna_take_rkey(rest) && uct_varuna_take_rkey(rest) &&
            ((rep->num_slots == 0) || uct_varuna_take_rkey(rest)) &&
            (uct_varuna_reader_take(rest, rep->num_slots * sizeof(uint64_t)) != NULL));
}

/* Whether an atomic can have this place */
static int uct_varuna_check_word(uint64_t addr, unsigned width)
{
    return ((width == 4) || (width == 8)) && !(addr % width);
}

static int uct_varuna_check_home_req(const void *fixed, uct_varuna_reader_t *rest)
{
    const uct_varuna_ctl_home_req_t *req = fixed;

    return uct_varuna_check_word(req->addr, req->width);
}

/* Success, or an error: it becomes the endpoint's */
static int uct_varuna_check_home_rep(const void *fixed, uct_varuna_reader_t *rest)
{
    const uct_varuna_ctl_home_rep_t *rep = fixed;

    return rep->status <= 0;
}

static int uct_varuna_check_atomic_req(const void *fixed, uct_varuna_reader_t *rest)
{
    const uct_varuna_ctl_atomic_req_t *req = fixed;
    const uct_varuna_ctl_atomic_op_t *op;
    unsigned i;

    if (req->first < req->acked) {
        return 0;
    }

    for (i = 0; i < req->count; ++i) {
        op = uct_varuna_reader_take(rest, sizeof(*op));
        if ((op == NULL) || !uct_varuna_check_word(op->addr, op->width) ||
            (op->op >= UCT_ATOMIC_OP_LAST)) {
            return 0;
        }
    }

    return 1;
}

/* Only answers report a failure, without addresses */
static int uct_varuna_check_connect_rep(const void *fixed, uct_varuna_reader_t *rest)
{
    const uct_varuna_ctl_connect_t *rep = fixed;

    return (rep->status != 0) ? ((rep->device_len == 0) && (rep->ep_len == 0)) :
           ((rep->link < UCT_VARUNA_MAX_LINKS) && (rep->device_len > 0) &&
            (rep->ep_len > 0));
}

/* The order is known to be one, or the other, or unknown */
static int uct_varuna_check_fence_rep(const void *fixed, uct_varuna_reader_t *rest)
{
    const uct_varuna_ctl_fence_rep_t *rep = fixed;

    return (!(rep->flags & UCT_VARUNA_FENCE_FLAG_ORDERED) ||
            !(rep->flags & UCT_VARUNA_FENCE_FLAG_UNORDERED)) &&
           !(rep->dc_ordered & rep->dc_unordered);
}

/* --- Rows --- */

/* _unit bytes follow for each of its value */
#define UCT_VARUNA_MSG_FIELD(_type, _member, _unit, _min, _max) \
    {offsetof(uct_varuna_ctl_##_type##_t, _member), \
     sizeof(((uct_varuna_ctl_##_type##_t*)NULL)->_member), _unit, _min, _max}

/* In the order of the types */
const uct_varuna_msg_info_t uct_varuna_msg_infos[] = {
    {.type = 0},
    {
        .type   = UCT_VARUNA_CTL_OPEN_REQ,
        .name   = "OPEN_REQ",
        .size   = sizeof(uct_varuna_ctl_open_req_t),
        .answer = UCT_VARUNA_CTL_OPEN_REP,
        .fields = {UCT_VARUNA_MSG_FIELD(open_req, addr_len, 1, 0, UINT16_MAX)}
    },
    {
        .type   = UCT_VARUNA_CTL_OPEN_REP,
        .name   = "OPEN_REP",
        .size   = sizeof(uct_varuna_ctl_open_rep_t),
        .flags  = UCT_VARUNA_MSG_FLAG_ANSWER,
        .fields = {
            UCT_VARUNA_MSG_FIELD(open_rep, log_addr, 0, 1, UINT64_MAX),
            UCT_VARUNA_MSG_FIELD(open_rep, target, 0, 0, UCT_VARUNA_TARGET_ID_MAX - 1),
            UCT_VARUNA_MSG_FIELD(open_rep, log_size, 0, UCT_VARUNA_LOG_SIZE,
                                 UCT_VARUNA_LOG_SIZE),
            UCT_VARUNA_MSG_FIELD(open_rep, log_count, 0, UCT_VARUNA_LOG_COUNT,
                                 UCT_VARUNA_LOG_COUNT),
            UCT_VARUNA_MSG_FIELD(open_rep, rkey_len, 0, 1, UINT16_MAX),
            UCT_VARUNA_MSG_FIELD(open_rep, addr_len, 0, 1, UINT16_MAX),
            UCT_VARUNA_MSG_FIELD(open_rep, atomic_mode, 0, 0,
                                 UCT_VARUNA_ATOMIC_LAST - 1)
        },
        .check  = uct_varuna_check_open_rep
    },
    {
        .type   = UCT_VARUNA_CTL_CONNECT_REQ,
        .name   = "CONNECT_REQ",
        .size   = sizeof(uct_varuna_ctl_connect_t),
        .flags  = UCT_VARUNA_MSG_FLAG_EPOCH | UCT_VARUNA_MSG_FLAG_FROM,
        .answer = UCT_VARUNA_CTL_CONNECT_REP,
        .fields = {
            UCT_VARUNA_MSG_FIELD(connect, link, 0, 0, UCT_VARUNA_MAX_LINKS - 1),
            UCT_VARUNA_MSG_FIELD(connect, status, 0, 0, 0),
            UCT_VARUNA_MSG_FIELD(connect, device_len, 1, 1, UCT_VARUNA_DEVICE_ADDR_MAX),
            UCT_VARUNA_MSG_FIELD(connect, ep_len, 1, 1, UINT8_MAX)
        }
    },
    {
        .type   = UCT_VARUNA_CTL_CONNECT_REP,
        .name   = "CONNECT_REP",
        .size   = sizeof(uct_varuna_ctl_connect_t),
        .flags  = UCT_VARUNA_MSG_FLAG_EPOCH | UCT_VARUNA_MSG_FLAG_ANSWER,
        .fields = {
            UCT_VARUNA_MSG_FIELD(connect, device_len, 1, 0, UCT_VARUNA_DEVICE_ADDR_MAX),
            UCT_VARUNA_MSG_FIELD(connect, ep_len, 1, 0, UINT8_MAX)
        },
        .check  = uct_varuna_check_connect_rep
    },
    {
        .type   = UCT_VARUNA_CTL_FENCE_REQ,
        .name   = "FENCE_REQ",
        .size   = sizeof(uct_varuna_ctl_fence_req_t),
        .flags  = UCT_VARUNA_MSG_FLAG_EPOCH | UCT_VARUNA_MSG_FLAG_FROM,
        .answer = UCT_VARUNA_CTL_FENCE_REP
    },
    {
        .type   = UCT_VARUNA_CTL_FENCE_REP,
        .name   = "FENCE_REP",
        .size   = sizeof(uct_varuna_ctl_fence_rep_t),
        .flags  = UCT_VARUNA_MSG_FLAG_EPOCH | UCT_VARUNA_MSG_FLAG_ANSWER,
        .fields = {
            UCT_VARUNA_MSG_FIELD(fence_rep, flags, 0, 0, UCT_VARUNA_FENCE_FLAG_LAST - 1),
            UCT_VARUNA_MSG_FIELD(fence_rep, epsn, 0, 0, UCS_MASK(24)),
            UCT_VARUNA_MSG_FIELD(fence_rep, log_size, sizeof(uint64_t),
                                 UCT_VARUNA_LOG_SIZE, UCT_VARUNA_LOG_SIZE)
        },
        .check  = uct_varuna_check_fence_rep
    },
    {
        .type   = UCT_VARUNA_CTL_CLOSE,
        .name   = "CLOSE",
        .answer = UCT_VARUNA_CTL_CLOSE_REP
    },
    {
        .type   = UCT_VARUNA_CTL_REJECT,
        .name   = "REJECT",
        .size   = sizeof(uct_varuna_ctl_reject_t),
        .flags  = UCT_VARUNA_MSG_FLAG_ANSWER,
        .fields = {UCT_VARUNA_MSG_FIELD(reject, status, 0, UCS_BIT(15), UINT16_MAX)}
    },
    {
        .type   = UCT_VARUNA_CTL_PING,
        .name   = "PING",
        .flags  = UCT_VARUNA_MSG_FLAG_EPOCH | UCT_VARUNA_MSG_FLAG_FROM |
                  UCT_VARUNA_MSG_FLAG_FREQUENT,
        .answer = UCT_VARUNA_CTL_PONG
    },
    {
        .type   = UCT_VARUNA_CTL_PONG,
        .name   = "PONG",
        .size   = sizeof(uct_varuna_ctl_pong_t),
        .flags  = UCT_VARUNA_MSG_FLAG_EPOCH | UCT_VARUNA_MSG_FLAG_ANSWER |
                  UCT_VARUNA_MSG_FLAG_FREQUENT
    },
    /* It answers no question, but only peers that know our secret may send it */
    {
        .type   = UCT_VARUNA_CTL_PORTS,
        .name   = "PORTS",
        .size   = sizeof(uct_varuna_ctl_ports_t),
        .flags  = UCT_VARUNA_MSG_FLAG_ANSWER
    },
    {
        .type   = UCT_VARUNA_CTL_CLOSE_REP,
        .name   = "CLOSE_REP",
        .flags  = UCT_VARUNA_MSG_FLAG_ANSWER
    },
    {
        .type   = UCT_VARUNA_CTL_LINKS_REQ,
        .name   = "LINKS_REQ",
        .flags  = UCT_VARUNA_MSG_FLAG_FROM,
        .answer = UCT_VARUNA_CTL_LINKS_REP
    },
    {
        .type   = UCT_VARUNA_CTL_LINKS_REP,
        .name   = "LINKS_REP",
        .size   = sizeof(uct_varuna_ctl_links_t),
        .flags  = UCT_VARUNA_MSG_FLAG_ANSWER,
        .fields = {UCT_VARUNA_MSG_FIELD(links, addr_len, 1, 1, UINT16_MAX)}
    },
    {.type = 15}, /* Of an older version */
    {
        .type   = UCT_VARUNA_CTL_HOME_REQ,
        .name   = "HOME_REQ",
        .size   = sizeof(uct_varuna_ctl_home_req_t),
        .flags  = UCT_VARUNA_MSG_FLAG_FROM | UCT_VARUNA_MSG_FLAG_FREQUENT,
        .answer = UCT_VARUNA_CTL_HOME_REP,
        .fields = {
            UCT_VARUNA_MSG_FIELD(home_req, seq, 0, 1, UINT64_MAX),
            UCT_VARUNA_MSG_FIELD(home_req, width, 0, 4, 8),
            UCT_VARUNA_MSG_FIELD(home_req, slot, 0, 0, UCT_VARUNA_SLOTS_MAX - 1)
        },
        .check  = uct_varuna_check_home_req
    },
    {
        .type   = UCT_VARUNA_CTL_HOME_REP,
        .name   = "HOME_REP",
        .size   = sizeof(uct_varuna_ctl_home_rep_t),
        .flags  = UCT_VARUNA_MSG_FLAG_ANSWER | UCT_VARUNA_MSG_FLAG_FREQUENT,
        .check  = uct_varuna_check_home_rep
    },
    {
        .type   = UCT_VARUNA_CTL_ATOMIC_REQ,
        .name   = "ATOMIC_REQ",
        .size   = sizeof(uct_varuna_ctl_atomic_req_t),
        .flags  = UCT_VARUNA_MSG_FLAG_FROM | UCT_VARUNA_MSG_FLAG_FREQUENT,
        .answer = UCT_VARUNA_CTL_ATOMIC_REP,
        .fields = {
            UCT_VARUNA_MSG_FIELD(atomic_req, acked, 0, 1, UINT64_MAX),
            UCT_VARUNA_MSG_FIELD(atomic_req, count, 0, 1, UCT_VARUNA_AMO_WINDOW)
        },
        .check  = uct_varuna_check_atomic_req
    },
    {
        .type   = UCT_VARUNA_CTL_ATOMIC_REP,
        .name   = "ATOMIC_REP",
        .size   = sizeof(uct_varuna_ctl_atomic_rep_t),
        .flags  = UCT_VARUNA_MSG_FLAG_ANSWER | UCT_VARUNA_MSG_FLAG_FREQUENT,
        .fields = {UCT_VARUNA_MSG_FIELD(atomic_rep, count,
                                        sizeof(uct_varuna_ctl_atomic_result_t), 1,
                                        UCT_VARUNA_AMO_WINDOW)}
    },
    {
        .type   = UCT_VARUNA_CTL_KEY_REQ,
        .name   = "KEY_REQ",
        .size   = sizeof(uct_varuna_ctl_key_req_t),
        .flags  = UCT_VARUNA_MSG_FLAG_FROM,
        .answer = UCT_VARUNA_CTL_KEY_REP,
        .fields = {UCT_VARUNA_MSG_FIELD(key_req, nic, 0, 0, UCT_VARUNA_MAX_LINKS - 1)}
    },
    {
        .type   = UCT_VARUNA_CTL_KEY_REP,
        .name   = "KEY_REP",
        .size   = sizeof(uct_varuna_ctl_key_rep_t),
        .flags  = UCT_VARUNA_MSG_FLAG_ANSWER,
        .fields = {UCT_VARUNA_MSG_FIELD(key_rep, nic, 0, 0, UCT_VARUNA_MAX_LINKS - 1)}
    }
};

/* A row is missing otherwise */
UCT_VARUNA_STATIC_ASSERT(ucs_static_array_size(uct_varuna_msg_infos) ==
                         UCT_VARUNA_CTL_LAST);

int uct_varuna_msg_check_body(unsigned type, const void *body, size_t length)
{
    const uct_varuna_msg_info_t *info = &uct_varuna_msg_infos[type];
    uct_varuna_reader_t rest          = {body, length};
    const void *fixed                 = uct_varuna_reader_take(&rest, info->size);
    uint64_t follow                   = 0;
    uint64_t value;
    unsigned i;

    if (fixed == NULL) {
        return 0;
    }

    for (i = 0; (i < UCT_VARUNA_MSG_MAX_FIELDS) && (info->fields[i].size > 0); ++i) {
        value = uct_varuna_msg_value(&info->fields[i], fixed);
        if ((value < info->fields[i].min) || (value > info->fields[i].max)) {
            return 0;
        }
        follow += value * info->fields[i].unit;
    }

    return ((info->check == NULL) || info->check(fixed, &rest)) && (rest.left == follow);
}

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
    link->generation  = hdr.from_generation;
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
    uct_varuna_ctl_hdr_t hdr;
    ucs_status_t status;
    const char *reason;

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

    if (!uct_varuna_msg_check_body(hdr.type, UCS_PTR_BYTE_OFFSET(data, sizeof(hdr)),
                                   hdr.length)) {
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
    link->nic         = old.from_nic % UCT_VARUNA_MAX_LINKS;
    link->generation  = 0;
    link->device_len  = old.from_device_len;
    link->device_addr = UCS_PTR_BYTE_OFFSET(data, sizeof(old) + old.length);
    link->dc_len      = 0;
    link->dc_addr     = NULL;
    link->ctl_len     = old.from_ctl_len;
    link->ctl_addr    = UCS_PTR_BYTE_OFFSET(link->device_addr,
                                            old.from_device_len);
    return UCS_OK;
}

/* --- Addresses --- */

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
    link->nic         = entry.index;
    link->generation  = entry.generation;
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
        (entry.index >= UCT_VARUNA_MAX_LINKS) ||
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

    link->nic         = *entry >> UCT_VARUNA_ADDR_DEVICE_BITS;
    link->generation  = 0;
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
