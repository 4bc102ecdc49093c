/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An interface of rc_varuna on fake lanes: its control plane, and on request its
 * responder, are real. The test plays all peers: receive() delivers their messages, and
 * sent() returns the messages to them. Time moves only by advance().
 */
#ifndef FAKE_HOST_H_
#define FAKE_HOST_H_

#include "fake_lanes.h"

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/iface/varuna_tl_iface.h>
#include <uct/ib/varuna/responder/varuna_responder.h>
}

#include <memory>
#include <string>
#include <vector>

/* Another process, played by the test */
struct fake_peer {
    uint64_t uuid;
    unsigned host;           /* Processes of one host have the same ports */
    uint64_t secret;         /* In its requests; 0: it knows ours */
};

class fake_host {
public:
    /* A control message that was sent */
    struct message {
        unsigned             link;
        uct_varuna_ctl_hdr_t hdr;
        std::string          body;

        template<typename T> const T &as() const
        {
            return *reinterpret_cast<const T*>(body.data());
        }
    };

    static constexpr uint64_t UUID = 0x1111;

    explicit fake_host(unsigned num_links,
                       ucs_async_mode_t mode = UCS_ASYNC_MODE_POLL);

    ~fake_host();

    /* The rooms above the bus. Set options before. */
    void start_heartbeat();
    void start_responder();

    uct_varuna_requester_t *requester()
    {
        return &m_tl_iface->super;
    }

    uct_varuna_iface_t *iface()
    {
        return &requester()->super;
    }

    uct_varuna_tl_iface_t *tl_iface()
    {
        return m_tl_iface.get();
    }

    uct_varuna_ctl_t *ctl()
    {
        return &m_ctl;
    }

    uct_varuna_responder_t *responder()
    {
        return iface()->responder;
    }

    fake_lane &ctl_lane(unsigned link)
    {
        return *m_ctl_lanes[link];
    }

    fake_lane &lane(unsigned link, uct_varuna_lane_kind_t kind)
    {
        return *m_lanes[kind][link];
    }

    static ucs_time_t now();

    static constexpr double MSEC = 1e-3;

    /* Let time pass, and call the jobs of the clock that are due */
    void advance(double seconds);

    /* Let time pass without a CPU: no job is called */
    void sleep(double seconds);

    /* The full interface address of a peer, which has links on these planes */
    std::string address(const fake_peer &peer, unsigned planes = ~0u) const;

    /* Make it known, as an endpoint does; drop() is the counterpart */
    uct_varuna_peer_t *know(const fake_peer &peer);
    void drop(uct_varuna_peer_t *peer);

    /* A header of a message that the peer sends to us */
    uct_varuna_ctl_hdr_t header(const fake_peer &peer, unsigned type, uint32_t vqp,
                                uint32_t epoch, uint64_t opening = 0);

    /* Receive a message. Requests name their sender's address. */
    void receive(const fake_peer &peer, unsigned link, uct_varuna_ctl_hdr_t hdr,
                 const std::string &body = "");

    template<typename T>
    void receive(const fake_peer &peer, unsigned link, const uct_varuna_ctl_hdr_t &hdr,
                 const T &body)
    {
        receive(peer, link, hdr,
                std::string(reinterpret_cast<const char*>(&body), sizeof(body)));
    }

    /* All that was sent since the last call */
    std::vector<message> sent();

    /* The last of these of a type; a test fails if there is none */
    message last_sent(unsigned type);

    /* Call progress of the main thread */
    void dispatch();

    /* Messages on a link to that peer fail from now on: its endpoint reports an error */
    void fail_ctl(uct_varuna_peer_t *peer, unsigned link);

private:
    fake_host(const fake_host&);

    static ucs_time_t                       s_now;
    static unsigned                         s_count;     /* Of hosts */
    ucs_time_t                              m_ticked_at; /* Last tick of the clock */

    std::unique_ptr<uct_varuna_tl_iface_t>  m_tl_iface;
    std::unique_ptr<uct_varuna_md_t>        m_md;
    uct_varuna_ctl_t                        m_ctl;
    uct_worker_h                            m_worker;
    ucs_async_context_t                     *m_async;
    std::vector<std::unique_ptr<fake_lane>> m_ctl_lanes;
    std::vector<std::unique_ptr<fake_lane>> m_lanes[UCT_VARUNA_LANE_LAST];
    std::vector<std::string>                m_addrs;
};


/* A test with a host */
class fake_host_test : public ucs::test {
protected:
    virtual void cleanup()
    {
        host.reset();
        ucs::test::cleanup();
    }

    std::unique_ptr<fake_host> host;
};

#endif
