/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * To be preloaded: progress of one UCP worker progresses the others of the process, too, in
 * each 64th call. Open MPI has one worker for messages and one for windows, and MPI_Win_start()
 * waits with the second one alone. A message of the first one that a failed link has lost
 * is repeated when that worker is progressed: never, if the other rank waits for the
 * message before it posts its window.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ucp/api/ucp.h>

#define PROGRESS_MAX_WORKERS 16
#define PROGRESS_PERIOD      64

static ucp_worker_h progress_workers[PROGRESS_MAX_WORKERS]; /* NULL: a free place */

static void progress_replace(ucp_worker_h from, ucp_worker_h to)
{
    int i;

    for (i = 0; i < PROGRESS_MAX_WORKERS; ++i) {
        if (progress_workers[i] == from) {
            progress_workers[i] = to;
            return;
        }
    }
}

ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
                               ucp_worker_h *worker_p)
{
    ucs_status_t (*next)(ucp_context_h, const ucp_worker_params_t*, ucp_worker_h*) =
            dlsym(RTLD_NEXT, __func__);
    ucs_status_t status = next(context, params, worker_p);

    if (status == UCS_OK) {
        progress_replace(NULL, *worker_p);
    }
    return status;
}

void ucp_worker_destroy(ucp_worker_h worker)
{
    void (*next)(ucp_worker_h) = dlsym(RTLD_NEXT, __func__);

    progress_replace(worker, NULL);
    next(worker);
}

unsigned ucp_worker_progress(ucp_worker_h worker)
{
    static unsigned (*next)(ucp_worker_h);
    static __thread int inside;
    static unsigned calls;
    unsigned count;
    int i;

    if (next == NULL) {
        next = dlsym(RTLD_NEXT, __func__);
    }

    count = next(worker);
    if (!inside && ((++calls % PROGRESS_PERIOD) == 0)) {
        inside = 1;
        for (i = 0; i < PROGRESS_MAX_WORKERS; ++i) {
            if ((progress_workers[i] != NULL) && (progress_workers[i] != worker)) {
                count += next(progress_workers[i]);
            }
        }
        inside = 0;
    }
    return count;
}
