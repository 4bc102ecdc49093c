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
#include <ucs/sys/sys.h>
}

#include <sys/mman.h>

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
    void share(void *address)
    {
        mem         = {};
        mem.address = address;
        mem.length  = sizeof(uint64_t);
        uct_varuna_md_share(host->iface()->md, &mem, 0, mem.keys, 0);
    }

    void share()
    {
        share(&word);
    }

    /* Peers cannot access it any more */
    void deregister()
    {
        uct_varuna_md_t *md = host->iface()->md;

        uct_varuna_md_unshare(md, &mem);
        ASSERT_TRUE(md->mem_ended != NULL);
        md->mem_ended(&mem);
    }

    /* Its slots are left to the worker */
    void close(const fake_peer &peer, uint64_t opening)
    {
        send_close(peer, opening);
        host->dispatch();
        ASSERT_FALSE(ucs_list_is_empty(&part()->dead_blocks));
    }

    /* A client has begun an atomic, which changes OLD to NEW, and is gone */
    void leave_behind_uid(void *address)
    {
        fake_host::message reply = open(alice);
        unsigned index           = ((uct_varuna_home_client_t*)target(alice)->amo_part)->first_slot + 3;
        uct_varuna_slot_t *slot  = &part()->arena.slots[index];

        slot->gen_head = slot->gen_tail = uct_varuna_mark_gen(part()->arena.marks[index]);
        slot->addr     = (uintptr_t)address;
        slot->compare  = OLD;
        slot->swap     = NEW;
        uid            = uct_varuna_uid(index, slot->gen_head, sizeof(uint64_t));
        close(alice, reply.hdr.opening);
    }

    void leave_behind_uid()
    {
        leave_behind_uid(&word);
        word = uid;
    }

    /* The home NIC executes the CAS that ends the generation of the slot, the only access */
    void end_generation()
    {
        unsigned index              = uid & UCS_MASK(UCT_VARUNA_UID32_SLOT_BITS);
        uint64_t *mark              = &part()->arena.marks[index];
        const fake_lane::post &post = host->ctl_lane(0).posted.back();
        uint64_t next               = uct_varuna_mark(
                uct_varuna_gen_next(uct_varuna_mark_gen(*mark)), UCT_VARUNA_MARK_PENDING);
        std::string before((char*)mark, sizeof(*mark));

        ASSERT_EQ("cas", post.op);
        ASSERT_EQ((uintptr_t)mark, post.addr);
        ASSERT_TRUE(post.comp != NULL);
        EXPECT_EQ(before + std::string((char*)&next, sizeof(next)), post.data);
        *mark = next;
        host->ctl_lane(0).complete(before);
    }

    /* Another interface, of the same memory domain or of its own */
    void add_interface(bool is_of_same_md)
    {
        other.reset(new fake_host(NUM_LINKS));
        other->iface()->config.heartbeat_interval = 0;
        other->iface()->config.packet_lifetime    = ucs_time_from_sec(LIFETIME);
        if (is_of_same_md) {
            other->iface()->md = host->iface()->md;
        }
        other->iface()->md->atomic_mode = UCT_VARUNA_ATOMIC_EXTENDED;
        other->start_heartbeat();
        other->start_responder();
    }

    virtual void cleanup()
    {
        other.reset();
        fake_target_test::cleanup();
    }

    static constexpr uint64_t OLD = 41, NEW = 42;

    std::unique_ptr<fake_host> other;
    uint64_t         uid = 0;

    fake_verbs       verbs;
    uct_varuna_mem_t mem;
    uint64_t         word __attribute__((aligned(8))) = 0;
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
    end_generation();
    host->advance(LIFETIME * 2);
    EXPECT_EQ(2u, part()->stats.swept);
    EXPECT_TRUE(ucs_list_is_empty(&part()->dead_blocks));
}

/* Nobody can see the UID, but the memory may be registered again: so the generation is over
 * before the slot is used again (rule 1) */
UCS_TEST_F(test_varuna_worker, generations_end_before_slots_are_free) {
    leave_behind_uid();
    host->advance(LIFETIME * 2);
    EXPECT_EQ(0u, part()->stats.swept);
    /* A client has set the mark since, so that the CAS fails: it is repeated */
    uint64_t *mark = &part()->arena.marks[uid & UCS_MASK(UCT_VARUNA_UID32_SLOT_BITS)];
    *mark         |= UCT_VARUNA_MARK_DONE;
    host->ctl_lane(0).complete(std::string((char*)mark, sizeof(*mark)));
    host->advance(LIFETIME * 2);
    EXPECT_EQ(0u, part()->stats.swept);
    end_generation();
    host->advance(LIFETIME * 2);
    EXPECT_EQ(1u, part()->stats.swept);
}

/* What its clients have left is resolved by another one, which has the same memory */
UCS_TEST_F(test_varuna_worker, blocks_of_a_closed_interface_are_left_to_others) {
    add_interface(true);
    host.swap(other);
    share();
    leave_behind_uid();
    host.swap(other);
    other.reset();
    EXPECT_EQ(uid, word) << "peers of the other interface may access it";

    host->advance(LIFETIME * 2);
    EXPECT_FALSE(ucs_list_is_empty(&part()->dead_blocks));
    EXPECT_EQ(1u, part()->stats.swept) << "slots of its own are free";
    uct_varuna_md_unshare(host->iface()->md, &mem);
    host->advance(LIFETIME * 2);
    end_generation();
    host->advance(LIFETIME * 2);
    EXPECT_TRUE(ucs_list_is_empty(&part()->dead_blocks));
    EXPECT_EQ(2u, part()->stats.swept);
}

/* The last interface of the memory is closed: nobody can access it then */
UCS_TEST_F(test_varuna_worker, last_interface_resolves) {
    uct_varuna_arena_t arena;

    ASSERT_UCS_OK(uct_varuna_arena_get(&arena)); /* The process has another one */
    add_interface(false);
    share();
    leave_behind_uid();
    unsigned index = uid & UCS_MASK(UCT_VARUNA_UID32_SLOT_BITS);
    uint64_t mark  = arena.marks[index];
    host.reset();
    EXPECT_EQ(NEW, word);
    EXPECT_EQ(uct_varuna_gen_next(uct_varuna_mark_gen(mark)),
              uct_varuna_mark_gen(arena.marks[index])) << "rule 1";
    uct_varuna_arena_put(&arena);
}

/* ... where the memory is unmapped */
UCS_TEST_F(test_varuna_worker, last_interface_finds_no_memory) {
    size_t page   = ucs_get_page_size();
    void *address = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ASSERT_NE(MAP_FAILED, address);
    share(address);
    leave_behind_uid(address);
    munmap(address, page);
    host.reset();
}

/* Its peers meet the UID by their keys */
UCS_TEST_F(test_varuna_worker, another_memory_domain_has_the_word) {
    uct_varuna_mem_t again = {};
    uint32_t first;

    add_interface(false);
    uct_varuna_regions_init(&other->iface()->md->shared);
    again.address = &word;
    again.length  = sizeof(word);
    uct_varuna_md_share(other->iface()->md, &again, 0, again.keys, 0);
    share();
    leave_behind_uid();
    deregister();
    EXPECT_EQ(uid, word);
    host.reset();
    EXPECT_EQ(uid, word);

    /* The slots are not used again */
    while ((first = uct_varuna_arena_alloc()) != UCT_VARUNA_SLOT_NONE) {
        EXPECT_NE((uid & UCS_MASK(UCT_VARUNA_UID32_SLOT_BITS)) / UCT_VARUNA_SLOT_BLOCK,
                  first / UCT_VARUNA_SLOT_BLOCK);
    }
    uct_varuna_md_unshare(other->iface()->md, &again);
}

/* No peer can resolve it any more */
UCS_TEST_F(test_varuna_worker, memory_is_deregistered) {
    share();
    leave_behind_uid();
    deregister();
    EXPECT_EQ(NEW, word);
}

UCS_TEST_F(test_varuna_worker, aborted_in_memory_that_is_deregistered) {
    share();
    leave_behind_uid();
    part()->arena.marks[uid & UCS_MASK(UCT_VARUNA_UID32_SLOT_BITS)] |= UCT_VARUNA_MARK_ABORTED;
    deregister();
    EXPECT_EQ(OLD, word);
}

/* Nothing else is changed */
UCS_TEST_F(test_varuna_worker, other_memory_is_deregistered) {
    share();
    leave_behind_uid();
    mem.length = sizeof(uint32_t);
    deregister();
    EXPECT_EQ(uid, word);
    mem.length = sizeof(word);
    word       = uid + 1;
    host->iface()->md->mem_ended(&mem);
    EXPECT_EQ(uid + 1, word);
}
