/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The queue pair of a bus of datagrams, on a NIC that reads buffers when it sends, takes a
 * part of what is posted, and loses, repeats and reorders what it sends.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ucx/varuna_ud.h>
}

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

/* Calls of verbs are functions of the context */
class fake_ud_nic {
public:
    struct request {
        struct ibv_send_wr          wr;
        std::vector<struct ibv_sge> sges;
    };

    struct datagram {
        uint32_t    dest;
        std::string data;
    };

    fake_ud_nic() : qp(), cq(), takes(SIZE_MAX), error(ENOMEM), names_bad(true)
    {
        m_context.nic                 = this;
        m_context.super.ops.post_send = post_send;
        m_context.super.ops.poll_cq   = poll_cq;
        m_context.super.ops.post_recv = post_recv;
        qp.context = cq.context       = &m_context.super;
    }

    /* Send the oldest request */
    void send(enum ibv_wc_status status = IBV_WC_SUCCESS)
    {
        const request &oldest = requests.front();
        struct ibv_wc wc      = {};
        std::string data;

        for (const struct ibv_sge &sge : oldest.sges) {
            data.append((const char*)sge.addr, sge.length);
        }
        if (status == IBV_WC_SUCCESS) {
            wire.push_back({oldest.wr.wr.ud.remote_qpn, data});
        }
        wc.wr_id  = oldest.wr.wr_id;
        wc.status = status;
        completions.push_back(wc);
        requests.pop_front();
    }

    struct ibv_qp             qp;
    struct ibv_cq             cq;
    size_t                    takes;     /* So many requests of the next list, */
    int                       error;     /* then this */
    bool                      names_bad; /* Says which request was refused */
    std::deque<request>       requests;
    std::deque<struct ibv_wc> completions;
    std::vector<datagram>     wire;

private:
    struct context {
        struct ibv_context super;
        fake_ud_nic        *nic;
    };

    static fake_ud_nic *of(struct ibv_context *ctx)
    {
        return ((context*)ctx)->nic;
    }

    static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                         struct ibv_send_wr **bad)
    {
        fake_ud_nic *nic = of(qp->context);
        size_t takes     = nic->takes;

        nic->takes = SIZE_MAX;
        for (; wr != NULL; wr = wr->next, --takes) {
            if (takes == 0) {
                if (nic->names_bad) {
                    *bad = wr;
                }
                return nic->error;
            }
            nic->requests.push_back({*wr, {wr->sg_list, wr->sg_list + wr->num_sge}});
        }

        return ((takes == 0) && !nic->names_bad) ? nic->error : 0;
    }

    static int poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wcs)
    {
        std::deque<struct ibv_wc> &completions = of(cq->context)->completions;
        int count                              = 0;

        for (; (count < max) && !completions.empty(); ++count) {
            wcs[count] = completions.front();
            completions.pop_front();
        }
        return count;
    }

    static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
                         struct ibv_recv_wr **bad)
    {
        return 0;
    }

    context m_context = {};
};

class test_varuna_ud : public ucs::test {
protected:
    enum { AM_ID = 2, NUM_DESTS = 5 };

    virtual void init()
    {
        ucs::test::init();
        m_sends.resize(UCT_VARUNA_UD_NUM_SENDS);
        m_qp.qp        = &m_nic.qp;
        m_qp.cq        = &m_nic.cq;
        m_qp.mr        = &m_mr;
        m_qp.sends     = m_sends.data();
        m_qp.max_frags = 128;
        m_qp.room      = uct_varuna_frag_room(4096);
        for (unsigned i = 0; i < NUM_DESTS; ++i) {
            m_dests[i].sender         = 1000 + i;
            m_dests[i].room           = uct_varuna_frag_room(256 << i);
            m_dests[i].addr.qp_num[0] = i;
            ASSERT_UCS_OK(uct_varuna_frags_init(&m_frags[i]));
        }
    }

    virtual void cleanup()
    {
        for (uct_varuna_frags_t &frags : m_frags) {
            uct_varuna_frags_cleanup(&frags);
        }
        ucs::test::cleanup();
    }

    static std::string message(size_t length, unsigned tag)
    {
        std::string msg(length, 0);

        for (size_t i = 0; i < length; ++i) {
            msg[i] = (tag * 89) + (tag >> 8) + (i * 7) + (i >> 8);
        }
        memcpy(&msg[0], &tag, std::min(length, sizeof(tag)));
        return msg;
    }

    ucs_status_t post(unsigned dest, const std::string &msg)
    {
        uct_varuna_ud_send_t *send = uct_varuna_ud_qp_get(&m_qp);

        if (send == NULL) {
            return UCS_ERR_NO_RESOURCE;
        }

        memcpy(send->data, msg.data(), msg.size());
        return uct_varuna_ud_qp_post(&m_qp, send, &m_dests[dest], AM_ID, msg.size());
    }

    void progress()
    {
        while (uct_varuna_ud_qp_progress(&m_qp, NULL, NULL) > 0);
    }

    /* The NIC sends what it has, and we see that */
    void drain()
    {
        while (!m_nic.requests.empty()) {
            m_nic.send();
        }
        progress();
    }

    /* @return The message that is complete with a datagram, "-" for none */
    std::string take(fake_ud_nic::datagram datagram)
    {
        uct_varuna_frag_source_t source;
        void *msg;
        uint8_t am_id;
        size_t length;

        uct_varuna_frag_source_init(&source, NULL, 1, 1);
        if (uct_varuna_frag_take(&m_frags[datagram.dest], &source, &datagram.data[0],
                                 datagram.data.size(), &am_id, &msg, &length) != UCS_OK) {
            return "-";
        }

        EXPECT_EQ(AM_ID, am_id);
        return std::string((const char*)msg, length);
    }

    /* @return What arrives if nothing is lost */
    std::vector<std::string> arrived()
    {
        std::vector<std::string> msgs;

        drain();
        for (const fake_ud_nic::datagram &datagram : m_nic.wire) {
            std::string msg = take(datagram);
            if (msg != "-") {
                msgs.push_back(msg);
            }
        }
        m_nic.wire.clear();
        return msgs;
    }

    bool is_drained(unsigned dest) const
    {
        return (int32_t)(m_qp.completed - m_dests[dest].last) >= 0;
    }

    fake_ud_nic                       m_nic;
    struct ibv_mr                     m_mr               = {};
    uct_varuna_ud_qp_t                m_qp               = {};
    uct_varuna_ud_dest_t              m_dests[NUM_DESTS] = {};
    uct_varuna_frags_t                m_frags[NUM_DESTS];
    std::vector<uct_varuna_ud_send_t> m_sends;
    std::map<std::string, unsigned>   m_again; /* Arrived before */
};

UCS_TEST_F(test_varuna_ud, whole_messages) {
    std::vector<std::string> sent;

    for (unsigned i = 0; i < NUM_DESTS; ++i) {
        sent.push_back(message(4000, i));
        ASSERT_UCS_OK(post(i, sent.back()));
    }
    EXPECT_EQ(sent, arrived());
}

/* A full queue takes no part of a message */
UCS_TEST_F(test_varuna_ud, queue_is_full) {
    std::vector<std::string> sent;
    ucs_status_t status;
    unsigned i = 0;

    while ((status = post(0, message(4000, i))) == UCS_OK) {
        sent.push_back(message(4000, i++));
    }
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, status);
    EXPECT_EQ(128 / uct_varuna_frag_count(m_dests[0].room, 4000), sent.size());
    EXPECT_EQ(m_nic.requests.size(), m_qp.num_frags);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, post(0, message(4000, i)));

    /* A short one finds room, and then the long one when some have left */
    sent.push_back("short");
    ASSERT_UCS_OK(post(4, sent.back()));
    for (i = 0; i < uct_varuna_frag_count(m_dests[0].room, 4000); ++i) {
        m_nic.send();
    }
    progress();
    sent.push_back(message(4000, 99));
    ASSERT_UCS_OK(post(0, sent.back()));
    EXPECT_EQ(sent, arrived());
    EXPECT_EQ(0u, m_qp.num_frags);
}

/* ... nor are there more messages than buffers */
UCS_TEST_F(test_varuna_ud, buffers_are_in_use) {
    unsigned i;

    for (i = 0; i < UCT_VARUNA_UD_NUM_SENDS; ++i) {
        ASSERT_UCS_OK(post(4, message(10, i)));
    }
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, post(4, "more"));
    m_nic.send();
    progress();
    EXPECT_UCS_OK(post(4, "more"));
    EXPECT_EQ(UCT_VARUNA_UD_NUM_SENDS + 1, arrived().size());
}

/* The NIC takes a part of a message: the buffer and the number are not used for the next one,
 * and nothing of it is handed over */
UCS_TEST_F(test_varuna_ud, part_is_posted) {
    for (size_t takes = 0; takes < uct_varuna_frag_count(m_dests[0].room, 4096); ++takes) {
        std::vector<std::string> sent;

        m_nic.takes = takes;
        ASSERT_NE(UCS_OK, post(0, message(4096, 1)));
        EXPECT_EQ(takes, m_nic.requests.size());
        EXPECT_EQ(takes == 0, is_drained(0));

        sent.push_back(message(4096, 2));
        ASSERT_UCS_OK(post(0, sent.back()));
        EXPECT_EQ(sent, arrived()) << takes;
        EXPECT_TRUE(is_drained(0));
        EXPECT_EQ(m_qp.posted, m_qp.completed);
    }
}

/* Nothing else is sent: the buffer is free all the same */
UCS_TEST_F(test_varuna_ud, parts_alone) {
    for (unsigned i = 0; i < (2 * UCT_VARUNA_UD_NUM_SENDS); ++i) {
        m_nic.takes = 1;
        ASSERT_NE(UCS_OK, post(0, message(4096, i)));
        EXPECT_FALSE(is_drained(0));
        drain();
        EXPECT_TRUE(is_drained(0));
    }
    EXPECT_TRUE(arrived().empty());
}

/* A driver that has queued all and fails after it */
UCS_TEST_F(test_varuna_ud, no_request_is_named) {
    m_nic.names_bad = false;
    m_nic.takes     = uct_varuna_frag_count(m_dests[1].room, 4000);
    m_nic.error     = EIO;
    EXPECT_EQ(UCS_ERR_IO_ERROR, post(1, message(4000, 1)));
    ASSERT_UCS_OK(post(1, message(4000, 2)));
    EXPECT_EQ((std::vector<std::string>{message(4000, 1), message(4000, 2)}), arrived());
    EXPECT_TRUE(is_drained(1));
}

/* A full queue that we did not know of is waited for if something will leave it */
UCS_TEST_F(test_varuna_ud, refused_although_we_count) {
    m_nic.takes = 0;
    EXPECT_EQ(UCS_ERR_IO_ERROR, post(0, message(4000, 1)));
    ASSERT_UCS_OK(post(0, message(4000, 2)));
    m_nic.takes = 0;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, post(0, message(4000, 3)));
    m_nic.takes = 0;
    m_nic.error = EINVAL;
    EXPECT_EQ(UCS_ERR_IO_ERROR, post(0, message(4000, 3)));
    EXPECT_EQ(std::vector<std::string>{message(4000, 2)}, arrived());
}

/* Each fragment of a flushed queue pair completes */
UCS_TEST_F(test_varuna_ud, flushed) {
    ASSERT_UCS_OK(post(0, message(4000, 1)));
    ASSERT_UCS_OK(post(1, message(4000, 2)));
    m_nic.send();
    progress();
    EXPECT_EQ(0u, m_qp.completed);
    while (!m_nic.requests.empty()) {
        m_nic.send(IBV_WC_WR_FLUSH_ERR);
        progress();
        EXPECT_EQ(m_nic.requests.size(), m_qp.num_frags);
    }
    EXPECT_EQ(2u, m_qp.completed);
}

/* Whatever the NIC refuses and the network does: what arrives was posted, once for each time
 * that its parts did, and all of it arrives if the network is kind */
UCS_TEST_F(test_varuna_ud, anything_goes_wrong) {
    unsigned num_refused = 0, num_arrived = 0;

    for (unsigned seed = 1; seed <= 100; ++seed) {
        std::map<std::string, unsigned> sent; /* And to whom */
        bool is_kind = (seed % 2) == 0;
        std::mt19937 rng(seed);

        SCOPED_TRACE("seed " + std::to_string(seed));
        for (unsigned i = 0; i < 2000; ++i) {
            if (rng() % 2) {
                unsigned dest   = rng() % NUM_DESTS;
                std::string msg = message(16 + (rng() % 4000), i);
                ucs_status_t status;

                m_nic.takes     = (rng() % 4) ? SIZE_MAX : (rng() % 20);
                m_nic.names_bad = true;
                m_nic.error     = (rng() % 2) ? ENOMEM : EINVAL;
                status          = post(dest, msg);
                if (status == UCS_OK) {
                    sent[msg] = dest;
                } else {
                    ++num_refused;
                }
            }
            for (unsigned count = rng() % 20; count > 0; --count) {
                if (!m_nic.requests.empty()) {
                    m_nic.send();
                }
            }
            if (rng() % 2) {
                uct_varuna_ud_qp_progress(&m_qp, NULL, NULL);
            }
        }
        drain();
        EXPECT_EQ(0u, m_qp.num_frags);
        EXPECT_EQ(m_qp.posted, m_qp.completed);

        for (size_t i = 0; !is_kind && (i < m_nic.wire.size()); ++i) {
            switch (rng() % 16) {
            case 0:
                m_nic.wire[i].data.clear();
                break;
            case 1:
                m_nic.wire[i] = m_nic.wire[rng() % m_nic.wire.size()];
                break;
            case 2:
                std::swap(m_nic.wire[i],
                          m_nic.wire[std::min(i + (rng() % 30), m_nic.wire.size() - 1)]);
                break;
            }
        }

        for (const fake_ud_nic::datagram &datagram : m_nic.wire) {
            std::string msg = take(datagram);
            if (msg != "-") {
                auto found = sent.find(msg);
                if (found == sent.end()) {
                    EXPECT_FALSE(is_kind) << "a message of " << msg.size()
                                          << " bytes that nobody sent, or twice";
                    EXPECT_TRUE(m_again.count(msg)) << "nobody has sent it";
                    continue;
                }
                EXPECT_EQ(found->second, datagram.dest);
                m_again.insert(*found);
                sent.erase(found);
                ++num_arrived;
            }
        }
        if (is_kind) {
            EXPECT_TRUE(sent.empty()) << sent.size() << " have not arrived";
        }
        m_nic.wire.clear();
        m_again.clear();
    }

    EXPECT_GT(num_refused, 1000u);
    EXPECT_GT(num_arrived, 10000u);
}
