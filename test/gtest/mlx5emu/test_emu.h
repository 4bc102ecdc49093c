/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Common code of the emulator's tests: agents (programs on emulated hosts that execute
 * commands, see verbs_agent.h), queue pairs between them, fault rules and the trace.
 */

#ifndef MLX5EMU_TEST_EMU_H
#define MLX5EMU_TEST_EMU_H

#include <common/test.h>

#include "common/emu_fabric.h"

#include <infiniband/verbs.h>

#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace emu {

typedef std::vector<uint64_t> numbers_t;

/** Time for what must happen, in milliseconds, and an acknowledgement timer that does
 *  not expire meanwhile. */
const unsigned patience_ms   = rcv::patience * 1e3;
enum { patient_timeout = 25 }; /* 137 s */

const unsigned all_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/** A command of an agent failed. */
class agent_error : public std::runtime_error {
public:
    agent_error(int code, const std::string &text) :
        std::runtime_error(text), m_code(code)
    {
    }

    /** Value of errno */
    int code() const
    {
        return m_code;
    }

private:
    int m_code;
};


/** A program on a host. Commands and answers are in verbs_agent.cc. */
class agent {
public:
    agent(const rcv::fabric &fabric, unsigned host);
    ~agent();

    agent(const agent &)            = delete;
    agent &operator=(const agent &) = delete;

    /** Executes a command; throws agent_error if it fails. */
    template<typename... T> numbers_t operator()(const char *name, T... args)
    {
        std::string line = name;

        (void)std::initializer_list<int>{
                (line += " " + std::to_string(args), 0)...};
        return command(line);
    }

    numbers_t command(const std::string &line);

    /** Starts a command, without waiting for its answer. */
    void begin(const std::string &line);

    /** The answer to the command that was started. */
    numbers_t finish();

    /** Ends it as "kill -9" does, and waits until it has ended. */
    void kill();

    /** SIGSTOP, SIGCONT */
    void signal(int signum);

private:
    std::string read_line();

    pid_t       m_pid;
    int         m_in;
    int         m_out;
    std::string m_line;
    std::string m_buffer;
};


/** A completion; found is false if there was none in time. */
struct completion {
    bool     found;
    uint64_t status;
    uint64_t opcode;
    uint64_t wr_id;
    uint64_t length;
    uint64_t imm;
    uint64_t qpn;
};


class side;

/** A request that was posted. */
struct request {
    side     *owner;
    uint64_t wr_id;

    /** The next completion is its, with this status. */
    ::testing::AssertionResult completes(ibv_wc_status status) const;
};


/** One process with one device, memory, a CQ and one queue pair. */
class side {
public:
    side(const rcv::fabric &fabric, unsigned host, unsigned link,
         bool use_srq = false, bool sig_all = true, int type = IBV_QPT_RC);

    void connect(const side &peer, unsigned timeout = 8, unsigned retry = 3,
                 unsigned rnr_retry = 7, unsigned sl = 0);

    /** Uses the GID at an index. */
    void use_gid(unsigned index);

    /** Takes that of the IPv4 address, for RoCE v2: the constructor does on RoCE. */
    void use_ipv4_gid();

    /** Words with our index and the peer's GID, if GRHs are used. */
    std::string grh_words(const side &peer) const;

    /** The text of a command, to be started and finished. */
    std::string send_line(ibv_wr_opcode opcode, const side &peer,
                          uint64_t wr_id, uint64_t local, uint64_t length,
                          uint64_t remote, uint64_t a = 0, uint64_t b = 0,
                          unsigned flags = IBV_SEND_SIGNALED) const;

    /** Addresses here are offsets into the memory of either side. */
    request send(ibv_wr_opcode opcode, const side &peer, uint64_t wr_id,
                 uint64_t local, uint64_t length, uint64_t remote, uint64_t a = 0,
                 uint64_t b = 0, unsigned flags = IBV_SEND_SIGNALED);

    /** From now on, our memory is another region, registered by this command. */
    void use_memory(const char *command);

    request write(const side &peer, uint64_t wr_id, uint64_t local,
                  uint64_t length, uint64_t remote)
    {
        return send(IBV_WR_RDMA_WRITE, peer, wr_id, local, length, remote);
    }

    request read(const side &peer, uint64_t wr_id, uint64_t local,
                 uint64_t length, uint64_t remote)
    {
        return send(IBV_WR_RDMA_READ, peer, wr_id, local, length, remote);
    }

    request cas(const side &peer, uint64_t wr_id, uint64_t local, uint64_t remote,
                uint64_t compare, uint64_t swap)
    {
        return send(IBV_WR_ATOMIC_CMP_AND_SWP, peer, wr_id, local, 8, remote,
                    compare, swap);
    }

    request faa(const side &peer, uint64_t wr_id, uint64_t local, uint64_t remote,
                uint64_t add)
    {
        return send(IBV_WR_ATOMIC_FETCH_AND_ADD, peer, wr_id, local, 8, remote, add);
    }

    request recv(uint64_t wr_id, uint64_t offset, uint64_t length);

    completion poll(unsigned timeout_ms = patience_ms);

    /** Next completion is of this request, with this status. */
    ::testing::AssertionResult completes(uint64_t wr_id, ibv_wc_status status);

    /** No completion arrives for some time. */
    bool is_quiet(unsigned ms = 100)
    {
        return !poll(ms).found;
    }

    uint64_t get(uint64_t offset)
    {
        return (*m_agent)("get", mem, offset).at(0);
    }

    void put(uint64_t offset, uint64_t value)
    {
        (*m_agent)("put", mem, offset, value);
    }

    void fill(uint64_t offset, uint64_t length, uint64_t seed)
    {
        (*m_agent)("fill", mem, offset, length, seed);
    }

    /** Bytes that have the contents which fill() gives. */
    uint64_t match(uint64_t offset, uint64_t length, uint64_t seed)
    {
        return (*m_agent)("match", mem, offset, length, seed).at(0);
    }

    uint64_t zeroes(uint64_t offset, uint64_t length)
    {
        return (*m_agent)("zeroes", mem, offset, length).at(0);
    }

    /** Next asynchronous event: {type, object}, or nothing. */
    numbers_t async(unsigned timeout_ms = patience_ms)
    {
        return (*m_agent)("async", ctx, timeout_ms);
    }

    /** Begins atomics and writes to the other side, until that fails. */
    void begin_storm(const side &peer);

    uint64_t state()
    {
        return (*m_agent)("query", qp).at(0);
    }

    agent &operator*()
    {
        return *m_agent;
    }

    static const uint64_t mem_size = 4ul << 20;

    unsigned host;
    uint64_t ctx, mem, addr, lkey, rkey, cq, qp, qpn, lid;
    int64_t  srq;
    int64_t  gid_index;  /* -1: without GRHs, as on InfiniBand */
    uint64_t gid[2];     /* prefix, interface */

private:
    std::shared_ptr<agent> m_agent;
};


/** An entry of the trace. */
struct trace_entry {
    unsigned    host, link, src_host;
    std::string op;
    uint64_t    src_qpn, wqe, length, addr, data;
    bool        duplicate, partial, last;
    std::string id, ack, quirk;
    uint64_t    time_ns;
};


/** A fabric for each test. */
class test_emu : public ucs::test {
protected:
    void init() override;
    void cleanup() override;

    virtual rcv::args_t fabric_options() const
    {
        return rcv::args_t();
    }

    /** Packets that are held here, by a rule say, are discarded when they are older than
     *  the subnet timeout. Where that is not tested, none is, however long its process
     *  waits for a CPU. */
    virtual rcv::args_t subnet_timeout() const
    {
        return {"--subnet-timeout", std::to_string(patient_timeout)};
    }

    /** A new fabric: for a test that begins again because it was too slow. What the rules
     *  and quirks of the old one did is not checked. */
    void renew_fabric();

    /** Whether the fabric has a trace, which is checked at the end. */
    virtual bool has_trace() const
    {
        return true;
    }

    rcv::fabric &fabric()
    {
        return *m_fabric;
    }

    /** Two sides of a connection between hosts 0 and 1. */
    void make_pair(unsigned link = 0, unsigned timeout = 8, unsigned retry = 3,
                   unsigned rnr_retry = 7, bool use_srq = false,
                   unsigned sl = 0);

    /** Loads a rule. cleanup() fails the test if it did not fire this often. */
    void fault(const std::string &rule, uint64_t fires = 1);

    uint64_t fired(uint64_t id);

    /** Switches quirks on, [HOST[:LINK]=]NAME[,NAME]... cleanup() fails the test if one
     *  of them never acted, or if the trace lacks an occurrence. */
    void quirk(const std::string &quirks);

    /** Switches them off. */
    void no_quirk(const std::string &quirks);

    /** How often a quirk acted, by its counters: everywhere, or at a port. */
    uint64_t acted(const std::string &name, int host = -1, int link = -1);

    /** Entries of the trace for a quirk. */
    std::vector<trace_entry> quirk_trace(const std::string &name);

    /** Executions on a host. Includes duplicates, which are marked, but no quirks. */
    std::vector<trace_entry> trace(unsigned host);

    /** Number of executions of a kind of operation on a host. */
    unsigned executed(unsigned host, const std::string &op);

    uint64_t counter(unsigned host, unsigned link, const std::string &name);

    /** A number of a port in the output of "status". */
    uint64_t number_of_port(unsigned host, unsigned link, const char *name);

    std::unique_ptr<side> a, b;

private:
    void make_fabric();
    void check_trace();
    void check_quirks();
    std::vector<trace_entry> read_trace(const rcv::args_t &args);

    std::unique_ptr<rcv::fabric> m_fabric;
    std::map<uint64_t, uint64_t> m_fires;
    std::set<std::string>        m_quirks;  /* without places and values */
};

} /* namespace emu */

#endif
