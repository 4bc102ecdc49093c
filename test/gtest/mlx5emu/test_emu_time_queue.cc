/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Fabrics with time: rates, and queues that senders share.
 */

#include "test_emu_time.h"

class test_emu_rate : public test_emu_time {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--rate", "400Mbps", "--hosts", "3"};
    }

    /* Mbps of the wire, from the times of execution on a host: the median of its
     * messages, because a busy machine may disturb one */
    double rate(unsigned host, unsigned count = num_writes)
    {
        std::vector<emu::trace_entry> entries = measured(host);
        const size_t num                      = entries.size() / count;
        std::vector<double> rates;

        for (unsigned i = 0; i < count; ++i) {
            double bytes = 0;

            for (size_t j = i * num + 1; j < (i + 1) * num; ++j) {
                bytes += entries[j].length + headers;
            }
            rates.push_back(bytes * 8e3 / (entries[(i + 1) * num - 1].time_ns -
                                           entries[i * num].time_ns));
        }
        return median(rates);
    }

    /* @a transfer has this rate, if the machine was not busy meanwhile: otherwise again,
     * in a new fabric */
    void expect_rate(unsigned host, double mbps, const std::function<void()> &transfer,
                     unsigned count = num_writes)
    {
        bool is_first = true;

        EXPECT_NEAR(mbps, undisturbed(mbps * 0.95, mbps * 1.05, [&] {
            if (!is_first) {
                renew_fabric();
            }
            is_first = false;
            transfer();
            return rate(host, count);
        }), mbps * 0.05);
    }

    void write(emu::side &from, const emu::side &to)
    {
        for (unsigned i = 0; i < num_writes; ++i) {
            EXPECT_TRUE(from.write(to, i, 0, size, 0).completes(IBV_WC_SUCCESS));
        }
    }

    /* A sender's part of the bytes, while two send to a host */
    double share(unsigned host, const emu::side &one, const emu::side &other)
    {
        std::map<uint64_t, uint64_t> first, last, bytes;
        uint64_t begin, end;

        for (const emu::trace_entry &entry : measured(host)) {
            first.insert({entry.src_qpn, entry.time_ns});
            last[entry.src_qpn] = entry.time_ns;
        }
        begin = std::max(first[one.qpn], first[other.qpn]);
        end   = std::min(last[one.qpn], last[other.qpn]);
        for (const emu::trace_entry &entry : measured(host)) {
            if ((entry.time_ns >= begin) && (entry.time_ns <= end)) {
                bytes[entry.src_qpn] += entry.length;
            }
        }
        return bytes[one.qpn] / double(bytes[one.qpn] + bytes[other.qpn]);
    }

    /* Two senders share the link to host 2 */
    void expect_equal_shares(unsigned host0, unsigned host1)
    {
        EXPECT_NEAR(0.5, undisturbed(0.45, 0.55, [&] {
            double share = 0;

            expect_rate(2, 400, [&] {
                renew_fabric();
                share = share_of_two(host0, host1);
            }, 1);
            return share;
        }), 0.05);
    }

    /* Each has its own receiver. Links are slow until both have posted everything, however
     * long that takes */
    double share_of_two(unsigned host0, unsigned host1)
    {
        emu::side c(fabric(), host0, 0), d(fabric(), 2, 0);
        emu::side e(fabric(), host1, 0), f(fabric(), 2, 0);

        c.connect(d, emu::patient_timeout);
        d.connect(c, emu::patient_timeout);
        e.connect(f, emu::patient_timeout);
        f.connect(e, emu::patient_timeout);
        set_rate(host0, host1, "1Mbps");
        for (unsigned i = 0; i < 4; ++i) {
            c.write(d, i, 0, size, 0);
            e.write(f, i, 0, size, 0);
        }
        set_rate(host0, host1, "400Mbps");
        m_skip = size / 1024 * 2; /* Of 8: more than was sent until then, in 34 s */
        for (unsigned i = 0; i < 4; ++i) {
            EXPECT_TRUE(c.completes(i, IBV_WC_SUCCESS));
            EXPECT_TRUE(e.completes(i, IBV_WC_SUCCESS));
        }
        return share(2, c, e);
    }

    void set_rate(unsigned host0, unsigned host1, const std::string &rate)
    {
        for (unsigned host : std::set<unsigned>{host0, host1}) {
            fabric().command("link", {std::to_string(host) + ":0", "rate", rate});
        }
    }

    /* Executions on a host, without those before a measurement */
    std::vector<emu::trace_entry> measured(unsigned host)
    {
        std::vector<emu::trace_entry> entries = trace(host);

        entries.erase(entries.begin(),
                      entries.begin() + std::min(m_skip, entries.size()));
        EXPECT_GT(entries.size(), size / 1024) << "too little to measure";
        return entries;
    }

    size_t m_skip = 0;

    enum { num_writes = 5 };

    static const uint64_t size;
    static const unsigned headers;
};

const uint64_t test_emu_rate::size    = 2ul << 20;
const unsigned test_emu_rate::headers = 26;

/* 42 ms */
UCS_TEST_F(test_emu_rate, of_a_write) {
    expect_rate(1, 400, [&] {
        make_pair(0, emu::patient_timeout);
        a->fill(0, size, 1);
        write(*a, *b);
    });
    EXPECT_EQ(size, b->match(0, size, 1));
    EXPECT_EQ(0u, counter(0, 0, "retransmitted_packets"));
}

/* Read responses arrive at the rate of the responder's link */
UCS_TEST_F(test_emu_rate, of_a_read) {
    const unsigned num    = 8;
    const double ideal_ms = num * size * 8e3 / 400e6;

    make_pair(0, emu::patient_timeout);
    b->fill(0, size, 1);
    expect_ms(ideal_ms * 1.03, ideal_ms * 0.05, [&] { /* headers: 3 % */
        rcv::stopwatch watch;

        for (unsigned i = 0; i < num; ++i) {
            a->read(*b, i, 0, size, 0);
        }
        for (unsigned i = 0; i < num; ++i) {
            EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
        }
        EXPECT_GE(watch.ms(), ideal_ms);
        return watch.ms();
    });
    EXPECT_EQ(size, a->match(0, size, 1));
    EXPECT_EQ(0u, counter(0, 0, "retransmitted_packets"));
}

UCS_TEST_F(test_emu_rate, of_the_slower_link) {
    expect_rate(1, 200, [&] {
        make_pair(0, emu::patient_timeout);
        fabric().command("link", {"1:0", "rate", "200Mbps"});
        write(*a, *b);
    });
    expect_rate(0, 100, [&] {
        make_pair(0, emu::patient_timeout);
        fabric().command("link", {"0:0", "rate", "100Mbps"});
        write(*b, *a);
    });
}

/* Both directions of a link have the full rate */
UCS_TEST_F(test_emu_rate, of_both_directions) {
    EXPECT_NEAR(400, undisturbed(380, 420, [&] {
        expect_rate(1, 400, [&] {
            renew_fabric();
            make_pair(0, emu::patient_timeout);
            for (unsigned i = 0; i < num_writes; ++i) {
                a->write(*b, i, 0, size, 0);
                b->write(*a, i, size, size, size);
                EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
                EXPECT_TRUE(b->completes(i, IBV_WC_SUCCESS));
            }
        });
        return rate(0);
    }), 20);
}

UCS_TEST_F(test_emu_rate, two_processes_share_their_port) {
    expect_equal_shares(0, 0);
}

/* The switch serves both ports in turn, and drops nothing of either */
UCS_TEST_F(test_emu_rate, two_hosts_share_the_link_of_a_third) {
    expect_equal_shares(0, 1);
    EXPECT_EQ(0u, counter(0, 0, "dropped_by_queue"));
    EXPECT_EQ(0u, counter(0, 0, "retransmitted_packets"));
}

/* The queue of a busy port is longer than the retry timer */
UCS_TEST_F(test_emu_rate, timer_is_shorter_than_the_queue) {
    std::vector<std::unique_ptr<emu::side>> senders, receivers;
    const unsigned num = 4;

    fabric().command("link", {"0:0", "rate", "1Mbps"});
    for (unsigned i = 0; i < num; ++i) {
        senders.emplace_back(new emu::side(fabric(), 0, 0));
        receivers.emplace_back(new emu::side(fabric(), 1, 0));
        senders[i]->connect(*receivers[i], (i == num - 1) ? (unsigned)long_timeout :
                            (unsigned)emu::patient_timeout, 7);
        receivers[i]->connect(*senders[i], emu::patient_timeout);
    }

    /* 520 ms of each */
    for (unsigned i = 0; i < num; ++i) {
        senders[i]->fill(0, 65536, i);
        senders[i]->write(*receivers[i], 1, 0, 65536, 0);
    }
    for (unsigned i = 0; i < num; ++i) {
        EXPECT_TRUE(senders[i]->completes(1, IBV_WC_SUCCESS));
        EXPECT_EQ(65536u, receivers[i]->match(0, 65536, i));
    }
    EXPECT_GT(counter(0, 0, "timeouts"), 0u);
    EXPECT_GT(counter(0, 0, "retransmitted_packets"), 0u);
}


class test_emu_lossy : public test_emu_rate {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--rate", "400Mbps", "--hosts", "3", "--queue", "64k",
                "--lossy"};
    }
};

/* Dropped packets are sent again */
UCS_TEST_F(test_emu_lossy, full_queue_drops) {
    const uint64_t lossy_size = 256 * 1024;

    make_pair(0, 17, 7);
    fabric().command("link", {"1:0", "rate", "200Mbps"});
    a->fill(0, lossy_size, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, lossy_size, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(lossy_size, b->match(0, lossy_size, 1));
    EXPECT_GT(counter(0, 0, "dropped_by_queue"), 0u);
}
