/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Common code of the tests of DEVX: mailboxes, and a process with one of each object,
 * made by commands, in its own memory:
 *
 *      0          64K       queues                               1M
 *      | data     |         | umem: SQ | CQ | RMP | doorbells    |
 */

#ifndef MLX5EMU_TEST_EMU_DEVX_H
#define MLX5EMU_TEST_EMU_DEVX_H

#include "test_emu.h"

extern "C" {
#include "tools/mlx5emu/devx/emu_ifc.h"
}

#include <infiniband/mlx5dv.h>

namespace emu {

/** Hexadecimal digits of bytes, for an agent. */
std::string to_hex(const void *data, size_t size);

/** A command's input. Fields are EMU_x of emu_ifc.h. */
class mailbox {
public:
    mailbox(size_t size, unsigned opcode, uint32_t num = 0) : m_data(size)
    {
        if (size >= EMU_CMD_MIN_LEN) {
            set(0, EMU_CMD_OPCODE, opcode);
            set(0, EMU_CMD_OBJ_NUM, num);
        }
    }

    /** Sets a field of the part that begins at byte @a base. */
    mailbox &set(size_t base, unsigned bit, unsigned num_bits, uint64_t value)
    {
        m_data.at(base + (bit + num_bits + 31) / 32 * 4 - 1);
        emu_ifc_set(&m_data[base], bit, num_bits, value);
        return *this;
    }

    mailbox &resize(size_t size)
    {
        m_data.resize(size);
        return *this;
    }

    size_t size() const
    {
        return m_data.size();
    }

    std::string hex() const
    {
        return m_data.empty() ? "-" : to_hex(m_data.data(), m_data.size());
    }

private:
    std::vector<uint8_t> m_data;
};

/** The device's answer. */
struct answer {
    int                  error;    /* Of the call */
    uint64_t             object;
    std::vector<uint8_t> out;

    uint64_t get(size_t base, unsigned bit, unsigned num_bits) const
    {
        out.at(base + (bit + num_bits + 31) / 32 * 4 - 1);
        return emu_ifc_get(&out[base], bit, num_bits);
    }

    unsigned status() const
    {
        return get(0, EMU_CMD_STATUS);
    }

    uint32_t num() const
    {
        return get(0, EMU_CMD_OBJ_NUM);
    }
};

/** A completion entry. */
struct cqe {
    unsigned opcode, syndrome, wqe_counter;
    uint32_t qpn, byte_cnt;
};

/** One process, its device opened for DEVX, and its objects. */
class devx_side {
public:
    devx_side(const rcv::fabric &fabric, unsigned host, unsigned log_cq = 4);

    /** Valid commands, to be modified or sent. */
    mailbox make_cq(unsigned log_size) const;
    mailbox make_rmp(bool cyclic = false) const;
    mailbox make_qp(unsigned st = EMU_QPC_ST_RC) const;
    mailbox make_dct() const;
    mailbox make_mkey() const;

    answer create(const mailbox &in, size_t out_size = EMU_CMD_MIN_LEN);
    answer general(const mailbox &in, size_t out_size);
    answer query(uint64_t object, const mailbox &in, size_t out_size);
    answer modify(uint64_t object, const mailbox &in,
                  size_t out_size = EMU_CMD_MIN_LEN);
    void destroy(uint64_t object);

    /** The answer to a command of the agent. */
    answer ask(const std::string &words);

    /** Makes and connects the queue pair: states INIT, RTR, RTS. */
    void create_qp(unsigned st = EMU_QPC_ST_RC);
    answer to_init();
    answer to_rtr(const devx_side &peer);
    answer to_rts(unsigned timeout = 8);

    answer to_state(unsigned opcode)
    {
        return modify(qp, mailbox(EMU_CMD_MIN_LEN, opcode, qpn));
    }

    answer query_qp();

    /** Posts a request of one basic block, and rings. */
    void post(uint8_t opcode, const devx_side &peer, uint64_t local,
              uint32_t length, uint64_t remote, uint32_t rkey);

    /** Clears the doorbell record of the queue pair. */
    void clear_doorbell();

    /** Gives the receive pool its entries, of 64 bytes each at 32K. */
    void post_recv();

    /** Next completion. Throws if there is none within this time. */
    cqe poll();
    bool has_cqe();

    void arm(bool solicited = false);

    /** Updates the consumer index of completions. */
    void write_ci();

    uint64_t get(uint64_t offset)
    {
        return agent("get", mem, offset).at(0);
    }

    void put(uint64_t offset, uint64_t value)
    {
        agent("put", mem, offset, value);
    }

    static const uint64_t mem_size    = 1ul << 20;
    static const uint64_t umem_offset = 1ul << 16;
    static const uint64_t umem_size   = 1ul << 19;
    static const uint64_t sq_offset   = 0;
    static const uint64_t cq_offset   = 0x10000;
    static const uint64_t rmp_offset  = 0x40000;
    static const uint64_t dbr_offset  = 0x50000;
    static const unsigned log_sq      = 4;
    static const unsigned log_rmp     = 3;

    emu::agent agent;
    uint64_t   ctx, pdn, mem, addr, lkey, rkey, lid;
    uint64_t   umem, umem_id, uar, uar_page;
    uint64_t   cq, rmp, qp;       /* Objects */
    uint32_t   cqn, rmpn, qpn;    /* Numbers */
    bool       strict = false;    /* The queue pair is forced to IBTA order */

private:
    answer to_answer(const numbers_t &numbers) const;
    std::vector<uint8_t> peek(uint64_t offset, size_t size);
    void bytes(uint64_t offset, const void *data, size_t size);

    unsigned m_log_cq;
    uint32_t m_ci;
    uint16_t m_pi;
    unsigned m_sn;
};

} /* namespace emu */

#endif
