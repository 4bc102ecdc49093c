/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_frag.h>
}

#include <algorithm>
#include <memory>
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
        m_frags.reset(new uct_varuna_frags_t());
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
        unsigned count = uct_varuna_frag_cut(hdrs, sender, number, AM_ID,
                                             uct_varuna_frag_room(mtu), msg.size());
        datagrams_t result;

        for (unsigned i = 0; i < count; ++i) {
            result.push_back(std::string((const char*)&hdrs[i], sizeof(hdrs[i])) +
                             msg.substr(hdrs[i].offset, hdrs[i].size));
            EXPECT_LE(result.back().size(), mtu);
        }
        return result;
    }

    /* @return The message that is complete with a datagram, "-" for none */
    std::string take(const std::string &datagram,
                     ucs_status_t expected = UCS_INPROGRESS, uint32_t qp_num = 1)
    {
        uct_varuna_frag_source_t source;
        uint8_t am_id;
        const void *msg;
        size_t length;
        ucs_status_t status;

        uct_varuna_frag_source_init(&source, NULL, 1, qp_num);
        status = uct_varuna_frag_take(m_frags.get(), &source, datagram.data(),
                                      datagram.size(), &am_id, &msg, &length);
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
    void expect_nothing(const std::string &datagram, uint32_t qp_num = 1)
    {
        uct_varuna_frag_source_t source;
        uint8_t am_id;
        const void *msg;
        size_t length;

        uct_varuna_frag_source_init(&source, NULL, 1, qp_num);
        EXPECT_NE(UCS_OK, uct_varuna_frag_take(m_frags.get(), &source, datagram.data(),
                                               datagram.size(), &am_id, &msg, &length));
    }

    std::unique_ptr<uct_varuna_frags_t> m_frags;
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
    std::vector<datagrams_t> all;

    for (unsigned i = 0; i < UCT_VARUNA_FRAG_MAX_OPEN; ++i) {
        all.push_back(cut(message(3000, i), 1024, 100 + i));
    }

    for (unsigned part = 0; part < 3; ++part) {
        for (unsigned i = 0; i < all.size(); ++i) {
            EXPECT_EQ((part < 2) ? "-" : message(3000, i),
                      take(all[i][part], UCS_INPROGRESS, i));
        }
    }
}

UCS_TEST_F(test_varuna_frag, oldest_makes_room) {
    std::vector<datagrams_t> all;

    for (unsigned i = 0; i <= UCT_VARUNA_FRAG_MAX_OPEN; ++i) {
        all.push_back(cut(message(3000, i), 1024, 100 + i));
        EXPECT_EQ("-", take(all[i][0], UCS_INPROGRESS, i));
        EXPECT_EQ("-", take(all[i][1], UCS_INPROGRESS, i));
    }

    /* The others are complete; of the first one only the last part is known */
    for (unsigned i = 1; i < all.size(); ++i) {
        EXPECT_EQ(message(3000, i), take(all[i][2], UCS_INPROGRESS, i));
    }
    EXPECT_EQ("-", take(all[0][2], UCS_INPROGRESS, 0));
}

/* One source that completes nothing takes no place from the others */
UCS_TEST_F(test_varuna_frag, flood_of_one_source) {
    datagrams_t victim = cut(message(3000, 1), 1024, 1, 1);
    datagrams_t newest;

    EXPECT_EQ("-", take(victim[0], UCS_INPROGRESS, 1));
    EXPECT_EQ("-", take(victim[1], UCS_INPROGRESS, 1));
    for (unsigned i = 0; i < (3 * UCT_VARUNA_FRAG_MAX_OPEN); ++i) {
        newest = cut(message(3000, i), 1024, 2, i);
        EXPECT_EQ("-", take(newest[0], UCS_INPROGRESS, 2));
    }

    EXPECT_EQ(message(3000, 1), take(victim[2], UCS_INPROGRESS, 1));
    EXPECT_EQ("-", take(newest[1], UCS_INPROGRESS, 2));
    EXPECT_EQ(message(3000, (3 * UCT_VARUNA_FRAG_MAX_OPEN) - 1),
              take(newest[2], UCS_INPROGRESS, 2));
}

/* What is in a place from the message before, its secret say, must not become a part of
 * the next one: as many bytes come as the message has, but some of them twice */
UCS_TEST_F(test_varuna_frag, overlap_leaves_no_hole) {
    const std::string mine(1000, 'm');

    for (unsigned i = 0; i < UCT_VARUNA_FRAG_MAX_OPEN; ++i) {
        datagrams_t all = cut(std::string(3000, 's'), 1024, 1, 1000 + i);

        EXPECT_EQ("-", take(all[0]));
        EXPECT_EQ("-", take(all[1]));
        EXPECT_EQ(std::string(3000, 's'), take(all[2]));
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
    EXPECT_EQ("-", take(mine[1], UCS_INPROGRESS, 1));
    EXPECT_EQ(message(3000, 1), take(mine[2], UCS_INPROGRESS, 1));
    EXPECT_EQ(message(3000, 2), take(others[0], UCS_INPROGRESS, 2));
}

/* A part of another destination within the process is as little welcome */
UCS_TEST_F(test_varuna_frag, parts_of_different_am_stay_apart) {
    datagrams_t all = cut(message(3000, 1), 1024);
    uct_varuna_frag_hdr_t hdr;

    EXPECT_EQ("-", take(all[0]));
    memcpy(&hdr, all[1].data(), sizeof(hdr));
    ++hdr.am_id;
    EXPECT_EQ("-", take(std::string((const char*)&hdr, sizeof(hdr)) +
                        all[1].substr(sizeof(hdr)), UCS_ERR_INVALID_PARAM));
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
    uct_varuna_frag_hdr_t hdr;
    std::mt19937 rng(1);

    for (size_t size = 0; size < good.size(); ++size) {
        EXPECT_EQ("-", take(good.substr(0, size), UCS_ERR_INVALID_PARAM));
    }

    const std::vector<void (*)(uct_varuna_frag_hdr_t&)> wrong = {
        [](uct_varuna_frag_hdr_t &h) { h.magic ^= 1; },
        [](uct_varuna_frag_hdr_t &h) { h.length = UCT_VARUNA_FRAG_MAX_MSG + 1; },
        [](uct_varuna_frag_hdr_t &h) { h.length = h.offset + h.size - 1; },
        [](uct_varuna_frag_hdr_t &h) { h.offset = UINT16_MAX; },
        [](uct_varuna_frag_hdr_t &h) { h.size = 1; },
        [](uct_varuna_frag_hdr_t &h) { h.index = UCT_VARUNA_FRAG_MAX; }
    };
    for (auto change : wrong) {
        memcpy(&hdr, good.data(), sizeof(hdr));
        change(hdr);
        EXPECT_EQ("-", take(std::string((const char*)&hdr, sizeof(hdr)) +
                            good.substr(sizeof(hdr)), UCS_ERR_INVALID_PARAM));
    }

    /* A message of two lengths */
    EXPECT_EQ("-", take(good));
    memcpy(&hdr, good.data(), sizeof(hdr));
    hdr.length = 4000;
    EXPECT_EQ("-", take(std::string((const char*)&hdr, sizeof(hdr)) +
                        good.substr(sizeof(hdr)), UCS_ERR_INVALID_PARAM));

    /* Whatever it is, it is taken without harm */
    for (unsigned i = 0; i < 100000; ++i) {
        std::string any = good;

        for (unsigned change = 0; change < 4; ++change) {
            any[rng() % sizeof(hdr)] = rng();
        }
        memcpy(&any[0], good.data(), sizeof(uint16_t));

        uct_varuna_frag_source_t source;
        uint8_t am_id;
        const void *msg;
        size_t length;
        uct_varuna_frag_source_init(&source, NULL, 1, rng() % 4);
        (void)uct_varuna_frag_take(m_frags.get(), &source, any.data(), any.size(),
                                   &am_id, &msg, &length);
    }
}
