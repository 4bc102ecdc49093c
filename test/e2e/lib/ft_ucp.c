/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Programs that use UCP. See ft_ucp.h.
 */
#include "ft_ucp.h"
#include "ft_clock.h"

#include <stdio.h>
#include <string.h>

#define FT_UCP_STUCK 300 /* Seconds for one operation */

static void ft_ucp_open_mode(ft_ucp_t *ucp, uint64_t features, ucs_thread_mode_t mode)
{
    ucp_params_t params               = {
        .field_mask        = UCP_PARAM_FIELD_FEATURES |
                             UCP_PARAM_FIELD_MT_WORKERS_SHARED,
        .features          = UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64 |
                             features,
        .mt_workers_shared = (mode == UCS_THREAD_MODE_MULTI)
    };
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = mode
    };
    ucp_worker_attr_t attr            = {.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE};

    ft_check_status(ucp_init(&params, NULL, &ucp->context), "ucp_init");
    ft_check_status(ucp_worker_create(ucp->context, &worker_params, &ucp->worker),
                    "ucp_worker_create");
    ft_check_status(ucp_worker_query(ucp->worker, &attr), "ucp_worker_query");
    if (attr.thread_mode != mode) {
        ft_die("this UCX has no workers for several threads");
    }
}

void ft_ucp_open(ft_ucp_t *ucp, uint64_t features)
{
    ft_ucp_open_mode(ucp, features, UCS_THREAD_MODE_SINGLE);
}

void ft_ucp_open_shared(ft_ucp_t *ucp, uint64_t features)
{
    ft_ucp_open_mode(ucp, features, UCS_THREAD_MODE_MULTI);
}

void ft_ucp_close(ft_ucp_t *ucp)
{
    ucp_worker_destroy(ucp->worker);
    ucp_cleanup(ucp->context);
}

static void ft_ucp_copy(uint8_t *to, size_t *length_p, const void *from,
                        size_t length)
{
    if (length > FT_UCP_BLOB_MAX) {
        ft_die("an address is too long");
    }

    memcpy(to, from, length);
    *length_p = length;
}

void ft_ucp_publish(ft_ucp_t *ucp, ucp_mem_h memh, const void *words,
                    const char *path)
{
    ucp_address_t *address;
    char part[512];
    size_t length;
    void *rkey;
    FILE *file;

    ft_check_status(ucp_worker_get_address(ucp->worker, &address, &length),
                    "ucp_worker_get_address");
    ft_ucp_copy(ucp->owner.worker, &ucp->owner.worker_length, address, length);
    ucp_worker_release_address(ucp->worker, address);
    if (memh != NULL) {
        ft_check_status(ucp_rkey_pack(ucp->context, memh, &rkey, &length),
                        "ucp_rkey_pack");
        ft_ucp_copy(ucp->owner.rkey, &ucp->owner.rkey_length, rkey, length);
        ucp_rkey_buffer_release(rkey);
    }

    ucp->owner.address = (uintptr_t)words;
    snprintf(part, sizeof(part), "%s.part", path);
    file = fopen(part, "w");
    if ((file == NULL) || (fwrite(&ucp->owner, sizeof(ucp->owner), 1, file) != 1) ||
        (fclose(file) != 0) || (rename(part, path) != 0)) {
        ft_die("cannot write %s", path);
    }
}

void ft_ucp_connect(ft_ucp_t *ucp, const char *path)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = (ucp_address_t*)ucp->owner.worker
    };
    FILE *file             = fopen(path, "r");

    if ((file == NULL) ||
        (fread(&ucp->owner, sizeof(ucp->owner), 1, file) != 1)) {
        ft_die("cannot read %s", path);
    }

    fclose(file);
    ft_check_status(ucp_ep_create(ucp->worker, &params, &ucp->ep), "ucp_ep_create");
    if (ucp->owner.rkey_length > 0) {
        ft_check_status(ucp_ep_rkey_unpack(ucp->ep, ucp->owner.rkey, &ucp->rkey),
                        "ucp_ep_rkey_unpack");
    }
}

void ft_ucp_wait(ft_ucp_t *ucp, void *request, const char *what)
{
    double end = ft_now() + FT_UCP_STUCK;
    ucs_status_t status;

    if (!UCS_PTR_IS_PTR(request)) {
        ft_check_status(UCS_PTR_STATUS(request), what);
        return;
    }

    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(ucp->worker);
        if (ft_now() > end) {
            ft_die("%s does not end", what);
        }
    }

    ucp_request_free(request);
    ft_check_status(status, what);
}
