/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A UCT transport that is opened by its name, and the addresses that two such programs
 * exchange.
 */
#ifndef FT_UCT_H_
#define FT_UCT_H_

#include "ft_die.h"

#include <uct/api/uct.h>
#include <ucs/async/async_fwd.h>

#define FT_ADDR_MAX 256

typedef struct ft_uct ft_uct_t;

struct ft_uct {
    ucs_async_context_t *async;
    uct_worker_h        worker;
    uct_component_h     component;
    uct_md_h            md;
    uct_md_attr_t       md_attr;
    uct_iface_h         iface;
    uct_iface_attr_t    attr;
    volatile int        ep_errors;  /* Endpoints whose failure was reported */
    void                (*ep_failed)(ft_uct_t *uct, uct_ep_h ep); /* May be NULL */
};

/* A server's addresses */
typedef struct {
    uint8_t  device[FT_ADDR_MAX];
    uint8_t  iface[FT_ADDR_MAX];
    uint8_t  rkey[FT_ADDR_MAX];
    unsigned device_len;
    unsigned iface_len;
    unsigned rkey_len;
    uint64_t base;
} ft_address_t;

/** Open the first device of transport @a tl_name. Ends the program with a message
 *  if that is not possible. */
void ft_uct_open(ft_uct_t *uct, const char *tl_name);

/** An option of an interface, as uct_config_modify() takes it. */
typedef struct {
    const char *name;
    const char *value;
} ft_uct_option_t;

/**
 * The same for one device.
 *
 * @param [in] dev_name  Device, NULL for the first one.
 * @param [in] options   Ends with a NULL name; NULL for none.
 *
 * @return 0, or -1 if there is no such device.
 */
int ft_uct_open_device(ft_uct_t *uct, const char *tl_name, const char *dev_name,
                       const ft_uct_option_t *options);

/** Close it. */
void ft_uct_close(ft_uct_t *uct);

/** Registers memory. */
typedef uct_mem_h (*ft_uct_reg_func_t)(uct_md_h md, void *address, size_t length);

/** From now on ft_uct_reg() calls this. */
void ft_uct_set_reg(ft_uct_reg_func_t func);

/** Register memory. */
uct_mem_h ft_uct_reg(ft_uct_t *uct, void *address, size_t length);

/** Get the address of this process, and of the memory @a memh at @a base. */
void ft_uct_own_address(ft_uct_t *uct, uct_mem_h memh, const void *base,
                        ft_address_t *address);

/** Print @a prefix, the address of this process and that of the memory @a memh at
 *  @a base, on one line of stdout. */
void ft_uct_print_address(ft_uct_t *uct, const char *prefix, uct_mem_h memh,
                          const void *base);

/** Print any address in the format of ft_uct_print_address(). */
void ft_uct_print_parsed(const char *prefix, const ft_address_t *address);

/** Read what ft_uct_print_address() wrote. @return 0, or -1. */
int ft_uct_parse_address(const char *text, ft_address_t *address);

/** As above, and unpack the key of the memory. Ends the program with a message if that
 *  is not possible. */
void ft_uct_use_address(ft_uct_t *uct, const char *text, ft_address_t *address,
                        uct_rkey_bundle_t *rkey);

/** The same with the next line of stdin. */
void ft_uct_read_address(ft_uct_t *uct, ft_address_t *address, uct_rkey_bundle_t *rkey);

/** Create an endpoint. */
uct_ep_h ft_uct_connect(ft_uct_t *uct, const ft_address_t *address);

/** Destroy an endpoint, release the key of its peer's memory, and close all.
 *
 * @param [in] memh  Memory to deregister, NULL for none.
 */
void ft_uct_leave(ft_uct_t *uct, uct_ep_h ep, uct_rkey_bundle_t *rkey, uct_mem_h memh);

#endif
