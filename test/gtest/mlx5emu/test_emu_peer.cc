/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Accesses to the memory of processes: short ones by a cached descriptor, long ones by
 * system calls without one, and those to memory that the CPU may not access by the
 * descriptor.
 */

#include "test_emu.h"

#include <dirent.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

class test_emu_peer : public emu::test_emu {
protected:
    /* Descriptors of other processes' memory that a program has */
    static unsigned num_mem_fds(emu::side &s)
    {
        std::string dir = "/proc/" + std::to_string((*s)("pid").at(0)) + "/fd";
        DIR *stream     = opendir(dir.c_str());
        unsigned count  = 0;
        char target[PATH_MAX];

        EXPECT_TRUE(stream != NULL);
        for (dirent *entry; (entry = readdir(stream)) != NULL;) {
            ssize_t len = readlink((dir + "/" + entry->d_name).c_str(), target,
                                   sizeof(target));
            std::string name(target, std::max<ssize_t>(len, 0));

            if ((name.compare(0, 6, "/proc/") == 0) &&
                (name.compare(name.size() - 4, 4, "/mem") == 0)) {
                ++count;
            }
        }
        closedir(stream);
        return count;
    }

    /* Bytes around a written place must not change */
    static const uint64_t guard = 64;

    static void fill_guards(emu::side &s, uint64_t place, uint64_t length)
    {
        s.fill(place - guard, guard, 1);
        s.fill(place + length, guard, 2);
    }

    static void expect_guards(emu::side &s, uint64_t place, uint64_t length)
    {
        EXPECT_EQ(0 + guard, s.match(place - guard, guard, 1));
        EXPECT_EQ(0 + guard, s.match(place + length, guard, 2));
    }

    void expect_works(uint64_t value)
    {
        a->put(0, value);
        EXPECT_TRUE(a->write(*b, value, 0, 8, 0).completes(IBV_WC_SUCCESS));
        EXPECT_EQ(value, b->get(0));
        EXPECT_TRUE(a->faa(*b, value + 1, 8, 0, 1).completes(IBV_WC_SUCCESS));
        EXPECT_EQ(value, a->get(8));
        EXPECT_EQ(value + 1, b->get(0));
    }
};

UCS_TEST_F(test_emu_peer, all_lengths_at_all_places) {
    uint64_t wr_id = 0;

    make_pair();
    for (uint64_t length : {1, 7, 8, 64, 2047, 2048, 2049, 4096, 9000}) {
        for (uint64_t place : {8192ul, 12288ul - 1, 12288ul - length / 2}) {
            fill_guards(*b, place, length);
            a->fill(0, length, length);
            a->write(*b, ++wr_id, 0, length, place);
            EXPECT_TRUE(a->completes(wr_id, IBV_WC_SUCCESS));
            EXPECT_EQ(length, b->match(place, length, length));
            expect_guards(*b, place, length);

            fill_guards(*a, 32768, length);
            a->read(*b, ++wr_id, 32768, length, place);
            EXPECT_TRUE(a->completes(wr_id, IBV_WC_SUCCESS));
            EXPECT_EQ(length, a->match(32768, length, length));
            expect_guards(*a, 32768, length);
        }
    }
    EXPECT_EQ(1u, num_mem_fds(*a));
    EXPECT_EQ(0u, num_mem_fds(*b));
}

/* The next process reuses the slot of a dead one: no access may reach the wrong
 * process, and no descriptor may leak */
UCS_TEST_F(test_emu_peer, others_come_in_its_place) {
    make_pair();
    for (uint64_t i = 1; i <= 5; ++i) {
        expect_works(i * 100);
        EXPECT_EQ(1u, num_mem_fds(*a));
        (**b).kill();
        fabric().command("status", {});
        b.reset(new emu::side(fabric(), 1, 0));
        (**a)("state", a->qp, (int)IBV_QPS_RESET);
        a->connect(*b);
        b->connect(*a);
    }
    expect_works(1000);
}

/* A program may close what it has not opened */
UCS_TEST_F(test_emu_peer, descriptor_is_closed_by_the_program) {
    make_pair();
    expect_works(100);
    EXPECT_EQ(1u, num_mem_fds(*a));
    (**a)("close_fds", 512);
    EXPECT_EQ(0u, num_mem_fds(*a));
    expect_works(200);
    expect_works(300);
    EXPECT_EQ(0u, num_mem_fds(*a));
}


/* A NIC uses the pages of a region from its registration on, even if the program may
 * not access them any more */
class test_emu_noaccess : public test_emu_peer {
protected:
    static const uint64_t region = 1ul << 20;   /* at offset 0 of either side */

    static void protect(emu::side &s, int prot)
    {
        (*s)("protect", s.mem, 0, (uint64_t)region, prot);
    }

    /* Prepare the memory of both sides */
    void close_memory()
    {
        protect(*a, PROT_NONE);
        protect(*b, PROT_NONE);
    }

    void open_memory()
    {
        protect(*a, PROT_READ | PROT_WRITE);
        protect(*b, PROT_READ | PROT_WRITE);
    }

    /* One operation with a length and places on either side */
    void transfer(ibv_wr_opcode opcode, uint64_t length, uint64_t from,
                  uint64_t to)
    {
        const bool is_read = (opcode == IBV_WR_RDMA_READ);
        emu::side &src     = is_read ? *b : *a;
        emu::side &dst     = is_read ? *a : *b;

        src.fill(from, length, ++m_wr_id);
        fill_guards(dst, to, length);
        if (opcode == IBV_WR_SEND) {
            b->recv(m_wr_id, to, length);
        }

        close_memory();
        a->send(opcode, *b, m_wr_id, is_read ? to : from, length,
                is_read ? from : to);
        EXPECT_TRUE(a->completes(m_wr_id, IBV_WC_SUCCESS)) << length;
        if (opcode == IBV_WR_SEND) {
            EXPECT_TRUE(b->completes(m_wr_id, IBV_WC_SUCCESS)) << length;
        }
        open_memory();
        EXPECT_EQ(length, dst.match(to, length, m_wr_id)) << opcode;
        expect_guards(dst, to, length);
    }

    void transfer_all(ibv_wr_opcode opcode)
    {
        for (uint64_t length : {1, 8, 64, 2048, 2049, 4096, 9000, 100000}) {
            transfer(opcode, length, 0, 204800);
            transfer(opcode, length, 4096 - 1, 204800 - length / 2);
        }
    }

private:
    uint64_t m_wr_id = 0;
};

UCS_TEST_F(test_emu_noaccess, write) {
    make_pair();
    transfer_all(IBV_WR_RDMA_WRITE);
    EXPECT_EQ(0u, num_mem_fds(*b));             /* it made no accesses */
    EXPECT_EQ(2u, num_mem_fds(*a));             /* ... and this side made all */
}

UCS_TEST_F(test_emu_noaccess, read) {
    make_pair();
    transfer_all(IBV_WR_RDMA_READ);
}

UCS_TEST_F(test_emu_noaccess, send) {
    make_pair();
    transfer_all(IBV_WR_SEND);
}

UCS_TEST_F(test_emu_noaccess, atomics) {
    make_pair();
    b->put(64, 41);
    close_memory();
    EXPECT_TRUE(a->faa(*b, 1, 0, 64, 1).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(a->cas(*b, 2, 8, 64, 42, 7).completes(IBV_WC_SUCCESS));
    open_memory();
    EXPECT_EQ(41u, a->get(0));
    EXPECT_EQ(42u, a->get(8));
    EXPECT_EQ(7u, b->get(64));
}

/* Source and destination are in one process, and may overlap */
UCS_TEST_F(test_emu_noaccess, loopback) {
    uint64_t wr_id = 0;

    make_pair();
    (**a)("state", a->qp, (int)IBV_QPS_RESET);
    a->connect(*a);
    for (uint64_t length : {8, 4096, 20000}) {
        for (int64_t distance : {-50000, -5000, -7, 7, 5000, 50000}) {
            uint64_t to = 200000 + distance;

            a->fill(200000, length, ++wr_id);
            protect(*a, PROT_NONE);
            a->write(*a, wr_id, 200000, length, to);
            EXPECT_TRUE(a->completes(wr_id, IBV_WC_SUCCESS));
            protect(*a, PROT_READ | PROT_WRITE);
            EXPECT_EQ(length, a->match(to, length, wr_id)) << distance;
        }
    }
}

/* The CPU copies only the accessible part. Overlapping ranges are copied from the
 * end. */
UCS_TEST_F(test_emu_noaccess, in_the_middle_of_a_loopback) {
    uint64_t wr_id = 0;

    make_pair();
    (**a)("state", a->qp, (int)IBV_QPS_RESET);
    a->connect(*a);
    for (int64_t distance : {-50000, -5000, 5000, 50000}) {
        for (uint64_t page : {196608ul, 204800ul, 208896ul, 212992ul}) {
            uint64_t to = 200000 + distance;

            a->fill(200000, 20000, ++wr_id);
            (**a)("protect", a->mem, page, 4096, (int)PROT_NONE);
            EXPECT_TRUE(a->write(*a, wr_id, 200000, 20000, to).completes(IBV_WC_SUCCESS));
            protect(*a, PROT_READ | PROT_WRITE);
            EXPECT_EQ(20000u, a->match(to, 20000, wr_id))
                    << distance << " " << page;
        }
    }
}

/* The emulator's own thread places delayed writes */
UCS_TEST_F(test_emu_noaccess, late_loopback) {
    make_pair();
    (**a)("state", a->qp, (int)IBV_QPS_RESET);
    a->connect(*a, 14);
    a->fill(0, 5000, 1);
    fault("packet op=write pkt=2 delay=20ms");
    protect(*a, PROT_NONE);
    EXPECT_TRUE(a->write(*a, 1, 0, 5000, 100000).completes(IBV_WC_SUCCESS));
    protect(*a, PROT_READ | PROT_WRITE);
    EXPECT_EQ(5000u, a->match(100000, 5000, 1));
}

/* The same of memory of a device, which programs cannot access from the beginning: NICs use a
 * mapping of their own */
UCS_TEST_F(test_emu_noaccess, dmabuf) {
    make_pair();
    for (emu::side *s : {a.get(), b.get()}) {
        s->use_memory("dmabuf");
    }
    transfer_all(IBV_WR_RDMA_WRITE);
    transfer_all(IBV_WR_RDMA_READ);
    transfer_all(IBV_WR_SEND);

    b->put(64, 41);
    close_memory();
    EXPECT_TRUE(a->faa(*b, 1000, 0, 64, 1).completes(IBV_WC_SUCCESS));
    open_memory();
    EXPECT_EQ(41u, a->get(0));
    EXPECT_EQ(42u, b->get(64));

    /* Whatever the program does with its own */
    (**b)("unmap", b->mem, 0, (uint64_t)region);
    EXPECT_TRUE(a->read(*b, 1001, 8, 8, 64).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(42u, a->get(8));

    /* ... until it is deregistered */
    (**b)("dereg", b->mem);
    EXPECT_TRUE(a->read(*b, 1002, 8, 8, 64).completes(IBV_WC_REM_ACCESS_ERR));
}

/* Unmapped pages are an error */
UCS_TEST_F(test_emu_noaccess, memory_that_is_gone) {
    make_pair();
    (**b)("unmap", b->mem, 0, (uint64_t)region);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 64).completes(IBV_WC_REM_OP_ERR));
}
