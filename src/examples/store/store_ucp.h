/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UCP as the store uses it. Nothing here handles a failure: an operation that fails ends
 * the process.
 */
#ifndef STORE_UCP_H
#define STORE_UCP_H

#include "store_def.h"

#include <ucp/api/ucp.h>


typedef struct {
    ucp_context_h context;
    ucp_worker_h  worker;
    unsigned      idle;      /* Calls of progress without an event */
} store_ucp_t;


/* A replica, as one terminal of a client has it */
typedef struct {
    ucp_ep_h   ep;
    ucp_rkey_h rkey;
    uint64_t   address;   /* Of its store_memory_t */
} store_replica_t;


/* Operations that a terminal waits for */
typedef struct {
    unsigned pending;
} store_wait_t;


/** Print the reason of an error, and end the process. */
void store_fatal(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

void store_ucp_init(store_ucp_t *ucp);
void store_ucp_cleanup(store_ucp_t *ucp);

/** Progress; sleeps a little if nothing happens for a while. */
void store_ucp_progress(store_ucp_t *ucp);

/** Register the memory of a replica, and write how to reach it to the directory.
 *  @return Handle for ucp_mem_unmap(). */
ucp_mem_h store_ucp_publish(store_ucp_t *ucp, store_memory_t *memory, const char *dir,
                            unsigned index);

/** Connect to a replica as soon as it is there. */
void store_ucp_connect(store_ucp_t *ucp, const char *dir, unsigned index,
                       store_replica_t *replica);

void store_ucp_disconnect(store_ucp_t *ucp, store_replica_t *replica);

/* Each of these begins an operation at "offset" of the replica's memory. Buffers are the
 * caller's until "wait" has nothing pending. */

void store_put(store_replica_t *replica, size_t offset, const void *data, size_t length,
               store_wait_t *wait);
void store_get(store_replica_t *replica, size_t offset, void *data, size_t length,
               store_wait_t *wait);

/** Wait until all that was put and added has been executed. */
void store_flush(store_replica_t *replica, store_wait_t *wait);

/** Compare and swap. @a swap has the new value, and then the result. */
void store_cswap(store_replica_t *replica, size_t offset, const uint64_t *compare,
                 uint64_t *swap, store_wait_t *wait);

/** Add. With @a result also fetch the value from before. */
void store_add(store_replica_t *replica, size_t offset, const uint64_t *value,
               uint64_t *result, store_wait_t *wait);

#endif
