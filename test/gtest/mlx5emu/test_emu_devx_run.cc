/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * DEVX: the behavior of objects made by commands, with queues in the program's memory.
 */

#include "test_emu_devx.h"

#include <chrono>
#include <thread>

namespace emu {

void devx_side::create_qp(unsigned st)
{
    answer a = create(make_qp(st));

    EXPECT_EQ(0, a.error);
    qp  = a.object;
    qpn = a.num();
}

answer devx_side::to_init()
{
    return modify(qp, mailbox(EMU_QP_CMD_LEN, EMU_CMD_RST2INIT_QP, qpn)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_PORT, 1)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_RWE, 1)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_RRE, 1)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_RAE, 1));
}

answer devx_side::to_rtr(const devx_side &peer)
{
    return modify(qp, mailbox(EMU_QP_CMD_LEN, EMU_CMD_INIT2RTR_QP, qpn)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_PORT, 1)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_MTU, IBV_MTU_1024)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_ORDER_FORCE, strict)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_REMOTE_QPN,
                                   peer.qpn)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_RLID, peer.lid)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_NEXT_RCV_PSN,
                                   0xfffffe)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_LOG_RRA_MAX, 2)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_MIN_RNR_NAK, 1));
}

answer devx_side::to_rts(unsigned timeout)
{
    return modify(qp, mailbox(EMU_QP_CMD_LEN, EMU_CMD_RTR2RTS_QP, qpn)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_NEXT_SEND_PSN,
                                   0xfffffe)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_ACK_TIMEOUT, timeout)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_RETRY_COUNT, 3)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_RNR_RETRY, 7)
                              .set(EMU_QP_CMD_QPC, EMU_QPC_LOG_SRA_MAX, 2));
}

answer devx_side::query_qp()
{
    return query(qp, mailbox(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_QP, qpn),
                 EMU_QP_CMD_LEN);
}

void devx_side::post(uint8_t opcode, const devx_side &peer, uint64_t local,
                     uint32_t length, uint64_t remote, uint32_t rkey)
{
    struct {
        mlx5_wqe_ctrl_seg ctrl;
        union {
            struct {
                mlx5_wqe_raddr_seg raddr;
                mlx5_wqe_data_seg  data;
            } rdma;
            mlx5_wqe_data_seg send;
        };
    } wqe                  = {};
    const bool is_send     = (opcode == MLX5_OPCODE_SEND);
    mlx5_wqe_data_seg data = {};
    uint64_t first;
    uint32_t dbrec;

    wqe.ctrl.opmod_idx_opcode = htobe32(((uint32_t)m_pi << 8) | opcode);
    wqe.ctrl.qpn_ds           = htobe32((qpn << 8) | (is_send ? 2 : 3));
    wqe.ctrl.fm_ce_se         = MLX5_WQE_CTRL_CQ_UPDATE;
    data.byte_count           = htobe32(length);
    data.lkey                 = htobe32(lkey);
    data.addr                 = htobe64(addr + local);
    if (is_send) {
        wqe.send = data;
    } else {
        wqe.rdma.raddr.raddr = htobe64((rkey == peer.rkey) ?
                                       (peer.addr + remote) : remote);
        wqe.rdma.raddr.rkey  = htobe32(rkey);
        wqe.rdma.data        = data;
    }

    bytes(sq_offset + 64 * (m_pi & ((1u << log_sq) - 1)), &wqe, sizeof(wqe));
    dbrec = htobe32(++m_pi);
    bytes(dbr_offset + 128 + 4, &dbrec, sizeof(dbrec));
    memcpy(&first, &wqe.ctrl, sizeof(first));
    agent("devx_ring", uar, 0x800, be64toh(first));
}

void devx_side::clear_doorbell()
{
    const uint32_t dbrec = 0;

    bytes(dbr_offset + 128 + 4, &dbrec, sizeof(dbrec));
}

void devx_side::post_recv()
{
    const unsigned count = 1u << log_rmp;
    mlx5_wqe_data_seg data;
    uint16_t next;
    uint32_t dbrec;

    for (unsigned i = 0; i < count; ++i) {
        data.byte_count = htobe32(64);
        data.lkey       = htobe32(lkey);
        data.addr       = htobe64(addr + 32768 + 64 * i);
        next            = htobe16((i + 1) % count);
        bytes(rmp_offset + 32 * i + 2, &next, sizeof(next));
        bytes(rmp_offset + 32 * i + 16, &data, sizeof(data));
    }
    dbrec = htobe32(count);
    bytes(dbr_offset + 64, &dbrec, sizeof(dbrec));
}

bool devx_side::has_cqe()
{
    std::vector<uint8_t> raw = peek(cq_offset +
                                    64 * (m_ci & ((1u << m_log_cq) - 1)) + 63,
                                    1);

    return (raw[0] >> 4 != MLX5_CQE_INVALID) &&
           ((raw[0] & MLX5_CQE_OWNER_MASK) == ((m_ci >> m_log_cq) & 1));
}

cqe devx_side::poll()
{
    uint64_t offset = cq_offset + 64 * (m_ci & ((1u << m_log_cq) - 1));
    std::vector<uint8_t> raw;
    uint32_t word;
    cqe result;

    if (!rcv::wait_until([&] { return has_cqe(); })) {
        throw std::runtime_error("no completion came");
    }

    raw = peek(offset, 64);
    ++m_ci;
    result.opcode      = raw[63] >> 4;
    result.syndrome    = raw[55];
    result.wqe_counter = raw[60] * 256 + raw[61];
    memcpy(&word, &raw[56], sizeof(word));
    result.qpn         = be32toh(word) & 0xffffff;
    memcpy(&word, &raw[44], sizeof(word));
    result.byte_cnt    = be32toh(word);
    return result;
}

void devx_side::write_ci()
{
    uint32_t dbrec = htobe32(m_ci & 0xffffff);

    bytes(dbr_offset, &dbrec, sizeof(dbrec));
}

void devx_side::arm(bool solicited)
{
    uint64_t word = ((m_sn++ & 3) << 28) | (solicited ? (1u << 24) : 0) |
                    (m_ci & 0xffffff);

    agent("devx_ring", uar, 0x20, (word << 32) | cqn);
}

} /* namespace emu */


class test_emu_devx_run : public emu::test_emu {
protected:
    typedef emu::mailbox mailbox;

    void cleanup() override
    {
        a.reset();
        b.reset();
        emu::test_emu::cleanup();
    }

    void connect(unsigned log_cq_a = 4, unsigned log_cq_b = 4, bool strict = false,
                 unsigned timeout = 8)
    {
        a.reset(new emu::devx_side(fabric(), 0, log_cq_a));
        b.reset(new emu::devx_side(fabric(), 1, log_cq_b));
        b->strict = strict;
        a->create_qp();
        b->create_qp();
        for (auto *s : {a.get(), b.get()}) {
            ASSERT_EQ(0, s->to_init().error);
            ASSERT_EQ(0, s->to_rtr((s == a.get()) ? *b : *a).error);
            ASSERT_EQ(0, s->to_rts(timeout).error);
        }
    }

    void expect_cqe(emu::devx_side &s, unsigned opcode, unsigned counter,
                    unsigned syndrome = 0)
    {
        emu::cqe cqe = s.poll();

        EXPECT_EQ(opcode, cqe.opcode);
        EXPECT_EQ(counter, cqe.wqe_counter);
        EXPECT_EQ(s.qpn, cqe.qpn);
        if ((opcode == MLX5_CQE_REQ_ERR) || (opcode == MLX5_CQE_RESP_ERR)) {
            EXPECT_EQ(syndrome, cqe.syndrome);
        }
        s.write_ci();
    }

    uint64_t qpc(emu::devx_side &s, unsigned bit, unsigned num_bits)
    {
        return s.query_qp().get(EMU_QP_CMD_QPC, bit, num_bits);
    }

    /* Next event's cookie, or 0 */
    uint64_t event(emu::devx_side &s, uint64_t channel,
                   unsigned ms = emu::patience_ms)
    {
        emu::numbers_t n = s.agent("devx_event", channel, ms);

        return n.empty() ? 0 : n[0];
    }

    std::unique_ptr<emu::devx_side> a, b;
};

UCS_TEST_F(test_emu_devx_run, writes_and_reads) {
    connect();
    /* Round the queues twice */
    for (unsigned i = 0; i < 40; ++i) {
        a->put(0, 1000 + i);
        a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 64, b->rkey);
        expect_cqe(*a, MLX5_CQE_REQ, i);
        ASSERT_EQ(1000ul + i, b->get(64));
    }
    b->put(128, 77);
    a->post(MLX5_OPCODE_RDMA_READ, *b, 8, 8, 128, b->rkey);
    expect_cqe(*a, MLX5_CQE_REQ, 40);
    EXPECT_EQ(77ul, a->get(8));
    EXPECT_EQ(40u, executed(1, "write"));
}

/* Adaptive routing: a responder places what comes early, unless its queue pair is forced to
 * the specification's order; its context says which */
UCS_TEST_F(test_emu_devx_run, order_of_placement) {
    for (bool strict : {false, true}) {
        connect(4, 4, strict);
        EXPECT_EQ(0ul, qpc(*b, EMU_QPC_ORDER_0));
        EXPECT_EQ(strict ? 1ul : 0ul, qpc(*b, EMU_QPC_ORDER_FORCE));

        quirk("ooo:8:60s");
        EXPECT_EQ(strict ? 0ul : 1ul, qpc(*b, EMU_QPC_ORDER_0));
        EXPECT_EQ(0ul, qpc(*b, EMU_QPC_ORDER_1));
        for (unsigned i = 0; i < 12; ++i) {
            a->put(i * 8, i + 1);
            a->post(MLX5_OPCODE_RDMA_WRITE, *b, i * 8, 8, i * 8, b->rkey);
            for (unsigned j = 1; strict && (j < 12); ++j) {
                EXPECT_TRUE((b->get(j * 8) == 0) || (b->get((j - 1) * 8) != 0));
            }
        }
        for (unsigned i = 0; i < 12; ++i) {
            expect_cqe(*a, MLX5_CQE_REQ, i);
            EXPECT_EQ(i + 1ul, b->get(i * 8));
        }
        EXPECT_EQ(!strict, acted("ooo") > 0);
        EXPECT_EQ(strict, counter(1, 0, "sequence_errors") > 0);
        a.reset();
        b.reset();
        renew_fabric();
    }
}

/* A program takes back what it has posted in RESET: the NIC must not flush it later */
UCS_TEST_F(test_emu_devx_run, doorbell_in_reset_is_forgotten) {
    connect();
    ASSERT_EQ(0, a->to_state(EMU_CMD_2RST_QP).error);
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 64, b->rkey);
    a->clear_doorbell();
    EXPECT_EQ(1u, counter(0, 0, "doorbells_in_reset"));
    ASSERT_EQ(0, a->to_init().error);
    ASSERT_EQ(0, a->to_state(EMU_CMD_2ERR_QP).error);
    EXPECT_FALSE(a->has_cqe());

    /* In ERR each doorbell flushes what it covers */
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 64, b->rkey);
    expect_cqe(*a, MLX5_CQE_REQ_ERR, 0, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
}

UCS_TEST_F(test_emu_devx_run, messages_by_a_pool) {
    connect();
    b->post_recv();
    for (unsigned i = 0; i < 5; ++i) {
        a->put(0, 500 + i);
        a->post(MLX5_OPCODE_SEND, *b, 0, 8, 0, 0);
        expect_cqe(*a, MLX5_CQE_REQ, i);
        expect_cqe(*b, MLX5_CQE_RESP_SEND, i);
        EXPECT_EQ(500ul + i, b->get(32768 + 64 * i));
    }
}

UCS_TEST_F(test_emu_devx_run, key_of_a_window) {
    connect();
    emu::answer mkey = b->create(b->make_mkey());
    uint32_t key     = (mkey.num() << 8) | 0x77;

    ASSERT_EQ(0, mkey.error);
    a->put(0, 99);
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 0x1000 + 160, key);
    expect_cqe(*a, MLX5_CQE_REQ, 0);
    EXPECT_EQ(99ul, b->get(160));

    /* It has no right to be read */
    a->post(MLX5_OPCODE_RDMA_READ, *b, 0, 8, 0x1000, key);
    expect_cqe(*a, MLX5_CQE_REQ_ERR, 1,
               MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    b->destroy(mkey.object);
}

UCS_TEST_F(test_emu_devx_run, key_that_was_destroyed) {
    connect();
    emu::answer mkey = b->create(b->make_mkey());

    b->destroy(mkey.object);
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 0x1000,
            (mkey.num() << 8) | 0x77);
    expect_cqe(*a, MLX5_CQE_REQ_ERR, 0,
               MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
}

UCS_TEST_F(test_emu_devx_run, expected_psn) {
    connect();
    EXPECT_EQ(0xfffffeul, qpc(*b, EMU_QPC_NEXT_RCV_PSN));
    EXPECT_EQ(0xfffffeul, qpc(*a, EMU_QPC_NEXT_SEND_PSN));
    /* 3 packets: the sequence wraps */
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 3000, 0, b->rkey);
    expect_cqe(*a, MLX5_CQE_REQ, 0);
    EXPECT_EQ(1ul, qpc(*b, EMU_QPC_NEXT_RCV_PSN));
    EXPECT_EQ(1ul, qpc(*a, EMU_QPC_NEXT_SEND_PSN));
    EXPECT_EQ(1ul, qpc(*a, EMU_QPC_HW_SQ_COUNTER));

    /* Nothing arrives: the requester's PSN advances, the responder's does not */
    fabric().link(0, 0, "silent");
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 2000, 0, b->rkey);
    EXPECT_EQ(1ul, qpc(*b, EMU_QPC_NEXT_RCV_PSN));
    EXPECT_EQ(3ul, qpc(*a, EMU_QPC_NEXT_SEND_PSN));
    expect_cqe(*a, MLX5_CQE_REQ_ERR, 1,
               MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    /* In ERR it also returns the expected PSN */
    EXPECT_EQ(0, b->to_state(EMU_CMD_2ERR_QP).error);
    EXPECT_EQ(1ul, qpc(*b, EMU_QPC_NEXT_RCV_PSN));
}

UCS_TEST_F(test_emu_devx_run, executed_unacknowledged_shows_in_the_psn) {
    connect();
    fault("exec op=write nth=2 silent");
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 0, b->rkey);
    expect_cqe(*a, MLX5_CQE_REQ, 0);
    EXPECT_EQ(0xfffffful, qpc(*b, EMU_QPC_NEXT_RCV_PSN));
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 0, b->rkey);
    expect_cqe(*a, MLX5_CQE_REQ_ERR, 1,
               MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    EXPECT_EQ(0ul, qpc(*b, EMU_QPC_NEXT_RCV_PSN));
}

/* A queue pair of verbs returns the same by its command and by verbs */
UCS_TEST_F(test_emu_devx_run, expected_psn_of_a_verbs_qp) {
    emu::devx_side s(fabric(), 1);
    emu::numbers_t n, v;
    emu::answer answer;
    std::string query;
    uint64_t cq, vqp;

    cq  = s.agent("cq", s.ctx, 16, 0).at(0);
    n   = s.agent("qp", s.ctx, (int)IBV_QPT_RC, cq, -1, 1);
    vqp = n.at(0);
    a.reset(new emu::devx_side(fabric(), 0));
    a->create_qp();
    s.qpn = n.at(1);
    ASSERT_EQ(0, a->to_init().error);
    ASSERT_EQ(0, a->to_rtr(s).error);
    ASSERT_EQ(0, a->to_rts().error);
    s.agent("connect", vqp, a->qpn, a->lid, 8, 3, 7); /* PSN 0xfffff0 */
    query  = "devx_qp_query " + std::to_string(vqp) + " " +
             std::to_string(EMU_QP_CMD_LEN) + " ";
    answer = s.ask(query + mailbox(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_QP,
                                   s.qpn).hex());
    EXPECT_EQ(0, answer.error);
    EXPECT_EQ(0xfffff0ul, answer.get(EMU_QP_CMD_QPC, EMU_QPC_NEXT_RCV_PSN));

    /* A peer with another first PSN starts from there */
    s.agent("state", vqp, (int)IBV_QPS_RESET);
    s.agent("connect", vqp, a->qpn, a->lid, 8, 3, 7);
    ASSERT_EQ(0, a->to_state(EMU_CMD_2RST_QP).error);
    ASSERT_EQ(0, a->to_init().error);
    ASSERT_EQ(0, a->to_rtr(s).error);
    ASSERT_EQ(0, a->modify(a->qp, mailbox(EMU_QP_CMD_LEN, EMU_CMD_RTR2RTS_QP,
                                          a->qpn)
                           .set(EMU_QP_CMD_QPC, EMU_QPC_NEXT_SEND_PSN, 0xfffff0)
                           .set(EMU_QP_CMD_QPC, EMU_QPC_ACK_TIMEOUT, 8)
                           .set(EMU_QP_CMD_QPC, EMU_QPC_RETRY_COUNT, 3)).error);
    for (unsigned i = 0; i < 3; ++i) {
        a->post(MLX5_OPCODE_RDMA_WRITE, s, 0, 6000, 0, s.rkey);
        expect_cqe(*a, MLX5_CQE_REQ, i);
        v      = s.agent("query", vqp);
        answer = s.ask(query + mailbox(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_QP,
                                       s.qpn).hex());
        EXPECT_EQ((0xfffff0ul + 6 * (i + 1)) & 0xffffff, v.at(1));
        EXPECT_EQ(v.at(1), answer.get(EMU_QP_CMD_QPC, EMU_QPC_NEXT_RCV_PSN));
    }

    /* Wrong numbers and kinds */
    EXPECT_EQ(EINVAL, s.ask(query + mailbox(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_QP,
                                            s.qpn + 1).hex()).error);
    EXPECT_EQ(EINVAL, s.ask(query + mailbox(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_DCT,
                                            s.qpn).hex()).error);

    /* It also accepts modifications */
    answer = s.ask("devx_qp_modify " + std::to_string(vqp) + " 16 " +
                   mailbox(EMU_CMD_MIN_LEN, EMU_CMD_2ERR_QP, s.qpn).hex());
    EXPECT_EQ(0, answer.error);
    EXPECT_EQ((uint64_t)IBV_QPS_ERR, s.agent("query", vqp).at(0));
}

UCS_TEST_F(test_emu_devx_run, completion_events) {
    connect();
    uint64_t channel = a->agent("devx_channel", a->ctx).at(0);

    a->agent("devx_subscribe", channel, a->cq, 0, 4711);
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 0, b->rkey);
    EXPECT_EQ(0ul, event(*a, channel, 50));   /* not armed */
    expect_cqe(*a, MLX5_CQE_REQ, 0);
    a->arm();
    EXPECT_EQ(0ul, event(*a, channel, 50));
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 0, b->rkey);
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 0, b->rkey);
    EXPECT_EQ(4711ul, event(*a, channel));
    EXPECT_EQ(0ul, event(*a, channel, 50));   /* one for each arming */
    a->arm();                                 /* there are some already */
    EXPECT_EQ(4711ul, event(*a, channel));
    expect_cqe(*a, MLX5_CQE_REQ, 1);
    expect_cqe(*a, MLX5_CQE_REQ, 2);

    /* An event from before its queue was destroyed is dropped, and a number that was
     * reused gets none of them */
    a->arm();
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 0, b->rkey);
    b->agent("devx_ring", b->uar, 0x20, a->cqn);
    a->destroy(a->qp);
    a->destroy(a->cq);
}

UCS_TEST_F(test_emu_devx_run, overrun) {
    connect(1);    /* two entries */
    uint64_t channel = a->agent("devx_channel", a->ctx).at(0);
    mailbox query(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_CQ, a->cqn);

    a->agent("devx_subscribe", channel, a->cq, EMU_DEVX_EVENT_CQ_ERROR, 1);
    a->agent("devx_subscribe", channel, a->qp, EMU_DEVX_EVENT_WQ_CATAS, 2);
    for (unsigned i = 0; i < 2; ++i) {
        a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 0, b->rkey);
    }
    EXPECT_EQ(0ul, event(*a, channel, 0));
    EXPECT_EQ((uint64_t)EMU_QPC_STATE_RTS, qpc(*a, EMU_QPC_STATE));
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 0, b->rkey);
    EXPECT_EQ(1ul, event(*a, channel));
    EXPECT_EQ(2ul, event(*a, channel));
    EXPECT_EQ((uint64_t)EMU_QPC_STATE_ERR, qpc(*a, EMU_QPC_STATE));
    EXPECT_EQ((uint64_t)EMU_CQC_STATUS_OVERFLOW,
              a->query(a->cq, query, EMU_CQ_CMD_LEN)
              .get(EMU_CQ_CMD_CQC, EMU_CQC_STATUS));
    /* The unread entries are still there */
    expect_cqe(*a, MLX5_CQE_REQ, 0);
    expect_cqe(*a, MLX5_CQE_REQ, 1);
    EXPECT_FALSE(a->has_cqe());
}

/* A program posts more than its send queue has room for: what it has overwritten is not
 * executed in place of what was there */
UCS_TEST_F(test_emu_devx_run, overrun_of_the_send_queue) {
    const unsigned num = 1u << emu::devx_side::log_sq;

    connect(6);
    for (unsigned i = 0; i <= num; ++i) {
        a->post(MLX5_OPCODE_SEND, *b, 0, 8, 0, b->rkey); /* There is no receive entry */
    }
    expect_cqe(*a, MLX5_CQE_REQ_ERR, 0, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    for (unsigned i = 1; i <= num; ++i) {
        expect_cqe(*a, MLX5_CQE_REQ_ERR, i, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    EXPECT_FALSE(a->has_cqe());
}

/* The data of a read have as much room as it had when it was begun, whatever the program
 * makes of its entry meanwhile */
UCS_TEST_F(test_emu_devx_run, read_is_replaced) {
    const uint64_t data = emu::devx_side::umem_offset + emu::devx_side::sq_offset + 32;

    connect(4, 4, false, emu::patient_timeout);
    fault("ack op=read delay=until:down=0:1");
    a->post(MLX5_OPCODE_RDMA_READ, *b, 0, 256, 0, b->rkey);
    a->put(data, htobe64((8ul << 32) | a->lkey));
    fabric().link(0, 1, "down");
    expect_cqe(*a, MLX5_CQE_REQ_ERR, 0, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}

UCS_TEST_F(test_emu_devx_run, killed_with_queues_in_its_memory) {
    connect();
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 0, b->rkey);
    expect_cqe(*a, MLX5_CQE_REQ, 0);
    b->agent.kill();
    a->post(MLX5_OPCODE_RDMA_WRITE, *b, 0, 8, 0, b->rkey);
    expect_cqe(*a, MLX5_CQE_REQ_ERR, 1,
               MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
}

/* UCX also works without DEVX objects: if it is configured to make none, and if there
 * are none */
class test_emu_devx_ucx : public emu::test_emu {
protected:
    static std::string link()
    {
        return "mlx5_0:1";
    }

    void perftest(const char *tl, const rcv::args_t &env)
    {
        rcv::args_t args = {"stdbuf", "-oL", "ucx_perftest", "-p",
                            std::to_string(21000 + getpid() % 20000), "-x", tl,
                            "-d", link(), "-t", "am_lat", "-n", "100", "-w",
                            "10"};
        rcv::process_ptr server = fabric().start(0, args, env);

        ASSERT_TRUE(server->wait_for("Waiting for connection"))
                << server->output();
        args.push_back("localhost");
        rcv::process_ptr client = fabric().start(1, args, env);

        EXPECT_EQ(0, client->wait()) << client->output();
        EXPECT_EQ(0, server->wait()) << server->output();
        EXPECT_GE(executed(0, "send"), 100u);
    }
};

UCS_TEST_F(test_emu_devx_ucx, rc_without_objects) {
    perftest("rc_mlx5", {"UCX_IB_MLX5_DEVX_OBJECTS="});
}

UCS_TEST_F(test_emu_devx_ucx, dc_without_objects) {
    perftest("dc_mlx5", {"UCX_IB_MLX5_DEVX_OBJECTS="});
}

class test_emu_no_devx : public test_emu_devx_ucx {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--no-devx"};
    }
};

UCS_TEST_F(test_emu_no_devx, rc) {
    perftest("rc_mlx5", {});
}

UCS_TEST_F(test_emu_no_devx, dc) {
    perftest("dc_mlx5", {});
}

UCS_TEST_F(test_emu_no_devx, devices_refuse_to_be_opened_for_it) {
    emu::agent agent(fabric(), 0);

    EXPECT_THROW(agent("devx_open", 0), emu::agent_error);

    /* Others have nothing of it either */
    uint64_t plain = agent("open", 0).at(0);
    EXPECT_THROW(agent("devx_uar", plain), emu::agent_error);
    EXPECT_THROW(agent("devx_eqn", plain, 0), emu::agent_error);
}
