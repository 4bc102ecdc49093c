/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An interface of rc_varuna on fake lanes.
 */
#include "fake_host.h"
#include "log_lines.h"

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_heartbeat.h>
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/requester/varuna_stat.h>
#include <uct/ib/varuna/responder/cpu/varuna_cpu.h>
#if UCT_VARUNA_HAVE_EXTENDED
#include <uct/ib/varuna/responder/extended/varuna_home.h>
#endif
#include <uct/ib/varuna/responder/varuna_responder.h>
#include <uct/base/uct_worker.h>
}

#include <cstring>

ucs_time_t fake_host::s_now;
unsigned fake_host::s_count;

ucs_time_t fake_host::now()
{
    return s_now;
}

fake_host::fake_host(unsigned num_links, ucs_async_mode_t mode) :
    m_tl_iface(new uct_varuna_tl_iface_t()), m_md(new uct_varuna_md_t())
{
    ++s_count;
    s_now       = ucs_get_time();
    m_ticked_at = s_now;
    memset((void*)m_tl_iface.get(), 0, sizeof(*m_tl_iface));
    memset((void*)m_md.get(), 0, sizeof(*m_md));
    EXPECT_EQ(UCS_OK, ucs_async_context_create(mode, &m_async));
    EXPECT_EQ(UCS_OK, uct_worker_create(m_async, UCS_THREAD_MODE_SINGLE, &m_worker));

    iface()->super.worker               = ucs_derived_of(m_worker, uct_priv_worker_t);
    iface()->super.config.failure_level = UCS_LOG_LEVEL_DEBUG;
    iface()->md                         = m_md.get();
    iface()->uuid                       = UUID;
    iface()->secret_key.words[0]        = 17;
    iface()->num_links                  = num_links;
    ucs_list_head_init(&m_md->mems);
    ucs_list_head_init(&iface()->graveyard);
    ucs_list_head_init(&iface()->rest.eps);
    ucs_list_head_init(&requester()->work);
    ucs_list_head_init(&requester()->farewells);
    uct_varuna_link_table_init(&iface()->link_table, num_links, 1,
                               ucs_time_from_msec(100), ucs_time_from_msec(1000));

    iface()->config.ctl_timeout        = ucs_time_from_msec(50);
    iface()->config.give_up            = ucs_time_from_msec(10000);
    iface()->config.packet_lifetime    = ucs_time_from_msec(100);
    iface()->config.heartbeat_interval = ucs_time_from_msec(10);
    iface()->config.heartbeat_misses   = 3;
    iface()->config.hang_timeout       = ucs_time_from_msec(1000);
    iface()->config.orphan_timeout     = ucs_time_from_msec(800);
    iface()->config.max_targets        = 40;
    iface()->config.spare_qps          = 2;
    iface()->config.tx_cq_moderation   = 16;

    uct_varuna_ctl_init(&m_ctl, iface());
    requester()->peer_part = uct_varuna_peer_add_part(
            &m_ctl, sizeof(uct_varuna_requester_peer_t));
    m_ctl.worker      = m_worker;
    m_ctl.time.read   = now;
    m_ctl.num_links   = num_links;
    iface()->ctl      = &m_ctl;
    m_md->num_nics    = num_links;
    m_md->num_links   = num_links;
    for (unsigned link = 0; link < num_links; ++link) {
        uct_varuna_link_t *own      = &iface()->links[link];
        uct_varuna_ctl_link_t *ctl_link = &m_ctl.links[link];

        m_addrs.push_back(fake_lane::device_addr(fake_lane::lid(0, link)));
        m_md->links[link]   = link;
        m_md->nics[link].md = (uct_md_h)((char*)this + link); /* Not dereferenced */
        m_md->nics[link].owner = link;
        snprintf(m_md->nics[link].dev_name, sizeof(m_md->nics[link].dev_name),
                 "fake_%u:1", link);
        own->nic = link;
        own->set = uct_varuna_sets;
        for (int kind : {UCT_VARUNA_LANE_RC, UCT_VARUNA_LANE_DC}) {
            m_lanes[kind].emplace_back(new fake_lane(link));
            own->lanes[kind].iface = iface();
            own->lanes[kind].inner = m_lanes[kind][link]->iface();
            own->lanes[kind].link  = link;
            own->lanes[kind].kind  = kind;
            own->lanes[kind].order = UCT_VARUNA_ORDER_CERTAIN;
            m_lanes[kind][link]->attr(&own->lanes[kind].attr);
        }

        m_ctl_lanes.emplace_back(new fake_lane(link));
        ctl_link->ctl   = &m_ctl;
        ctl_link->index = link;
        ctl_link->fd    = -1;
        ctl_link->inner = m_ctl_lanes[link]->iface();
        m_ctl_lanes[link]->attr(&ctl_link->attr);
    }

    for (unsigned link = 0; link < num_links; ++link) {
        static char ctl_addr[fake_lane::ADDR_LEN] = {1, 2, 3, 4, 5};

        iface()->links[link].device_addr     = (uct_device_addr_t*)m_addrs[link].data();
        iface()->links[link].device_addr_len = m_addrs[link].size();
        iface()->attr.device_addr_len      = m_addrs[0].size();
        m_ctl.links[link].addr               = (uct_iface_addr_t*)ctl_addr;
    }
}

fake_host::~fake_host()
{
    if (responder() != NULL) {
        uct_varuna_responder_destroy(responder());
        iface()->responder = NULL;
    }

    {
        log_lines lines;

        uct_varuna_outage_cleanup(requester()); /* What no test has asked for */
    }

    EXPECT_EQ(0u, kh_size(&m_ctl.peers)) << "peers are left";
    uct_varuna_ctl_cleanup(&m_ctl);
    uct_varuna_graves_cleanup(iface());
    uct_varuna_rest_cleanup(iface());
    if (--s_count == 0) {
        EXPECT_EQ(0u, fake_lane::num_mrs) << "memory is left registered";
    }
    uct_worker_destroy(m_worker);
    ucs_async_context_destroy(m_async);
}

void fake_host::start_heartbeat()
{
    uct_varuna_heartbeat_start(ctl());
}

void fake_host::start_responder()
{
    static const uct_varuna_served_ops_t *const modes[UCT_VARUNA_ATOMIC_LAST] = {
        NULL, &uct_varuna_cpu_ops, NULL,
#if UCT_VARUNA_HAVE_EXTENDED
        &uct_varuna_home_ops
#endif
    };

    ASSERT_EQ(UCS_OK, uct_varuna_responder_create(iface(), ctl(),
                                                  modes[iface()->md->atomic_mode],
                                                  &iface()->responder));
}

void fake_host::advance(double seconds)
{
    ucs_time_t end  = s_now + ucs_time_from_sec(seconds);
    ucs_time_t tick = m_ctl.time.clock.tick;

    while ((tick != 0) && ((m_ticked_at + tick) <= end)) {
        m_ticked_at += tick;
        s_now        = m_ticked_at;
        uct_varuna_clock_tick(&m_ctl.time.clock, s_now);
    }
    s_now = end;
}

void fake_host::sleep(double seconds)
{
    s_now      += ucs_time_from_sec(seconds);
    m_ticked_at = s_now;
}

std::string fake_host::address(const fake_peer &peer, unsigned planes) const
{
    uct_varuna_addr_t addr = {UCT_VARUNA_WIRE_MAGIC, UCT_VARUNA_WIRE_VERSION, 0,
                              peer.uuid};
    std::string links;

    for (unsigned plane = 0; plane < m_ctl_lanes.size(); ++plane) {
        std::string device = fake_lane::device_addr(fake_lane::lid(peer.host, plane));
        uct_varuna_addr_link_t link = {};

        if (!(planes & UCS_BIT(plane))) {
            continue;
        }

        link.index      = plane;
        link.device_len = device.size();
        link.dc_len     = fake_lane::ADDR_LEN;
        link.ctl_len    = fake_lane::ADDR_LEN;
        links += std::string((char*)&link, sizeof(link)) + device +
                 std::string(2 * fake_lane::ADDR_LEN, 'c');
        ++addr.num_links;
    }

    return std::string((char*)&addr, sizeof(addr)) + links;
}

uct_varuna_peer_t *fake_host::know(const fake_peer &peer)
{
    std::string addr        = address(peer);
    uct_varuna_peer_t *self = NULL;

    EXPECT_EQ(UCS_OK, uct_varuna_peer_get(ctl(), NULL, addr.data(), addr.size(), &self));
    return self;
}

void fake_host::drop(uct_varuna_peer_t *peer)
{
    uct_varuna_peer_put(ctl(), peer);
}

uct_varuna_ctl_hdr_t fake_host::header(const fake_peer &peer, unsigned type,
                                       uint32_t vqp, uint32_t epoch, uint64_t opening)
{
    uct_varuna_ctl_hdr_t hdr = {};

    hdr.magic   = UCT_VARUNA_WIRE_MAGIC;
    hdr.version = UCT_VARUNA_WIRE_VERSION;
    hdr.type    = type;
    hdr.dest    = UUID;
    hdr.uuid    = peer.uuid;
    hdr.secret  = (peer.secret != 0) ? peer.secret :
                  uct_varuna_secret_of(&iface()->secret_key, peer.uuid);
    hdr.vqp     = vqp;
    hdr.epoch   = epoch;
    hdr.opening = opening;
    return hdr;
}

void fake_host::receive(const fake_peer &peer, unsigned link, uct_varuna_ctl_hdr_t hdr,
                        const std::string &body)
{
    std::string device = fake_lane::device_addr(fake_lane::lid(peer.host, link));
    std::string data;

    hdr.length = body.size();
    if (uct_varuna_ctl_has_from(hdr.type)) {
        hdr.from_device_len = device.size();
        hdr.from_ctl_len    = fake_lane::ADDR_LEN;
        hdr.from_nic        = link;
    }

    data = std::string((char*)&hdr, sizeof(hdr)) + body;
    if (hdr.from_ctl_len > 0) {
        data += device + std::string(fake_lane::ADDR_LEN, 'c');
    }

    /* Inner code reads some bytes after an address */
    data.reserve(data.size() + 64);
    uct_varuna_ctl_lock(ctl());
    EXPECT_EQ(UCS_OK, uct_varuna_ctl_am_handler(&m_ctl.links[link], &data[0],
                                                data.size(), 0));
    uct_varuna_ctl_unlock(ctl());
}

std::vector<fake_host::message> fake_host::sent()
{
    std::vector<message> messages;

    for (unsigned link = 0; link < m_ctl_lanes.size(); ++link) {
        for (const fake_lane::message &raw : m_ctl_lanes[link]->sent) {
            message msg;

            EXPECT_EQ(UCT_VARUNA_AM_ID_CTL, raw.am_id);
            msg.link = link;
            memcpy(&msg.hdr, raw.data.data(), sizeof(msg.hdr));
            msg.body = raw.data.substr(sizeof(msg.hdr), msg.hdr.length);
            messages.push_back(msg);
        }
        m_ctl_lanes[link]->sent.clear();
    }

    return messages;
}

fake_host::message fake_host::last_sent(unsigned type)
{
    message found = {};
    bool is_there = false;

    for (const message &msg : sent()) {
        if (msg.hdr.type == type) {
            found    = msg;
            is_there = true;
        }
    }

    EXPECT_TRUE(is_there) << uct_varuna_ctl_type_name(type) << " was not sent";
    if (!is_there) {
        found.body.resize(UCT_VARUNA_CTL_MAX_MSG); /* as() stays inside of it */
    }
    return found;
}

void fake_host::dispatch()
{
    uct_varuna_ctl_dispatch(ctl());
    if (responder() != NULL) {
        uct_varuna_responder_progress(responder());
    }
}

void fake_host::fail_ctl(uct_varuna_peer_t *peer, unsigned link)
{
    ASSERT_TRUE(peer->ctl_eps[link] != NULL) << "nothing was sent there";
    uct_varuna_ctl_lock(ctl());
    uct_varuna_ctl_err_handler(&m_ctl.links[link], peer->ctl_eps[link],
                               UCS_ERR_ENDPOINT_TIMEOUT);
    uct_varuna_ctl_reap_eps(ctl(), 0);
    uct_varuna_ctl_unlock(ctl());
}
