/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Receive side of active messages. The lanes of a vQP are polled through several
 * CQs, so after a switch a newer message may be seen before an older one, and
 * a repeated message may be seen twice. The sequence number sorts both out: the
 * next one is delivered, an older one is dropped, a newer one is held.
 *
 *   inner descriptor:  | inner headroom | am_hdr | user's header and payload |
 *                      ^ desc           ^ data
 *   what the user has:         | headroom        | data
 *                              ^ desc + 8
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_responder.h"
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include "varuna_fence.h"
#include <uct/ib/varuna/core/varuna_held.h>

#include <ucs/sys/math.h>
#include <ucs/debug/memtrack_int.h>

/* Of descriptors which the user kept */
static void uct_varuna_am_release(uct_recv_desc_t *self, void *desc)
{
    uint32_t *num_kept = ucs_container_of(self, uct_varuna_kept_t, desc)->num_kept;

    --*num_kept;
    uct_iface_release_desc(UCS_PTR_BYTE_OFFSET(desc,
                                               -(ptrdiff_t)
                                               sizeof(uct_varuna_am_hdr_t)));
}

void uct_varuna_am_init(uct_varuna_responder_t *resp)
{
    unsigned link;

    for (link = 0; link < UCT_VARUNA_MAX_LINKS; ++link) {
        resp->received.release[link].desc.cb  = uct_varuna_am_release;
        resp->received.release[link].num_kept = &resp->iface->links[link].num_kept;
    }
    ucs_list_head_init(&resp->received.gaps);
}

/* The vQP that holds most of the peer that holds most, so that many vQPs do not hide
 * what they hold together: all that hold some are watched. */
static uct_varuna_target_t *
uct_varuna_am_greediest(const uct_varuna_responder_t *resp,
                        uct_varuna_target_t *target)
{
    uct_varuna_target_t *other;

    ucs_list_for_each(other, &resp->received.gaps, gap.list) {
        if ((other->peer == target->peer) ?
            (other->held.num > target->held.num) :
            (uct_varuna_responder_peer(resp, other->peer)->num_held >
             uct_varuna_responder_peer(resp, target->peer)->num_held)) {
            target = other;
        }
    }

    return target;
}

static void uct_varuna_am_hold(uct_varuna_responder_t *resp,
                               uct_varuna_target_t *target, uint32_t seq,
                               uint8_t am_id, const void *data, size_t length)
{
    static const char no_room[] = "is missing, and there is no room to wait for it";
    ucs_status_t status;

    status = uct_varuna_held_add(&target->held, seq, am_id, data, length);
    if (status == UCS_ERR_NO_RESOURCE) {
        uct_varuna_gap_break(resp, uct_varuna_am_greediest(resp, target),
                             no_room);
        if (target->broken) {
            return;
        }

        status = uct_varuna_held_add(&target->held, seq, am_id, data, length);
    }

    target->expected = UCT_VARUNA_TARGET_EXPECTS_NONE; /* Those that are held follow */
    if (status == UCS_OK) {
        uct_varuna_gap_watch(resp, target, seq);
    } else if (status != UCS_ERR_ALREADY_EXISTS) {
        uct_varuna_gap_break(resp, target, no_room);
    }
}

/* A target by its number in AM headers */
static uct_varuna_target_t *
uct_varuna_am_target(const uct_varuna_responder_t *resp, uint32_t number)
{
    uct_varuna_numbered_t *am = uct_varuna_numbers_find(&resp->targets.numbers,
                                                        number);

    return (am == NULL) ? NULL : ucs_container_of(am, uct_varuna_target_t, am);
}

static void uct_varuna_am_unordered(uct_varuna_responder_t *resp,
                                    uct_varuna_target_t *target, uint32_t seq,
                                    uint8_t am_id, const void *data, size_t length)
{
    switch (uct_varuna_am_seq_judge(seq, target->next_seq)) {
    case UCT_VARUNA_AM_SEQ_LATER:
        uct_varuna_am_hold(resp, target, seq, am_id, data, length);
        break;
    case UCT_VARUNA_AM_SEQ_FOREIGN:
        ++resp->stats.unexpected;
        ucs_debug("rc_varuna: vQP %u of peer 0x%" PRIx64 ": dropped message %u, as "
                  "%u is the next", target->vqp, target->peer->uuid, seq,
                  target->next_seq);
        break;
    default:
        break;
    }
}

static void uct_varuna_am_deliver_held(uct_varuna_responder_t *resp,
                                       uct_varuna_target_t *target)
{
    uct_varuna_held_am_t *am;

    while ((am = uct_varuna_held_take(&target->held, target->next_seq)) !=
           NULL) {
        ++target->next_seq;
        uct_iface_invoke_am(&resp->iface->super, am->am_id, am + 1, am->length,
                            0);
        ucs_free(am);
    }
}

/* What has no target, comes in the wrong order, or for a target that is lost */
static UCS_F_NOINLINE ucs_status_t
uct_varuna_am_exception(uct_varuna_responder_t *resp, uct_varuna_target_t *target,
                        const uct_varuna_am_hdr_t *hdr, size_t length)
{
    if (target == NULL) {
        ++resp->stats.unexpected;
        ucs_debug("rc_varuna: dropped a message to unknown target 0x%x",
                  hdr->target >> UCT_VARUNA_AM_ID_BITS);
    } else if (!target->broken) {
        uct_varuna_am_unordered(resp, target, hdr->seq,
                                hdr->target & UCS_MASK(UCT_VARUNA_AM_ID_BITS), hdr + 1,
                                length - sizeof(*hdr));
    } else {
        uct_varuna_gap_refuse(resp, target);
    }

    return UCS_OK;
}

/* As uct_iface_invoke_am(), without its assertion: the inner interface has it */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_am_call(uct_varuna_iface_t *iface, uint8_t id, void *data, size_t length,
                   unsigned flags)
{
    const uct_am_handler_t *handler = &iface->super.am[id];

    UCS_STATS_UPDATE_COUNTER(iface->super.stats, UCT_IFACE_STAT_RX_AM, 1);
    UCS_STATS_UPDATE_COUNTER(iface->super.stats, UCT_IFACE_STAT_RX_AM_BYTES, length);
    return handler->cb(handler->arg, data, length, flags);
}

/* The user keeps the descriptor, or has returned an error. The header is not needed any more */
static UCS_F_NOINLINE ucs_status_t
uct_varuna_am_kept(const uct_varuna_lane_iface_t *lane, void *data, ucs_status_t status)
{
    uct_varuna_responder_t *resp = lane->iface->responder;
    void *desc;

    if (status == UCS_INPROGRESS) {
        desc                = UCS_PTR_BYTE_OFFSET(data, (ptrdiff_t)sizeof(
                                                  uct_varuna_am_hdr_t) -
                                                  resp->iface->rx_headroom);
        uct_recv_desc(desc) = &resp->received.release[lane->link].desc;
        ++*resp->received.release[lane->link].num_kept;
    }

    return status;
}

/* The next message. @a data: with our header */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_am_deliver(const uct_varuna_lane_iface_t *lane, uct_varuna_iface_t *iface,
                      uint8_t id, void *data, size_t length, unsigned flags)
{
    ucs_status_t status;

    /* A DC lane may be opened once more: then no user may have a buffer of it */
    if (lane->kind == UCT_VARUNA_LANE_DC) {
        flags &= ~UCT_CB_PARAM_FLAG_DESC;
    }

    status = uct_varuna_am_call(iface, id, UCS_PTR_BYTE_OFFSET(data, sizeof(uct_varuna_am_hdr_t)),
                                length - sizeof(uct_varuna_am_hdr_t), flags);
    return ucs_likely(status == UCS_OK) ? UCS_OK : uct_varuna_am_kept(lane, data, status);
}

/* What is dropped, or not the next message, or followed by messages that are held */
static UCS_F_NOINLINE ucs_status_t
uct_varuna_am_unusual(const uct_varuna_lane_iface_t *lane, void *data, size_t length,
                      unsigned flags)
{
    uct_varuna_iface_t *iface      = lane->iface;
    uct_varuna_responder_t *resp   = iface->responder;
    const uct_varuna_am_hdr_t *hdr = data;
    uct_varuna_target_t *target;
    ucs_status_t status;

    if (length < sizeof(*hdr)) {
        ucs_diag("rc_varuna: dropped a message of %zu bytes: too short", length);
        return UCS_OK;
    }

    if (resp == NULL) {
        return UCS_OK; /* The interface is being closed */
    }

    target = uct_varuna_am_target(resp, hdr->target >> UCT_VARUNA_AM_ID_BITS);
    if ((target == NULL) || target->broken || (hdr->seq != target->next_seq)) {
        return uct_varuna_am_exception(resp, target, hdr, length);
    }

    ++target->next_seq;
    status = uct_varuna_am_deliver(lane, iface, hdr->target & UCS_MASK(UCT_VARUNA_AM_ID_BITS),
                                   data, length, flags);
    uct_varuna_am_deliver_held(resp, target);
    if (!target->broken && (target->held.num == 0)) {
        target->expected = target->am.number << UCT_VARUNA_AM_ID_BITS;
    }

    return status;
}

ucs_status_t uct_varuna_am_handler(void *arg, void *data, size_t length,
                                   unsigned flags)
{
    const uct_varuna_lane_iface_t *lane = arg;
    uct_varuna_iface_t *iface           = lane->iface;
    uct_varuna_responder_t *resp        = iface->responder;
    const uct_varuna_am_hdr_t *hdr      = data;
    uct_varuna_target_t *target;
    uint64_t id;

    UCS_STATIC_ASSERT(ucs_offsetof(uct_varuna_target_t, am) == 0);
    if (ucs_unlikely((length < sizeof(*hdr)) || (resp == NULL))) {
        return uct_varuna_am_unusual(lane, data, length, flags);
    }

    id     = hdr->target;
    target = ucs_container_of(uct_varuna_numbers_peek(&resp->targets.numbers,
                                                      id >> UCT_VARUNA_AM_ID_BITS),
                              uct_varuna_target_t, am);
    if (ucs_unlikely(target == NULL)) {
        return uct_varuna_am_unusual(lane, data, length, flags);
    }

    /* Only the id is left if the number is the expected one */
    id ^= target->expected;
    if (ucs_unlikely((id > UCS_MASK(UCT_VARUNA_AM_ID_BITS)) ||
                     (hdr->seq != target->next_seq))) {
        return uct_varuna_am_unusual(lane, data, length, flags);
    }

    ++target->next_seq;
    return uct_varuna_am_deliver(lane, iface, id, data, length, flags);
}
