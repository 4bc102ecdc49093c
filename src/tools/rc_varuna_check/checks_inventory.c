/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Properties of a host and its ports, without traffic.
 */
#include "check_def.h"
#include "check_devx.h"
#include "check_prm.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CHECK_MIN_FDS 1024


/* ConnectX-4 and later, in UCX 1.13.1's table of devices */
static int check_is_known(unsigned part)
{
    static const unsigned parts[] = {0x1013, 0x1014, 0x1015, 0x1016, 0x1017, 0x1018,
                                     0x1019, 0x101a, 0x101b, 0x101c, 0x101d, 0x101e,
                                     0x101f, 0x1021, 0xa2d2, 0xa2d3, 0xa2d6, 0xa2dc};
    unsigned i;

    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
        if (parts[i] == part) {
            return 1;
        }
    }

    return 0;
}

/* A DC target that is made as UCX makes it */
static void check_inventory_dct(check_run_t *run, check_nic_t *nic)
{
    check_order_bits_t bits;
    int ret;

    if (!(nic->wire.flags & CHECK_PORT_DEVX)) {
        return;
    }

    ret = check_devx_dct(nic, &bits);
    if (ret != 0) {
        check_row(run, "dct", CHECK_FAIL, nic->wire.name,
                  "a DC target cannot be created and queried by DEVX: %s", strerror(ret));
    } else {
        check_row(run, "dct", CHECK_OK, nic->wire.name,
                  "a DC target by DEVX has dp_ordering %u, %s", bits.placement,
                  bits.is_forced ? "forced" : "not forced");
    }
}

static void check_inventory_dc(check_run_t *run, check_nic_t *nic)
{
    static uint8_t out[CHECK_CAP_OUT];
    const uint8_t *cap = out + CHECK_CAP_CAPS;
    uint8_t lag[CHECK_LAG_OUT];
    int is_bond, is_iwarp, ret;

    if (!nic->has_dv) {
        is_iwarp = (nic->context->device->transport_type == IBV_TRANSPORT_IWARP);
        check_row(run, "mlx5", is_iwarp ? CHECK_FAIL : CHECK_WARN, nic->wire.name,
                  "mlx5dv does not support this device: %s", is_iwarp ?
                  "UCX has no transport for iWARP" :
                  "lanes over rc_verbs, without DC");
        return;
    }

    ret = check_nic_command(nic, CHECK_CMD_HCA_CAP, CHECK_CAP_GENERAL, 0, out,
                            sizeof(out));
    if (ret != 0) {
        check_row(run, "mlx5", CHECK_UNTESTED, nic->wire.name,
                  "no DEVX, so capabilities are unknown: %s", strerror(ret));
        return;
    }

    is_bond = (strstr(nic->wire.name, "bond") != NULL) ||
              check_prm_get(cap, CHECK_CAP_LAG_MASTER);
    if (is_bond && (check_nic_command(nic, CHECK_CMD_LAG, 0, 0, lag,
                                      sizeof(lag)) == 0)) {
        is_bond = check_prm_get(lag, CHECK_LAG_STATE) != 0;
    }

    if (!check_prm_get(cap, CHECK_CAP_DCT) ||
        (is_bond && !check_prm_get(cap, CHECK_CAP_LAG_DCT))) {
        check_row(run, "mlx5", CHECK_WARN, nic->wire.name,
                  "the firmware has no DC%s: lanes over rc_verbs",
                  is_bond ? " over LAG (lag_dct)" : "");
    } else {
        check_row(run, "mlx5", CHECK_OK, nic->wire.name,
                  "DEVX and DC: lanes over rc_mlx5 and dc_mlx5");
        check_inventory_dct(run, nic);
    }

    if (is_bond) {
        check_row(run, "bond", CHECK_WARN, nic->wire.name,
                  "a bond of ports, which counts as one link");
    } else {
        check_row(run, "bond", CHECK_OK, nic->wire.name, "not bonded");
    }
}

static int check_is_vf(const check_nic_t *nic)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/device/physfn",
             nic->context->device->ibdev_path);
    return access(path, F_OK) == 0;
}

void check_inventory(check_run_t *run)
{
    check_nic_t *nic;
    const struct ibv_port_attr *port;
    unsigned i;

    for (i = 0; i < run->nics.count; ++i) {
        nic  = &run->nics.nic[i];
        port = &nic->port_attr;
        check_row(run, "port",
                  nic->wire.is_active ? CHECK_OK : CHECK_FAIL, nic->wire.name,
                  "%s, %s, firmware %.32s, MTU %u, GID index %u of %d, %u P_Keys, SM's"
                  " SL %u, subnet timeout %.3g s%s",
                  nic->wire.is_active ? "active" : "not active",
                  (nic->wire.link_layer == IBV_LINK_LAYER_ETHERNET) ? "RoCE" :
                  "InfiniBand", nic->attr.fw_ver, 128u << port->active_mtu,
                  nic->gid_index, port->gid_tbl_len, port->pkey_tbl_len, port->sm_sl,
                  4.096e-6 * (1ull << (port->subnet_timeout & 31)),
                  check_is_vf(nic) ? ", virtual function" : "");
        check_row(run, "ucx-device",
                  ((nic->attr.vendor_id == 0x2c9) &&
                   check_is_known(nic->attr.vendor_part_id)) ? CHECK_OK :
                  CHECK_WARN, nic->wire.name, "vendor 0x%x, part %u",
                  nic->attr.vendor_id, nic->attr.vendor_part_id);
        if (check_is_vf(nic)) {
            check_row(run, "vf", CHECK_WARN, nic->wire.name,
                      "a virtual function, whose port may have a fixed state");
        }
        check_inventory_dc(run, nic);
    }

    if (run->nics.count < 2) {
        check_row(run, "port", CHECK_FAIL, "host", "only one port: no link can take"
                  " over");
    }
}

void check_order_mask(check_run_t *run)
{
    static uint8_t cap[CHECK_CAP_OUT];
    const check_nic_t *nic;
    uint8_t out[CHECK_VPORT_OUT];
    unsigned i, mask;

    for (i = 0; i < run->nics.count; ++i) {
        nic = &run->nics.nic[i];
        if (nic->wire.link_layer == IBV_LINK_LAYER_ETHERNET) {
            check_row(run, "ooo-sl-mask", CHECK_NOTE, nic->wire.name,
                      "RoCE has no mask of service levels; \"order\" decides");
        } else if ((check_nic_command(nic, CHECK_CMD_HCA_CAP, CHECK_CAP_GENERAL, 0, cap,
                                      sizeof(cap)) != 0) ||
                   !check_prm_get(cap + CHECK_CAP_CAPS, CHECK_CAP_OOO_SL_MASK) ||
                   (check_nic_command(nic, CHECK_CMD_VPORT, 0,
                                      (uint32_t)nic->port << 16, out,
                                      sizeof(out)) != 0)) {
            check_row(run, "ooo-sl-mask", CHECK_WARN, nic->wire.name,
                      "the mask cannot be read: take all service levels as out of "
                      "order");
        } else {
            mask = check_prm_get(out + CHECK_VPORT_CONTEXT, CHECK_VPORT_OOO_SL_MASK);
            check_row(run, "ooo-sl-mask",
                      (mask == 0) ? CHECK_OK :
                      (mask == 0xffff) ? CHECK_FAIL : CHECK_WARN, nic->wire.name,
                      "0x%04x: %s", mask,
                      (mask == 0) ? "all service levels are in order" :
                      (mask == 0xffff) ? "all service levels may be out of order" :
                      "some service levels may be out of order");
        }
    }
}

void check_limits(check_run_t *run)
{
    const char *relaxed = getenv("UCX_IB_PCI_RELAXED_ORDERING");
    struct rlimit limit;

    if ((getrlimit(RLIMIT_MEMLOCK, &limit) == 0) &&
        (limit.rlim_cur != RLIM_INFINITY) && (geteuid() != 0)) {
        check_row(run, "memlock", CHECK_WARN, "host", "limited to %llu KB",
                  (unsigned long long)limit.rlim_cur / 1024);
    } else {
        check_row(run, "memlock", CHECK_OK, "host", "unlimited");
    }

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        check_row(run, "files",
                  (limit.rlim_cur < CHECK_MIN_FDS) ? CHECK_WARN : CHECK_OK, "host",
                  "%llu file descriptors", (unsigned long long)limit.rlim_cur);
    }

    if ((relaxed != NULL) && strchr("yYtT1o", relaxed[0]) &&
        strcmp(relaxed, "off")) {
        check_row(run, "relaxed-ordering", CHECK_WARN, "host",
                  "UCX_IB_PCI_RELAXED_ORDERING=%.32s", relaxed);
    } else {
        check_row(run, "relaxed-ordering", CHECK_OK, "host",
                  "UCX_IB_PCI_RELAXED_ORDERING is %.32s",
                  (relaxed == NULL) ? "not set" : relaxed);
    }
}
