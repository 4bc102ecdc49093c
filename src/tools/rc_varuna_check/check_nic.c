/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * This host's ports, see check_nic.h.
 */
#include "check_nic.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


double check_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + (ts.tv_nsec * 1e-9);
}

/* @return The index of a port in a list, as DEVICE or DEVICE:PORT, or -1. */
static int check_nics_place(const char *devices, const char *name, unsigned port)
{
    size_t length = strlen(name);
    const char *item;
    int place = 0;
    char *end;

    for (item = devices; item != NULL; ++place) {
        if (!strncmp(item, name, length)) {
            if ((item[length] == '\0') || (item[length] == ',')) {
                return place;
            } else if ((item[length] == ':') &&
                       (strtoul(item + length + 1, &end, 10) == port) &&
                       ((*end == '\0') || (*end == ','))) {
                return place;
            }
        }

        item = strchr(item, ',');
        item = (item == NULL) ? NULL : item + 1;
    }

    return -1;
}

/* On RoCE: version 2 with an IPv4 address, as UCX selects it; else version 2; else 0 */
static void check_nic_select_gid(check_nic_t *nic)
{
    static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};
    struct ibv_gid_entry entry;
    int i, best = 0, rank = 0;

    if (nic->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET) {
        for (i = 0; (i < nic->port_attr.gid_tbl_len) && (rank < 2); ++i) {
            if ((ibv_query_gid_ex(nic->context, nic->port, i, &entry, 0) != 0) ||
                (entry.gid_type != IBV_GID_TYPE_ROCE_V2)) {
                continue;
            }

            if (!memcmp(entry.gid.raw, ipv4, sizeof(ipv4))) {
                best = i;
                rank = 2;
            } else if (rank == 0) {
                best = i;
                rank = 1;
            }
        }
    }

    nic->gid_index = best;
}

/* As UCX chooses it: the first P_Key of which the port is a full member, and otherwise the
 * first one. On RoCE there is one only */
static void check_nic_select_pkey(check_nic_t *nic)
{
    const char *option = getenv("UCX_IB_PKEY");
    int is_named       = (option != NULL) && strcmp(option, "auto");
    unsigned wanted    = is_named ? strtoul(option, NULL, 16) : 0;
    uint16_t pkey;
    __be16 entry;
    int i;

    nic->wire.pkey  = 0;
    nic->pkey_index = 0;
    if (nic->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET) {
        nic->wire.pkey = CHECK_PKEY_FULL | CHECK_PKEY_PARTITION;
        return;
    }

    for (i = 0; i < nic->port_attr.pkey_tbl_len; ++i) {
        if (ibv_query_pkey(nic->context, nic->port, i, &entry) != 0) {
            continue;
        }

        pkey = be16toh(entry);
        if ((pkey == 0) || (is_named && ((pkey & CHECK_PKEY_PARTITION) != wanted)) ||
            ((nic->wire.pkey != 0) && !(pkey & CHECK_PKEY_FULL))) {
            continue;
        }

        nic->wire.pkey  = pkey;
        nic->pkey_index = i;
        if (pkey & CHECK_PKEY_FULL) {
            return;
        }
    }
}

static int check_nic_option_is_on(const char *name)
{
    const char *option = getenv(name);

    return (option != NULL) && strchr("yYtT1", option[0]) && (option[0] != '\0');
}

/* Whether UCX sends a GRH within the subnet, too */
static int check_nic_is_global(const check_nic_t *nic)
{
    static const uint8_t link_local[8] = {0xfe, 0x80};
    static const uint8_t site_local[4] = {0xfe, 0xc0};

    return check_nic_option_is_on("UCX_IB_IS_GLOBAL") ||
           (nic->port_attr.flags & IBV_QPF_GRH_REQUIRED) ||
           (memcmp(nic->wire.gid, link_local, sizeof(link_local)) &&
            memcmp(nic->wire.gid, site_local, sizeof(site_local)));
}

/* Whether UCX makes queue pairs by DEVX */
static int check_nic_uses_devx(const check_nic_t *nic)
{
    const char *devx    = getenv("UCX_IB_MLX5_DEVX");
    const char *objects = getenv("UCX_IB_MLX5_DEVX_OBJECTS");

    return nic->has_devx && ((devx == NULL) || !strchr("nN0", devx[0])) &&
           ((objects == NULL) || strstr(objects, "rcqp") || strstr(objects, "auto"));
}

/* As UCX chooses it. @return An enum ibv_mtu */
static unsigned check_nic_path_mtu(const check_nic_t *nic)
{
    const char *option = getenv("UCX_IB_PATH_MTU");
    unsigned mtu       = nic->port_attr.active_mtu;
    unsigned wanted;

    for (wanted = IBV_MTU_512; (option != NULL) && (wanted < mtu); ++wanted) {
        if (strtoul(option, NULL, 10) == (128u << wanted)) {
            return wanted;
        }
    }

    return mtu;
}

int check_nic_refresh(check_nic_t *nic)
{
    union ibv_gid gid;
    int ret;

    ret = ibv_query_port(nic->context, nic->port, &nic->port_attr);
    if (ret != 0) {
        return ret;
    }

    check_nic_select_gid(nic);
    if (ibv_query_gid(nic->context, nic->port, nic->gid_index, &gid) != 0) {
        return EIO;
    }

    memcpy(nic->wire.gid, gid.raw, sizeof(nic->wire.gid));
    nic->wire.lid        = nic->port_attr.lid;
    nic->wire.link_layer = (nic->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET) ?
                           IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
    nic->wire.mtu        = check_nic_path_mtu(nic);
    nic->wire.is_active  = (nic->port_attr.state == IBV_PORT_ACTIVE);
    nic->wire.flags      = (check_nic_uses_devx(nic) ? CHECK_PORT_DEVX : 0) |
                           (check_nic_is_global(nic) ? CHECK_PORT_GLOBAL : 0);
    check_nic_select_pkey(nic);
    return 0;
}

static struct ibv_context *check_nic_open(struct ibv_device *device,
                                          check_nic_t *nic)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    struct ibv_context *context     = NULL;

    nic->has_dv = mlx5dv_is_supported(device);
    if (nic->has_dv) {
        context = mlx5dv_open_device(device, &attr);
    }

    nic->has_devx = (context != NULL);
    return (context != NULL) ? context : ibv_open_device(device);
}

static int check_nic_init(check_nic_t *nic, struct ibv_device *device,
                          unsigned port)
{
    int ret;

    memset(nic, 0, sizeof(*nic));
    nic->port    = port;
    nic->context = check_nic_open(device, nic);
    if (nic->context == NULL) {
        return (errno != 0) ? errno : EIO;
    }

    snprintf(nic->wire.name, sizeof(nic->wire.name), "%s:%u",
             ibv_get_device_name(device), port);
    fcntl(nic->context->async_fd, F_SETFL,
          fcntl(nic->context->async_fd, F_GETFL) | O_NONBLOCK);
    ret = ibv_query_device(nic->context, &nic->attr);
    if (ret != 0) {
        return ret;
    }

    ret = check_nic_refresh(nic);
    if (ret != 0) {
        return ret;
    }

    nic->pd = ibv_alloc_pd(nic->context);
    if ((nic->pd == NULL) ||
        (posix_memalign((void**)&nic->mem, 4096, CHECK_MEM_SIZE) != 0)) {
        return ENOMEM;
    }

    memset(nic->mem, 0, CHECK_MEM_SIZE);
    nic->mr = ibv_reg_mr(nic->pd, nic->mem, CHECK_MEM_SIZE,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                         IBV_ACCESS_REMOTE_READ);
    return (nic->mr == NULL) ? ((errno != 0) ? errno : ENOMEM) : 0;
}

/* Add the ports of one device that are in the list, at their indexes */
static int check_nics_add(check_nics_t *nics, const char *devices,
                          struct ibv_device *device)
{
    const char *name = ibv_get_device_name(device);
    struct ibv_device_attr attr;
    struct ibv_context *context;
    unsigned port, ports = 0;
    int place, ret;

    context = ibv_open_device(device);
    if (context != NULL) {
        if (ibv_query_device(context, &attr) == 0) {
            ports = attr.phys_port_cnt;
        }
        ibv_close_device(context);
    }

    for (port = 1; port <= ports; ++port) {
        place = (devices == NULL) ? (int)nics->count :
                                    check_nics_place(devices, name, port);
        if ((place < 0) || (place >= CHECK_MAX_PORTS) ||
            (nics->nic[place].context != NULL)) {
            continue;
        }

        ret = check_nic_init(&nics->nic[place], device, port);
        if (ret != 0) {
            fprintf(stderr, "rc_varuna_check: cannot use %s:%u: %s%s\n", name, port,
                    strerror(ret), (ret == ENOMEM) ?
                    " (raise the limit of locked memory, ulimit -l)" : "");
            return -1;
        }

        ++nics->count;
    }

    return 0;
}

int check_nics_open(check_nics_t *nics, const char *devices)
{
    struct ibv_device **list;
    unsigned named = (devices != NULL);
    const char *p;
    int i, n = 0, ret = 0;

    memset(nics, 0, sizeof(*nics));
    list = ibv_get_device_list(&n);
    for (i = 0; (i < n) && (ret == 0); ++i) {
        ret = check_nics_add(nics, devices, list[i]);
    }

    if (list != NULL) {
        ibv_free_device_list(list);
    }

    if (ret != 0) {
        return ret;
    }

    for (p = devices; (p != NULL) && (*p != '\0'); ++p) {
        named += (*p == ',');
    }

    if (nics->count == 0) {
        fprintf(stderr, "rc_varuna_check: no RDMA device%s%s: are the drivers "
                "loaded, and /dev/infiniband accessible?\n",
                (devices != NULL) ? " called " : "",
                (devices != NULL) ? devices : "");
        return -1;
    }

    if (named && (nics->count != named)) {
        fprintf(stderr, "rc_varuna_check: %u of the %u ports in \"%s\" exist "
                "(at most %d can be named)\n", nics->count, named, devices,
                CHECK_MAX_PORTS);
        return -1;
    }

    return 0;
}

int check_nic_command(const check_nic_t *nic, unsigned opcode, unsigned op_mod,
                      uint32_t word2, void *out, size_t out_length)
{
    uint8_t in[16] = {[0] = opcode >> 8, [1] = opcode & 0xff,
                      [6] = op_mod >> 8, [7] = op_mod & 0xff,
                      [8] = word2 >> 24, [9] = (word2 >> 16) & 0xff,
                      [10] = (word2 >> 8) & 0xff, [11] = word2 & 0xff};
    int ret;

    memset(out, 0, out_length);
    if (!nic->has_devx) {
        return EOPNOTSUPP;
    }

    errno = 0;
    ret   = mlx5dv_devx_general_cmd(nic->context, in, sizeof(in), out, out_length);
    return (ret == 0) ? 0 : ((errno != 0) ? errno : EIO);
}

void check_nic_fill(check_nic_t *nic, const check_scan_t *scan)
{
    uint64_t *words;
    uint32_t i, k;

    for (i = 0; i < scan->count; ++i) {
        words = (uint64_t*)(nic->mem + ((size_t)i * scan->size));
        for (k = 0; k < scan->size / 8; ++k) {
            words[k] = scan->base + i;
        }
    }
}
