/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The agent's commands over mlx5 direct verbs: DC, and send queues that are
 * filled by hand and rung with one 8-byte store, as fast transports do.
 */

#include "verbs_agent.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

namespace agent {

static void make_dv(queue_pair &qp)
{
    mlx5dv_obj obj = {};

    if (qp.dv_ready) {
        return;
    }
    obj.qp.in  = qp.ibv;
    obj.qp.out = &qp.dv;
    errno      = mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP);
    check(errno == 0, "mlx5dv_init_obj");
    qp.dv_ready = true;
}

/* dct CONTEXT CQ SRQ KEY -> QP */
numbers_t cmd_dct(const words_t &words)
{
    context &c                = item(contexts, words, 1);
    ibv_qp_init_attr_ex attr  = {};
    mlx5dv_qp_init_attr dv    = {};
    queue_pair qp             = {};

    attr.qp_type                     = IBV_QPT_DRIVER;
    attr.comp_mask                   = IBV_QP_INIT_ATTR_PD;
    attr.pd                          = c.pd;
    attr.send_cq                     = item(cqs, words, 2);
    attr.recv_cq                     = attr.send_cq;
    attr.srq                         = item(srqs, words, 3);
    dv.comp_mask                     = MLX5DV_QP_INIT_ATTR_MASK_DC;
    dv.dc_init_attr.dc_type          = MLX5DV_DCTYPE_DCT;
    dv.dc_init_attr.dct_access_key   = number(words, 4);
    qp.ibv                           = mlx5dv_create_qp(c.ibv, &attr, &dv);
    check(qp.ibv != NULL, "mlx5dv_create_qp of a DCT");
    qp.is_dct  = true;
    qp.context = number(words, 1);
    qps.push_back(qp);
    return {qps.size() - 1};
}

/* dci CONTEXT CQ -> QP, QPN */
numbers_t cmd_dci(const words_t &words)
{
    context &c               = item(contexts, words, 1);
    ibv_qp_init_attr_ex attr = {};
    mlx5dv_qp_init_attr dv   = {};
    queue_pair qp            = {};

    attr.qp_type            = IBV_QPT_DRIVER;
    attr.comp_mask          = IBV_QP_INIT_ATTR_PD;
    attr.pd                 = c.pd;
    attr.send_cq            = item(cqs, words, 2);
    attr.recv_cq            = attr.send_cq;
    attr.cap.max_send_wr    = 64;
    attr.cap.max_send_sge   = 1;
    dv.comp_mask            = MLX5DV_QP_INIT_ATTR_MASK_DC;
    dv.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI;
    qp.ibv                  = mlx5dv_create_qp(c.ibv, &attr, &dv);
    check(qp.ibv != NULL, "mlx5dv_create_qp of a DCI");
    qp.is_dci  = true;
    qp.context = number(words, 1);
    qps.push_back(qp);
    return {qps.size() - 1, qp.ibv->qp_num};
}

/* dc_modify QP TIMEOUT RETRY RNR_RETRY: to RTR (target) or RTS -> QPN */
numbers_t cmd_dc_modify(const words_t &words)
{
    queue_pair &qp   = item(qps, words, 1);
    ibv_qp_attr attr = {};
    int mask;

    attr.qp_state        = IBV_QPS_INIT;
    attr.port_num        = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC;
    mask                 = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                           (qp.is_dct ? IBV_QP_ACCESS_FLAGS : 0);
    errno                = ibv_modify_qp(qp.ibv, &attr, mask);
    check(errno == 0, "modify to INIT");

    attr.qp_state         = IBV_QPS_RTR;
    attr.path_mtu         = path_mtu;
    attr.min_rnr_timer    = 1;
    attr.ah_attr.port_num = 1;
    mask                  = IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV |
                            (qp.is_dct ? IBV_QP_MIN_RNR_TIMER : 0);
    errno                 = ibv_modify_qp(qp.ibv, &attr, mask);
    check(errno == 0, "modify to RTR");
    if (qp.is_dct) {
        return {qp.ibv->qp_num};
    }

    attr.qp_state      = IBV_QPS_RTS;
    attr.timeout       = number(words, 2);
    attr.retry_cnt     = number(words, 3);
    attr.rnr_retry     = number(words, 4);
    attr.max_rd_atomic = 4;
    errno = ibv_modify_qp(qp.ibv, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
                          IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                          IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
    check(errno == 0, "modify to RTS");
    return {qp.ibv->qp_num};
}

/* A send queue's memory, which wraps */
class wqe_writer {
public:
    wqe_writer(queue_pair &qp) : m_qp(qp), m_offset(0)
    {
    }

    void add(const void *data, size_t size)
    {
        for (size_t i = 0; i < size; ++i) {
            *byte(m_offset++) = ((const uint8_t*)data)[i];
        }
    }

    uint8_t *byte(size_t offset)
    {
        size_t size  = (size_t)m_qp.dv.sq.wqe_cnt * m_qp.dv.sq.stride;
        size_t start = (size_t)m_qp.raw_pi * m_qp.dv.sq.stride;

        return (uint8_t*)m_qp.dv.sq.buf + ((start + offset) % size);
    }

    /* One store of the control segment's first eight bytes */
    void ring()
    {
        uint64_t first;

        memcpy(&first, byte(0), sizeof(first));
        post();
        *(volatile uint64_t*)m_qp.dv.bf.reg = first;
    }

    /* Copy the request, as drivers do to registers that combine writes: by libc with
 * any stores, by stores of one size, from the first one on or from the last, or as
 * compilers do that load all before they store it in any order */
    void ring_by_copy(const std::string &way)
    {
        static void *(*volatile copy)(void*, const void*, size_t) = memmove;
        const uint8_t *first = byte(0);

        post();
        if (way == "libc") {
            copy(m_qp.dv.bf.reg, first, 64);
        } else if (way == "mixed") {
            copy_mixed(first);
        } else if (way[1] == '1') {
            copy_by<uint8_t>(first, way[0] == '-');
        } else if (way[1] == '2') {
            copy_by<uint16_t>(first, way[0] == '-');
        } else {
            copy_by<uint32_t>(first, way[0] == '-');
        }
    }

    size_t size() const
    {
        return m_offset;
    }

private:
    template<typename word> void copy_by(const uint8_t *src, bool backwards)
    {
        static const size_t num = 64 / sizeof(word);
        volatile word *dst      = (word*)m_qp.dv.bf.reg;

        for (size_t i = 0; i < num; ++i) {
            size_t k = backwards ? num - 1 - i : i;

            dst[k] = ((const word*)src)[k];
        }
    }

    /* The doorbell is in the third store. .balign: all in one page of code */
    void copy_mixed(const uint8_t *src)
    {
        asm volatile("movups     (%0), %%xmm0\n\t"
                     "movups 0x10(%0), %%xmm1\n\t"
                     "movups 0x20(%0), %%xmm2\n\t"
                     "movups 0x30(%0), %%xmm3\n\t"
                     ".balign 64\n\t"
                     "movups %%xmm1, 0x10(%1)\n\t"
                     "movups %%xmm2, 0x20(%1)\n\t"
                     "movups %%xmm0,     (%1)\n\t"
                     "movups %%xmm3, 0x30(%1)\n\t"
                     "nop"
                     : : "r"(src), "r"(m_qp.dv.bf.reg)
                     : "memory", "xmm0", "xmm1", "xmm2", "xmm3");
    }

    void post()
    {
        m_qp.raw_pi += (m_offset + m_qp.dv.sq.stride - 1) / m_qp.dv.sq.stride;
        __atomic_thread_fence(__ATOMIC_RELEASE);
        m_qp.dv.dbrec[1] = htobe32(m_qp.raw_pi);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }

    queue_pair &m_qp;
    size_t     m_offset;
};

static void add_ctrl(wqe_writer &wqe, const queue_pair &qp, uint8_t opcode,
                     uint8_t flags, unsigned num_ds, uint32_t imm)
{
    mlx5_wqe_ctrl_seg ctrl = {};

    ctrl.opmod_idx_opcode = htobe32(((uint32_t)qp.raw_pi << 8) | opcode);
    ctrl.qpn_ds           = htobe32((qp.ibv->qp_num << 8) | num_ds);
    ctrl.fm_ce_se         = flags;
    ctrl.imm              = htobe32(imm);
    wqe.add(&ctrl, sizeof(ctrl));
}

static void add_av(wqe_writer &wqe, ibv_ah *ah, uint64_t key, uint32_t dctn)
{
    mlx5dv_obj obj = {};
    mlx5dv_ah dv   = {};
    mlx5_wqe_av av;

    obj.ah.in  = ah;
    obj.ah.out = &dv;
    errno      = mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH);
    check(errno == 0, "mlx5dv_init_obj of an address handle");
    memcpy(&av, dv.av, sizeof(av));
    av.key.dc_key = htobe64(key);
    av.dqp_dct    = htobe32(dctn | MLX5_EXTENDED_UD_AV);
    wqe.add(&av, sizeof(av));
}

static void add_data(wqe_writer &wqe, uint64_t addr, uint32_t length,
                     uint32_t lkey)
{
    mlx5_wqe_data_seg data = {};

    data.byte_count = htobe32(length);
    data.lkey       = htobe32(lkey);
    data.addr       = htobe64(addr);
    wqe.add(&data, sizeof(data));
}

static bool has_raddr(unsigned opcode)
{
    return (opcode == MLX5_OPCODE_RDMA_WRITE) ||
           (opcode == MLX5_OPCODE_RDMA_WRITE_IMM) ||
           (opcode == MLX5_OPCODE_RDMA_READ) ||
           (opcode == MLX5_OPCODE_ATOMIC_CS) ||
           (opcode == MLX5_OPCODE_ATOMIC_FA);
}

static bool is_atomic(unsigned opcode)
{
    return (opcode == MLX5_OPCODE_ATOMIC_CS) ||
           (opcode == MLX5_OPCODE_ATOMIC_FA);
}

/* raw QP OPCODE FLAGS LADDR LENGTH LKEY RADDR RKEY A B [AH DCTN KEY]
 *   mlx5 opcode and fm_ce_se; A, B: compare and swap, or add */
numbers_t cmd_raw(const words_t &words)
{
    queue_pair &qp      = item(qps, words, 1);
    unsigned opcode     = number(words, 2);
    mlx5_wqe_raddr_seg raddr   = {};
    mlx5_wqe_atomic_seg atomic = {};
    unsigned num_ds     = 2 + (qp.is_dci ? 3 : 0) + has_raddr(opcode) +
                          is_atomic(opcode);

    make_dv(qp);
    wqe_writer wqe(qp);
    add_ctrl(wqe, qp, opcode, number(words, 3), num_ds, number(words, 9));
    if (qp.is_dci) {
        add_av(wqe, item(ahs, words, 11), number(words, 13),
               number(words, 12));
    }

    if (has_raddr(opcode)) {
        raddr.raddr = htobe64(number(words, 7));
        raddr.rkey  = htobe32(number(words, 8));
        wqe.add(&raddr, sizeof(raddr));
    }

    if (is_atomic(opcode)) {
        /* CAS: swap first, then compare; FAA: the addend first */
        atomic.swap_add = htobe64((opcode == MLX5_OPCODE_ATOMIC_CS) ?
                                  number(words, 10) : number(words, 9));
        atomic.compare  = htobe64((opcode == MLX5_OPCODE_ATOMIC_CS) ?
                                  number(words, 9) : 0);
        wqe.add(&atomic, sizeof(atomic));
    }

    add_data(wqe, number(words, 4), number(words, 5), number(words, 6));
    wqe.ring();
    return {};
}

/* masked QP OPCODE SIZE LADDR LKEY RADDR RKEY SWAP_ADD COMPARE SWAP_MASK
 * COMPARE_MASK: an extended atomic of 4 or 8 bytes, on an RC queue pair; for
 * fetch and add COMPARE is the mask of field ends */
numbers_t cmd_masked(const words_t &words)
{
    queue_pair &qp           = item(qps, words, 1);
    unsigned opcode          = number(words, 2);
    unsigned size            = number(words, 3);
    bool is_cs               = (opcode == MLX5_OPCODE_ATOMIC_MASKED_CS);
    bool has_masks           = is_cs && (size == 8);
    mlx5_wqe_raddr_seg raddr = {};
    uint32_t words32[4]      = {};
    uint64_t words64[4];

    for (int i = 0; i < 4; ++i) {
        words64[i] = htobe64(number(words, 8 + i));
        words32[i] = htobe32((i < 2) || is_cs ? number(words, 8 + i) : 0);
    }

    make_dv(qp);
    wqe_writer wqe(qp);
    add_ctrl(wqe, qp, opcode, MLX5_WQE_CTRL_CQ_UPDATE, 4 + has_masks, 0);
    *wqe.byte(0) = (size == 8) ? 9 : 8;
    raddr.raddr  = htobe64(number(words, 6));
    raddr.rkey   = htobe32(number(words, 7));
    wqe.add(&raddr, sizeof(raddr));
    wqe.add((size == 8) ? (void*)words64 : (void*)words32, 16);
    if (has_masks) {
        wqe.add(&words64[2], 16);
    }
    add_data(wqe, number(words, 4), size, number(words, 5));
    wqe.ring();
    return {};
}

/* raw_bytes QP HEX [WAY]: a WQE of any bytes; index and QPN are put in place. The
 * doorbell is a copy of its first 64 bytes, by libc, or by stores of 1, 2 or 4
 * bytes: WAY is "libc", "mixed", +SIZE, or -SIZE (from the last to the first) */
numbers_t cmd_raw_bytes(const words_t &words)
{
    queue_pair &qp         = item(qps, words, 1);
    const std::string &hex = words.at(2);
    std::vector<uint8_t> bytes;

    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes.push_back(strtoul(hex.substr(i, 2).c_str(), NULL, 16));
    }

    /* As many basic blocks as it says: a NIC looks for the next one after them */
    bytes.resize(std::max<size_t>(bytes.size(), (bytes.at(7) & 0x3f) * 16));
    bytes.resize((bytes.size() + 63) / 64 * 64);

    make_dv(qp);
    bytes.at(1) = qp.raw_pi >> 8;
    bytes.at(2) = qp.raw_pi;
    bytes.at(4) = qp.ibv->qp_num >> 16;
    bytes.at(5) = qp.ibv->qp_num >> 8;
    bytes.at(6) = qp.ibv->qp_num;

    wqe_writer wqe(qp);
    wqe.add(bytes.data(), bytes.size());
    wqe.ring_by_copy((words.size() > 3) ? words.at(3) : "libc");
    return {};
}

} /* namespace agent */
