/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The queue of control messages that wait for send resources, with an inner
 * interface which has none.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <ucs/debug/memtrack_int.h>
}

#include <vector>

class test_varuna_ctl_queue : public ucs::test {
protected:
    static ucs_status_t no_resource(const uct_ep_params_t *, uct_ep_h *)
    {
        return UCS_ERR_NO_RESOURCE;
    }

    virtual void init()
    {
        ucs::test::init();
        m_iface.resize(sizeof(uct_varuna_iface_t));
        m_ctl.resize(sizeof(uct_varuna_ctl_t));
        memset(&m_inner, 0, sizeof(m_inner));
        m_inner.ops.ep_create = no_resource;
        m_md.resize(sizeof(uct_varuna_md_t));

        iface()->md            = (uct_varuna_md_t*)m_md.data();
        ctl()->iface           = iface();
        ctl()->num_links       = 1;
        ctl()->time.read       = ucs_get_time;
        uct_varuna_clock_init(&ctl()->time.clock);
        ctl()->links[0].inner  = &m_inner;
        iface()->links[0].set  = uct_varuna_sets;
        ctl()->links[0].addr   = (uct_iface_addr_t*)""; /* Of no bytes, as the next one */
        iface()->links[0].device_addr = (uct_device_addr_t*)"";
        ASSERT_UCS_OK(ucs_async_context_create(UCS_ASYNC_MODE_POLL,
                                               &ctl()->async));
        ucs_list_head_init(&ctl()->queue.msgs);
        ucs_list_head_init(&ctl()->dead_eps);
        kh_init_inplace(uct_varuna_ctl_eps, &ctl()->eps);
        uct_varuna_peers_init(ctl());
    }

    virtual void cleanup()
    {
        while (!ucs_list_is_empty(&ctl()->queue.msgs)) {
            uct_varuna_ctl_msg_free(ctl(), last());
        }
        EXPECT_EQ(0u, ctl()->queue.len);
        EXPECT_EQ(0u, kh_size(&ctl()->peers));
        kh_destroy_inplace(uct_varuna_ctl_eps, &ctl()->eps);
        kh_destroy_inplace(uct_varuna_peers, &ctl()->peers);
        ucs_async_context_destroy(ctl()->async);
        ucs::test::cleanup();
    }

    uct_varuna_iface_t *iface()
    {
        return (uct_varuna_iface_t*)m_iface.data();
    }

    uct_varuna_ctl_t *ctl()
    {
        return (uct_varuna_ctl_t*)m_ctl.data();
    }

    uct_varuna_ctl_msg_t *last()
    {
        return ucs_list_tail(&ctl()->queue.msgs, uct_varuna_ctl_msg_t, list);
    }

    /* One reference to it is the caller's */
    uct_varuna_peer_t *add_peer(uint64_t uuid)
    {
        uct_varuna_peer_t *peer =
                (uct_varuna_peer_t*)ucs_calloc(1, sizeof(*peer), "peer");
        uct_varuna_peer_key_t key = {uuid, 0};
        int ret;
        khiter_t iter = kh_put(uct_varuna_peers, &ctl()->peers, key, &ret);

        peer->uuid                  = uuid;
        peer->refcount              = 1;
        peer->link_map              = 1;
        kh_val(&ctl()->peers, iter) = peer;
        return peer;
    }

    void send(uct_varuna_peer_t *peer, uct_varuna_ctl_type_t type)
    {
        uct_varuna_ctl_hdr_t whose = {};

        uct_varuna_ctl_send(ctl(), peer, 0, type, &whose, NULL, 0);
    }

private:
    std::vector<uint8_t> m_iface, m_ctl, m_md;
    uct_iface            m_inner;
};

/* A restarted process is known only by waiting messages. A new message drops the last
 * one of these, and the peer with it. */
UCS_TEST_F(test_varuna_ctl_queue, peer_lives_while_it_is_sent_to) {
    uct_varuna_peer_t *living = add_peer(1);
    uct_varuna_peer_t *dying  = add_peer(2);

    send(dying, UCT_VARUNA_CTL_REJECT);
    EXPECT_EQ(2u, dying->refcount);
    uct_varuna_peer_put(ctl(), dying);
    for (unsigned i = 1; i < UCT_VARUNA_CTL_MAX_QUEUE; ++i) {
        send(living, UCT_VARUNA_CTL_FENCE_REQ);
    }
    ASSERT_EQ((unsigned)UCT_VARUNA_CTL_MAX_QUEUE, ctl()->queue.len);
    ASSERT_EQ(dying, uct_varuna_peer_find(ctl(), 2, 0));
    ASSERT_EQ(1u, dying->refcount);

    send(dying, UCT_VARUNA_CTL_REJECT);
    EXPECT_EQ((unsigned)UCT_VARUNA_CTL_MAX_QUEUE, ctl()->queue.len);
    EXPECT_EQ(dying, last()->peer);
    ASSERT_EQ(dying, uct_varuna_peer_find(ctl(), 2, 0));
    EXPECT_EQ(1u, dying->refcount);

    uct_varuna_peer_put(ctl(), living);
}

/* A message that cannot be queued is dropped, and its peer with its last message */
UCS_TEST_F(test_varuna_ctl_queue, peer_goes_with_its_last_message) {
    uct_varuna_peer_t *peer = add_peer(1);

    send(peer, UCT_VARUNA_CTL_FENCE_REQ);
    uct_varuna_peer_put(ctl(), peer);
    ASSERT_EQ(1u, kh_size(&ctl()->peers));
    uct_varuna_ctl_msg_free(ctl(), last());
    EXPECT_EQ(0u, kh_size(&ctl()->peers));
}
