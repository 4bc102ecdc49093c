/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * DEVX: answers to valid and invalid commands. test_emu_devx_run.cc tests the behavior
 * of the objects.
 */

#include "test_emu_devx.h"

#include <errno.h>

class test_emu_devx : public emu::test_emu {
protected:
    typedef emu::mailbox mailbox;

    void init() override
    {
        emu::test_emu::init();
        s.reset(new emu::devx_side(fabric(), 0));
    }

    void cleanup() override
    {
        s.reset();
        emu::test_emu::cleanup();
    }

    /* The device refuses a command, with this status, and nothing else */
    void expect_status(unsigned status, const emu::answer &answer)
    {
        EXPECT_EQ(EREMOTEIO, answer.error);
        EXPECT_EQ(status, answer.status());
        EXPECT_NE(0ul, answer.get(0, EMU_CMD_SYNDROME));
        EXPECT_EQ(0u, answer.num());
    }

    void expect_create(unsigned status, const mailbox &in)
    {
        emu::answer answer = s->create(in);

        expect_status(status, answer);
        EXPECT_EQ(UINT64_MAX, answer.object);
    }

    /* A field with a value that makes a command wrong, and the answer */
    struct wrong {
        unsigned status;
        unsigned bit;
        unsigned num_bits;
        uint64_t value;
    };

    /* The fields are in the part that begins at byte base */
    void expect_refused(const mailbox &right, size_t base,
                        std::initializer_list<wrong> wrongs)
    {
        for (const wrong &w : wrongs) {
            SCOPED_TRACE("bit " + std::to_string(w.bit) + " = " +
                         std::to_string(w.value));
            expect_create(w.status, mailbox(right).set(base, w.bit, w.num_bits,
                                                       w.value));
        }
    }

    /* Shorter commands are refused; of longer ones the known part is read */
    void check_lengths(const mailbox &right)
    {
        emu::answer answer;

        for (size_t size : {right.size() - 1, right.size() - 4, (size_t)64,
                            (size_t)EMU_CMD_MIN_LEN}) {
            if (size < right.size()) {
                expect_create(EMU_CMD_ST_BAD_INP_LEN,
                              mailbox(right).resize(size));
            }
        }
        for (size_t size : {0, 1, 2, EMU_CMD_MIN_LEN - 1}) {
            EXPECT_EQ(EINVAL, s->create(mailbox(right).resize(size)).error);
            EXPECT_EQ(EINVAL, s->create(right, size).error);
        }
        answer = s->create(mailbox(right).resize(right.size() + 4000), 4096);
        EXPECT_EQ(0, answer.error);
        s->destroy(answer.object);
    }

    std::unique_ptr<emu::devx_side> s;
};

UCS_TEST_F(test_emu_devx, calls_without_handles) {
    for (uint64_t error : s->agent("devx_nulls", s->ctx)) {
        EXPECT_EQ((uint64_t)EINVAL, error);
    }
    EXPECT_EQ(1ul, s->agent("devx_eqn", s->ctx, 0).at(0));
    EXPECT_THROW(s->agent("devx_eqn", s->ctx, 1 << 20), emu::agent_error);
}

UCS_TEST_F(test_emu_devx, opcodes_that_no_call_takes) {
    /* 0: none; destroy comes by the object; vendor's; a query of nothing */
    for (unsigned opcode : {0x000, 0x001, 0x401, 0x501, 0x711, 0x90e, 0xb00,
                            0xffff}) {
        mailbox in(EMU_QP_CMD_LEN, opcode, s->cqn);

        EXPECT_EQ(EINVAL, s->general(in, 4096).error) << opcode;
        EXPECT_EQ(EINVAL, s->create(in).error) << opcode;
        EXPECT_EQ(EINVAL, s->modify(s->cq, in).error) << opcode;
        EXPECT_EQ(EINVAL, s->query(s->cq, in, 4096).error) << opcode;
    }

    /* Known ones with the wrong call */
    EXPECT_EQ(EINVAL, s->general(s->make_cq(4), 4096).error);
    EXPECT_EQ(EINVAL, s->create(mailbox(EMU_CMD_MIN_LEN,
                                        EMU_CMD_QUERY_HCA_CAP)).error);
    EXPECT_EQ(EINVAL, s->modify(s->cq, mailbox(EMU_CMD_MIN_LEN,
                                               EMU_CMD_QUERY_CQ,
                                               s->cqn)).error);
}

UCS_TEST_F(test_emu_devx, capabilities) {
    mailbox general(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_HCA_CAP);
    mailbox atomic(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_HCA_CAP);
    mailbox second(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_HCA_CAP);
    mailbox other(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_HCA_CAP);
    const size_t size = EMU_CAP_OUT_OFFSET + EMU_CAP_SIZE;
    emu::answer answer;

    answer = s->general(general, size);
    EXPECT_EQ(0, answer.error);
    EXPECT_EQ(1ul, answer.get(EMU_CAP_OUT_OFFSET, EMU_CAP_DCT));
    EXPECT_EQ(20ul, answer.get(EMU_CAP_OUT_OFFSET, EMU_CAP_LOG_MAX_CQ_SZ));
    answer = s->general(atomic.set(0, EMU_CMD_OP_MOD,
                                   EMU_CAP_TYPE_ATOMIC << 1), size);
    EXPECT_EQ(0, answer.error);
    EXPECT_EQ(12ul, answer.get(EMU_CAP_OUT_OFFSET, EMU_ATOMIC_SIZE_QP));
    answer = s->general(second.set(0, EMU_CMD_OP_MOD, EMU_CAP_TYPE_GENERAL_2 << 1), size);
    EXPECT_EQ(1ul, answer.get(EMU_CAP_OUT_OFFSET, EMU_CAP_2_ORDER_FORCE));

    expect_status(EMU_CMD_ST_BAD_OUTP_LEN, s->general(general, size - 1));
    expect_status(EMU_CMD_ST_BAD_PARAM,
                  s->general(other.set(0, EMU_CMD_OP_MOD, 0xfffe), size));
    answer = s->general(mailbox(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_LAG), 64);
    EXPECT_EQ(0, answer.error);
}

UCS_TEST_F(test_emu_devx, lengths_of_mailboxes) {
    check_lengths(s->make_cq(4));
    check_lengths(s->make_rmp());
    check_lengths(s->make_qp());
    check_lengths(s->make_qp(EMU_QPC_ST_DCI));
    check_lengths(s->make_dct());
    check_lengths(s->make_mkey());
}

UCS_TEST_F(test_emu_devx, cq) {
    const size_t cqc = EMU_CQ_CMD_CQC;
    mailbox right    = s->make_cq(4);
    mailbox query(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_CQ, s->cqn);
    emu::answer answer;

    /* Outside of the umem, even by a wrap, in another one, or nowhere */
    expect_refused(right, cqc, {
        {EMU_CMD_ST_BAD_RES, EMU_CQC_LOG_SIZE, 15},
        {EMU_CMD_ST_BAD_RES, EMU_CQC_LOG_SIZE, 31}
    });
    expect_refused(right, 0, {
        {EMU_CMD_ST_BAD_RES, EMU_CQ_CMD_UMEM_OFFSET, -64ul},
        {EMU_CMD_ST_BAD_RES, EMU_CQ_CMD_UMEM_ID, 0}
    });
    expect_refused(right, cqc, {
        {EMU_CMD_ST_BAD_RES, EMU_CQC_DBR_UMEM_ID, 0xffffffff},
        {EMU_CMD_ST_BAD_RES, EMU_CQC_DBR_ADDR, emu::devx_side::umem_size - 4}
    });
    /* Other objects */
    expect_refused(right, cqc, {
        {EMU_CMD_ST_BAD_RES, EMU_CQC_UAR_PAGE, 0xffffff},
        {EMU_CMD_ST_BAD_RES, EMU_CQC_EQN, 0},
        {EMU_CMD_ST_BAD_RES, EMU_CQC_EQN, 255}
    });
    /* Missing objects, and unsupported features */
    expect_refused(right, cqc, {
        {EMU_CMD_ST_BAD_PARAM, EMU_CQC_CQE_SZ, 7},
        {EMU_CMD_ST_BAD_PARAM, EMU_CQC_COMPRESS, 1},
        {EMU_CMD_ST_BAD_PARAM, EMU_CQC_COLLAPSED, 1}
    });
    expect_create(EMU_CMD_ST_BAD_PARAM, mailbox(right).set(0,
                  EMU_CQ_CMD_UMEM_OFFSET, 32));
    expect_create(EMU_CMD_ST_BAD_PARAM, mailbox(right).set(cqc,
                  EMU_CQC_DBR_ADDR, emu::devx_side::dbr_offset + 4));

    answer = s->query(s->cq, query, EMU_CQ_CMD_LEN);
    EXPECT_EQ(0, answer.error);
    EXPECT_EQ(4ul, answer.get(cqc, EMU_CQC_LOG_SIZE));
    EXPECT_EQ(0ul, answer.get(cqc, EMU_CQC_STATUS));
    EXPECT_EQ(0ul, answer.get(cqc, EMU_CQC_PRODUCER));
    expect_status(EMU_CMD_ST_BAD_OUTP_LEN,
                  s->query(s->cq, query, EMU_CQ_CMD_LEN - 1));

    /* Not while a queue pair uses it */
    s->create_qp();
    EXPECT_THROW(s->destroy(s->cq), emu::agent_error);
    s->destroy(s->qp);
    s->destroy(s->cq);
    expect_create(EMU_CMD_ST_BAD_RES, s->make_qp());
}

UCS_TEST_F(test_emu_devx, rmp) {
    const size_t rmpc = EMU_RMP_CMD_RMPC;
    mailbox right     = s->make_rmp();
    mailbox query(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_RMP, s->rmpn);
    emu::answer answer;

    expect_refused(right, rmpc, {
        {EMU_CMD_ST_BAD_PARAM, EMU_RMPC_STATE, 0},
        {EMU_CMD_ST_BAD_PARAM, EMU_RMPC_WQ_TYPE, 2},
        {EMU_CMD_ST_BAD_PARAM, EMU_RMPC_WQ_SIGNATURE, 1},
        {EMU_CMD_ST_BAD_PARAM, EMU_RMPC_LOG_STRIDE, 4},
        {EMU_CMD_ST_BAD_PARAM, EMU_RMPC_LOG_STRIDE, 10}
    });
    expect_create(EMU_CMD_ST_BAD_RES,
                  mailbox(right).set(rmpc, EMU_RMPC_LOG_STRIDE, 15)
                          .set(rmpc, EMU_RMPC_LOG_SIZE, 31));
    expect_refused(right, rmpc, {
        {EMU_CMD_ST_BAD_RES, EMU_RMPC_PD, 0xffffff},
        {EMU_CMD_ST_BAD_RES, EMU_RMPC_WQ_UMEM_ID, 0xabcdef},
        {EMU_CMD_ST_BAD_RES, EMU_RMPC_DBR_ADDR, -1ul},
        {EMU_CMD_ST_BAD_PARAM, EMU_RMPC_DBR_ADDR, emu::devx_side::dbr_offset + 1}
    });

    for (bool cyclic : {false, true}) {
        answer = s->create(s->make_rmp(cyclic));
        EXPECT_EQ(0, answer.error);
        query  = mailbox(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_RMP, answer.num());
        answer = s->query(answer.object, query, EMU_RMP_CMD_LEN);
        EXPECT_EQ(0, answer.error);
        EXPECT_EQ((uint64_t)emu::devx_side::log_rmp,
                  answer.get(rmpc, EMU_RMPC_LOG_SIZE));
        EXPECT_EQ(cyclic ? (uint64_t)EMU_RMPC_WQ_CYCLIC : EMU_RMPC_WQ_LIST,
                  answer.get(rmpc, EMU_RMPC_WQ_TYPE));
        expect_status(EMU_CMD_ST_BAD_OUTP_LEN,
                      s->query(answer.object, query, EMU_RMP_CMD_LEN - 1));
        s->destroy(answer.object);
    }
}

UCS_TEST_F(test_emu_devx, qp) {
    const size_t qpc = EMU_QP_CMD_QPC;
    mailbox right    = s->make_qp();

    for (unsigned st : {0x1, 0x2, 0x3, 0x4, 0x6, 0xff}) {
        expect_create(EMU_CMD_ST_BAD_PARAM, s->make_qp(st));
    }
    expect_refused(right, qpc, {
        {EMU_CMD_ST_BAD_RES, EMU_QPC_PD, 0xffffff},
        {EMU_CMD_ST_BAD_RES, EMU_QPC_PD, s->pdn + 1},
        {EMU_CMD_ST_BAD_RES, EMU_QPC_CQN_SND, s->cqn + 1},
        {EMU_CMD_ST_BAD_RES, EMU_QPC_CQN_RCV, 0xffffff},
        {EMU_CMD_ST_BAD_RES, EMU_QPC_SRQN, s->rmpn + 1},
        {EMU_CMD_ST_BAD_RES, EMU_QPC_UAR_PAGE, 2}
    });
    expect_create(EMU_CMD_ST_BAD_RES,
                  mailbox(right).set(0, EMU_QP_CMD_WQ_UMEM_ID, 0));
    expect_create(EMU_CMD_ST_BAD_RES,
                  mailbox(right).set(qpc, EMU_QPC_LOG_SQ_SIZE, 15));
    expect_create(EMU_CMD_ST_BAD_RES,
                  mailbox(right).set(0, EMU_QP_CMD_WQ_UMEM_OFFSET, -1ul));
    expect_refused(right, qpc, {
        {EMU_CMD_ST_BAD_RES, EMU_QPC_DBR_ADDR, -8ul},
        {EMU_CMD_ST_BAD_PARAM, EMU_QPC_RQ_TYPE, 2},
        {EMU_CMD_ST_BAD_PARAM, EMU_QPC_NO_SQ, 1}
    });
    expect_create(EMU_CMD_ST_BAD_PARAM,
                  mailbox(right).set(0, EMU_QP_CMD_WQ_UMEM_OFFSET, 16));
    /* Its own receive queue of 2^15 entries of 2 KB is not in the umem */
    expect_create(EMU_CMD_ST_BAD_RES,
                  mailbox(right).set(qpc, EMU_QPC_RQ_TYPE,
                                     EMU_QPC_RQ_TYPE_REGULAR)
                          .set(qpc, EMU_QPC_LOG_RQ_SIZE, 15)
                          .set(qpc, EMU_QPC_LOG_RQ_STRIDE, 7));
}

UCS_TEST_F(test_emu_devx, transitions_of_a_qp) {
    emu::devx_side &t = *s;
    emu::answer answer;

    t.create_qp();
    answer = t.query_qp();
    EXPECT_EQ((uint64_t)EMU_QPC_STATE_RST,
              answer.get(EMU_QP_CMD_QPC, EMU_QPC_STATE));
    EXPECT_EQ(0x123456ul, answer.get(EMU_QP_CMD_QPC, EMU_QPC_USER_INDEX));
    EXPECT_EQ(t.rmpn, answer.get(EMU_QP_CMD_QPC, EMU_QPC_SRQN));

    /* Only the first is possible; nothing may change */
    for (unsigned opcode : {EMU_CMD_INIT2INIT_QP, EMU_CMD_INIT2RTR_QP,
                            EMU_CMD_RTR2RTS_QP, EMU_CMD_RTS2RTS_QP}) {
        expect_status(EMU_CMD_ST_BAD_QP_STATE,
                      t.modify(t.qp, mailbox(EMU_QP_CMD_LEN, opcode, t.qpn)));
    }
    expect_status(EMU_CMD_ST_BAD_INP_LEN,
                  t.modify(t.qp, mailbox(EMU_QP_CMD_LEN - 1,
                                         EMU_CMD_RST2INIT_QP, t.qpn)));
    /* Another's number, an object of another kind */
    EXPECT_EQ(EINVAL, t.modify(t.qp, mailbox(EMU_QP_CMD_LEN,
                                             EMU_CMD_RST2INIT_QP,
                                             t.qpn + 1)).error);
    EXPECT_EQ(EINVAL, t.modify(t.cq, mailbox(EMU_QP_CMD_LEN,
                                             EMU_CMD_RST2INIT_QP,
                                             t.cqn)).error);
    /* A port that does not exist */
    expect_status(EMU_CMD_ST_BAD_PARAM,
                  t.modify(t.qp, mailbox(EMU_QP_CMD_LEN, EMU_CMD_RST2INIT_QP,
                                         t.qpn)
                                 .set(EMU_QP_CMD_QPC, EMU_QPC_PORT, 9)));
    EXPECT_EQ(0, t.to_init().error);
    /* An invalid MTU */
    expect_status(EMU_CMD_ST_BAD_PARAM,
                  t.modify(t.qp, mailbox(EMU_QP_CMD_LEN, EMU_CMD_INIT2RTR_QP,
                                         t.qpn)
                                 .set(EMU_QP_CMD_QPC, EMU_QPC_MTU, 7)));
    EXPECT_EQ(0, t.to_rtr(t).error);
    expect_status(EMU_CMD_ST_BAD_QP_STATE, t.to_init());
    EXPECT_EQ(0, t.to_rts().error);
    EXPECT_EQ((uint64_t)EMU_QPC_STATE_RTS,
              t.query_qp().get(EMU_QP_CMD_QPC, EMU_QPC_STATE));
    EXPECT_EQ(0, t.to_state(EMU_CMD_2ERR_QP).error);
    EXPECT_EQ((uint64_t)EMU_QPC_STATE_ERR,
              t.query_qp().get(EMU_QP_CMD_QPC, EMU_QPC_STATE));
    expect_status(EMU_CMD_ST_BAD_QP_STATE, t.to_rts());
    EXPECT_EQ(0, t.to_state(EMU_CMD_2RST_QP).error);
    EXPECT_EQ((uint64_t)EMU_QPC_STATE_RST,
              t.query_qp().get(EMU_QP_CMD_QPC, EMU_QPC_STATE));
    expect_status(EMU_CMD_ST_BAD_OUTP_LEN,
                  t.query(t.qp, mailbox(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_QP,
                                        t.qpn), EMU_QP_CMD_LEN - 1));
}

UCS_TEST_F(test_emu_devx, dct) {
    const size_t dctc = EMU_DCT_CMD_DCTC;
    mailbox right     = s->make_dct();
    emu::answer dct, answer;

    expect_refused(right, dctc, {
        {EMU_CMD_ST_BAD_RES, EMU_DCTC_PD, 0xffffff},
        {EMU_CMD_ST_BAD_RES, EMU_DCTC_CQN, s->cqn + 1},
        {EMU_CMD_ST_BAD_RES, EMU_DCTC_SRQN, 0},
        {EMU_CMD_ST_BAD_PARAM, EMU_DCTC_MTU, 0},
        {EMU_CMD_ST_BAD_PARAM, EMU_DCTC_PORT, 2},
        {EMU_CMD_ST_BAD_PARAM, EMU_DCTC_OFFLOAD_TYPE, 1}
    });

    dct = s->create(right);
    ASSERT_EQ(0, dct.error);
    mailbox query(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_DCT, dct.num());
    mailbox drain(EMU_CMD_MIN_LEN, EMU_CMD_DRAIN_DCT, dct.num());

    answer = s->query(dct.object, query, EMU_DCT_CMD_LEN);
    EXPECT_EQ(0, answer.error);
    EXPECT_EQ((uint64_t)EMU_DCTC_STATE_ACTIVE,
              answer.get(dctc, EMU_DCTC_STATE));
    EXPECT_EQ(1ul, answer.get(dctc, EMU_DCTC_RWE));
    EXPECT_EQ(0ul, answer.get(dctc, EMU_DCTC_RRE));
    EXPECT_EQ(0ul, answer.get(dctc, EMU_DCTC_ORDER_FORCE));
    EXPECT_EQ(0ul, answer.get(dctc, EMU_DCTC_ORDER_0));
    fabric().command("quirk", {"add", "ooo"});
    answer = s->query(dct.object, query, EMU_DCT_CMD_LEN);
    EXPECT_EQ(1ul, answer.get(dctc, EMU_DCTC_ORDER_0));
    emu::answer strict = s->create(mailbox(right).set(dctc, EMU_DCTC_ORDER_FORCE, 1));
    answer = s->query(strict.object, mailbox(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_DCT,
                                             strict.num()), EMU_DCT_CMD_LEN);
    EXPECT_EQ(1ul, answer.get(dctc, EMU_DCTC_ORDER_FORCE));
    EXPECT_EQ(0ul, answer.get(dctc, EMU_DCTC_ORDER_0));
    s->destroy(strict.object);
    expect_status(EMU_CMD_ST_BAD_OUTP_LEN,
                  s->query(dct.object, query, EMU_DCT_CMD_LEN - 1));
    /* A queue pair's command */
    EXPECT_EQ(EINVAL, s->modify(dct.object,
                                mailbox(EMU_QP_CMD_LEN, EMU_CMD_2ERR_QP,
                                        dct.num())).error);
    EXPECT_EQ(0, s->modify(dct.object, drain).error);
    EXPECT_EQ((uint64_t)EMU_DCTC_STATE_DRAINED,
              s->query(dct.object, query, EMU_DCT_CMD_LEN)
              .get(dctc, EMU_DCTC_STATE));
    s->destroy(dct.object);
}

UCS_TEST_F(test_emu_devx, mkey) {
    const size_t mkc = EMU_MKEY_CMD_MKC;
    mailbox right    = s->make_mkey();

    for (unsigned mode : {0, 1, 2}) {
        expect_create(EMU_CMD_ST_BAD_PARAM,
                      mailbox(right).set(mkc, EMU_MKC_MODE_1_0, mode));
    }
    expect_refused(right, mkc, {
        {EMU_CMD_ST_BAD_PARAM, EMU_MKC_FREE, 1},
        {EMU_CMD_ST_BAD_PARAM, EMU_MKC_LENGTH64, 1},
        {EMU_CMD_ST_BAD_PARAM, EMU_MKC_LEN, 4097},
        {EMU_CMD_ST_BAD_PARAM, EMU_MKC_START_ADDR, -4095ul}
    });
    expect_refused(right, EMU_MKEY_CMD_KLM, {
        {EMU_CMD_ST_BAD_PARAM, EMU_KLM_MKEY, s->lkey ^ 1},
        {EMU_CMD_ST_BAD_PARAM, EMU_KLM_MKEY, 0xffffffff}
    });
    expect_create(EMU_CMD_ST_BAD_RES,
                  mailbox(right).set(mkc, EMU_MKC_PD, 0xffffff));
    /* More entries than the mailbox has */
    for (uint64_t count : {0ul, 2ul, 0x10000000ul, 0xfffffffful}) {
        expect_create(EMU_CMD_ST_BAD_INP_LEN,
                      mailbox(right).set(0, EMU_MKEY_CMD_COUNT, count));
    }
    /* Two that don't follow each other */
    expect_create(EMU_CMD_ST_BAD_PARAM,
                  mailbox(right).resize(EMU_MKEY_CMD_KLM + 2 * EMU_KLM_LEN)
                          .set(0, EMU_MKEY_CMD_COUNT, 2));

    emu::answer answer = s->create(right);
    EXPECT_EQ(0, answer.error);
    /* No command modifies or queries it */
    EXPECT_EQ(EINVAL, s->modify(answer.object,
                                mailbox(EMU_QP_CMD_LEN, EMU_CMD_2ERR_QP,
                                        answer.num())).error);
    EXPECT_EQ(EINVAL, s->query(answer.object,
                               mailbox(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_RMP,
                                       answer.num()), 4096).error);
    s->destroy(answer.object);
}

UCS_TEST_F(test_emu_devx, umems) {
    emu::numbers_t n;

    /* In use: the queues are in it */
    EXPECT_THROW(s->agent("devx_umem_dereg", s->umem), emu::agent_error);
    s->destroy(s->cq);
    s->destroy(s->rmp);
    s->agent("devx_umem_dereg", s->umem);
    /* It is removed, for commands too; the contents of others do not change */
    expect_create(EMU_CMD_ST_BAD_RES, s->make_cq(4));
    s->put(0, 4711);
    n = s->agent("devx_umem", s->ctx, s->mem, 0, 8192);
    EXPECT_NE(s->umem_id, n.at(1));
    EXPECT_EQ(4711ul, s->get(0));
    s->put(8, 4712);
    s->agent("devx_umem_dereg", n.at(0));
    EXPECT_EQ(4711ul, s->get(0));
    EXPECT_EQ(4712ul, s->get(8));
    /* One that ends within a page includes the rest of it, and releases it */
    s->put(2048, 4713);
    n = s->agent("devx_umem", s->ctx, s->mem, 0, 1024);
    EXPECT_EQ(4713ul, s->get(2048));
    s->put(2056, 4714);
    s->agent("devx_umem_dereg", n.at(0));
    EXPECT_EQ(4713ul, s->get(2048));
    EXPECT_EQ(4714ul, s->get(2056));
}

UCS_TEST_F(test_emu_devx, objects_of_others) {
    emu::devx_side other(fabric(), 0);

    /* Numbers of another process are invalid here */
    EXPECT_NE(s->cqn, other.cqn);
    expect_create(EMU_CMD_ST_BAD_RES,
                  s->make_qp().set(EMU_QP_CMD_QPC, EMU_QPC_CQN_SND,
                                   other.cqn));
    expect_create(EMU_CMD_ST_BAD_RES,
                  s->make_qp().set(EMU_QP_CMD_QPC, EMU_QPC_SRQN, other.rmpn));
    expect_create(EMU_CMD_ST_BAD_RES,
                  s->make_qp().set(EMU_QP_CMD_QPC, EMU_QPC_PD, other.pdn));

    /* So are those of another context of the same process */
    uint64_t pdn = s->agent("devx_open", 0).at(1);
    expect_create(EMU_CMD_ST_BAD_RES,
                  s->make_qp().set(EMU_QP_CMD_QPC, EMU_QPC_PD, pdn));
}

UCS_TEST_F(test_emu_devx, commands_need_a_device_opened_for_them) {
    uint64_t plain = s->agent("open", 0).at(0);

    s->ctx = plain;
    EXPECT_EQ(EINVAL, s->create(s->make_cq(4)).error);
    EXPECT_EQ(EINVAL, s->general(mailbox(EMU_CMD_MIN_LEN,
                                         EMU_CMD_QUERY_LAG), 64).error);
    EXPECT_THROW(s->agent("devx_umem", plain, s->mem, 0, 4096),
                 emu::agent_error);
    EXPECT_THROW(s->agent("devx_channel", plain), emu::agent_error);

    /* The kernel executes these for all contexts */
    s->agent("devx_uar", plain);
    s->agent("devx_eqn", plain, 0);
}

UCS_TEST_F(test_emu_devx, dead_nic) {
    s->create_qp();
    fabric().command("nic", {"0:0", "kill"});
    EXPECT_EQ(EIO, s->create(s->make_cq(4)).error);
    EXPECT_EQ(EIO, s->to_init().error);
    EXPECT_EQ(EIO, s->query_qp().error);
    s->destroy(s->qp);
    s->destroy(s->cq);
    s->destroy(s->rmp);
}
