/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Context, workers and memory, see demo_ucp.h.
 */
#include "demo_ucp.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>


#define DEMO_IDLE_ROUNDS 2000 /* Polls before it yields the CPU */
#define DEMO_IDLE_NSEC   50000
#define DEMO_SLEEP_MSEC  5    /* Longest sleep on event descriptors */


static uint64_t demo_clock(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (ts.tv_sec * DEMO_NSEC) + ts.tv_nsec;
}

uint64_t demo_now(void)
{
    return demo_clock(CLOCK_MONOTONIC);
}

uint64_t demo_wall_now(void)
{
    return demo_clock(CLOCK_REALTIME);
}

void demo_error(const char *format, ...)
{
    va_list ap;

    fflush(stdout);
    fprintf(stderr, DEMO_PROGRAM ": ");
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "\n");
}

static int demo_ucp_add_worker(demo_ucp_t *ucp)
{
    ucp_worker_params_t params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE
    };
    unsigned index             = ucp->num_workers;
    ucs_status_t status;

    status = ucp_worker_create(ucp->context, &params, &ucp->workers[index]);
    if (status != UCS_OK) {
        demo_error("could not create a worker: %s", ucs_status_string(status));
        return -1;
    }

    ++ucp->num_workers;
    if (!ucp->wakeup) {
        return 0;
    }

    status = ucp_worker_get_efd(ucp->workers[index], &ucp->event_fds[index]);
    if (status != UCS_OK) {
        demo_error("the worker has no event descriptor: %s",
                   ucs_status_string(status));
        return -1;
    }

    return 0;
}

int demo_ucp_init(demo_ucp_t *ucp, const demo_opts_t *opts)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME,
        .features   = UCP_FEATURE_RMA | UCP_FEATURE_AM,
        .name       = DEMO_PROGRAM
    };
    ucp_config_t *config;
    ucs_status_t status;
    unsigned i;

    memset(ucp, 0, sizeof(*ucp));
    ucp->wakeup = opts->wakeup;
    if (ucp->wakeup) {
        params.features |= UCP_FEATURE_WAKEUP;
    }

    status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        demo_error("could not read the UCX configuration: %s",
                   ucs_status_string(status));
        return -1;
    }

    status = ucp_init(&params, config, &ucp->context);
    ucp_config_release(config);
    if (status != UCS_OK) {
        demo_error("could not open UCP: %s", ucs_status_string(status));
        ucp->context = NULL;
        return -1;
    }

    for (i = 0; i < opts->num_workers; ++i) {
        if (demo_ucp_add_worker(ucp) != 0) {
            demo_ucp_cleanup(ucp);
            return -1;
        }
    }

    return 0;
}

void demo_ucp_cleanup(demo_ucp_t *ucp)
{
    while (ucp->num_workers > 0) {
        ucp_worker_destroy(ucp->workers[--ucp->num_workers]);
    }

    if (ucp->context != NULL) {
        ucp_cleanup(ucp->context);
        ucp->context = NULL;
    }
}

/* Wait for an event on any worker, unless one came in the meantime */
static void demo_ucp_sleep(demo_ucp_t *ucp)
{
    struct pollfd fds[DEMO_MAX_WORKERS];
    unsigned i;

    for (i = 0; i < ucp->num_workers; ++i) {
        if (ucp_worker_arm(ucp->workers[i]) != UCS_OK) {
            return;
        }

        fds[i].fd     = ucp->event_fds[i];
        fds[i].events = POLLIN;
    }

    poll(fds, ucp->num_workers, DEMO_SLEEP_MSEC);
}

unsigned demo_ucp_progress(demo_ucp_t *ucp)
{
    static const struct timespec nap = {.tv_nsec = DEMO_IDLE_NSEC};
    unsigned count                   = 0;
    unsigned i;

    for (i = 0; i < ucp->num_workers; ++i) {
        count += ucp_worker_progress(ucp->workers[i]);
    }

    if (count > 0) {
        ucp->idle = 0;
    } else if (++ucp->idle > DEMO_IDLE_ROUNDS) {
        if (ucp->wakeup) {
            demo_ucp_sleep(ucp);
        } else {
            nanosleep(&nap, NULL);
        }
    }

    return count;
}

int demo_ucp_mem_alloc(demo_ucp_t *ucp, size_t length, demo_mem_t *mem_p)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length     = length,
        .flags      = UCP_MEM_MAP_ALLOCATE
    };
    ucp_mem_attr_t attr         = {
        .field_mask = UCP_MEM_ATTR_FIELD_ADDRESS
    };
    ucs_status_t status;
    ucp_mem_h memh;

    status = ucp_mem_map(ucp->context, &params, &memh);
    if (status != UCS_OK) {
        demo_error("could not register %zu bytes: %s", length,
                   ucs_status_string(status));
        return -1;
    }

    status = ucp_mem_query(memh, &attr);
    if (status != UCS_OK) {
        demo_error("could not query registered memory: %s",
                   ucs_status_string(status));
        ucp_mem_unmap(ucp->context, memh);
        return -1;
    }

    memset(attr.address, 0, length);
    mem_p->address = attr.address;
    mem_p->length  = length;
    mem_p->memh    = memh;
    return 0;
}

void demo_ucp_mem_free(demo_ucp_t *ucp, demo_mem_t *mem)
{
    if (mem->address != NULL) {
        ucp_mem_unmap(ucp->context, mem->memh);
        mem->address = NULL;
    }
}
