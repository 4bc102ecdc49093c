/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * RC over plain verbs: contents, results, errors, flush, RNR.
 */

#include "test_emu.h"

class test_emu_rc : public emu::test_emu {
protected:
    /* Connections below have an MTU of 1024 */
    static const uint64_t mtu = 1024;

    void init() override
    {
        emu::test_emu::init();
        make_pair();
    }

    void expect_error(uint64_t wr_id, ibv_wc_status status)
    {
        EXPECT_TRUE(a->completes(wr_id, status));
        EXPECT_EQ((uint64_t)IBV_QPS_ERR, a->state());
        EXPECT_EQ(0u, executed(1, "write") + executed(1, "read"));
    }
};

UCS_TEST_F(test_emu_rc, write_sizes) {
    static const uint64_t sizes[] = {1,       7,       8,           64,
                                     mtu - 1, mtu,     mtu + 1,     3 * mtu,
                                     65536,   1000000, 2ul << 20};
    unsigned count = 0;

    for (uint64_t size : sizes) {
        a->fill(0, size, size);
        a->write(*b, size, 0, size, 8);
        ASSERT_TRUE(a->completes(size, IBV_WC_SUCCESS));
        EXPECT_EQ(size, b->match(8, size, size));
        EXPECT_EQ(++count, executed(1, "write"));
    }
    EXPECT_EQ(8ul, b->zeroes(0, 8));
    EXPECT_EQ(1000ul, b->zeroes(8 + (2ul << 20), 1000));
    EXPECT_TRUE(b->is_quiet());
}

UCS_TEST_F(test_emu_rc, read_sizes) {
    b->fill(8, 1 << 20, 3);
    for (uint64_t size : {1ul, 8ul, mtu, mtu + 1, 1ul << 20}) {
        a->read(*b, size, 0, size, 8);
        ASSERT_TRUE(a->completes(size, IBV_WC_SUCCESS));
        EXPECT_EQ(size, a->match(0, size, 3));
    }
    EXPECT_EQ(5u, executed(1, "read"));
}

UCS_TEST_F(test_emu_rc, write_of_nothing) {
    EXPECT_TRUE(a->write(*b, 1, 0, 0, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(4096ul, b->zeroes(0, 4096));
}

/* A packet is read completely before it is written, even if the ranges overlap */
UCS_TEST_F(test_emu_rc, write_over_what_is_read) {
    a.reset(new emu::side(fabric(), 0, 0));
    a->connect(*a);
    for (uint64_t from : {0, 8}) {
        a->fill(from, 1000, from);
        a->write(*a, from, from, 1000, 8 - from);
        ASSERT_TRUE(a->completes(from, IBV_WC_SUCCESS));
        EXPECT_EQ(1000ul, a->match(8 - from, 1000, from));
    }
}

UCS_TEST_F(test_emu_rc, inline_write) {
    a->fill(0, 40, 1);
    a->send(IBV_WR_RDMA_WRITE, *b, 1, 0, 40, 0, 0, 0,
            IBV_SEND_SIGNALED | IBV_SEND_INLINE);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(40ul, b->match(0, 40, 1));
}

UCS_TEST_F(test_emu_rc, send_and_receive) {
    emu::completion c;

    b->recv(100, 0, 1 << 20);
    b->recv(101, 1 << 20, 4096);
    a->fill(0, 5000, 1);
    a->send(IBV_WR_SEND, *b, 1, 0, 5000, 0);
    a->send(IBV_WR_SEND_WITH_IMM, *b, 2, 0, 100, 0, 0x12345678);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(2, IBV_WC_SUCCESS));

    c = b->poll();
    EXPECT_EQ(100ul, c.wr_id);
    EXPECT_EQ((uint64_t)IBV_WC_RECV, c.opcode);
    EXPECT_EQ(5000ul, c.length);
    EXPECT_EQ(5000ul, b->match(0, 5000, 1));
    c = b->poll();
    EXPECT_EQ(101ul, c.wr_id);
    EXPECT_EQ(100ul, c.length);
    EXPECT_EQ(0x12345678ul, c.imm);
    EXPECT_EQ(100ul, b->match(1 << 20, 100, 1));
}

UCS_TEST_F(test_emu_rc, write_with_immediate) {
    emu::completion c;

    b->recv(7, 0, 0);
    a->fill(0, 3 * mtu, 1);
    a->send(IBV_WR_RDMA_WRITE_WITH_IMM, *b, 1, 0, 3 * mtu, 64, 99);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    c = b->poll();
    EXPECT_EQ(7ul, c.wr_id);
    EXPECT_EQ((uint64_t)IBV_WC_RECV_RDMA_WITH_IMM, c.opcode);
    EXPECT_EQ(3 * mtu, c.length);
    EXPECT_EQ(99ul, c.imm);
    EXPECT_EQ(3 * mtu, b->match(64, 3 * mtu, 1));
}

UCS_TEST_F(test_emu_rc, atomics) {
    b->put(64, 1000);
    a->faa(*b, 1, 0, 64, 5);
    ASSERT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(1000ul, a->get(0));
    EXPECT_EQ(1005ul, b->get(64));

    a->cas(*b, 2, 8, 64, 1005, 77);
    ASSERT_TRUE(a->completes(2, IBV_WC_SUCCESS));
    EXPECT_EQ(1005ul, a->get(8));
    EXPECT_EQ(77ul, b->get(64));

    a->cas(*b, 3, 16, 64, 1005, 78);
    ASSERT_TRUE(a->completes(3, IBV_WC_SUCCESS));
    EXPECT_EQ(77ul, a->get(16));
    EXPECT_EQ(77ul, b->get(64));
    EXPECT_EQ(1u, executed(1, "faa"));
    EXPECT_EQ(2u, executed(1, "cas"));
}

UCS_TEST_F(test_emu_rc, order_and_trace) {
    for (int i = 0; i < 50; ++i) {
        a->put(8 * i, i + 1);
        a->write(*b, i, 8 * i, 8, 8 * i);
    }
    for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(a->completes(i, IBV_WC_SUCCESS));
    }

    std::vector<emu::trace_entry> entries = trace(1);
    ASSERT_EQ(50u, entries.size());
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ("write", entries[i].op);
        EXPECT_EQ(0u, entries[i].src_host);
        EXPECT_EQ(a->qpn, entries[i].src_qpn);
        EXPECT_EQ(b->addr + 8 * i, entries[i].addr);
        EXPECT_EQ(8u, entries[i].length);
        EXPECT_EQ((uint64_t)i + 1, entries[i].data);
    }
    EXPECT_TRUE(trace(0).empty());
}

UCS_TEST_F(test_emu_rc, many_reads_and_atomics) {
    /* More than may be in flight at a time */
    for (int i = 0; i < 40; ++i) {
        a->faa(*b, i, 8 * i, 0, 1);
    }
    for (int i = 0; i < 40; ++i) {
        ASSERT_TRUE(a->completes(i, IBV_WC_SUCCESS));
        EXPECT_EQ((uint64_t)i, a->get(8 * i));
    }
    EXPECT_EQ(40ul, b->get(0));
}

UCS_TEST_F(test_emu_rc, unsignalled) {
    emu::side c(fabric(), 0, 0, false, false), d(fabric(), 1, 0);

    c.connect(d);
    d.connect(c);
    for (int i = 0; i < 10; ++i) {
        c.send(IBV_WR_RDMA_WRITE, d, i, 0, 8, 8 * i, 0, 0, 0);
    }
    EXPECT_TRUE(c.write(d, 10, 0, 8, 80).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(c.is_quiet());
    EXPECT_EQ(11u, executed(1, "write"));
}

UCS_TEST_F(test_emu_rc, target_needs_no_cpu) {
    (**b).signal(SIGSTOP);
    a->put(0, 11);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(a->faa(*b, 2, 8, 0, 1).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(11ul, a->get(8));
    (**b).signal(SIGCONT);
    EXPECT_EQ(12ul, b->get(0));
}

UCS_TEST_F(test_emu_rc, wrong_rkey) {
    (**a)("send", a->qp, 1, (int)IBV_WR_RDMA_WRITE, (int)IBV_SEND_SIGNALED,
          a->addr, 8, a->lkey, b->addr, b->rkey ^ 0x5a00);
    expect_error(1, IBV_WC_REM_ACCESS_ERR);
}

UCS_TEST_F(test_emu_rc, remote_bounds) {
    a->write(*b, 1, 0, 9, emu::side::mem_size - 8);
    expect_error(1, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(8ul, b->zeroes(emu::side::mem_size - 8, 8));
}

UCS_TEST_F(test_emu_rc, remote_address_that_wraps) {
    (**a)("send", a->qp, 1, (int)IBV_WR_RDMA_READ, (int)IBV_SEND_SIGNALED,
          a->addr, 64, a->lkey, ~0ul - 8, b->rkey);
    expect_error(1, IBV_WC_REM_ACCESS_ERR);
}

UCS_TEST_F(test_emu_rc, remote_read_only) {
    emu::numbers_t mr = (**b)("mr", b->ctx, 4096, (int)IBV_ACCESS_REMOTE_READ);

    (**a)("send", a->qp, 1, (int)IBV_WR_RDMA_READ, (int)IBV_SEND_SIGNALED,
          a->addr, 8, a->lkey, mr.at(1), mr.at(3));
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    (**a)("send", a->qp, 2, (int)IBV_WR_RDMA_WRITE, (int)IBV_SEND_SIGNALED,
          a->addr, 8, a->lkey, mr.at(1), mr.at(3));
    EXPECT_TRUE(a->completes(2, IBV_WC_REM_ACCESS_ERR));
    EXPECT_EQ(0u, executed(1, "write"));
}

UCS_TEST_F(test_emu_rc, key_of_a_deregistered_region) {
    (**b)("dereg", b->mem);
    a->write(*b, 1, 0, 8, 0);
    expect_error(1, IBV_WC_REM_ACCESS_ERR);
}

/* Whoever knows the key of a region that is gone has access to the next one */
UCS_TEST_F(test_emu_rc, same_key) {
    emu::side view = *b;
    emu::numbers_t mr;

    quirk("1:0=same-key");
    (**b)("dereg", b->mem);
    mr        = (**b)("mr", b->ctx, 4096, emu::all_access);
    view.mem  = mr.at(0);
    view.addr = mr.at(1);
    view.rkey = mr.at(3);
    EXPECT_EQ(b->rkey, view.rkey);
    EXPECT_EQ(1u, acted("same-key", 1, 0));
    a->put(0, 5);
    EXPECT_TRUE(a->write(view, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(5u, view.get(0));
}

UCS_TEST_F(test_emu_rc, misaligned_atomic) {
    EXPECT_TRUE(a->faa(*b, 1, 0, 4, 1).completes(IBV_WC_REM_INV_REQ_ERR));
    EXPECT_EQ(16ul, b->zeroes(0, 16));
    EXPECT_EQ(0u, executed(1, "faa"));
}

UCS_TEST_F(test_emu_rc, wrong_lkey) {
    (**a)("send", a->qp, 1, (int)IBV_WR_RDMA_WRITE, (int)IBV_SEND_SIGNALED,
          a->addr, 8, a->lkey ^ 0x5a00, b->addr, b->rkey);
    expect_error(1, IBV_WC_LOC_PROT_ERR);
}

UCS_TEST_F(test_emu_rc, local_bounds) {
    a->write(*b, 1, emu::side::mem_size - 4, 8, 0);
    expect_error(1, IBV_WC_LOC_PROT_ERR);
}

UCS_TEST_F(test_emu_rc, receive_that_is_too_short) {
    b->recv(100, 0, 100);
    a->send(IBV_WR_SEND, *b, 1, 0, 2 * mtu, 0);
    EXPECT_TRUE(b->completes(100, IBV_WC_LOC_LEN_ERR));
    EXPECT_TRUE(a->completes(1, IBV_WC_REM_INV_REQ_ERR));
}

UCS_TEST_F(test_emu_rc, what_is_behind_an_error_is_flushed) {
    a->write(*b, 1, 0, 8, 0);
    a->write(*b, 2, 0, 9, emu::side::mem_size - 8);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(2, IBV_WC_REM_ACCESS_ERR));
    a->write(*b, 3, 0, 8, 0);
    a->write(*b, 4, 0, 8, 0);
    EXPECT_TRUE(a->completes(3, IBV_WC_WR_FLUSH_ERR));
    EXPECT_TRUE(a->completes(4, IBV_WC_WR_FLUSH_ERR));
    EXPECT_TRUE(a->is_quiet());
    EXPECT_EQ(1u, executed(1, "write"));
}

UCS_TEST_F(test_emu_rc, flush_in_order_when_modified_to_err) {
    /* The link holds them back */
    fabric().link(0, 0, "silent");
    emu::side c(fabric(), 0, 0), d(fabric(), 1, 0);
    c.connect(d, emu::patient_timeout, 7);
    for (int i = 0; i < 10; ++i) {
        /* Unsignalled ones are flushed too */
        (*c)("send", c.qp, i, (int)IBV_WR_RDMA_WRITE, 0, c.addr, 8, c.lkey,
             d.addr, d.rkey);
        c.recv(100 + i, 0, 8);
    }
    EXPECT_TRUE(c.is_quiet());
    (*c)("state", c.qp, (int)IBV_QPS_ERR);

    uint64_t next_send = 0, next_recv = 100;
    for (int i = 0; i < 20; ++i) {
        emu::completion done = c.poll();

        ASSERT_TRUE(done.found);
        EXPECT_EQ((uint64_t)IBV_WC_WR_FLUSH_ERR, done.status);
        EXPECT_EQ((done.wr_id < 100) ? next_send++ : next_recv++, done.wr_id);
    }
    EXPECT_TRUE(c.is_quiet());

    /* Posted to a QP in ERR */
    EXPECT_TRUE(c.write(d, 50, 0, 8, 0).completes(IBV_WC_WR_FLUSH_ERR));
    EXPECT_TRUE(c.recv(51, 0, 8).completes(IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ(0u, executed(1, "write"));
}

/* The program has not moved it to ERR, and need not know */
UCS_TEST_F(test_emu_rc, receives_posted_after_a_failure_are_flushed) {
    a->recv(1, 0, 8);
    a->write(*b, 2, 0, 9, emu::side::mem_size - 8);
    EXPECT_TRUE(a->completes(2, IBV_WC_REM_ACCESS_ERR));
    EXPECT_TRUE(a->completes(1, IBV_WC_WR_FLUSH_ERR));
    EXPECT_TRUE(a->recv(3, 0, 8).completes(IBV_WC_WR_FLUSH_ERR));

    /* The responder has failed as well */
    EXPECT_TRUE(b->recv(4, 0, 8).completes(IBV_WC_WR_FLUSH_ERR));
}

UCS_TEST_F(test_emu_rc, reset_and_again) {
    a->write(*b, 1, 0, 9, emu::side::mem_size - 8);
    EXPECT_TRUE(a->completes(1, IBV_WC_REM_ACCESS_ERR));
    for (emu::side *s : {a.get(), b.get()}) {
        (**s)("state", s->qp, (int)IBV_QPS_ERR);
        (**s)("state", s->qp, (int)IBV_QPS_RESET);
    }
    a->connect(*b);
    b->connect(*a);
    a->put(0, 5);
    EXPECT_TRUE(a->write(*b, 2, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(5ul, b->get(0));
}

UCS_TEST_F(test_emu_rc, rnr_waits_for_the_receiver) {
    a->put(0, 42);
    a->send(IBV_WR_SEND, *b, 1, 0, 8, 0);
    EXPECT_TRUE(a->is_quiet());
    b->recv(2, 0, 64);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_TRUE(b->completes(2, IBV_WC_SUCCESS));
    EXPECT_EQ(42ul, b->get(0));
    EXPECT_GT(counter(0, 0, "rnr_waits"), 0ul);
    EXPECT_EQ(1u, executed(1, "send"));
}

/* The first packets of a message have been acknowledged, and each NAK of the last one
 * says so again: no progress */
UCS_TEST_F(test_emu_rc, rnr_retries_run_out_within_a_message) {
    make_pair(0, 8, 3, 2);
    fault("packet op=write_imm pkt=4 count=all count", 3);
    a->send(IBV_WR_RDMA_WRITE_WITH_IMM, *b, 1, 0, 4 * mtu, 0);
    EXPECT_TRUE(a->completes(1, IBV_WC_RNR_RETRY_EXC_ERR));
    EXPECT_EQ(2ul, counter(0, 0, "rnr_waits"));
}

UCS_TEST_F(test_emu_rc, rnr_retries_run_out) {
    make_pair(0, 8, 3, 2);
    a->send(IBV_WR_SEND, *b, 1, 0, 8, 0);
    a->write(*b, 2, 0, 8, 0);
    EXPECT_TRUE(a->completes(1, IBV_WC_RNR_RETRY_EXC_ERR));
    EXPECT_TRUE(a->completes(2, IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ(2ul, counter(0, 0, "rnr_waits"));
    EXPECT_EQ(0u, executed(1, "write"));
}

UCS_TEST_F(test_emu_rc, expected_psn_can_be_queried) {
    emu::numbers_t before = (**b)("query", b->qp);

    EXPECT_TRUE(a->write(*b, 1, 0, 5 * mtu, 0).completes(IBV_WC_SUCCESS));
    emu::numbers_t after = (**b)("query", b->qp);
    EXPECT_EQ(5ul, (after.at(1) - before.at(1)) & 0xffffff);
    EXPECT_EQ(after.at(1), (**a)("query", a->qp).at(2));
}

UCS_TEST_F(test_emu_rc, peer_that_was_destroyed) {
    (**b)("destroy", b->qp);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
}

UCS_TEST_F(test_emu_rc, one_store_rings_the_doorbell) {
    static const int fm_cq_update = 8, op_write = 0x08, op_cs = 0x11,
                     op_fa = 0x12;

    a->put(0, 17);
    (**a)("raw", a->qp, op_write, fm_cq_update, a->addr, 8, a->lkey, b->addr,
          b->rkey, 0, 0);
    EXPECT_EQ((uint64_t)IBV_WC_SUCCESS, a->poll().status);
    (**a)("raw", a->qp, op_fa, fm_cq_update, a->addr + 8, 8, a->lkey, b->addr,
          b->rkey, 3, 0);
    EXPECT_EQ((uint64_t)IBV_WC_SUCCESS, a->poll().status);
    (**a)("raw", a->qp, op_cs, fm_cq_update, a->addr + 16, 8, a->lkey, b->addr,
          b->rkey, 20, 30);
    EXPECT_EQ((uint64_t)IBV_WC_SUCCESS, a->poll().status);
    EXPECT_EQ(17ul, a->get(8));
    EXPECT_EQ(20ul, a->get(16));
    EXPECT_EQ(30ul, b->get(0));

    /* All around the send queue, several times */
    for (int i = 0; i < 300; ++i) {
        a->put(0, i);
        (**a)("raw", a->qp, op_write, fm_cq_update, a->addr, 8, a->lkey,
              b->addr + 8 * i, b->rkey, 0, 0);
        ASSERT_EQ((uint64_t)IBV_WC_SUCCESS, a->poll().status);
        ASSERT_EQ((uint64_t)i, b->get(8 * i));
    }
    EXPECT_EQ(303ul, counter(0, 0, "doorbells"));
}

/* For any number of stores in the copy */
UCS_TEST_F(test_emu_rc, a_copy_rings_the_doorbell_once) {
    uint64_t num = 0;

    for (const char *way : {"libc", "mixed", "+1", "-1", "+2", "-2", "+4", "-4"}) {
        for (unsigned i = 0; i < 4; ++i) {
            /* NOP, one segment, with a completion */
            (**a).command("raw_bytes " + std::to_string(a->qp) +
                          " 00000000000000010000000800000000 " + way);
            ASSERT_EQ((uint64_t)IBV_WC_SUCCESS, a->poll().status) << way;
            ASSERT_EQ(++num, counter(0, 0, "doorbells")) << way;
        }
    }
}

UCS_TEST_F(test_emu_rc, malformed_requests) {
    static const struct {
        const char    *hex;
        ibv_wc_status status;
    } requests[] = {
        /* opcode that does not exist, two segments */
        {"000000ff00000002000000080000000000000000000000000000000000000000",
         IBV_WC_LOC_QP_OP_ERR},
        /* write with a single segment */
        {"0000000800000001000000080000000000000000000000000000000000000000",
         IBV_WC_LOC_QP_OP_ERR},
        /* no segments at all */
        {"0000000800000000000000080000000000000000000000000000000000000000",
         IBV_WC_LOC_QP_OP_ERR},
        /* 61 data segments of zeroes, which mean 2 GB each */
        {"000000080000003f000000080000000000000000000000000000000000000000",
         IBV_WC_LOC_LEN_ERR}
    };

    for (const auto &request : requests) {
        make_pair();
        (**a).command("raw_bytes " + std::to_string(a->qp) + " " +
                      request.hex);
        emu::completion c = a->poll();
        ASSERT_TRUE(c.found) << request.hex;
        EXPECT_EQ((uint64_t)request.status, c.status) << request.hex;
        EXPECT_EQ((uint64_t)IBV_QPS_ERR, a->state());
    }
    EXPECT_EQ(0u, trace(1).size());
}

UCS_TEST_F(test_emu_rc, requests_with_random_bytes) {
    static const unsigned num_bytes = 64;
    unsigned seed = ucs::rand(), num_errors = 0;

    UCS_TEST_MESSAGE << "seed " << seed;
    for (int i = 0; i < 400; ++i) {
        uint8_t bytes[num_bytes] = {};
        char hex[2 * num_bytes + 1];

        /* A good one: write of 8 bytes, with the keys that there are ... */
        bytes[3]  = 0x08;
        bytes[7]  = 3;
        bytes[11] = 0x08;
        for (int k = 0; k < 8; ++k) {
            bytes[16 + k] = b->addr >> (56 - 8 * k);
            bytes[40 + k] = a->addr >> (56 - 8 * k);
        }
        for (int k = 0; k < 4; ++k) {
            bytes[24 + k] = b->rkey >> (24 - 8 * k);
            bytes[36 + k] = a->lkey >> (24 - 8 * k);
        }
        bytes[35] = 8;

        /* ... with some random bytes */
        for (int n = rand_r(&seed) % 6; n >= 0; --n) {
            bytes[rand_r(&seed) % num_bytes] = rand_r(&seed);
        }
        for (unsigned k = 0; k < num_bytes; ++k) {
            snprintf(hex + 2 * k, 3, "%02x", bytes[k]);
        }

        (**a).command("raw_bytes " + std::to_string(a->qp) + " " + hex);
        bool is_complete = false;
        while (a->poll(0).found) {
            is_complete = true;
        }
        num_errors += (a->state() == IBV_QPS_ERR);
        /* One with an immediate waits for a receive buffer for ever */
        if (!is_complete || (a->state() == IBV_QPS_ERR)) {
            for (emu::side *s : {a.get(), b.get()}) {
                (**s)("state", s->qp, (int)IBV_QPS_RESET);
            }
            a->connect(*b);
            b->connect(*a);
        }
    }
    EXPECT_GT(num_errors, 50u);
    EXPECT_LT(num_errors, 400u);
}


class test_emu_masked : public emu::test_emu {
protected:
    static const unsigned op_cs = 0x14, op_fa = 0x15;

    void init() override
    {
        emu::test_emu::init();
        make_pair();
    }

    /* On 8 bytes of memory with a value; @return The value after it. The result must be
     * the old value: 8 bytes in the order of the host, 4 bytes in that of the
     * network. */
    uint64_t atomic(unsigned opcode, unsigned size, uint64_t before,
                    uint64_t swap_add, uint64_t compare, uint64_t swap_mask,
                    uint64_t compare_mask)
    {
        b->put(64, before);
        a->put(0, 0);
        (**a)("masked", a->qp, opcode, size, a->addr, a->lkey, b->addr + 64,
              b->rkey, swap_add, compare, swap_mask, compare_mask);
        EXPECT_EQ((uint64_t)IBV_WC_SUCCESS, a->poll().status);
        EXPECT_EQ((size == 8) ? before : htobe32((uint32_t)before), a->get(0));
        return b->get(64);
    }
};

UCS_TEST_F(test_emu_masked, compare_and_swap) {
    static const uint64_t m8 = ~0ul, m4 = 0xfffffffful;

    EXPECT_EQ(7ul, atomic(op_cs, 8, 5, 7, 5, m8, m8));
    EXPECT_EQ(5ul, atomic(op_cs, 8, 5, 7, 6, m8, m8));
    /* Swap: nothing is compared */
    EXPECT_EQ(7ul, atomic(op_cs, 8, 5, 7, 6, m8, 0));
    /* Only some bits are compared, others are replaced */
    EXPECT_EQ(0x1122ul, atomic(op_cs, 8, 0x1100, 0xff22, 0x1133, 0xff, 0xff00));
    EXPECT_EQ(0x1200ul, atomic(op_cs, 8, 0x1200, 0xff22, 0x1133, 0xff, 0xff00));

    /* Four bytes do not change their neighbours */
    EXPECT_EQ(0xaaaaaaaa00000007ul,
              atomic(op_cs, 4, 0xaaaaaaaa00000005ul, 7, 5, m4, m4));
    EXPECT_EQ(0xaaaaaaaa00000005ul,
              atomic(op_cs, 4, 0xaaaaaaaa00000005ul, 7, 6, m4, m4));
    EXPECT_EQ(0xaaaaaaaa00000007ul,
              atomic(op_cs, 4, 0xaaaaaaaa00000005ul, 7, 6, m4, 0));
}

UCS_TEST_F(test_emu_masked, fetch_and_add) {
    EXPECT_EQ(12ul, atomic(op_fa, 8, 5, 7, 0, 0, 0));
    EXPECT_EQ(0ul, atomic(op_fa, 8, ~0ul, 1, 0, 0, 0));
    EXPECT_EQ(0xaaaaaaaa00000000ul,
              atomic(op_fa, 4, 0xaaaaaaaafffffffful, 1, 0, 0, 0));

    /* A field that ends at bit 7 carries nothing into bit 8 */
    EXPECT_EQ(0x100ul, atomic(op_fa, 8, 0x1ff, 1, 0x80, 0, 0));
    /* Every bit a field: exclusive or */
    EXPECT_EQ(0x0ff0ul, atomic(op_fa, 8, 0xff00, 0xf0f0, ~0ul, 0, 0));
    EXPECT_EQ(0xaaaaaaaa00000ff0ul,
              atomic(op_fa, 4, 0xaaaaaaaa0000ff00ul, 0xf0f0, 0xffffffff, 0, 0));
}

UCS_TEST_F(test_emu_masked, lost_response_does_not_repeat_it) {
    fault("ack op=faa drop");
    EXPECT_EQ(6ul, atomic(op_fa, 4, 5, 1, 0, 0, 0));
    EXPECT_EQ(1u, executed(1, "faa"));
    fault("ack op=cas drop");
    EXPECT_EQ(9ul, atomic(op_cs, 4, 5, 9, 0, ~0ul, 0));
    EXPECT_EQ(1u, executed(1, "cas"));
}

/* The check of the trace finds that a write was lost */
class test_emu_rc_sender : public test_emu_rc {
protected:
    bool has_trace() const override
    {
        return false;
    }
};

/* A packet names its destination only: what another queue pair of the peer's port sends is
 * executed if its PSN fits, and the peer's own packet is a duplicate then */
UCS_TEST_F(test_emu_rc_sender, is_not_compared) {
    emu::side c(fabric(), 0, 0), other(fabric(), 0, 1);

    other.connect(*b, 10, 1);
    other.write(*b, 1, 0, 8, 0);
    EXPECT_TRUE(other.completes(1, IBV_WC_RETRY_EXC_ERR)) << "another port";

    c.connect(*b, emu::patient_timeout);
    c.put(0, 7);
    EXPECT_TRUE(c.write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(7u, b->get(0));
    a->put(0, 8);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(7u, b->get(0)) << "lost, without an error";
}
