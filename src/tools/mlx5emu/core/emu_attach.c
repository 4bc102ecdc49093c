/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_attach.h.
 */

#include "emu_attach.h"
#include "emu_chan.h"
#include "emu_cq.h"
#include "emu_ctx.h"
#include "emu_fabric.h"
#include "emu_heap.h"
#include "emu_late.h"
#include "emu_map.h"
#include "emu_mr.h"
#include "emu_peer.h"
#include "emu_port.h"
#include "emu_proc.h"
#include "emu_qp.h"
#include "emu_srq.h"
#include "emu_svc.h"
#include "emu_table.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EMU_PROC_STARTING 2 /* a slot whose service thread does not run yet */

static void emu_proc_after_fork(void)
{
    if (emu_self != NULL) {
        emu_self = NULL;
        emu_svc_forget();
        emu_peer_forget();
    }
}

/* Everything that a process owned. Its life lock is held by the caller. */
static void emu_proc_release(emu_proc_t *proc)
{
    emu_fabric_t *f = emu_fabric;
    unsigned i;

    memset(proc->mr_held, 0, sizeof(proc->mr_held));
    for (i = 0; i < EMU_MAX_QPS; i++) {
        if (f->qps[i].used && (f->qps[i].proc == proc->index)) {
            emu_qp_destroy(&f->qps[i]);
        }
    }
    for (i = 0; i < EMU_MAX_SRQS; i++) {
        if (f->srqs[i].used && (f->srqs[i].proc == proc->index)) {
            f->srqs[i].refs = 0;
            emu_srq_destroy(&f->srqs[i]);
        }
    }
    for (i = 0; i < EMU_MAX_CQS; i++) {
        if (f->cqs[i].used && (f->cqs[i].proc == proc->index)) {
            f->cqs[i].refs = 0;
            emu_cq_destroy(&f->cqs[i]);
        }
    }
    for (i = 0; i < EMU_MAX_MRS; i++) {
        if (f->mrs[i].used && (f->mrs[i].proc == proc->index)) {
            emu_mr_dereg(&f->mrs[i]);
        }
    }
    for (i = 0; i < EMU_MAX_PDS; i++) {
        if (f->pds[i].used && (f->pds[i].proc == proc->index)) {
            f->pds[i].used = 0;
        }
    }
    for (i = 0; i < EMU_MAX_CTXS; i++) {
        if (f->ctxs[i].used && (f->ctxs[i].proc == proc->index)) {
            f->ctxs[i].used = 0;
        }
    }
    for (i = 0; i < EMU_MAX_CHANS; i++) {
        if (f->chans[i].used && (f->chans[i].proc == proc->index)) {
            emu_chan_close(&f->chans[i]);
        }
    }
    emu_heap_reap(proc->index);
    __atomic_store_n(&proc->used, 0, __ATOMIC_RELEASE);
}

int emu_proc_reap(void)
{
    emu_proc_t *proc;
    int count = 0;
    unsigned i;

    for (i = 0; i < EMU_MAX_PROCS; i++) {
        proc = &emu_fabric->procs[i];
        if ((proc->used != 1) || (proc == emu_self) ||
            !emu_trylock(&proc->life)) {
            continue;
        }

        if (proc->used == 1) {
            emu_proc_release(proc);
            count++;
        }
        emu_unlock(&proc->life);
    }

    return count;
}

static void emu_proc_fill(emu_proc_t *proc, unsigned host)
{
    FILE *file = fopen("/proc/self/comm", "r");

    proc->gen++;
    proc->index  = proc - emu_fabric->procs;
    proc->pid    = getpid();
    proc->host   = host;
    proc->nudged = 1;      /* links may flap already */
    memset(proc->comm, 0, sizeof(proc->comm));
    if (file != NULL) {
        if (fgets(proc->comm, sizeof(proc->comm), file) != NULL) {
            proc->comm[strcspn(proc->comm, "\n")] = '\0';
        }
        fclose(file);
    }
    emu_lock_init(&proc->life);
}

/* table_lock is held: any other process with a starting slot has died */
static void emu_proc_free_stillborn(void)
{
    unsigned i;

    for (i = 0; i < EMU_MAX_PROCS; i++) {
        if (emu_fabric->procs[i].used == EMU_PROC_STARTING) {
            emu_fabric->procs[i].used = 0;
        }
    }
}

/* What is common to all processes. Service thread */
static void emu_proc_serve(void)
{
    emu_link_serve();
    emu_late_serve();
}

static int emu_proc_take_slot(unsigned host, char *err, size_t err_max)
{
    emu_proc_t *proc;
    int index, ret;

    emu_lock(&emu_fabric->table_lock);
    emu_proc_free_stillborn();
    index = emu_table_find(EMU_TABLE_PROC, emu_fabric->procs,
                           sizeof(emu_proc_t), 0, EMU_MAX_PROCS);
    if (index < 0) {
        snprintf(err, err_max, "more than %d processes", EMU_MAX_PROCS);
        ret = -ENOSPC;
        goto out;
    }

    proc       = &emu_fabric->procs[index];
    proc->used = EMU_PROC_STARTING;
    emu_proc_fill(proc, host);
    emu_self = proc;
    emu_link_forget();
    ret      = emu_svc_start(emu_proc_serve);
    if (ret == 0) {
        proc->used = 1;
    } else {
        snprintf(err, err_max, "cannot start a thread: %s", strerror(-ret));
        emu_self   = NULL;
        proc->used = 0;
    }
out:
    emu_unlock(&emu_fabric->table_lock);
    return ret;
}

static void emu_proc_once(void)
{
    pthread_atfork(NULL, NULL, emu_proc_after_fork);
}

int emu_proc_attach(const char *fabric, unsigned host, char *err,
                    size_t err_max)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int ret;

    if (emu_self != NULL) {
        return 0;
    }

    ret = emu_fabric_open(fabric, err, err_max);
    if (ret != 0) {
        return ret;
    }

    if (host >= emu_fabric->cfg.hosts) {
        snprintf(err, err_max, "fabric '%s' has no host %u: its hosts are 0 to "
                 "%u", fabric, host, emu_fabric->cfg.hosts - 1);
        return -EINVAL;
    }

    /* Peers write our memory with process_vm_writev */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    pthread_once(&once, emu_proc_once);
    emu_proc_reap();
    return emu_proc_take_slot(host, err, err_max);
}

int emu_proc_is_alone(void)
{
    DIR *dir      = opendir("/proc/self/task");
    unsigned left = (emu_self != NULL) ? 2 : 1;
    struct dirent *entry;

    if (dir == NULL) {
        return 0;
    }

    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        if (left-- == 0) {
            break;
        }
    }
    closedir(dir);
    return entry == NULL;
}

void emu_proc_detach(void)
{
    emu_proc_t *proc = emu_self;

    if (proc == NULL) {
        return;
    }

    emu_svc_stop();
    if (emu_trylock(&proc->life)) {
        emu_proc_release(proc);
        emu_unlock(&proc->life);
    }
    emu_self = NULL;
}
