/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A binary heap of due times behind a private mutex. See emu_svc.h.
 */

#include "emu_svc.h"
#include "emu_fabric.h"
#include "emu_proc.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef struct emu_svc_item {
    uint64_t       due_ns;
    uint64_t       order;      /* same due time: first come, first served */
    emu_svc_func_t func;
    void           *arg;
    uint64_t       cookie;
} emu_svc_item_t;

static struct {
    pthread_mutex_t mutex;     /* guards all of this */
    pthread_cond_t  cond;      /* running has changed */
    pthread_t       thread;
    int             running;   /* 0 no, 1 starting, 2 holds the life lock */
    int             stop;
    void            (*nudge)(void);
    uint64_t        order;
    emu_svc_item_t  *items;
    size_t          count;
    size_t          max;
} emu_svc = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static int emu_svc_before(const emu_svc_item_t *a, const emu_svc_item_t *b)
{
    return (a->due_ns != b->due_ns) ? (a->due_ns < b->due_ns) :
                                      (a->order < b->order);
}

static void emu_svc_swap(size_t i, size_t j)
{
    emu_svc_item_t tmp = emu_svc.items[i];

    emu_svc.items[i] = emu_svc.items[j];
    emu_svc.items[j] = tmp;
}

static void emu_svc_sift_up(size_t i)
{
    while ((i > 0) &&
           emu_svc_before(&emu_svc.items[i], &emu_svc.items[(i - 1) / 2])) {
        emu_svc_swap(i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
}

static void emu_svc_sift_down(size_t i)
{
    size_t child;

    while ((child = 2 * i + 1) < emu_svc.count) {
        if ((child + 1 < emu_svc.count) &&
            emu_svc_before(&emu_svc.items[child + 1], &emu_svc.items[child])) {
            child++;
        }
        if (!emu_svc_before(&emu_svc.items[child], &emu_svc.items[i])) {
            break;
        }
        emu_svc_swap(i, child);
        i = child;
    }
}

/* mutex is held, and released meanwhile. Sleeps until the kick counter is no
 * longer @a kick, or a time comes (0: never). */
static void emu_svc_sleep(emu_proc_t *proc, uint32_t kick, uint64_t due_ns)
{
    struct timespec ts = { .tv_sec  = due_ns / 1000000000ul,
                           .tv_nsec = due_ns % 1000000000ul };

    __atomic_store_n(&proc->sleeping, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&emu_svc.mutex);
    syscall(SYS_futex, &proc->kick, FUTEX_WAIT_BITSET, kick,
            (due_ns != 0) ? &ts : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
    pthread_mutex_lock(&emu_svc.mutex);
    __atomic_store_n(&proc->sleeping, 0, __ATOMIC_SEQ_CST);
}

static void emu_svc_wake(emu_proc_t *proc)
{
    __atomic_add_fetch(&proc->kick, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&proc->sleeping, __ATOMIC_SEQ_CST)) {
        syscall(SYS_futex, &proc->kick, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

/* mutex is held; waits until the first item is due, and takes it */
static int emu_svc_next(emu_proc_t *proc, emu_svc_item_t *item_p)
{
    uint64_t due;
    uint32_t kick;

    while (!emu_svc.stop) {
        kick = __atomic_load_n(&proc->kick, __ATOMIC_SEQ_CST);
        if (__atomic_exchange_n(&proc->nudged, 0, __ATOMIC_SEQ_CST)) {
            pthread_mutex_unlock(&emu_svc.mutex);
            emu_svc.nudge();
            pthread_mutex_lock(&emu_svc.mutex);
            continue;
        }

        due = (emu_svc.count > 0) ? emu_svc.items[0].due_ns : 0;
        if ((emu_svc.count == 0) || (due > emu_now_ns())) {
            emu_svc_sleep(proc, kick, due);
            continue;
        }

        *item_p          = emu_svc.items[0];
        emu_svc.items[0] = emu_svc.items[--emu_svc.count];
        emu_svc_sift_down(0);
        return 1;
    }

    return 0;
}

static void *emu_svc_thread(void *arg)
{
    emu_proc_t *proc = arg;
    emu_svc_item_t item;

    emu_lock(&proc->life);
    pthread_mutex_lock(&emu_svc.mutex);
    emu_svc.running = 2;
    pthread_cond_broadcast(&emu_svc.cond);
    while (emu_svc_next(proc, &item)) {
        pthread_mutex_unlock(&emu_svc.mutex);
        item.func(item.arg, item.cookie);
        pthread_mutex_lock(&emu_svc.mutex);
    }
    pthread_mutex_unlock(&emu_svc.mutex);
    emu_unlock(&proc->life);
    return NULL;
}

int emu_svc_start(void (*nudge)(void))
{
    sigset_t all, old;
    int ret;

    pthread_cond_init(&emu_svc.cond, NULL);

    /* Asynchronous signals are the program's own business */
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    emu_svc.nudge   = nudge;
    emu_svc.stop    = 0;
    emu_svc.running = 1;
    ret = pthread_create(&emu_svc.thread, NULL, emu_svc_thread, emu_self);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret != 0) {
        emu_svc.running = 0;
        return -ret;
    }

    pthread_mutex_lock(&emu_svc.mutex);
    while (emu_svc.running != 2) {
        pthread_cond_wait(&emu_svc.cond, &emu_svc.mutex);
    }
    pthread_mutex_unlock(&emu_svc.mutex);
    return 0;
}

void emu_svc_stop(void)
{
    if (emu_svc.running == 0) {
        return;
    }

    pthread_mutex_lock(&emu_svc.mutex);
    emu_svc.stop = 1;
    emu_svc_wake(emu_self);
    pthread_mutex_unlock(&emu_svc.mutex);
    pthread_join(emu_svc.thread, NULL);
    emu_svc.running = 0;
    emu_svc.count   = 0;
}

void emu_svc_forget(void)
{
    pthread_mutex_init(&emu_svc.mutex, NULL);
    emu_svc.running = 0;
    emu_svc.count   = 0;
}

int emu_svc_add(uint64_t due_ns, emu_svc_func_t func, void *arg,
                uint64_t cookie)
{
    emu_svc_item_t *items;
    int is_first;
    size_t max;

    pthread_mutex_lock(&emu_svc.mutex);
    if (emu_svc.count == emu_svc.max) {
        max   = emu_max(64, emu_svc.max * 2);
        items = realloc(emu_svc.items, max * sizeof(*items));
        if (items == NULL) {
            pthread_mutex_unlock(&emu_svc.mutex);
            return -ENOMEM;
        }
        emu_svc.items = items;
        emu_svc.max   = max;
    }

    emu_svc.items[emu_svc.count] = (emu_svc_item_t) {
        .due_ns = due_ns,
        .order  = emu_svc.order++,
        .func   = func,
        .arg    = arg,
        .cookie = cookie
    };
    emu_svc_sift_up(emu_svc.count++);
    is_first = (emu_svc.items[0].due_ns == due_ns);
    if (is_first) {
        emu_svc_wake(emu_self);
    }
    pthread_mutex_unlock(&emu_svc.mutex);
    return 0;
}

void emu_svc_nudge(emu_proc_t *proc)
{
    if (proc->used) {
        __atomic_store_n(&proc->nudged, 1, __ATOMIC_SEQ_CST);
        emu_svc_wake(proc);
    }
}

void emu_svc_nudge_all(void)
{
    unsigned i;

    for (i = 0; i < EMU_MAX_PROCS; i++) {
        emu_svc_nudge(&emu_fabric->procs[i]);
    }
}
