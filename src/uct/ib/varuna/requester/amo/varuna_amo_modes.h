/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The tables of the modes of atomics, one file each, and what modes without a driver of
 * their own have in common. varuna_atomics.c chooses.
 */
#ifndef UCT_VARUNA_AMO_MODES_H_
#define UCT_VARUNA_AMO_MODES_H_

#include <uct/ib/varuna/requester/varuna_ep.h>

extern const uct_varuna_amo_ops_t uct_varuna_amo_native_ops;
extern const uct_varuna_amo_ops_t uct_varuna_amo_reread_ops;
extern const uct_varuna_amo_ops_t uct_varuna_amo_proxy_ops;
extern const uct_varuna_amo_ops_t uct_varuna_amo_extended_ops;

/** Post the atomic as a request on the lane. */
ucs_status_t uct_varuna_amo_native_start(uct_varuna_ep_t *ep,
                                         const uct_varuna_amo_args_t *args);

/** The result of an atomic is lost: the endpoint fails. */
ucs_status_t uct_varuna_amo_native_executed(uct_varuna_ep_t *ep,
                                            uct_varuna_req_t *req);

/* A native atomic is a request like any other: there is nothing else to do. */
ucs_status_t uct_varuna_amo_native_open(uct_varuna_ep_t *ep,
                                        const uct_varuna_ctl_open_rep_t *rep);
void uct_varuna_amo_native_close(uct_varuna_ep_t *ep);
void uct_varuna_amo_native_learn_home(uct_varuna_ep_t *ep, uint8_t nic,
                                      uint32_t epoch);
int uct_varuna_amo_native_progress(uct_varuna_ep_t *ep);
void uct_varuna_amo_native_collect(const uct_varuna_req_t *req);
void uct_varuna_amo_native_fail_all(uct_varuna_ep_t *ep, ucs_status_t status);
void uct_varuna_amo_native_query(uct_iface_attr_t *attr);

/* The table of such a mode. @a _executed: what becomes of an atomic that was executed and
 * whose value is lost. */
#define UCT_VARUNA_AMO_NATIVE_OPS(_executed) \
    { \
        .start      = uct_varuna_amo_native_start, \
        .open       = uct_varuna_amo_native_open, \
        .close      = uct_varuna_amo_native_close, \
        .learn_home = uct_varuna_amo_native_learn_home, \
        .progress   = uct_varuna_amo_native_progress, \
        .collect    = uct_varuna_amo_native_collect, \
        .executed   = _executed, \
        .fail_all   = uct_varuna_amo_native_fail_all, \
        .query      = uct_varuna_amo_native_query \
    }

/** All operations, in each width in which the lanes have a compare and swap. */
void uct_varuna_amo_query_all_ops(uct_iface_attr_t *attr);

#endif
