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
#include "varuna_proxy.h"
#include <uct/ib/varuna/ctl/varuna_ctl_ep.h>
#include <uct/ib/varuna/ctl/varuna_ctl_progress.h>
#include <uct/ib/varuna/md/varuna_md_open.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <string.h>
#include <ucs/arch/cpu.h>


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

/* --- Jobs --- */

/* Executes the jobs of the proxy: single accesses and whole atomics of requesters, and
 * the worker's reads of targets. If the loopback of an access fails, the access is
 * repeated where that is harmless. Otherwise recovery finds out whether it was
 * executed, once it cannot be executed any more: a whole atomic has a slot of our own
 * and two stages, like that of any client (rule 6).
 *
 * Lock held in all of it. */

/* --- Slots --- */

static int uct_varuna_job_has_slot(const uct_varuna_job_t *job)
{
    return job->is_whole && (job->sm.flags & UCT_VARUNA_AMO_FLAG_SLOT);
}

static int uct_varuna_job_take_slot(uct_varuna_proxy_t *proxy,
                                    uct_varuna_job_t *job)
{
    uint64_t gen;
    uint32_t slot;

    slot = uct_varuna_slots_take(&proxy->own, &gen);
    if (ucs_unlikely(slot == UCT_VARUNA_SLOT_NONE) &&
        uct_varuna_slots_wait_for_time(&proxy->own)) {
        slot = uct_varuna_slots_take_timed(&proxy->own, ucs_get_time(), &gen);
    }

    if (slot == UCT_VARUNA_SLOT_NONE) {
        return 0; /* The timer comes */
    }

    uct_varuna_amo_sm_set_slot(&job->sm, slot, gen);
    return 1;
}

static int uct_varuna_job_begin(uct_varuna_proxy_t *proxy,
                                uct_varuna_job_t *job)
{
    if (!job->is_whole) {
        return 1;
    }

    if ((proxy->own.num > 0) && !uct_varuna_job_take_slot(proxy, job)) {
        return 0;
    }

    job->act = job->sm.act;
    return 1;
}

/* The home has moved to a NIC for which the target has no key: its block of slots is swept
 * once more. */
static void uct_varuna_job_sweep_again(uct_varuna_proxy_t *proxy, uint32_t index)
{
    uct_varuna_dead_block_t *block;

    ucs_list_for_each(block, &proxy->dead_blocks, list) {
        if ((index - block->first) < UCT_VARUNA_SLOT_BLOCK) {
            block->swept = 0;
        }
    }
}

static void uct_varuna_job_finish(uct_varuna_proxy_t *proxy,
                                  uct_varuna_job_t *job, ucs_status_t status)
{
    ucs_list_del(&job->list);
    if (uct_varuna_job_has_slot(job)) {
        uct_varuna_slots_give(&proxy->own, job->sm.slot, job->sm.gen);
    }

    if (job->is_sweep) {
        if (job->sm.helped > 0) {
            ++proxy->stats.helped;
            ucs_debug("worker: resolved slot %u at 0x%lx", job->index,
                      job->addr);
        }
        if (status == UCS_ERR_NO_DEVICE) {
            uct_varuna_job_sweep_again(proxy, job->index);
        }
    } else {
        uct_varuna_proxy_reply(proxy, job, status);
    }

    ucs_free(job);
}


/* --- An access failed --- */

/* A compare and swap that must not be executed twice. Others may be repeated: a UID is
 * unique, and so is the value that a mark is changed from. */
static int uct_varuna_job_is_plain_cas(const uct_varuna_job_t *job)
{
    return job->is_whole && (job->sm.state == UCT_VARUNA_AMO_OCCUPY) &&
           (job->act.type == UCT_VARUNA_AMO_ACT_CAS);
}

/* There was no answer, or the loopback was moved to ERR. Other errors are answers. */
static int uct_varuna_job_may_come_late(ucs_status_t status)
{
    return (status == UCS_ERR_ENDPOINT_TIMEOUT) || (status == UCS_ERR_CANCELED);
}

void uct_varuna_job_failed(uct_varuna_proxy_t *proxy, uct_varuna_job_t *job,
                           ucs_status_t status)
{
    ucs_debug("an access on the home NIC failed: %s",
              ucs_status_string(status));
    if (!uct_varuna_job_may_come_late(status) ||
        uct_varuna_job_is_plain_cas(job)) {
        /* Wrong memory; or a plain CAS, whose fate nobody can find out */
        uct_varuna_job_finish(proxy, job, status);
        return;
    }

    job->second = 0;
    job->lost   = 1;
}

/* Rule 6, for the one access that was lost. */
static void uct_varuna_job_find_out(uct_varuna_proxy_t *proxy,
                                    uct_varuna_job_t *job)
{
    job->lost = 0;
    if (job->act.type == UCT_VARUNA_AMO_ACT_OCCUPY) {
        uct_varuna_amo_sm_lost(&job->sm);
        job->act = job->sm.act;
        ++proxy->stats.recovered;
    }
}

int uct_varuna_job_prepare(uct_varuna_proxy_t *proxy, uct_varuna_job_t *job)
{
    if (!job->begun) {
        if (!uct_varuna_job_begin(proxy, job)) {
            return 0;
        }
        job->begun = 1;
    }

    if (job->lost) {
        uct_varuna_job_find_out(proxy, job);
    }

    return 1;
}


/* --- An access is done --- */

/* A generation that its owner has left is not used again (rule 1). */
static void uct_varuna_job_advance(uct_varuna_proxy_t *proxy,
                                   uct_varuna_job_t *job)
{
    uint64_t mark = proxy->arena.marks[job->index];

    job->advance       = 0;
    job->is_advancing  = 1;
    job->act.type      = UCT_VARUNA_AMO_ACT_CAS_MARK;
    job->act.slot      = job->index;
    job->act.mark_from = mark;
    job->act.mark_to   = uct_varuna_mark(
            uct_varuna_gen_next(uct_varuna_mark_gen(mark)),
            UCT_VARUNA_MARK_PENDING);
}

static int uct_varuna_job_is_mark(const uct_varuna_job_t *job)
{
    return (job->act.type == UCT_VARUNA_AMO_ACT_CAS_MARK) || job->second;
}

void uct_varuna_job_next(uct_varuna_proxy_t *proxy, uct_varuna_job_t *job,
                         uint64_t word)
{
    if ((job->act.width == sizeof(uint32_t)) && !uct_varuna_job_is_mark(job)) {
        word &= UINT32_MAX;
    }

    job->value = word;
    if ((job->act.type == UCT_VARUNA_AMO_ACT_CONFIRM) && !job->second) {
        job->second = 1;
        return;
    }

    job->second = 0;
    if ((job->is_sweep || job->is_whole) && !job->is_advancing) {
        uct_varuna_amo_sm_done(&job->sm, job->value, &job->slot);
        job->act   = job->sm.act;
        job->value = job->sm.result;
        if (job->act.type != UCT_VARUNA_AMO_ACT_NONE) {
            return;
        }

        if (job->advance) {
            uct_varuna_job_advance(proxy, job);
            return;
        }
    }

    uct_varuna_job_finish(proxy, job, UCS_OK);
}

static void uct_varuna_job_completion(uct_completion_t *comp)
{
    uct_varuna_access_t *access = ucs_container_of(comp, uct_varuna_access_t,
                                                   comp);
    uct_varuna_proxy_t *proxy   = access->proxy;
    uct_varuna_loopback_t *loopback;
    uct_varuna_job_t *job;

    if (proxy == NULL) {
        return; /* Its NIC was given up */
    }

    job            = ucs_list_head(&proxy->jobs, uct_varuna_job_t, list);
    loopback       = &proxy->loopbacks[proxy->running_on];
    proxy->running = 0;
    if (comp->status == UCS_OK) {
        loopback->fails = 0;
        uct_varuna_job_next(proxy, job, access->word);
        uct_varuna_proxy_run(proxy);
        return;
    }

    /* The loopback is in ERR, and its error handler is still to be called: the next job
     * waits for progress, and until packets of this access have expired */
    if (loopback->ep != NULL) {
        ucs_assert(loopback->dead == NULL);
        loopback->dead = loopback->ep;
        loopback->ep   = NULL;
    }

    loopback->fails += (comp->status == UCS_ERR_ENDPOINT_TIMEOUT) &&
                       !loopback->in_err;
    loopback->in_err = 0;
    if (uct_varuna_job_may_come_late(comp->status)) {
        proxy->rest_at = uct_varuna_ctl_now(proxy->ctl) +
                         proxy->ctl->iface->config.packet_lifetime;
    }

    uct_varuna_job_failed(proxy, job, comp->status);
}


/* --- Posting --- */

static void uct_varuna_job_unpack(void *arg, const void *data, size_t length)
{
    uct_varuna_access_t *access = arg;

    access->word = 0;
    memcpy(&access->word, data, length);
}

static ucs_status_t uct_varuna_job_cas(uct_varuna_access_t *access,
                                       uct_ep_h ep, uint64_t addr,
                                       uct_rkey_t rkey, unsigned width,
                                       uint64_t compare, uint64_t swap)
{
    access->word = 0;
    return (width == sizeof(uint64_t)) ?
           uct_ep_atomic_cswap64(ep, compare, swap, addr, rkey, &access->word,
                                 &access->comp) :
           uct_ep_atomic_cswap32(ep, compare, swap, addr, rkey,
                                 (uint32_t*)&access->word, &access->comp);
}

/* Whether the access is to the target, for which this NIC has no key. */
static int uct_varuna_job_lacks_key(const uct_varuna_job_t *job, uint8_t nic)
{
    return job->is_sweep && !uct_varuna_job_is_mark(job) &&
           (job->act.type != UCT_VARUNA_AMO_ACT_READ_BODY) &&
           (job->rkeys[nic] == UCT_INVALID_RKEY);
}

static ucs_status_t uct_varuna_job_cas_mark(uct_varuna_proxy_t *proxy,
                                            uct_ep_h ep, uint8_t nic,
                                            const uct_varuna_amo_act_t *act)
{
    return uct_varuna_job_cas(proxy->access, ep,
                              (uintptr_t)&proxy->arena.marks[act->slot],
                              uct_varuna_rkey_inner(proxy->mark.rkey, nic),
                              sizeof(uint64_t), act->mark_from, act->mark_to);
}

/* Rule 12: each access goes through the loopback of the home NIC, because the CPU's
 * atomics need not be atomic with the NIC's. The CPU may read bodies, and write our
 * own. */
ucs_status_t uct_varuna_job_post(uct_varuna_proxy_t *proxy,
                                 uct_varuna_job_t *job, unsigned link,
                                 uint8_t nic)
{
    const uct_varuna_amo_act_t *act = &job->act;
    uct_varuna_access_t *access     = proxy->access;
    uct_ep_h ep                     = proxy->loopbacks[link].ep->inner;

    if (uct_varuna_job_lacks_key(job, nic)) {
        return UCS_ERR_NO_DEVICE;
    }

    access->proxy       = proxy;
    access->comp.func   = uct_varuna_job_completion;
    access->comp.count  = 1;
    access->comp.status = UCS_OK;
    switch (act->type) {
    case UCT_VARUNA_AMO_ACT_READ:
        return uct_ep_get_bcopy(ep, uct_varuna_job_unpack, access, act->width,
                                act->addr, job->rkeys[nic], &access->comp);
    case UCT_VARUNA_AMO_ACT_READ_BODY:
        job->slot = proxy->arena.slots[act->slot];
        return UCS_OK;
    case UCT_VARUNA_AMO_ACT_CAS_MARK:
        return uct_varuna_job_cas_mark(proxy, ep, nic, act);
    case UCT_VARUNA_AMO_ACT_CONFIRM:
        if (job->second) {
            return uct_varuna_job_cas_mark(proxy, ep, nic, act);
        }
        break;
    case UCT_VARUNA_AMO_ACT_OCCUPY:
        /* Rule 2: before the CAS, whose doorbell follows a fence */
        uct_varuna_amo_sm_body(&job->sm, &proxy->arena.slots[act->slot]);
        ucs_memory_cpu_store_fence();
        break;
    case UCT_VARUNA_AMO_ACT_CAS:
        break;
    default:
        return UCS_ERR_INVALID_PARAM;
    }

    return uct_varuna_job_cas(access, ep, act->addr, job->rkeys[nic],
                              act->width, act->compare, act->swap);
}

/* --- The detour --- */

/* Seconds after which what a NIC has received is in memory, when nothing more comes from its
 * port. This is an assumption (docs/HARDWARE.md, 21): writes have no time limit on PCI Express,
 * and this is the default one of requests with an answer (Completion Timeout). The lifetime of
 * packets is for networks. */
#define UCT_VARUNA_DETOUR_PCI_TIME   50e-3

static uint8_t uct_varuna_detour_home_link(const uct_varuna_proxy_t *proxy)
{
    uct_varuna_home_name_t home;

    uct_varuna_home_get(&home);
    return uct_varuna_proxy_find_link(proxy, home.nic);
}

void uct_varuna_detour_port_changed(uct_varuna_proxy_t *proxy)
{
    uint8_t home = uct_varuna_detour_home_link(proxy);

    if ((home == UCT_VARUNA_LINK_NONE) || !(proxy->ctl->ports_down & UCS_BIT(home))) {
        proxy->detour.down_at = 0;
    } else if (proxy->detour.down_at == 0) {
        proxy->detour.down_at = uct_varuna_ctl_now(proxy->ctl);
    }
}

/* A port that is down accepts nothing, unless it only counts as down because its address has
 * changed. We wait once for what it had accepted, and not again until the port is back. A NIC
 * that is gone may accept until it is taken away. */
static int uct_varuna_detour_home_is_at_rest(uct_varuna_proxy_t *proxy, unsigned home)
{
    const uct_varuna_ctl_t *ctl     = proxy->ctl;
    const uct_varuna_iface_t *iface = ctl->iface;
    ucs_time_t now                  = uct_varuna_ctl_now(ctl);

    if (uct_varuna_ctl_is_nic_gone(ctl, home)) {
        return uct_varuna_md_is_at_rest(iface->md, iface->links[home].nic, now,
                                        iface->config.packet_lifetime);
    }

    uct_varuna_detour_port_changed(proxy); /* It may be down since before all requests */
    return (proxy->detour.down_at != 0) && !(ctl->moves.links & UCS_BIT(home)) &&
           ((now - proxy->detour.down_at) >=
            ucs_min(iface->config.packet_lifetime,
                    ucs_time_from_sec(UCT_VARUNA_DETOUR_PCI_TIME)));
}

/* What was accepted before a request came for the first time is in memory after a packet
 * lifetime. If the detour does not work, the request comes again. */
static int uct_varuna_detour_has_waited(uct_varuna_proxy_t *proxy,
                                        uct_varuna_cpu_client_t *client,
                                        const uct_varuna_ctl_atomic_req_t *req)
{
    uint64_t end   = req->first + req->count;
    ucs_time_t now = uct_varuna_ctl_now(proxy->ctl);

    if (end > client->detour.end) {
        client->detour.end   = end;
        client->detour.since = now;
    }

    return (now - client->detour.since) >= proxy->ctl->iface->config.packet_lifetime;
}

static int uct_varuna_detour_is_known(const uct_varuna_cpu_client_t *client,
                                      const uct_varuna_ctl_atomic_req_t *req)
{
    return (client->kept != NULL) && ((req->first + req->count) <= client->kept->next);
}

static void uct_varuna_detour_send(uct_varuna_proxy_t *proxy, unsigned home,
                                   unsigned via, const uct_varuna_ctl_hdr_t *hdr)
{
    size_t length = sizeof(*hdr) + hdr->length + hdr->from_device_len + hdr->from_ctl_len;
    char data[UCT_VARUNA_CTL_MAX_MSG];
    uct_varuna_ctl_atomic_req_t *req;
    ucs_status_t status;

    if ((length > sizeof(data)) || (proxy->ctl->ports_down & UCS_BIT(home)) ||
        !uct_varuna_proxy_use_loopback(proxy, home)) {
        return;
    }

    memcpy(data, hdr, length);
    req      = (uct_varuna_ctl_atomic_req_t*)(data + sizeof(*hdr));
    req->via = via + 1;
    status   = uct_varuna_ctl_ep_post(proxy->loopbacks[home].ep->inner, data, length);
    if (status != UCS_OK) {
        ucs_debug("a request cannot make its detour over the home NIC: %s",
                  ucs_status_string(status));
    }
}

int uct_varuna_detour_is_over(uct_varuna_proxy_t *proxy,
                              uct_varuna_cpu_client_t *client, unsigned link,
                              const uct_varuna_ctl_hdr_t *hdr,
                              const uct_varuna_ctl_atomic_req_t *req,
                              unsigned *link_p)
{
    unsigned home = uct_varuna_detour_home_link(proxy);

    *link_p = link;
    if (link == home) {
        if ((req->via > 0) && (req->via <= proxy->ctl->num_links)) {
            *link_p = req->via - 1;
        }
        return 1;
    }

    if (uct_varuna_detour_is_known(client, req) ||
        uct_varuna_detour_has_waited(proxy, client, req)) {
        return 1;
    }

    if (home == UCT_VARUNA_LINK_NONE) {
        return 0;
    }

    if (uct_varuna_detour_home_is_at_rest(proxy, home)) {
        return 1;
    }

    uct_varuna_detour_send(proxy, home, link, hdr);
    return 0;
}
