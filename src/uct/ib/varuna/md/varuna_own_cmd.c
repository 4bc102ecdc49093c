/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A registration of memory of our own on one NIC. See varuna_own_cmd.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_own_cmd.h"
#include "varuna_md_cmd.h"
#include <uct/ib/varuna/ucx/varuna_mlx5_mr.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>

struct uct_varuna_own_cmd {
    uct_varuna_cmd_t           super;
    uct_md_h                   inner;
    void                       *address;
    size_t                     length;
    unsigned                   rights;
    void                       *mr;
    uint64_t                   key;
    unsigned                   refs;     /* The waiting thread's, and the NIC's. Atomic */
    pthread_mutex_t            lock;     /* Protects what follows */
    pthread_cond_t             over;
    ucs_status_t               status;   /* UCS_INPROGRESS: not over */
    int                        is_left;  /* Nobody waits any more */
};

static void uct_varuna_own_cmd_put(uct_varuna_own_cmd_t *cmd)
{
    if (__atomic_sub_fetch(&cmd->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        pthread_cond_destroy(&cmd->over);
        pthread_mutex_destroy(&cmd->lock);
        ucs_free(cmd);
    }
}

static ucs_status_t uct_varuna_own_cmd_run_reg(uct_varuna_cmd_t *super)
{
    uct_varuna_own_cmd_t *cmd = ucs_derived_of(super, uct_varuna_own_cmd_t);

    return uct_varuna_mlx5_mr_reg(cmd->inner, cmd->address, cmd->length, cmd->rights,
                                  &cmd->mr, &cmd->key);
}

static ucs_status_t uct_varuna_own_cmd_run_dereg(uct_varuna_cmd_t *super)
{
    uct_varuna_own_cmd_t *cmd = ucs_derived_of(super, uct_varuna_own_cmd_t);

    uct_varuna_mlx5_mr_dereg(cmd->mr);
    cmd->mr = NULL;
    return UCS_OK;
}

/* Without a sink the thread calls this, with UCS_ERR_CANCELED, whatever the result was */
static void uct_varuna_own_cmd_done(uct_varuna_cmd_t *super, ucs_status_t status)
{
    uct_varuna_own_cmd_t *cmd = ucs_derived_of(super, uct_varuna_own_cmd_t);
    int is_left;

    pthread_mutex_lock(&cmd->lock);
    cmd->status = (super->status == UCS_INPROGRESS) ? status : super->status;
    is_left     = cmd->is_left;
    pthread_cond_signal(&cmd->over);
    pthread_mutex_unlock(&cmd->lock);

    if (is_left && (cmd->mr != NULL) && (super->run == uct_varuna_own_cmd_run_reg)) {
        uct_varuna_mlx5_mr_dereg(cmd->mr);
    }
    uct_varuna_own_cmd_put(cmd);
}

static uct_varuna_own_cmd_t *
uct_varuna_own_cmd_new(uct_varuna_md_t *md, unsigned nic, uct_varuna_cmd_run_t run)
{
    uct_varuna_own_cmd_t *cmd;
    pthread_condattr_t attr;

    cmd = ucs_calloc(1, sizeof(*cmd), "varuna_own_cmd");
    if (cmd == NULL) {
        ucs_error("failed to allocate a command to %s", md->nics[nic].dev_name);
        return NULL;
    }

    pthread_mutex_init(&cmd->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&cmd->over, &attr);
    pthread_condattr_destroy(&attr);
    cmd->super.run    = run;
    cmd->super.done   = uct_varuna_own_cmd_done;
    cmd->super.status = UCS_INPROGRESS;
    cmd->status       = UCS_INPROGRESS;
    cmd->inner        = md->nics[nic].md;
    cmd->refs         = 2;
    return cmd;
}

static void uct_varuna_own_cmd_start(uct_varuna_md_t *md, unsigned nic,
                                     uct_varuna_own_cmd_t *cmd)
{
    uct_varuna_cmds_t *cmds = uct_varuna_md_cmds(md, nic);

    if (cmds == NULL) {
        cmd->super.done(&cmd->super, cmd->super.run(&cmd->super));
    } else {
        uct_varuna_cmds_submit(cmds, &cmd->super);
    }
}

uct_varuna_own_cmd_t *uct_varuna_own_cmd_reg(uct_varuna_md_t *md, unsigned nic,
                                             void *address, size_t length,
                                             unsigned rights, ucs_time_t deadline)
{
    uct_varuna_own_cmd_t *cmd = uct_varuna_own_cmd_new(md, nic,
                                                       uct_varuna_own_cmd_run_reg);

    if (cmd != NULL) {
        cmd->address        = address;
        cmd->length         = length;
        cmd->rights         = rights;
        /* One that nobody waits for any more is not given */
        cmd->super.deadline = (deadline == UCS_TIME_INFINITY) ? 0 : deadline;
        uct_varuna_own_cmd_start(md, nic, cmd);
    }

    return cmd;
}

uct_varuna_own_cmd_t *uct_varuna_own_cmd_dereg(uct_varuna_md_t *md, unsigned nic,
                                               void *mr)
{
    uct_varuna_own_cmd_t *cmd = uct_varuna_own_cmd_new(md, nic,
                                                       uct_varuna_own_cmd_run_dereg);

    if (cmd != NULL) {
        cmd->mr = mr;
        uct_varuna_own_cmd_start(md, nic, cmd);
    }

    return cmd;
}

/* The lock is held */
static void uct_varuna_own_cmd_sleep(uct_varuna_own_cmd_t *cmd, ucs_time_t deadline)
{
    ucs_time_t now = ucs_get_time();
    struct timespec ts;
    double sec;

    if (deadline == UCS_TIME_INFINITY) {
        while (cmd->status == UCS_INPROGRESS) {
            pthread_cond_wait(&cmd->over, &cmd->lock);
        }
        return;
    }

    clock_gettime(CLOCK_MONOTONIC, &ts);
    sec         = (deadline > now) ? ucs_time_to_sec(deadline - now) : 0;
    ts.tv_sec  += (time_t)sec;
    ts.tv_nsec += (long)((sec - (time_t)sec) * UCS_NSEC_PER_SEC);
    if (ts.tv_nsec >= (long)UCS_NSEC_PER_SEC) {
        ts.tv_nsec -= (long)UCS_NSEC_PER_SEC;
        ++ts.tv_sec;
    }

    while ((cmd->status == UCS_INPROGRESS) &&
           (pthread_cond_timedwait(&cmd->over, &cmd->lock, &ts) == 0)) {
    }
}

ucs_status_t uct_varuna_own_cmd_wait(uct_varuna_own_cmd_t *cmd, ucs_time_t deadline,
                                     void **mr_p, uint64_t *key_p)
{
    ucs_status_t status;

    pthread_mutex_lock(&cmd->lock);
    uct_varuna_own_cmd_sleep(cmd, deadline);
    status = cmd->status;
    if (status == UCS_INPROGRESS) {
        cmd->is_left = 1;
        status       = UCS_ERR_TIMED_OUT;
    } else if ((status == UCS_OK) && (mr_p != NULL)) {
        *mr_p  = cmd->mr;
        *key_p = cmd->key;
    }
    pthread_mutex_unlock(&cmd->lock);
    uct_varuna_own_cmd_put(cmd);
    return status;
}
