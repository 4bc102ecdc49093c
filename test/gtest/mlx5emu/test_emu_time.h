/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Common code of the tests of fabrics with time.
 */

#ifndef MLX5EMU_TEST_EMU_TIME_H
#define MLX5EMU_TEST_EMU_TIME_H

#include "test_emu.h"

#include <algorithm>
#include <dirent.h>
#include <fstream>
#include <functional>
#include <unistd.h>

class test_emu_time : public emu::test_emu {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--latency", "5ms"};
    }

    static double median(std::vector<double> values)
    {
        std::sort(values.begin(), values.end());
        return values.at(values.size() / 2);
    }

    /* A machine that lacks CPUs disturbs a measurement: repeats it until it is in this
     * range. @return The last one. */
    static double undisturbed(double low, double high,
                              const std::function<double()> &measure)
    {
        double value = 0;

        rcv::wait_until([&] {
            value = measure();
            return (value >= low) && (value <= high);
        });
        return value;
    }

    /* Such a machine only makes times longer: no time may be shorter */
    static void expect_ms(double ms, double tolerance,
                          const std::function<double()> &measure)
    {
        EXPECT_NEAR(ms, undisturbed(0, ms + tolerance, [&] {
            double value = measure();

            EXPECT_GE(value, ms - tolerance);
            return value;
        }), tolerance);
    }

    enum { long_timeout = 18 }; /* 1.07 s */

    /* Bytes that were executed on a host, by a queue pair */
    uint64_t executed_bytes(unsigned host, uint64_t src_qpn = 0)
    {
        uint64_t bytes = 0;

        for (const emu::trace_entry &entry : trace(host)) {
            if (!entry.duplicate &&
                ((src_qpn == 0) || (entry.src_qpn == src_qpn))) {
                bytes += entry.length;
            }
        }
        return bytes;
    }

    /* Median of the time from posting to the completion */
    double round_trip(const std::function<void(unsigned)> &post,
                      unsigned count = 11)
    {
        std::vector<double> times;

        for (unsigned i = 0; i < count; ++i) {
            rcv::stopwatch watch;

            post(i);
            EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
            times.push_back(watch.ms());
        }
        return median(times);
    }

    std::vector<pid_t> keepers()
    {
        return keepers_of(fabric());
    }

    /* By its name and the fabric that it has mapped */
    static std::vector<pid_t> keepers_of(const rcv::fabric &fabric)
    {
        std::vector<pid_t> found;

        for (int pid : pids()) {
            std::string dir = "/proc/" + std::to_string(pid);
            std::ifstream comm(dir + "/comm"), maps(dir + "/maps");
            std::string name, line;

            std::getline(comm, name);
            if (name != "mlx5emu-keeper") {
                continue;
            }
            while (std::getline(maps, line)) {
                if (line.find("/mlx5emu." + fabric.name()) !=
                    std::string::npos) {
                    found.push_back(pid);
                    break;
                }
            }
        }
        return found;
    }

    /* A process without a waiting parent may remain as a zombie */
    static bool has_ended(pid_t pid)
    {
        std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
        std::string line;

        return !std::getline(stat, line) ||
               (line.find(") Z ") != std::string::npos);
    }

    /* CPU time that a process has used */
    static double cpu_ms(pid_t pid)
    {
        std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
        std::string word;
        double ticks = 0;

        for (int i = 1; i <= 15; ++i) {
            stat >> word;
            ticks += (i >= 14) ? std::stod(word) : 0;
        }
        return ticks * 1000 / sysconf(_SC_CLK_TCK);
    }

private:
    static std::vector<int> pids()
    {
        std::vector<int> result;
        DIR *dir = opendir("/proc");
        struct dirent *entry;

        while ((entry = readdir(dir)) != NULL) {
            if (isdigit(entry->d_name[0])) {
                result.push_back(atoi(entry->d_name));
            }
        }
        closedir(dir);
        return result;
    }
};

#endif
