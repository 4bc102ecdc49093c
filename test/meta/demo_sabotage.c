/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Preloaded into the demo's client by test_demo.sh: executes one operation wrongly, in
 * the way of SABOTAGE. The demo must detect each of them.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>


#define SABOTAGE_AT     200  /* The call to falsify */
#define SABOTAGE_PUT_AT 2700 /* A put that no later one covers, so that memory
                                shows it; the trace would show any */


typedef ucs_status_ptr_t (*put_func_t)(ucp_ep_h, const void*, size_t, uint64_t,
                                       ucp_rkey_h, const ucp_request_param_t*);
typedef ucs_status_ptr_t (*get_func_t)(ucp_ep_h, void*, size_t, uint64_t,
                                       ucp_rkey_h, const ucp_request_param_t*);
typedef ucs_status_ptr_t (*am_func_t)(ucp_ep_h, unsigned, const void*, size_t,
                                      const void*, size_t,
                                      const ucp_request_param_t*);


static const ucp_request_param_t no_param = {0};


static int mode_is(const char *mode)
{
    const char *value = getenv("SABOTAGE");

    return (value != NULL) && !strcmp(value, mode);
}

static void *next(const char *name)
{
    void *func = dlsym(RTLD_NEXT, name);

    if (func == NULL) {
        fprintf(stderr, "sabotage: there is no %s\n", name);
        abort();
    }

    return func;
}

/* For the completion that the program did not request */
static char no_request;

void ucp_request_free(void *request)
{
    void (*func)(void*) = next("ucp_request_free");

    if (request != &no_request) {
        func(request);
    }
}

/* "put-lost", "put-repeated": an old put to a slot is executed again after a later put
 * to it; "completion-twice" */
ucs_status_ptr_t ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                             uint64_t remote, ucp_rkey_h rkey,
                             const ucp_request_param_t *param)
{
    static unsigned calls;
    static uint64_t old_data, old_remote;
    static ucp_ep_h old_ep;
    put_func_t func = next("ucp_put_nbx");
    ucs_status_ptr_t request;

    ++calls;
    if (mode_is("put-lost") && (calls == SABOTAGE_PUT_AT)) {
        return NULL;
    }

    if (mode_is("completion-twice") && (calls == SABOTAGE_AT)) {
        param->cb.send(&no_request, UCS_OK, param->user_data);
    }

    request = func(ep, buffer, count, remote, rkey, param);
    if (!mode_is("put-repeated") || (count != sizeof(old_data))) {
        return request;
    }

    if (old_remote == 0) {
        memcpy(&old_data, buffer, sizeof(old_data));
        old_remote = remote;
        old_ep     = ep;
    } else if ((remote == old_remote) && (ep == old_ep)) {
        func(ep, &old_data, sizeof(old_data), remote, rkey, &no_param);
    }

    return request;
}

/* "get-lost": success, without data */
ucs_status_ptr_t ucp_get_nbx(ucp_ep_h ep, void *buffer, size_t count,
                             uint64_t remote, ucp_rkey_h rkey,
                             const ucp_request_param_t *param)
{
    static unsigned calls;
    get_func_t func = next("ucp_get_nbx");

    if (mode_is("get-lost") && (++calls == SABOTAGE_AT)) {
        return NULL;
    }

    return func(ep, buffer, count, remote, rkey, param);
}

/* "message-lost", "message-twice", "message-torn" */
ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header,
                                 size_t header_length, const void *buffer,
                                 size_t count,
                                 const ucp_request_param_t *param)
{
    static unsigned calls;
    am_func_t func = next("ucp_am_send_nbx");

    ++calls;
    if (mode_is("message-lost") && (calls == SABOTAGE_AT)) {
        return NULL;
    }

    if (mode_is("message-twice") && (calls == SABOTAGE_AT)) {
        /* With its own header, because it may be in use after the return */
        func(ep, id, memcpy(malloc(header_length), header, header_length),
             header_length, buffer, count, &no_param);
    }

    if (mode_is("message-torn") && (calls == SABOTAGE_AT)) {
        ((char*)buffer)[count - 1] ^= 1;
    }

    return func(ep, id, header, header_length, buffer, count, param);
}
