/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode extended: slots of owners that are gone. A word may hold the UID of a slot, and what
 * it means is lost when the slot is used again.
 */
#include "fake_target.h"
#include "fake_verbs.h"

extern "C" {
#include <uct/ib/varuna/responder/extended/varuna_home.h>
#include <uct/ib/varuna/md/varuna_md.h>
}

class test_varuna_worker : public fake_target_test {
protected:
    static constexpr double LIFETIME = 0.1;

    virtual void configure()
    {
        host->iface()->md->atomic_mode        = UCT_VARUNA_ATOMIC_EXTENDED;
        host->iface()->config.packet_lifetime = ucs_time_from_sec(LIFETIME);
        uct_varuna_regions_init(&host->iface()->md->shared);
        for (unsigned link = 0; link < NUM_LINKS; ++link) {
            verbs.add("fake_" + ucs::to_string(link));
        }
    }

    uct_varuna_home_t *part()
    {
        return uct_varuna_home(host->responder());
    }

    /* A word of ours, which no NIC has a key for */
    void share()
    {
        mem         = {};
        mem.address = &word;
        mem.length  = sizeof(word);
        uct_varuna_md_share(host->iface()->md, &mem, 0, mem.keys, 0);
    }

    /* Its slots are left to the worker */
    void close(const fake_peer &peer, uint64_t opening)
    {
        send_close(peer, opening);
        host->dispatch();
        ASSERT_FALSE(ucs_list_is_empty(&part()->dead_blocks));
    }

    /* A client has begun an atomic, and is gone */
    void leave_behind_uid()
    {
        fake_host::message reply = open(alice);
        unsigned index           = ((uct_varuna_home_client_t*)target(alice)->amo_part)->first_slot + 3;
        uct_varuna_slot_t *slot  = &part()->arena.slots[index];

        slot->gen_head = slot->gen_tail = uct_varuna_mark_gen(part()->arena.marks[index]);
        slot->addr     = (uintptr_t)&word;
        close(alice, reply.hdr.opening);
    }

    fake_verbs       verbs;
    uct_varuna_mem_t mem;
    uint64_t         word = 0;
};

UCS_TEST_F(test_varuna_worker, unused_slots_are_free_after_a_lifetime) {
    close(alice, open(alice).hdr.opening);
    host->advance(LIFETIME / 2);
    EXPECT_EQ(0u, part()->stats.swept);
    host->advance(LIFETIME * 2);
    EXPECT_EQ(1u, part()->stats.swept);
}

/* The memory is there, but the home NIC cannot read it now: the slots are kept until it
 * can, or until nobody can read the word any more */
UCS_TEST_F(test_varuna_worker, slots_are_kept_until_their_targets_were_read) {
    share();
    leave_behind_uid();
    host->advance(LIFETIME * 20);
    EXPECT_EQ(0u, part()->stats.swept);
    EXPECT_FALSE(ucs_list_is_empty(&part()->dead_blocks));

    /* Others are not held up */
    close(bob, open(bob).hdr.opening);
    host->advance(LIFETIME * 20);
    EXPECT_EQ(1u, part()->stats.swept);

    uct_varuna_md_unshare(host->iface()->md, &mem);
    host->advance(LIFETIME * 2);
    EXPECT_EQ(2u, part()->stats.swept);
    EXPECT_TRUE(ucs_list_is_empty(&part()->dead_blocks));
}
