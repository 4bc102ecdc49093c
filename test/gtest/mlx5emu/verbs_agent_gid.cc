/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Addresses: link layer, GIDs, in verbs and in the files that programs read directly.
 * See verbs_agent.h.
 */

#include "verbs_agent.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern "C" int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
                                  unsigned index, int *type);

namespace agent {

bool get_grh(const words_t &words, size_t first, ibv_ah_attr *attr)
{
    if (words.size() <= first) {
        return false;
    }

    attr->is_global                     = 1;
    attr->grh.sgid_index                = number(words, first);
    attr->grh.dgid.global.subnet_prefix = htobe64(number(words, first + 1));
    attr->grh.dgid.global.interface_id  = htobe64(number(words, first + 2));
    attr->grh.hop_limit                 = 64;
    attr->grh.traffic_class             = 0x20;
    attr->grh.flow_label                = 0x12345;
    return true;
}

/* layer CONTEXT -> link layer, length of the GID table, flags, LID, SM's LID,
 * physical state */
numbers_t cmd_layer(const words_t &words)
{
    ibv_port_attr attr;

    check(ibv_query_port(item(contexts, words, 1).ibv, 1, &attr) == 0,
          "ibv_query_port");
    return {attr.link_layer, (uint64_t)attr.gid_tbl_len, attr.flags, attr.lid,
            attr.sm_lid, attr.phys_state};
}

/* gid CONTEXT INDEX -> errno, or: 0, prefix, interface, type */
numbers_t cmd_gid(const words_t &words)
{
    ibv_gid_entry entry;
    int ret;

    ret = ibv_query_gid_ex(item(contexts, words, 1).ibv, 1, number(words, 2),
                           &entry, 0);
    if (ret != 0) {
        return {(uint64_t)ret};
    }

    return {0, be64toh(entry.gid.global.subnet_prefix),
            be64toh(entry.gid.global.interface_id), entry.gid_type};
}

/* gid_table CONTEXT ROOM -> indices that are in use */
numbers_t cmd_gid_table(const words_t &words)
{
    std::vector<ibv_gid_entry> entries(number(words, 2) + 1);
    numbers_t result;
    ssize_t num;

    num = ibv_query_gid_table(item(contexts, words, 1).ibv, entries.data(),
                              number(words, 2), 0);
    if (num < 0) {
        throw failure{(int)-num, "ibv_query_gid_table"};
    }

    for (ssize_t i = 0; i < num; ++i) {
        result.push_back(entries[i].gid_index);
    }
    return result;
}

/* Contents of a file, without the newline; "!ERRNO" if it cannot be read */
static std::string read_text(const std::string &path)
{
    char text[256] = "";
    ssize_t length;
    int fd;

    fd     = open(path.c_str(), O_RDONLY);
    length = (fd < 0) ? -1 : read(fd, text, sizeof(text) - 1);
    if (length <= 0) {
        std::string result = "!" + std::to_string(errno);
        if (fd >= 0) {
            close(fd);
        }
        return result;
    }

    close(fd);
    return std::string(text, length - 1);
}

/* The same by the functions of stdio */
static std::string scan_text(const std::string &path)
{
    char text[256] = "";
    FILE *file     = fopen(path.c_str(), "r");

    if (file == NULL) {
        return "!" + std::to_string(errno);
    }

    if (fgets(text, sizeof(text), file) != NULL) {
        text[strcspn(text, "\n")] = '\0';
    }
    fclose(file);
    return text;
}

/* file CONTEXT NAME -> the bytes of a file of the device, by its path in /sys; it is
 * the same by the device's own path, or this fails */
numbers_t cmd_file(const words_t &words)
{
    ibv_context *ibv = item(contexts, words, 1).ibv;
    std::string name = std::string("/") + words.at(2);
    std::string path = std::string("/sys/class/infiniband/") +
                       ibv_get_device_name(ibv->device) + name;
    std::string text = read_text(path);

    if ((text != read_text(ibv->device->ibdev_path + name)) ||
        (text != scan_text(path)) ||
        ((text[0] != '!') && (access(path.c_str(), R_OK) != 0))) {
        throw failure{EIO, path + " is not the same everywhere"};
    }
    return numbers_t(text.begin(), text.end());
}

/* The files of an index are what verbs have. @return how many differ */
static unsigned differences(ibv_context *ibv, unsigned index)
{
    const std::string port = std::string("/sys/class/infiniband/") +
                             ibv_get_device_name(ibv->device) + "/ports/1/";
    const std::string i    = std::to_string(index);
    std::string gid        = read_text(port + "gids/" + i);
    std::string type       = read_text(port + "gid_attrs/types/" + i);
    std::string ndev       = read_text(port + "gid_attrs/ndevs/" + i);
    std::string wanted     = "!" + std::to_string(EINVAL);
    bool is_used           = false;
    ibv_gid_entry entry    = {};
    union ibv_gid old, parsed;
    int old_type;

    if (ibv_query_gid(ibv, 1, index, &old) != 0) {
        return 1;
    }

    is_used = (ibv_query_gid_ex(ibv, 1, index, &entry, 0) == 0);
    if (is_used) {
        wanted = (entry.gid_type == IBV_GID_TYPE_ROCE_V2) ? "RoCE v2" :
                                                            "IB/RoCE v1";
    }

    check(ibv_query_gid_type(ibv, 1, index, &old_type) == 0,
          "ibv_query_gid_type");
    return (inet_pton(AF_INET6, gid.c_str(), &parsed) != 1) +
           (memcmp(&parsed, &entry.gid, sizeof(parsed)) != 0) +
           (memcmp(&old, &entry.gid, sizeof(old)) != 0) +
           (old_type != (is_used &&
                         (entry.gid_type == IBV_GID_TYPE_ROCE_V2))) +
           (type != wanted) +
           ((ndev[0] == '!') !=
            (!is_used || (entry.gid_type == IBV_GID_TYPE_IB)));
}

/* gid_files CONTEXT -> how many files do not have what verbs have, indices that
 * there are */
numbers_t cmd_gid_files(const words_t &words)
{
    ibv_context *ibv = item(contexts, words, 1).ibv;
    uint64_t wrong   = 0;
    ibv_port_attr attr;

    check(ibv_query_port(ibv, 1, &attr) == 0, "ibv_query_port");
    for (int i = 0; i < attr.gid_tbl_len; ++i) {
        wrong += differences(ibv, i);
    }
    return {wrong, (uint64_t)attr.gid_tbl_len};
}

/* answer CONTEXT CQ ADDR: polls a datagram that is at ADDR -> address handle of its
 * sender, its queue pair, whether there is a GRH, service level, LID, sender's GID */
numbers_t cmd_answer(const words_t &words)
{
    context &c   = item(contexts, words, 1);
    ibv_cq *cq   = item(cqs, words, 2);
    ibv_grh *grh = (ibv_grh*)number(words, 3);
    ibv_ah_attr attr;
    ibv_wc wc;
    ibv_ah *ah;

    if (ibv_poll_cq(cq, 1, &wc) != 1) {
        return {};
    }

    check(wc.status == IBV_WC_SUCCESS, "completion");
    check(ibv_init_ah_from_wc(c.ibv, 1, &wc, grh, &attr) == 0,
          "ibv_init_ah_from_wc");
    ah = ibv_create_ah_from_wc(c.pd, &wc, grh, 1);
    check(ah != NULL, "ibv_create_ah_from_wc");
    ahs.push_back(ah);
    return {ahs.size() - 1, wc.src_qp, !!(wc.wc_flags & IBV_WC_GRH), wc.sl,
            wc.slid, be64toh(attr.grh.dgid.global.subnet_prefix),
            be64toh(attr.grh.dgid.global.interface_id), attr.grh.sgid_index,
            attr.grh.traffic_class, attr.grh.hop_limit};
}

/* mac CONTEXT SGID_INDEX PREFIX ID -> MAC address as a number */
numbers_t cmd_mac(const words_t &words)
{
    ibv_ah_attr attr = {};
    uint64_t value   = 0;
    uint8_t mac[6];
    uint16_t vid;

    attr.port_num = 1;
    get_grh(words, 2, &attr);
    check(ibv_resolve_eth_l2_from_gid(item(contexts, words, 1).ibv, &attr, mac,
                                      &vid) == 0,
          "ibv_resolve_eth_l2_from_gid");
    for (uint8_t byte : mac) {
        value = (value << 8) | byte;
    }
    return {value, vid};
}

} /* namespace agent */
