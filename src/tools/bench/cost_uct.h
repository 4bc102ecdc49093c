/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * One transport opened through UCT's public interface, with one endpoint to the other
 * process. Of the transport it knows only the name.
 */
#ifndef COST_UCT_H
#define COST_UCT_H

#include <uct/api/uct.h>


#define COST_AM_ID 5

/* Each byte of a new buffer */
#define COST_FILL  0x5a


typedef struct {
    ucs_async_context_t *async;
    uct_worker_h        worker;
    uct_component_h     component;
    uct_md_h            md;
    uct_iface_h         iface;
    uct_iface_attr_t    attr;
    uct_ep_h            ep;          /* NULL on a server that needs none */
    void                *buffer;     /* Registered; "length" bytes */
    size_t              length;
    uct_mem_h           memh;
    uct_rkey_bundle_t   rkey;        /* Key of the other process's buffer */
    uint64_t            remote;      /* Its address */
    uint64_t            messages;    /* Received so far */
    uct_error_handler_t failed;      /* Of endpoints; NULL: UCX's own handling */
    void                *failed_arg;
} cost_uct_t;


/**
 * Open the transport @a tl on @a dev with a buffer of @a length bytes, and
 * connect it to the other process.
 *
 * @param [in] fd         Connection to the other process (cost_oob.h).
 * @param [in] is_client  Whether this side always needs an endpoint.
 *
 * @return 0, or -1 with the reason on stderr.
 */
int cost_uct_open(cost_uct_t *uct, const char *tl, const char *dev,
                  size_t length, int fd, int is_client);

/**
 * Open the transport without an endpoint. The caller has set all of @a uct to 0, except
 * for the error handler.
 */
int cost_uct_open_device(cost_uct_t *uct, const char *tl, const char *dev,
                         size_t length);

/**
 * Connect an endpoint, which replaces uct->ep, to the other process, which does the same.
 * The last one is closed with the transport; others are the caller's.
 */
int cost_uct_connect(cost_uct_t *uct, int fd, int is_client);

void cost_uct_close(cost_uct_t *uct);

#endif
