/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Remote keys of the memory domain, and the tokens in them.
 */
#include "test_varuna_md.h"

extern "C" {
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/responder/cpu/varuna_cpu.h>
#include <uct/ib/varuna/responder/cpu/varuna_fault.h>
}

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- Remote keys ----------------------------------------------------------- */

UCS_TEST_F(test_varuna_md, rkey_round_trip) {
    char buffer[MAX_KEY + 1];
    uct_varuna_rkey_t *rkey;
    uct_md_attr_t attr;
    uct_mem_h memh;
    size_t size;

    add("mlx5_0", 2);
    add("mlx5_1");
    add("mlx5_2");
    open({"mlx5_2", "mlx5_0"}); /* NICs 3, 0, 1 */
    ASSERT_UCS_OK(uct_md_query(&m_md->super, &attr));
    size = attr.rkey_packed_size;
    ASSERT_LE(size, size_t(MAX_KEY));

    ASSERT_UCS_OK(reg(&memh));
    memset(buffer, 0x5a, sizeof(buffer));
    /* Unaligned, as in an UCP message */
    ASSERT_UCS_OK(pack(memh, buffer + 1, PACK_INVALIDATE));
    EXPECT_EQ(unsigned(PACK_INVALIDATE), m_ib.pack_flags);
    EXPECT_EQ(0x5a, buffer[0]);
    for (size_t i = 1 + size; i < sizeof(buffer); ++i) {
        EXPECT_EQ(0x5a, buffer[i]) << i;
    }

    ASSERT_UCS_OK(unpack(buffer + 1, &rkey));
    EXPECT_EQ(4u, rkey->num_keys);
    EXPECT_EQ(0xffu, rkey->lacks) << "none was opened again";
    for (unsigned nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        fake_ib::mem *mem = (fake_ib::mem*)uct_varuna_mem_inner(memh, nic);
        EXPECT_EQ((mem == NULL) ? UCT_INVALID_RKEY : mem->key,
                  uct_varuna_rkey_inner((uct_rkey_t)rkey, nic)) << nic;
        EXPECT_EQ(0u, rkey->generations[nic]);
    }
    uct_varuna_rkey_release(m_ib.component(), rkey);

    /* Two NICs were opened again, and one without a key */
    m_md->nics[0].generation = 1;
    m_md->nics[1].generation = UINT16_MAX;
    m_md->nics[4].generation = 1;
    ASSERT_UCS_OK(pack(memh, buffer));
    ASSERT_UCS_OK(unpack(buffer, &rkey));
    EXPECT_EQ(1u, rkey->generations[0]);
    EXPECT_EQ(UINT16_MAX, rkey->generations[1]);
    EXPECT_EQ(0u, rkey->generations[3]);
    EXPECT_EQ(0xffu, rkey->lacks) << "it was not looked at";
    uct_varuna_rkey_release(m_ib.component(), rkey);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* A key is complete for one life of a NIC: what it has for an earlier one is dropped when anybody
 * hears of a later one, and what is known of another life is not added */
UCS_TEST_F(test_varuna_md, rkey_is_complete_for_one_life) {
    static constexpr uint64_t PEER = 7, OTHER = 8;
    const uint8_t bits[]           = {uct_varuna_rkey_has_returned(0, 1),
                                      uct_varuna_rkey_has_returned(1, 1)};
    char buffer[MAX_KEY];
    uct_varuna_rkey_t *rkey;
    uct_mem_h memh;
    uct_rkey_t first;

    add("mlx5_0");
    add("mlx5_1");
    open({"mlx5_0", "mlx5_1"});
    ASSERT_UCS_OK(reg(&memh));
    m_md->nics[0].generation = 1;
    ASSERT_UCS_OK(pack(memh, buffer, PACK_INVALIDATE));
    ASSERT_UCS_OK(unpack(buffer, &rkey));
    first = rkey->keys[0];

    uct_varuna_rkey_complete(rkey, PEER, 0, 1, UCT_INVALID_RKEY);
    EXPECT_EQ(0xffu & ~bits[0], rkey->lacks) << "it was packed in that life";
    uct_varuna_rkey_complete(rkey, PEER, 1, 1, UCT_INVALID_RKEY);
    EXPECT_EQ(0xffu & ~bits[0], rkey->lacks);
    EXPECT_EQ(UCT_INVALID_RKEY, rkey->keys[1]) << "that was of another life";
    uct_varuna_rkey_complete(rkey, PEER, 1, 1, 0x1234);
    EXPECT_EQ(0xffu & ~(bits[0] | bits[1]), rkey->lacks);
    EXPECT_EQ(0x1234u, rkey->keys[1]);

    uct_varuna_rkeys_renew(PEER, 0, 1);
    EXPECT_EQ(0xffu & ~(bits[0] | bits[1]), rkey->lacks);
    uct_varuna_rkeys_renew(OTHER, 0, 2);
    EXPECT_EQ(0xffu & ~bits[1], rkey->lacks) << "it may be of the same process: look again";
    EXPECT_EQ(first, rkey->keys[0]);
    uct_varuna_rkey_complete(rkey, PEER, 0, 1, UCT_INVALID_RKEY);
    EXPECT_EQ(0xffu & ~(bits[0] | bits[1]), rkey->lacks);
    uct_varuna_rkeys_renew(PEER, 0, 2);
    EXPECT_EQ(0xffu & ~bits[1], rkey->lacks);
    EXPECT_EQ(UCT_INVALID_RKEY, rkey->keys[0]);
    uct_varuna_rkey_complete(rkey, PEER, 0, 1, first);
    EXPECT_EQ(0xffu & ~bits[1], rkey->lacks) << "who says so has not heard of it yet";
    EXPECT_EQ(UCT_INVALID_RKEY, rkey->keys[0]);
    uct_varuna_rkey_complete(rkey, PEER, 0, 2, 0x5678);
    EXPECT_EQ(0xffu & ~(bits[0] | bits[1]), rkey->lacks);
    EXPECT_EQ(0x5678u, rkey->keys[0]);

    uct_varuna_rkey_release(m_ib.component(), rkey);
    uct_varuna_rkeys_renew(PEER, 0, 3);
    EXPECT_EQ(0u, m_ib.num_rkeys);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* Another thread looks at all keys, which takes most of its time, when a process forks. The child
 * can release its keys. The handlers are those of iface/varuna_module.c */
UCS_TEST_F(test_varuna_md, rkeys_of_a_forked_process) {
    static constexpr unsigned NUM_KEYS = 1000;
    static int is_registered           = pthread_atfork(uct_varuna_rkeys_fork_prepare,
                                                        uct_varuna_rkeys_fork_end,
                                                        uct_varuna_rkeys_fork_end);
    std::vector<uct_varuna_rkey_t*> rkeys(NUM_KEYS);
    std::atomic<bool> stop(false);
    char buffer[MAX_KEY];
    uct_mem_h memh;
    int status;

    ASSERT_EQ(0, is_registered);
    add("mlx5_0");
    open({"mlx5_0"});
    ASSERT_UCS_OK(reg(&memh));
    ASSERT_UCS_OK(pack(memh, buffer));
    for (auto &rkey : rkeys) {
        ASSERT_UCS_OK(unpack(buffer, &rkey));
    }

    std::thread other([&] {
        while (!stop) {
            uct_varuna_rkeys_renew(1, 0, 1);
        }
    });
    for (unsigned i = 0; i < 10; ++i) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(60); /* Only ends a hang */
            uct_varuna_rkey_release(m_ib.component(), rkeys[0]);
            _exit(0);
        }
        ASSERT_EQ(pid, waitpid(pid, &status, 0));
        EXPECT_EQ(0, status);
    }
    stop = true;
    other.join();

    for (uct_varuna_rkey_t *rkey : rkeys) {
        uct_varuna_rkey_release(m_ib.component(), rkey);
    }
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* An address from a peer must be in memory with a key. */
UCS_TEST_F(test_varuna_md, shared_is_what_has_a_key) {
    const uintptr_t begin = (uintptr_t)m_buffer;
    const uintptr_t end   = begin + sizeof(m_buffer);
    char buffer[MAX_KEY];
    uct_mem_h memh, other;
    unsigned num_packs;
    uct_rkey_t rkey;
    counter comp;

    add_many(2);
    open();
    ASSERT_UCS_OK(reg(&memh));
    EXPECT_FALSE(uct_varuna_md_is_shared(m_md, begin, 8));
    EXPECT_FALSE(uct_varuna_md_find_rkey(m_md, 1, begin, 8, &rkey));

    ASSERT_UCS_OK(pack(memh, buffer));
    ASSERT_UCS_OK(pack(memh, buffer)); /* Once is enough */
    EXPECT_TRUE(uct_varuna_md_is_shared(m_md, begin, sizeof(m_buffer)));
    EXPECT_TRUE(uct_varuna_md_is_shared(m_md, end - 8, 8));
    EXPECT_FALSE(uct_varuna_md_is_shared(m_md, end - 8, 9));
    EXPECT_FALSE(uct_varuna_md_is_shared(m_md, begin - 1, 2));
    EXPECT_FALSE(uct_varuna_md_is_shared(m_md, begin, 0));
    EXPECT_FALSE(uct_varuna_md_is_shared(m_md, UINT64_MAX - 3, 8));
    num_packs = m_ib.num_packs;
    ASSERT_TRUE(uct_varuna_md_find_rkey(m_md, 1, begin, 8, &rkey));
    EXPECT_EQ(num_packs, m_ib.num_packs) << "which may give a command to a NIC";
    EXPECT_EQ(((fake_ib::mem*)uct_varuna_mem_inner(memh, 1))->key, rkey);

    /* The same memory registered again: each registration has its own lifetime */
    ASSERT_UCS_OK(reg(&other));
    ASSERT_UCS_OK(pack(other, buffer));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    EXPECT_TRUE(uct_varuna_md_is_shared(m_md, begin, 8));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, invalidate(other, NULL));
    EXPECT_TRUE(uct_varuna_md_is_shared(m_md, begin, 8)) << "it was not done";
    ASSERT_UCS_OK(invalidate(other, &comp));
    EXPECT_FALSE(uct_varuna_md_is_shared(m_md, begin, 8));
    EXPECT_FALSE(uct_varuna_md_find_rkey(m_md, 1, begin, 8, &rkey));
}

UCS_TEST_F(test_varuna_md, rkey_pack_fails_at_each_nic) {
    char buffer[MAX_KEY];
    uct_mem_h memh;

    add_many(3);
    open();
    ASSERT_UCS_OK(reg(&memh));
    for (m_ib.fail_pack = 1; m_ib.fail_pack <= 3; ++m_ib.fail_pack) {
        m_ib.num_packs = 0;
        EXPECT_EQ(UCS_ERR_IO_ERROR, pack(memh, buffer));
    }
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

UCS_TEST_F(test_varuna_md, rkey_unpack_unwinds_at_each_nic) {
    char buffer[MAX_KEY];
    uct_varuna_rkey_t *rkey;

    make_key(0x2d, buffer);
    for (m_ib.fail_unpack = 1; m_ib.fail_unpack <= 4; ++m_ib.fail_unpack) {
        m_ib.num_unpacks = 0;
        EXPECT_EQ(UCS_ERR_IO_ERROR, unpack(buffer, &rkey));
        EXPECT_EQ(0u, m_ib.num_rkeys);
    }
}

UCS_TEST_F(test_varuna_md, rkey_unpack_every_nic_map) {
    char buffer[MAX_KEY];
    uct_varuna_rkey_t *rkey;

    for (unsigned map = 1; map < UCS_BIT(UCT_VARUNA_MAX_LINKS); ++map) {
        make_key(map, buffer);
        ASSERT_UCS_OK(unpack(buffer, &rkey));
        for (unsigned nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
            EXPECT_EQ((map & UCS_BIT(nic)) ? (1000 + nic) : UCT_INVALID_RKEY,
                      uct_varuna_rkey_inner((uct_rkey_t)rkey, nic));
        }
        uct_varuna_rkey_release(m_ib.component(), rkey);
    }
}

UCS_TEST_F(test_varuna_md, rkey_corrupt_header_is_refused) {
    char buffer[MAX_KEY];

    make_key(3, buffer)->magic = 0x5256; /* Other byte order */
    unpack_refused(buffer, "begins with 0x5256");
    make_key(3, buffer)->magic = 0;
    unpack_refused(buffer, "not of rc_varuna");
    make_key(3, buffer)->version = UCT_VARUNA_WIRE_VERSION + 1;
    unpack_refused(buffer, "wire version " +
                           std::to_string(UCT_VARUNA_WIRE_VERSION + 1));
    make_key(3, buffer)->version = 0;
    unpack_refused(buffer, "wire version 0");
    make_key(3, buffer)->num_keys = 0;
    unpack_refused(buffer, "corrupt: 0 keys");
    make_key(3, buffer)->num_keys = 255;
    unpack_refused(buffer, "corrupt: 255 keys");
    make_key(3, buffer)->num_keys = 1;
    unpack_refused(buffer, "corrupt: 1 keys");
    make_key(3, buffer)->nic_map = 7;
    unpack_refused(buffer, "for NICs 0x7");
    for (unsigned size : {0, 4, 8, 9, 16, 255}) {
        make_key(3, buffer)->key_size = size;
        unpack_refused(buffer, "keys of " + ucs::to_string(size) + " bytes");
    }
}

/* A key at the end of readable memory: not more than its length is read. A truncated
 * one, followed by zeros, is refused by its header. */
UCS_TEST_F(test_varuna_md, rkey_unpack_reads_no_further) {
    size_t page = sysconf(_SC_PAGESIZE);
    uct_varuna_rkey_t *rkey;
    char whole[MAX_KEY];
    char *pages, *end;
    size_t size;

    pages = (char*)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, (void*)pages);
    end = pages + page;
    ASSERT_EQ(0, mprotect(end, page, PROT_NONE));

    /* With none all NICs were away: it is completed later */
    for (unsigned num = 0; num <= UCT_VARUNA_MAX_LINKS; ++num) {
        size = uct_varuna_rkey_packed_size(num);
        make_key(UCS_MASK(num), end - size);
        ASSERT_UCS_OK(unpack(end - size, &rkey));
        EXPECT_EQ(num, rkey->num_keys);
        uct_varuna_rkey_release(m_ib.component(), rkey);
    }

    m_ib.num_unpacks = 0;
    size             = sizeof(uct_varuna_packed_rkey_t);
    make_key(3, whole);
    for (size_t left = 0; left <= offsetof(uct_varuna_packed_rkey_t, nic_map);
         ++left) {
        memset(end - size, 0, size);
        memcpy(end - size, whole, left);
        unpack_refused(end - size, "rc_varuna");
    }

    munmap(pages, 2 * page);
}

/* --- Tokens of regions, for atomics by the CPU ----------------------------- */

class test_varuna_md_token : public test_varuna_md {
protected:
    virtual void init()
    {
        test_varuna_md::init();
        m_atomic_mode = UCT_VARUNA_ATOMIC_CPU;
        add_many(2);
        open();
    }

    /* @return The token in the key of a new region. */
    uint64_t reg_part(size_t offset, size_t length, uct_mem_h *memh_p,
                      unsigned flags = UCT_MD_MEM_ACCESS_ALL)
    {
        char key[UINT8_MAX];

        EXPECT_UCS_OK(uct_md_mem_reg(&m_md->super, m_buffer + offset, length,
                                     flags, memh_p));
        EXPECT_UCS_OK(pack(*memh_p, key));
        return ((const uct_varuna_packed_rkey_t*)key)->token;
    }

    bool holds(uint64_t token, size_t offset, size_t length = 8)
    {
        if (!uct_varuna_md_hold(m_md, token, (uintptr_t)m_buffer + offset,
                                length)) {
            return false;
        }
        uct_varuna_md_release(m_md);
        return true;
    }
};

UCS_TEST_F(test_varuna_md_token, covers_its_region) {
    uct_mem_h memh;
    uint64_t token = reg_part(64, 128, &memh);

    EXPECT_NE(0u, token);
    EXPECT_TRUE(holds(token, 64));
    EXPECT_TRUE(holds(token, 64 + 120));
    EXPECT_TRUE(holds(token, 64 + 124, 4));
    EXPECT_FALSE(holds(token, 63));
    EXPECT_FALSE(holds(token, 64 + 121));
    EXPECT_FALSE(holds(token, 64 + 128));
    EXPECT_FALSE(holds(token ^ 1, 64));
    EXPECT_FALSE(holds(0, 64));
    EXPECT_FALSE(uct_varuna_md_hold(m_md, token, UINT64_MAX - 3, 8));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    EXPECT_FALSE(holds(token, 64));
}

/* Many regions lie over each other; each token finds its own */
UCS_TEST_F(test_varuna_md_token, overlapping_regions) {
    std::vector<uct_mem_h> memhs(50);
    std::vector<uint64_t> tokens;

    for (size_t i = 0; i < memhs.size(); ++i) {
        tokens.push_back(reg_part(8 * (i % 10), 256 - (8 * (i / 10)), &memhs[i]));
    }
    for (size_t i = 0; i < memhs.size(); ++i) {
        size_t first = 8 * (i % 10), length = 256 - (8 * (i / 10));

        EXPECT_TRUE(holds(tokens[i], first)) << i;
        EXPECT_TRUE(holds(tokens[i], first + length - 8)) << i;
        EXPECT_FALSE(holds(tokens[i], first + length - 7)) << i;
        EXPECT_FALSE((first > 0) && holds(tokens[i], first - 8)) << i;
    }
    for (uct_mem_h memh : memhs) {
        ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    }
    for (uint64_t token : tokens) {
        EXPECT_FALSE(holds(token, 128));
    }
}

UCS_TEST_F(test_varuna_md_token, none_without_the_right) {
    uct_mem_h memh;

    EXPECT_FALSE(holds(reg_part(0, 64, &memh, UCT_MD_MEM_ACCESS_RMA), 0));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

UCS_TEST_F(test_varuna_md_token, none_in_other_modes) {
    uct_mem_h memh;

    m_atomic_mode = UCT_VARUNA_ATOMIC_NATIVE;
    open();
    EXPECT_FALSE(holds(reg_part(0, 64, &memh), 0));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* The same memory again is another region: keys of the first one are void */
UCS_TEST_F(test_varuna_md_token, is_never_used_again) {
    std::set<uint64_t> tokens;

    for (unsigned i = 0; i < 1000; ++i) {
        uct_mem_h memh;

        EXPECT_TRUE(tokens.insert(reg_part(0, 64, &memh)).second);
        ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    }
}

/* Deregistration waits for the access, and no longer */
UCS_TEST_F(test_varuna_md_token, deregistration_waits) {
    volatile bool is_gone = false;
    uct_mem_h memh;
    uint64_t token = reg_part(0, 64, &memh);

    ASSERT_TRUE(uct_varuna_md_hold(m_md, token, (uintptr_t)m_buffer, 8));
    std::thread other([&] {
        EXPECT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
        is_gone = true;
    });
    usleep(20000);
    EXPECT_FALSE(is_gone);
    uct_varuna_md_release(m_md);
    other.join();
    EXPECT_TRUE(is_gone);
    EXPECT_FALSE(holds(token, 0));
}

/* Memory is deregistered and unmapped in a loop while the CPU executes atomics there:
 * held memory stays mapped, so none of them faults */
UCS_TEST_F(test_varuna_md_token, deregistered_under_load) {
    std::atomic<uint64_t> token(0), address(0), executed(0);
    std::atomic<bool> stop(false);
    unsigned faults = 0;

    uct_varuna_fault_init();
    std::thread other([&] {
        while (!stop) {
            uct_varuna_ctl_atomic_op_t op = {};
            uint64_t now_token            = token, result;

            op.addr  = address;
            op.value = 1;
            op.op    = UCT_ATOMIC_OP_ADD;
            op.width = 8;
            if (uct_varuna_md_hold(m_md, now_token, op.addr, op.width)) {
                ucs_status_t status = uct_varuna_cpu_op(&op, &result);
                uct_varuna_md_release(m_md);
                faults += (status != UCS_OK);
                ++executed;
            }
        }
    });
    for (unsigned i = 0; (i < 500) || (executed < 500); ++i) {
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char key[UINT8_MAX];
        uct_mem_h memh;

        ASSERT_UCS_OK(uct_md_mem_reg(&m_md->super, page, 4096,
                                     UCT_MD_MEM_ACCESS_ALL, &memh));
        ASSERT_UCS_OK(pack(memh, key));
        address = (uintptr_t)page;
        token   = ((const uct_varuna_packed_rkey_t*)key)->token;
        if (i % 2) {
            sched_yield();
        } else if (i >= 500) {
            usleep(100); /* The other thread may have no CPU of its own */
        }
        ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
        munmap(page, 4096);
    }
    stop = true;
    other.join();
    EXPECT_EQ(0u, faults);
    EXPECT_GE(executed, 500u);
}
