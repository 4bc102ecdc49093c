/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The process of the tests of DEVX, see test_emu_devx.h.
 */

#include "test_emu_devx.h"

namespace emu {

std::string to_hex(const void *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    std::string result;

    for (size_t i = 0; i < size; ++i) {
        result += digits[((const uint8_t*)data)[i] >> 4];
        result += digits[((const uint8_t*)data)[i] & 15];
    }
    return result;
}

devx_side::devx_side(const rcv::fabric &fabric, unsigned host,
                     unsigned log_cq) :
    agent(fabric, host), qp(0), qpn(0), m_log_cq(log_cq), m_ci(0), m_pi(0),
    m_sn(0)
{
    std::vector<uint8_t> empty(64ul << log_cq);
    numbers_t n;

    n       = agent("devx_open", 0);
    ctx     = n.at(0);
    pdn     = n.at(1);
    lid     = agent("port", ctx).at(1);
    n       = agent("mr", ctx, mem_size, all_access);
    mem     = n.at(0);
    addr    = n.at(1);
    lkey    = n.at(2);
    rkey    = n.at(3);
    n       = agent("devx_umem", ctx, mem, umem_offset, umem_size);
    umem    = n.at(0);
    umem_id = n.at(1);
    n       = agent("devx_uar", ctx);
    uar     = n.at(0);
    uar_page = n.at(1);

    for (size_t i = 63; i < empty.size(); i += 64) {
        empty[i] = (MLX5_CQE_INVALID << 4) | MLX5_CQE_OWNER_MASK;
    }
    bytes(cq_offset, empty.data(), empty.size());

    answer a = create(make_cq(log_cq));
    EXPECT_EQ(0, a.error);
    cq  = a.object;
    cqn = a.num();
    a   = create(make_rmp());
    EXPECT_EQ(0, a.error);
    rmp  = a.object;
    rmpn = a.num();
}

mailbox devx_side::make_cq(unsigned log_size) const
{
    return mailbox(EMU_CQ_CMD_LEN, EMU_CMD_CREATE_CQ)
            .set(0, EMU_CQ_CMD_UMEM_ID, umem_id)
            .set(0, EMU_CQ_CMD_UMEM_OFFSET, cq_offset)
            .set(EMU_CQ_CMD_CQC, EMU_CQC_LOG_SIZE, log_size)
            .set(EMU_CQ_CMD_CQC, EMU_CQC_UAR_PAGE, uar_page)
            .set(EMU_CQ_CMD_CQC, EMU_CQC_EQN, 1)
            .set(EMU_CQ_CMD_CQC, EMU_CQC_DBR_UMEM_ID, umem_id)
            .set(EMU_CQ_CMD_CQC, EMU_CQC_DBR_ADDR, dbr_offset);
}

mailbox devx_side::make_rmp(bool cyclic) const
{
    return mailbox(EMU_RMP_CMD_LEN, EMU_CMD_CREATE_RMP)
            .set(EMU_RMP_CMD_RMPC, EMU_RMPC_STATE, EMU_RMPC_STATE_RDY)
            .set(EMU_RMP_CMD_RMPC, EMU_RMPC_WQ_TYPE,
                 cyclic ? EMU_RMPC_WQ_CYCLIC : EMU_RMPC_WQ_LIST)
            .set(EMU_RMP_CMD_RMPC, EMU_RMPC_PD, pdn)
            .set(EMU_RMP_CMD_RMPC, EMU_RMPC_LOG_STRIDE, 5)
            .set(EMU_RMP_CMD_RMPC, EMU_RMPC_LOG_SIZE, log_rmp)
            .set(EMU_RMP_CMD_RMPC, EMU_RMPC_WQ_UMEM_ID, umem_id)
            .set(EMU_RMP_CMD_RMPC, EMU_RMPC_WQ_UMEM_OFFSET, rmp_offset)
            .set(EMU_RMP_CMD_RMPC, EMU_RMPC_DBR_UMEM_ID, umem_id)
            .set(EMU_RMP_CMD_RMPC, EMU_RMPC_DBR_ADDR, dbr_offset + 64);
}

mailbox devx_side::make_qp(unsigned st) const
{
    return mailbox(EMU_QP_CMD_LEN, EMU_CMD_CREATE_QP)
            .set(0, EMU_QP_CMD_WQ_UMEM_ID, umem_id)
            .set(0, EMU_QP_CMD_WQ_UMEM_OFFSET, sq_offset)
            .set(EMU_QP_CMD_QPC, EMU_QPC_ST, st)
            .set(EMU_QP_CMD_QPC, EMU_QPC_PD, pdn)
            .set(EMU_QP_CMD_QPC, EMU_QPC_UAR_PAGE, uar_page)
            .set(EMU_QP_CMD_QPC, EMU_QPC_CQN_SND, cqn)
            .set(EMU_QP_CMD_QPC, EMU_QPC_CQN_RCV, cqn)
            .set(EMU_QP_CMD_QPC, EMU_QPC_RQ_TYPE, EMU_QPC_RQ_TYPE_SRQ)
            .set(EMU_QP_CMD_QPC, EMU_QPC_SRQN, rmpn)
            .set(EMU_QP_CMD_QPC, EMU_QPC_LOG_SQ_SIZE, log_sq)
            .set(EMU_QP_CMD_QPC, EMU_QPC_USER_INDEX, 0x123456)
            .set(EMU_QP_CMD_QPC, EMU_QPC_DBR_UMEM_ID, umem_id)
            .set(EMU_QP_CMD_QPC, EMU_QPC_DBR_ADDR, dbr_offset + 128);
}

mailbox devx_side::make_dct() const
{
    return mailbox(EMU_DCT_CMD_LEN, EMU_CMD_CREATE_DCT)
            .set(EMU_DCT_CMD_DCTC, EMU_DCTC_PD, pdn)
            .set(EMU_DCT_CMD_DCTC, EMU_DCTC_CQN, cqn)
            .set(EMU_DCT_CMD_DCTC, EMU_DCTC_SRQN, rmpn)
            .set(EMU_DCT_CMD_DCTC, EMU_DCTC_KEY, 0x1122)
            .set(EMU_DCT_CMD_DCTC, EMU_DCTC_PORT, 1)
            .set(EMU_DCT_CMD_DCTC, EMU_DCTC_MTU, IBV_MTU_1024)
            .set(EMU_DCT_CMD_DCTC, EMU_DCTC_RWE, 1)
            .set(EMU_DCT_CMD_DCTC, EMU_DCTC_MIN_RNR_NAK, 1);
}

mailbox devx_side::make_mkey() const
{
    /* The first 4K of the region, by addresses from 0x1000 on */
    return mailbox(EMU_MKEY_CMD_LEN + EMU_KLM_LEN, EMU_CMD_CREATE_MKEY)
            .set(0, EMU_MKEY_CMD_COUNT, 1)
            .set(EMU_MKEY_CMD_MKC, EMU_MKC_MODE_1_0, EMU_MKC_MODE_KSM)
            .set(EMU_MKEY_CMD_MKC, EMU_MKC_MKEY_7_0, 0x77)
            .set(EMU_MKEY_CMD_MKC, EMU_MKC_PD, pdn)
            .set(EMU_MKEY_CMD_MKC, EMU_MKC_LW, 1)
            .set(EMU_MKEY_CMD_MKC, EMU_MKC_RW, 1)
            .set(EMU_MKEY_CMD_MKC, EMU_MKC_START_ADDR, 0x1000)
            .set(EMU_MKEY_CMD_MKC, EMU_MKC_LEN, 4096)
            .set(EMU_MKEY_CMD_MKC, EMU_MKC_LOG_ENTITY_SIZE, 12)
            .set(EMU_MKEY_CMD_KLM, EMU_KLM_MKEY, lkey)
            .set(EMU_MKEY_CMD_KLM, EMU_KLM_ADDRESS, addr);
}

answer devx_side::to_answer(const numbers_t &n) const
{
    answer a;

    a.error  = n.at(0);
    a.object = n.at(1);
    a.out.assign(n.begin() + 2, n.end());
    return a;
}

answer devx_side::ask(const std::string &words)
{
    return to_answer(agent.command(words));
}

static std::string words(const char *name, uint64_t object, size_t out_size,
                         const mailbox &in)
{
    return std::string(name) + " " + std::to_string(object) + " " +
           std::to_string(out_size) + " " + in.hex();
}

answer devx_side::create(const mailbox &in, size_t out_size)
{
    return ask(words("devx_create", ctx, out_size, in));
}

answer devx_side::general(const mailbox &in, size_t out_size)
{
    return ask(words("devx_general", ctx, out_size, in));
}

answer devx_side::query(uint64_t object, const mailbox &in, size_t out_size)
{
    return ask(words("devx_query", object, out_size, in));
}

answer devx_side::modify(uint64_t object, const mailbox &in, size_t out_size)
{
    return ask(words("devx_modify", object, out_size, in));
}

void devx_side::destroy(uint64_t object)
{
    agent("devx_destroy", object);
}

void devx_side::bytes(uint64_t offset, const void *data, size_t size)
{
    agent.command("bytes " + std::to_string(mem) + " " +
                  std::to_string(umem_offset + offset) + " " +
                  to_hex(data, size));
}

std::vector<uint8_t> devx_side::peek(uint64_t offset, size_t size)
{
    numbers_t n = agent("peek", mem, umem_offset + offset, size);

    return std::vector<uint8_t>(n.begin(), n.end());
}

} /* namespace emu */
