/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Received messages: each is delivered once and in order, and a gap that will never be
 * filled fails the vQP.
 */
#include "fake_target.h"

extern "C" {
#include <uct/ib/varuna/core/varuna_held.h>
#include <uct/ib/varuna/responder/varuna_responder.h>
#include <uct/ib/varuna/responder/varuna_fence.h>
}

class test_varuna_received : public fake_target_test {
protected:
    static constexpr unsigned AM_ID = 21;

    virtual void init()
    {
        fake_target_test::init();
        for (uct_am_handler_t &handler : host->iface()->super.am) {
            handler.cb  = stray;
            handler.arg = this;
        }
        host->iface()->super.am[AM_ID].cb  = deliver;
        host->iface()->rx_headroom         = 16;
        keeps                              = false;
        num_stray                          = 0;
        add(alice, VQP);
    }

    virtual void cleanup()
    {
        while (!ucs_list_is_empty(&host->responder()->received.gaps)) {
            uct_varuna_gap_forget(ucs_list_head(&host->responder()->received.gaps,
                                                uct_varuna_target_t, gap.list));
        }
        fake_target_test::cleanup();
    }

    static ucs_status_t deliver(void *arg, void *data, size_t length, unsigned flags)
    {
        test_varuna_received *self = (test_varuna_received*)arg;

        self->delivered.push_back(std::string((char*)data, length));
        self->flags.push_back(flags);
        return self->keeps ? UCS_INPROGRESS : UCS_OK;
    }

    static ucs_status_t stray(void *arg, void *, size_t, unsigned)
    {
        ++((test_varuna_received*)arg)->num_stray;
        return UCS_OK;
    }

    void add(const fake_peer &peer, uint32_t vqp)
    {
        open(peer, vqp);
        host->sent();
    }

    /* Message @a index of the vQP comes on a lane. @return What the handler returns */
    ucs_status_t come(unsigned index, const std::string &text, unsigned link = 0,
                      const fake_peer *peer = NULL, uint32_t vqp = VQP)
    {
        uct_varuna_target_t *to = target((peer == NULL) ? alice : *peer, vqp);

        return come_to(to->am.number,
                       uct_varuna_am_seq_first(to->opening) + index, text, link);
    }

    ucs_status_t come_to(uint32_t number, uint32_t seq, const std::string &text,
                         unsigned link = 0)
    {
        uct_varuna_am_hdr_t hdr;

        hdr.seq    = seq;
        hdr.target = (number << UCT_VARUNA_AM_ID_BITS) | AM_ID;
        m_buffer   = std::string(64, 0) + std::string((char*)&hdr, sizeof(hdr)) + text;
        return uct_varuna_am_handler(
                &host->iface()->links[link].lanes[UCT_VARUNA_LANE_RC], &m_buffer[64],
                m_buffer.size() - 64, UCT_CB_PARAM_FLAG_DESC);
    }

    /* The periodic work of the main thread; the lanes are empty unless a test changes
     * it */
    void look()
    {
        uct_varuna_gap_progress(host->responder());
    }

    /* The vQP was refused, over these links in turn */
    std::vector<unsigned> refusals()
    {
        std::vector<unsigned> links;

        for (const fake_host::message &msg : host->sent()) {
            if (msg.hdr.type == UCT_VARUNA_CTL_REJECT) {
                EXPECT_EQ(UCS_ERR_CONNECTION_RESET,
                          msg.as<uct_varuna_ctl_reject_t>().status);
                links.push_back(msg.link);
            }
        }
        return links;
    }

    std::vector<std::string> delivered;
    std::vector<unsigned>    flags;
    bool                     keeps;     /* The user keeps descriptors */
    unsigned                 num_stray;
    std::string              m_buffer;
};

typedef std::vector<std::string> texts;

UCS_TEST_F(test_varuna_received, in_order) {
    come(0, "a");
    come(1, "");
    come(2, "c");
    EXPECT_EQ(texts({"a", "", "c"}), delivered);
    EXPECT_EQ(0u, num_stray);
}

/* Several completion queues are polled: a new lane's message may be seen first */
UCS_TEST_F(test_varuna_received, held_until_its_turn) {
    come(2, "c", 1);
    come(1, "b", 1);
    EXPECT_EQ(0u, delivered.size());
    EXPECT_EQ(2u, host->responder()->received.num_held);
    come(0, "a");
    EXPECT_EQ(texts({"a", "b", "c"}), delivered);
    EXPECT_EQ(0u, host->responder()->received.num_held);
    EXPECT_EQ(0u, flags[1] & UCT_CB_PARAM_FLAG_DESC) << "it is in no descriptor";
}

UCS_TEST_F(test_varuna_received, repeated_messages_are_dropped) {
    come(0, "a");
    come(0, "a", 1);
    come(2, "c");
    come(2, "c", 1);
    come(1, "b");
    come(1, "b", 1);
    come(2, "c", 1);
    EXPECT_EQ(texts({"a", "b", "c"}), delivered);
    EXPECT_EQ(0u, host->responder()->received.num_held) << "nothing waits";
}

UCS_TEST_F(test_varuna_received, numbers_wrap_around) {
    target(alice)->next_seq = UINT32_MAX;
    uint32_t number         = target(alice)->am.number;

    come_to(number, 0, "b");
    come_to(number, UINT32_MAX, "a");
    come_to(number, 1, "c");
    EXPECT_EQ(texts({"a", "b", "c"}), delivered);
}

UCS_TEST_F(test_varuna_received, kept_descriptor_is_released_by_us) {
    keeps = true;
    EXPECT_EQ(UCS_INPROGRESS, come(0, "a"));
    /* Our header is in front of the user's data, and the headroom in front of that */
    void *desc = &m_buffer[64 + sizeof(uct_varuna_am_hdr_t) -
                           host->iface()->rx_headroom];
    EXPECT_EQ(&host->responder()->received.release[0].desc, uct_recv_desc(desc));
    EXPECT_EQ(1u, host->iface()->links[0].num_kept) << "its link is not closed meanwhile";
}

/* Only a faulty or hostile peer sends these: they are counted */
UCS_TEST_F(test_varuna_received, what_makes_no_sense_is_counted) {
    uint32_t number = target(alice)->am.number;
    char shorter[4] = {};

    come_to(number + 999, 0, "x");
    come(UCT_VARUNA_AM_WINDOW + 10, "x");
    EXPECT_EQ(2u, host->responder()->stats.unexpected);
    EXPECT_EQ(UCS_OK, uct_varuna_am_handler(
            &host->iface()->links[0].lanes[UCT_VARUNA_LANE_DC], shorter,
            sizeof(shorter), 0));
    EXPECT_EQ(2u, host->responder()->stats.unexpected) << "it names no vQP";
    EXPECT_EQ(0u, delivered.size());
    EXPECT_EQ(0u, host->responder()->received.num_held);
}

/* A closed vQP's number is unused */
UCS_TEST_F(test_varuna_received, message_to_a_closed_vqp) {
    uint32_t number = target(alice)->am.number;

    send_close(alice, target(alice)->opening);
    host->dispatch();
    EXPECT_TRUE(uct_varuna_numbers_find(&host->responder()->targets.numbers, number) ==
                NULL);
    come_to(number, 0, "x");
    EXPECT_EQ(0u, delivered.size());
    EXPECT_EQ(1u, host->responder()->stats.unexpected);
}


/* --- Gaps --- */

UCS_TEST_F(test_varuna_received, gap_fails_the_vqp_in_the_end) {
    come(1, "b");
    look();
    host->advance(0.09); /* The packet lifetime is 0.1 s */
    look();
    EXPECT_FALSE(target(alice)->broken);
    EXPECT_EQ(0u, refusals().size());
    host->advance(0.02);
    look();
    EXPECT_TRUE(target(alice)->broken);
    EXPECT_EQ(1u, refusals().size());
    EXPECT_EQ(0u, host->responder()->received.num_held);
    come(0, "a");
    come(1, "b");
    EXPECT_EQ(0u, delivered.size()) << "it has failed";
}

/* The missing message may be in a queue which is not polled yet */
UCS_TEST_F(test_varuna_received, gap_counts_only_with_empty_queues) {
    bool has_more = true;

    host->lane(1, UCT_VARUNA_LANE_RC).on_poll = [&]() -> unsigned { return has_more; };
    come(1, "b");
    host->advance(1);
    look();
    EXPECT_FALSE(target(alice)->broken);
    has_more = false;
    look();
    EXPECT_TRUE(target(alice)->broken);
}

/* ... and the next poll may return it */
UCS_TEST_F(test_varuna_received, gap_is_filled_by_the_last_poll) {
    come(1, "b");
    host->advance(1);
    host->lane(1, UCT_VARUNA_LANE_RC).on_poll = [&]() -> unsigned {
        host->lane(1, UCT_VARUNA_LANE_RC).on_poll = nullptr;
        come(0, "a");
        return 0;
    };
    look();
    EXPECT_EQ(texts({"a", "b"}), delivered);
    EXPECT_FALSE(target(alice)->broken);
    look();
    EXPECT_FALSE(uct_varuna_gap_is_watching(host->responder()));
}

/* While messages arrive, the missing one may follow */
UCS_TEST_F(test_varuna_received, gap_that_moves_has_its_time_anew) {
    come(9, "j");
    for (unsigned i = 0; i < 8; ++i) {
        host->advance(0.08);
        come(i, "x");
        look();
        host->advance(0.08);
        look();
        EXPECT_FALSE(target(alice)->broken);
    }
    host->advance(0.11);
    look();
    EXPECT_TRUE(target(alice)->broken);
}

UCS_TEST_F(test_varuna_received, gap_where_numbers_wrap_around) {
    target(alice)->next_seq = UINT32_MAX;
    come_to(target(alice)->am.number, 1, "c");
    host->advance(0.11);
    look();
    EXPECT_TRUE(target(alice)->broken);
}

/* The requester says with FENCE_REQ up to which number all are acknowledged */
UCS_TEST_F(test_varuna_received, fence_reveals_a_gap) {
    uint32_t first   = uct_varuna_am_seq_first(target(alice)->opening);
    uint64_t opening = target(alice)->opening;

    come(0, "a");
    connect(alice, opening, 1);
    fence(alice, opening, 1, 0, first + 1);
    host->dispatch();
    EXPECT_FALSE(uct_varuna_gap_is_watching(host->responder())) << "all have come";

    fence(alice, opening, 1, 0, first + 2);
    host->dispatch();
    look();
    host->advance(0.11);
    look();
    EXPECT_TRUE(target(alice)->broken);
}

/* On DC there is no queue pair to stop: in the first round late messages may still
 * arrive */
UCS_TEST_F(test_varuna_received, fence_without_a_queue_pair_reveals_nothing_at_first) {
    uint32_t first   = uct_varuna_am_seq_first(target(alice)->opening);
    uint64_t opening = target(alice)->opening;

    fence(alice, opening, 1, 0, first + 2, 0);
    host->dispatch();
    EXPECT_FALSE(uct_varuna_gap_is_watching(host->responder()));
    fence(alice, opening, 1, 0, first + 2, 1);
    host->dispatch();
    EXPECT_TRUE(uct_varuna_gap_is_watching(host->responder()));
}

/* The report may be lost with its link, so it is repeated over the others; a requester
 * that never closes is dead */
UCS_TEST_F(test_varuna_received, failure_is_reported_over_all_links_and_not_for_ever) {
    std::vector<unsigned> links;
    unsigned total = 0;

    come(1, "b");
    host->advance(0.11);
    look();
    look();
    links = refusals();
    ASSERT_EQ(1u, links.size()) << "one in each interval";
    host->advance(0.051);
    look();
    links.push_back(refusals().at(0));
    EXPECT_NE(links[0], links[1]);

    for (unsigned i = 0; i < 200; ++i) {
        host->advance(0.051);
        look();
        total += refusals().size();
    }
    EXPECT_EQ(62u, total);
    EXPECT_FALSE(uct_varuna_gap_is_watching(host->responder()));
}

/* ... or was cut off for longer than that */
UCS_TEST_F(test_varuna_received, failure_is_reported_again_when_the_requester_is_back) {
    uint64_t opening = target(alice)->opening;

    come(1, "b");
    host->advance(0.11);
    look();
    look();
    for (unsigned i = 0; uct_varuna_gap_is_watching(host->responder()); ++i) {
        ASSERT_LT(i, 100u);
        host->advance(0.051);
        look();
    }
    host->sent();

    host->advance(0.051);
    come(0, "a");
    EXPECT_EQ(1u, refusals().size()) << "of a message";
    come(0, "a");
    EXPECT_EQ(0u, refusals().size()) << "once in an interval";
    send_connect(alice, opening, 2);
    EXPECT_EQ(1u, refusals().size()) << "of a new queue pair";
    send_fence(alice, opening, 2);
    EXPECT_EQ(1u, refusals().size()) << "of a recovery";
    EXPECT_EQ(0u, delivered.size());
}

/* A hostile peer's header has a number that no vQP has. It leads to one while that has no
 * number to compare with */
UCS_TEST_F(test_varuna_received, number_that_nobody_has) {
    uct_varuna_numbers_t *numbers = &host->responder()->targets.numbers;
    uct_varuna_target_t *to       = target(alice);

    uct_varuna_numbers_remove(numbers, &to->am);
    ASSERT_EQ(UCS_OK, uct_varuna_numbers_add(numbers, &to->am, numbers->table->mask + 1));
    come_to(0, to->next_seq, "x");
    come(1, "b");
    come_to(0, to->next_seq, "x");
    EXPECT_EQ(0u, delivered.size());
    EXPECT_EQ(2u, host->responder()->stats.unexpected);
    come(0, "a");
    EXPECT_EQ(texts({"a", "b"}), delivered);
}

/* Too much is held: drop the vQP that holds most, of the peer that holds most */
UCS_TEST_F(test_varuna_received, the_greediest_makes_room) {
    add(bob, VQP);
    add(bob, VQP + 1);
    for (unsigned i = 1; i <= 3; ++i) {
        come(i, "x", 0, &bob, VQP);
    }
    for (unsigned i = 1; i <= 4; ++i) {
        come(i, "x");
    }
    come(1, "x", 0, &bob, VQP + 1);
    come(2, "x", 0, &bob, VQP + 1);

    host->responder()->received.num_held = UCT_VARUNA_HELD_MAX;
    come(5, "x");
    /* Bob holds 5, Alice 4; of Bob's, the first vQP has 3 */
    EXPECT_TRUE(target(bob, VQP)->broken);
    EXPECT_FALSE(target(bob, VQP + 1)->broken);
    EXPECT_FALSE(target(alice)->broken);
    EXPECT_EQ(5u, target(alice)->held.num);
    host->responder()->received.num_held -= UCT_VARUNA_HELD_MAX - 9;
}
