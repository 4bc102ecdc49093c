/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_frag.h>
}

#include <algorithm>
#include <random>
#include <string>
#include <vector>

class test_varuna_frag : public ucs::test {
protected:
    typedef std::vector<std::string> datagrams_t;

    enum { AM_ID = 7 };

    virtual void init()
    {
        ucs::test::init();
        ASSERT_UCS_OK(uct_varuna_frags_init(&m_frags));
    }

    virtual void cleanup()
    {
        uct_varuna_frags_cleanup(&m_frags);
        ucs::test::cleanup();
    }

    static std::string message(size_t length, unsigned seed)
    {
        std::string msg(length, 0);

        for (size_t i = 0; i < length; ++i) {
            msg[i] = (i * 131) + (seed * 7) + (i >> 8);
        }
        return msg;
    }

    static datagrams_t cut(const std::string &msg, size_t mtu, uint64_t sender = 1,
                           uint32_t number = 0)
    {
        uct_varuna_frag_hdr_t hdrs[UCT_VARUNA_FRAG_MAX];
        std::string data = msg + std::string(sizeof(uct_varuna_frag_sum_t), 0);
        unsigned count   = uct_varuna_frag_cut(hdrs, &data[0], sender, number, AM_ID,
                                               uct_varuna_frag_room(mtu), msg.size());
        datagrams_t result;

        EXPECT_EQ(uct_varuna_frag_count(uct_varuna_frag_room(mtu), msg.size()), count);
        for (unsigned i = 0; i < count; ++i) {
            result.push_back(std::string((const char*)&hdrs[i], sizeof(hdrs[i])) +
                             data.substr(hdrs[i].offset, hdrs[i].size));
            EXPECT_LE(result.back().size(), mtu);
        }
        return result;
    }

    /* @return The message that is complete with a datagram, "-" for none */
    std::string take(std::string datagram,
                     ucs_status_t expected = UCS_INPROGRESS, uint32_t qp_num = 1)
    {
        uct_varuna_frag_source_t source;
        uint8_t am_id;
        void *msg;
        size_t length;
        ucs_status_t status;

        uct_varuna_frag_source_init(&source, NULL, 1, qp_num);
        status = uct_varuna_frag_take(&m_frags, &source, &datagram[0],
                                      datagram.size(), &am_id, &msg, &length);
        EXPECT_LE(m_frags.bytes, UCT_VARUNA_FRAG_MAX_BYTES);
        if (status != UCS_OK) {
            EXPECT_EQ(expected, status);
            return "-";
        }

        EXPECT_EQ(AM_ID, am_id);
        return std::string((const char*)msg, length);
    }

    /* @return A part of a message as somebody may write it who keeps to no rule */
    static std::string part(unsigned index, unsigned offset, const std::string &data,
                            unsigned length, uint32_t number)
    {
        uct_varuna_frag_hdr_t hdr = {};

        hdr.magic   = UCT_VARUNA_WIRE_MAGIC;
        hdr.version = UCT_VARUNA_WIRE_VERSION;
        hdr.am_id   = AM_ID;
        hdr.number  = number;
        hdr.sender  = 1;
        hdr.length  = length;
        hdr.offset  = offset;
        hdr.size    = data.size();
        hdr.index   = index;
        return std::string((const char*)&hdr, sizeof(hdr)) + data;
    }

    /* Anything but a message that is complete with it */
    void expect_nothing(std::string datagram, uint32_t qp_num = 1)
    {
        uct_varuna_frag_source_t source;
        uint8_t am_id;
        void *msg;
        size_t length;

        uct_varuna_frag_source_init(&source, NULL, 1, qp_num);
        EXPECT_NE(UCS_OK, uct_varuna_frag_take(&m_frags, &source, &datagram[0],
                                               datagram.size(), &am_id, &msg, &length));
    }

    /* @return The same datagram with another header */
    template<typename F> static std::string change(const std::string &datagram, F func)
    {
        uct_varuna_frag_hdr_t hdr;

        memcpy(&hdr, datagram.data(), sizeof(hdr));
        func(hdr);
        return std::string((const char*)&hdr, sizeof(hdr)) + datagram.substr(sizeof(hdr));
    }

    uct_varuna_frags_t m_frags;
};

UCS_TEST_F(test_varuna_frag, room) {
    EXPECT_EQ(0u, uct_varuna_frag_room(0));
    EXPECT_EQ(0u, uct_varuna_frag_room(128));
    for (size_t mtu = 256; mtu <= 4096; mtu *= 2) {
        EXPECT_EQ(mtu - sizeof(uct_varuna_frag_hdr_t), uct_varuna_frag_room(mtu));
    }
}

UCS_TEST_F(test_varuna_frag, all_lengths_and_mtus) {
    for (size_t mtu = 256; mtu <= 4096; mtu *= 2) {
        for (size_t length = 0; length <= UCT_VARUNA_FRAG_MAX_MSG; length += 61) {
            std::string msg       = message(length, mtu);
            datagrams_t datagrams = cut(msg, mtu, 1, length);

            for (size_t i = 0; i + 1 < datagrams.size(); ++i) {
                EXPECT_EQ("-", take(datagrams[i]));
            }
            ASSERT_EQ(msg, take(datagrams.back()));
        }
    }
}

UCS_TEST_F(test_varuna_frag, lost_duplicate_and_overtaken) {
    std::string msg = message(UCT_VARUNA_FRAG_MAX_MSG, 0);
    datagrams_t all = cut(msg, 1024);
    std::mt19937 rng(1);

    ASSERT_EQ(5u, all.size());
    for (unsigned lost = 0; lost < all.size(); ++lost) {
        datagrams_t some = cut(msg, 1024, 2, lost);

        some.erase(some.begin() + lost);
        some.push_back(some.front());
        std::shuffle(some.begin(), some.end(), rng);
        for (const std::string &datagram : some) {
            EXPECT_EQ("-", take(datagram));
        }
    }

    std::shuffle(all.begin(), all.end(), rng);
    for (size_t i = 0; i + 1 < all.size(); ++i) {
        EXPECT_EQ("-", take(all[i]));
    }
    EXPECT_EQ(msg, take(all.back()));
}

UCS_TEST_F(test_varuna_frag, many_senders) {
    const unsigned num_senders = 1000;
    std::vector<datagrams_t> all;

    for (unsigned i = 0; i < num_senders; ++i) {
        all.push_back(cut(message(3000, i), 1024, 100 + i));
    }

    for (unsigned part = 0; part < 4; ++part) {
        for (unsigned i = 0; i < all.size(); ++i) {
            EXPECT_EQ((part < 3) ? "-" : message(3000, i),
                      take(all[i][part], UCS_INPROGRESS, i));
        }
    }
    EXPECT_EQ(0u, m_frags.bytes);
}

UCS_TEST_F(test_varuna_frag, oldest_makes_room) {
    std::vector<datagrams_t> all;
    size_t bytes;

    do {
        unsigned i = all.size();

        bytes = m_frags.bytes;
        all.push_back(cut(message(3000, i), 2048, 100 + i));
        EXPECT_EQ("-", take(all[i][0], UCS_INPROGRESS, i));
    } while (m_frags.bytes > bytes);

    /* The others are complete; of the first one only the last part is known */
    EXPECT_GT(all.size(), 1000u);
    for (unsigned i = 1; i < all.size(); ++i) {
        EXPECT_EQ(message(3000, i), take(all[i][1], UCS_INPROGRESS, i));
    }
    EXPECT_EQ(0u, m_frags.bytes);
    EXPECT_EQ("-", take(all[0][1], UCS_INPROGRESS, 0));
}

/* One source that completes nothing takes no place from the others */
UCS_TEST_F(test_varuna_frag, flood_of_one_source) {
    datagrams_t victim = cut(message(3000, 1), 1024, 1, 1);
    datagrams_t newest;

    EXPECT_EQ("-", take(victim[0], UCS_INPROGRESS, 1));
    EXPECT_EQ("-", take(victim[1], UCS_INPROGRESS, 1));
    EXPECT_EQ("-", take(victim[2], UCS_INPROGRESS, 1));
    for (unsigned i = 0; i < 10000; ++i) {
        newest = cut(message(3000, i), 2048, 2, i);
        EXPECT_EQ("-", take(newest[0], UCS_INPROGRESS, 2));
    }

    EXPECT_EQ(message(3000, 1), take(victim[3], UCS_INPROGRESS, 1));
    EXPECT_EQ(message(3000, 9999), take(newest[1], UCS_INPROGRESS, 2));
    EXPECT_LT(m_frags.bytes, UCT_VARUNA_FRAG_MAX_SAME * 4096u);
}

/* What is in a place from the message before, its secret say, must not become a part of
 * the next one: as many bytes come as the message has, but some of them twice */
UCS_TEST_F(test_varuna_frag, overlap_leaves_no_hole) {
    const std::string mine(1000, 'm');

    for (unsigned i = 0; i < 100; ++i) {
        datagrams_t all = cut(std::string(3000, 's'), 2048, 1, 1000 + i);

        EXPECT_EQ("-", take(all[0]));
        EXPECT_EQ(std::string(3000, 's'), take(all[1]));
    }

    expect_nothing(part(0, 0, mine, 3000, 1));        /* Twice the same place */
    expect_nothing(part(1, 0, mine, 3000, 1));
    expect_nothing(part(2, 0, mine, 3000, 1));
    expect_nothing(part(0, 1000, mine, 3000, 2));     /* Without the beginning */
    expect_nothing(part(1, 1500, mine, 3000, 2));
    expect_nothing(part(2, 2000, mine, 3000, 2));
    expect_nothing(part(0, 0, mine, 3000, 3));        /* Of different tiles */
    expect_nothing(part(1, 500, mine.substr(0, 500), 3000, 3));
    expect_nothing(part(3, 1500, mine.substr(0, 500), 3000, 3));
    expect_nothing(part(2, 2000, mine, 3000, 3));
    expect_nothing(part(0, 0, mine, 1500, 4));        /* The last one is the longest */
    expect_nothing(part(1, 500, mine, 1500, 4));
    expect_nothing(part(9, 0, mine, 1000 * 30, 5));   /* Too many, or too long */
    expect_nothing(part(0, 0, "m", UCT_VARUNA_FRAG_MAX_MSG, 6));
}

/* A message consists of what one queue pair has sent, whatever its datagrams say */
UCS_TEST_F(test_varuna_frag, parts_of_different_sources_stay_apart) {
    datagrams_t mine   = cut(message(3000, 1), 1024);
    datagrams_t others = cut(message(3000, 2), 1024);

    EXPECT_EQ("-", take(mine[0], UCS_INPROGRESS, 1));
    EXPECT_EQ("-", take(others[1], UCS_INPROGRESS, 2));
    EXPECT_EQ("-", take(others[2], UCS_INPROGRESS, 2));
    EXPECT_EQ("-", take(others[3], UCS_INPROGRESS, 2));
    EXPECT_EQ("-", take(mine[1], UCS_INPROGRESS, 1));
    EXPECT_EQ("-", take(mine[2], UCS_INPROGRESS, 1));
    EXPECT_EQ(message(3000, 1), take(mine[3], UCS_INPROGRESS, 1));
    EXPECT_EQ(message(3000, 2), take(others[0], UCS_INPROGRESS, 2));
}

/* A sender whose parts of two messages have the same number makes none of them */
UCS_TEST_F(test_varuna_frag, head_and_tail_of_different_messages) {
    for (size_t mtu = 256; mtu <= 2048; mtu *= 2) {
        datagrams_t one   = cut(message(3000, 1), mtu, 1, mtu);
        datagrams_t other = cut(message(3000, 2), mtu, 1, mtu);

        for (size_t cut_at = 1; cut_at < one.size(); ++cut_at) {
            for (size_t i = 0; i < one.size(); ++i) {
                EXPECT_EQ("-", take((i < cut_at) ? one[i] : other[i],
                                    ((i + 1) < one.size()) ? UCS_INPROGRESS :
                                    UCS_ERR_IO_ERROR));
            }
        }
    }
}

/* Nor does a message pass whose bytes or number have changed, be it one datagram */
UCS_TEST_F(test_varuna_frag, changed) {
    const std::string good = cut(message(100, 1), 1024)[0];

    for (size_t i = 0; i < (good.size() - sizeof(uct_varuna_frag_hdr_t)); ++i) {
        std::string bad = good;

        bad[sizeof(uct_varuna_frag_hdr_t) + i] ^= 1 << (i % 8);
        EXPECT_EQ("-", take(bad, UCS_ERR_IO_ERROR));
    }

    EXPECT_EQ("-", take(change(good, [](uct_varuna_frag_hdr_t &h) { ++h.number; }),
                        UCS_ERR_IO_ERROR));
    EXPECT_EQ("-", take(change(good, [](uct_varuna_frag_hdr_t &h) { ++h.sender; }),
                        UCS_ERR_IO_ERROR));
    EXPECT_EQ("-", take(change(good, [](uct_varuna_frag_hdr_t &h) { ++h.am_id; }),
                        UCS_ERR_IO_ERROR));
    EXPECT_EQ("-", take(part(0, 0, "m", 1, 1), UCS_ERR_INVALID_PARAM));
    EXPECT_EQ(message(100, 1), take(good));
}

/* A message of another version is handed over as it is, so that the peer can be told; a part
 * of it is none of ours */
UCS_TEST_F(test_varuna_frag, other_version) {
    auto older = [](uct_varuna_frag_hdr_t &h) { --h.version; };
    datagrams_t all = cut(message(1500, 1), 1024);
    std::string one = cut(message(100, 1), 1024)[0];
    uct_varuna_frag_source_t source;
    uint8_t am_id;
    void *msg;
    size_t length;

    uct_varuna_frag_source_init(&source, NULL, 1, 1);
    one = change(one, older);
    ASSERT_UCS_OK(uct_varuna_frag_take(&m_frags, &source, &one[0], one.size(), &am_id,
                                       &msg, &length));
    EXPECT_EQ(100 + sizeof(uct_varuna_frag_sum_t), length);

    EXPECT_EQ("-", take(all[0]));
    EXPECT_EQ("-", take(change(all[1], older), UCS_ERR_INVALID_PARAM));
    EXPECT_EQ(message(1500, 1), take(all[1]));
}

/* Whatever the network does with the datagrams of several sources: each message that is
 * handed over was sent, and most of those are handed over of which no part was lost. */
UCS_TEST_F(test_varuna_frag, lossy_network) {
    const unsigned num_sources = 8, num_messages = 60;
    unsigned num_whole         = 0;

    for (unsigned seed = 1; seed <= 50; ++seed) {
        std::vector<std::pair<unsigned, std::string> > wire; /* Source, datagram */
        std::vector<std::vector<bool> > got(num_sources,
                                            std::vector<bool>(num_messages));
        std::mt19937 rng(seed);

        SCOPED_TRACE("seed " + std::to_string(seed));
        for (unsigned number = 0; number < num_messages; ++number) {
            for (unsigned i = 0; i < num_sources; ++i) {
                for (const std::string &datagram :
                     cut(message(rng() % 4097, i + (number * num_sources)),
                         256 << (i % 4), (seed << 8) + i, number)) {
                    if ((rng() % 50) != 0) {
                        wire.push_back({i, datagram});
                    }
                    if ((rng() % 50) == 0) {
                        wire.push_back({i, datagram});
                    }
                }
            }
        }

        for (size_t i = 0; i < wire.size(); ++i) {
            std::swap(wire[i], wire[std::min(i + (rng() % 8), wire.size() - 1)]);
        }

        for (const auto &entry : wire) {
            std::string msg = take(entry.second, UCS_INPROGRESS, entry.first);
            uct_varuna_frag_hdr_t hdr;

            memcpy(&hdr, entry.second.data(), sizeof(hdr));
            if (msg != "-") {
                ASSERT_EQ(message(msg.size(), entry.first + (hdr.number * num_sources)),
                          msg);
                ASSERT_EQ(hdr.length, msg.size() + sizeof(uct_varuna_frag_sum_t));
                num_whole += !got[entry.first][hdr.number];
                got[entry.first][hdr.number] = true;
            }
        }
    }

    EXPECT_GT(num_whole, (50 * num_sources * num_messages) / 2);
}

/* A part of another destination within the process is as little welcome */
UCS_TEST_F(test_varuna_frag, parts_of_different_am_stay_apart) {
    datagrams_t all = cut(message(3000, 1), 1024);

    EXPECT_EQ("-", take(all[0]));
    EXPECT_EQ("-", take(change(all[1], [](uct_varuna_frag_hdr_t &h) { ++h.am_id; }),
                        UCS_ERR_INVALID_PARAM));
}

UCS_TEST_F(test_varuna_frag, source) {
    uint8_t grh[UCT_VARUNA_FRAG_GRH_LEN];
    uct_varuna_frag_source_t one, other;

    for (unsigned i = 0; i < sizeof(grh); ++i) {
        grh[i] = i;
    }

    uct_varuna_frag_source_init(&one, NULL, 3, 4);
    EXPECT_EQ(3u, one.lid);
    EXPECT_EQ(4u, one.qp_num);
    EXPECT_EQ(std::string(16, 0), std::string((const char*)one.gid, 16));

    grh[0] = 0x60;
    uct_varuna_frag_source_init(&one, grh, 3, 4);
    EXPECT_EQ(0, memcmp(one.gid, grh + 8, 16));

    /* IPv4: nothing before its header counts, nor what else is in it */
    memset(grh, 0, 20);
    grh[20] = 0x45;
    uct_varuna_frag_source_init(&one, grh, 3, 4);
    EXPECT_EQ(0, memcmp(one.gid + 12, grh + 32, 4));
    memset(grh + 22, 0x77, 8);
    uct_varuna_frag_source_init(&other, grh, 3, 4);
    EXPECT_EQ(0, memcmp(&one, &other, sizeof(one)));
    ++grh[35];
    uct_varuna_frag_source_init(&other, grh, 3, 4);
    EXPECT_NE(0, memcmp(&one, &other, sizeof(one)));
}

UCS_TEST_F(test_varuna_frag, anything_else_is_refused) {
    std::string good = cut(message(3000, 0), 1024)[1];
    std::mt19937 rng(1);

    for (size_t size = 0; size < good.size(); ++size) {
        EXPECT_EQ("-", take(good.substr(0, size), UCS_ERR_INVALID_PARAM));
    }

    const std::vector<void (*)(uct_varuna_frag_hdr_t&)> wrong = {
        [](uct_varuna_frag_hdr_t &h) { h.magic ^= 1; },
        [](uct_varuna_frag_hdr_t &h) { h.length = UCT_VARUNA_FRAG_MAX_LENGTH + 1; },
        [](uct_varuna_frag_hdr_t &h) { h.length = h.offset + h.size - 1; },
        [](uct_varuna_frag_hdr_t &h) { h.offset = UINT16_MAX; },
        [](uct_varuna_frag_hdr_t &h) { h.size = 1; },
        [](uct_varuna_frag_hdr_t &h) { h.index = UCT_VARUNA_FRAG_MAX; }
    };
    for (auto func : wrong) {
        EXPECT_EQ("-", take(change(good, func), UCS_ERR_INVALID_PARAM));
    }

    /* A message of two lengths */
    EXPECT_EQ("-", take(good));
    EXPECT_EQ("-", take(change(good, [](uct_varuna_frag_hdr_t &h) { h.length = 4000; }),
                        UCS_ERR_INVALID_PARAM));

    /* Whatever it is, it is taken without harm */
    for (unsigned i = 0; i < 100000; ++i) {
        std::string any = good;

        for (unsigned change = 0; change < 4; ++change) {
            any[rng() % sizeof(uct_varuna_frag_hdr_t)] = rng();
        }
        memcpy(&any[0], good.data(), sizeof(uint16_t));

        uct_varuna_frag_source_t source;
        uint8_t am_id;
        void *msg;
        size_t length;
        uct_varuna_frag_source_init(&source, NULL, 1, rng() % 4);
        (void)uct_varuna_frag_take(&m_frags, &source, &any[0], any.size(), &am_id,
                                   &msg, &length);
    }
}
