/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Ports and links. See emu_port.h.
 */

#include "emu_port.h"
#include "emu_ctx.h"
#include "emu_fabric.h"
#include "emu_proc.h"
#include "emu_quirk.h"
#include "emu_quirk.h"
#include "emu_svc.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Those of quirk ooo leave some to programs that want order */
#define EMU_OOO_SLS     0x00ff
#define EMU_OOO_ALL_SLS 0xffff

const char *emu_counter_names[EMU_CNT_LAST] = {
    [EMU_CNT_DOORBELLS]    = "doorbells",
    [EMU_CNT_WQES]         = "wqes",
    [EMU_CNT_TX_PKTS]      = "tx_packets",
    [EMU_CNT_TX_BYTES]     = "tx_bytes",
    [EMU_CNT_RETRANS_PKTS] = "retransmitted_packets",
    [EMU_CNT_TIMEOUTS]     = "timeouts",
    [EMU_CNT_RNR_WAITS]    = "rnr_waits",
    [EMU_CNT_CQE_ERRS]     = "error_cqes",
    [EMU_CNT_TX_ACKS]      = "tx_acks",
    [EMU_CNT_TX_RESP_PKTS] = "tx_response_packets",
    [EMU_CNT_TX_NAKS]      = "tx_naks",
    [EMU_CNT_DUP_REQS]     = "duplicate_requests",
    [EMU_CNT_SEQ_ERRS]     = "sequence_errors",
    [EMU_CNT_DROPS_LINK]   = "dropped_by_link",
    [EMU_CNT_DROPS_FAULT]  = "dropped_by_fault",
    [EMU_CNT_DROPS_QUEUE]  = "dropped_by_queue",
    [EMU_CNT_DROPS_MTU]    = "dropped_by_mtu",
    [EMU_CNT_DROPS_DEST]   = "dropped_at_destination",
    [EMU_CNT_CQES]         = "cqes",
    [EMU_CNT_RESET_BELLS]  = "doorbells_in_reset"
};

_Static_assert((EMU_CNT_STRIDE >= EMU_CNT_LAST) && (EMU_CNT_STRIDE % 8 == 0) &&
               (EMU_CNT_RESPONDER % 8 == 0), "counters are in whole lines");

const char *emu_qp_type_names[EMU_QPT_LAST] = {
    [EMU_QPT_RC]  = "rc",
    [EMU_QPT_UD]  = "ud",
    [EMU_QPT_DCI] = "dci",
    [EMU_QPT_DCT] = "dct"
};

const char *emu_link_state_names[EMU_LINK_LAST] = {
    [EMU_LINK_UP]     = "up",
    [EMU_LINK_DOWN]   = "down",
    [EMU_LINK_SILENT] = "silent"
};

const char *emu_speed_names[EMU_SPEED_LAST] = {
    [EMU_SPEED_SDR] = "sdr",
    [EMU_SPEED_DDR] = "ddr",
    [EMU_SPEED_QDR] = "qdr",
    [EMU_SPEED_FDR] = "fdr",
    [EMU_SPEED_EDR] = "edr",
    [EMU_SPEED_HDR] = "hdr",
    [EMU_SPEED_NDR] = "ndr"
};

/* The bit in active_speed, and the rate of 4 lanes */
static const struct {
    uint8_t    active_speed;
    const char *rate;
} emu_speeds[EMU_SPEED_LAST] = {
    [EMU_SPEED_SDR] = {1,   "10 Gb/sec (4X SDR)"},
    [EMU_SPEED_DDR] = {2,   "20 Gb/sec (4X DDR)"},
    [EMU_SPEED_QDR] = {4,   "40 Gb/sec (4X QDR)"},
    [EMU_SPEED_FDR] = {16,  "56 Gb/sec (4X FDR)"},
    [EMU_SPEED_EDR] = {32,  "100 Gb/sec (4X EDR)"},
    [EMU_SPEED_HDR] = {64,  "200 Gb/sec (4X HDR)"},
    [EMU_SPEED_NDR] = {128, "400 Gb/sec (4X NDR)"}
};

emu_port_t *emu_port_get(unsigned host, unsigned link)
{
    if ((host >= emu_fabric->cfg.hosts) || (link >= emu_fabric->cfg.links)) {
        return NULL;
    }

    return &emu_fabric->ports[host * emu_fabric->cfg.links + link];
}

enum ibv_mtu emu_port_mtu(const emu_port_t *port)
{
    return IBV_MTU_256 + __builtin_ctz(port->mtu / EMU_MIN_MTU);
}

emu_port_t *emu_port_device(const emu_port_t *port)
{
    emu_port_t *first = emu_port_get(port->host, port->link & ~1u);

    return emu_port_is_bond(first) ? first :
           emu_port_get(port->host, port->link);
}

int emu_port_is_bond(const emu_port_t *port)
{
    return emu_quirk_on(port->index, EMU_QUIRK_BOND) && !(port->link & 1) &&
           (port->link + 1u < emu_fabric->cfg.links);
}

/* The ports of a device: the first, and the second if there is one */
static emu_port_t *emu_port_second(const emu_port_t *first)
{
    return emu_port_is_bond(first) ? &emu_fabric->ports[first->index + 1] : NULL;
}

static int emu_port_has_state(const emu_port_t *port, emu_link_state_t state)
{
    return __atomic_load_n(&port->link_state, __ATOMIC_ACQUIRE) == state;
}

emu_port_t *emu_port_carrier(const emu_port_t *port)
{
    emu_port_t *first  = &emu_fabric->ports[port->index];
    emu_port_t *second = emu_port_second(port);

    if (emu_likely(second == NULL)) {
        return first;
    }

    if (emu_now_ns() < __atomic_load_n(&port->bond_ready_ns, __ATOMIC_ACQUIRE)) {
        return NULL;
    }

    return emu_port_has_state(port, EMU_LINK_DOWN) ? second : first;
}

int emu_port_is_down(const emu_port_t *port)
{
    const emu_port_t *second = emu_port_second(port);

    return emu_port_has_state(port, EMU_LINK_DOWN) &&
           ((second == NULL) || emu_port_has_state(second, EMU_LINK_DOWN));
}

void emu_port_query(const emu_port_t *port, struct ibv_port_attr *attr_p)
{
    int is_down = emu_port_is_down(port) &&
                  !emu_quirk_hits(port->index, EMU_QUIRK_FIXED_PORT, 0, 0,
                                  EMU_LINK_DOWN);
    emu_addr_t addr;

    emu_port_addr(port, &addr);
    memset(attr_p, 0, sizeof(*attr_p));
    attr_p->state           = is_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    attr_p->max_mtu         = IBV_MTU_4096;
    attr_p->active_mtu      = emu_port_mtu(port);
    attr_p->gid_tbl_len     = emu_addr_num_gids(&addr);
    attr_p->port_cap_flags  = IBV_PORT_CM_SUP;
    attr_p->max_msg_sz      = EMU_MAX_MSG;
    attr_p->pkey_tbl_len    = emu_port_num_pkeys(port);
    attr_p->active_width    = 2;                   /* 4x */
    attr_p->active_speed    = emu_speeds[port->speed].active_speed;
    attr_p->phys_state      = is_down ? 2 : 5;     /* polling : link up */
    if (addr.is_roce) {
        attr_p->phys_state      = is_down ? 3 : 5; /* disabled : link up */
        attr_p->port_cap_flags |= IBV_PORT_IP_BASED_GIDS;
        attr_p->flags           = IBV_QPF_GRH_REQUIRED;
        attr_p->link_layer      = IBV_LINK_LAYER_ETHERNET;
    } else {
        attr_p->lid             = emu_addr_lid(&addr);
        attr_p->sm_lid          = 1;
        attr_p->lmc             = 0;
        attr_p->max_vl_num      = 4;
        attr_p->subnet_timeout  = emu_fabric->cfg.subnet_timeout;
        attr_p->link_layer      = IBV_LINK_LAYER_INFINIBAND;
    }
}

/* P_Keys: a partition, and whether the port is a full member */
#define EMU_PORT_PKEY_FULL    0x8000
#define EMU_PORT_PKEY_DEFAULT 0xffff
#define EMU_PORT_PKEY_LIMITED 0x7fff
#define EMU_PORT_PKEY_SECOND  0x8001

static int emu_port_is_limited(const emu_port_t *port)
{
    return emu_quirk_on(port->index, EMU_QUIRK_LIMITED_PKEY) && !emu_port_is_roce(port);
}

unsigned emu_port_num_pkeys(const emu_port_t *port)
{
    return emu_port_is_limited(port) ? 2 : 1;
}

uint16_t emu_port_pkey(const emu_port_t *port, unsigned index)
{
    if (!emu_port_is_limited(port)) {
        return EMU_PORT_PKEY_DEFAULT;
    }

    return (index == 0) ? EMU_PORT_PKEY_LIMITED : EMU_PORT_PKEY_SECOND;
}

int emu_port_is_member(const emu_port_t *port, unsigned index, uint16_t pkey,
                       uint32_t qpn)
{
    uint16_t mine = emu_port_pkey(port, index);

    if (emu_likely((((mine ^ pkey) & ~EMU_PORT_PKEY_FULL) == 0) &&
                   ((mine | pkey) & EMU_PORT_PKEY_FULL))) {
        return 1;
    }

    if (emu_quirk_on(port->index, EMU_QUIRK_LIMITED_PKEY)) {
        emu_quirk_act(port->index, EMU_QUIRK_LIMITED_PKEY, qpn, 0, pkey);
    }
    return 0;
}

uint16_t emu_port_ooo_sls(const emu_port_t *port)
{
    if (emu_quirk_on(port->index, EMU_QUIRK_OOO_ALL)) {
        return EMU_OOO_ALL_SLS;
    }
    return emu_quirk_on(port->index, EMU_QUIRK_OOO) ? EMU_OOO_SLS : 0;
}

int emu_port_is_mlx5(const emu_port_t *port)
{
    return !emu_quirk_on(port->index, EMU_QUIRK_NO_MLX5DV);
}

void emu_port_device_name(const emu_port_t *port, char name[EMU_PORT_NAME_MAX])
{
    const char *make = emu_port_is_mlx5(port) ? "mlx5" : "verbs";

    if (emu_port_is_bond(port)) {
        snprintf(name, EMU_PORT_NAME_MAX, "%s_bond_%u", make, port->link / 2);
    } else {
        snprintf(name, EMU_PORT_NAME_MAX, "%s_%u", make, port->link);
    }
}

const char *emu_port_rate(const emu_port_t *port)
{
    return emu_speeds[port->speed].rate;
}

void emu_device_query(const emu_port_t *port, struct ibv_device_attr *attr_p)
{
    emu_addr_t addr;

    emu_port_addr(port, &addr);
    memset(attr_p, 0, sizeof(*attr_p));
    strcpy(attr_p->fw_ver, "16.35.1012");
    attr_p->node_guid           = htobe64(emu_addr_guid(&addr));
    attr_p->sys_image_guid      = htobe64(emu_addr_guid(&addr));
    attr_p->max_mr_size         = UINT64_MAX;
    attr_p->page_size_cap       = ~0xffful;
    if (emu_port_is_mlx5(port)) {
        attr_p->vendor_id       = 0x2c9;
        attr_p->vendor_part_id  = 0x1017;
    } else {
        attr_p->vendor_id       = 0xffffff;  /* soft-RoCE's */
    }
    attr_p->hw_ver              = 0;
    attr_p->max_qp              = EMU_MAX_QPS - 1;
    attr_p->max_qp_wr           = EMU_SQ_MAX_BB;
    attr_p->device_cap_flags    = IBV_DEVICE_RC_RNR_NAK_GEN |
                                  IBV_DEVICE_SRQ_RESIZE |
                                  IBV_DEVICE_PORT_ACTIVE_EVENT |
                                  IBV_DEVICE_SYS_IMAGE_GUID;
    attr_p->max_sge             = 30;
    attr_p->max_sge_rd          = 30;
    attr_p->max_cq              = EMU_MAX_CQS - 1;
    attr_p->max_cqe             = EMU_CQ_MAX_CQE - 1;
    attr_p->max_mr              = EMU_MAX_MRS - 1;
    attr_p->max_pd              = EMU_MAX_PDS - 1;
    attr_p->max_qp_rd_atom      = EMU_MAX_RD_ATOMIC;
    attr_p->max_res_rd_atom     = EMU_MAX_RD_ATOMIC * EMU_MAX_QPS;
    attr_p->max_qp_init_rd_atom = EMU_MAX_RD_ATOMIC;
    attr_p->atomic_cap          = IBV_ATOMIC_HCA;
    attr_p->max_ah              = INT32_MAX;
    attr_p->max_srq             = EMU_MAX_SRQS - 1;
    attr_p->max_srq_wr          = EMU_RQ_MAX_WQE - 1;
    attr_p->max_srq_sge         = EMU_SRQ_MAX_SGE;
    attr_p->max_pkeys           = emu_port_num_pkeys(port);
    attr_p->local_ca_ack_delay  = 16;
    attr_p->phys_port_cnt       = 1;
}

unsigned emu_port_plane(const emu_port_t *port)
{
    if (!emu_quirk_on(port->index, EMU_QUIRK_MISWIRED)) {
        return port->link;
    }

    return (port->link + emu_quirk_value(port->index, EMU_QUIRK_MISWIRED, 0)) %
           emu_fabric->cfg.links;
}

void emu_port_addr(const emu_port_t *port, emu_addr_t *addr_p)
{
    addr_p->host    = port->host;
    addr_p->link    = port->link;
    addr_p->plane   = emu_port_plane(port);
    addr_p->is_roce = emu_port_is_roce(port);
    addr_p->one_net = emu_quirk_on(port->index, EMU_QUIRK_SAME_GID);
    addr_p->no_ip   = __atomic_load_n(&port->no_ip, __ATOMIC_ACQUIRE);
    addr_p->moves   = __atomic_load_n(&port->moves, __ATOMIC_ACQUIRE);
}

uint16_t emu_port_lid(const emu_port_t *port)
{
    emu_addr_t addr;

    emu_port_addr(port, &addr);
    return emu_addr_lid(&addr);
}

int emu_port_gid(const emu_port_t *port, unsigned index, union ibv_gid *gid_p,
                 emu_gid_type_t *type_p)
{
    emu_addr_t addr;

    emu_port_addr(port, &addr);
    return emu_addr_gid(&addr, index, gid_p, type_p);
}

static void emu_port_raise(const emu_port_t *port, enum ibv_event_type type)
{
    emu_ctx_raise(port->index, port->nic_gen, type);
}

/* link_lock is held. The network device loses its addresses with the link, and what
 * the host knew of others */
static void emu_link_lose_addr(emu_port_t *port)
{
    unsigned i;

    for (i = 0; i < EMU_MAX_PORTS / 64; i++) {
        __atomic_store_n(&port->neighbors[i], 0, __ATOMIC_RELAXED);
    }

    if (emu_port_is_roce(port) &&
        emu_quirk_on(port->index, EMU_QUIRK_GID_MOVES)) {
        __atomic_store_n(&port->no_ip, 1, __ATOMIC_SEQ_CST);
        emu_port_raise(port, IBV_EVENT_GID_CHANGE);
    }
}

/* link_lock is held. The link is there again: so are addresses */
static void emu_link_get_addr(emu_port_t *port)
{
    int moves = emu_quirk_hits(port->index, EMU_QUIRK_GID_MOVES, 0, 0,
                               port->moves + 1);
    int had_no_ip = port->no_ip;

    if (moves) {
        __atomic_store_n(&port->moves, port->moves + 1, __ATOMIC_SEQ_CST);
    }

    __atomic_store_n(&port->no_ip, 0, __ATOMIC_SEQ_CST);
    if (!emu_port_is_roce(port)) {
        /* The subnet manager gives the LID before it activates the port */
        if (moves) {
            emu_port_raise(port, IBV_EVENT_LID_CHANGE);
        }
        emu_port_raise(port, IBV_EVENT_PORT_ACTIVE);
        return;
    }

    /* Configuring the interface includes waiting for the link */
    emu_port_raise(port, IBV_EVENT_PORT_ACTIVE);
    if (moves || had_no_ip) {
        emu_port_raise(port, IBV_EVENT_GID_CHANGE);
    }
}

/* A bond that uses a port changes over to the other one, which takes time */
static void emu_link_change_over(emu_port_t *device, const emu_port_t *port)
{
    uint64_t ns = emu_scaled_ns(emu_quirk_value(device->index, EMU_QUIRK_BOND, 0));

    if (emu_port_is_bond(device) && (emu_port_carrier(device) == port)) {
        __atomic_store_n(&device->bond_ready_ns, emu_now_ns() + ns,
                         __ATOMIC_RELEASE);
    }
}

/* link_lock is held */
static void emu_link_log(emu_port_t *port, emu_link_state_t state)
{
    uint64_t number          = port->link_changes + 1;
    emu_link_change_t *entry = &port->link_log[number % EMU_LINK_LOG];

    entry->time_ns = emu_now_ns();
    entry->state   = state;
}

int emu_link_was_up(const emu_port_t *port, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t last  = __atomic_load_n(&port->link_changes, __ATOMIC_ACQUIRE);
    uint64_t first = (last < EMU_LINK_LOG) ? 1 : (last + 2 - EMU_LINK_LOG);
    const emu_link_change_t *entry;
    uint64_t number;

    for (number = last; number >= first; --number) {
        entry = &port->link_log[number % EMU_LINK_LOG];
        if (entry->time_ns <= to_ns) {
            return (entry->time_ns <= from_ns) && (entry->state == EMU_LINK_UP);
        }
    }
    return first == 1; /* it was not changed before */
}

/* The device's link_lock is held */
static void emu_link_change(emu_port_t *port, emu_link_state_t state)
{
    emu_port_t *device = emu_port_device(port);
    int was_down       = emu_port_is_down(device);
    int is_down;

    if (port->link_state == state) {
        return;
    }

    if (state == EMU_LINK_DOWN) {
        emu_link_change_over(device, port);
    }
    emu_link_log(port, state);
    __atomic_store_n(&port->link_state, state, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&port->link_changes, 1, __ATOMIC_SEQ_CST);
    is_down = emu_port_is_down(device);
    if ((was_down == is_down) || /* silence raises no event */
        emu_quirk_hits(device->index, EMU_QUIRK_FIXED_PORT, 0, 0, state)) {
        return;
    }

    if (is_down) {
        emu_port_raise(device, IBV_EVENT_PORT_ERR);
        emu_link_lose_addr(device);
    } else {
        emu_link_get_addr(device);
    }
}

static emu_lock_t *emu_link_lock(const emu_port_t *port)
{
    return &emu_port_device(port)->link_lock;
}

void emu_link_mark(unsigned host, unsigned link, int is_cut_by_rule)
{
    emu_port_t *port = emu_port_get(host, link);

    if (port != NULL) {
        __atomic_store_n(&port->cut_by_rule, is_cut_by_rule, __ATOMIC_RELEASE);
    }
}

int emu_link_set(unsigned host, unsigned link, emu_link_state_t state)
{
    emu_port_t *port = emu_port_get(host, link);

    if ((port == NULL) || (state >= EMU_LINK_LAST)) {
        return -EINVAL;
    }

    emu_lock(emu_link_lock(port));
    __atomic_store_n(&port->flap_period_ns, 0, __ATOMIC_SEQ_CST);
    emu_link_change(port, state);
    emu_unlock(emu_link_lock(port));
    return 0;
}

/* link_lock is held. @return when to come again, 0: never */
static uint64_t emu_link_follow(emu_port_t *port)
{
    uint64_t since, begin;

    if (port->flap_period_ns == 0) {
        return 0;
    }

    since = emu_now_ns() - port->flap_start_ns;
    begin = port->flap_start_ns + since - (since % port->flap_period_ns);
    since = since % port->flap_period_ns;
    if (since < port->flap_down_ns) {
        emu_link_change(port, EMU_LINK_DOWN);
        return begin + port->flap_down_ns;
    }

    emu_link_change(port, EMU_LINK_UP);
    return begin + port->flap_period_ns;
}

int emu_link_flap(unsigned host, unsigned link, uint64_t period_ns,
                  uint32_t up_ppm)
{
    emu_port_t *port = emu_port_get(host, link);

    period_ns = emu_scaled_ns(period_ns);
    if ((port == NULL) || (period_ns == 0) || (up_ppm >= 1000000)) {
        return -EINVAL;
    }

    emu_lock(emu_link_lock(port));
    port->flap_start_ns = emu_now_ns();
    port->flap_down_ns  = period_ns * ((1000000 - up_ppm) / 1e6);
    __atomic_store_n(&port->flap_period_ns, period_ns, __ATOMIC_SEQ_CST);
    emu_link_follow(port);
    emu_unlock(emu_link_lock(port));
    emu_svc_nudge_all();
    return 0;
}

void emu_link_tick(emu_port_t *port)
{
    emu_lock(emu_link_lock(port));
    emu_link_follow(port);
    emu_unlock(emu_link_lock(port));
}

/* Links of which this process keeps the time. Service thread only. */
static uint8_t emu_link_served[EMU_MAX_PORTS];

static void emu_link_timer(void *arg, uint64_t cookie)
{
    emu_port_t *port = arg;
    uint64_t next;

    (void)cookie;
    emu_lock(emu_link_lock(port));
    next = emu_link_follow(port);
    emu_unlock(emu_link_lock(port));
    emu_link_served[port->index] = (next != 0) &&
            (emu_svc_add(next, emu_link_timer, port, 0) == 0);
}

void emu_link_serve(void)
{
    unsigned num = emu_fabric->cfg.hosts * emu_fabric->cfg.links;
    unsigned i;

    for (i = 0; i < num; i++) {
        if (!emu_link_served[i]) {
            emu_link_timer(&emu_fabric->ports[i], 0);
        }
    }
}

void emu_link_forget(void)
{
    memset(emu_link_served, 0, sizeof(emu_link_served));
}
