/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opens a transport and connects it, see cost_uct.h.
 */
#include "cost_uct.h"
#include "cost_oob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define COST_BLOB_MAX 1024
#define COST_ALIGN    4096


typedef struct {
    char     dev[COST_BLOB_MAX];
    char     iface[COST_BLOB_MAX];
    char     ep[COST_BLOB_MAX];
    char     rkey[COST_BLOB_MAX];
    uint64_t address;
} cost_uct_peer_t;


/* For calls that normally cannot fail */
#define COST_CHECK(_call) \
    do { \
        ucs_status_t _status = (_call); \
        if (_status != UCS_OK) { \
            fprintf(stderr, "%s: %s\n", #_call, ucs_status_string(_status)); \
            return -1; \
        } \
    } while (0)


static ucs_status_t
cost_uct_received(void *arg, void *data, size_t length, unsigned flags)
{
    cost_uct_t *uct = arg;

    ++uct->messages;
    return UCS_OK;
}

/* Whether the open memory domain has the transport on the device */
static int cost_uct_md_has(uct_md_h md, const char *tl, const char *dev)
{
    uct_tl_resource_desc_t *resources;
    unsigned count, i;
    int found = 0;

    if (uct_md_query_tl_resources(md, &resources, &count) != UCS_OK) {
        return 0;
    }

    for (i = 0; i < count; ++i) {
        found |= !strcmp(resources[i].tl_name, tl) &&
                 !strcmp(resources[i].dev_name, dev);
    }

    uct_release_tl_resource_list(resources);
    return found;
}

static int cost_uct_try_component(cost_uct_t *uct, uct_component_h component,
                                  const char *tl, const char *dev)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    uct_md_config_t *config;
    unsigned i;

    if ((uct_component_query(component, &attr) != UCS_OK) ||
        (attr.md_resource_count == 0)) {
        return -1;
    }

    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(attr.md_resource_count,
                               sizeof(*attr.md_resources));
    if (attr.md_resources == NULL) {
        return -1;
    }

    COST_CHECK(uct_component_query(component, &attr));
    COST_CHECK(uct_md_config_read(component, NULL, NULL, &config));
    for (i = 0; (i < attr.md_resource_count) && (uct->md == NULL); ++i) {
        if (uct_md_open(component, attr.md_resources[i].md_name, config,
                        &uct->md) != UCS_OK) {
            uct->md = NULL;
        } else if (!cost_uct_md_has(uct->md, tl, dev)) {
            uct_md_close(uct->md);
            uct->md = NULL;
        }
    }

    uct_config_release(config);
    free(attr.md_resources);
    uct->component = component;
    return (uct->md == NULL) ? -1 : 0;
}

static int cost_uct_open_md(cost_uct_t *uct, const char *tl, const char *dev)
{
    uct_component_h *components;
    unsigned count, i;

    COST_CHECK(uct_query_components(&components, &count));
    for (i = 0; i < count; ++i) {
        if (cost_uct_try_component(uct, components[i], tl, dev) == 0) {
            break;
        }
    }

    uct_release_component_list(components);
    if (uct->md == NULL) {
        fprintf(stderr, "there is no transport %s on %s\n", tl, dev);
        return -1;
    }

    return 0;
}

static int cost_uct_open_iface(cost_uct_t *uct, const char *tl, const char *dev)
{
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = tl,
        .mode.device.dev_name = dev
    };
    uct_iface_config_t *config;

    if (uct->failed != NULL) {
        params.field_mask     |= UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                                 UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG;
        params.err_handler     = uct->failed;
        params.err_handler_arg = uct->failed_arg;
    }

    COST_CHECK(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                        &uct->async));
    COST_CHECK(uct_worker_create(uct->async, UCS_THREAD_MODE_SINGLE,
                                 &uct->worker));
    COST_CHECK(uct_md_iface_config_read(uct->md, tl, NULL, NULL, &config));
    COST_CHECK(uct_iface_open(uct->md, uct->worker, &params, config,
                              &uct->iface));
    uct_config_release(config);
    uct_iface_progress_enable(uct->iface, UCT_PROGRESS_SEND |
                                          UCT_PROGRESS_RECV);
    COST_CHECK(uct_iface_query(uct->iface, &uct->attr));
    COST_CHECK(uct_iface_set_am_handler(uct->iface, COST_AM_ID,
                                        cost_uct_received, uct, 0));
    return 0;
}

static int cost_uct_register(cost_uct_t *uct, size_t length)
{
    uct->length = length;
    if (posix_memalign(&uct->buffer, COST_ALIGN, length) != 0) {
        fprintf(stderr, "cannot allocate a buffer of %zu bytes\n", length);
        return -1;
    }

    memset(uct->buffer, COST_FILL, length);
    COST_CHECK(uct_md_mem_reg(uct->md, uct->buffer, length,
                              UCT_MD_MEM_ACCESS_ALL, &uct->memh));
    return 0;
}

static int cost_uct_exchange(cost_uct_t *uct, int fd, cost_uct_peer_t *peer)
{
    cost_uct_peer_t own = {.address = (uintptr_t)uct->buffer};

    COST_CHECK(uct_iface_get_device_address(uct->iface, (void*)own.dev));
    if (uct->attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE) {
        COST_CHECK(uct_iface_get_address(uct->iface, (void*)own.iface));
    }
    if (uct->attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_EP) {
        COST_CHECK(uct_ep_get_address(uct->ep, (void*)own.ep));
    }
    COST_CHECK(uct_md_mkey_pack(uct->md, uct->memh, own.rkey));

    if ((cost_oob_send_blob(fd, &own, sizeof(own)) != 0) ||
        (cost_oob_recv_blob(fd, peer, sizeof(*peer)) != 0)) {
        return -1;
    }

    if (uct->remote == 0) {
        COST_CHECK(uct_rkey_unpack(uct->component, peer->rkey, &uct->rkey));
        uct->remote = peer->address;
    }

    return 0;
}

/* A transport that connects endpoints needs one on both sides, and its address before
 * the exchange; one that connects to interfaces is connected after it, by the client
 */
int cost_uct_connect(cost_uct_t *uct, int fd, int is_client)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE,
        .iface      = uct->iface
    };
    int to_ep = !!(uct->attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_EP);
    cost_uct_peer_t peer;

    if (to_ep) {
        COST_CHECK(uct_ep_create(&params, &uct->ep));
    }

    if (cost_uct_exchange(uct, fd, &peer) != 0) {
        return -1;
    }

    if (to_ep) {
        COST_CHECK(uct_ep_connect_to_ep(uct->ep, (void*)peer.dev,
                                        (void*)peer.ep));
    } else if (is_client) {
        params.field_mask |= UCT_EP_PARAM_FIELD_DEV_ADDR |
                             UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.dev_addr    = (void*)peer.dev;
        params.iface_addr  = (void*)peer.iface;
        COST_CHECK(uct_ep_create(&params, &uct->ep));
    }

    return 0;
}

int cost_uct_open_device(cost_uct_t *uct, const char *tl, const char *dev,
                         size_t length)
{
    return ((cost_uct_open_md(uct, tl, dev) == 0) &&
            (cost_uct_open_iface(uct, tl, dev) == 0)) ?
           cost_uct_register(uct, length) : -1;
}

int cost_uct_open(cost_uct_t *uct, const char *tl, const char *dev,
                  size_t length, int fd, int is_client)
{
    memset(uct, 0, sizeof(*uct));
    return (cost_uct_open_device(uct, tl, dev, length) == 0) ?
           cost_uct_connect(uct, fd, is_client) : -1;
}

void cost_uct_close(cost_uct_t *uct)
{
    if (uct->ep != NULL) {
        uct_ep_destroy(uct->ep);
    }

    uct_rkey_release(uct->component, &uct->rkey);
    uct_md_mem_dereg(uct->md, uct->memh);
    uct_iface_close(uct->iface);
    uct_worker_destroy(uct->worker);
    ucs_async_context_destroy(uct->async);
    uct_md_close(uct->md);
    free(uct->buffer);
}
