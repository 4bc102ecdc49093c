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
#include <uct/ib/varuna/core/varuna_amo_sm.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_ctl_send.h>
#include <uct/ib/varuna/ctl/varuna_stranger.h>
#include <uct/ib/varuna/md/varuna_mem.h>
#include <uct/ib/varuna/responder/extended/varuna_home.h>
#include <uct/ib/varuna/ctl/varuna_ctl_ep.h>
#include <uct/ib/varuna/ctl/varuna_ctl_progress.h>
#include <uct/ib/varuna/md/varuna_md_open.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <string.h>


void uct_varuna_cpu_client_init(uct_varuna_cpu_client_t *client,
                                uct_varuna_peer_t *peer)
{
    memset(client, 0, sizeof(*client));
    client->peer = peer;
}

void uct_varuna_cpu_client_cleanup(uct_varuna_cpu_client_t *client)
{
    ucs_free(client->kept);
    client->kept = NULL;
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

void uct_varuna_cpu_request(uct_varuna_ctl_t *ctl,
                            uct_varuna_cpu_client_t *client, unsigned link,
                            const uct_varuna_ctl_hdr_t *hdr,
                            const uct_varuna_ctl_atomic_req_t *req)
{
    struct {
        uct_varuna_ctl_atomic_rep_t    rep;
        uct_varuna_ctl_atomic_result_t results[UCT_VARUNA_AMO_WINDOW];
    } body;

    if (!uct_varuna_atomic_modes[ctl->iface->md->atomic_mode].by_cpu) {
        uct_varuna_ctl_reject(ctl, link, hdr, UCS_ERR_UNSUPPORTED);
        return;
    }

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

/* Seconds after which what a NIC has received is in memory, when nothing more comes from its
 * port. This is an assumption (docs/HARDWARE.md, 21): writes have no time limit on PCI Express,
 * and this is the default one of requests with an answer (Completion Timeout). The lifetime of
 * packets is for networks. */
#define UCT_VARUNA_DETOUR_PCI_TIME   50e-3

static uint8_t uct_varuna_detour_home_link(const uct_varuna_home_t *home)
{
    uct_varuna_home_name_t name;

    uct_varuna_home_name_get(&name);
    return uct_varuna_home_find_link(home, name.nic);
}

void uct_varuna_detour_port_changed(uct_varuna_home_t *home)
{
    uint8_t link = uct_varuna_detour_home_link(home);

    if ((link == UCT_VARUNA_LINK_NONE) || !(home->ctl->ports_down & UCS_BIT(link))) {
        home->detour.down_at = 0;
    } else if (home->detour.down_at == 0) {
        home->detour.down_at = uct_varuna_ctl_now(home->ctl);
    }
}

/* A port that is down accepts nothing, unless it only counts as down because its address has
 * changed. We wait once for what it had accepted, and not again until the port is back. A NIC
 * that is gone may accept until it is taken away. */
static int uct_varuna_detour_home_is_at_rest(uct_varuna_home_t *home, unsigned link)
{
    const uct_varuna_ctl_t *ctl     = home->ctl;
    const uct_varuna_iface_t *iface = ctl->iface;
    ucs_time_t now                  = uct_varuna_ctl_now(ctl);

    if (uct_varuna_ctl_is_nic_gone(ctl, link)) {
        return uct_varuna_md_is_at_rest(iface->md, iface->links[link].nic, now,
                                        iface->config.packet_lifetime);
    }

    uct_varuna_detour_port_changed(home); /* It may be down since before all requests */
    return (home->detour.down_at != 0) && !(ctl->moves.links & UCS_BIT(link)) &&
           ((now - home->detour.down_at) >=
            ucs_min(iface->config.packet_lifetime,
                    ucs_time_from_sec(UCT_VARUNA_DETOUR_PCI_TIME)));
}

/* What was accepted before a request came for the first time is in memory after a packet
 * lifetime. If the detour does not work, the request comes again. */
static int uct_varuna_detour_has_waited(uct_varuna_home_t *home,
                                        uct_varuna_cpu_client_t *client,
                                        const uct_varuna_ctl_atomic_req_t *req)
{
    uint64_t end   = req->first + req->count;
    ucs_time_t now = uct_varuna_ctl_now(home->ctl);

    if (end > client->detour.end) {
        client->detour.end   = end;
        client->detour.since = now;
    }

    return (now - client->detour.since) >= home->ctl->iface->config.packet_lifetime;
}

static int uct_varuna_detour_is_known(const uct_varuna_cpu_client_t *client,
                                      const uct_varuna_ctl_atomic_req_t *req)
{
    return (client->kept != NULL) && ((req->first + req->count) <= client->kept->next);
}

static void uct_varuna_detour_send(uct_varuna_home_t *home, unsigned link,
                                   unsigned via, const uct_varuna_ctl_hdr_t *hdr)
{
    size_t length = sizeof(*hdr) + hdr->length + hdr->from_device_len + hdr->from_ctl_len;
    char data[UCT_VARUNA_CTL_MAX_MSG];
    uct_varuna_ctl_atomic_req_t *req;
    ucs_status_t status;

    if ((length > sizeof(data)) || (home->ctl->ports_down & UCS_BIT(link)) ||
        !uct_varuna_home_use_loopback(home, link)) {
        return;
    }

    memcpy(data, hdr, length);
    req      = (uct_varuna_ctl_atomic_req_t*)(data + sizeof(*hdr));
    req->via = via + 1;
    status   = uct_varuna_ctl_ep_post(home->loopbacks[link].ep->inner, data, length);
    if (status != UCS_OK) {
        ucs_debug("a request cannot make its detour over the home NIC: %s",
                  ucs_status_string(status));
    }
}

int uct_varuna_detour_is_over(uct_varuna_home_t *home,
                              uct_varuna_cpu_client_t *client, unsigned link,
                              const uct_varuna_ctl_hdr_t *hdr,
                              const uct_varuna_ctl_atomic_req_t *req,
                              unsigned *link_p)
{
    unsigned home_link = uct_varuna_detour_home_link(home);

    *link_p = link;
    if (link == home_link) {
        if ((req->via > 0) && (req->via <= home->ctl->num_links)) {
            *link_p = req->via - 1;
        }
        return 1;
    }

    if (uct_varuna_detour_is_known(client, req) ||
        uct_varuna_detour_has_waited(home, client, req)) {
        return 1;
    }

    if (home_link == UCT_VARUNA_LINK_NONE) {
        return 0;
    }

    if (uct_varuna_detour_home_is_at_rest(home, home_link)) {
        return 1;
    }

    uct_varuna_detour_send(home, home_link, link, hdr);
    return 0;
}
