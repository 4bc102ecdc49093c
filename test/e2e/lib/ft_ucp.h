/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Programs that use UCP: a process that has memory, and one that finds it by a file.
 * Each function ends the program with a message if it fails.
 */
#ifndef FT_UCP_H_
#define FT_UCP_H_

#include "ft_die.h"

#include <ucp/api/ucp.h>

#include <stdint.h>

#define FT_UCP_BLOB_MAX 4096

/* All that others need of the one that has the words */
typedef struct {
    uint64_t address;      /* Of the words */
    size_t   worker_length;
    size_t   rkey_length;
    uint8_t  worker[FT_UCP_BLOB_MAX];
    uint8_t  rkey[FT_UCP_BLOB_MAX];
} ft_ucp_owner_t;

typedef struct {
    ucp_context_h  context;
    ucp_worker_h   worker;
    ucp_ep_h       ep;
    ucp_rkey_h     rkey;
    ft_ucp_owner_t owner;
} ft_ucp_t;

/** Open UCP for remote memory, atomics, and @a features, and a worker. */
void ft_ucp_open(ft_ucp_t *ucp, uint64_t features);

/** The same for several threads that share the worker. */
void ft_ucp_open_shared(ft_ucp_t *ucp, uint64_t features);

void ft_ucp_close(ft_ucp_t *ucp);

/** Write the address of this process, and of the memory @a memh at @a words, to a file.
 *  Without memory if @a memh is NULL. */
void ft_ucp_publish(ft_ucp_t *ucp, ucp_mem_h memh, const void *words,
                    const char *path);

/** Connect to the process that has published this file. */
void ft_ucp_connect(ft_ucp_t *ucp, const char *path);

/** Wait for a request of UCP's. Another thread's progress may complete it. */
void ft_ucp_wait(ft_ucp_t *ucp, void *request, const char *what);

#endif
