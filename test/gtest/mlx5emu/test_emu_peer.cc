/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * How the memory of other processes is accessed: short ones by a descriptor that
 * is kept, long ones by system calls that need none.
 */

#include "test_emu.h"

#include <dirent.h>
#include <limits.h>
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

    /* What is around a place that is written must stay */
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
        a->write(*b, value, 0, 8, 0);
        EXPECT_TRUE(a->completes(value, IBV_WC_SUCCESS));
        EXPECT_EQ(value, b->get(0));
        a->faa(*b, value + 1, 8, 0, 1);
        EXPECT_TRUE(a->completes(value + 1, IBV_WC_SUCCESS));
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

/* The slot of one that is gone is the next one's: no access may reach the wrong
 * one's memory, and no descriptor may be left */
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
