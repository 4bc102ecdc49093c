/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Common code of the emulator's tests; see test_emu.h.
 */

#include "test_emu.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

namespace emu {

/* An agent without output for this time hangs */
/* Longer than any command waits */
static const int answer_timeout_ms = 2 * patience_ms;

typedef std::unique_ptr<json_t, void (*)(json_t*)> json_ptr;

static json_ptr parse_json(const std::string &text)
{
    json_error_t error;
    json_t *root = json_loads(text.c_str(), 0, &error);

    if (root == NULL) {
        throw std::runtime_error(std::string("not JSON: ") + error.text +
                                 ": " + text);
    }
    return json_ptr(root, json_decref);
}

/* A required value */
static json_t *get_json(const json_t *root, const char *key)
{
    json_t *value = json_object_get(root, key);

    if (value == NULL) {
        throw std::runtime_error(std::string("no \"") + key + "\" in JSON");
    }
    return value;
}

static uint64_t get_number(const json_t *root, const char *key)
{
    json_t *value = get_json(root, key);

    return json_is_string(value) ?
           strtoull(json_string_value(value), NULL, 0) :
           json_integer_value(value);
}


agent::agent(const rcv::fabric &fabric, unsigned host) :
    m_pid(-1), m_in(-1), m_out(-1)
{
    std::string tool     = rcv::fabric::tool();
    std::string number   = std::to_string(host);
    const char *program  = RCV_TOP_BUILDDIR "/test/gtest/verbs_agent";
    const char *argv[]   = {tool.c_str(), "exec", "-n", fabric.name().c_str(),
                            number.c_str(), "--", program, NULL};
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) {
        throw std::runtime_error("pipe2 failed");
    }

    m_pid = fork();
    if (m_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execvp(argv[0], (char**)argv);
        _exit(127);
    }

    close(in[0]);
    close(out[1]);
    m_in  = in[1];
    m_out = out[0];
}

agent::~agent()
{
    close(m_in);
    close(m_out);
    if (m_pid > 0) {
        /* It exits at the end of its input; a stopped or hanging one is killed */
        if (rcv::wait_until([&] { return waitpid(m_pid, NULL, WNOHANG) == m_pid; })) {
            return;
        }
        ADD_FAILURE() << "an agent did not end";
        kill();
    }
}

void agent::kill()
{
    ::kill(m_pid, SIGKILL);
    waitpid(m_pid, NULL, 0);
    m_pid = -1;
}

void agent::signal(int signum)
{
    ::kill(m_pid, signum);
}

std::string agent::read_line()
{
    struct pollfd pfd = {m_out, POLLIN, 0};
    char buffer[4096];
    ssize_t length;
    size_t end;

    while ((end = m_buffer.find('\n')) == std::string::npos) {
        if (::poll(&pfd, 1, answer_timeout_ms) != 1) {
            throw std::runtime_error("an agent does not answer");
        }

        length = ::read(m_out, buffer, sizeof(buffer));
        if (length <= 0) {
            throw std::runtime_error("an agent has died");
        }
        m_buffer.append(buffer, length);
    }

    std::string line = m_buffer.substr(0, end);
    m_buffer.erase(0, end + 1);
    return line;
}

void agent::begin(const std::string &line)
{
    std::string text = line + "\n";

    m_line = line;
    if (::write(m_in, text.c_str(), text.size()) != (ssize_t)text.size()) {
        throw std::runtime_error("an agent does not read: " + line);
    }
}

numbers_t agent::finish()
{
    std::istringstream answer(read_line());
    std::string word;
    numbers_t result;

    answer >> word;
    if (word != "ok") {
        int code = 0;

        answer >> code;
        std::getline(answer, word);
        throw agent_error(code, m_line + ":" + word);
    }

    while (answer >> word) {
        result.push_back(strtoull(word.c_str(), NULL, 10));
    }
    return result;
}

numbers_t agent::command(const std::string &line)
{
    begin(line);
    return finish();
}


side::side(const rcv::fabric &fabric, unsigned host, unsigned link,
           bool use_srq, bool sig_all, int type) :
    host(host), srq(-1), gid_index(-1), gid{0, 0},
    m_agent(new agent(fabric, host))
{
    agent &agent = *m_agent;
    numbers_t result;

    ctx    = agent("open", link).at(0);
    lid    = agent("port", ctx).at(1);
    if (agent("layer", ctx).at(0) == IBV_LINK_LAYER_ETHERNET) {
        use_ipv4_gid();
    }
    use_memory("mr");
    cq     = agent("cq", ctx, 256, 1).at(0);
    if (use_srq) {
        srq = agent("srq", ctx, 64).at(0);
    }
    result = agent("qp", ctx, type, cq, srq, (int)sig_all);
    qp     = result.at(0);
    qpn    = result.at(1);
}

void side::connect(const side &peer, unsigned timeout, unsigned retry,
                   unsigned rnr_retry, unsigned sl)
{
    std::ostringstream line;

    line << "connect " << qp << " " << peer.qpn << " " << peer.lid << " "
         << timeout << " " << retry << " " << rnr_retry << " " << sl
         << grh_words(peer);
    m_agent->command(line.str());
}

void side::use_memory(const char *command)
{
    numbers_t result = (*m_agent)(command, ctx, mem_size, all_access);

    mem  = result.at(0);
    addr = result.at(1);
    lkey = result.at(2);
    rkey = result.at(3);
}

void side::use_ipv4_gid()
{
    numbers_t entry;

    for (uint64_t index : (*m_agent)("gid_table", ctx, 256)) {
        entry = (*m_agent)("gid", ctx, index);
        if ((entry.at(0) == 0) && (entry.at(1) == 0) &&
            (entry.at(3) == IBV_GID_TYPE_ROCE_V2)) {
            use_gid(index);
            return;
        }
    }
    throw std::runtime_error("no GID of an IPv4 address");
}

void side::use_gid(unsigned index)
{
    numbers_t entry = (*m_agent)("gid", ctx, index);

    if (entry.at(0) != 0) {
        throw std::runtime_error("no GID " + std::to_string(index));
    }
    gid_index = index;
    gid[0]    = entry.at(1);
    gid[1]    = entry.at(2);
}

std::string side::grh_words(const side &peer) const
{
    std::ostringstream words;

    if (gid_index >= 0) {
        words << " " << gid_index << " " << peer.gid[0] << " " << peer.gid[1];
    }
    return words.str();
}

std::string side::send_line(ibv_wr_opcode opcode, const side &peer,
                            uint64_t wr_id, uint64_t local, uint64_t length,
                            uint64_t remote, uint64_t a, uint64_t b,
                            unsigned flags) const
{
    std::ostringstream line;

    line << "send " << qp << " " << wr_id << " " << (int)opcode << " " << flags
         << " " << addr + local << " " << length << " " << lkey << " "
         << peer.addr + remote << " " << peer.rkey << " " << a << " " << b;
    return line.str();
}

request side::send(ibv_wr_opcode opcode, const side &peer, uint64_t wr_id,
                   uint64_t local, uint64_t length, uint64_t remote, uint64_t a,
                   uint64_t b, unsigned flags)
{
    m_agent->command(send_line(opcode, peer, wr_id, local, length, remote, a,
                               b, flags));
    return {this, wr_id};
}

request side::recv(uint64_t wr_id, uint64_t offset, uint64_t length)
{
    if (srq >= 0) {
        (*m_agent)("srq_recv", srq, wr_id, addr + offset, length, lkey);
    } else {
        (*m_agent)("recv", qp, wr_id, addr + offset, length, lkey);
    }
    return {this, wr_id};
}

void side::begin_storm(const side &peer)
{
    std::ostringstream line;

    line << "storm " << qp << " " << cq << " " << addr << " " << lkey << " "
         << peer.addr << " " << peer.rkey;
    m_agent->begin(line.str());
}

completion side::poll(unsigned timeout_ms)
{
    numbers_t n = (*m_agent)("poll", cq, timeout_ms);

    if (n.empty()) {
        return completion();
    }
    return completion{true,    n.at(0), n.at(1), n.at(2),
                      n.at(3), n.at(4), n.at(5)};
}

::testing::AssertionResult request::completes(ibv_wc_status status) const
{
    return owner->completes(wr_id, status);
}

::testing::AssertionResult side::completes(uint64_t wr_id,
                                           ibv_wc_status status)
{
    completion c = poll();

    if (!c.found) {
        return ::testing::AssertionFailure() << "no completion of request "
                                             << wr_id;
    }

    if ((c.wr_id != wr_id) || (c.status != (uint64_t)status)) {
        return ::testing::AssertionFailure()
               << "request " << c.wr_id << " with status " << c.status << " ("
               << ibv_wc_status_str((ibv_wc_status)c.status)
               << "), not request " << wr_id << " with status " << status
               << " (" << ibv_wc_status_str(status) << ")";
    }
    return ::testing::AssertionSuccess();
}


void test_emu::init()
{
    ucs::test::init();
    ::signal(SIGPIPE, SIG_IGN);
    make_fabric();
}

void test_emu::make_fabric()
{
    rcv::args_t options = fabric_options(), timeout = subnet_timeout();

    options.insert(options.end(), timeout.begin(), timeout.end());
    m_fabric.reset(new rcv::fabric(2, 2, options));
}

void test_emu::renew_fabric()
{
    a.reset();
    b.reset();
    m_fires.clear();
    m_quirks.clear();
    m_fabric.reset();
    make_fabric();
}

void test_emu::cleanup()
{
    /* A fault that did not fire tests nothing */
    for (const auto &rule : m_fires) {
        EXPECT_EQ(rule.second, fired(rule.first)) << "fault " << rule.first;
    }
    m_fires.clear();
    check_quirks();
    check_trace();
    a.reset();
    b.reset();
    m_fabric.reset();
    ucs::test::cleanup();
}

/* In all tests, no request may be executed twice or out of order */
void test_emu::check_trace()
{
    rcv::process check({rcv::fabric::tool(), "trace", "-n", fabric().name(),
                        "--check"});
    int status = check.wait();

    EXPECT_TRUE((status == 0) || (status == 3) || !has_trace())
            << check.output();
}

void test_emu::quirk(const std::string &quirks)
{
    size_t equals = quirks.find('=');
    std::istringstream names(quirks.substr((equals == std::string::npos) ?
                                           0 : (equals + 1)));
    std::string name;

    fabric().command("quirk", {"add", quirks});
    while (std::getline(names, name, ',')) {
        m_quirks.insert(name.substr(0, name.find(':')));
    }
}

void test_emu::no_quirk(const std::string &quirks)
{
    fabric().command("quirk", {"remove", quirks});
}

uint64_t test_emu::acted(const std::string &name, int host, int link)
{
    json_ptr root  = parse_json(fabric().command("status", {"--json"}));
    uint64_t count = 0;
    json_t *quirk;
    size_t i;

    json_array_foreach(get_json(root.get(), "quirks"), i, quirk) {
        if ((name == json_string_value(get_json(quirk, "name"))) &&
            ((host < 0) || (get_number(quirk, "host") == (uint64_t)host)) &&
            ((link < 0) || (get_number(quirk, "link") == (uint64_t)link))) {
            count += get_number(quirk, "acted");
        }
    }
    return count;
}

std::vector<trace_entry> test_emu::quirk_trace(const std::string &name)
{
    std::vector<trace_entry> result;

    for (const trace_entry &entry : read_trace({"--json"})) {
        if (entry.quirk == name) {
            result.push_back(entry);
        }
    }
    return result;
}

/* A quirk that did not act tests nothing */
void test_emu::check_quirks()
{
    for (const std::string &name : m_quirks) {
        uint64_t count = acted(name);

        EXPECT_GT(count, 0u) << "quirk " << name << " never acted";
        if (has_trace()) {
            EXPECT_EQ(count, quirk_trace(name).size()) << "quirk " << name;
        }
    }
    m_quirks.clear();
}

void test_emu::make_pair(unsigned link, unsigned timeout, unsigned retry,
                         unsigned rnr_retry, bool use_srq, unsigned sl)
{
    a.reset(new side(fabric(), 0, link, use_srq));
    b.reset(new side(fabric(), 1, link, use_srq));
    a->connect(*b, timeout, retry, rnr_retry, sl);
    b->connect(*a, timeout, retry, rnr_retry, sl);
}

void test_emu::fault(const std::string &rule, uint64_t fires)
{
    std::string answer = fabric().command("fault", {"add", rule});

    m_fires[strtoull(answer.c_str(), NULL, 10)] = fires;
}

uint64_t test_emu::fired(uint64_t id)
{
    json_ptr root = parse_json(fabric().command("fault", {"list", "--json"}));
    json_t *rule;
    size_t i;

    json_array_foreach(root.get(), i, rule) {
        if (get_number(rule, "id") == id) {
            return get_number(rule, "fired");
        }
    }
    throw std::runtime_error("there is no such rule");
}

std::vector<trace_entry> test_emu::trace(unsigned host)
{
    std::vector<trace_entry> result;

    for (const trace_entry &entry :
         read_trace({"--json", std::to_string(host)})) {
        if (entry.quirk.empty()) {
            result.push_back(entry);
        }
    }
    return result;
}

std::vector<trace_entry> test_emu::read_trace(const rcv::args_t &args)
{
    std::istringstream lines(fabric().command("trace", args));
    std::vector<trace_entry> result;
    std::string line;

    while (std::getline(lines, line)) {
        json_ptr root = parse_json(line);
        const json_t *r = root.get();
        const json_t *quirk = json_object_get(r, "quirk");

        result.push_back(trace_entry{
                (unsigned)get_number(r, "host"),
                (unsigned)get_number(r, "link"),
                (unsigned)get_number(r, "src_host"),
                json_string_value(get_json(r, "op")),
                get_number(r, "src_qpn"), get_number(r, "wqe"),
                get_number(r, "length"), get_number(r, "addr"),
                get_number(r, "data"),
                json_is_true(get_json(r, "duplicate")),
                json_is_true(get_json(r, "partial")),
                json_is_true(get_json(r, "last")),
                json_string_value(get_json(r, "id")),
                json_string_value(get_json(r, "ack")),
                quirk ? json_string_value(quirk) : "",
                get_number(r, "time_ns")});
    }
    return result;
}

unsigned test_emu::executed(unsigned host, const std::string &op)
{
    unsigned count = 0;

    for (const trace_entry &entry : trace(host)) {
        count += (entry.op == op) && !entry.duplicate && !entry.partial;
    }
    return count;
}

static const json_t *find_port(const json_t *status, unsigned host,
                               unsigned link)
{
    json_t *port;
    size_t i;

    json_array_foreach(get_json(status, "ports"), i, port) {
        if ((get_number(port, "host") == host) &&
            (get_number(port, "link") == link)) {
            return port;
        }
    }
    throw std::runtime_error("there is no such port");
}

uint64_t test_emu::counter(unsigned host, unsigned link,
                           const std::string &name)
{
    json_ptr root = parse_json(fabric().command("status", {"--json"}));

    return get_number(get_json(find_port(root.get(), host, link), "counters"),
                      name.c_str());
}

uint64_t test_emu::number_of_port(unsigned host, unsigned link,
                                  const char *name)
{
    json_ptr root = parse_json(fabric().command("status", {"--json"}));

    return get_number(find_port(root.get(), host, link), name);
}

} /* namespace emu */
