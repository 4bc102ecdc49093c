/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checks of addresses and control messages: what is well formed is taken, what is
 * cut off, prolonged or twisted is refused, and nothing is read beyond its end.
 */
#include <common/test.h>

#include <sys/mman.h>
#include <unistd.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_delta.h>
#include <uct/ib/varuna/core/varuna_msg.h>
#include <uct/ib/varuna/core/varuna_uid.h>
}

/* Bytes right before a page which can't be read: whoever reads on dies. */
class guarded_bytes {
public:
    guarded_bytes(const std::string &bytes)
    {
        size_t page = sysconf(_SC_PAGESIZE);

        m_length = (bytes.size() / page + 2) * page;
        m_map    = (char*)mmap(NULL, m_length, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(MAP_FAILED, (void*)m_map);
        m_data = m_map + m_length - page - bytes.size();
        memcpy(m_data, bytes.data(), bytes.size());
        EXPECT_EQ(0, mprotect(m_map + m_length - page, page, PROT_NONE));
    }

    ~guarded_bytes()
    {
        munmap(m_map, m_length);
    }

    const void *data() const
    {
        return m_data;
    }

private:
    guarded_bytes(const guarded_bytes&);

    size_t m_length;
    char   *m_map;
    char   *m_data;
};

class test_varuna_parse : public ucs::test {
protected:
    static constexpr uint64_t UUID = 0x1122334455667788ul;

    template<typename T> static std::string bytes(const T &object)
    {
        return std::string((const char*)&object, sizeof(object));
    }

    static std::string fill(size_t length, char c)
    {
        return std::string(length, c);
    }

    static std::string addr_header(unsigned num_links)
    {
        uct_varuna_addr_t hdr;

        hdr.magic     = UCT_VARUNA_WIRE_MAGIC;
        hdr.version   = UCT_VARUNA_WIRE_VERSION;
        hdr.num_links = num_links;
        hdr.uuid      = UUID;
        return bytes(hdr);
    }

    static std::string link(unsigned index, unsigned device_len,
                            unsigned dc_len = 5, unsigned ctl_len = 5)
    {
        uct_varuna_addr_link_t entry;

        entry.index      = index;
        entry.device_len = device_len;
        entry.dc_len     = dc_len;
        entry.ctl_len    = ctl_len;
        return bytes(entry) + fill(device_len, 'a' + index) +
               fill(dc_len, 'A' + index) + fill(ctl_len, '0' + index);
    }

    static std::string short_header(unsigned num_links, unsigned outer_len = 3,
                                    unsigned ctl_len = 5)
    {
        return addr_header(UCT_VARUNA_ADDR_SHORT | num_links) +
               std::string(1, outer_len) + std::string(1, ctl_len);
    }

    /* The first byte, bit maps and differences are written as they are */
    static std::string short_entry(unsigned index, unsigned device_len,
                                   const std::string &rest)
    {
        return std::string(1, (index << 5) | device_len) + rest;
    }

    /* As UCP gets it. Link 0: the UCT device address "xyz" and 5 new bytes. Link 3:
     * "xYz", and the second byte of the control address is another one. */
    static std::string short_addr()
    {
        return short_header(2) +
               short_entry(0, 3, std::string("\0\x1f", 2) + "01234") +
               short_entry(3, 3, "\x02Y\x02!");
    }

    static std::string full_addr(unsigned num_links = 3)
    {
        std::string addr = addr_header(num_links);

        for (unsigned i = 0; i < num_links; ++i) {
            addr += link(i, 17);
        }
        return addr;
    }

    static std::string msg(uct_varuna_ctl_type_t type, uint32_t epoch,
                           const std::string &body = "")
    {
        uct_varuna_ctl_hdr_t hdr;

        memset(&hdr, 0, sizeof(hdr));
        hdr.magic   = UCT_VARUNA_WIRE_MAGIC;
        hdr.version = UCT_VARUNA_WIRE_VERSION;
        hdr.type    = type;
        hdr.length  = body.size();
        hdr.dest    = ~UUID;
        hdr.uuid    = UUID;
        hdr.secret  = 1;
        hdr.vqp     = 7;
        hdr.epoch   = epoch;
        if (uct_varuna_ctl_has_from(type)) {
            hdr.from_device_len = 3;
            hdr.from_ctl_len    = 5;
            hdr.from_nic        = 2;
        }
        return bytes(hdr) + body + fill(hdr.from_device_len, 'd') +
               fill(hdr.from_ctl_len, 'q');
    }

    static std::string open_req()
    {
        uct_varuna_ctl_open_req_t req = {};
        std::string addr              = full_addr();

        req.addr_len = addr.size();
        return msg(UCT_VARUNA_CTL_OPEN_REQ, 0, bytes(req) + addr);
    }

    static std::string packed_rkey(unsigned num_keys)
    {
        uct_varuna_packed_rkey_t rkey = {};

        rkey.magic    = UCT_VARUNA_WIRE_MAGIC;
        rkey.version  = UCT_VARUNA_WIRE_VERSION;
        rkey.num_keys = num_keys;
        rkey.key_size = 8;
        rkey.nic_map  = (1u << num_keys) - 1;
        return bytes(rkey) + fill(num_keys * 8, 'k');
    }

    static uct_varuna_ctl_open_rep_t open_rep_body()
    {
        uct_varuna_ctl_open_rep_t rep = {};

        rep.log_addr  = 0x7000;
        rep.target    = 1;
        rep.log_size  = UCT_VARUNA_LOG_SIZE;
        rep.log_count = UCT_VARUNA_LOG_COUNT;
        rep.rkey_len  = packed_rkey(2).size();
        rep.addr_len  = full_addr().size();
        return rep;
    }

    static std::string open_rep(const uct_varuna_ctl_open_rep_t &rep)
    {
        return msg(UCT_VARUNA_CTL_OPEN_REP, 0,
                   bytes(rep) + packed_rkey(2) + full_addr());
    }

    static std::string open_rep_arena(const uct_varuna_ctl_open_rep_t &rep)
    {
        return msg(UCT_VARUNA_CTL_OPEN_REP, 0,
                   bytes(rep) + packed_rkey(2) + full_addr() + packed_rkey(2) +
                   packed_rkey(1) +
                   ((rep.num_slots > 0) ? packed_rkey(2) : std::string()) +
                   fill(rep.num_slots * 8, 'm'));
    }

    static std::string connect(uct_varuna_ctl_type_t type, unsigned status,
                               unsigned device_len, unsigned ep_len,
                               unsigned nic = 1)
    {
        uct_varuna_ctl_connect_t body;

        body.link       = nic;
        body.status     = status;
        body.device_len = device_len;
        body.ep_len     = ep_len;
        return msg(type, 2, bytes(body) + fill(device_len + ep_len, 'c'));
    }

    static std::string fence_req(uint32_t epoch)
    {
        uct_varuna_ctl_fence_req_t req = {};

        req.newest = epoch;
        return msg(UCT_VARUNA_CTL_FENCE_REQ, epoch, bytes(req));
    }

    static std::string fence_rep(uint32_t flags, uint32_t epsn,
                                 uint16_t log_size = UCT_VARUNA_LOG_SIZE)
    {
        uct_varuna_ctl_fence_rep_t rep = {};

        rep.flags    = flags;
        rep.epsn     = epsn;
        rep.log_size = log_size;
        return msg(UCT_VARUNA_CTL_FENCE_REP, 2,
                   bytes(rep) + fill(log_size * sizeof(uint64_t), 'l'));
    }

    static std::string reject(int16_t status)
    {
        uct_varuna_ctl_reject_t body = {};

        body.type   = UCT_VARUNA_CTL_FENCE_REQ;
        body.status = status;
        return msg(UCT_VARUNA_CTL_REJECT, 2, bytes(body));
    }

    static std::string atomic_req(unsigned count, uint64_t first = 5,
                                  uint64_t acked = 3, uint8_t op = 0,
                                  uint8_t width = 8, uint64_t addr = 0x1008)
    {
        uct_varuna_ctl_atomic_req_t req      = {};
        uct_varuna_ctl_atomic_op_t operation = {};
        std::string body;

        req.first       = first;
        req.acked       = acked;
        req.count       = count;
        operation.addr  = addr;
        operation.op    = op;
        operation.width = width;
        body            = bytes(req);
        for (unsigned i = 0; i < count; ++i) {
            body += bytes(operation);
        }
        return msg(UCT_VARUNA_CTL_ATOMIC_REQ, 1, body);
    }

    static std::string atomic_rep(unsigned count)
    {
        uct_varuna_ctl_atomic_rep_t rep = {};

        rep.first = 5;
        rep.count = count;
        return msg(UCT_VARUNA_CTL_ATOMIC_REP, 1,
                   bytes(rep) +
                   fill(count * sizeof(uct_varuna_ctl_atomic_result_t), 'r'));
    }

    static std::vector<std::string> all_msgs()
    {
        return {open_req(),
                open_rep(open_rep_body()),
                connect(UCT_VARUNA_CTL_CONNECT_REQ, 0, 3, 7),
                connect(UCT_VARUNA_CTL_CONNECT_REP, 0, 3, 7),
                connect(UCT_VARUNA_CTL_CONNECT_REP, 6, 0, 0),
                fence_req(2),
                fence_rep(UCT_VARUNA_FENCE_FLAG_QP, 0),
                msg(UCT_VARUNA_CTL_CLOSE, 0),
                msg(UCT_VARUNA_CTL_CLOSE_REP, 0),
                msg(UCT_VARUNA_CTL_PING, 1),
                msg(UCT_VARUNA_CTL_PONG, 1,
                    std::string(sizeof(uct_varuna_ctl_pong_t), 0)),
                msg(UCT_VARUNA_CTL_PORTS, 0,
                    std::string(sizeof(uct_varuna_ctl_ports_t), 0)),
                atomic_req(1),
                atomic_req(UCT_VARUNA_AMO_WINDOW),
                atomic_rep(1),
                atomic_rep(UCT_VARUNA_AMO_WINDOW),
                reject(UCS_ERR_NO_ELEM)};
    }

    ucs_status_t parse_addr(const std::string &addr, bool length_known = true,
                            const std::string &outer = "xyz" + fill(28, '!'))
    {
        guarded_bytes guarded(addr), device(outer);
        ucs_status_t status;

        m_reason = NULL;
        status   = uct_varuna_parse_addr(outer.empty() ? NULL : device.data(),
                                         guarded.data(),
                                         length_known ? addr.size() : SIZE_MAX,
                                         &m_parsed, &m_reason);
        EXPECT_EQ(status != UCS_OK, m_reason != NULL);
        if (status == UCS_OK) {
            /* The pointers are of no use once the bytes are gone */
            for (unsigned i = 0; i < m_parsed.num_links; ++i) {
                const uct_varuna_parsed_link_t &link = m_parsed.links[i];
                m_device[i] = std::string((const char*)link.device_addr,
                                          link.device_len);
                m_dc[i]  = (link.dc_addr == NULL) ? "" :
                           std::string((const char*)link.dc_addr, link.dc_len);
                m_ctl[i] = std::string((const char*)link.ctl_addr,
                                       link.ctl_len);
            }
        }
        return status;
    }

    ucs_status_t parse_ctl(const std::string &data)
    {
        guarded_bytes guarded(data);
        ucs_status_t status;

        m_reason = NULL;
        status   = uct_varuna_parse_ctl(guarded.data(), data.size(), &m_reason);
        EXPECT_EQ(status != UCS_OK, m_reason != NULL);
        return status;
    }

    static std::string twist(std::string data, size_t offset, char value)
    {
        data.at(offset) = value;
        return data;
    }

    uct_varuna_parsed_addr_t m_parsed;
    const char               *m_reason;
    std::string              m_device[UCT_VARUNA_MAX_LINKS];
    std::string              m_dc[UCT_VARUNA_MAX_LINKS];
    std::string              m_ctl[UCT_VARUNA_MAX_LINKS];
};

UCS_TEST_F(test_varuna_parse, addr_full) {
    std::string addr = full_addr(UCT_VARUNA_MAX_LINKS);

    ASSERT_UCS_OK(parse_addr(addr));
    EXPECT_EQ(UUID, m_parsed.uuid);
    EXPECT_EQ(addr.size(), m_parsed.length);
    ASSERT_EQ((unsigned)UCT_VARUNA_MAX_LINKS, m_parsed.num_links);
    for (unsigned i = 0; i < m_parsed.num_links; ++i) {
        EXPECT_EQ(i, m_parsed.links[i].nic);
        EXPECT_EQ(fill(17, 'a' + i), m_device[i]);
        EXPECT_EQ(fill(5, 'A' + i), m_dc[i]);
        EXPECT_EQ(fill(5, '0' + i), m_ctl[i]);
    }
}

UCS_TEST_F(test_varuna_parse, addr_short) {
    std::string addr = short_addr();

    ASSERT_LE(addr.size(), (size_t)UCT_VARUNA_IFACE_ADDR_MAX);
    ASSERT_UCS_OK(parse_addr(addr));
    EXPECT_TRUE(m_parsed.is_short);
    ASSERT_EQ(2u, m_parsed.num_links);
    EXPECT_EQ(0u, m_parsed.links[0].nic);
    EXPECT_EQ("xyz", m_device[0]);
    EXPECT_EQ("01234", m_ctl[0]);
    EXPECT_EQ(3u, m_parsed.links[1].nic);
    EXPECT_EQ("xYz", m_device[1]);
    EXPECT_EQ("0!234", m_ctl[1]);
    for (unsigned i = 0; i < m_parsed.num_links; ++i) {
        EXPECT_TRUE(m_parsed.links[i].dc_addr == NULL);
        EXPECT_EQ(0u, m_parsed.links[i].dc_len);
    }
}

/* Control messages have no device address beside them */
UCS_TEST_F(test_varuna_parse, addr_short_alone) {
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(short_addr(), true, ""));
    EXPECT_TRUE(strstr(m_reason, "short") != NULL);
    EXPECT_UCS_OK(parse_addr(full_addr(), true, ""));
}

UCS_TEST_F(test_varuna_parse, addr_short_out_of_range) {
    std::string good = std::string("\0\x1f", 2) + "01234";

    EXPECT_UCS_OK(parse_addr(short_header(1) + short_entry(0, 3, good)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(short_header(0)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(UCT_VARUNA_MAX_LINKS + 1) +
                         fill(400, '\0')));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(1) + short_entry(0, 0, good)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(1, 0) + short_entry(0, 3, good)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(1, UCT_VARUNA_DEVICE_ADDR_MAX + 1) +
                         short_entry(0, 3, good), true, fill(64, 'x')));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(1, 3, 0) +
                         short_entry(0, 3, std::string(1, '\0'))));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(1, 3, UCT_VARUNA_CTL_ADDR_MAX + 1) +
                         short_entry(0, 3, fill(40, '\0'))));
    /* One link twice */
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(2) + short_entry(1, 3, good) +
                         short_entry(1, 3, std::string("\0\0", 2))));
    EXPECT_TRUE(strstr(m_reason, "twice") != NULL);
}

/* Whatever is written is read, in no more bytes than were given */
UCS_TEST_F(test_varuna_parse, delta) {
    for (int round = 0; round < 300; ++round) {
        std::string base(ucs::rand() % 32, 0), data(1 + ucs::rand() % 31, 0);
        std::string buffer(40, '?'), read(data.size(), 0);
        size_t size, max;

        for (size_t i = 0; i < base.size(); ++i) {
            base[i] = ucs::rand() % 3;
        }
        for (size_t i = 0; i < data.size(); ++i) {
            data[i] = ucs::rand() % 3;
        }

        size = uct_varuna_delta_write(base.data(), base.size(), data.data(),
                                      data.size(), &buffer[0], buffer.size());
        ASSERT_GE(size, UCT_VARUNA_DELTA_MAP_SIZE(data.size()));
        ASSERT_LE(size, UCT_VARUNA_DELTA_MAP_SIZE(data.size()) + data.size());

        guarded_bytes exact(buffer.substr(0, size));
        ASSERT_EQ(size, uct_varuna_delta_read(base.data(), base.size(), &read[0],
                                              read.size(), exact.data(), size));
        ASSERT_EQ(data, read);

        max = ucs::rand() % size;
        guarded_bytes cut(buffer.substr(0, max));
        ASSERT_EQ(0u, uct_varuna_delta_read(base.data(), base.size(), &read[0],
                                            read.size(), cut.data(), max));
        buffer.assign(40, '?');
        ASSERT_EQ(0u, uct_varuna_delta_write(base.data(), base.size(),
                                             data.data(), data.size(),
                                             &buffer[0], max));
        ASSERT_EQ(std::string(40 - max, '?'), buffer.substr(max));
    }
}

/* The caller can't know the length: foreign bytes follow */
UCS_TEST_F(test_varuna_parse, addr_unknown_length) {
    std::string addr = short_addr();

    ASSERT_UCS_OK(parse_addr(addr + fill(100, 'x'), false));
    EXPECT_EQ(addr.size(), m_parsed.length);
    ASSERT_UCS_OK(parse_addr(addr, false));

    /* But it is never longer than UCP's format allows: no more is read */
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(full_addr().substr(0, UCT_VARUNA_IFACE_ADDR_MAX),
                         false));
}

UCS_TEST_F(test_varuna_parse, addr_cut) {
    for (const std::string &addr : {short_addr(), full_addr()}) {
        for (size_t length = 0; length < addr.size(); ++length) {
            EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(addr.substr(0, length)))
                    << "length " << length;
        }
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(addr + "x"));
    }
}

UCS_TEST_F(test_varuna_parse, addr_foreign) {
    std::string addr = short_addr();

    EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(twist(addr, 0, 0)));
    /* A host of the other byte order */
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(twist(twist(addr, 0, addr[1]), 1, addr[0])));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              parse_addr(twist(addr,
                               ucs_offsetof(uct_varuna_addr_t, version),
                               UCT_VARUNA_WIRE_VERSION + 1)));
    EXPECT_TRUE(strstr(m_reason, "install") != NULL);
}

UCS_TEST_F(test_varuna_parse, addr_links_out_of_range) {
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(addr_header(0)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(addr_header(UCT_VARUNA_MAX_LINKS + 1) +
                         fill(400, '\0')));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(addr_header(255) + fill(8000, '\1')));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(addr_header(1) + link(UCT_VARUNA_MAX_LINKS, 3)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(addr_header(2) + link(1, 3) + link(1, 3)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(addr_header(1) + link(0, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(addr_header(1) +
                         link(0, UCT_VARUNA_DEVICE_ADDR_MAX + 1)));
    EXPECT_EQ(UCS_OK, parse_addr(addr_header(1) +
                                 link(0, UCT_VARUNA_DEVICE_ADDR_MAX)));
}

UCS_TEST_F(test_varuna_parse, ctl_good) {
    for (const std::string &data : all_msgs()) {
        EXPECT_UCS_OK(parse_ctl(data));
    }
    EXPECT_UCS_OK(parse_ctl(fence_rep(UCT_VARUNA_FENCE_FLAG_QP |
                                      UCT_VARUNA_FENCE_FLAG_PSN, 0xffffff)));
}

UCS_TEST_F(test_varuna_parse, ctl_cut) {
    for (const std::string &data : all_msgs()) {
        for (size_t length = 0; length < data.size(); ++length) {
            std::string cut = data.substr(0, length);

            EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(cut));
            if (length >= sizeof(uct_varuna_ctl_hdr_t)) {
                /* A header which agrees with what is left: the body does not */
                uct_varuna_ctl_hdr_t hdr;
                memcpy(&hdr, cut.data(), sizeof(hdr));
                hdr.length = length - sizeof(hdr);
                cut.replace(0, sizeof(hdr), bytes(hdr));
                EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(cut))
                        << uct_varuna_ctl_type_name(hdr.type) << " length "
                        << length;
            }
        }
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(data + "x"));
    }
}

UCS_TEST_F(test_varuna_parse, ctl_from) {
    size_t device_len = ucs_offsetof(uct_varuna_ctl_hdr_t, from_device_len);
    size_t ctl_len    = ucs_offsetof(uct_varuna_ctl_hdr_t, from_ctl_len);
    size_t nic        = ucs_offsetof(uct_varuna_ctl_hdr_t, from_nic);
    unsigned with     = 0;
    uct_varuna_parsed_addr_t from;

    for (const std::string &data : all_msgs()) {
        if (!data[device_len]) {
            EXPECT_EQ(UCS_ERR_NO_ELEM,
                      uct_varuna_parse_ctl_from(data.data(), &from));
            /* Where it does not belong */
            EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                      parse_ctl(twist(twist(data + "ab", device_len, 1),
                                      ctl_len, 1)));
            continue;
        }

        ++with;
        ASSERT_UCS_OK(uct_varuna_parse_ctl_from(data.data(), &from));
        EXPECT_EQ(UUID, from.uuid);
        ASSERT_EQ(1u, from.num_links);
        EXPECT_EQ(2u, from.links[0].nic);
        EXPECT_TRUE(from.links[0].dc_addr == NULL);
        EXPECT_EQ("ddd", std::string((const char*)from.links[0].device_addr,
                                     from.links[0].device_len));
        EXPECT_EQ("qqqqq", std::string((const char*)from.links[0].ctl_addr,
                                       from.links[0].ctl_len));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(twist(data, device_len, 0)));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(twist(data, ctl_len, 0)));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(twist(data, ctl_len, 6)));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  parse_ctl(twist(data, nic, UCT_VARUNA_MAX_LINKS)));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  parse_ctl(twist(data + fill(40, 'd'), device_len,
                                  UCT_VARUNA_DEVICE_ADDR_MAX + 1)));
    }
    EXPECT_GE(with, 3u);
}

UCS_TEST_F(test_varuna_parse, ctl_foreign) {
    for (const std::string &data : all_msgs()) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(twist(data, 1, 0)));
        EXPECT_EQ(UCS_ERR_UNSUPPORTED,
                  parse_ctl(twist(data,
                                  ucs_offsetof(uct_varuna_ctl_hdr_t, version),
                                  UCT_VARUNA_WIRE_VERSION + 1)));
        EXPECT_TRUE(strstr(m_reason, "install") != NULL);
    }
}

/* Its header is shorter than ours */
UCS_TEST_F(test_varuna_parse, ctl_old) {
    std::string data(40, '\0');
    uint16_t magic = UCT_VARUNA_WIRE_MAGIC;
    uct_varuna_parsed_addr_t from;
    uct_varuna_ctl_hdr_t hdr;

    data.replace(0, sizeof(magic), bytes(magic));
    data[2]  = 10;
    data[3]  = UCT_VARUNA_CTL_PING;
    data[8]  = 7;
    data[24] = 8;
    data[28] = 9;
    data[36] = 3;
    data[37] = 5;
    data    += "dddqqqqq";
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, parse_ctl(data));
    for (size_t length = 0; length <= data.size(); ++length) {
        guarded_bytes cut(data.substr(0, length));
        EXPECT_EQ((length == data.size()) ? UCS_OK : UCS_ERR_INVALID_PARAM,
                  uct_varuna_parse_ctl_old(cut.data(), length, &hdr, &from));
    }

    ASSERT_UCS_OK(uct_varuna_parse_ctl_old(data.data(), data.size(), &hdr, &from));
    EXPECT_EQ(7u, hdr.dest);
    EXPECT_EQ(8u, hdr.vqp);
    EXPECT_EQ(9u, hdr.epoch);
    EXPECT_EQ(0u, hdr.secret);
    EXPECT_EQ("ddd", std::string((const char*)from.links[0].device_addr, 3));
    EXPECT_EQ("qqqqq", std::string((const char*)from.links[0].ctl_addr, 5));

    for (size_t pos : {0, 2, 36, 37}) {
        std::string other = twist(data, pos, 0);
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  uct_varuna_parse_ctl_old(other.data(), other.size(), &hdr,
                                           &from));
    }
}

UCS_TEST_F(test_varuna_parse, ctl_type) {
    std::string data = msg(UCT_VARUNA_CTL_CLOSE, 0);
    size_t offset    = ucs_offsetof(uct_varuna_ctl_hdr_t, type);

    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(twist(data, offset, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(twist(data, offset, UCT_VARUNA_CTL_LAST)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(twist(data, offset, '\xff')));
    EXPECT_EQ(std::string("FENCE_REQ"),
              uct_varuna_ctl_type_name(UCT_VARUNA_CTL_FENCE_REQ));
    EXPECT_EQ(std::string("unknown"), uct_varuna_ctl_type_name(0));
    EXPECT_EQ(std::string("unknown"), uct_varuna_ctl_type_name(12345));
}

UCS_TEST_F(test_varuna_parse, ctl_epoch) {
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(fence_req(0)));
}

UCS_TEST_F(test_varuna_parse, ctl_fence_req) {
    EXPECT_UCS_OK(parse_ctl(fence_req(1)));
    /* What wire version 1 sent */
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(msg(UCT_VARUNA_CTL_FENCE_REQ, 1)));
}

UCS_TEST_F(test_varuna_parse, ctl_open_rep) {
    uct_varuna_ctl_open_rep_t rep;

    rep        = open_rep_body();
    rep.target = UCT_VARUNA_TARGET_ID_MAX;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));

    rep          = open_rep_body();
    rep.log_size = UCT_VARUNA_LOG_SIZE * 2;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));

    rep           = open_rep_body();
    rep.log_count = 0;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));

    /* An arena; any UID that is found in memory can be looked up in it */
    rep             = open_rep_body();
    rep.slots_addr  = 0x10000;
    rep.marks_addr  = 0x20000;
    rep.arena_slots = UCT_VARUNA_SLOTS_MAX;
    rep.first_slot  = UCT_VARUNA_SLOTS_MAX - 2;
    rep.num_slots   = 2;
    EXPECT_EQ(UCS_OK, parse_ctl(open_rep_arena(rep)));
    rep.first_slot  = UCT_VARUNA_SLOTS_MAX - 1;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep_arena(rep)));
    rep.first_slot  = 0;
    rep.arena_slots = UCT_VARUNA_SLOTS_MAX / 2;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep_arena(rep)));
    rep.arena_slots = UCT_VARUNA_SLOTS_MAX;
    rep.marks_addr  = 0;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep_arena(rep)));
    rep.marks_addr  = 0x20000;
    rep.num_slots   = 0; /* Nor a key to write to them */
    EXPECT_EQ(UCS_OK, parse_ctl(open_rep_arena(rep)));

    rep          = open_rep_body();
    rep.log_addr = 0;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));

    /* Lengths which add up, but cut the key */
    rep           = open_rep_body();
    rep.rkey_len -= 8;
    rep.addr_len += 8;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));

    rep          = open_rep_body();
    rep.addr_len += rep.rkey_len - 1;
    rep.rkey_len = 1;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));

    rep          = open_rep_body();
    rep.rkey_len = 65535;
    rep.addr_len = 65535;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));
}

UCS_TEST_F(test_varuna_parse, ctl_connect) {
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REQ, 0, 0, 7)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REQ, 0, 3, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REQ, 0,
                                UCT_VARUNA_DEVICE_ADDR_MAX + 1, 7)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REQ, 0, 3, 7,
                                UCT_VARUNA_MAX_LINKS)));
    /* A failure is told in answers only, and without addresses */
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REQ, 6, 3, 7)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REQ, 6, 0, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REP, 6, 3, 7)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REP, 0, 0, 0)));
}

UCS_TEST_F(test_varuna_parse, ctl_fence_rep) {
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(fence_rep(4, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(fence_rep(UCT_VARUNA_FENCE_FLAG_PSN, 0x1000000)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(fence_rep(0, 0, UCT_VARUNA_LOG_SIZE / 2)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(fence_rep(0, 0, 0)));
}

UCS_TEST_F(test_varuna_parse, ctl_reject) {
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(reject(0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(reject(1)));
}

/* Nonsense is refused or accepted, but nothing beyond it is read. Whole bytes
 * of good input are replaced, so that many get past the first checks. */
UCS_TEST_F(test_varuna_parse, nonsense) {
    unsigned accepted = 0;

    for (int i = 0; i < 2000; ++i) {
        std::vector<std::string> msgs = all_msgs();
        std::string data              = msgs[ucs::rand() % msgs.size()];
        std::string addr              = (i % 2) ? short_addr() : full_addr();

        for (int j = 0; j < 1 + (i % 3); ++j) {
            data[ucs::rand() % data.size()] = ucs::rand();
            addr[ucs::rand() % addr.size()] = ucs::rand();
        }
        accepted += (parse_ctl(data) == UCS_OK);
        accepted += (parse_addr(addr) == UCS_OK);
        /* Of unknown length: up to UCP's limit it may be anybody's bytes */
        parse_addr(addr + fill(UCT_VARUNA_IFACE_ADDR_MAX, 'x'), false);
    }

    /* Else this has tested nothing but the magic */
    EXPECT_GT(accepted, 100u);
}

UCS_TEST_F(test_varuna_parse, ctl_atomic_out_of_range) {
    EXPECT_UCS_OK(parse_ctl(atomic_req(1)));
    EXPECT_UCS_OK(parse_ctl(atomic_req(1, 5, 5)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(atomic_req(0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(atomic_req(UCT_VARUNA_AMO_WINDOW + 1)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(atomic_req(1, 5, 6)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(atomic_req(1, 5, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(atomic_req(1, 5, 3, UCT_ATOMIC_OP_LAST)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(atomic_req(1, 5, 3, 0, 2)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(atomic_req(1, 5, 3, 0, 8, 0x1004)));
    EXPECT_UCS_OK(parse_ctl(atomic_req(1, 5, 3, 0, 4, 0x1004)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(atomic_rep(0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(atomic_rep(UCT_VARUNA_AMO_WINDOW + 1)));
}
