/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A program that executes commands for verbs from its standard input, one per line, and
 * answers each with one line:
 *
 *     ok [NUMBER]...      or      err ERRNO WORDS...
 *
 * Tests start it on emulated hosts (see test_emu.h), to control the order of steps in
 * several processes. It uses only verbs and mlx5 direct verbs, and no functions of the
 * emulator.
 */

#ifndef MLX5EMU_VERBS_AGENT_H
#define MLX5EMU_VERBS_AGENT_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <stdint.h>
#include <string>
#include <vector>

namespace agent {

typedef std::vector<std::string> words_t;

/** The answer to a command, which throws if it fails. */
typedef std::vector<uint64_t> numbers_t;

/** A command that failed. */
struct failure {
    int         error;
    std::string text;
};

struct context {
    ibv_context      *ibv;
    ibv_pd           *pd;
    ibv_comp_channel *channel;
};

struct memory {
    ibv_mr   *mr;
    uint8_t  *addr;
    uint64_t size;
};

/** A queue pair, and its send queue to fill directly. */
struct queue_pair {
    ibv_qp    *ibv;
    unsigned  context;
    bool      is_dct;
    bool      is_dci;
    mlx5dv_qp dv;
    bool      dv_ready;
    uint16_t  raw_pi;     /* next basic block */
};

extern std::vector<context>    contexts;
extern std::vector<memory>     memories;
extern std::vector<ibv_cq*>    cqs;
extern std::vector<ibv_srq*>   srqs;
extern std::vector<queue_pair> qps;
extern std::vector<ibv_ah*>    ahs;

/** Path MTU of connections and of DC queue pairs from now on. */
extern ibv_mtu path_mtu;

/** Word number @a index as a number; throws if it is missing. */
uint64_t number(const words_t &words, size_t index);

/** Element of a table, named by a word; throws if there is none. */
template<typename T>
T &item(std::vector<T> &table, const words_t &words, size_t index)
{
    uint64_t i = number(words, index);

    if (i >= table.size()) {
        throw failure{22, "no such object: " + words[0] + " " + words[index]};
    }
    return table[i];
}

void check(bool condition, const char *what);

/** @return Whether it is readable within this time. */
bool wait_fd(int fd, int timeout_ms);

/** Words SGID_INDEX PREFIX ID of the receiver, from @a first on, if present: a GRH.
 *  @return Whether they are. */
bool get_grh(const words_t &words, size_t first, ibv_ah_attr *attr);

/* Commands in verbs_agent_gid.cc */
numbers_t cmd_layer(const words_t &words);
numbers_t cmd_gid(const words_t &words);
numbers_t cmd_gid_table(const words_t &words);
numbers_t cmd_gid_files(const words_t &words);
numbers_t cmd_file(const words_t &words);
numbers_t cmd_answer(const words_t &words);
numbers_t cmd_mac(const words_t &words);

/* Commands in verbs_agent_raw.cc: direct verbs */
numbers_t cmd_dct(const words_t &words);
numbers_t cmd_dci(const words_t &words);
numbers_t cmd_dc_modify(const words_t &words);
numbers_t cmd_raw(const words_t &words);
numbers_t cmd_masked(const words_t &words);
numbers_t cmd_raw_bytes(const words_t &words);

/* Commands in verbs_agent_devx.cc */
numbers_t cmd_devx_open(const words_t &words);
numbers_t cmd_devx_nums(const words_t &words);
numbers_t cmd_devx_umem(const words_t &words);
numbers_t cmd_devx_umem_dereg(const words_t &words);
numbers_t cmd_devx_uar(const words_t &words);
numbers_t cmd_devx_eqn(const words_t &words);
numbers_t cmd_devx_general(const words_t &words);
numbers_t cmd_devx_create(const words_t &words);
numbers_t cmd_devx_destroy(const words_t &words);
numbers_t cmd_devx_nulls(const words_t &words);
numbers_t cmd_devx_channel(const words_t &words);
numbers_t cmd_devx_subscribe(const words_t &words);
numbers_t cmd_devx_event(const words_t &words);
numbers_t cmd_devx_ring(const words_t &words);
numbers_t cmd_devx_obj(const words_t &words);
numbers_t cmd_devx_qp(const words_t &words);
numbers_t cmd_bytes(const words_t &words);
numbers_t cmd_peek(const words_t &words);

} /* namespace agent */

#endif
