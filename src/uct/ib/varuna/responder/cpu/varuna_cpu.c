/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Executes atomics of peers. See varuna_cpu.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_cpu.h"
#include "varuna_fault.h"
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/responder/amo/varuna_home_nic.h>
#include <uct/ib/varuna/responder/varuna_target.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <string.h>


/* This mode's part of the responder */
typedef struct uct_varuna_cpu {
    uct_varuna_home_nic_t      home;
    ucs_time_t                 down_at;   /* The home NIC's port is, since then; 0: it is
                                             not, or nobody has asked */
} uct_varuna_cpu_t;

static uct_varuna_cpu_t *uct_varuna_cpu(uct_varuna_responder_t *resp)
{
    return resp->amo_part;
}

static uct_varuna_cpu_client_t *uct_varuna_cpu_client(uct_varuna_target_t *target)
{
    return (uct_varuna_cpu_client_t*)target->amo_part;
}

static int uct_varuna_cpu_client_start(uct_varuna_cpu_client_t *client)
{
    if (client->kept != NULL) {
        return 1;
    }

    client->kept = ucs_malloc(sizeof(*client->kept), "varuna_amo_kept");
    if (client->kept == NULL) {
        return 0; /* It asks again */
    }

    uct_varuna_amo_kept_init(client->kept);
    return 1;
}

/* Nothing but the access is done while the region is held. */
static ucs_status_t
uct_varuna_cpu_execute(uct_varuna_ctl_t *ctl,
                       const uct_varuna_ctl_atomic_op_t *op, uint64_t *value_p)
{
    uct_varuna_md_t *md = ctl->iface->md;
    ucs_status_t status;

    if (!uct_varuna_md_hold(md, op->token, op->addr, op->width)) {
        return UCS_ERR_REJECTED;
    }

    status = uct_varuna_cpu_op(op, value_p);
    uct_varuna_md_release(md);
    return status;
}

static void uct_varuna_cpu_complain(uct_varuna_ctl_t *ctl,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const uct_varuna_ctl_atomic_op_t *op,
                                    ucs_status_t status)
{
    char reason[128];

    ucs_snprintf_safe(reason, sizeof(reason),
                      (status == UCS_ERR_REJECTED) ?
                      "0x%lx is in no memory for which it has a key of atomics" :
                      "0x%lx is not mapped, or cannot be written", op->addr);
    uct_varuna_ctl_complain(ctl, hdr->uuid, "an atomic", reason);
}

static void uct_varuna_cpu_run_next(uct_varuna_ctl_t *ctl,
                                    uct_varuna_amo_kept_t *kept,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const uct_varuna_ctl_atomic_op_t *op)
{
    uct_varuna_ctl_atomic_result_t result;
    ucs_status_t status;
    uint64_t value = 0;

    memset(&result, 0, sizeof(result));
    status = uct_varuna_cpu_execute(ctl, op, &value);
    if (status != UCS_OK) {
        uct_varuna_cpu_complain(ctl, hdr, op, status);
    }

    result.value  = value;
    result.status = status;
    uct_varuna_amo_kept_add(kept, &result);
}

/* @return How many of the requests have results now, which are put at @a results. */
static unsigned uct_varuna_cpu_run(uct_varuna_ctl_t *ctl,
                                   uct_varuna_amo_kept_t *kept,
                                   const uct_varuna_ctl_hdr_t *hdr,
                                   const uct_varuna_ctl_atomic_req_t *req,
                                   uct_varuna_ctl_atomic_result_t *results)
{
    const uct_varuna_ctl_atomic_op_t *ops =
            (const uct_varuna_ctl_atomic_op_t*)(req + 1);
    uct_varuna_amo_kept_verdict_t verdict;
    unsigned i;

    for (i = 0; i < req->count; ++i) {
        verdict = uct_varuna_amo_kept_check(kept, req->first + i);
        if (verdict == UCT_VARUNA_AMO_KEPT_NEXT) {
            uct_varuna_cpu_run_next(ctl, kept, hdr, &ops[i]);
        } else if (verdict != UCT_VARUNA_AMO_KEPT_RESULT) {
            ucs_debug("peer 0x%lx: an atomic is out of the window: number %lu, "
                      "next is %lu, acknowledged before %lu", hdr->uuid,
                      req->first + i, kept->next, kept->acked);
            break;
        }

        results[i] = *uct_varuna_amo_kept_result(kept, req->first + i);
    }

    return i;
}

/* ATOMIC_REQ of a requester, over @a link; the message has been checked. */
static void uct_varuna_cpu_request(uct_varuna_ctl_t *ctl,
                                   uct_varuna_cpu_client_t *client, unsigned link,
                                   const uct_varuna_ctl_hdr_t *hdr,
                                   const uct_varuna_ctl_atomic_req_t *req)
{
    struct {
        uct_varuna_ctl_atomic_rep_t    rep;
        uct_varuna_ctl_atomic_result_t results[UCT_VARUNA_AMO_WINDOW];
    } body;

    if (!uct_varuna_cpu_client_start(client)) {
        return;
    }

    uct_varuna_fault_init();
    uct_varuna_amo_kept_ack(client->kept, req->acked);
    memset(&body.rep, 0, sizeof(body.rep));
    body.rep.first = req->first;
    body.rep.count = uct_varuna_cpu_run(ctl, client->kept, hdr, req,
                                        body.results);
    if (body.rep.count == 0) {
        return;
    }

    uct_varuna_ctl_reply(ctl, client->peer, link, hdr, UCT_VARUNA_CTL_ATOMIC_REP,
                         &body, sizeof(body.rep) +
                         (body.rep.count * sizeof(*body.results)));
}

/* --- One atomic --- */

typedef struct uct_varuna_cpu_run {
    uct_varuna_ctl_atomic_op_t op;
    uint64_t                   result;
} uct_varuna_cpu_run_t;

#define UCT_VARUNA_CPU_OP(_bits) \
    static void uct_varuna_cpu_run##_bits(void *arg) \
    { \
        uct_varuna_cpu_run_t *run = arg; \
        uint##_bits##_t *word     = (uint##_bits##_t*)run->op.addr; \
        uint##_bits##_t value     = (uint##_bits##_t)run->op.value; \
        uint##_bits##_t compare   = (uint##_bits##_t)run->op.compare; \
        \
        switch (run->op.op) { \
        case UCT_ATOMIC_OP_ADD: \
            run->result = __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST); \
            break; \
        case UCT_ATOMIC_OP_AND: \
            run->result = __atomic_fetch_and(word, value, __ATOMIC_SEQ_CST); \
            break; \
        case UCT_ATOMIC_OP_OR: \
            run->result = __atomic_fetch_or(word, value, __ATOMIC_SEQ_CST); \
            break; \
        case UCT_ATOMIC_OP_XOR: \
            run->result = __atomic_fetch_xor(word, value, __ATOMIC_SEQ_CST); \
            break; \
        case UCT_ATOMIC_OP_SWAP: \
            run->result = __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST); \
            break; \
        default: \
            __atomic_compare_exchange_n(word, &compare, value, 0, \
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
            run->result = compare; \
            break; \
        } \
    }

UCT_VARUNA_CPU_OP(32)
UCT_VARUNA_CPU_OP(64)

ucs_status_t uct_varuna_cpu_op(const uct_varuna_ctl_atomic_op_t *op,
                               uint64_t *value_p)
{
    uct_varuna_cpu_run_t run = {.op = *op};

    if (uct_varuna_fault_run(op->addr,
                             (op->width == sizeof(uint64_t)) ?
                             uct_varuna_cpu_run64 : uct_varuna_cpu_run32, &run)) {
        return UCS_ERR_INVALID_ADDR;
    }

    *value_p = run.result;
    return UCS_OK;
}

/* --- The detour --- */

/* Mode proxy: what flushes of any process have covered is in memory before the CPU executes
 * an atomic. Our home NIC has accepted it, or it is there already: a flush over another NIC
 * places it (requester/varuna_ep.h). When a message arrives, what its NIC had accepted
 * before is in memory. So a request that has come over another NIC makes a detour: it is sent
 * once more, to ourselves, over the home NIC.
 *
 *   requester --ATOMIC_REQ--> home NIC ------------------------------> executed
 *   requester --ATOMIC_REQ--> other NIC --(the same)--> home NIC ----> executed
 *
 * Nothing is kept for it: a request that gets lost is sent again by its requester. A home
 * NIC that does not work accepts nothing either; then time takes the place of the detour.
 */

/* Seconds after which what a NIC has received is in memory, when nothing more comes from its
 * port. This is an assumption (docs/HARDWARE.md, 21): writes have no time limit on PCI Express,
 * and this is the default one of requests with an answer (Completion Timeout). The lifetime of
 * packets is for networks. */
#define UCT_VARUNA_DETOUR_PCI_TIME   50e-3

static uint8_t uct_varuna_detour_home_link(const uct_varuna_cpu_t *cpu)
{
    uct_varuna_home_name_t name;

    uct_varuna_home_name_get(&name);
    return uct_varuna_home_nic_find_link(&cpu->home, name.nic);
}

/* The port of some link went down, or came back. */
static void uct_varuna_detour_port_changed(uct_varuna_cpu_t *cpu)
{
    uint8_t link = uct_varuna_detour_home_link(cpu);

    if ((link == UCT_VARUNA_LINK_NONE) || !(cpu->home.ctl->ports.down & UCS_BIT(link))) {
        cpu->down_at = 0;
    } else if (cpu->down_at == 0) {
        cpu->down_at = uct_varuna_ctl_now(cpu->home.ctl);
    }
}

/* A port that is down accepts nothing, unless it only counts as down because its address has
 * changed. We wait once for what it had accepted, and not again until the port is back. A NIC
 * that is gone may accept until it is taken away. */
static int uct_varuna_detour_home_is_at_rest(uct_varuna_cpu_t *cpu, unsigned link)
{
    const uct_varuna_ctl_t *ctl     = cpu->home.ctl;
    const uct_varuna_iface_t *iface = ctl->iface;
    ucs_time_t now                  = uct_varuna_ctl_now(ctl);

    if (uct_varuna_ctl_is_nic_gone(ctl, link)) {
        return uct_varuna_md_is_at_rest(iface->md, iface->links[link].nic, now,
                                        iface->config.packet_lifetime);
    }

    uct_varuna_detour_port_changed(cpu); /* It may be down since before all requests */
    return (cpu->down_at != 0) && !(ctl->moves.links & UCS_BIT(link)) &&
           ((now - cpu->down_at) >=
            ucs_min(iface->config.packet_lifetime,
                    ucs_time_from_sec(UCT_VARUNA_DETOUR_PCI_TIME)));
}

/* What was accepted before a request came for the first time is in memory after a packet
 * lifetime. If the detour does not work, the request comes again. */
static int uct_varuna_detour_has_waited(uct_varuna_cpu_t *cpu,
                                        uct_varuna_cpu_client_t *client,
                                        const uct_varuna_ctl_atomic_req_t *req)
{
    uint64_t end   = req->first + req->count;
    ucs_time_t now = uct_varuna_ctl_now(cpu->home.ctl);

    if (end > client->detour.end) {
        client->detour.end   = end;
        client->detour.since = now;
    }

    return (now - client->detour.since) >= cpu->home.ctl->iface->config.packet_lifetime;
}

static int uct_varuna_detour_is_known(const uct_varuna_cpu_client_t *client,
                                      const uct_varuna_ctl_atomic_req_t *req)
{
    return (client->kept != NULL) && ((req->first + req->count) <= client->kept->next);
}

static void uct_varuna_detour_send(uct_varuna_cpu_t *cpu, unsigned link,
                                   unsigned via, const uct_varuna_ctl_hdr_t *hdr)
{
    size_t length = sizeof(*hdr) + hdr->length + hdr->from_device_len + hdr->from_ctl_len;
    char data[UCT_VARUNA_CTL_MAX_MSG];
    uct_varuna_ctl_atomic_req_t *req;
    ucs_status_t status;

    if ((length > sizeof(data)) || (cpu->home.ctl->ports.down & UCS_BIT(link)) ||
        !uct_varuna_home_nic_use_loopback(&cpu->home, link)) {
        return;
    }

    memcpy(data, hdr, length);
    req      = (uct_varuna_ctl_atomic_req_t*)(data + sizeof(*hdr));
    req->via = via + 1;
    status   = uct_varuna_ctl_ep_post(cpu->home.loopbacks[link].ep->inner, data, length);
    if (status != UCS_OK) {
        ucs_debug("a request cannot make its detour over the home NIC: %s",
                  ucs_status_string(status));
    }
}

/* Send the request, which came over @a link, on its detour if it needs one. @return Nonzero
 * if it may be executed now: @a link_p is the link over which the requester has sent it.
 * Otherwise it comes again. */
static int uct_varuna_detour_is_over(uct_varuna_cpu_t *cpu,
                                     uct_varuna_cpu_client_t *client, unsigned link,
                                     const uct_varuna_ctl_hdr_t *hdr,
                                     const uct_varuna_ctl_atomic_req_t *req,
                                     unsigned *link_p)
{
    unsigned home_link = uct_varuna_detour_home_link(cpu);

    *link_p = link;
    if (link == home_link) {
        if ((req->via > 0) && (req->via <= cpu->home.ctl->num_links)) {
            *link_p = req->via - 1;
        }
        return 1;
    }

    if (uct_varuna_detour_is_known(client, req) ||
        uct_varuna_detour_has_waited(cpu, client, req)) {
        return 1;
    }

    if (home_link == UCT_VARUNA_LINK_NONE) {
        return 0;
    }

    if (uct_varuna_detour_home_is_at_rest(cpu, home_link)) {
        return 1;
    }

    uct_varuna_detour_send(cpu, home_link, link, hdr);
    return 0;
}

/* --- The table --- */

static void uct_varuna_cpu_handle_req(void *arg, unsigned link,
                                      const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    uct_varuna_responder_t *resp = arg;
    uct_varuna_target_t *target  = uct_varuna_target_asked(resp, link, hdr);
    unsigned from;

    if ((target != NULL) &&
        uct_varuna_detour_is_over(uct_varuna_cpu(resp), uct_varuna_cpu_client(target), link,
                                  hdr, body, &from)) {
        uct_varuna_cpu_request(resp->ctl, uct_varuna_cpu_client(target), from, hdr, body);
    }
}

static void uct_varuna_cpu_port_changed(void *arg, unsigned link,
                                        const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    uct_varuna_detour_port_changed(uct_varuna_cpu(arg));
}

/* Requests come while the interfaces are polled, in which no loopback is destroyed */
static void uct_varuna_cpu_progressed(void *arg, unsigned link,
                                      const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    uct_varuna_cpu_t *cpu = uct_varuna_cpu(arg);

    for (link = 0; link < cpu->home.ctl->num_links; ++link) {
        uct_varuna_home_nic_reap(&cpu->home, link);
    }
}

static void uct_varuna_cpu_link_closes(void *arg, unsigned link,
                                       const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    uct_varuna_cpu_t *cpu = uct_varuna_cpu(arg);
    unsigned links        = cpu->home.ctl->ports.down | cpu->home.ctl->moves.links;

    ucs_for_each_bit(link, links) {
        uct_varuna_home_nic_drop_loopback(&cpu->home, link);
    }
}

static ucs_status_t uct_varuna_cpu_open(uct_varuna_responder_t *resp)
{
    static const uct_varuna_bus_reg_t rows[] = {
        {UCT_VARUNA_CTL_ATOMIC_REQ,   UCT_VARUNA_BUS_ASYNC, uct_varuna_cpu_handle_req},
        {UCT_VARUNA_BUS_PROGRESSED,   UCT_VARUNA_BUS_ASYNC, uct_varuna_cpu_progressed},
        {UCT_VARUNA_BUS_PORT_CHANGED, UCT_VARUNA_BUS_ASYNC, uct_varuna_cpu_port_changed},
        {UCT_VARUNA_BUS_LINK_CLOSES,  UCT_VARUNA_BUS_ASYNC, uct_varuna_cpu_link_closes}
    };
    uct_varuna_cpu_t *cpu;

    cpu = ucs_calloc(1, sizeof(*cpu), "varuna_cpu");
    if (cpu == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    uct_varuna_home_nic_init(&cpu->home, resp->ctl);
    resp->amo_part = cpu;
    uct_varuna_bus_register(&resp->ctl->bus, rows, ucs_static_array_size(rows), resp);
    return UCS_OK;
}

static void uct_varuna_cpu_close(uct_varuna_responder_t *resp)
{
    uct_varuna_home_nic_cleanup(&uct_varuna_cpu(resp)->home);
    ucs_free(resp->amo_part);
}

static void uct_varuna_cpu_open_target(uct_varuna_target_t *target)
{
    uct_varuna_cpu_client(target)->peer = target->peer;
}

static void
uct_varuna_cpu_close_target(uct_varuna_responder_t *resp, uct_varuna_target_t *target)
{
    ucs_free(uct_varuna_cpu_client(target)->kept);
    uct_varuna_cpu_client(target)->kept = NULL;
}

/* UCP opens interfaces that it does not use: the home NIC is that of the first one that is
 * used */
static size_t
uct_varuna_cpu_fill_open(uct_varuna_responder_t *resp, uct_varuna_target_t *target,
                         uct_varuna_ctl_open_rep_t *rep, void *tail)
{
    uct_varuna_home_nic_join(&uct_varuna_cpu(resp)->home, UINT8_MAX);
    return 0;
}

const uct_varuna_served_ops_t uct_varuna_cpu_ops = {
    .target_part  = sizeof(uct_varuna_cpu_client_t),
    .open         = uct_varuna_cpu_open,
    .close        = uct_varuna_cpu_close,
    .open_target  = uct_varuna_cpu_open_target,
    .fill_open    = uct_varuna_cpu_fill_open,
    .close_target = uct_varuna_cpu_close_target,
    .tell_home    = uct_varuna_home_name_tell,
    .forked       = uct_varuna_fault_forked
};
