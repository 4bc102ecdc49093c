/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Sharing of SIGSEGV with the program, see emu_signal.h.
 *
 * Until emu_signal_init() is called the program's action is the kernel's. After
 * it:
 *
 *   kernel --SIGSEGV--> emu_signal_handler --doorbell--> emulator
 *                              |       |
 *                              |       +--copy by the emulator--> it returns
 *                              |
 *                              +--any other fault--> action of the program,
 *                                                    as it set it with
 *                                                    sigaction() or signal()
 *
 * SIGSEGV must never be blocked in a thread that may ring a doorbell: the
 * kernel kills a process that faults with the signal blocked. So it is taken
 * out of every mask which the program sets.
 */

#include "emu_signal.h"
#include "../core/emu_touch.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>


#define EMU_SIGNAL_TLS __thread __attribute__((tls_model("initial-exec")))


typedef int (*emu_signal_sigaction_func_t)(int, const struct sigaction*,
                                           struct sigaction*);
typedef int (*emu_signal_sigmask_func_t)(int, const sigset_t*, sigset_t*);


/* Protects emu_signal_program: what the program believes is installed */
static pthread_mutex_t emu_signal_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction emu_signal_program;
static emu_signal_fault_func_t emu_signal_fault_func;

/* Odd while memory is paused; how many times it began and ended */
static unsigned emu_signal_pauses;

/* The pause after which this thread repeated an instruction: a fault that comes
 * again without another pause has another cause */
static EMU_SIGNAL_TLS unsigned emu_signal_repeated;
static EMU_SIGNAL_TLS int emu_signal_is_pausing;


/* libc's own function of that name, or of the next library which has it */
static void *emu_signal_next(const char *name, void **cache)
{
    void *func = __atomic_load_n(cache, __ATOMIC_RELAXED);

    if (func == NULL) {
        func = dlsym(RTLD_NEXT, name);
        __atomic_store_n(cache, func, __ATOMIC_RELAXED);
    }

    return func;
}

static int emu_signal_sigaction_next(int signum, const struct sigaction *act,
                                     struct sigaction *oldact)
{
    static void *cache;
    emu_signal_sigaction_func_t func;

    func = (emu_signal_sigaction_func_t)emu_signal_next("sigaction", &cache);
    if (func == NULL) {
        errno = ENOSYS;
        return -1;
    }

    return func(signum, act, oldact);
}

static int emu_signal_is_active(void)
{
    return __atomic_load_n(&emu_signal_fault_func, __ATOMIC_ACQUIRE) != NULL;
}

/* The kernel's default action is wanted: let the instruction fault again, or send an
 * asynchronous signal again, without a handler. */
static void emu_signal_default(const siginfo_t *info)
{
    struct sigaction act;

    memset(&act, 0, sizeof(act));
    act.sa_handler = SIG_DFL;
    emu_signal_sigaction_next(SIGSEGV, &act, NULL);
    if (info->si_code <= 0) {
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGSEGV);
    }
}

/* Give a fault to the program's handler, with the mask that it asked for */
static void emu_signal_forward(int signum, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    struct sigaction act;
    sigset_t mask;

    pthread_mutex_lock(&emu_signal_lock);
    act = emu_signal_program;
    if (act.sa_flags & SA_RESETHAND) {
        emu_signal_program.sa_handler = SIG_DFL;
        emu_signal_program.sa_flags   = 0;
    }
    pthread_mutex_unlock(&emu_signal_lock);

    if (!(act.sa_flags & SA_SIGINFO)) {
        if ((act.sa_handler == SIG_IGN) && (info->si_code <= 0)) {
            return;
        } else if ((act.sa_handler == SIG_DFL) || (act.sa_handler == SIG_IGN)) {
            emu_signal_default(info);
            return;
        }
    }

    sigorset(&mask, &uc->uc_sigmask, &act.sa_mask);
    if (!(act.sa_flags & SA_NODEFER)) {
        sigaddset(&mask, signum);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, _NSIG / 8);

    if (act.sa_flags & SA_SIGINFO) {
        act.sa_sigaction(signum, info, context);
    } else {
        act.sa_handler(signum);
    }
}

/* The fault may come from a pause, which may be over by now */
static int emu_signal_is_paused(const siginfo_t *info)
{
    unsigned pauses;

    if ((info->si_code <= 0) || emu_signal_is_pausing) {
        return 0;
    }

    while ((pauses = __atomic_load_n(&emu_signal_pauses, __ATOMIC_ACQUIRE)) %
           2) {
        sched_yield();
    }

    if (pauses == emu_signal_repeated) {
        return 0;
    }

    emu_signal_repeated = pauses;
    return 1;
}

void emu_signal_pause_begin(void)
{
    emu_signal_is_pausing = 1;
    __atomic_add_fetch(&emu_signal_pauses, 1, __ATOMIC_SEQ_CST);
}

void emu_signal_pause_end(void)
{
    __atomic_add_fetch(&emu_signal_pauses, 1, __ATOMIC_SEQ_CST);
    emu_signal_is_pausing = 0;
}

static void emu_signal_handler(int signum, siginfo_t *info, void *context)
{
    const int saved_errno = errno;

    if (!emu_signal_fault_func(info, context) && !emu_signal_is_paused(info) &&
        !emu_touch_recover(context)) {
        emu_signal_forward(signum, info, context);
    }

    errno = saved_errno;
}

int emu_signal_init(emu_signal_fault_func_t func)
{
    struct sigaction act;
    sigset_t segv;
    int ret = 0;

    sigemptyset(&segv);
    sigaddset(&segv, SIGSEGV);
    pthread_sigmask(SIG_UNBLOCK, &segv, NULL);

    pthread_mutex_lock(&emu_signal_lock);
    if (emu_signal_fault_func != NULL) {
        goto out;
    }

    /* Nothing may interrupt the engine while it holds locks, except its own
     * faults: those are for the program's handler to report. */
    memset(&act, 0, sizeof(act));
    act.sa_sigaction = emu_signal_handler;
    act.sa_flags     = SA_SIGINFO | SA_NODEFER | SA_RESTART;
    sigfillset(&act.sa_mask);
    sigdelset(&act.sa_mask, SIGSEGV);
    sigdelset(&act.sa_mask, SIGBUS);
    sigdelset(&act.sa_mask, SIGFPE);
    sigdelset(&act.sa_mask, SIGILL);
    sigdelset(&act.sa_mask, SIGTRAP);
    sigdelset(&act.sa_mask, SIGABRT);

    __atomic_store_n(&emu_signal_fault_func, func, __ATOMIC_RELEASE);
    if (emu_signal_sigaction_next(SIGSEGV, &act, &emu_signal_program) != 0) {
        ret = errno;
        __atomic_store_n(&emu_signal_fault_func, NULL, __ATOMIC_RELEASE);
    }

out:
    pthread_mutex_unlock(&emu_signal_lock);
    return ret;
}

/* A lock rather than atomics: a handler which is replaced while another thread
 * faults must be seen whole. Signals are held off, for the same lock is taken
 * in the handler. */
static int emu_signal_replace(const struct sigaction *act,
                              struct sigaction *oldact)
{
    struct sigaction previous, next;
    sigset_t all, saved;

    if (act != NULL) {
        next = *act; /* May fault, so not with the lock held */
    }

    sigfillset(&all);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &saved, _NSIG / 8);
    pthread_mutex_lock(&emu_signal_lock);
    previous = emu_signal_program;
    if (act != NULL) {
        emu_signal_program = next;
    }
    pthread_mutex_unlock(&emu_signal_lock);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved, NULL, _NSIG / 8);

    if (oldact != NULL) {
        *oldact = previous;
    }

    return 0;
}

/**
 * Interposed: the program's SIGSEGV action is kept rather than installed, and
 * no handler runs with SIGSEGV blocked.
 */
int sigaction(int signum, const struct sigaction *act, struct sigaction *oldact)
{
    struct sigaction copy;

    if ((signum == SIGSEGV) && emu_signal_is_active()) {
        return emu_signal_replace(act, oldact);
    }

    if (act != NULL) {
        copy = *act;
        sigdelset(&copy.sa_mask, SIGSEGV);
        act  = &copy;
    }

    return emu_signal_sigaction_next(signum, act, oldact);
}

/* The older ways of setting a handler. Only SIGSEGV's is of interest: for others
 * libc knows best, it keeps what siginterrupt() said. */
static sighandler_t emu_signal_set(const char *name, void **cache, int signum,
                                   sighandler_t handler, int flags)
{
    sighandler_t (*func)(int, sighandler_t);
    struct sigaction act, oldact;

    if ((signum != SIGSEGV) || !emu_signal_is_active()) {
        func = (sighandler_t (*)(int, sighandler_t))emu_signal_next(name,
                                                                    cache);
        if (func == NULL) {
            errno = ENOSYS;
            return SIG_ERR;
        }

        return func(signum, handler);
    }

    memset(&act, 0, sizeof(act));
    act.sa_handler = handler;
    act.sa_flags   = flags;
    sigemptyset(&act.sa_mask);
    emu_signal_replace(&act, &oldact);
    return oldact.sa_handler;
}

#define EMU_SIGNAL_SETTER(_name, _flags) \
    sighandler_t _name(int signum, sighandler_t handler) \
    { \
        static void *cache; \
        \
        return emu_signal_set(#_name, &cache, signum, handler, _flags); \
    }

/** Interposed, see @ref sigaction. */
EMU_SIGNAL_SETTER(signal, SA_RESTART)

/** Interposed, see @ref sigaction. */
EMU_SIGNAL_SETTER(ssignal, SA_RESTART)

/** Interposed, see @ref sigaction. */
EMU_SIGNAL_SETTER(bsd_signal, SA_RESTART)

/** Interposed, see @ref sigaction. */
EMU_SIGNAL_SETTER(sysv_signal, SA_RESETHAND | SA_NODEFER)

/** Interposed, see @ref sigaction. */
EMU_SIGNAL_SETTER(__sysv_signal, SA_RESETHAND | SA_NODEFER)

static int emu_signal_mask(emu_signal_sigmask_func_t func, int how,
                           const sigset_t *set, sigset_t *oldset)
{
    sigset_t copy;

    if ((set != NULL) && (how != SIG_UNBLOCK)) {
        copy = *set;
        sigdelset(&copy, SIGSEGV);
        set  = &copy;
    }

    return func(how, set, oldset);
}

/** Interposed: SIGSEGV is never blocked. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *oldset)
{
    static void *cache;
    emu_signal_sigmask_func_t func;

    func = (emu_signal_sigmask_func_t)emu_signal_next("pthread_sigmask",
                                                      &cache);
    return (func == NULL) ? ENOSYS : emu_signal_mask(func, how, set, oldset);
}

/** Interposed: SIGSEGV is never blocked. */
int sigprocmask(int how, const sigset_t *set, sigset_t *oldset)
{
    static void *cache;
    emu_signal_sigmask_func_t func;

    func = (emu_signal_sigmask_func_t)emu_signal_next("sigprocmask", &cache);
    if (func == NULL) {
        errno = ENOSYS;
        return -1;
    }

    return emu_signal_mask(func, how, set, oldset);
}
