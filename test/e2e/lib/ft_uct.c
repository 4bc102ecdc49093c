/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Open a UCT transport by its name. The code is the same for all transports.
 */
#include "ft_uct.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Count the failures of endpoints. Most tests allow none. */
static ucs_status_t ft_uct_error(void *arg, uct_ep_h ep, ucs_status_t status)
{
    ft_uct_t *uct = arg;

    printf("ft: note endpoint %p failed: %s\n", (void*)ep,
           ucs_status_string(status));
    ++uct->ep_errors;
    if (uct->ep_failed != NULL) {
        uct->ep_failed(uct, ep);
    }
    return UCS_OK;
}

/* The device and transport to open */
typedef struct {
    const char            *tl_name;
    const char            *dev_name; /* NULL: the first one */
    const ft_uct_option_t *options;  /* NULL: none */
} ft_uct_wanted_t;

static void ft_uct_open_iface(ft_uct_t *uct, const ft_uct_wanted_t *wanted,
                              const char *dev_name)
{
    uct_iface_params_t params = {
        .field_mask        = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                             UCT_IFACE_PARAM_FIELD_DEVICE |
                             UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                             UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                             UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                             UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS,
        .open_mode         = UCT_IFACE_OPEN_MODE_DEVICE,
        .err_handler       = ft_uct_error,
        .err_handler_arg   = uct,
        .err_handler_flags = 0,
        .rx_headroom       = 0
    };
    const ft_uct_option_t *option = wanted->options;
    uct_iface_config_t *config;

    params.mode.device.tl_name  = wanted->tl_name;
    params.mode.device.dev_name = dev_name;
    ft_check_status(uct_md_iface_config_read(uct->md, wanted->tl_name, NULL, NULL,
                                             &config), "iface_config_read");
    for (; (option != NULL) && (option->name != NULL); ++option) {
        ft_check_status(uct_config_modify(config, option->name, option->value),
                        option->name);
    }

    ft_check_status(uct_iface_open(uct->md, uct->worker, &params, config,
                                   &uct->iface), "iface_open");
    uct_config_release(config);
    ft_check_status(uct_iface_query(uct->iface, &uct->attr), "iface_query");
    uct_iface_progress_enable(uct->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

/* Open the memory domain if it has the transport. @return Whether it has. */
static int ft_uct_try_md(ft_uct_t *uct, uct_component_h component,
                         const char *md_name, const ft_uct_wanted_t *wanted)
{
    uct_tl_resource_desc_t *resources;
    uct_md_config_t *config;
    unsigned num, i;
    int found = 0;

    ft_check_status(uct_md_config_read(component, NULL, NULL, &config),
                    "md_config_read");
    if (uct_md_open(component, md_name, config, &uct->md) == UCS_OK) {
        ft_check_status(uct_md_query_tl_resources(uct->md, &resources, &num),
                        "query_tl_resources");
        for (i = 0; (i < num) && !found; ++i) {
            if (!strcmp(resources[i].tl_name, wanted->tl_name) &&
                ((wanted->dev_name == NULL) ||
                 !strcmp(resources[i].dev_name, wanted->dev_name))) {
                ft_check_status(uct_md_query(uct->md, &uct->md_attr),
                                "md_query");
                uct->component = component;
                ft_uct_open_iface(uct, wanted, resources[i].dev_name);
                found = 1;
            }
        }

        uct_release_tl_resource_list(resources);
        if (!found) {
            uct_md_close(uct->md);
        }
    }

    uct_config_release(config);
    return found;
}

static int ft_uct_try_component(ft_uct_t *uct, uct_component_h component,
                                const ft_uct_wanted_t *wanted)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    int found = 0;
    unsigned i;

    ft_check_status(uct_component_query(component, &attr), "component_query");
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(attr.md_resource_count + 1,
                               sizeof(*attr.md_resources));
    if (attr.md_resources == NULL) {
        ft_die("out of memory");
    }

    ft_check_status(uct_component_query(component, &attr), "component_query");
    for (i = 0; (i < attr.md_resource_count) && !found; ++i) {
        found = ft_uct_try_md(uct, component, attr.md_resources[i].md_name,
                              wanted);
    }

    free(attr.md_resources);
    return found;
}

int ft_uct_open_device(ft_uct_t *uct, const char *tl_name, const char *dev_name,
                       const ft_uct_option_t *options)
{
    const ft_uct_wanted_t wanted = {tl_name, dev_name, options};
    uct_component_h *components;
    unsigned num, i;
    int found = 0;

    memset(uct, 0, sizeof(*uct));
    ft_check_status(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                             &uct->async), "async");
    ft_check_status(uct_worker_create(uct->async, UCS_THREAD_MODE_SINGLE,
                                      &uct->worker), "worker_create");
    ft_check_status(uct_query_components(&components, &num),
                    "query_components");
    for (i = 0; (i < num) && !found; ++i) {
        found = ft_uct_try_component(uct, components[i], &wanted);
    }

    uct_release_component_list(components);
    if (!found) {
        uct_worker_destroy(uct->worker);
        ucs_async_context_destroy(uct->async);
    }

    return found ? 0 : -1;
}

void ft_uct_open(ft_uct_t *uct, const char *tl_name)
{
    if (ft_uct_open_device(uct, tl_name, NULL, NULL) != 0) {
        ft_die("there is no transport %s", tl_name);
    }
}

void ft_uct_close(ft_uct_t *uct)
{
    uct_iface_close(uct->iface);
    uct_md_close(uct->md);
    uct_worker_destroy(uct->worker);
    ucs_async_context_destroy(uct->async);
}

static ft_uct_reg_func_t ft_uct_other_reg;

void ft_uct_set_reg(ft_uct_reg_func_t func)
{
    ft_uct_other_reg = func;
}

uct_mem_h ft_uct_reg(ft_uct_t *uct, void *address, size_t length)
{
    uct_mem_h memh;

    if (ft_uct_other_reg != NULL) {
        return ft_uct_other_reg(uct->md, address, length);
    }

    ft_check_status(uct_md_mem_reg(uct->md, address, length,
                                   UCT_MD_MEM_ACCESS_ALL, &memh), "mem_reg");
    return memh;
}

static void ft_uct_print_hex(const uint8_t *bytes, unsigned length)
{
    unsigned i;

    printf(" ");
    for (i = 0; i < length; ++i) {
        printf("%02x", bytes[i]);
    }
}

void ft_uct_own_address(ft_uct_t *uct, uct_mem_h memh, const void *base,
                        ft_address_t *address)
{
    if ((uct->attr.device_addr_len > FT_ADDR_MAX) ||
        (uct->attr.iface_addr_len > FT_ADDR_MAX) ||
        (uct->md_attr.rkey_packed_size > FT_ADDR_MAX)) {
        ft_die("an address is too long");
    }

    memset(address, 0, sizeof(*address));
    address->base       = (uintptr_t)base;
    address->device_len = uct->attr.device_addr_len;
    address->iface_len  = uct->attr.iface_addr_len;
    address->rkey_len   = uct->md_attr.rkey_packed_size;
    ft_check_status(uct_iface_get_device_address(uct->iface,
                                                 (void*)address->device),
                    "get_device_address");
    ft_check_status(uct_iface_get_address(uct->iface, (void*)address->iface),
                    "get_address");
    ft_check_status(uct_md_mkey_pack(uct->md, memh, address->rkey), "mkey_pack");
}

void ft_uct_print_parsed(const char *prefix, const ft_address_t *address)
{
    printf("%s 0x%" PRIx64, prefix, address->base);
    ft_uct_print_hex(address->device, address->device_len);
    ft_uct_print_hex(address->iface, address->iface_len);
    ft_uct_print_hex(address->rkey, address->rkey_len);
    printf("\n");
}

void ft_uct_print_address(ft_uct_t *uct, const char *prefix, uct_mem_h memh,
                          const void *base)
{
    ft_address_t address;

    ft_uct_own_address(uct, memh, base, &address);
    ft_uct_print_parsed(prefix, &address);
}

static int ft_uct_parse_hex(const char *text, uint8_t *bytes,
                            unsigned *length_p)
{
    unsigned length = strlen(text) / 2;
    unsigned i;

    if (length > FT_ADDR_MAX) {
        return -1;
    }

    for (i = 0; i < length; ++i) {
        if (sscanf(text + (2 * i), "%2hhx", &bytes[i]) != 1) {
            return -1;
        }
    }

    *length_p = length;
    return 0;
}

int ft_uct_parse_address(const char *text, ft_address_t *address)
{
    char device[(2 * FT_ADDR_MAX) + 1], iface[(2 * FT_ADDR_MAX) + 1];
    char rkey[(2 * FT_ADDR_MAX) + 1];

    if ((sscanf(text, " 0x%" SCNx64 " %512s %512s %512s", &address->base,
                device, iface, rkey) != 4) ||
        ft_uct_parse_hex(device, address->device, &address->device_len) ||
        ft_uct_parse_hex(iface, address->iface, &address->iface_len) ||
        ft_uct_parse_hex(rkey, address->rkey, &address->rkey_len)) {
        return -1;
    }

    return 0;
}

void ft_uct_use_address(ft_uct_t *uct, const char *text, ft_address_t *address,
                        uct_rkey_bundle_t *rkey)
{
    if ((ft_uct_parse_address(text, address) != 0) ||
        (uct_rkey_unpack(uct->component, address->rkey, rkey) != UCS_OK)) {
        ft_die("not an address: %s", text);
    }
}

void ft_uct_read_address(ft_uct_t *uct, ft_address_t *address, uct_rkey_bundle_t *rkey)
{
    char line[4096];

    if (fgets(line, sizeof(line), stdin) == NULL) {
        ft_die("no address");
    }

    ft_uct_use_address(uct, line, address, rkey);
}

uct_ep_h ft_uct_connect(ft_uct_t *uct, const ft_address_t *address)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR
    };
    uct_ep_h ep;

    params.iface      = uct->iface;
    params.dev_addr   = (const uct_device_addr_t*)address->device;
    params.iface_addr = (const uct_iface_addr_t*)address->iface;
    ft_check_status(uct_ep_create(&params, &ep), "ep_create");
    return ep;
}

void ft_uct_leave(ft_uct_t *uct, uct_ep_h ep, uct_rkey_bundle_t *rkey, uct_mem_h memh)
{
    uct_ep_destroy(ep);
    uct_rkey_release(uct->component, rkey);
    if (memh != NULL) {
        uct_md_mem_dereg(uct->md, memh);
    }

    ft_uct_close(uct);
}
