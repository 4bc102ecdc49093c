/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Children of fork(). See varuna_fork.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_fork.h"
#include "varuna_admin.h"
#include "varuna_modes.h"
#include <uct/ib/varuna/ucx/varuna_fork.h>
#include <uct/ib/varuna/ucx/varuna_mlx5.h>
#include <uct/ib/varuna/ucx/varuna_verbs.h>

#include <ucs/debug/log.h>

#include <pthread.h>
#include <string.h>

/* Locks, lists of the parent's objects, and descriptors that others would take for ours. The
 * queues of commands to NICs (md/varuna_cmd.c) know their process by themselves: there is one
 * for each NIC. */
static void uct_varuna_fork_child(void)
{
    uct_varuna_ucx_fork_child();
    uct_varuna_admin_forked();
    uct_varuna_admin_sock_forked();
    uct_varuna_modes_forked();
    uct_varuna_verbs_fence_forked();
    uct_varuna_mlx5_grants_forked();
}

void uct_varuna_fork_init(void)
{
    int ret = pthread_atfork(uct_varuna_ucx_fork_prepare, uct_varuna_ucx_fork_parent,
                             uct_varuna_fork_child);

    if (ret != 0) {
        ucs_warn("rc_varuna: forked processes must not use UCX: %s", strerror(ret));
    }
}
