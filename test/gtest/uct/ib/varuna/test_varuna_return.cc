/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * NICs that work again after a reset: their numbers, regions and keys.
 */
#include "test_varuna_md.h"

extern "C" {
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/md/varuna_own.h>
}

#include <atomic>

/* The device whose former context is dead */
static std::atomic<uct_md_h> dead_md;

class test_varuna_return : public test_varuna_md {
protected:
    virtual void init()
    {
        test_varuna_md::init();
        dead_md = nullptr;
        add("mlx5_0", 2);
        add("mlx5_1", 1);
        open();
        m_md->is_dead = [](uct_md_h md) -> int { return md == dead_md; };
        m_md->answers = [](const char *dev_name) -> int { return 1; };
    }

    virtual void cleanup()
    {
        m_ib.on_reg = nullptr;
        test_varuna_md::cleanup();
    }

    static void wait_until(const std::function<bool()> &condition)
    {
        const ucs_time_t deadline = ucs_get_time() + ucs_time_from_sec(60);

        while (!condition()) {
            ASSERT_LT(ucs_get_time(), deadline);
            usleep(1000);
        }
    }

    /* A NIC dies, and is asked until it answers, in a time that passes faster */
    void reset(unsigned nic)
    {
        dead_md = m_md->nics[nic].md;
        uct_varuna_md_nic_died(m_md, nic, "a test");
        wait_until([&]() {
            look(nic);
            return m_md->nics[nic].next != 0;
        });
    }

    void look(unsigned nic)
    {
        m_now += ucs_time_from_sec(16);
        uct_varuna_md_look_for_return(m_md, nic, m_now);
    }

    void wait_ready(unsigned nic)
    {
        wait_until([&]() {
            return uct_varuna_return_nic(m_md, nic) != UCT_VARUNA_MAX_LINKS;
        });
    }

    uint8_t nics_of_key(uct_mem_h memh)
    {
        char buffer[MAX_KEY] = {};

        EXPECT_UCS_OK(pack(memh, buffer));
        return ((const uct_varuna_packed_rkey_t*)buffer)->nic_map;
    }

    uint8_t nics_of_own()
    {
        uct_varuna_own_t own;
        uint8_t nic_map;

        EXPECT_UCS_OK(uct_varuna_own_reg(m_md, m_buffer, sizeof(m_buffer), UCT_VARUNA_MR_READ, 0,
                                         UCS_TIME_INFINITY, &own));
        nic_map = ((const uct_varuna_packed_rkey_t*)own.key)->nic_map;
        EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &own));
        return nic_map;
    }

    static const uct_varuna_packed_rkey_t &packed(const char *buffer)
    {
        return *(const uct_varuna_packed_rkey_t*)buffer;
    }

    ucs_status_t find(uint64_t token, unsigned nic, uint64_t *key_p, size_t offset = 0)
    {
        return uct_varuna_md_find_key(m_md, token, (uintptr_t)m_buffer + offset, nic, key_p);
    }

    bool has(uct_mem_h memh, unsigned nic)
    {
        return !uct_varuna_md_is_spare(m_md, (uct_varuna_mem_t*)memh, nic);
    }

    ucs_time_t m_now = ucs_get_time();
};

/* Both ports of the device get a new number, under which all that exists is registered. The
 * former number is in no key that is packed from then on */
UCS_TEST_F(test_varuna_return, regions_are_registered_again) {
    scoped_log_handler slh(hide_warns_logger);
    uct_mem_h before[3], after;
    uct_mem_h former;

    for (uct_mem_h &memh : before) {
        ASSERT_UCS_OK(reg(&memh));
    }
    former = uct_varuna_mem_inner(before[0], 0);
    EXPECT_EQ(0x7, nics_of_key(before[0]));
    reset(0);
    wait_ready(0);
    EXPECT_EQ(5u, m_md->num_nics);
    EXPECT_EQ(3u, uct_varuna_return_nic(m_md, 0));
    EXPECT_EQ(4u, uct_varuna_return_nic(m_md, 1));
    EXPECT_EQ(0u, uct_varuna_md_port(m_md, 3));
    EXPECT_EQ(1u, uct_varuna_md_port(m_md, 4));
    EXPECT_EQ(UCT_VARUNA_NIC_RESET, uct_varuna_md_nic_state(m_md, 1));
    EXPECT_EQ(UCT_VARUNA_NIC_WORKING, uct_varuna_md_nic_state(m_md, 4));
    EXPECT_EQ("varuna_mlx5_0:1,varuna_mlx5_0:2,varuna_mlx5_1:1", links());
    EXPECT_EQ(3u, m_md->links[0]);
    for (uct_mem_h memh : before) {
        EXPECT_TRUE(has(memh, 3));
        EXPECT_EQ(uct_varuna_mem_inner(memh, 3), uct_varuna_mem_inner(memh, 4));
        EXPECT_EQ(0x1c, nics_of_key(memh));
    }
    EXPECT_EQ(former, uct_varuna_mem_inner(before[0], 0)) << "lanes of that life use it";

    ASSERT_UCS_OK(reg(&after));
    EXPECT_EQ(0x1c, nics_of_key(after));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, after));
    for (uct_mem_h memh : before) {
        ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    }
    EXPECT_EQ(3u, m_ib.num_mems) << "spares";
}

/* A peer that knows the token in an old key gets what it lacks, and nobody else does */
UCS_TEST_F(test_varuna_return, keys_are_completed) {
    scoped_log_handler slh(hide_warns_logger);
    char before[MAX_KEY] = {}, after[MAX_KEY] = {};
    uint64_t key, token;
    uct_mem_h memh, secret;

    ASSERT_UCS_OK(reg(&memh));
    ASSERT_UCS_OK(reg(&secret)); /* No key of it is out */
    ASSERT_UCS_OK(pack(memh, before));
    token = packed(before).token;
    ASSERT_NE(0u, token);
    EXPECT_EQ(UCS_ERR_NO_DEVICE, find(token, 3, &key)) << "there is no such NIC yet";
    reset(0);
    wait_ready(0);
    ASSERT_UCS_OK(find(token, 3, &key));
    ASSERT_UCS_OK(pack(memh, after));
    EXPECT_EQ(token, packed(after).token);
    EXPECT_EQ(0x1c, packed(after).nic_map);
    /* NIC 3 is the second one in the new key */
    EXPECT_EQ(0, memcmp(after + sizeof(uct_varuna_packed_rkey_t) + sizeof(key), &key,
                        sizeof(key)));

    EXPECT_EQ(UCS_ERR_NO_DEVICE, find(token, 0, &key)) << "its former life";
    EXPECT_EQ(UCS_ERR_NO_DEVICE, find(token, 5, &key));
    EXPECT_EQ(UCS_ERR_NO_DEVICE, find(token, UINT_MAX, &key));
    EXPECT_EQ(UCS_ERR_NO_ELEM, find(token ^ 1, 3, &key));
    EXPECT_EQ(UCS_ERR_NO_ELEM, find(0, 3, &key));
    EXPECT_EQ(UCS_ERR_NO_ELEM, find(token, 3, &key, sizeof(m_buffer)));
    EXPECT_EQ(0u, static_cast<uct_varuna_mem_t*>(secret)->token);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    EXPECT_EQ(UCS_ERR_NO_ELEM, find(token, 3, &key)) << "it was deregistered";
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, secret));
}

/* While a region is being registered there, it is deregistered, or all is closed */
UCS_TEST_F(test_varuna_return, region_ends_meanwhile) {
    scoped_log_handler slh(hide_warns_logger);
    std::atomic<bool> is_there(false), goes_on(false);
    uct_mem_h memh, other;

    ASSERT_UCS_OK(reg(&other));
    ASSERT_UCS_OK(reg(&memh));
    m_ib.on_reg = [&]() {
        if (m_md->nics[0].next != 0) { /* Not the spare */
            is_there = true;
            wait_until([&]() { return goes_on.load(); });
        }
    };
    reset(0);
    wait_until([&]() { return is_there.load(); });
    EXPECT_FALSE(has(memh, 3)) << "the newest one is first";
    EXPECT_EQ(m_md->nics[3].spare, uct_varuna_mem_inner(memh, 3));
    EXPECT_EQ(0x4, nics_of_key(memh));
    EXPECT_EQ(unsigned(UCT_VARUNA_MAX_LINKS), uct_varuna_return_nic(m_md, 0));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    goes_on = true;
    wait_ready(0);
    EXPECT_TRUE(has(other, 3));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, other));
    EXPECT_EQ(3u, m_ib.num_mems) << "spares";
}

/* What the NIC cannot register stays on the others */
UCS_TEST_F(test_varuna_return, region_that_is_refused) {
    scoped_log_handler slh(hide_warns_logger);
    uct_mem_h memh;
    uint64_t key;

    ASSERT_UCS_OK(reg(&memh));
    m_ib.num_regs = 0;
    m_ib.fail_reg = 2; /* The spare is the first one */
    reset(0);
    wait_ready(0);
    EXPECT_FALSE(has(memh, 3));
    EXPECT_EQ(0x4, nics_of_key(memh));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE,
              find(static_cast<uct_varuna_mem_t*>(memh)->token, 3, &key));
    m_ib.fail_reg = 0;
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* It is reset again and again: each life has a number, while there are some */
UCS_TEST_F(test_varuna_return, lives) {
    scoped_log_handler slh(wrap_warns_logger);
    unsigned nic = 2;
    uct_mem_h memh;

    ASSERT_UCS_OK(reg(&memh));
    for (; m_md->num_nics < UCT_VARUNA_MAX_LINKS; nic = m_md->num_nics - 1) {
        reset(nic);
        wait_ready(nic);
        EXPECT_EQ(2u, uct_varuna_md_port(m_md, m_md->num_nics - 1));
        EXPECT_EQ(0x3 | UCS_BIT(m_md->num_nics - 1), nics_of_key(memh));
    }

    m_warnings.clear();
    dead_md = m_md->nics[nic].md;
    uct_varuna_md_nic_died(m_md, nic, "a test");
    wait_until([&]() {
        look(nic);
        return m_warnings.size() > 1;
    });
    look(nic);
    EXPECT_NE(std::string::npos, m_warnings[1].find("programs that start now use it, this one"));
    EXPECT_EQ(2u, m_warnings.size()) << "that it died, and that";
    EXPECT_EQ(unsigned(UCT_VARUNA_MAX_LINKS), m_md->num_nics);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* Our own memory that peers access is registered there from then on, and what was registered
 * before is when a peer asks */
UCS_TEST_F(test_varuna_return, own_memory) {
    scoped_log_handler slh(hide_warns_logger);
    uct_varuna_own_t own;
    uint64_t key = 0;

    auto add = [&](unsigned nic) {
        return uct_varuna_own_add(m_md, m_buffer, sizeof(m_buffer), UCT_VARUNA_MR_READ, nic,
                                  ucs_time_from_sec(60), &own, &key);
    };

    ASSERT_UCS_OK(uct_varuna_own_reg(m_md, m_buffer, sizeof(m_buffer), UCT_VARUNA_MR_READ, 0,
                                     UCS_TIME_INFINITY, &own));
    EXPECT_EQ(0x7, packed(own.key).nic_map);
    reset(0);
    wait_ready(0);
    EXPECT_EQ(0x1c, nics_of_own());
    EXPECT_EQ(UCS_ERR_NO_DEVICE, add(0));
    EXPECT_EQ(UCS_ERR_NO_DEVICE, add(5));
    EXPECT_EQ(UCS_ERR_NO_DEVICE, add(UCT_VARUNA_MAX_LINKS));
    EXPECT_UCS_OK(add(4)); /* The second port: the first one has the registration */
    EXPECT_EQ(0x1f, packed(own.key).nic_map);
    EXPECT_EQ(sizeof(uct_varuna_packed_rkey_t) + (5 * sizeof(key)), own.key_len);
    EXPECT_EQ(0, memcmp(own.key + own.key_len - sizeof(key), &key, sizeof(key)));
    EXPECT_UCS_OK(add(3));
    EXPECT_EQ(0x1f, packed(own.key).nic_map);
    EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &own));
}

/* Atomics of mode extended need the registrations of their slots, which have no other number */
UCS_TEST_F(test_varuna_return, mode_extended) {
    scoped_log_handler slh(wrap_warns_logger);

    m_md->atomic_mode = UCT_VARUNA_ATOMIC_EXTENDED;
    dead_md           = m_md->nics[2].md;
    uct_varuna_md_nic_died(m_md, 2, "a test");
    wait_until([&]() {
        look(2);
        return m_warnings.size() > 1;
    });
    EXPECT_NE(std::string::npos, m_warnings[1].find("programs that start now use it, this one"));
    EXPECT_EQ(3u, m_md->num_nics);
}

/* A device that has another kind of ports now is not used, and asked again */
UCS_TEST_F(test_varuna_return, device_that_is_another_one) {
    scoped_log_handler slh(hide_warns_logger);
    unsigned num_mds;

    num_mds                = m_ib.num_open_mds;
    m_ib.devices[1].has_dc = false;
    dead_md                = m_md->nics[2].md;
    uct_varuna_md_nic_died(m_md, 2, "a test");
    m_ib.num_regs          = 0;
    wait_until([&]() {
        look(2);
        return m_md->returns[2] != NULL;
    });
    for (unsigned i = 0; i < 20; ++i) {
        look(2);
        usleep(1000);
    }
    EXPECT_EQ(0u, m_md->nics[2].next);
    m_ib.devices[1].has_dc = true;
    reset(2);
    EXPECT_EQ(3u, m_md->nics[2].next);
    wait_ready(2);
    EXPECT_EQ(num_mds + 1, m_ib.num_open_mds);
}
