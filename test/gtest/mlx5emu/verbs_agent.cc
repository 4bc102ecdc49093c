/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The agent's loop and its commands over plain verbs; see verbs_agent.h.
 */

#include "verbs_agent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <iostream>
#include <map>
#include <sstream>

namespace agent {

std::vector<context>    contexts;
std::vector<memory>     memories;
std::vector<ibv_cq*>    cqs;
std::vector<ibv_srq*>   srqs;
std::vector<queue_pair> qps;
std::vector<ibv_ah*>    ahs;
ibv_mtu                 path_mtu = IBV_MTU_1024;

uint64_t number(const words_t &words, size_t index)
{
    if (index >= words.size()) {
        throw failure{EINVAL, words[0] + ": word " + std::to_string(index) +
                      " is missing"};
    }
    return strtoull(words[index].c_str(), NULL, 0);
}

void check(bool condition, const char *what)
{
    if (!condition) {
        throw failure{errno, std::string(what) + ": " + strerror(errno)};
    }
}

/* Verbs that return the error */
static void check_ret(int ret, const char *what)
{
    errno = (ret < 0) ? errno : ret;
    check(ret == 0, what);
}

static uint64_t now_ms()
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000ul + ts.tv_nsec / 1000000ul;
}

static void nap()
{
    struct timespec ts = {0, 200000};

    nanosleep(&ts, NULL);
}

bool wait_fd(int fd, int timeout_ms)
{
    struct pollfd pfd = {fd, POLLIN, 0};

    return poll(&pfd, 1, timeout_ms) == 1;
}


/* dv DEVICE_NUMBER -> whether it has direct verbs, whether it can be opened for
 * them */
static numbers_t cmd_dv(const words_t &words)
{
    mlx5dv_context_attr attr = {};
    ibv_device **list        = ibv_get_device_list(NULL);
    ibv_context *context;
    numbers_t result;

    check(list != NULL, "ibv_get_device_list");
    attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
    result.push_back(mlx5dv_is_supported(list[number(words, 1)]));
    context = mlx5dv_open_device(list[number(words, 1)], &attr);
    result.push_back(context != NULL);
    if (context != NULL) {
        ibv_close_device(context);
    }
    ibv_free_device_list(list);
    return result;
}

/* devices -> number, then GUIDs */
static numbers_t cmd_devices(const words_t &words)
{
    numbers_t result;
    ibv_device **list;
    int num;

    list = ibv_get_device_list(&num);
    check(list != NULL, "ibv_get_device_list");
    result.push_back(num);
    for (int i = 0; i < num; ++i) {
        result.push_back(ibv_get_device_guid(list[i]));
    }
    ibv_free_device_list(list);
    return result;
}

/* Whether a device of any kind has a link */
static bool has_link(ibv_device *device, uint64_t link)
{
    std::string name = ibv_get_device_name(device);

    return (name == "mlx5_" + std::to_string(link)) ||
           (name == "mlx5_bond_" + std::to_string(link / 2)) ||
           (name == "verbs_" + std::to_string(link));
}

/* open LINK -> context */
static numbers_t cmd_open(const words_t &words)
{
    uint64_t link    = number(words, 1);
    context c        = {};
    ibv_device **list;

    list = ibv_get_device_list(NULL);
    check(list != NULL, "ibv_get_device_list");
    for (int i = 0; list[i] != NULL; ++i) {
        if ((c.ibv == NULL) && has_link(list[i], link)) {
            c.ibv = ibv_open_device(list[i]);
            check(c.ibv != NULL, "ibv_open_device");
        }
    }
    ibv_free_device_list(list);
    if (c.ibv == NULL) {
        throw failure{ENODEV, "no device on link " + words[1]};
    }

    c.pd = ibv_alloc_pd(c.ibv);
    check(c.pd != NULL, "ibv_alloc_pd");
    c.channel = ibv_create_comp_channel(c.ibv);
    check(c.channel != NULL, "ibv_create_comp_channel");
    contexts.push_back(c);
    return {contexts.size() - 1};
}

/* port CONTEXT -> state, LID, GID prefix, MTU in bytes, subnet timeout */
static numbers_t cmd_port(const words_t &words)
{
    context &c = item(contexts, words, 1);
    ibv_port_attr attr;
    ibv_gid gid;

    check_ret(ibv_query_port(c.ibv, 1, &attr), "ibv_query_port");
    check_ret(ibv_query_gid(c.ibv, 1, 0, &gid), "ibv_query_gid");
    return {(uint64_t)attr.state, attr.lid, be64toh(gid.global.subnet_prefix),
            128ul << attr.active_mtu, attr.subnet_timeout};
}

/* mr CONTEXT SIZE ACCESS -> memory, address, lkey, rkey */
static numbers_t cmd_mr(const words_t &words)
{
    context &c = item(contexts, words, 1);
    memory m   = {};

    m.size = number(words, 2);
    m.addr = (uint8_t*)mmap(NULL, m.size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(m.addr != MAP_FAILED, "mmap");
    m.mr = ibv_reg_mr(c.pd, m.addr, m.size, number(words, 3));
    if (m.mr == NULL) {
        munmap(m.addr, m.size);
        check(false, "ibv_reg_mr");
    }
    memories.push_back(m);
    return {memories.size() - 1, (uint64_t)m.addr, m.mr->lkey, m.mr->rkey};
}

/* dmabuf CONTEXT SIZE ACCESS -> as mr: memory of a device, which the program can map */
static numbers_t cmd_dmabuf(const words_t &words)
{
    context &c = item(contexts, words, 1);
    memory m   = {};
    int fd     = memfd_create("dmabuf", MFD_CLOEXEC);

    m.size = number(words, 2);
    check((fd >= 0) && (ftruncate(fd, m.size) == 0), "memfd_create");
    m.addr = (uint8_t*)mmap(NULL, m.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check(m.addr != MAP_FAILED, "mmap");
    m.mr = ibv_reg_dmabuf_mr(c.pd, 0, m.size, (uint64_t)m.addr, fd, number(words, 3));
    check(m.mr != NULL, "ibv_reg_dmabuf_mr");
    close(fd); /* The region keeps the memory */
    memories.push_back(m);
    return {memories.size() - 1, (uint64_t)m.addr, m.mr->lkey, m.mr->rkey};
}

/* alias CONTEXT MEMORY ACCESS -> lkey, rkey: the same memory, another device */
static numbers_t cmd_alias(const words_t &words)
{
    context &c = item(contexts, words, 1);
    memory &m  = item(memories, words, 2);
    ibv_mr *mr = ibv_reg_mr(c.pd, m.addr, m.size, number(words, 3));

    check(mr != NULL, "ibv_reg_mr");
    return {mr->lkey, mr->rkey};
}

/* dereg MEMORY */
static numbers_t cmd_dereg(const words_t &words)
{
    memory &m = item(memories, words, 1);

    check_ret(ibv_dereg_mr(m.mr), "ibv_dereg_mr");
    m.mr = NULL;
    return {};
}

static uint8_t *range(const words_t &words, uint64_t length)
{
    memory &m       = item(memories, words, 1);
    uint64_t offset = number(words, 2);

    if ((offset > m.size) || (length > m.size - offset)) {
        throw failure{ERANGE, "out of the memory's bounds"};
    }
    return m.addr + offset;
}

/* protect MEMORY OFFSET LENGTH PROT */
static numbers_t cmd_protect(const words_t &words)
{
    uint64_t length = number(words, 3);

    check(mprotect(range(words, length), length, number(words, 4)) == 0,
          "mprotect");
    return {};
}

/* unmap MEMORY OFFSET LENGTH */
static numbers_t cmd_unmap(const words_t &words)
{
    uint64_t length = number(words, 3);

    check(munmap(range(words, length), length) == 0, "munmap");
    return {};
}

/* Byte number i of a pattern: differs at every offset and for every seed */
static uint8_t pattern(uint64_t seed, uint64_t i)
{
    uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ul + i * 0xff51afd7ed558ccdul;

    return (x ^ (x >> 29) ^ (x >> 47)) >> 8;
}

/* fill MEMORY OFFSET LENGTH SEED */
static numbers_t cmd_fill(const words_t &words)
{
    uint64_t length = number(words, 3);
    uint8_t *p      = range(words, length);

    for (uint64_t i = 0; i < length; ++i) {
        p[i] = pattern(number(words, 4), i);
    }
    return {};
}

/* match MEMORY OFFSET LENGTH SEED -> bytes at the start that agree */
static numbers_t cmd_match(const words_t &words)
{
    uint64_t length = number(words, 3);
    uint64_t seed   = number(words, 4);
    uint8_t *p      = range(words, length);
    uint64_t i;

    for (i = 0; (i < length) && (p[i] == pattern(seed, i)); ++i) {
    }
    return {i};
}

/* zeroes MEMORY OFFSET LENGTH -> bytes at the start that are zero */
static numbers_t cmd_zeroes(const words_t &words)
{
    uint64_t length = number(words, 3);
    uint8_t *p      = range(words, length);
    uint64_t i;

    for (i = 0; (i < length) && (p[i] == 0); ++i) {
    }
    return {i};
}

/* get MEMORY OFFSET -> 64-bit word */
static numbers_t cmd_get(const words_t &words)
{
    uint64_t value;

    memcpy(&value, range(words, sizeof(value)), sizeof(value));
    return {value};
}

/* put MEMORY OFFSET VALUE */
static numbers_t cmd_put(const words_t &words)
{
    uint64_t value = number(words, 3);

    memcpy(range(words, sizeof(value)), &value, sizeof(value));
    return {};
}

/* cq CONTEXT ENTRIES WITH_CHANNEL -> CQ */
static numbers_t cmd_cq(const words_t &words)
{
    context &c = item(contexts, words, 1);
    ibv_cq *cq = ibv_create_cq(c.ibv, number(words, 2), NULL,
                               number(words, 3) ? c.channel : NULL, 0);

    check(cq != NULL, "ibv_create_cq");
    cqs.push_back(cq);
    return {cqs.size() - 1};
}

/* srq CONTEXT ENTRIES -> SRQ */
static numbers_t cmd_srq(const words_t &words)
{
    context &c             = item(contexts, words, 1);
    ibv_srq_init_attr attr = {};
    ibv_srq *srq;

    attr.attr.max_wr  = number(words, 2);
    attr.attr.max_sge = 1;
    srq               = ibv_create_srq(c.pd, &attr);
    check(srq != NULL, "ibv_create_srq");
    srqs.push_back(srq);
    return {srqs.size() - 1};
}

/* qp CONTEXT TYPE CQ SRQ|-1 SIG_ALL -> QP, QPN */
static numbers_t cmd_qp(const words_t &words)
{
    context &c            = item(contexts, words, 1);
    ibv_qp_init_attr attr = {};
    queue_pair qp         = {};

    attr.qp_type             = (ibv_qp_type)number(words, 2);
    attr.send_cq             = item(cqs, words, 3);
    attr.recv_cq             = attr.send_cq;
    attr.srq                 = (words.at(4) == "-1") ? NULL :
                               item(srqs, words, 4);
    attr.sq_sig_all          = number(words, 5);
    attr.cap.max_send_wr     = 64;
    attr.cap.max_recv_wr     = attr.srq ? 0 : 64;
    attr.cap.max_send_sge    = 2;
    attr.cap.max_recv_sge    = 1;
    attr.cap.max_inline_data = 64;
    qp.ibv                   = ibv_create_qp(c.pd, &attr);
    check(qp.ibv != NULL, "ibv_create_qp");
    qp.context = number(words, 1);
    qps.push_back(qp);
    return {qps.size() - 1, qp.ibv->qp_num};
}

/* mtu BYTES: of what is connected from now on (1024) */
static numbers_t cmd_mtu(const words_t &words)
{
    unsigned mtu = IBV_MTU_256;

    while ((128ul << mtu) < number(words, 1)) {
        ++mtu;
    }
    path_mtu = ibv_mtu(mtu);
    return {};
}

/* connect QP REMOTE_QPN DLID TIMEOUT RETRY RNR_RETRY [SL [SGID_INDEX PREFIX ID]] */
static numbers_t cmd_connect(const words_t &words)
{
    queue_pair &qp   = item(qps, words, 1);
    ibv_qp_attr attr = {};

    attr.qp_state        = IBV_QPS_INIT;
    attr.port_num        = 1;
    attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    check_ret(ibv_modify_qp(qp.ibv, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                            IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              "modify to INIT");

    attr.qp_state           = IBV_QPS_RTR;
    attr.path_mtu           = path_mtu;
    attr.dest_qp_num        = number(words, 2);
    attr.rq_psn             = 0xfffff0;   /* wraps soon */
    attr.max_dest_rd_atomic = 4;
    attr.min_rnr_timer      = 1;
    attr.ah_attr.dlid       = number(words, 3);
    attr.ah_attr.port_num   = 1;
    attr.ah_attr.sl         = (words.size() > 7) ? number(words, 7) : 0;
    get_grh(words, 8, &attr.ah_attr);
    check_ret(ibv_modify_qp(qp.ibv, &attr, IBV_QP_STATE | IBV_QP_AV |
                            IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              "modify to RTR");

    attr.qp_state      = IBV_QPS_RTS;
    attr.sq_psn        = 0xfffff0;
    attr.timeout       = number(words, 4);
    attr.retry_cnt     = number(words, 5);
    attr.rnr_retry     = number(words, 6);
    attr.max_rd_atomic = 4;
    check_ret(ibv_modify_qp(qp.ibv, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
                            IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
              "modify to RTS");
    return {};
}

/* ud QP: to RTS, Q_Key 0x11111111 */
static numbers_t cmd_ud(const words_t &words)
{
    queue_pair &qp   = item(qps, words, 1);
    ibv_qp_attr attr = {};

    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qkey     = 0x11111111;
    check_ret(ibv_modify_qp(qp.ibv, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                            IBV_QP_PORT | IBV_QP_QKEY), "modify to INIT");
    attr.qp_state = IBV_QPS_RTR;
    check_ret(ibv_modify_qp(qp.ibv, &attr, IBV_QP_STATE), "modify to RTR");
    attr.qp_state = IBV_QPS_RTS;
    check_ret(ibv_modify_qp(qp.ibv, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN),
              "modify to RTS");
    return {};
}

/* state QP STATE: RESET or ERR */
static numbers_t cmd_state(const words_t &words)
{
    queue_pair &qp   = item(qps, words, 1);
    ibv_qp_attr attr = {};

    attr.qp_state = (ibv_qp_state)number(words, 2);
    check_ret(ibv_modify_qp(qp.ibv, &attr, IBV_QP_STATE), "ibv_modify_qp");
    if (attr.qp_state == IBV_QPS_RESET) {
        qp.raw_pi = 0;
    }
    return {};
}

/* query QP -> state, RQ PSN, SQ PSN */
static numbers_t cmd_query(const words_t &words)
{
    queue_pair &qp = item(qps, words, 1);
    ibv_qp_init_attr init;
    ibv_qp_attr attr;

    check_ret(ibv_query_qp(qp.ibv, &attr, IBV_QP_STATE | IBV_QP_RQ_PSN |
                           IBV_QP_SQ_PSN, &init), "ibv_query_qp");
    return {(uint64_t)attr.qp_state, attr.rq_psn, attr.sq_psn};
}

/* destroy QP */
static numbers_t cmd_destroy(const words_t &words)
{
    queue_pair &qp = item(qps, words, 1);

    check_ret(ibv_destroy_qp(qp.ibv), "ibv_destroy_qp");
    qp.ibv = NULL;
    return {};
}

/* ah CONTEXT DLID [SGID_INDEX PREFIX ID] -> address handle */
static numbers_t cmd_ah(const words_t &words)
{
    context &c       = item(contexts, words, 1);
    ibv_ah_attr attr = {};
    ibv_ah *ah;

    attr.dlid     = number(words, 2);
    attr.port_num = 1;
    get_grh(words, 3, &attr);
    ah            = ibv_create_ah(c.pd, &attr);
    check(ah != NULL, "ibv_create_ah");
    ahs.push_back(ah);
    return {ahs.size() - 1};
}

/* send QP WR_ID OPCODE FLAGS LADDR LENGTH LKEY RADDR RKEY [A [B]]
 *   A, B: compare and swap; add; immediate.  UD: A is AH, B is QPN */
static numbers_t cmd_send(const words_t &words)
{
    queue_pair &qp  = item(qps, words, 1);
    ibv_send_wr wr  = {};
    ibv_send_wr *bad;
    ibv_sge sge;
    uint64_t a      = (words.size() > 10) ? number(words, 10) : 0;
    uint64_t b      = (words.size() > 11) ? number(words, 11) : 0;

    wr.wr_id      = number(words, 2);
    wr.opcode     = (ibv_wr_opcode)number(words, 3);
    wr.send_flags = number(words, 4);
    sge.addr      = number(words, 5);
    sge.length    = number(words, 6);
    sge.lkey      = number(words, 7);
    wr.sg_list    = &sge;
    wr.num_sge    = (sge.length > 0);
    if (qp.ibv->qp_type == IBV_QPT_UD) {
        wr.wr.ud.ah          = ahs.at(a);
        wr.wr.ud.remote_qpn  = b;
        wr.wr.ud.remote_qkey = 0x11111111;
    } else if ((wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) ||
               (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)) {
        wr.wr.atomic.remote_addr = number(words, 8);
        wr.wr.atomic.rkey        = number(words, 9);
        wr.wr.atomic.compare_add = a;
        wr.wr.atomic.swap        = b;
    } else {
        wr.wr.rdma.remote_addr = number(words, 8);
        wr.wr.rdma.rkey        = number(words, 9);
        wr.imm_data            = htobe32(a);
    }

    check_ret(ibv_post_send(qp.ibv, &wr, &bad), "ibv_post_send");
    return {};
}

/* recv QP WR_ID ADDR LENGTH LKEY, srq_recv SRQ ... */
static numbers_t cmd_recv(const words_t &words)
{
    ibv_sge sge    = {number(words, 3), (uint32_t)number(words, 4),
                      (uint32_t)number(words, 5)};
    ibv_recv_wr wr = {};
    ibv_recv_wr *bad;

    wr.wr_id   = number(words, 2);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    if (words[0] == "srq_recv") {
        check_ret(ibv_post_srq_recv(item(srqs, words, 1), &wr, &bad),
                  "ibv_post_srq_recv");
    } else {
        check_ret(ibv_post_recv(item(qps, words, 1).ibv, &wr, &bad),
                  "ibv_post_recv");
    }
    return {};
}

/* poll CQ TIMEOUT_MS -> nothing, or: status, opcode, wr_id, length, imm,
 * QPN, vendor error */
static numbers_t cmd_poll(const words_t &words)
{
    uint64_t deadline = now_ms() + number(words, 2);
    ibv_cq *cq        = item(cqs, words, 1);
    ibv_wc wc         = {};
    int ret;

    while ((ret = ibv_poll_cq(cq, 1, &wc)) == 0) {
        if (now_ms() > deadline) {
            return {};
        }
        nap();
    }
    check(ret > 0, "ibv_poll_cq");
    return {(uint64_t)wc.status, (uint64_t)wc.opcode, wc.wr_id, wc.byte_len,
            be32toh(wc.imm_data), wc.qp_num, wc.vendor_err};
}

/* arm CQ SOLICITED_ONLY */
static numbers_t cmd_arm(const words_t &words)
{
    check_ret(ibv_req_notify_cq(item(cqs, words, 1), number(words, 2)),
              "ibv_req_notify_cq");
    return {};
}

/* event CONTEXT TIMEOUT_MS -> nothing, or: CQ */
static numbers_t cmd_event(const words_t &words)
{
    context &c = item(contexts, words, 1);
    ibv_cq *cq;
    void *cq_context;

    if (!wait_fd(c.channel->fd, number(words, 2))) {
        return {};
    }
    check(ibv_get_cq_event(c.channel, &cq, &cq_context) == 0,
          "ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
    for (size_t i = 0; i < cqs.size(); ++i) {
        if (cqs[i] == cq) {
            return {i};
        }
    }
    throw failure{EINVAL, "an event of an unknown CQ"};
}

/* async CONTEXT TIMEOUT_MS -> nothing, or: event type, QPN or port */
static numbers_t cmd_async(const words_t &words)
{
    context &c = item(contexts, words, 1);
    ibv_async_event event;
    uint64_t what = 0;

    if (!wait_fd(c.ibv->async_fd, number(words, 2))) {
        return {};
    }
    check(ibv_get_async_event(c.ibv, &event) == 0, "ibv_get_async_event");
    switch (event.event_type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
        what = event.element.port_num;
        break;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        what = event.element.qp->qp_num;
        break;
    default:
        break;
    }
    ibv_ack_async_event(&event);
    return {(uint64_t)event.event_type, what};
}

/* storm QP CQ LADDR LKEY RADDR RKEY: repeatedly adds 1 to a remote word and writes 64
 * KB after it, until an error -> status, rounds */
static numbers_t cmd_storm(const words_t &words)
{
    static const unsigned size = 65536;
    queue_pair &qp             = item(qps, words, 1);
    ibv_cq *cq                 = item(cqs, words, 2);
    uint64_t rounds            = 0;

    for (;; ++rounds) {
        ibv_sge sge[2]    = {{number(words, 3), 8, (uint32_t)number(words, 4)},
                             {number(words, 3) + 64, size,
                              (uint32_t)number(words, 4)}};
        ibv_send_wr wr[2] = {};
        ibv_send_wr *bad;
        ibv_wc wc;

        wr[0].opcode                = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr[0].sg_list               = &sge[0];
        wr[0].num_sge               = 1;
        wr[0].next                  = &wr[1];
        wr[0].wr.atomic.remote_addr = number(words, 5);
        wr[0].wr.atomic.rkey        = number(words, 6);
        wr[0].wr.atomic.compare_add = 1;
        wr[1].opcode                = IBV_WR_RDMA_WRITE;
        wr[1].sg_list               = &sge[1];
        wr[1].num_sge               = 1;
        wr[1].wr.rdma.remote_addr   = number(words, 5) + 64;
        wr[1].wr.rdma.rkey          = number(words, 6);
        check_ret(ibv_post_send(qp.ibv, wr, &bad), "ibv_post_send");
        for (int left = 2; left > 0;) {
            int ret = ibv_poll_cq(cq, 1, &wc);

            check(ret >= 0, "ibv_poll_cq");
            if ((ret == 1) && (wc.status != IBV_WC_SUCCESS)) {
                return {(uint64_t)wc.status, rounds};
            }
            left -= ret;
        }
    }
}

static numbers_t cmd_pid(const words_t &words)
{
    return {(uint64_t)getpid()};
}

/* close_fds FIRST: this one and all later ones, as daemons do */
static numbers_t cmd_close_fds(const words_t &words)
{
    check(close_range(number(words, 1), ~0u, 0) == 0, "close_range");
    return {};
}

typedef numbers_t (*command_t)(const words_t &words);

static const std::map<std::string, command_t> commands = {
    {"dv", cmd_dv},           {"devices", cmd_devices}, {"open", cmd_open},     {"port", cmd_port},
    {"mr", cmd_mr},           {"dereg", cmd_dereg},   {"fill", cmd_fill},
    {"dmabuf", cmd_dmabuf},
    {"match", cmd_match},     {"zeroes", cmd_zeroes}, {"get", cmd_get},
    {"put", cmd_put},         {"cq", cmd_cq},         {"srq", cmd_srq},
    {"qp", cmd_qp},           {"mtu", cmd_mtu},         {"connect", cmd_connect}, {"ud", cmd_ud},
    {"state", cmd_state},     {"query", cmd_query},   {"ah", cmd_ah},
    {"destroy", cmd_destroy}, {"send", cmd_send},     {"recv", cmd_recv},
    {"srq_recv", cmd_recv},   {"poll", cmd_poll},     {"arm", cmd_arm},
    {"event", cmd_event},     {"async", cmd_async},   {"pid", cmd_pid},
    {"dct", cmd_dct},         {"dci", cmd_dci},       {"raw", cmd_raw},
    {"dc_modify", cmd_dc_modify}, {"raw_bytes", cmd_raw_bytes},
    {"storm", cmd_storm},     {"alias", cmd_alias},
    {"protect", cmd_protect}, {"unmap", cmd_unmap},
    {"masked", cmd_masked},   {"bytes", cmd_bytes},   {"peek", cmd_peek},
    {"close_fds", cmd_close_fds}, {"layer", cmd_layer},
    {"gid", cmd_gid},         {"gid_table", cmd_gid_table},
    {"gid_files", cmd_gid_files}, {"file", cmd_file},
    {"answer", cmd_answer},   {"mac", cmd_mac},
    {"devx_modify", cmd_devx_obj},      {"devx_query", cmd_devx_obj},
    {"devx_qp_modify", cmd_devx_qp},    {"devx_qp_query", cmd_devx_qp},
    {"devx_open", cmd_devx_open},
    {"devx_nums", cmd_devx_nums},
    {"devx_umem", cmd_devx_umem},
    {"devx_umem_dereg", cmd_devx_umem_dereg},
    {"devx_uar", cmd_devx_uar},
    {"devx_eqn", cmd_devx_eqn},
    {"devx_general", cmd_devx_general},
    {"devx_create", cmd_devx_create},
    {"devx_destroy", cmd_devx_destroy},
    {"devx_nulls", cmd_devx_nulls},
    {"devx_channel", cmd_devx_channel},
    {"devx_subscribe", cmd_devx_subscribe},
    {"devx_event", cmd_devx_event},
    {"devx_ring", cmd_devx_ring}
};

static std::string run(const words_t &words)
{
    auto found = commands.find(words[0]);
    std::ostringstream answer;

    if (found == commands.end()) {
        return "err 22 unknown command " + words[0];
    }

    try {
        answer << "ok";
        for (uint64_t value : found->second(words)) {
            answer << " " << value;
        }
        return answer.str();
    } catch (const failure &f) {
        return "err " + std::to_string(f.error) + " " + f.text;
    } catch (const std::exception &e) {
        return "err 22 " + words[0] + ": " + e.what();
    }
}

} /* namespace agent */

int main()
{
    std::string line, word;

    while (std::getline(std::cin, line)) {
        std::istringstream stream(line);
        agent::words_t words;

        while (stream >> word) {
            words.push_back(word);
        }
        if (!words.empty()) {
            std::cout << agent::run(words) << std::endl;
        }
    }
    return 0;
}
