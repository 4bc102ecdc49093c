/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Device list, and opening and closing of devices. Called by programs.
 *
 * A process joins the fabric named by MLX5EMU_FABRIC, as host MLX5EMU_HOST,
 * when it first asks for devices. A process which never does isn't touched.
 */

#include "emu_verbs.h"
#include "../core/emu_attach.h"
#include "emu_sysfs.h"
#include "../uar/emu_uar.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words of a doorbell, in the order in which they are in memory */
#define EMU_VDEVICE_DB_WORD0(_value) be32toh((uint32_t)(_value))
#define EMU_VDEVICE_DB_WORD1(_value) be32toh((uint32_t)((_value) >> 32))


/* Protects attaching, and the list of devices */
static pthread_mutex_t emu_vdevice_lock = PTHREAD_MUTEX_INITIALIZER;

/* By link. libibverbs has one structure for each device that the kernel has, in all
 * lists, and keeps it when they are freed: programs compare them, and open them later
 * (pyverbs does). Ours never go away. */
static emu_vdevice_t emu_vdevices[EMU_MAX_LINKS];


static void emu_vdevice_fork_child(void)
{
    pthread_mutex_init(&emu_vdevice_lock, NULL);
}

static void __attribute__((constructor)) emu_vdevice_init(void)
{
    pthread_atfork(NULL, NULL, emu_vdevice_fork_child);
}

static int emu_vdevice_parse_host(const char *str, unsigned *host_p)
{
    unsigned long host;
    char *end;

    if ((str == NULL) || (*str < '0') || (*str > '9')) {
        return EINVAL;
    }

    host = strtoul(str, &end, 10);
    if ((*end != '\0') || (host >= EMU_MAX_HOSTS)) {
        return EINVAL;
    }

    *host_p = host;
    return 0;
}

/* Join the fabric, once. The lock must be held. */
static int emu_vdevice_attach(void)
{
    static int complained;
    const char *fabric = getenv("MLX5EMU_FABRIC");
    char err[256]      = "";
    unsigned host;
    int ret;

    if (fabric == NULL) {
        return ENODEV; /* Preloaded without a fabric: no devices */
    }

    ret = emu_vdevice_parse_host(getenv("MLX5EMU_HOST"), &host);
    if (ret != 0) {
        snprintf(err, sizeof(err), "MLX5EMU_HOST must be the number of a host");
    } else {
        ret = -emu_proc_attach(fabric, host, err, sizeof(err));
    }

    if ((ret != 0) && !complained) {
        complained = 1;
        fprintf(stderr, "mlx5emu: %s\n", err);
    }

    return ret;
}

/* The lock must be held. */
static emu_vdevice_t *emu_vdevice_get(unsigned link)
{
    emu_vdevice_t *dev = &emu_vdevices[link];
    char dir[64 + EMU_NAME_MAX];

    if (dev->is_ready) {
        return dev;
    }

    dev->link               = link;
    dev->ibv.node_type      = IBV_NODE_CA;
    dev->ibv.transport_type = IBV_TRANSPORT_IB;
    emu_port_device_name(emu_port_get(emu_self->host, link), dev->ibv.name);
    snprintf(dev->ibv.dev_name, sizeof(dev->ibv.dev_name), "uverbs%u", link);
    snprintf(dir, sizeof(dir), EMU_DIR_FMT "/sys", emu_fabric->cfg.name);
    if ((emu_sysfs_create(dir, emu_fabric->cfg.hosts,
                          emu_fabric->cfg.links) != 0) ||
        (emu_sysfs_ibdev_path(dir, emu_self->host, link, dev->ibv.ibdev_path,
                              sizeof(dev->ibv.ibdev_path)) != 0) ||
        (emu_sysfs_verbs_path(dir, emu_self->host, link, dev->ibv.dev_path,
                              sizeof(dev->ibv.dev_path)) != 0)) {
        return NULL;
    }

    dev->is_ready = 1;
    return dev;
}

/* Whether a link has a device of its own: the second of a bond has none */
static int emu_vdevice_has_link(unsigned link)
{
    const emu_port_t *port = emu_port_get(emu_self->host, link);

    return emu_port_device(port) == port;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
    struct ibv_device **list = NULL;
    unsigned link, links, num = 0;
    emu_vdevice_t *dev;
    int ret;

    if (num_devices != NULL) {
        *num_devices = 0;
    }

    pthread_mutex_lock(&emu_vdevice_lock);
    ret = emu_vdevice_attach();
    if ((ret != 0) && (ret != ENODEV)) {
        goto out;
    }

    links = (ret == 0) ? emu_fabric->cfg.links : 0;
    list  = calloc(links + 1, sizeof(*list));
    if (list == NULL) {
        ret = ENOMEM;
        goto out;
    }

    for (link = 0; link < links; ++link) {
        if (!emu_vdevice_has_link(link)) {
            continue;
        }

        dev = emu_vdevice_get(link);
        if (dev == NULL) {
            ret = ENOMEM;
            goto err_free_list;
        }

        list[num++] = &dev->ibv;
    }

    ret = 0;
    if (num_devices != NULL) {
        *num_devices = num;
    }
    goto out;

err_free_list:
    free(list);
    list = NULL;
out:
    pthread_mutex_unlock(&emu_vdevice_lock);
    if (list == NULL) {
        errno = ret;
    }
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return (device == NULL) ? NULL : device->name;
}

/* Indexes are the kernel's, by which it is asked about a device over netlink. It
 * does not know of ours, and may have a device of its own with any index. */
int ibv_get_device_index(struct ibv_device *device)
{
    (void)device;
    return -1;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    struct ibv_device_attr attr;
    emu_port_t *port;
    unsigned link;

    if ((device == NULL) || (emu_self == NULL)) {
        return 0;
    }

    link = emu_container_of(device, emu_vdevice_t, ibv)->link;
    port = emu_port_get(emu_self->host, link);
    if (port == NULL) {
        return 0;
    }

    emu_device_query(port, &attr);
    return attr.node_guid;
}

const char *ibv_get_sysfs_path(void)
{
    return "/sys";
}

/* A store to the UAR page of a context */
static void emu_vctx_doorbell(void *arg, unsigned offset, uint64_t value,
                              unsigned size)
{
    emu_vctx_t *vctx = arg;

    if (vctx->fork_gen != emu_verbs_fork_gen) {
        return;
    }

    if (offset == EMU_UAR_OFFSET_CQ_ARM) {
        emu_cq_arm(EMU_VDEVICE_DB_WORD1(value), EMU_VDEVICE_DB_WORD0(value));
    } else if ((offset >= EMU_UAR_OFFSET_SQ) &&
               (((offset - EMU_UAR_OFFSET_SQ) % EMU_UAR_SQ_REG_SIZE) == 0)) {
        /* Word 0 is the WQE index, word 1 the QP number and the WQE's size */
        emu_sq_doorbell(EMU_VDEVICE_DB_WORD1(value) >> 8);
    }
}

static void emu_vctx_init_ops(struct verbs_context *verbs)
{
    struct ibv_context_ops *ops = &verbs->context.ops;

    verbs->sz                  = sizeof(*verbs);
    verbs->context.abi_compat  = __VERBS_ABI_IS_EXTENDED;
    verbs->query_port          = emu_vctx_query_port;
    verbs->query_device_ex     = emu_vctx_query_device_ex;
    verbs->alloc_td            = emu_vtd_alloc;
    verbs->dealloc_td          = emu_vtd_dealloc;
    verbs->alloc_parent_domain = emu_vpd_alloc_parent;
    verbs->create_cq_ex        = emu_vcq_create_ex;
    verbs->modify_cq           = emu_vcq_modify;
    verbs->create_qp_ex        = emu_vqp_create_ex;
    verbs->create_srq_ex       = emu_vsrq_create_ex;
    verbs->get_srq_num         = emu_vsrq_get_num;
    emu_vrefused_init_ops(verbs);

    ops->poll_cq               = emu_vcq_poll;
    ops->req_notify_cq         = emu_vcq_req_notify;
    ops->post_srq_recv         = emu_vsrq_post_recv;
    ops->post_send             = emu_vqp_post_send;
    ops->post_recv             = emu_vqp_post_recv;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    emu_vdevice_t *dev;
    emu_vctx_t *vctx;
    int ret;

    if (device == NULL) {
        return emu_verbs_fail(EINVAL);
    }

    pthread_mutex_lock(&emu_vdevice_lock);
    ret = emu_vdevice_attach();
    pthread_mutex_unlock(&emu_vdevice_lock);
    if (ret != 0) {
        return emu_verbs_fail(ret);
    }

    dev  = emu_container_of(device, emu_vdevice_t, ibv);
    vctx = calloc(1, sizeof(*vctx));
    if (vctx == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    ret = emu_nic_open(dev->link, &vctx->ctx);
    if (ret != 0) {
        goto err_free;
    }

    ret = emu_uar_page_create(emu_vctx_doorbell, vctx, &vctx->uar);
    if (ret != 0) {
        goto err_close;
    }

    vctx->dev                            = dev;
    vctx->port                           = emu_port_get(emu_self->host,
                                                        dev->link);
    vctx->fork_gen                       = emu_verbs_fork_gen;
    vctx->verbs.context.device           = device;
    vctx->verbs.context.cmd_fd           = vctx->ctx->async->fd;
    vctx->verbs.context.async_fd         = vctx->ctx->async->fd;
    vctx->verbs.context.num_comp_vectors = EMU_VERBS_COMP_VECTORS;
    pthread_mutex_init(&vctx->verbs.context.mutex, NULL);
    emu_vctx_init_ops(&vctx->verbs);
    return &vctx->verbs.context;

err_close:
    emu_ctx_close(vctx->ctx);
err_free:
    free(vctx);
    return emu_verbs_fail(ret);
}

int ibv_close_device(struct ibv_context *context)
{
    emu_vctx_t *vctx;

    if (context == NULL) {
        return emu_verbs_error(EINVAL);
    }

    vctx = emu_vctx(context);
    emu_uar_page_destroy(vctx->uar);
    if (emu_vctx_is_mine(context)) {
        emu_ctx_close(vctx->ctx);
    }

    pthread_mutex_destroy(&context->mutex);
    free(vctx);
    return 0;
}

int ibv_fork_init(void)
{
    return 0; /* Registered memory is reached by address, not by page */
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}
