/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Lives of NICs: devices that are closed and opened again after a reset, or by a command; their
 * generations, regions, keys and users.
 */
#include "test_varuna_md.h"

extern "C" {
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/md/varuna_own.h>
}

#include <atomic>

/* The device whose context is dead */
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

    void die(unsigned nic)
    {
        dead_md = m_md->nics[nic].md;
        uct_varuna_md_nic_died(m_md, nic, "a test");
    }

    /* A NIC dies, and is asked until it answers, in a time that passes faster */
    void reset(unsigned nic)
    {
        unsigned generation = m_md->nics[nic].generation;

        die(nic);
        wait_until([&]() {
            look(nic);
            return m_md->nics[nic].generation == generation + 1;
        });
    }

    void look(unsigned nic)
    {
        m_now += ucs_time_from_sec(16);
        uct_varuna_md_look_for_return(m_md, nic, m_now);
    }

    void wait_life(unsigned nic, unsigned life)
    {
        wait_until([&]() { return uct_varuna_md_life(m_md, nic) == life; });
    }

    void wait_ready(unsigned nic)
    {
        wait_life(nic, UCT_VARUNA_LIFE_OPEN);
    }

    uint8_t nics_of_key(uct_mem_h memh)
    {
        char buffer[MAX_KEY] = {};

        EXPECT_UCS_OK(pack(memh, buffer));
        return packed(buffer).nic_map;
    }

    static const uct_varuna_packed_rkey_t &packed(const char *buffer)
    {
        return *(const uct_varuna_packed_rkey_t*)buffer;
    }

    /* Inner key of the n-th NIC in a packed key */
    static const uct_varuna_packed_key_t &entry(const char *buffer, unsigned n)
    {
        return ((const uct_varuna_packed_key_t*)(buffer + sizeof(uct_varuna_packed_rkey_t)))[n];
    }

    ucs_status_t find(uint64_t token, unsigned nic, unsigned generation, uint64_t *key_p,
                      size_t offset = 0)
    {
        return uct_varuna_md_find_key(m_md, token, (uintptr_t)m_buffer + offset, nic, generation,
                                      key_p);
    }

    bool has(uct_mem_h memh, unsigned nic)
    {
        return !uct_varuna_md_is_spare(m_md, (uct_varuna_mem_t*)memh, nic);
    }

    ucs_status_t reg_own(uct_varuna_own_t *own)
    {
        return uct_varuna_own_reg(m_md, UINT8_MAX, m_buffer, sizeof(m_buffer), UCT_VARUNA_MR_READ, 0,
                                  UCS_TIME_INFINITY, own);
    }

    ucs_time_t m_now = ucs_get_time();
};

/* All that exists is registered in the next life of both ports, whose numbers stay. The former
 * context is closed */
UCS_TEST_F(test_varuna_return, regions_are_registered_again) {
    scoped_log_handler slh(hide_warns_logger);
    const unsigned num_mds = m_ib.num_open_mds;
    uct_mem_h before[3], after;
    uct_mem_h former;

    for (uct_mem_h &memh : before) {
        ASSERT_UCS_OK(reg(&memh));
    }
    former = uct_varuna_mem_inner(before[0], 0);
    EXPECT_EQ(0x7, nics_of_key(before[0]));
    reset(0);
    wait_ready(0);
    EXPECT_EQ(num_mds, m_ib.num_open_mds);
    EXPECT_EQ(3u, m_md->num_nics);
    EXPECT_EQ(1u, m_md->nics[0].generation);
    EXPECT_EQ(1u, m_md->nics[1].generation);
    EXPECT_EQ(0u, m_md->nics[2].generation);
    EXPECT_EQ(UCT_VARUNA_NIC_WORKING, uct_varuna_md_nic_state(m_md, 1));
    EXPECT_EQ("varuna_mlx5_0:1,varuna_mlx5_0:2,varuna_mlx5_1:1", links());
    for (uct_mem_h memh : before) {
        EXPECT_TRUE(has(memh, 0));
        EXPECT_EQ(uct_varuna_mem_inner(memh, 0), uct_varuna_mem_inner(memh, 1));
        EXPECT_EQ(0x7, nics_of_key(memh));
    }
    EXPECT_NE(former, uct_varuna_mem_inner(before[0], 0));

    ASSERT_UCS_OK(reg(&after));
    EXPECT_EQ(0x7, nics_of_key(after));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, after));
    for (uct_mem_h memh : before) {
        ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    }
    EXPECT_EQ(2u, m_ib.num_mems) << "spares";
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
    EXPECT_EQ(0u, entry(before, 0).generation);
    EXPECT_EQ(UCS_ERR_NO_DEVICE, find(token, 0, 1, &key)) << "there is no such life yet";
    reset(0);
    wait_ready(0);
    ASSERT_UCS_OK(find(token, 0, 1, &key));
    ASSERT_UCS_OK(pack(memh, after));
    EXPECT_EQ(token, packed(after).token);
    EXPECT_EQ(0x7, packed(after).nic_map);
    EXPECT_EQ(1u, entry(after, 0).generation);
    EXPECT_EQ(1u, entry(after, 1).generation);
    EXPECT_EQ(0u, entry(after, 2).generation);
    EXPECT_EQ(key, entry(after, 0).key);
    EXPECT_EQ(entry(before, 2).key, entry(after, 2).key);

    EXPECT_EQ(UCS_ERR_NO_DEVICE, find(token, 0, 0, &key)) << "its former life";
    EXPECT_EQ(UCS_ERR_NO_DEVICE, find(token, 0, 2, &key));
    EXPECT_EQ(UCS_ERR_NO_DEVICE, find(token, 5, 0, &key));
    EXPECT_EQ(UCS_ERR_NO_DEVICE, find(token, UINT_MAX, 0, &key));
    EXPECT_EQ(UCS_ERR_NO_ELEM, find(token ^ 1, 0, 1, &key));
    EXPECT_EQ(UCS_ERR_NO_ELEM, find(0, 0, 1, &key));
    EXPECT_EQ(UCS_ERR_NO_ELEM, find(token, 0, 1, &key, sizeof(m_buffer)));
    EXPECT_EQ(0u, static_cast<uct_varuna_mem_t*>(secret)->token);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    EXPECT_EQ(UCS_ERR_NO_ELEM, find(token, 0, 1, &key)) << "it was deregistered";
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, secret));
}

/* While a region is being registered there, it is deregistered */
UCS_TEST_F(test_varuna_return, region_ends_meanwhile) {
    scoped_log_handler slh(hide_warns_logger);
    std::atomic<bool> is_there(false), goes_on(false);
    uct_mem_h memh, other;

    ASSERT_UCS_OK(reg(&other));
    ASSERT_UCS_OK(reg(&memh));
    m_ib.on_reg = [&]() {
        if (m_md->nics[0].generation == 1) { /* Not the spare */
            is_there = true;
            wait_until([&]() { return goes_on.load(); });
        }
    };
    reset(0);
    wait_until([&]() { return is_there.load(); });
    EXPECT_EQ(UCT_VARUNA_LIFE_BEGINNING, uct_varuna_md_life(m_md, 0));
    EXPECT_FALSE(has(memh, 0));
    EXPECT_FALSE(has(other, 0));
    EXPECT_EQ(m_md->nics[0].spare, uct_varuna_mem_inner(memh, 0));
    EXPECT_EQ(0x4, nics_of_key(memh));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, other));
    goes_on = true;
    wait_ready(0);
    EXPECT_EQ(2u, m_ib.num_mems) << "spares";
}

/* A region that is registered elsewhere while the device is opened is registered there, too */
UCS_TEST_F(test_varuna_return, region_that_comes_meanwhile) {
    scoped_log_handler slh(hide_warns_logger);
    uct_mem_h memh;

    uct_varuna_md_remove_nic(m_md, 0, 1);
    wait_life(0, UCT_VARUNA_LIFE_CLOSED);
    m_ib.on_reg = [&]() {
        m_ib.on_reg = nullptr;
        uct_varuna_md_remove_nic(m_md, 0, 0);
        wait_ready(0);
    };
    ASSERT_UCS_OK(reg(&memh));
    wait_until([&]() { return has(memh, 0) && has(memh, 1); });
    EXPECT_EQ(0x7, nics_of_key(memh));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
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
    EXPECT_FALSE(has(memh, 0));
    EXPECT_EQ(0x4, nics_of_key(memh));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE,
              find(static_cast<uct_varuna_mem_t*>(memh)->token, 0, 1, &key));
    m_ib.fail_reg = 0;
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* It is reset again and again: each life has a generation, until there is none left */
UCS_TEST_F(test_varuna_return, lives) {
    scoped_log_handler slh(wrap_warns_logger);
    const unsigned num_mds = m_ib.num_open_mds;
    char buffer[MAX_KEY]   = {};
    uct_mem_h memh;

    ASSERT_UCS_OK(reg(&memh));
    for (unsigned life = 1; life <= 30; ++life) {
        reset(2);
        wait_ready(2);
        ASSERT_UCS_OK(pack(memh, buffer));
        EXPECT_EQ(0x7, packed(buffer).nic_map);
        EXPECT_EQ(life, entry(buffer, 2).generation);
        EXPECT_EQ(num_mds, m_ib.num_open_mds);
        EXPECT_EQ(4u, m_ib.num_mems) << "with two spares";
    }

    m_md->nics[2].generation = UINT16_MAX;
    m_warnings.clear();
    die(2);
    wait_until([&]() {
        look(2);
        return m_warnings.size() > 1;
    });
    look(2);
    EXPECT_NE(std::string::npos, m_warnings[1].find("programs that start now use it, this one"));
    EXPECT_EQ(2u, m_warnings.size()) << "that it died, and that";
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* Our own memory that peers access is registered there from then on, and what was registered
 * before is when a peer asks. It uses the device, which is closed after its end */
UCS_TEST_F(test_varuna_return, own_memory) {
    scoped_log_handler slh(hide_warns_logger);
    uct_varuna_own_t own, other;
    uint64_t key = 0;

    auto add = [&](unsigned nic) {
        return uct_varuna_own_add(m_md, m_buffer, sizeof(m_buffer), UCT_VARUNA_MR_READ, nic,
                                  ucs_time_from_sec(60), &own, &key);
    };

    ASSERT_UCS_OK(reg_own(&own));
    EXPECT_EQ(0x7, packed(own.key).nic_map);
    die(0);
    wait_until([&]() {
        look(0);
        return uct_varuna_md_life(m_md, 0) == UCT_VARUNA_LIFE_ENDING;
    });
    usleep(10000);
    EXPECT_EQ(UCT_VARUNA_LIFE_ENDING, uct_varuna_md_life(m_md, 0)) << "it has a user";
    EXPECT_EQ(UCS_ERR_NO_DEVICE, add(0));
    uct_varuna_own_remove(m_md, &own, 0);
    EXPECT_EQ(0x4, packed(own.key).nic_map);
    wait_ready(0);
    EXPECT_EQ(1u, m_md->nics[0].generation);
    ASSERT_UCS_OK(reg_own(&other));
    EXPECT_EQ(0x7, packed(other.key).nic_map);
    EXPECT_EQ(1u, entry(other.key, 1).generation);
    EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &other));

    EXPECT_EQ(UCS_ERR_NO_DEVICE, add(5));
    EXPECT_EQ(UCS_ERR_NO_DEVICE, add(UCT_VARUNA_MAX_LINKS));
    EXPECT_UCS_OK(add(1)); /* The second port: the first one has the registration */
    EXPECT_EQ(0x7, packed(own.key).nic_map);
    EXPECT_EQ(key, entry(own.key, 1).key);
    EXPECT_EQ(sizeof(uct_varuna_packed_rkey_t) + (3 * sizeof(uct_varuna_packed_key_t)),
              own.key_len);
    EXPECT_UCS_OK(add(0));
    EXPECT_EQ(0x7, packed(own.key).nic_map);
    EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &own));
    for (unsigned nic = 0; nic < m_md->num_nics; ++nic) {
        EXPECT_EQ(0u, m_md->nics[nic].life.users);
    }
}

/* A NIC is removed when traffic has left all links, nothing else uses it, and no region is there;
 * it is opened again by a command only */
UCS_TEST_F(test_varuna_return, remove_and_add) {
    scoped_log_handler slh(hide_warns_logger);
    const unsigned num_mds = m_ib.num_open_mds;
    uint32_t left[2]       = {0, 0};
    unsigned num_mems;
    uct_mem_h memh;

    ASSERT_UCS_OK(reg(&memh));
    num_mems = m_ib.num_mems;
    ASSERT_TRUE(uct_varuna_md_can_remove_nic(m_md, 1));
    ASSERT_TRUE(uct_varuna_md_link_open(m_md, 0));
    ASSERT_TRUE(uct_varuna_md_link_open(m_md, 1));
    uct_varuna_md_remove_nic(m_md, 1, 1);
    uct_varuna_md_remove_nic(m_md, 1, 1);
    EXPECT_EQ(UCT_VARUNA_LIFE_LEAVING, uct_varuna_md_life(m_md, 0));
    EXPECT_EQ(UCT_VARUNA_NIC_LEAVING, uct_varuna_md_nic_state(m_md, 0));
    EXPECT_TRUE(uct_varuna_md_use(m_md, 0)) << "it works";
    EXPECT_EQ(0x7, nics_of_key(memh));
    uct_varuna_md_link_set_left(m_md, 0, 1, &left[0]);
    EXPECT_EQ(UCT_VARUNA_LIFE_LEAVING, uct_varuna_md_life(m_md, 0)) << "the other port";
    uct_varuna_md_link_set_left(m_md, 0, 0, &left[0]);
    uct_varuna_md_link_set_left(m_md, 1, 1, &left[1]);
    uct_varuna_md_link_set_left(m_md, 1, 1, &left[1]);
    EXPECT_EQ(UCT_VARUNA_LIFE_LEAVING, uct_varuna_md_life(m_md, 0)) << "a peer has come back";
    uct_varuna_md_link_set_left(m_md, 0, 1, &left[0]);
    EXPECT_EQ(UCT_VARUNA_LIFE_ENDING, uct_varuna_md_life(m_md, 1));
    EXPECT_TRUE(uct_varuna_md_is_nic_dead(m_md, 1));
    EXPECT_FALSE(uct_varuna_md_use(m_md, 0));
    EXPECT_FALSE(uct_varuna_md_link_open(m_md, 0));
    EXPECT_EQ(0x4, nics_of_key(memh));
    uct_varuna_md_link_closed(m_md, 0, left[0]);
    uct_varuna_md_link_closed(m_md, 1, left[1]);
    usleep(10000);
    EXPECT_EQ(UCT_VARUNA_LIFE_ENDING, uct_varuna_md_life(m_md, 1)) << "something uses it";
    EXPECT_EQ(num_mems, m_ib.num_mems) << "it may post with the region";
    uct_varuna_md_unuse(m_md, 0);
    wait_life(0, UCT_VARUNA_LIFE_CLOSED);
    EXPECT_EQ(num_mds - 1, m_ib.num_open_mds);
    EXPECT_EQ(2u, m_ib.num_mems);
    EXPECT_EQ(UCT_VARUNA_NIC_ABSENT, uct_varuna_md_nic_state(m_md, 1));
    look(0);
    look(0);
    usleep(10000);
    EXPECT_EQ(UCT_VARUNA_LIFE_CLOSED, uct_varuna_md_life(m_md, 0));

    uct_varuna_md_remove_nic(m_md, 0, 0);
    wait_ready(0);
    EXPECT_EQ(UCT_VARUNA_NIC_WORKING, uct_varuna_md_nic_state(m_md, 1));
    EXPECT_FALSE(uct_varuna_md_is_nic_dead(m_md, 1));
    EXPECT_EQ(0x7, nics_of_key(memh));
    EXPECT_EQ(num_mds, m_ib.num_open_mds);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* UCX invalidates only what has a key that was packed for that, on each NIC */
UCS_TEST_F(test_varuna_return, keys_can_be_invalidated) {
    scoped_log_handler slh(hide_warns_logger);
    char buffer[MAX_KEY];
    uct_mem_h memh;

    ASSERT_UCS_OK(reg(&memh));
    ASSERT_UCS_OK(pack(memh, buffer, PACK_INVALIDATE));
    ASSERT_NE(0u, m_ib.pack_flags);
    m_ib.pack_flags = 0;
    reset(0);
    wait_ready(0);
    EXPECT_EQ((unsigned)PACK_INVALIDATE, m_ib.pack_flags);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* A command that is revoked before the traffic has left */
UCS_TEST_F(test_varuna_return, removal_is_revoked) {
    ASSERT_TRUE(uct_varuna_md_link_open(m_md, 2));
    uct_varuna_md_remove_nic(m_md, 2, 1);
    EXPECT_EQ(UCT_VARUNA_LIFE_LEAVING, uct_varuna_md_life(m_md, 2));
    uct_varuna_md_remove_nic(m_md, 2, 0);
    EXPECT_EQ(UCT_VARUNA_LIFE_OPEN, uct_varuna_md_life(m_md, 2));
    EXPECT_EQ(UCT_VARUNA_NIC_WORKING, uct_varuna_md_nic_state(m_md, 2));
    uct_varuna_md_link_closed(m_md, 2, 0);
    EXPECT_EQ(0u, m_md->nics[2].generation);
}

/* Two interfaces have left, and one of them does not hear that the command was revoked before there
 * is another one: it has not left in that */
UCS_TEST_F(test_varuna_return, removed_again) {
    uint32_t left[2] = {0, 0};

    ASSERT_TRUE(uct_varuna_md_link_open(m_md, 2));
    ASSERT_TRUE(uct_varuna_md_link_open(m_md, 2));
    uct_varuna_md_remove_nic(m_md, 2, 1);
    uct_varuna_md_link_set_left(m_md, 2, 1, &left[0]);
    uct_varuna_md_remove_nic(m_md, 2, 0);
    uct_varuna_md_link_set_left(m_md, 2, 1, &left[1]);
    EXPECT_EQ(UCT_VARUNA_LIFE_OPEN, uct_varuna_md_life(m_md, 2)) << "it is not to be removed";
    uct_varuna_md_remove_nic(m_md, 2, 1);
    uct_varuna_md_link_set_left(m_md, 2, 1, &left[1]);
    EXPECT_EQ(UCT_VARUNA_LIFE_LEAVING, uct_varuna_md_life(m_md, 2));
    uct_varuna_md_link_set_left(m_md, 2, 1, &left[0]);
    EXPECT_EQ(UCT_VARUNA_LIFE_ENDING, uct_varuna_md_life(m_md, 2));
    uct_varuna_md_link_closed(m_md, 2, left[0]);
    uct_varuna_md_link_closed(m_md, 2, left[1]);
    wait_life(2, UCT_VARUNA_LIFE_CLOSED);
}

/* Atomics of mode extended need the registrations of their slots, which have no other life */
UCS_TEST_F(test_varuna_return, mode_extended) {
    scoped_log_handler slh(wrap_warns_logger);

    m_md->atomic_mode = UCT_VARUNA_ATOMIC_EXTENDED;
    EXPECT_FALSE(uct_varuna_md_can_remove_nic(m_md, 2));
    die(2);
    wait_until([&]() {
        look(2);
        return m_warnings.size() > 1;
    });
    EXPECT_NE(std::string::npos, m_warnings[1].find("programs that start now use it, this one"));
    EXPECT_EQ(0u, m_md->nics[2].generation);
}

/* A device that has another kind of ports now is not used, and asked again */
UCS_TEST_F(test_varuna_return, device_that_is_another_one) {
    scoped_log_handler slh(hide_warns_logger);
    const unsigned num_mds = m_ib.num_open_mds;

    m_ib.devices[1].has_dc = false;
    die(2);
    wait_until([&]() {
        look(2);
        return uct_varuna_md_life(m_md, 2) == UCT_VARUNA_LIFE_CLOSED;
    });
    for (unsigned i = 0; i < 20; ++i) {
        look(2);
        usleep(1000);
    }
    EXPECT_EQ(0u, m_md->nics[2].generation);
    EXPECT_EQ(num_mds - 1, m_ib.num_open_mds);
    m_ib.devices[1].has_dc = true;
    wait_until([&]() {
        look(2);
        return m_md->nics[2].generation == 1;
    });
    wait_ready(2);
    EXPECT_EQ(num_mds, m_ib.num_open_mds);
}
