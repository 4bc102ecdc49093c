/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Addresses and control messages to be parsed, right before a page that cannot be read.
 */
#ifndef TEST_VARUNA_PARSE_H_
#define TEST_VARUNA_PARSE_H_

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_msg.h>
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
}

#include <string>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes right before an unreadable page, so that reading further crashes. */
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
        uct_varuna_addr_link_t entry = {};

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
        rkey.key_size = sizeof(uct_varuna_packed_key_t);
        rkey.nic_map  = (1u << num_keys) - 1;
        return bytes(rkey) + fill(num_keys * sizeof(uct_varuna_packed_key_t), 'k');
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
                                 uint16_t log_size = UCT_VARUNA_LOG_SIZE,
                                 uint8_t dc_order = 0)
    {
        uct_varuna_ctl_fence_rep_t rep = {};

        rep.flags    = flags;
        rep.epsn     = epsn;
        rep.log_size = log_size;
        rep.dc_ordered = rep.dc_unordered = dc_order;
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

    static std::string home_rep(int16_t status)
    {
        uct_varuna_ctl_home_rep_t body = {};

        body.status = status;
        return msg(UCT_VARUNA_CTL_HOME_REP, 0, bytes(body));
    }

    static std::string links_rep(const std::string &address)
    {
        uct_varuna_ctl_links_t body = {};

        body.addr_len = address.size();
        body.moves    = 3;
        return msg(UCT_VARUNA_CTL_LINKS_REP, 0, bytes(body) + address);
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
                msg(UCT_VARUNA_CTL_LINKS_REQ, 0),
                links_rep(full_addr()),
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
            /* The pointers are invalid after the bytes are freed */
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

#endif
