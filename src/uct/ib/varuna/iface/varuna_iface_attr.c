/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the transport offers: the minimum over its lanes, less our header, and less
 * what cannot be guarded; and how fast it is: as the link in use, plus our own work.
 * Called by varuna_iface.c when it has opened the lanes, and by whoever asks.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_iface_attr.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/requester/varuna_ep.h>

#include <string.h>

/*
 * What our work takes: to save and number a request, and to write the log entry of
 * one that changes memory. These are 230 and 450 instructions (contrib/bench/run.sh)
 * beside the 320 of rc_mlx5, for which UCX says 40 ns.
 */
#define UCT_VARUNA_OVERHEAD_REQUEST    30e-9
#define UCT_VARUNA_OVERHEAD_LOG        55e-9

static void uct_varuna_iface_min_attr(uct_iface_attr_t *attr,
                                      const uct_iface_attr_t *lane)
{
#define UCT_VARUNA_ATTR_MIN(_field) \
    attr->cap._field = ucs_min(attr->cap._field, lane->cap._field)
    UCT_VARUNA_ATTR_MIN(put.max_short);
    UCT_VARUNA_ATTR_MIN(put.max_bcopy);
    UCT_VARUNA_ATTR_MIN(put.max_zcopy);
    UCT_VARUNA_ATTR_MIN(put.max_iov);
    UCT_VARUNA_ATTR_MIN(get.max_bcopy);
    UCT_VARUNA_ATTR_MIN(get.max_zcopy);
    UCT_VARUNA_ATTR_MIN(get.max_iov);
    UCT_VARUNA_ATTR_MIN(am.max_short);
    UCT_VARUNA_ATTR_MIN(am.max_bcopy);
    UCT_VARUNA_ATTR_MIN(am.max_zcopy);
    UCT_VARUNA_ATTR_MIN(am.max_hdr);
    UCT_VARUNA_ATTR_MIN(am.max_iov);
#undef UCT_VARUNA_ATTR_MIN
    attr->cap.get.min_zcopy        = ucs_max(attr->cap.get.min_zcopy,
                                             lane->cap.get.min_zcopy);
    attr->cap.flags               &= lane->cap.flags;
    attr->cap.event_flags         &= lane->cap.event_flags;
    attr->cap.atomic32.op_flags   &= lane->cap.atomic32.op_flags;
    attr->cap.atomic32.fop_flags  &= lane->cap.atomic32.fop_flags;
    attr->cap.atomic64.op_flags   &= lane->cap.atomic64.op_flags;
    attr->cap.atomic64.fop_flags  &= lane->cap.atomic64.fop_flags;
    attr->max_num_eps              = ucs_min(attr->max_num_eps,
                                             lane->max_num_eps);
}

/* What we can guard, and what follows from the way that we are connected. */
static void uct_varuna_iface_attr_flags(uct_iface_attr_t *attr)
{
    attr->cap.flags &= UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY |
                       UCT_IFACE_FLAG_AM_ZCOPY | UCT_IFACE_FLAG_PUT_SHORT |
                       UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY |
                       UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                       UCT_IFACE_FLAG_ATOMIC_DEVICE | UCT_IFACE_FLAG_PENDING |
                       UCT_IFACE_FLAG_CB_SYNC |
                       UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                       UCT_IFACE_FLAG_ERRHANDLE_ZCOPY_BUF |
                       UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM |
                       UCT_IFACE_FLAG_EP_CHECK |
                       UCT_VARUNA_COMPAT_INTER_NODE;
    attr->cap.flags |= UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                       UCT_IFACE_FLAG_EP_CHECK;
    attr->cap.event_flags &= UCT_IFACE_FLAG_EVENT_SEND_COMP |
                             UCT_IFACE_FLAG_EVENT_RECV |
                             UCT_IFACE_FLAG_EVENT_FD;
}

/* @return What our header leaves; a lane may have no room for it. */
static size_t uct_varuna_iface_beside_header(size_t room)
{
    return (room > sizeof(uct_varuna_am_hdr_t)) ? (room - sizeof(uct_varuna_am_hdr_t)) : 0;
}

/* Messages carry our header, and requests have room for so much. */
static void uct_varuna_iface_attr_limits(uct_iface_attr_t *attr)
{
    size_t am_max;

    /* bcopy messages are packed once, into a buffer of ours, and sent from it */
    am_max = uct_varuna_iface_beside_header(ucs_min(attr->cap.am.max_bcopy,
                                                    attr->cap.am.max_zcopy));
    attr->cap.am.max_short   = uct_varuna_iface_beside_header(attr->cap.am.max_short);
    attr->cap.am.max_short   = ucs_min(attr->cap.am.max_short,
                                       UCT_VARUNA_MAX_INLINE);
    attr->cap.am.max_bcopy   = am_max;
    attr->cap.am.max_zcopy   = uct_varuna_iface_beside_header(attr->cap.am.max_zcopy);
    attr->cap.am.max_hdr     = uct_varuna_iface_beside_header(
                                       ucs_min(attr->cap.am.max_hdr,
                                               UCT_VARUNA_MAX_INLINE));
    attr->cap.am.max_iov     = ucs_min(attr->cap.am.max_iov,
                                       UCT_VARUNA_MAX_IOV);
    attr->cap.put.max_short  = ucs_min(attr->cap.put.max_short,
                                       UCT_VARUNA_MAX_INLINE);
    attr->cap.put.max_iov    = ucs_min(attr->cap.put.max_iov,
                                       UCT_VARUNA_MAX_IOV);
    attr->cap.get.max_iov    = ucs_min(attr->cap.get.max_iov,
                                       UCT_VARUNA_MAX_IOV);
}

void uct_varuna_iface_init_attr(uct_varuna_iface_t *iface)
{
    const uct_varuna_lane_iface_t *primary =
            uct_varuna_link_rc(&iface->links[0]);
    uct_iface_attr_t *attr = &iface->attr;
    unsigned link, kind;
    uint64_t cm_flags;

    *attr            = primary->attr;
    cm_flags         = UCT_IFACE_FLAG_CONNECT_TO_EP;
    attr->cap.flags &= ~cm_flags;
    for (link = 0; link < iface->num_links; ++link) {
        for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
            if (iface->links[link].lanes[kind].inner != NULL) {
                uct_varuna_iface_min_attr(attr,
                                          &iface->links[link].lanes[kind].attr);
            }
        }
    }

    uct_varuna_iface_attr_flags(attr);
    uct_varuna_iface_attr_limits(attr);
    uct_varuna_requester(iface)->amo->query(attr);
    memset(&attr->cap.tag, 0, sizeof(attr->cap.tag));
    attr->cap.get.max_short  = 0;
    attr->ep_addr_len        = 0;
    attr->max_conn_priv      = 0;
    attr->device_addr_len    = iface->links[0].device_addr_len;
    attr->iface_addr_len     = UCT_VARUNA_IFACE_ADDR_MAX;
}

static int uct_varuna_op_is_logged(uct_ep_operation_t op)
{
    return (op == UCT_EP_OP_PUT_SHORT) || (op == UCT_EP_OP_PUT_BCOPY) ||
           (op == UCT_EP_OP_PUT_ZCOPY) || (op == UCT_EP_OP_ATOMIC_POST) ||
           (op == UCT_EP_OP_ATOMIC_FETCH);
}

/* The lane that traffic takes now, or will take once its RC connection is built. */
static const uct_varuna_lane_iface_t *
uct_varuna_iface_active_lane(const uct_varuna_iface_t *iface)
{
    uint8_t link = uct_varuna_link_select(&iface->link_table,
                                          UCT_VARUNA_LINK_NONE,
                                          UCS_MASK(iface->num_links));

    return uct_varuna_link_rc(
            &iface->links[(link == UCT_VARUNA_LINK_NONE) ? 0 : link]);
}

ucs_status_t uct_varuna_iface_query(uct_iface_h tl_iface,
                                    uct_iface_attr_t *attr)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);
    const uct_varuna_lane_iface_t *lane = uct_varuna_iface_active_lane(iface);

    *attr           = iface->attr;
    attr->bandwidth = lane->attr.bandwidth;
    attr->latency   = lane->attr.latency;
    attr->priority  = lane->attr.priority;
    attr->overhead  = lane->attr.overhead + UCT_VARUNA_OVERHEAD_REQUEST;
    return UCS_OK;
}

ucs_status_t uct_varuna_iface_estimate_perf(uct_iface_h tl_iface,
                                            uct_perf_attr_t *perf_attr)
{
    uct_varuna_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_iface_t);
    ucs_status_t status;

    status = uct_iface_estimate_perf(uct_varuna_iface_active_lane(iface)->inner,
                                     perf_attr);
    if (status != UCS_OK) {
        return status;
    }

    if (perf_attr->field_mask & UCT_PERF_ATTR_FIELD_SEND_PRE_OVERHEAD) {
        perf_attr->send_pre_overhead += UCT_VARUNA_OVERHEAD_REQUEST;
        if ((perf_attr->field_mask & UCT_PERF_ATTR_FIELD_OPERATION) &&
            uct_varuna_op_is_logged(perf_attr->operation)) {
            perf_attr->send_pre_overhead += UCT_VARUNA_OVERHEAD_LOG;
        }
    }

    return UCS_OK;
}
