/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Inner interfaces for tests that need no NIC. A lane stores posted operations, and its
 * members select the results. The file also replaces ucx/, whose functions report on
 * the queue pairs of these lanes.
 */
#ifndef FAKE_LANES_H_
#define FAKE_LANES_H_

extern "C" {
#include <uct/ib/varuna/lanes/varuna_lanes.h>
}

#include <atomic>
#include <functional>
#include <string>
#include <vector>

class fake_lane {
public:
    /* An inner endpoint: a queue pair for RC, an address for DC */
    struct ep {
        uct_ep_t    super;
        char        no_resources[256]; /* Zeros: what posts on rc_mlx5 finds no free work
                                          requests, and leaves it to UCX's functions */
        fake_lane   *lane;
        uint16_t    lid;            /* Where it leads, 0: not connected */
        bool        in_err;         /* It was moved to ERR */
        bool        in_reset;       /* And to RESET */
    };

    struct message {
        uint8_t     am_id;
        uint16_t    lid;
        std::string data;
    };

    /* A put, a message, a read, a compare and swap, or a flush */
    struct post {
        std::string      op;         /* "put", "am", "get", "cas" or "flush" */
        uint64_t         addr;       /* Of a message: its header */
        std::string      data;       /* Of a put; of a CAS, compare and swap */
        uct_completion_t *comp;      /* NULL: none, or it was called */
        uct_unpack_callback_t unpack; /* Of a read or a CAS */
        void             *arg;
        size_t           length;
    };

    /* Addresses of a lane: of its port, followed by its own */
    static constexpr size_t DEVICE_LEN = 3;
    static constexpr size_t ADDR_LEN   = 5;
    static constexpr size_t EP_LEN     = 6;

    /* Ports of the same plane reach each other; a host has one port on each. The local
     * host is number 0. */
    static uint16_t lid(unsigned host, unsigned plane)
    {
        return (host * UCT_VARUNA_MAX_LINKS) + plane + 1;
    }

    static std::string device_addr(uint16_t lid);

    explicit fake_lane(unsigned plane);

    ~fake_lane();

    uct_iface_h iface()
    {
        return &m_inner.base.super;
    }

    static fake_lane *of(uct_iface_h iface);

    void attr(uct_iface_attr_t *attr) const;

    /* State and counters */
    std::vector<message>      sent;
    std::vector<post>         posted;
    std::vector<ep*>          eps;          /* Oldest first */
    std::vector<std::pair<ep*, uct_pending_req_t*>> waiting; /* For resources */
    unsigned                  num_tries;    /* To create one */
    unsigned                  num_created;
    unsigned                  num_polled;

    /* It has resources again: call the first that waits for them */
    void resume();

    /* Complete all posted operations; reads find this in memory */
    void complete(const std::string &memory = std::string(64, 0));

    /* ... or let them fail */
    void fail(ucs_status_t status);

    /* What its operations return */
    ucs_status_t              create_status;
    ucs_status_t              connect_status;
    ucs_status_t              post_status;
    ucs_status_t              arm_status;
    uint8_t                   sl = 0;
    unsigned                  num_armed;
    static bool               arm_is_blind; /* What came before raises no event */
    static uct_varuna_order_t rx_order;     /* Of queue pairs that receive */
    int                       room;         /* For so many messages; -1: unlimited */
    unsigned                  num_refused;  /* Of them */
    ucs_status_t              flush_status;
    ucs_status_t              invalidate_status;
    std::function<unsigned()> on_poll;      /* Called by progress */
    bool                      has_input;    /* There is something to poll */

    /* Results of ucx/ for its queue pairs */
    bool                      is_drained;
    ucs_status_t              epsn_status;
    uint32_t                  epsn;
    uint16_t                  sq_mtu;       /* Of a connection; 0: its PSNs cannot be
                                               queried */
    uint32_t                  sq_psn;
    ucs_status_t              last_wqe_status;
    ucs_status_t              reset_status;
    ucs_time_t                last_wqe_timeout; /* Of the latest wait */
    bool                      has_work;
    uint16_t                  mark;         /* Changes with each completion */

    /* Registrations of our own memory, on all NICs */
    static unsigned           num_mrs;
    static ucs_status_t       mr_status;
    static uct_md_h           hung_md;     /* The NIC of this one registers nothing ... */
    static uct_md_h           short_md;    /* ... has no region left */
    static volatile bool      reg_hangs, dereg_hangs; /* ... now; ends nothing: all NICs */
    static uct_varuna_mlx5_addr_state_t addr_state; /* Of all ports */
    static bool               gid_is_missing; /* ... which UCX would use */
    static int port_is_active;                     /* ... when it is opened */

    /* Address handles that were tried before they are used: what that does, by any thread */
    static std::atomic<unsigned> num_ahs;
    static std::function<ucs_status_t()> on_ah;

private:
    void finish(const std::string *memory, ucs_status_t status);
    static ucs_status_t post_cas(uct_ep_h tl_ep, uint64_t compare, uint64_t swap,
                                 uint64_t addr, size_t width, void *result,
                                 uct_completion_t *comp);

    struct inner {
        uct_base_iface_t base;
        fake_lane        *self;
    };

    fake_lane(const fake_lane&);

    static ucs_status_t create_ep(const uct_ep_params_t *params, uct_ep_h *ep_p);
    static void destroy_ep(uct_ep_h tl_ep);
    static ssize_t am_bcopy(uct_ep_h tl_ep, uint8_t id, uct_pack_callback_t pack,
                            void *arg, unsigned flags);

    unsigned m_plane;
    inner    m_inner;
};

#endif
