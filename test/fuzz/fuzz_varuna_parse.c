/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Input from peers of rc_varuna: control messages, interface addresses, and the
 * evidence of an incarnation (its log ring, its PSN).
 */
#include "fuzz.h"
#include "fuzz_msg.h"
#include "config.h"
#include <uct/ib/varuna/core/varuna_oplog.h>
#include <uct/ib/varuna/core/varuna_plan.h>
#include <uct/ib/varuna/md/varuna_md.h>

#define PARSE_MAX_OPS 80

/* All pointers must be into the input, or into the parsed structure */
static void check_addr(const uint8_t *device, const uint8_t *data, size_t size,
                       size_t length)
{
    uct_varuna_parsed_addr_t parsed;
    const char *reason = NULL;
    const uint8_t *begin, *end;
    const uct_varuna_parsed_link_t *link;
    unsigned i;

    if (uct_varuna_parse_addr(device, data, length, &parsed, &reason) !=
        UCS_OK) {
        FUZZ_CHECK(reason != NULL);
        return;
    }

    begin = parsed.is_short ? (const uint8_t*)parsed.room : data;
    end   = parsed.is_short ? begin + sizeof(parsed.room) : data + size;
    FUZZ_CHECK(parsed.num_links > 0);
    FUZZ_CHECK(parsed.num_links <= UCT_VARUNA_MAX_LINKS);
    FUZZ_CHECK(parsed.length <= size);
    FUZZ_CHECK(!parsed.is_short || (device != NULL));
    for (i = 0; i < parsed.num_links; ++i) {
        link = &parsed.links[i];
        FUZZ_CHECK(link->nic < UCT_VARUNA_MAX_LINKS);
        FUZZ_CHECK(!parsed.is_short || (link->generation == 0));
        FUZZ_CHECK(((const uint8_t*)link->device_addr >= begin) &&
                   ((const uint8_t*)link->device_addr + link->device_len <=
                    end));
        FUZZ_CHECK((link->device_len > 0) &&
                   (link->device_len <= UCT_VARUNA_DEVICE_ADDR_MAX));
        FUZZ_CHECK(parsed.is_short == (link->dc_addr == NULL));
        FUZZ_CHECK((link->dc_addr == NULL) ||
                   ((const uint8_t*)link->dc_addr + link->dc_len <= end));
        FUZZ_CHECK(((const uint8_t*)link->ctl_addr >= begin) &&
                   ((const uint8_t*)link->ctl_addr + link->ctl_len <= end));
    }
}

/* The keys of an arena of slots and the marks follow the address */
static size_t arena_size(const uct_varuna_ctl_open_rep_t *rep)
{
    const uint8_t *begin = (const uint8_t*)(rep + 1) + rep->rkey_len +
                           rep->addr_len;
    const uint8_t *pos   = begin;
    unsigned i;

    if (rep->arena_slots == 0) {
        return 0;
    }

    for (i = 0; i < ((rep->num_slots > 0) ? 3 : 2); ++i) {
        pos += uct_varuna_rkey_length(pos);
    }

    return (pos - begin) + (rep->num_slots * sizeof(uint64_t));
}

/* Of the version before */
static void check_ctl_old(const uint8_t *data, size_t size)
{
    uct_varuna_parsed_addr_t from;
    uct_varuna_ctl_hdr_t hdr;

    if (uct_varuna_parse_ctl_old(data, size, &hdr, &from) == UCS_OK) {
        FUZZ_CHECK((from.links[0].device_len > 0) &&
                   (from.links[0].device_len <= UCT_VARUNA_DEVICE_ADDR_MAX) &&
                   (from.links[0].ctl_len <= UCT_VARUNA_CTL_ADDR_MAX));
        FUZZ_CHECK((const uint8_t*)from.links[0].ctl_addr +
                   from.links[0].ctl_len == data + size);
    }
}

/* A body is as long as the members of its fixed part say. Of OPEN_REP and ATOMIC_REQ not all
 * is in the row, see check_ctl() */
static void check_length(unsigned type, const uint8_t *body, size_t length)
{
    const uct_varuna_msg_info_t *info = uct_varuna_msg_info(type);
    uint64_t end                      = info->size;
    unsigned i;

    FUZZ_CHECK(length >= end);
    for (i = 0; (i < UCT_VARUNA_MSG_MAX_FIELDS) && (info->fields[i].size > 0); ++i) {
        end += info->fields[i].unit * uct_varuna_msg_value(&info->fields[i], body);
    }
    FUZZ_CHECK((length == end) || (type == UCT_VARUNA_CTL_OPEN_REP) ||
               (type == UCT_VARUNA_CTL_ATOMIC_REQ));
}

/* As the control plane does: read a message that passes the check according to its
 * type */
static void check_ctl(const uint8_t *data, size_t size)
{
    const uct_varuna_ctl_hdr_t *hdr = (const void*)data;
    const uint8_t *body             = data + sizeof(*hdr);
    const char *reason              = NULL;
    const uct_varuna_ctl_open_req_t *req;
    const uct_varuna_ctl_open_rep_t *rep;
    const uct_varuna_ctl_atomic_req_t *atomics;
    uct_varuna_parsed_addr_t from;

    if (uct_varuna_parse_ctl(data, size, &reason) != UCS_OK) {
        FUZZ_CHECK(reason != NULL);
        check_ctl_old(data, size);
        return;
    }

    FUZZ_CHECK(strcmp(uct_varuna_ctl_type_name(hdr->type), "unknown") != 0);
    if (uct_varuna_parse_ctl_from(data, &from) == UCS_OK) {
        FUZZ_CHECK(uct_varuna_ctl_has_from(hdr->type));
        FUZZ_CHECK((from.links[0].nic < UCT_VARUNA_MAX_LINKS) &&
                   (from.links[0].generation == hdr->from_generation));
        FUZZ_CHECK((from.links[0].device_len > 0) &&
                   (from.links[0].device_len <= UCT_VARUNA_DEVICE_ADDR_MAX));
        FUZZ_CHECK((from.links[0].ctl_len > 0) &&
                   (from.links[0].ctl_len <= UCT_VARUNA_CTL_ADDR_MAX));
        FUZZ_CHECK((const uint8_t*)from.links[0].ctl_addr +
                   from.links[0].ctl_len == data + size);
        size -= from.length;
    } else {
        FUZZ_CHECK(!uct_varuna_ctl_has_from(hdr->type));
    }

    check_length(hdr->type, body, size - sizeof(*hdr));
    switch (hdr->type) {
    case UCT_VARUNA_CTL_OPEN_REQ:
        req = (const void*)body;
        check_addr(NULL, (const uint8_t*)(req + 1), req->addr_len,
                   req->addr_len);
        break;
    case UCT_VARUNA_CTL_OPEN_REP:
        rep = (const void*)body;
        FUZZ_CHECK(sizeof(*hdr) + sizeof(*rep) + rep->rkey_len +
                   rep->addr_len + arena_size(rep) == size);
        check_addr(NULL, (const uint8_t*)(rep + 1) + rep->rkey_len,
                   rep->addr_len, rep->addr_len);
        break;
    case UCT_VARUNA_CTL_ATOMIC_REQ:
        atomics = (const void*)body;
        FUZZ_CHECK(sizeof(*hdr) + sizeof(*atomics) +
                   (atomics->count * sizeof(uct_varuna_ctl_atomic_op_t)) == size);
        break;
    default:
        break;
    }
}

/* Forged evidence: no crash, and each request is counted once */
static void check_plan(const uint8_t *data, size_t size)
{
    fuzz_input_t in = { data, size };
    uint64_t log[UCT_VARUNA_LOG_SIZE];
    uct_varuna_plan_op_t ops[PARSE_MAX_OPS];
    uct_varuna_plan_result_t result;
    uct_varuna_evidence_t evidence;
    unsigned num_ops, i, flags, sn, logged = 0;

    memset(ops, 0, sizeof(ops));
    memset(&evidence, 0, sizeof(evidence));
    num_ops            = fuzz_u64(&in, 1) % PARSE_MAX_OPS;
    sn                 = fuzz_u64(&in, 4);
    flags              = fuzz_u64(&in, 1);
    evidence.has_psn   = flags & 1;
    evidence.unordered = !!(flags & 2);
    evidence.acked_psn = fuzz_u64(&in, 4);
    evidence.next_psn  = evidence.acked_psn + fuzz_u64(&in, 4);
    evidence.epsn      = fuzz_u64(&in, 4) & 0xffffff;
    evidence.log       = log;
    for (i = 0; i < num_ops; ++i) {
        flags          = fuzz_u64(&in, 1);
        ops[i].kind    = (flags & 0xf) % (UCT_VARUNA_OP_FLUSH + 1);
        ops[i].posted  = !!(flags & 0x10);
        ops[i].fenced  = !!(flags & 0x20);
        ops[i].logged  = !!(flags & 0x40);
        ops[i].log_sn  = sn;
        ops[i].end_psn = fuzz_u64(&in, 3);
        ops[i].req     = (const void*)(uintptr_t)(0x1000 + i * 64);
        sn            += (ops[i].kind == UCT_VARUNA_OP_PUT) ||
                         (ops[i].kind == UCT_VARUNA_OP_ATOMIC);
        logged        += (ops[i].kind == UCT_VARUNA_OP_PUT) ||
                         (ops[i].kind == UCT_VARUNA_OP_ATOMIC);
    }
    fuzz_take(&in, log, sizeof(log));

    uct_varuna_plan_make(ops, num_ops, &evidence, &result);
    for (i = 0; i < num_ops; ++i) {
        FUZZ_CHECK(ops[i].verdict <= UCT_VARUNA_VERDICT_LOST_DATA);
        FUZZ_CHECK(ops[i].posted ||
                   (ops[i].verdict == UCT_VARUNA_VERDICT_REPEAT));
        FUZZ_CHECK((ops[i].verdict != UCT_VARUNA_VERDICT_AMBIGUOUS) ||
                   !evidence.has_psn || (result.doubt == UCT_VARUNA_DOUBT_PSN));
    }
    FUZZ_CHECK(result.executed + result.lost + result.ambiguous +
               result.lost_data <= logged);
}

/* UCP's address: the device address of maximum length precedes it. The length of the
 * interface address is unknown, but at most the maximum of UCP. */
static void check_ucp_addr(const uint8_t *data, size_t size)
{
    uint8_t *device = calloc(1, UCT_VARUNA_DEVICE_ADDR_MAX);
    uint8_t *addr   = calloc(1, UCT_VARUNA_IFACE_ADDR_MAX);
    fuzz_input_t in = { data, size };

    FUZZ_CHECK((device != NULL) && (addr != NULL));
    fuzz_take(&in, device, UCT_VARUNA_DEVICE_ADDR_MAX);
    fuzz_take(&in, addr, UCT_VARUNA_IFACE_ADDR_MAX);
    check_addr(device, addr, UCT_VARUNA_IFACE_ADDR_MAX, SIZE_MAX);
    free(device);
    free(addr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t device[UCT_VARUNA_DEVICE_ADDR_MAX] = "a device";
    uint8_t *copy;

    if ((size < 1) || (size > 4096)) {
        return 0;
    }

    /* Exactly this length, so that the sanitizer detects reads after the end */
    copy = malloc(size);
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, data, size);
    switch (data[0] % 5) {
    case 0:
        check_plan(copy + 1, size - 1);
        break;
    case 1:
        check_addr(NULL, copy + 1, size - 1, size - 1);
        break;
    case 2:
        check_ucp_addr(copy + 1, size - 1);
        break;
    case 3:
        check_ctl(copy + 1, size - 1);
        break;
    default:
        check_addr(device, copy + 1, size - 1, size - 1);
        break;
    }
    free(copy);
    return 0;
}

typedef void (*seed_add_t)(const void *data, size_t size);

static void seed_ctl(seed_add_t add, uint8_t type, const void *body, size_t length)
{
    uint8_t data[2048]        = { 3 };
    uct_varuna_ctl_hdr_t *hdr = (void*)(data + 1);

    hdr->magic           = UCT_VARUNA_WIRE_MAGIC;
    hdr->version         = UCT_VARUNA_WIRE_VERSION;
    hdr->type            = type;
    hdr->length          = length;
    hdr->uuid            = 0x1234;
    hdr->secret          = 0x5678;
    hdr->vqp             = 1;
    hdr->epoch           = 2;
    hdr->from_generation = 1;
    if (length > 0) {
        memcpy(hdr + 1, body, length);
    }
    if (uct_varuna_ctl_has_from(type)) {
        hdr->from_device_len = 3;
        hdr->from_ctl_len    = 5;
    }
    add(data, 1 + sizeof(*hdr) + length + hdr->from_device_len +
              hdr->from_ctl_len);
}

/* A short address of two links after UCP's device address */
static size_t seed_short_addr(uint8_t *data)
{
    static const uint8_t entries[] = {
        5, 5, 0x05, 0x00, 0x1f, 1, 2, 3, 4, 5, 0x25, 0x0a, 7, 8, 0x01, 9
    };
    uct_varuna_addr_t *addr = (void*)data;

    addr->magic     = UCT_VARUNA_WIRE_MAGIC;
    addr->version   = UCT_VARUNA_WIRE_VERSION;
    addr->num_links = 2 | UCT_VARUNA_ADDR_SHORT;
    addr->uuid      = 0x1234;
    memcpy(addr + 1, entries, sizeof(entries));
    return sizeof(*addr) + sizeof(entries);
}

static size_t seed_addr(uint8_t *data)
{
    uct_varuna_addr_t *addr      = (void*)data;
    uct_varuna_addr_link_t *link = (void*)(addr + 1);

    addr->magic     = UCT_VARUNA_WIRE_MAGIC;
    addr->version   = UCT_VARUNA_WIRE_VERSION;
    addr->num_links = 1;
    addr->uuid      = 0x1234;
    link->index      = 1;
    link->device_len = 3;
    link->dc_len     = 5;
    link->ctl_len    = 5;
    link->generation = UINT16_MAX;
    return sizeof(*addr) + sizeof(*link) + 3 + 10;
}

/* PING of version 10 */
static void seed_old_ping(seed_add_t add)
{
    const uint16_t magic = UCT_VARUNA_WIRE_MAGIC;
    uint8_t data[64]     = { 3 };

    memcpy(data + 1, &magic, sizeof(magic));
    data[3]  = 10;
    data[4]  = UCT_VARUNA_CTL_PING;
    data[37] = 3;
    data[38] = 5;
    add(data, 1 + 40 + 8);
}

static void seed_addrs(seed_add_t add)
{
    uint8_t data[256] = { 1 };

    add(data, 1 + seed_addr(data + 1));
    data[0] = 4;
    add(data, 1 + seed_short_addr(data + 1));
    data[0] = 2;
    memset(data + 1, 'd', UCT_VARUNA_DEVICE_ADDR_MAX);
    add(data, 1 + UCT_VARUNA_DEVICE_ADDR_MAX +
              seed_short_addr(data + 1 + UCT_VARUNA_DEVICE_ADDR_MAX));
}

static uint64_t seed_next(void *arg)
{
    uint64_t *state = arg;

    *state = (*state * 6364136223846793005ul) + 1442695040888963407ul;
    return *state >> 32;
}

/* Messages of all types */
static void seed_ctls(seed_add_t add)
{
    uint64_t state = 1;
    uint8_t body[FUZZ_MSG_MAX_BODY];
    unsigned type, i;
    size_t length;

    for (type = 0; type < UCT_VARUNA_CTL_LAST; ++type) {
        for (i = 0; (i < 4) && (uct_varuna_msg_info(type) != NULL); ++i) {
            FUZZ_CHECK(fuzz_msg_make(type, seed_next, &state, body, &length) == 0);
            seed_ctl(add, type, body, length);
        }
    }
}

/* Messages with an address that is right */
static void seed_addr_ctl(seed_add_t add)
{
    uint8_t body[256]              = { 0 };
    uct_varuna_ctl_open_req_t *req = (void*)body;
    uct_varuna_ctl_open_rep_t *rep = (void*)body;
    uct_varuna_packed_rkey_t *rkey = (void*)(rep + 1);

    req->addr_len  = seed_addr((uint8_t*)(req + 1));
    seed_ctl(add, UCT_VARUNA_CTL_OPEN_REQ, body, sizeof(*req) + req->addr_len);
    memset(body, 0, sizeof(body));
    rep->log_addr  = 0x1000;
    rep->log_size  = UCT_VARUNA_LOG_SIZE;
    rep->log_count = UCT_VARUNA_LOG_COUNT;
    rkey->num_keys = 1;
    rkey->key_size = sizeof(uct_varuna_packed_key_t);
    rep->rkey_len  = sizeof(*rkey) + rkey->key_size;
    rep->addr_len  = seed_addr((uint8_t*)(rkey + 1) + rkey->key_size);
    seed_ctl(add, UCT_VARUNA_CTL_OPEN_REP, body,
             sizeof(*rep) + rep->rkey_len + rep->addr_len);
}

/* Ten puts, of which some are in the log */
static void seed_plan(seed_add_t add)
{
    uint8_t data[51 + 8 * UCT_VARUNA_LOG_SIZE] = { 0 };
    uint64_t entry;
    unsigned i;

    data[1] = 10;
    data[2] = 1;
    for (i = 0; i < 10; ++i) {
        data[11 + 4 * i] = 0x50;
        data[12 + 4 * i] = 2 * i + 1;
    }
    for (i = 1; i < 6; ++i) {
        entry = uct_varuna_log_entry((void*)(uintptr_t)(0x1000 + (i - 1) * 64), i);
        memcpy(data + 51 + 8 * i, &entry, sizeof(entry));
    }
    add(data, sizeof(data));
}

void fuzz_seeds(void (*add)(const void *data, size_t size))
{
    seed_old_ping(add);
    seed_addrs(add);
    seed_ctls(add);
    seed_addr_ctl(add);
    seed_plan(add);
}
