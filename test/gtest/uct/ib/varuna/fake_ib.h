/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An inner component for the tests of the memory domain, which need no NIC: it counts
 * what is open, registered and unpacked, and fails where a test requests it.
 */
#ifndef FAKE_IB_H_
#define FAKE_IB_H_

extern "C" {
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/base/uct_iface.h>
}

#include <functional>
#include <string>
#include <vector>

class fake_ib {
public:
    struct device {
        std::string name;
        unsigned    num_ports;
        bool        has_dc;
        bool        can_open;
        uint64_t    md_flags;
        size_t      max_reg;
        uint64_t    ports_down; /* By port number */
        bool        are_kept;   /* Ports that are down are listed, too */

        device(const std::string &_name, unsigned _num_ports = 1);
    };

    struct mem {
        std::string md_name;
        uint64_t    key;
        bool        advised;
    };

    /* Options of its memory domains */
    struct md_config {
        uct_md_config_t super;
        char            *relaxed;
    };

    fake_ib();
    ~fake_ib();

    /* An UCX that does not know the option to turn relaxed ordering off */
    void forget_relaxed_ordering();

    uct_component_h component()
    {
        return &m_component;
    }

    /* Complete the delayed invalidations. */
    void complete_invalidations();

    /* Devices */
    std::vector<device>            devices;
    uint64_t                       mem_types;

    /* Calls that fail: the n-th one, from 1; 0: none */
    unsigned                       fail_reg;
    unsigned                       fail_dereg;
    unsigned                       fail_pack;
    unsigned                       fail_unpack;
    bool                           fail_advise;
    bool                           hold_invalidations;
    bool                           complete_failed_dereg;

    /* Called in each registration */
    std::function<void()>          on_reg;

    /* Counters */
    unsigned                       num_open_mds;
    unsigned                       num_mems;      /* Registered now */
    unsigned                       num_rkeys;     /* Unpacked now */
    unsigned                       num_regs;      /* Calls */
    unsigned                       num_deregs;
    unsigned                       num_packs;
    unsigned                       num_unpacks;
    unsigned                       num_advised;
    unsigned                       pack_flags;    /* Of the last call */
    std::vector<int>               dmabufs;       /* Registered, by descriptor */
    std::vector<uct_completion_t*> held;

private:
    fake_ib(const fake_ib&);

    uct_component_t m_component = {};
    uct_tl_t        m_rc        = {};
    uct_tl_t        m_dc        = {};
};

#endif
