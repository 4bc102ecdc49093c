/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Addresses unlike those of a regular InfiniBand fabric: quirks roce, same-gid,
 * miswired, gid-moves.
 */

#include "test_emu.h"
#include "test_emu_devx.h"

#include <errno.h>
#include <thread>
#include <unistd.h>

class test_emu_addr : public emu::test_emu {
protected:
    static std::string text(const emu::numbers_t &bytes)
    {
        return std::string(bytes.begin(), bytes.end());
    }

    static std::string file(emu::side &s, const std::string &name)
    {
        return text((*s).command("file " + std::to_string(s.ctx) + " " + name));
    }

    /* Whether these asynchronous events arrive, and no others */
    static void expect_events(emu::side &s, const std::vector<uint64_t> &types)
    {
        for (uint64_t type : types) {
            emu::numbers_t event = s.async();

            ASSERT_FALSE(event.empty()) << "no event " << type;
            EXPECT_EQ(type, event.at(0));
        }
        EXPECT_TRUE(s.async(300).empty());
    }

    static std::vector<uint64_t> indices(emu::side &s)
    {
        return (*s)("gid_table", s.ctx, 256);
    }

    /* A pair that writes; both sides are ready */
    void works()
    {
        a->fill(0, 3000, 1);
        EXPECT_TRUE(a->write(*b, 1, 0, 3000, 0).completes(IBV_WC_SUCCESS));
        EXPECT_EQ(3000u, b->match(0, 3000, 1));
        b->recv(2, 8192, 4096);
        a->send(IBV_WR_SEND, *b, 3, 0, 100, 0);
        EXPECT_TRUE(b->completes(2, IBV_WC_SUCCESS));
        EXPECT_TRUE(a->completes(3, IBV_WC_SUCCESS));
    }

    /* Nothing arrives, now and before */
    void does_not_work()
    {
        uint64_t before = executed(1, "write");

        EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
        EXPECT_EQ(before, executed(1, "write"));
    }

    void connect_both()
    {
        a->connect(*b);
        b->connect(*a);
    }

    /* Sides on links of their own choice, not connected */
    void make_sides(unsigned link_a, unsigned link_b, int type = IBV_QPT_RC)
    {
        a.reset(new emu::side(fabric(), 0, link_a, false, true, type));
        b.reset(new emu::side(fabric(), 1, link_b, false, true, type));
    }

    uint64_t make_ah(emu::side &from, const emu::side &to)
    {
        return (*from).command("ah " + std::to_string(from.ctx) + " " +
                               std::to_string(to.lid) +
                               from.grh_words(to)).at(0);
    }

    /* A datagram to b, and b's answer to the sender that it determines */
    emu::numbers_t datagrams()
    {
        emu::numbers_t from;

        (**a)("ud", a->qp);
        (**b)("ud", b->qp);
        a->recv(1, 8192, 4096);
        b->recv(2, 4096, 4096);
        a->fill(0, 500, 7);
        a->send(IBV_WR_SEND, *b, 3, 0, 500, 0, make_ah(*a, *b), b->qpn);
        EXPECT_TRUE(a->completes(3, IBV_WC_SUCCESS));
        for (int i = 0; from.empty() && (i < 1000); ++i) {
            from = (**b)("answer", b->ctx, b->cq, b->addr + 4096);
        }
        if (from.empty()) {
            return from;
        }

        EXPECT_EQ(500u, b->match(4096 + 40, 500, 7));
        EXPECT_EQ(a->qpn, from.at(1));
        b->fill(0, 100, 9);
        b->send(IBV_WR_SEND, *a, 4, 0, 100, 0, from.at(0), from.at(1));
        EXPECT_TRUE(b->completes(4, IBV_WC_SUCCESS));
        EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
        EXPECT_EQ(100u, a->match(8192 + 40, 100, 9));
        return from;
    }
};

/* Without any quirk: InfiniBand, one GID with a prefix for each plane */
UCS_TEST_F(test_emu_addr, infiniband) {
    make_sides(0, 1);
    EXPECT_EQ((emu::numbers_t{IBV_LINK_LAYER_INFINIBAND, 1, 0, 1, 1, 5}),
              (**a)("layer", a->ctx));
    EXPECT_EQ(2u, b->lid);
    EXPECT_EQ((emu::numbers_t{0, 0xfec0000000000000, 0x2c90300000000,
                              IBV_GID_TYPE_IB}), (**a)("gid", a->ctx, 0));
    EXPECT_EQ((emu::numbers_t{0, 0xfec0000000000001, 0x2c90300000101,
                              IBV_GID_TYPE_IB}), (**b)("gid", b->ctx, 0));
    EXPECT_EQ((std::vector<uint64_t>{0}), indices(*a));
    EXPECT_EQ((emu::numbers_t{EINVAL}), (**a)("gid", a->ctx, 1));
    EXPECT_EQ((emu::numbers_t{0, 1}), (**a)("gid_files", a->ctx));
    EXPECT_EQ("InfiniBand", file(*a, "ports/1/link_layer"));
    EXPECT_EQ("0x2", file(*b, "ports/1/lid"));
    EXPECT_EQ("4: ACTIVE", file(*b, "ports/1/state"));
    EXPECT_EQ("0002:c903:0000:0101", file(*b, "node_guid"));
    EXPECT_EQ("!2", file(*b, "ports/1/nothing"));
    EXPECT_THROW((**a)("mac", a->ctx, 0, 0, 0), emu::agent_error);

    fabric().link(0, 0, "down");
    EXPECT_EQ("1: DOWN", file(*a, "ports/1/state"));
    fabric().link(0, 0, "up");
    expect_events(*a, {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE});
    EXPECT_EQ(1u, (**a)("port", a->ctx).at(1));
    for (const char *name : {"roce", "same-gid", "miswired", "gid-moves"}) {
        EXPECT_EQ(0u, acted(name));
    }
}

/* GRHs work on InfiniBand, too, and a wrong one is refused */
UCS_TEST_F(test_emu_addr, infiniband_global) {
    make_sides(0, 0);
    a->use_gid(0);
    b->use_gid(0);
    connect_both();
    works();

    make_sides(0, 0);
    a->use_gid(0);
    b->use_gid(0);
    a->gid[1] ^= 1; /* b expects another sender */
    connect_both();
    does_not_work();
}

UCS_TEST_F(test_emu_addr, infiniband_datagrams) {
    emu::numbers_t from;

    make_sides(0, 0, IBV_QPT_UD);
    from = datagrams();
    ASSERT_FALSE(from.empty());
    EXPECT_EQ(0u, from.at(2));
    EXPECT_EQ(1u, from.at(4));

    make_sides(0, 0, IBV_QPT_UD);
    a->use_gid(0);
    b->use_gid(0);
    from = datagrams();
    ASSERT_FALSE(from.empty());
    EXPECT_EQ(1u, from.at(2));
    EXPECT_EQ(a->gid[0], from.at(5));
    EXPECT_EQ(a->gid[1], from.at(6));
    EXPECT_EQ(0x20u, from.at(8));
    EXPECT_EQ(64u, from.at(9));
}


class test_emu_roce : public test_emu_addr {
protected:
    /* The query of an unused address takes a second */
    rcv::args_t fabric_options() const override
    {
        return {"--time-scale", "4"};
    }

    void init() override
    {
        test_emu_addr::init();
        quirk("roce");
    }
};

UCS_TEST_F(test_emu_roce, gid_table) {
    make_sides(0, 1);
    EXPECT_EQ((emu::numbers_t{IBV_LINK_LAYER_ETHERNET, 16,
                              IBV_QPF_GRH_REQUIRED, 0, 0, 5}),
              (**a)("layer", a->ctx));
    EXPECT_EQ((std::vector<uint64_t>{0, 1, 2, 3, 4, 5}), indices(*a));
    for (unsigned i = 0; i < 6; i += 2) {
        emu::numbers_t v1 = (**b)("gid", b->ctx, i);
        emu::numbers_t v2 = (**b)("gid", b->ctx, i + 1);

        ASSERT_EQ(4u, v1.size());
        EXPECT_EQ((uint64_t)IBV_GID_TYPE_ROCE_V1, v1.at(3));
        EXPECT_EQ((uint64_t)IBV_GID_TYPE_ROCE_V2, v2.at(3));
        EXPECT_EQ(v1.at(1), v2.at(1));
        EXPECT_EQ(v1.at(2), v2.at(2));
    }

    /* fe80::202:c9ff:fe00:101, ::ffff:10.1.0.2, fd00:0:0:1::2 */
    EXPECT_EQ((emu::numbers_t{0, 0xfe80000000000000, 0x0202c9fffe000101,
                              IBV_GID_TYPE_ROCE_V1}), (**b)("gid", b->ctx, 0));
    EXPECT_EQ((emu::numbers_t{0, 0, 0xffff0a010002, IBV_GID_TYPE_ROCE_V1}),
              (**b)("gid", b->ctx, 2));
    EXPECT_EQ((emu::numbers_t{0, 0xfd00000000000001, 2, IBV_GID_TYPE_ROCE_V1}),
              (**b)("gid", b->ctx, 4));
    EXPECT_EQ((emu::numbers_t{ENODATA}), (**b)("gid", b->ctx, 6));
    EXPECT_EQ((emu::numbers_t{EINVAL}), (**b)("gid", b->ctx, 16));
    EXPECT_EQ(2u, acted("roce"));
}

/* A table without room for all that is in use is refused */
UCS_TEST_F(test_emu_roce, gid_table_without_room) {
    make_sides(0, 1);
    EXPECT_EQ(6u, (**a)("gid_table", a->ctx, 6).size());
    EXPECT_THROW((**a)("gid_table", a->ctx, 5), emu::agent_error);
}

UCS_TEST_F(test_emu_roce, files) {
    make_sides(0, 1);
    EXPECT_EQ((emu::numbers_t{0, 16}), (**a)("gid_files", a->ctx));
    EXPECT_EQ("Ethernet", file(*a, "ports/1/link_layer"));
    EXPECT_EQ("0x0", file(*a, "ports/1/lid"));
    EXPECT_EQ("RoCE v2", file(*a, "ports/1/gid_attrs/types/3"));
    EXPECT_EQ("IB/RoCE v1", file(*a, "ports/1/gid_attrs/types/2"));
    EXPECT_EQ("enp161s0np0", file(*a, "ports/1/gid_attrs/ndevs/3"));
    EXPECT_EQ("enp162s0np0", file(*b, "ports/1/gid_attrs/ndevs/3"));
    EXPECT_EQ("0000:0000:0000:0000:0000:ffff:0a00:0001",
              file(*a, "ports/1/gids/3"));
    EXPECT_EQ("0000:0000:0000:0000:0000:0000:0000:0000",
              file(*a, "ports/1/gids/6"));
    EXPECT_EQ("!" + std::to_string(EINVAL),
              file(*a, "ports/1/gid_attrs/types/6"));
    EXPECT_EQ("!" + std::to_string(ENOENT),
              file(*a, "ports/1/gid_attrs/types/16"));
}

/* Service levels, and their mask, are for InfiniBand */
UCS_TEST_F(test_emu_roce, devx) {
    emu::devx_side s(fabric(), 0);
    emu::mailbox cap(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_HCA_CAP);
    emu::mailbox vport(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_HCA_VPORT);
    emu::answer answer;

    answer = s.general(cap, EMU_CAP_OUT_OFFSET + EMU_CAP_SIZE);
    EXPECT_EQ(0, answer.error);
    EXPECT_EQ((uint64_t)EMU_CAP_PORT_TYPE_ETH,
              answer.get(EMU_CAP_OUT_OFFSET, EMU_CAP_PORT_TYPE));
    EXPECT_EQ(1u, answer.get(EMU_CAP_OUT_OFFSET, EMU_CAP_ROCE));
    EXPECT_EQ(0u, answer.get(EMU_CAP_OUT_OFFSET, EMU_CAP_OOO_SL_MASK));

    vport.set(0, EMU_VPORT_IN_PORT_NUM, 1);
    EXPECT_EQ((unsigned)EMU_CMD_ST_BAD_PARAM, s.general(vport, 524).status());
}

UCS_TEST_F(test_emu_roce, rc_with_each_gid) {
    for (unsigned index = 0; index < 6; ++index) {
        make_sides(0, 0);
        a->use_gid(index);
        b->use_gid(index);
        connect_both();
        works();
    }
}

/* Version 1 is not version 2, and an address is needed at all */
UCS_TEST_F(test_emu_roce, rc_refuses) {
    make_sides(0, 0);
    a->use_gid(2);
    b->use_gid(3);
    connect_both();
    does_not_work();

    make_sides(0, 0);
    a->gid_index = -1;
    EXPECT_THROW(a->connect(*b), emu::agent_error);
    EXPECT_THROW(make_ah(*a, *b), emu::agent_error);
    a->gid_index = 6; /* not in use */
    EXPECT_THROW(a->connect(*b), emu::agent_error);
    EXPECT_THROW(make_ah(*a, *b), emu::agent_error);
}

UCS_TEST_F(test_emu_roce, datagrams) {
    /* Service level: whether there is a UDP header, and the kind of the other */
    static const unsigned levels[] = {0, 8 | 1, 0, 8 | 2, 0, 8 | 1};
    emu::numbers_t from;

    for (unsigned index = 0; index < 6; ++index) {
        make_sides(0, 0, IBV_QPT_UD);
        a->use_gid(index);
        b->use_gid(index);
        from = datagrams();
        ASSERT_FALSE(from.empty()) << index;
        EXPECT_EQ(1u, from.at(2));
        EXPECT_EQ(levels[index], from.at(3));
        EXPECT_EQ(0u, from.at(4));
        EXPECT_EQ(a->gid[0], from.at(5));
        EXPECT_EQ(a->gid[1], from.at(6));
        EXPECT_EQ(index, from.at(7));
        EXPECT_EQ(0x20u, from.at(8));
        EXPECT_EQ(64u, from.at(9));
    }
}

/* The kernel resolves the MAC address: this fails without an answer, and a known
 * address is cached until the link goes down */
UCS_TEST_F(test_emu_roce, address_resolution) {
    emu::numbers_t mac{0x0002c9000100, 0xffff};

    make_sides(0, 0);
    fabric().link(1, 0, "silent");
    try {
        make_ah(*a, *b);
        ADD_FAILURE() << "no host could answer";
    } catch (const emu::agent_error &error) {
        EXPECT_EQ(ETIMEDOUT, error.code());
    }

    fabric().link(1, 0, "up");
    EXPECT_EQ(mac, (**a)("mac", a->ctx, 3, b->gid[0], b->gid[1]));
    fabric().link(1, 0, "silent");
    make_ah(*a, *b);
    fabric().link(0, 0, "down");
    fabric().link(0, 0, "up");
    EXPECT_THROW(a->connect(*b), emu::agent_error);
}

/* It is there as soon as the other host answers, long before the end of its time */
UCS_TEST_F(test_emu_roce, address_that_is_asked_for) {
    quirk("roce:600s");
    make_sides(0, 0);
    fabric().link(1, 0, "silent");
    std::thread other([this]() {
        usleep(20000); /* Most of the time it is asked for by now */
        fabric().link(1, 0, "up");
    });
    make_ah(*a, *b);
    other.join();
}

/* Planes are networks of their own */
UCS_TEST_F(test_emu_roce, planes_are_apart) {
    make_sides(0, 1);
    EXPECT_THROW(make_ah(*a, *b), emu::agent_error);
}

/* A link that goes down keeps its addresses */
UCS_TEST_F(test_emu_roce, addresses_stay) {
    make_sides(0, 0);
    connect_both();
    fabric().link(0, 0, "down");
    EXPECT_EQ((std::vector<uint64_t>{0, 1, 2, 3, 4, 5}), indices(*a));
    EXPECT_EQ(3u, (**a)("layer", a->ctx).at(5));
    fabric().link(0, 0, "up");
    expect_events(*a, {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE});
    EXPECT_EQ((std::vector<uint64_t>{0, 1, 2, 3, 4, 5}), indices(*a));
    works();
}

/* Only one link of a fabric, as with a NIC that has a port of each kind */
UCS_TEST_F(test_emu_addr, roce_on_one_link) {
    quirk("0:1=roce");
    quirk("1:1=roce");
    make_sides(0, 0);
    EXPECT_EQ(1u, a->lid);
    connect_both();
    works();
    make_sides(1, 1);
    EXPECT_EQ(0u, a->lid);
    connect_both();
    works();
}


UCS_TEST_F(test_emu_addr, same_gid) {
    quirk("same-gid");
    make_sides(0, 1);
    a->use_gid(0);
    b->use_gid(0);
    EXPECT_EQ(0xfe80000000000000, a->gid[0]);
    EXPECT_EQ(a->gid[0], b->gid[0]);
    EXPECT_NE(a->gid[1], b->gid[1]);

    /* Addresses do not show that they are separate networks */
    connect_both();
    does_not_work();
    EXPECT_EQ(2u, acted("same-gid"));

    make_pair(1);
    works();
}

/* 10.0.0.0/16 and fd00::/64 */
UCS_TEST_F(test_emu_roce, same_gid) {
    quirk("same-gid");
    make_sides(0, 1);
    EXPECT_EQ(0xffff0a000001, a->gid[1]);
    EXPECT_EQ(0xffff0a000102, b->gid[1]);
    b->use_gid(4);
    EXPECT_EQ(0xfd00000000000000, b->gid[0]);
    EXPECT_EQ(0x0102u, b->gid[1]);
    EXPECT_THROW(make_ah(*a, *b), emu::agent_error);
}

/* The two cables of host 1 are swapped */
UCS_TEST_F(test_emu_addr, miswired_host) {
    quirk("1=miswired");
    make_sides(0, 0);
    EXPECT_EQ(0xfec0000000000001, (**b)("gid", b->ctx, 0).at(1));
    connect_both();
    does_not_work();
    EXPECT_EQ(1u, acted("miswired", 1, 0));
    EXPECT_TRUE(b->write(*a, 1, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    EXPECT_GT(acted("miswired", 1, 0), 1u);

    make_sides(0, 1);
    EXPECT_EQ(0xfec0000000000000, (**b)("gid", b->ctx, 0).at(1));
    connect_both();
    works();

    no_quirk("1=miswired");
    make_pair();
    works();
}

/* Both ports of host 1 are in plane 0: no two have a LID in common */
UCS_TEST_F(test_emu_addr, miswired_link) {
    quirk("1:1=miswired");
    make_sides(0, 1);
    EXPECT_NE((**b)("port", b->ctx).at(1),
              emu::side(fabric(), 1, 0).lid);
    connect_both();
    works();
    make_pair();
    works();
    make_sides(1, 1);
    connect_both();
    does_not_work();
}

/* Names and networks do not show that cables are wrong; only packets are lost */
UCS_TEST_F(test_emu_roce, miswired) {
    quirk("1=miswired");
    make_sides(0, 0);
    EXPECT_EQ(0xffff0a000002, b->gid[1]);
    EXPECT_THROW(a->connect(*b), emu::agent_error);
    make_sides(0, 1);
    connect_both();
    works();
}

UCS_TEST_F(test_emu_roce, gid_moves) {
    quirk("0:0=gid-moves");
    make_sides(0, 0);
    connect_both();
    works();
    fabric().link(0, 0, "down");
    expect_events(*a, {IBV_EVENT_PORT_ERR, IBV_EVENT_GID_CHANGE});
    EXPECT_EQ((std::vector<uint64_t>{0, 1}), indices(*a));
    fabric().link(0, 0, "up");
    expect_events(*a, {IBV_EVENT_PORT_ACTIVE, IBV_EVENT_GID_CHANGE});
    EXPECT_EQ((std::vector<uint64_t>{0, 1, 6, 7, 8, 9}), indices(*a));
    EXPECT_EQ((emu::numbers_t{0, a->gid[0], a->gid[1], IBV_GID_TYPE_ROCE_V2}),
              (**a)("gid", a->ctx, 7));
    EXPECT_EQ((emu::numbers_t{0, 16}), (**a)("gid_files", a->ctx));
    EXPECT_EQ((std::vector<uint64_t>{0, 1, 2, 3, 4, 5}), indices(*b));
    EXPECT_EQ(1u, acted("gid-moves", 0, 0));

    /* The old queue pair has a removed address, a new one works */
    does_not_work();
    make_sides(0, 0);
    EXPECT_EQ(7, a->gid_index);
    connect_both();
    works();
}

/* The other side's address has moved: it refuses packets for the old queue pair */
UCS_TEST_F(test_emu_roce, gid_of_peer_moves) {
    quirk("1:0=gid-moves");
    make_sides(0, 0);
    connect_both();
    fabric().link(1, 0, "down");
    fabric().link(1, 0, "up");
    does_not_work();
    EXPECT_EQ(1u, acted("gid-moves"));
}

UCS_TEST_F(test_emu_addr, lid_moves) {
    quirk("0:0=gid-moves");
    make_pair();
    works();
    fabric().link(0, 0, "down");
    fabric().link(0, 0, "up");
    expect_events(*a, {IBV_EVENT_PORT_ERR, IBV_EVENT_LID_CHANGE,
                       IBV_EVENT_PORT_ACTIVE});
    EXPECT_NE(a->lid, (**a)("port", a->ctx).at(1));
    EXPECT_EQ((std::vector<uint64_t>{0}), indices(*a));

    /* A queue pair is known by the LID that it was connected from */
    does_not_work();
    make_pair();
    works();
}

/* Silence is not a flap: there is no event, and nothing moves */
UCS_TEST_F(test_emu_addr, silence_moves_nothing) {
    quirk("gid-moves");
    make_pair();
    fabric().link(0, 0, "silent");
    fabric().link(0, 0, "up");
    works();
    EXPECT_EQ(0u, acted("gid-moves"));
    fabric().link(1, 1, "down");
    fabric().link(1, 1, "up");
}
