/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Fabrics and processes for tests; see emu_fabric.h.
 */

#include "emu_fabric.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>


namespace rcv {

namespace {

typedef std::chrono::steady_clock test_clock;

test_clock::time_point deadline_after(double seconds)
{
    return test_clock::now() +
           std::chrono::duration_cast<test_clock::duration>(
                   std::chrono::duration<double>(seconds));
}

void nap()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

std::vector<char*> c_strings(const args_t &args)
{
    std::vector<char*> result;

    for (const std::string &arg : args) {
        result.push_back(const_cast<char*>(arg.c_str()));
    }
    result.push_back(NULL);
    return result;
}

std::string joined(const args_t &args)
{
    std::string result;

    for (const std::string &arg : args) {
        result += (result.empty() ? "" : " ") + arg;
    }
    return result;
}

double now_ms()
{
    return std::chrono::duration<double, std::milli>(
                   test_clock::now().time_since_epoch()).count();
}

} /* namespace */


bool wait_until(const std::function<bool()> &is_met)
{
    const test_clock::time_point deadline = deadline_after(patience);

    while (!is_met()) {
        if (test_clock::now() > deadline) {
            return false;
        }
        nap();
    }
    return true;
}


stopwatch::stopwatch() : m_begin(now_ms())
{
}

double stopwatch::ms() const
{
    return now_ms() - m_begin;
}


process::process(const args_t &args, const args_t &env) :
    m_pid(-1), m_output_fd(-1), m_running(false), m_status(0)
{
    std::vector<char*> argv   = c_strings(args);
    std::vector<char*> envadd = c_strings(env);
    pid_t parent              = getpid();

    m_output_fd = memfd_create("output", MFD_CLOEXEC);
    if (m_output_fd < 0) {
        throw std::runtime_error(std::string("memfd_create: ") +
                                 strerror(errno));
    }

    m_pid = fork();
    if (m_pid < 0) {
        close(m_output_fd);
        throw std::runtime_error(std::string("fork: ") + strerror(errno));
    }

    if (m_pid == 0) {
        /* End with a test that crashes */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(127);
        }
        dup2(m_output_fd, STDOUT_FILENO);
        dup2(m_output_fd, STDERR_FILENO);
        for (size_t i = 0; envadd[i] != NULL; ++i) {
            putenv(envadd[i]);
        }
        execvp(argv[0], &argv[0]);
        dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    m_running = true;
}

process::~process()
{
    if (m_running) {
        kill(SIGKILL);
        waitpid(m_pid, NULL, 0);
    }
    close(m_output_fd);
}

void process::reap(int wait_status)
{
    m_running = false;
    m_status  = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) :
                                         (128 + WTERMSIG(wait_status));
}

bool process::poll()
{
    int wait_status;

    if (m_running && (waitpid(m_pid, &wait_status, WNOHANG) == m_pid)) {
        reap(wait_status);
    }
    return m_running;
}

int process::wait(double seconds)
{
    const test_clock::time_point deadline = deadline_after(seconds);

    while (poll()) {
        if (test_clock::now() > deadline) {
            kill(SIGKILL);
            waitpid(m_pid, NULL, 0);
            m_running = false;
            m_status  = -1;
            break;
        }
        nap();
    }
    return m_status;
}

bool process::wait_for(const std::string &text, double seconds)
{
    const test_clock::time_point deadline = deadline_after(seconds);
    bool running;

    do {
        /* In this order, to get the last output of a process */
        running = poll();
        if (output().find(text) != std::string::npos) {
            return true;
        }
        nap();
    } while (running && (test_clock::now() < deadline));

    return false;
}

void process::kill(int signum)
{
    if (m_running) {
        ::kill(m_pid, signum);
    }
}

std::string process::output() const
{
    std::string text;
    char buffer[4096];
    ssize_t length;

    while ((length = pread(m_output_fd, buffer, sizeof(buffer),
                           text.size())) > 0) {
        text.append(buffer, length);
    }
    return text;
}


fabric::fabric(unsigned hosts, unsigned links, const args_t &options)
{
    static unsigned serial = 0;
    args_t args            = {"--hosts", std::to_string(hosts),
                              "--links", std::to_string(links)};

    m_name = "test." + std::to_string(getpid()) + "." +
             std::to_string(serial++);
    args.insert(args.end(), options.begin(), options.end());
    command("up", args);
}

fabric::~fabric()
{
    try {
        command("down");
    } catch (const std::runtime_error &e) {
        fprintf(stderr, "%s\n", e.what());
    }
}

process_ptr fabric::start(unsigned host, const args_t &args,
                          const args_t &env) const
{
    args_t full = {tool(), "exec", "-n", m_name, std::to_string(host), "--"};

    full.insert(full.end(), args.begin(), args.end());
    return process_ptr(new process(full, env));
}

void fabric::link(unsigned host, unsigned link, const std::string &state) const
{
    command("link",
            {std::to_string(host) + ":" + std::to_string(link), state});
}

std::string
fabric::command(const std::string &verb, const args_t &args) const
{
    args_t full = {tool(), verb, "-n", m_name};
    full.insert(full.end(), args.begin(), args.end());

    process proc(full);
    int status = proc.wait();
    if (status != 0) {
        throw std::runtime_error(joined(full) + ": status " +
                                 std::to_string(status) + ": " +
                                 proc.output());
    }
    return proc.output();
}

std::string fabric::tool()
{
    const char *path = getenv("RCV_MLX5EMU");

    return (path != NULL) ? path :
                            RCV_TOP_BUILDDIR "/src/tools/mlx5emu/mlx5emu";
}

} /* namespace rcv */
