/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Inner interfaces for tests that need no NIC.
 */
#include "fake_lanes.h"

#include <unistd.h>
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/ucx/varuna_mlx5.h>
#include <uct/ib/varuna/ucx/varuna_mlx5_dev.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include <uct/ib/varuna/ucx/varuna_ud.h>
}

#include <algorithm>
#include <cstring>

unsigned fake_lane::num_mrs       = 0;
ucs_status_t fake_lane::mr_status = UCS_OK;
uct_md_h fake_lane::hung_md, fake_lane::short_md;
volatile bool fake_lane::reg_hangs, fake_lane::dereg_hangs;
std::atomic<unsigned> fake_lane::num_ahs;
std::function<ucs_status_t()> fake_lane::on_ah;
uct_varuna_mlx5_addr_state_t fake_lane::addr_state = UCT_VARUNA_ADDR_SAME;
bool fake_lane::gid_is_missing                     = false;
int fake_lane::port_is_active                      = 1;

static fake_lane::ep *fake_ep(uct_ep_h tl_ep)
{
    return reinterpret_cast<fake_lane::ep*>(tl_ep);
}

static uint16_t fake_lid(const void *device_addr)
{
    uint16_t lid;

    memcpy(&lid, UCS_PTR_BYTE_OFFSET(device_addr, 1), sizeof(lid));
    return lid;
}

static ucs_status_t fake_ep_invalidate_any(uct_ep_h tl_ep)
{
    fake_lane::ep *ep = fake_ep(tl_ep);

    ep->in_err |= (ep->lane->invalidate_status == UCS_OK);
    return ep->lane->invalidate_status;
}

UCT_VARUNA_COMPAT_EP_INVALIDATE(fake_ep_invalidate, fake_ep_invalidate_any)

fake_lane *fake_lane::of(uct_iface_h iface)
{
    return reinterpret_cast<inner*>(iface)->self;
}

ucs_status_t fake_lane::create_ep(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    fake_lane *lane = of(params->iface);
    ep *self;

    ++lane->num_tries;
    if (lane->create_status != UCS_OK) {
        return lane->create_status;
    }

    self              = new ep();
    self->super.iface = params->iface;
    self->lane        = lane;
    self->lid         = (params->field_mask & UCT_EP_PARAM_FIELD_DEV_ADDR) ?
                        fake_lid(params->dev_addr) : 0;
    self->in_err      = false;
    self->in_reset    = false;
    lane->eps.push_back(self);
    ++lane->num_created;
    *ep_p = &self->super;
    return UCS_OK;
}

void fake_lane::destroy_ep(uct_ep_h tl_ep)
{
    ep *self               = fake_ep(tl_ep);
    std::vector<ep*> &eps = self->lane->eps;
    auto place             = std::find(eps.begin(), eps.end(), self);

    ASSERT_NE(eps.end(), place) << "an endpoint is destroyed twice";
    EXPECT_FALSE(self->in_reset) << "UCX expects it in ERR";
    eps.erase(place);
    delete self;
}

ssize_t fake_lane::am_bcopy(uct_ep_h tl_ep, uint8_t id, uct_pack_callback_t pack,
                            void *arg, unsigned flags)
{
    ep *self = fake_ep(tl_ep);
    char data[8192];
    size_t length;

    if ((self->lane->post_status != UCS_OK) || (self->lane->room == 0)) {
        ++self->lane->num_refused;
        return (self->lane->room == 0) ? UCS_ERR_NO_RESOURCE : self->lane->post_status;
    }

    self->lane->room -= (self->lane->room > 0);
    length = pack(data, arg);
    self->lane->sent.push_back({id, self->lid, std::string(data, length)});
    return length;
}

void fake_lane::finish(const std::string *memory, ucs_status_t status)
{
    uct_completion_t *comp;

    for (size_t i = 0; i < posted.size(); ++i) {
        comp           = posted[i].comp;
        posted[i].comp = NULL;
        if (comp != NULL) {
            if ((posted[i].unpack != NULL) && (memory != NULL)) {
                posted[i].unpack(posted[i].arg, memory->data(), posted[i].length);
            }
            uct_invoke_completion(comp, status);
        }
    }
}

void fake_lane::resume()
{
    uct_pending_req_t *req = waiting.at(0).second;

    post_status = UCS_OK;
    waiting.erase(waiting.begin());
    EXPECT_UCS_OK(req->func(req));
}

void fake_lane::complete(const std::string &memory)
{
    finish(&memory, UCS_OK);
}

void fake_lane::fail(ucs_status_t status)
{
    finish(NULL, status);
}

ucs_status_t fake_lane::post_cas(uct_ep_h tl_ep, uint64_t compare, uint64_t swap,
                                 uint64_t addr, size_t width, void *result,
                                 uct_completion_t *comp)
{
    fake_lane *lane = fake_ep(tl_ep)->lane;

    if (lane->post_status != UCS_OK) {
        return lane->post_status;
    }

    lane->posted.push_back({"cas", addr,
                            std::string((char*)&compare, sizeof(compare)) +
                            std::string((char*)&swap, sizeof(swap)), comp,
                            [](void *arg, const void *data, size_t length) {
                                memcpy(arg, data, length);
                            }, result, width});
    return UCS_INPROGRESS;
}

std::string fake_lane::device_addr(uint16_t lid)
{
    std::string addr(DEVICE_LEN, 0);

    memcpy(&addr[1], &lid, sizeof(lid));
    return addr;
}

void fake_lane::attr(uct_iface_attr_t *attr) const
{
    memset(attr, 0, sizeof(*attr));
    attr->iface_addr_len  = ADDR_LEN;
    attr->device_addr_len = DEVICE_LEN;
    attr->ep_addr_len     = EP_LEN;
}

bool fake_lane::arm_is_blind = false;
uct_varuna_order_t fake_lane::rx_order = UCT_VARUNA_ORDER_UNKNOWN;

fake_lane::fake_lane(unsigned plane) :
    num_tries(0), num_created(0), num_polled(0), create_status(UCS_OK), connect_status(UCS_OK),
    post_status(UCS_OK), arm_status(UCS_OK), num_armed(0), room(-1), num_refused(0),
    flush_status(UCS_OK), invalidate_status(UCS_OK),
    has_input(false), is_drained(true), epsn_status(UCS_OK), epsn(0), sq_mtu(0), sq_psn(0),
    last_wqe_status(UCS_OK), reset_status(UCS_OK), last_wqe_timeout(0), has_work(false),
    mark(0),
    m_plane(plane)
{
    static uct_iface_internal_ops_t internal_ops;
    uct_iface_ops_t *ops = &m_inner.base.super.ops;

    memset(&m_inner, 0, sizeof(m_inner));
    internal_ops.ep_invalidate = fake_ep_invalidate;
    m_inner.base.internal_ops  = &internal_ops;
    m_inner.self               = this;
    ops->ep_create             = create_ep;
    ops->ep_destroy            = destroy_ep;
    ops->ep_am_bcopy           = am_bcopy;
    ops->ep_flush              = [](uct_ep_h ep, unsigned, uct_completion_t *comp) {
        fake_lane *lane = fake_ep(ep)->lane;

        if (lane->flush_status == UCS_INPROGRESS) {
            lane->posted.push_back({"flush", 0, "", comp, NULL, NULL, 0});
        }
        return lane->flush_status;
    };
    ops->ep_put_short          = [](uct_ep_h ep, const void *buffer, unsigned length,
                                    uint64_t addr, uct_rkey_t) {
        fake_lane *lane = fake_ep(ep)->lane;

        if (lane->post_status == UCS_OK) {
            lane->posted.push_back({"put", addr, std::string((const char*)buffer, length),
                                    NULL, NULL, NULL, 0});
        }
        return lane->post_status;
    };
    /* The users of the fake lanes pack what they write, in one buffer */
    ops->ep_put_zcopy          = [](uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt,
                                    uint64_t addr, uct_rkey_t rkey, uct_completion_t *comp) {
        EXPECT_EQ(1u, iovcnt);
        EXPECT_TRUE(comp == NULL);
        return ep->iface->ops.ep_put_short(ep, iov->buffer, iov->length, addr, rkey);
    };
    ops->ep_am_short           = [](uct_ep_h ep, uint8_t, uint64_t header,
                                    const void *payload, unsigned length) {
        fake_lane *lane = fake_ep(ep)->lane;

        if (lane->post_status == UCS_OK) {
            lane->posted.push_back({"am", header,
                                    std::string((const char*)payload, length), NULL, NULL,
                                    NULL, 0});
        }
        return lane->post_status;
    };
    ops->ep_get_bcopy          = [](uct_ep_h ep, uct_unpack_callback_t unpack, void *arg,
                                    size_t length, uint64_t addr, uct_rkey_t,
                                    uct_completion_t *comp) {
        fake_lane *lane = fake_ep(ep)->lane;

        if (lane->post_status != UCS_OK) {
            return lane->post_status;
        }
        lane->posted.push_back({"get", addr, "", comp, unpack, arg, length});
        return UCS_INPROGRESS;
    };
    ops->ep_atomic_cswap64     = [](uct_ep_h ep, uint64_t compare, uint64_t swap,
                                    uint64_t addr, uct_rkey_t, uint64_t *result,
                                    uct_completion_t *comp) {
        return post_cas(ep, compare, swap, addr, sizeof(*result), result, comp);
    };
    ops->ep_atomic_cswap32     = [](uct_ep_h ep, uint32_t compare, uint32_t swap,
                                    uint64_t addr, uct_rkey_t, uint32_t *result,
                                    uct_completion_t *comp) {
        return post_cas(ep, compare, swap, addr, sizeof(*result), result, comp);
    };
    ops->ep_fence              = [](uct_ep_h, unsigned) { return UCS_OK; };
    ops->ep_pending_add        = [](uct_ep_h tl_ep, uct_pending_req_t *req, unsigned) {
        fake_lane *lane = fake_ep(tl_ep)->lane;

        if (lane->post_status != UCS_ERR_NO_RESOURCE) {
            return UCS_ERR_BUSY;
        }
        lane->waiting.push_back({fake_ep(tl_ep), req});
        return UCS_OK;
    };
    ops->ep_pending_purge      = [](uct_ep_h tl_ep, uct_pending_purge_callback_t cb,
                                    void *arg) {
        auto &waiting = fake_ep(tl_ep)->lane->waiting;

        for (size_t i = waiting.size(); i-- > 0;) {
            if (waiting[i].first == fake_ep(tl_ep)) {
                cb(waiting[i].second, arg);
                waiting.erase(waiting.begin() + i);
            }
        }
    };
    ops->ep_get_address        = [](uct_ep_h, uct_ep_addr_t *addr) {
        memset(addr, 0xe, EP_LEN);
        return UCS_OK;
    };
    ops->ep_connect_to_ep      = [](uct_ep_h tl_ep, const uct_device_addr_t *device,
                                    const uct_ep_addr_t*) {
        ep *self = fake_ep(tl_ep);

        if (self->lane->connect_status == UCS_OK) {
            self->lid = fake_lid(device);
        }
        return self->lane->connect_status;
    };
    ops->iface_is_reachable    = [](const uct_iface_h iface,
                                    const uct_device_addr_t *device,
                                    const uct_iface_addr_t*) -> int {
        return ((fake_lid(device) - 1u) % UCT_VARUNA_MAX_LINKS) == of(iface)->m_plane;
    };
    ops->iface_get_address     = [](uct_iface_h, uct_iface_addr_t *addr) {
        memset(addr, 0xa, ADDR_LEN);
        return UCS_OK;
    };
    ops->iface_progress        = [](uct_iface_h iface) -> unsigned {
        ++of(iface)->num_polled;
        return of(iface)->on_poll ? of(iface)->on_poll() : 0;
    };
}

fake_lane::~fake_lane()
{
    EXPECT_EQ(0u, eps.size()) << "endpoints are left";
}


/* --- In place of ucx/ --- */

int uct_varuna_tl_is_drained(uct_ep_h ep, unsigned kind)
{
    return fake_ep(ep)->lane->is_drained;
}

int uct_varuna_tl_drain(uct_ep_h ep, unsigned kind)
{
    return fake_ep(ep)->lane->is_drained;
}

int uct_varuna_tl_get_mark(uct_ep_h ep, unsigned kind, uint16_t *mark_p)
{
    *mark_p = fake_ep(ep)->lane->mark;
    return fake_ep(ep)->lane->has_work;
}

ucs_status_t uct_varuna_tl_query_epsn(uct_ep_h ep, unsigned kind, uint32_t *epsn_p)
{
    EXPECT_TRUE(fake_ep(ep)->in_err) << "the PSN may still move";
    EXPECT_FALSE(fake_ep(ep)->in_reset) << "the PSN is gone";
    *epsn_p = fake_ep(ep)->lane->epsn;
    return fake_ep(ep)->lane->epsn_status;
}

ucs_status_t uct_varuna_tl_wait_last_wqe(uct_ep_h ep, unsigned kind, ucs_time_t deadline)
{
    EXPECT_TRUE(fake_ep(ep)->in_err) << "the event comes after ERR";
    if (deadline != 0) {
        fake_ep(ep)->lane->last_wqe_timeout = ucs_max(deadline, ucs_get_time()) -
                                              ucs_get_time();
    }
    return fake_ep(ep)->lane->last_wqe_status;
}

ucs_status_t uct_varuna_tl_reset(uct_ep_h ep, unsigned kind)
{
    ucs_status_t status = fake_ep(ep)->lane->reset_status;

    EXPECT_TRUE(fake_ep(ep)->in_err);
    EXPECT_FALSE(fake_ep(ep)->in_reset);
    fake_ep(ep)->in_reset = (status == UCS_OK);
    return status;
}

void uct_varuna_tl_destroy_reset(uct_ep_h ep, unsigned kind)
{
    EXPECT_TRUE(fake_ep(ep)->in_reset);
    fake_ep(ep)->in_reset = false;
    uct_varuna_tl_stop(ep, kind);
    uct_ep_destroy(ep);
}

ucs_status_t uct_varuna_tl_query_sq(uct_ep_h ep, unsigned kind, uint32_t *psn_p,
                                    uint32_t *mtu_p)
{
    const fake_lane *lane = fake_ep(ep)->lane;

    *psn_p = lane->sq_psn;
    *mtu_p = lane->sq_mtu;
    return (lane->sq_mtu == 0) ? UCS_ERR_UNSUPPORTED : UCS_OK;
}

int uct_varuna_mlx5_bell_hold(uct_ep_h ep, unsigned kind, uct_varuna_mlx5_bell_t *bell)
{
    return 1;
}

void uct_varuna_mlx5_bell_join(uct_varuna_mlx5_bell_t *bell)
{
}

void uct_varuna_mlx5_bell_restore(uct_varuna_mlx5_bell_t *bell, int ring)
{
}

ucs_status_t uct_varuna_tl_flush(uct_ep_h ep, unsigned kind, uct_completion_t *comp,
                                 unsigned *num_psns_p)
{
    *num_psns_p = 0;
    return uct_ep_flush(ep, 0, comp);
}

ucs_status_t uct_varuna_ud_open(uct_iface_h data, uct_worker_h worker,
                                const uct_iface_params_t *params, uct_iface_h *iface_p)
{
    return UCS_ERR_UNSUPPORTED;
}

void uct_varuna_tl_destroy(uct_ep_h ep)
{
    uct_ep_destroy(ep);
}

void uct_varuna_tl_destroy_lane(uct_ep_h ep, unsigned kind)
{
    uct_ep_destroy(ep);
}

void uct_varuna_tl_note_dead(uct_md_h md, int is_dead)
{
}

ucs_status_t uct_varuna_tl_stop(uct_ep_h ep, unsigned kind)
{
    return uct_varuna_compat_ep_invalidate(ep);
}

unsigned uct_varuna_tl_am_overhead(unsigned kind)
{
    return 1;
}

int uct_varuna_tl_has_completions(uct_iface_h iface, unsigned kind)
{
    return 0;
}

int uct_varuna_tl_has_input(uct_iface_h iface, unsigned kind)
{
    return fake_lane::of(iface)->has_input;
}

unsigned uct_varuna_tl_progress(uct_iface_h iface, unsigned kind)
{
    return uct_iface_progress(iface);
}

unsigned uct_varuna_tl_refill(uct_iface_h iface, unsigned kind)
{
    return 0;
}

static unsigned fake_poll(uct_iface_h iface)
{
    return uct_iface_progress(iface);
}

uct_varuna_tl_poll_func_t uct_varuna_tl_poll_func(uct_iface_h iface, unsigned kind)
{
    return fake_poll;
}

int uct_varuna_mlx5_port_answers(const char *dev_name)
{
    return 0;
}

int uct_varuna_mlx5_is_md_dead(uct_md_h md)
{
    return 0;
}

ucs_status_t uct_varuna_tl_guard(uct_iface_h iface, unsigned kind)
{
    return UCS_OK;
}

ucs_status_t uct_varuna_tl_allocate_tx(uct_iface_h iface, unsigned kind)
{
    return UCS_OK;
}

int uct_varuna_tl_has_rx(uct_iface_h iface, unsigned kind)
{
    return 1;
}

int uct_varuna_tl_arm_is_blind(unsigned kind)
{
    return fake_lane::arm_is_blind;
}

ucs_status_t uct_varuna_tl_event_arm(uct_iface_h inner, unsigned kind, unsigned events)
{
    fake_lane *lane = fake_lane::of(inner);

    ++lane->num_armed;
    return lane->arm_status;
}

ucs_status_t uct_varuna_tl_order_request(uct_md_h md, const char *dev_name,
                                         unsigned kind, uct_iface_config_t *config,
                                         uct_varuna_sl_move_t *move)
{
    return UCS_OK;
}

void uct_varuna_mlx5_order_set_sl(uct_iface_h inner, uint8_t sl)
{
    fake_lane::of(inner)->sl = sl;
}

ucs_status_t uct_varuna_tl_reach_all(unsigned kind, uct_iface_config_t *config)
{
    return UCS_OK;
}

uct_varuna_order_t uct_varuna_tl_order(uct_iface_h inner, unsigned kind, uint8_t *sl_p,
                                       uint16_t *mask_p)
{
    return UCT_VARUNA_ORDER_UNKNOWN;
}

uct_varuna_order_t uct_varuna_tl_order_of_qp(uct_iface_h iface, uct_ep_h ep,
                                             unsigned kind)
{
    return fake_lane::rx_order;
}

void uct_varuna_mlx5_addr_get(uct_iface_h inner, uct_varuna_mlx5_addr_t *addr)
{
    memset(addr, 0, sizeof(*addr));
}

uct_varuna_mlx5_addr_state_t
uct_varuna_mlx5_addr_check(uct_iface_h inner, const uct_varuna_mlx5_addr_t *addr)
{
    return fake_lane::addr_state;
}

void uct_varuna_ah_init(uct_varuna_ah_t *ah, uct_iface_h iface,
                        const uct_device_addr_t *addr)
{
    memcpy(&ah->attr.grh.dgid, addr, fake_lane::DEVICE_LEN);
}

ucs_status_t uct_varuna_ah_try(const uct_varuna_ah_t *ah)
{
    ++fake_lane::num_ahs;
    return fake_lane::on_ah ? fake_lane::on_ah() : UCS_OK;
}

int uct_varuna_mlx5_port_renew(uct_md_h md, const char *dev_name)
{
    return fake_lane::port_is_active;
}

double uct_varuna_mlx5_port_lifetime(uct_md_h md, const char *dev_name)
{
    return 1;
}

int uct_varuna_mlx5_gid_is_missing(uct_iface_h inner, unsigned *index_p)
{
    *index_p = 3;
    return fake_lane::gid_is_missing;
}

void uct_varuna_mlx5_addr_refresh(uct_iface_h inner)
{
}

void uct_varuna_mlx5_addr_take(uct_iface_h inner, uct_iface_h other)
{
}

ucs_status_t uct_varuna_mlx5_mr_reg(uct_md_h md, void *address, size_t length,
                                    uint64_t iova, unsigned rights, void **mr_p, uint64_t *key_p)
{
    static uint64_t keys = 0;

    while ((md == fake_lane::hung_md) && fake_lane::reg_hangs) {
        usleep(1000);
    }

    if (fake_lane::mr_status != UCS_OK) {
        return fake_lane::mr_status;
    }

    if (md == fake_lane::short_md) {
        return UCS_ERR_NO_MEMORY;
    }

    /* On the threads of NICs */
    __atomic_add_fetch(&fake_lane::num_mrs, 1, __ATOMIC_RELAXED);
    *key_p = __atomic_add_fetch(&keys, 1, __ATOMIC_RELAXED);
    *mr_p  = address;
    return UCS_OK;
}

void uct_varuna_mlx5_mr_dereg(void *mr)
{
    while (fake_lane::dereg_hangs) {
        usleep(1000);
    }
    __atomic_sub_fetch(&fake_lane::num_mrs, 1, __ATOMIC_RELAXED);
}
