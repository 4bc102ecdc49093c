/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An emulated fabric for the duration of a test, and processes on its hosts. Used by
 * the suites that need NICs. It uses only the emulator's command.
 */

#ifndef RCV_TEST_EMU_FABRIC_H
#define RCV_TEST_EMU_FABRIC_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rcv {

typedef std::vector<std::string> args_t;

/** Seconds to wait for what must happen. They only end a hang: no test depends on the
 *  speed of the machine. */
constexpr double patience = 120.0;

/** Waits until a condition is met; false if that takes longer than patience. */
bool wait_until(const std::function<bool()> &is_met);


/** Time since its construction. */
class stopwatch {
public:
    stopwatch();

    double ms() const;

private:
    const double m_begin;
};


/**
 * A child process whose output is kept. The destructor kills it if it still runs.
 */
class process {
public:
    /**
     * Starts a program.
     *
     * @param args  Path (or name in PATH) and arguments.
     * @param env   "NAME=value" to add to the environment.
     */
    process(const args_t &args, const args_t &env = args_t());
    ~process();

    process(const process &)            = delete;
    process &operator=(const process &) = delete;

    /**
     * Waits until it exits.
     *
     * @param seconds  Time limit, after which it is killed.
     *
     * @return Exit status; 128 + number of the signal that ended it; -1 if it was
     * killed at
     *         the time limit.
     */
    int wait(double seconds = patience);

    /** Waits until the output has @a text in it; false if that takes longer
     *  than @a seconds or the process ends without. */
    bool wait_for(const std::string &text, double seconds = patience);

    /** Sends a signal to this process. */
    void kill(int signum);

    /** Its output to stdout and stderr so far. */
    std::string output() const;

    pid_t pid() const
    {
        return m_pid;
    }

private:
    bool poll();
    void reap(int wait_status);

    pid_t m_pid;
    int   m_output_fd;
    bool  m_running;
    int   m_status;
};

typedef std::unique_ptr<process> process_ptr;


/**
 * "mlx5emu up" in the constructor, "mlx5emu down" in the destructor, under a name that
 * no other test uses. Errors are thrown as std::runtime_error, with the command's
 * message.
 */
class fabric {
public:
    /**
     * @param hosts    Number of hosts.
     * @param links    Number of links of each.
     * @param options  More options of "mlx5emu up".
     */
    fabric(unsigned hosts = 2, unsigned links = 2,
           const args_t &options = args_t());
    ~fabric();

    fabric(const fabric &)            = delete;
    fabric &operator=(const fabric &) = delete;

    const std::string &name() const
    {
        return m_name;
    }

    /** Starts a program on a host. */
    process_ptr start(unsigned host, const args_t &args,
                      const args_t &env = args_t()) const;

    /** Sets a link: "up", "down" or "silent". */
    void link(unsigned host, unsigned link, const std::string &state) const;

    /** Runs any verb of the command on this fabric; its output. */
    std::string command(const std::string &verb,
                        const args_t &args = args_t()) const;

    /** The command, of the build tree or $RCV_MLX5EMU. */
    static std::string tool();

private:
    std::string m_name;
};

} /* namespace rcv */

#endif
