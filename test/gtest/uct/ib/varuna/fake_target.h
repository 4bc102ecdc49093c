/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A host with a responder, and requesters that the test plays.
 */
#ifndef FAKE_TARGET_H_
#define FAKE_TARGET_H_

#include "fake_host.h"

#include <common/test.h>

#include <algorithm>

class fake_target_test : public fake_host_test {
protected:
    static constexpr unsigned NUM_LINKS = 2;
    static constexpr uint32_t VQP       = 0x77;

    virtual void init()
    {
        ucs::test::init();
        host.reset(new fake_host(NUM_LINKS));
        host->iface()->config.heartbeat_interval = 0; /* It only answers */
        configure();
        host->start_heartbeat();
        host->start_responder();
    }

    /* Options that differ */
    virtual void configure()
    {
    }

    static std::string open_body(const std::string &addr)
    {
        uct_varuna_ctl_open_req_t req = {};

        req.addr_len = addr.size();
        return std::string((char*)&req, sizeof(req)) + addr;
    }

    void send_open(const fake_peer &peer, uint32_t vqp = VQP, uint32_t instance = 1,
                   unsigned link = 0)
    {
        host->receive(peer, link,
                      host->header(peer, UCT_VARUNA_CTL_OPEN_REQ, vqp, instance),
                      open_body(host->address(peer)));
    }

    fake_host::message open(const fake_peer &peer, uint32_t vqp = VQP,
                            uint32_t instance = 1)
    {
        host->sent();
        send_open(peer, vqp, instance);
        return host->last_sent(UCT_VARUNA_CTL_OPEN_REP);
    }

    uint16_t generation = 0; /* In CONNECT_REQ */

    void send_connect(const fake_peer &peer, uint64_t opening, uint32_t epoch,
                      unsigned nic = 0, size_t ep_len = fake_lane::EP_LEN,
                      uint32_t in_use = 0, uint32_t am_acked = 0)
    {
        std::string device = fake_lane::device_addr(fake_lane::lid(peer.host, nic));
        uct_varuna_ctl_connect_t req = {};

        req.in_use   = in_use;
        req.am_acked = am_acked;

        req.link       = nic;
        req.generation = generation;
        req.device_len = device.size();
        req.ep_len     = ep_len;
        host->receive(peer, 0,
                      host->header(peer, UCT_VARUNA_CTL_CONNECT_REQ, VQP, epoch, opening),
                      std::string((char*)&req, sizeof(req)) + device +
                              std::string(ep_len, 'e'));
    }

    /* @return The status of the answer */
    ucs_status_t connect(const fake_peer &peer, uint64_t opening, uint32_t epoch,
                         unsigned nic = 0)
    {
        host->sent();
        send_connect(peer, opening, epoch, nic);
        return (ucs_status_t)-(int)host->last_sent(UCT_VARUNA_CTL_CONNECT_REP)
                       .as<uct_varuna_ctl_connect_t>().status;
    }

    void send_fence(const fake_peer &peer, uint64_t opening, uint32_t epoch,
                    uint32_t newest = 0, uint32_t am_acked = 0, uint32_t round = 0)
    {
        uct_varuna_ctl_fence_req_t req = {};

        req.newest   = std::max(newest, epoch);
        req.round    = round;
        req.am_acked = am_acked;
        host->receive(peer, 0,
                      host->header(peer, UCT_VARUNA_CTL_FENCE_REQ, VQP, epoch, opening),
                      req);
    }

    fake_host::message fence(const fake_peer &peer, uint64_t opening, uint32_t epoch,
                             uint32_t newest = 0, uint32_t am_acked = 0,
                             uint32_t round = 0)
    {
        host->sent();
        send_fence(peer, opening, epoch, newest, am_acked, round);
        return host->last_sent(UCT_VARUNA_CTL_FENCE_REP);
    }

    void send_close(const fake_peer &peer, uint64_t opening, uint32_t instance = 1,
                    unsigned link = 0)
    {
        host->receive(peer, link,
                      host->header(peer, UCT_VARUNA_CTL_CLOSE, VQP, instance, opening));
    }

    /* NULL: none */
    uct_varuna_target_t *target(const fake_peer &peer, uint32_t vqp = VQP)
    {
        uct_varuna_target_key_t key = {{peer.uuid, peer.secret}, vqp};
        khiter_t iter = kh_get(uct_varuna_targets, &host->responder()->targets.by_name,
                               key);

        return (iter == kh_end(&host->responder()->targets.by_name)) ? NULL :
               kh_val(&host->responder()->targets.by_name, iter);
    }

    static unsigned count(const std::vector<fake_host::message> &messages, unsigned type)
    {
        unsigned num = 0;

        for (const fake_host::message &msg : messages) {
            num += (msg.hdr.type == type);
        }
        return num;
    }

    const fake_peer            alice = {0xa11ce, 1, 0x5ec2e7};
    const fake_peer            bob   = {0xb0b, 2, 0x5ec2e8};
};

#endif
