/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UCP as the store uses it, see store_ucp.h.
 */
#include "store_ucp.h"
#include "store_files.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define STORE_IDLE_ROUNDS 100    /* Calls of progress before it sleeps */
#define STORE_IDLE_NSEC   100000


void store_fatal(const char *format, ...)
{
    va_list ap;

    fprintf(stderr, "varuna_store: ");
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    exit(1);
}

static void store_check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        store_fatal("%s: %s", what, ucs_status_string(status));
    }
}

void store_ucp_init(store_ucp_t *ucp)
{
    ucp_params_t params               = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_RMA | UCP_FEATURE_AMO64
    };
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE
    };

    ucp->idle = 0;
    store_check(ucp_init(&params, NULL, &ucp->context), "could not open UCP");
    store_check(ucp_worker_create(ucp->context, &worker_params, &ucp->worker),
                "could not create a worker");
}

void store_ucp_cleanup(store_ucp_t *ucp)
{
    ucp_worker_destroy(ucp->worker);
    ucp_cleanup(ucp->context);
}

void store_ucp_progress(store_ucp_t *ucp)
{
    static const struct timespec nap = {.tv_nsec = STORE_IDLE_NSEC};

    if (ucp_worker_progress(ucp->worker) > 0) {
        ucp->idle = 0;
    } else if (++ucp->idle > STORE_IDLE_ROUNDS) {
        nanosleep(&nap, NULL);
    }
}

ucp_mem_h store_ucp_publish(store_ucp_t *ucp, store_memory_t *memory, const char *dir,
                            unsigned index)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .address    = memory,
        .length     = sizeof(*memory)
    };
    uint64_t base               = (uintptr_t)memory;
    ucp_address_t *address;
    size_t address_length, rkey_length;
    ucp_mem_h memh;
    void *rkey;

    store_check(ucp_mem_map(ucp->context, &params, &memh), "could not register memory");
    store_check(ucp_rkey_pack(ucp->context, memh, &rkey, &rkey_length),
                "could not pack its key");
    store_check(ucp_worker_get_address(ucp->worker, &address, &address_length),
                "could not get the address");
    if ((store_file_write(dir, "base", index, &base, sizeof(base)) != 0) ||
        (store_file_write(dir, "rkey", index, rkey, rkey_length) != 0) ||
        (store_file_write(dir, "address", index, address, address_length) != 0)) {
        exit(1);
    }

    ucp_rkey_buffer_release(rkey);
    ucp_worker_release_address(ucp->worker, address);
    return memh;
}

void store_ucp_connect(store_ucp_t *ucp, const char *dir, unsigned index,
                       store_replica_t *replica)
{
    static const struct timespec nap = {.tv_nsec = 5000000};
    ucp_ep_params_t params           = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    void *address, *rkey, *base;
    size_t length;

    /* The address is the last that a replica writes */
    while ((address = store_file_read(dir, "address", index, &length)) == NULL) {
        nanosleep(&nap, NULL);
    }

    base = store_file_read(dir, "base", index, &length);
    rkey = store_file_read(dir, "rkey", index, &length);
    if ((base == NULL) || (rkey == NULL)) {
        store_fatal("replica %u is incomplete", index);
    }

    memcpy(&replica->address, base, sizeof(replica->address));
    params.address = address;
    store_check(ucp_ep_create(ucp->worker, &params, &replica->ep), "could not connect");
    store_check(ucp_ep_rkey_unpack(replica->ep, rkey, &replica->rkey),
                "could not unpack a key");
    free(address);
    free(base);
    free(rkey);
}

void store_ucp_disconnect(store_ucp_t *ucp, store_replica_t *replica)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request;

    ucp_rkey_destroy(replica->rkey);
    request = ucp_ep_close_nbx(replica->ep, &param);
    if (UCS_PTR_IS_PTR(request)) {
        while (ucp_request_check_status(request) == UCS_INPROGRESS) {
            store_ucp_progress(ucp);
        }
        ucp_request_free(request);
    }
}

static void store_completed(void *request, ucs_status_t status, void *user_data)
{
    store_wait_t *wait = user_data;

    store_check(status, "an operation failed");
    --wait->pending;
    ucp_request_free(request);
}

static ucp_request_param_t store_param(store_wait_t *wait)
{
    return (ucp_request_param_t){
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = store_completed,
        .user_data    = wait
    };
}

static void store_begun(ucs_status_ptr_t request, store_wait_t *wait)
{
    if (UCS_PTR_IS_PTR(request)) {
        ++wait->pending;
    } else {
        store_check(UCS_PTR_STATUS(request), "could not begin an operation");
    }
}

void store_put(store_replica_t *replica, size_t offset, const void *data, size_t length,
               store_wait_t *wait)
{
    ucp_request_param_t param = store_param(wait);

    store_begun(ucp_put_nbx(replica->ep, data, length, replica->address + offset,
                            replica->rkey, &param), wait);
}

void store_get(store_replica_t *replica, size_t offset, void *data, size_t length,
               store_wait_t *wait)
{
    ucp_request_param_t param = store_param(wait);

    store_begun(ucp_get_nbx(replica->ep, data, length, replica->address + offset,
                            replica->rkey, &param), wait);
}

void store_flush(store_replica_t *replica, store_wait_t *wait)
{
    ucp_request_param_t param = store_param(wait);

    store_begun(ucp_ep_flush_nbx(replica->ep, &param), wait);
}

static void store_atomic(store_replica_t *replica, ucp_atomic_op_t op, size_t offset,
                         const uint64_t *value, uint64_t *result, store_wait_t *wait)
{
    ucp_request_param_t param = store_param(wait);

    param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype      = ucp_dt_make_contig(sizeof(*value));
    if (result != NULL) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.reply_buffer  = result;
    }

    store_begun(ucp_atomic_op_nbx(replica->ep, op, value, 1, replica->address + offset,
                                  replica->rkey, &param), wait);
}

void store_cswap(store_replica_t *replica, size_t offset, const uint64_t *compare,
                 uint64_t *swap, store_wait_t *wait)
{
    store_atomic(replica, UCP_ATOMIC_OP_CSWAP, offset, compare, swap, wait);
}

void store_add(store_replica_t *replica, size_t offset, const uint64_t *value,
               uint64_t *result, store_wait_t *wait)
{
    store_atomic(replica, UCP_ATOMIC_OP_ADD, offset, value, result, wait);
}
