/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The client of a fault test: posts the operations of a plan on an endpoint, and checks
 * completions, values, messages and memory.
 */
#ifndef FT_OPS_H_
#define FT_OPS_H_

#include "ft_line.h"
#include "ft_plan.h"
#include "ft_uct.h"

#define FT_LOCAL_SIZE (8 * 1024 * 1024)

typedef struct ft_client ft_client_t;

/* One operation of the current run */
typedef struct {
    uct_completion_t  comp;
    uct_pending_req_t pending;
    ft_client_t       *client;
    uint8_t           *local;     /* Data to write, or buffer to read into */
    unsigned          index;
    unsigned          completed;  /* Number of completions */
    int               posted;
} ft_done_t;

struct ft_client {
    ft_uct_t          uct;
    ft_address_t      server;
    uct_rkey_bundle_t rkey;
    uct_ep_h          ep;
    ft_shared_t       *shared;
    uint8_t           *local;
    uct_mem_h         memh;
    double            timeout;    /* Seconds that a run may take */
    double            pace;       /* Seconds between two calls of progress */
    ft_line_t         *input;     /* Ends what FT_RUN_... begin */
    uint32_t          run;
    ft_plan_t         plan;
    ft_done_t         done[FT_MAX_OPS + 1]; /* The last one: the final flush */
    unsigned          num_completed;
    int               last_completed;
    char              error[256]; /* The first error */
};

enum {
    FT_RUN_FRESH   = 1 << 0, /* Post on a new endpoint at once */
    FT_RUN_PENDING = 1 << 1, /* Wait for resources in the pending queue */
    FT_RUN_COMPUTE = 1 << 2, /* After the last post, no progress until a line is read */
    FT_RUN_LOOK    = 1 << 3  /* Before that, progress until another line is read */
};

/** Post an operation as @a kind. @return UCS_ERR_NO_RESOURCE to try again. */
ucs_status_t ft_op_post(ft_client_t *client, ft_kind_t kind, const ft_op_t *op,
                        ft_done_t *done);

/** Create the local memory. */
void ft_client_init(ft_client_t *client, ft_shared_t *shared);

/** Release everything. */
void ft_client_cleanup(ft_client_t *client);

/** Replace the endpoint by a new one. */
void ft_client_reopen(ft_client_t *client);

/** Write a word outside of the plan's area, and wait for it. @return 0, or -1. */
int ft_client_warm(ft_client_t *client, uint32_t number);

/** Run a plan. @return 0, or -1 and the reason in client->error. */
int ft_client_run(ft_client_t *client, uint32_t run, const char *plan,
                  unsigned flags);

/** Progress; sleeps briefly if there is nothing to do. */
void ft_client_progress(ft_client_t *client);

#endif
