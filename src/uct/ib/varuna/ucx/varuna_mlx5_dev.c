/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Asks a device for its ports and for the order of packets, and registers memory on it. See
 * varuna_mlx5_dev.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5_dev.h"
#include <uct/ib/varuna/core/varuna_clock.h>

#include <uct/ib/base/ib_iface.h>
#include <uct/ib/mlx5/ib_mlx5.h>
#include "varuna_compat.h"
#include <uct/ib/varuna/core/varuna_def.h>
#include "varuna_mlx5_ep.h"
#include <uct/ib/mlx5/dv/ib_mlx5_ifc.h>
#include <ucs/debug/assert.h>
#include <string.h>
#include <ucs/arch/bitops.h>
#include <ucs/sys/string.h>
#include <stdlib.h>
#include <ucs/debug/log.h>
#include <uct/ib/base/ib_md.h>

double uct_varuna_mlx5_port_lifetime(uct_md_h md, const char *dev_name)
{
    const uct_ib_device_t *dev = &ucs_derived_of(md, uct_ib_md_t)->dev;
    struct ibv_port_attr attr;

    if (ibv_query_port(dev->ibv_context, uct_varuna_mlx5_port_num(dev_name),
                       &attr) != 0) {
        return UCT_VARUNA_LIFETIME_UNKNOWN;
    }

    if (attr.state != IBV_PORT_ACTIVE) {
        return UCT_VARUNA_LIFETIME_UNKNOWN; /* The subnet manager has not set it yet */
    }

    return uct_varuna_lifetime(attr.link_layer != IBV_LINK_LAYER_ETHERNET,
                               attr.subnet_timeout);
}

static struct ibv_context *uct_varuna_mlx5_device_open(const char *dev_name)
{
    size_t length               = strcspn(dev_name, ":");
    struct ibv_context *context = NULL;
    struct ibv_device **devices = ibv_get_device_list(NULL);
    unsigned i;

    for (i = 0; (devices != NULL) && (devices[i] != NULL); ++i) {
        if ((strlen(devices[i]->name) == length) &&
            !strncmp(devices[i]->name, dev_name, length)) {
            context = ibv_open_device(devices[i]);
            break;
        }
    }

    if (devices != NULL) {
        ibv_free_device_list(devices);
    }
    return context;
}

int uct_varuna_mlx5_port_answers(const char *dev_name)
{
    struct ibv_context *context = uct_varuna_mlx5_device_open(dev_name);
    struct ibv_port_attr attr;
    int ret;

    if (context == NULL) {
        return 0;
    }

    ret = ibv_query_port(context, uct_varuna_mlx5_port_num(dev_name), &attr);
    ibv_close_device(context);
    return ret == 0;
}

uint64_t uct_varuna_mlx5_ports_keep(uct_md_h md)
{
    uct_ib_device_t *dev = &ucs_derived_of(md, uct_ib_md_t)->dev;
    uint64_t down        = 0;
    struct ibv_port_attr *attr;
    uint8_t i, port_num;

    for (i = 0; i < dev->num_ports; ++i) {
        port_num = dev->first_port + i;
        attr     = uct_ib_device_port_attr(dev, port_num);
        if (attr->state != IBV_PORT_ACTIVE) {
            attr->state = IBV_PORT_ACTIVE;
            down       |= UCS_BIT(port_num);
        }
    }

    return down;
}

int uct_varuna_mlx5_port_renew(uct_md_h md, const char *dev_name)
{
    uct_ib_device_t *dev = &ucs_derived_of(md, uct_ib_md_t)->dev;
    uint8_t port_num     = uct_varuna_mlx5_port_num(dev_name);
    struct ibv_port_attr now;
    int is_active;

    if (ibv_query_port(dev->ibv_context, port_num, &now) != 0) {
        return 1; /* Whoever uses it finds out */
    }

    is_active                               = (now.state == IBV_PORT_ACTIVE);
    now.state                               = IBV_PORT_ACTIVE;
    *uct_ib_device_port_attr(dev, port_num) = now;
    return is_active;
}

void uct_varuna_mlx5_addr_get(uct_iface_h inner, uct_varuna_mlx5_addr_t *addr)
{
    uct_ib_iface_t *iface            = ucs_derived_of(inner, uct_ib_iface_t);
    const struct ibv_port_attr *attr = uct_ib_device_port_attr(
            uct_ib_iface_device(iface), iface->config.port_num);

    UCS_STATIC_ASSERT(sizeof(addr->gid) == sizeof(iface->gid_info.gid));
    addr->lid       = attr->lid;
    addr->mtu       = attr->active_mtu;
    addr->is_ib     = (attr->link_layer != IBV_LINK_LAYER_ETHERNET);
    addr->gid_index = iface->gid_info.gid_index;
    memcpy(addr->gid, &iface->gid_info.gid, sizeof(addr->gid));
}

static int uct_varuna_mlx5_has_gid(struct ibv_context *context, uint8_t port_num,
                                   int index, const void *gid)
{
    union ibv_gid has;

    return (ibv_query_gid(context, port_num, index, &has) == 0) &&
           !memcmp(&has, gid, sizeof(has));
}

uct_varuna_mlx5_addr_state_t
uct_varuna_mlx5_addr_check(uct_iface_h inner, const uct_varuna_mlx5_addr_t *addr)
{
    uct_ib_iface_t *iface       = ucs_derived_of(inner, uct_ib_iface_t);
    struct ibv_context *context = uct_ib_iface_device(iface)->ibv_context;
    uint8_t port_num            = iface->config.port_num;
    struct ibv_port_attr attr;
    int i;

    if ((ibv_query_port(context, port_num, &attr) != 0) ||
        (attr.state != IBV_PORT_ACTIVE)) {
        return UCT_VARUNA_ADDR_UNKNOWN;
    }

    if ((!addr->is_ib || (attr.lid == addr->lid)) && (attr.active_mtu == addr->mtu) &&
        uct_varuna_mlx5_has_gid(context, port_num, addr->gid_index, addr->gid)) {
        return UCT_VARUNA_ADDR_SAME;
    }

    if (addr->is_ib) {
        return (attr.lid == 0) ? UCT_VARUNA_ADDR_UNKNOWN : UCT_VARUNA_ADDR_MOVED;
    }

    for (i = 0; i < attr.gid_tbl_len; ++i) {
        if (uct_varuna_mlx5_has_gid(context, port_num, i, addr->gid)) {
            return UCT_VARUNA_ADDR_MOVED;
        }
    }

    return UCT_VARUNA_ADDR_GONE;
}

static int uct_varuna_mlx5_gid_is_empty(struct ibv_context *context, uint8_t port_num,
                                        int index)
{
    static const union ibv_gid empty;

    union ibv_gid gid;

    return (ibv_query_gid(context, port_num, index, &gid) != 0) ||
           !memcmp(&gid, &empty, sizeof(gid));
}

int uct_varuna_mlx5_gid_is_missing(uct_iface_h inner, unsigned *index_p)
{
    uct_ib_iface_t *iface       = ucs_derived_of(inner, uct_ib_iface_t);
    unsigned long named         = uct_ib_iface_md(iface)->config.gid_index;
    struct ibv_context *context = uct_ib_iface_device(iface)->ibv_context;
    uint8_t port_num            = iface->config.port_num;
    int has_name                = (named != UCS_ULUNITS_AUTO);
    struct ibv_port_attr attr;
    unsigned i, end;

    if (ibv_query_port(context, port_num, &attr) != 0) {
        return 0; /* Whoever uses it finds out */
    }

    /* Without a name any entry will do on Ethernet; InfiniBand's is always the first one */
    *index_p = has_name ? named : UCT_VARUNA_COMPAT_DEFAULT_GID_INDEX;
    end      = (!has_name && (attr.link_layer == IBV_LINK_LAYER_ETHERNET)) ?
               (unsigned)attr.gid_tbl_len : (*index_p + 1);
    for (i = *index_p; i < end; ++i) {
        if (!uct_varuna_mlx5_gid_is_empty(context, port_num, i)) {
            return 0;
        }
    }

    return 1;
}

void uct_varuna_mlx5_addr_refresh(uct_iface_h inner)
{
    uct_ib_iface_t *iface      = ucs_derived_of(inner, uct_ib_iface_t);
    uct_ib_device_t *dev       = uct_ib_iface_device(iface);
    uint8_t port_num           = iface->config.port_num;
    struct ibv_port_attr *attr = uct_ib_device_port_attr(dev, port_num);
    struct ibv_port_attr now;
    union ibv_gid gid;

    /* UCX keeps the answer from when it opened the device, and all its interfaces report that */
    if (ibv_query_port(dev->ibv_context, port_num, &now) == 0) {
        attr->lid        = now.lid;
        attr->sm_lid     = now.sm_lid;
        attr->active_mtu = now.active_mtu;
    }

    if (ibv_query_gid(dev->ibv_context, port_num, iface->gid_info.gid_index, &gid) ==
        0) {
        iface->gid_info.gid = gid;
    }
}

void uct_varuna_mlx5_addr_take(uct_iface_h inner, uct_iface_h other)
{
    uct_ib_iface_t *iface       = ucs_derived_of(inner, uct_ib_iface_t);
    const uct_ib_iface_t *newer = ucs_derived_of(other, uct_ib_iface_t);

    iface->gid_info        = newer->gid_info;
    iface->addr_size       = newer->addr_size;
    iface->config.path_mtu = newer->config.path_mtu;
}

/* --- The order of packets --- */

/* UCX's own function is not exported in all series */
static UCS_F_MAYBE_UNUSED int uct_varuna_mlx5_is_ethernet(uct_ib_device_t *dev,
                                                          uint8_t port_num)
{
    return uct_ib_device_port_attr(dev, port_num)->link_layer == IBV_LINK_LAYER_ETHERNET;
}

static ucs_status_t uct_varuna_mlx5_query_ooo_sl_mask(uct_md_h tl_md, uint8_t port_num,
                                                      uint16_t *mask_p)
{
#if HAVE_DEVX
    uct_ib_mlx5_md_t *md = ucs_derived_of(tl_md, uct_ib_mlx5_md_t);
    char in[UCT_IB_MLX5DV_ST_SZ_BYTES(query_hca_vport_context_in)]   = {};
    char out[UCT_IB_MLX5DV_ST_SZ_BYTES(query_hca_vport_context_out)] = {};
    void *context;

    /* On Ethernet the mask means nothing */
    if (!(md->flags & UCT_IB_MLX5_MD_FLAG_OOO_SL_MASK) ||
        uct_varuna_mlx5_is_ethernet(&md->super.dev, port_num)) {
        return UCS_ERR_UNSUPPORTED;
    }

    UCT_IB_MLX5DV_SET(query_hca_vport_context_in, in, opcode,
                      UCT_IB_MLX5_CMD_OP_QUERY_HCA_VPORT_CONTEXT);
    UCT_IB_MLX5DV_SET(query_hca_vport_context_in, in, port_num, port_num);
    if (mlx5dv_devx_general_cmd(md->super.dev.ibv_context, in, sizeof(in), out,
                                sizeof(out)) != 0) {
        ucs_debug("QUERY_HCA_VPORT_CONTEXT(port=%u) failed, syndrome 0x%x: %m",
                  port_num,
                  UCT_IB_MLX5DV_GET(query_hca_vport_context_out, out, syndrome));
        return UCS_ERR_IO_ERROR;
    }

    context = UCT_IB_MLX5DV_ADDR_OF(query_hca_vport_context_out, out,
                                    hca_vport_context);
    *mask_p = UCT_IB_MLX5DV_GET(hca_vport_context, context, ooo_sl_mask);
    return UCS_OK;
#else
    return UCS_ERR_UNSUPPORTED;
#endif
}

/* @return The service levels that the user allows, UCX_IB_SL */
static uint16_t uct_varuna_mlx5_allowed_sls(unsigned kind, uct_iface_config_t *config)
{
    /* Reading an option needs its whole path through UCX's tables */
    static const char *names[] = {
        [UCT_VARUNA_LANE_RC] = "RC_RC_IB_SL",
        [UCT_VARUNA_LANE_DC] = "DC_RC_IB_SL"
    };
    char value[32], *end;
    unsigned long sl;

    if (uct_config_get(config, names[kind], value, sizeof(value)) != UCS_OK) {
        return UCS_MASK(UCT_IB_SL_NUM); /* Another version of UCX */
    }

    sl = strtoul(value, &end, 10);
    return ((end == value) || (sl >= UCT_IB_SL_NUM)) ? UCS_MASK(UCT_IB_SL_NUM) :
           UCS_BIT(sl);
}

static ucs_status_t
uct_varuna_mlx5_order_set(const char *dev_name, uct_iface_config_t *config,
                          const char *name, const char *value)
{
    ucs_status_t status;

    status = uct_config_modify(config, name, value);
    if (status != UCS_OK) {
        ucs_error("rc_varuna: UCX refuses %s=%s for %s (%s), so its packets may overtake "
                  "each other. Use the UCX that rc_varuna was built for", name, value,
                  dev_name, ucs_status_string(status));
    }

    return status;
}

/*
 * Newer series tell each queue pair how it places packets: all in order (AR_ENABLE=n), or
 * reads and writes, or messages as well (DDP_ENABLE) as they come. They refuse to open an
 * interface with one of these options if the device cannot be forced to obey it: 1.18.0
 * even where it obeys anyway. On RoCE there is no service level to be chosen, so AR_ENABLE
 * only concerns the queue pairs.
 */
#if UCT_VARUNA_UCX_AT_LEAST(1, 18)
/* Since 1.20, verbs may make queue pairs that place messages as they come. That is turned off
 * without force, unless DEVX may do it as well. */
static int uct_varuna_mlx5_ddp_needs_force(const uct_ib_mlx5_md_t *md)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 20)
    return (md->flags & UCT_IB_MLX5_MD_FLAG_DEVX) &&
           ((md->dp_ordering_cap_devx.rc == UCT_IB_MLX5_DP_ORDERING_OOO_ALL) ||
            (md->dp_ordering_cap_devx.dc == UCT_IB_MLX5_DP_ORDERING_OOO_ALL));
#else
    return 1;
#endif
}

static ucs_status_t
uct_varuna_mlx5_order_placement(uct_md_h md, const char *dev_name,
                                uct_iface_config_t *config, int *can_force_p)
{
    const uct_ib_mlx5_md_t *mlx5_md = ucs_derived_of(md, uct_ib_mlx5_md_t);
    uct_ib_device_t *dev            = &ucs_derived_of(md, uct_ib_md_t)->dev;
    ucs_status_t status;

    *can_force_p = !!(mlx5_md->flags & UCT_IB_MLX5_MD_FLAG_DP_ORDERING_FORCE);
    if (!*can_force_p && uct_varuna_mlx5_ddp_needs_force(mlx5_md)) {
        return UCS_OK;
    }

    status = uct_varuna_mlx5_order_set(dev_name, config, "RC_DDP_ENABLE", "n");
    if ((status != UCS_OK) || !*can_force_p ||
        !uct_varuna_mlx5_is_ethernet(dev, uct_varuna_mlx5_port_num(dev_name))) {
        return status;
    }

    return uct_varuna_mlx5_order_set(dev_name, config, "IB_AR_ENABLE", "n");
}
#else
static ucs_status_t
uct_varuna_mlx5_order_placement(uct_md_h md, const char *dev_name,
                                uct_iface_config_t *config, int *can_force_p)
{
    *can_force_p = 1; /* AR_ENABLE does no more than to choose a service level */
    return UCS_OK;
}
#endif

ucs_status_t uct_varuna_mlx5_order_request(uct_md_h md, const char *dev_name,
                                           unsigned kind, uct_iface_config_t *config,
                                           uct_varuna_sl_move_t *move)
{
    uint16_t allowed = uct_varuna_mlx5_allowed_sls(kind, config);
    ucs_status_t status;
    uint16_t mask, sls;
    int can_force;
    char sl[8];

    move->is_done = 0;
    status        = uct_varuna_mlx5_order_placement(md, dev_name, config, &can_force);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_mlx5_query_ooo_sl_mask(md, uct_varuna_mlx5_port_num(dev_name),
                                               &mask);
    if (status != UCS_OK) {
        return UCS_OK;
    }

    move->from = ucs_ffs64(allowed);
    sls        = allowed & ~mask;
    if ((sls == 0) || (!move->is_allowed && (mask & UCS_BIT(move->from)))) {
        return UCS_OK; /* There is no such level: UCX would refuse to open */
    }

    move->to      = ucs_ffs64(sls);
    move->is_done = (move->to != move->from);
    if (can_force) {
        return uct_varuna_mlx5_order_set(dev_name, config, "IB_AR_ENABLE", "n");
    }

    ucs_snprintf_safe(sl, sizeof(sl), "%u", move->to);
    status = uct_varuna_mlx5_order_set(dev_name, config, "IB_AR_ENABLE", "auto");
    return (status != UCS_OK) ? status :
           uct_varuna_mlx5_order_set(dev_name, config, "IB_SL", sl);
}

void uct_varuna_mlx5_order_set_sl(uct_iface_h inner, uint8_t sl)
{
    uct_ib_iface_t *iface = ucs_derived_of(inner, uct_ib_iface_t);

#if UCT_VARUNA_UCX_AT_LEAST(1, 17)
    /* What comes back on DC goes by another one only if the user says so */
    if (iface->config.reverse_sl == iface->config.sl) {
        iface->config.reverse_sl = sl;
    }
#endif
    iface->config.sl = sl;
}

uct_varuna_order_t uct_varuna_mlx5_order(uct_iface_h inner, uint8_t *sl_p,
                                         uint16_t *mask_p)
{
    const uct_ib_iface_t *iface = ucs_derived_of(inner, uct_ib_iface_t);

    *sl_p = iface->config.sl;
    if (uct_varuna_mlx5_query_ooo_sl_mask(iface->super.md, iface->config.port_num,
                                          mask_p) != UCS_OK) {
        return UCT_VARUNA_ORDER_UNKNOWN;
    }

    return (*mask_p & UCS_BIT(*sl_p)) ? UCT_VARUNA_ORDER_NONE :
           UCT_VARUNA_ORDER_CERTAIN;
}

/* --- Order of queue pairs --- */

#if HAVE_DEVX
/* Bits of the contexts (PRM). UCX's headers have them only since 1.18 */
#define UCT_VARUNA_MLX5_CMD_QUERY_DCT       0x713
#define UCT_VARUNA_MLX5_QPC_BYTE            24  /* In the answer to QUERY_QP */
#define UCT_VARUNA_MLX5_QPC_ORDER_0         0x26
#define UCT_VARUNA_MLX5_QPC_ORDER_FORCE     0x27
#define UCT_VARUNA_MLX5_QPC_ORDER_1         0x49c
#define UCT_VARUNA_MLX5_DCTC_BYTE           16  /* In the answer to QUERY_DCT */
#define UCT_VARUNA_MLX5_DCTC_ORDER_FORCE    0x27
#define UCT_VARUNA_MLX5_DCTC_ORDER_0        0x73
#define UCT_VARUNA_MLX5_DCTC_ORDER_1        0x74

/* The bit @a index of a context: it begins with the highest one of its first byte */
static unsigned uct_varuna_mlx5_order_bit(const char *context, unsigned index)
{
    return ((uint8_t)context[index / 8] >> (7 - (index % 8))) & 1;
}

/* QUERY_QP or QUERY_DCT, whose input is the same, of what UCX has made in either way */
static ucs_status_t uct_varuna_mlx5_order_query(const uct_ib_mlx5_md_t *md,
                                                const uct_ib_mlx5_qp_t *qp,
                                                unsigned opcode, char *out, size_t size)
{
    char in[UCT_IB_MLX5DV_ST_SZ_BYTES(query_qp_in)] = {};
    int ret;

    UCT_IB_MLX5DV_SET(query_qp_in, in, opcode, opcode);
    UCT_IB_MLX5DV_SET(query_qp_in, in, qpn, qp->qp_num);
    switch (qp->type) {
    case UCT_IB_MLX5_OBJ_TYPE_VERBS:
        if (!(md->flags & UCT_IB_MLX5_MD_FLAG_DEVX)) {
            return UCS_ERR_UNSUPPORTED;
        }
        ret = mlx5dv_devx_qp_query(qp->verbs.qp, in, sizeof(in), out, size);
        break;
    case UCT_IB_MLX5_OBJ_TYPE_DEVX:
        ret = mlx5dv_devx_obj_query(qp->devx.obj, in, sizeof(in), out, size);
        break;
    default:
        return UCS_ERR_UNSUPPORTED;
    }

    if (ret != 0) {
        ucs_debug("the order of qp 0x%x cannot be queried: %m", qp->qp_num);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

uct_varuna_order_t uct_varuna_mlx5_order_of_rc(uct_ep_h tl_ep)
{
    const uct_ib_mlx5_qp_t *qp =
            &ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t)->tx.wq.super;
    const uct_ib_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_ib_iface_t);
    char out[UCT_IB_MLX5DV_ST_SZ_BYTES(query_qp_out)] = {};
    const char *qpc = out + UCT_VARUNA_MLX5_QPC_BYTE;

    if (uct_varuna_mlx5_order_query(ucs_derived_of(iface->super.md, uct_ib_mlx5_md_t), qp,
                                    UCT_IB_MLX5_CMD_OP_QUERY_QP, out,
                                    sizeof(out)) != UCS_OK) {
        return UCT_VARUNA_ORDER_UNKNOWN;
    }

    return uct_varuna_order_of_qp(
            uct_varuna_mlx5_order_bit(qpc, UCT_VARUNA_MLX5_QPC_ORDER_0) |
            uct_varuna_mlx5_order_bit(qpc, UCT_VARUNA_MLX5_QPC_ORDER_1),
            uct_varuna_mlx5_order_bit(qpc, UCT_VARUNA_MLX5_QPC_ORDER_FORCE));
}

uct_varuna_order_t uct_varuna_mlx5_order_of_dct(uct_iface_h inner)
{
    const uct_dc_mlx5_iface_t *iface = ucs_derived_of(inner, uct_dc_mlx5_iface_t);
    const uct_ib_iface_t *ib_iface   = ucs_derived_of(inner, uct_ib_iface_t);
    char out[UCT_VARUNA_MLX5_DCTC_BYTE + UCT_IB_MLX5DV_ST_SZ_BYTES(dctc)] = {};
    const char *dctc = out + UCT_VARUNA_MLX5_DCTC_BYTE;

    if (uct_varuna_mlx5_order_query(ucs_derived_of(ib_iface->super.md, uct_ib_mlx5_md_t),
                                    &iface->rx.dct, UCT_VARUNA_MLX5_CMD_QUERY_DCT, out,
                                    sizeof(out)) != UCS_OK) {
        return UCT_VARUNA_ORDER_UNKNOWN;
    }

    return uct_varuna_order_of_qp(
            uct_varuna_mlx5_order_bit(dctc, UCT_VARUNA_MLX5_DCTC_ORDER_0) |
            uct_varuna_mlx5_order_bit(dctc, UCT_VARUNA_MLX5_DCTC_ORDER_1),
            uct_varuna_mlx5_order_bit(dctc, UCT_VARUNA_MLX5_DCTC_ORDER_FORCE));
}
#else
uct_varuna_order_t uct_varuna_mlx5_order_of_rc(uct_ep_h ep)
{
    return UCT_VARUNA_ORDER_UNKNOWN;
}

uct_varuna_order_t uct_varuna_mlx5_order_of_dct(uct_iface_h inner)
{
    return UCT_VARUNA_ORDER_UNKNOWN;
}
#endif

/* --- Registrations --- */

/* Nothing else knows the protection domain and the packed keys of UCX's memory domain for
 * InfiniBand. */

ucs_status_t uct_varuna_mlx5_mr_reg(uct_md_h tl_md, void *address,
                                    size_t length, uint64_t iova, unsigned rights,
                                    void **mr_p, uint64_t *key_p)
{
    const uct_ib_md_t *md = ucs_derived_of(tl_md, uct_ib_md_t);
    int access            = 0;
    ucs_status_t status;
    struct ibv_mr *mr;

    if (rights & UCT_VARUNA_MR_READ) {
        access |= IBV_ACCESS_REMOTE_READ;
    }

    /* Verbs want local write access where there is any remote one that changes
     * memory */
    if (rights & UCT_VARUNA_MR_WRITE) {
        access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    }

    if (rights & UCT_VARUNA_MR_ATOMIC) {
        access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    }

    mr = ibv_reg_mr_iova(md->pd, address, length, iova, access);
    if (mr == NULL) {
        status = (errno == ENOMEM) ? UCS_ERR_NO_MEMORY : UCS_ERR_IO_ERROR;
        ucs_debug("ibv_reg_mr_iova(address=%p length=%zu access=0x%x) failed: %m",
                  address, length, access);
        return status;
    }

    /* One key for all: without an indirect one UCX uses the direct key for atomics,
     * too, and no offset (uct_ib_resolve_atomic_rkey) */
    uct_ib_md_pack_rkey(mr->rkey, UCT_IB_INVALID_MKEY, key_p);
    *mr_p = mr;
    return UCS_OK;
}

void uct_varuna_mlx5_mr_dereg(void *mr)
{
    if (ibv_dereg_mr(mr) != 0) {
        ucs_warn("ibv_dereg_mr() failed: %m");
    }
}
