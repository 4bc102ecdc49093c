/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Faults of memory that peers name. See varuna_fault.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_fault.h"

#include <ucs/debug/log.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/sys.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* Handlers of the program or of UCX that are remembered for each signal */
#define UCT_VARUNA_FAULT_MAX_OLD     8

/* Known without a call: the first use of other kinds of thread-local variables
 * allocates, which no handler may do */
#define UCT_VARUNA_FAULT_TLS         __thread __attribute__((tls_model("initial-exec")))

typedef int (*uct_varuna_sigaction_func_t)(int signum,
                                           const struct sigaction *act,
                                           struct sigaction *oldact);

typedef struct uct_varuna_fault_signal {
    int                        signum;
    int                        num_old;   /* Read by the handler */
    struct sigaction           old[UCT_VARUNA_FAULT_MAX_OLD];
} uct_varuna_fault_signal_t;

/* Protects installing. What is in use never changes */
static pthread_mutex_t uct_varuna_fault_lock = PTHREAD_MUTEX_INITIALIZER;
static uct_varuna_fault_signal_t uct_varuna_fault_signals[] = {
    {.signum = SIGSEGV},
    {.signum = SIGBUS}
};

/* Where this thread continues after a fault; NULL: faults are not ours */
static UCT_VARUNA_FAULT_TLS sigjmp_buf *volatile uct_varuna_fault_jump;

/* The fault that was passed on last, and to which handler: a handler that was installed
 * after ours, and calls ours, returns the fault to us */
static UCT_VARUNA_FAULT_TLS void *uct_varuna_fault_passed;
static UCT_VARUNA_FAULT_TLS int uct_varuna_fault_passed_to;


static uct_varuna_fault_signal_t *uct_varuna_fault_signal(int signum)
{
    return &uct_varuna_fault_signals[signum == SIGBUS];
}

/* There is no other handler: without ours, the instruction faults again and ends the
 * process */
static void uct_varuna_fault_default(int signum, const siginfo_t *info)
{
    struct sigaction act;

    memset(&act, 0, sizeof(act));
    act.sa_handler = SIG_DFL;
    sigaction(signum, &act, NULL);
    if (info->si_code <= 0) {
        raise(signum); /* It was sent by kill(), and would not come again */
    }
}

/* Ours was installed with the mask and the flags of the newest old one, so the kernel
 * has prepared what that handler expects. */
static void uct_varuna_fault_pass(int signum, siginfo_t *info, void *context)
{
    uct_varuna_fault_signal_t *signal = uct_varuna_fault_signal(signum);
    const struct sigaction *old;
    int index;

    index = (context == uct_varuna_fault_passed) ?
            (uct_varuna_fault_passed_to - 1) :
            (__atomic_load_n(&signal->num_old, __ATOMIC_ACQUIRE) - 1);
    if (index < 0) {
        uct_varuna_fault_default(signum, info);
        return;
    }

    uct_varuna_fault_passed    = context;
    uct_varuna_fault_passed_to = index;
    old                        = &signal->old[index];
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(signum, info, context);
    } else if ((old->sa_handler == SIG_DFL) || (old->sa_handler == SIG_IGN)) {
        if ((old->sa_handler == SIG_DFL) || (info->si_code > 0)) {
            uct_varuna_fault_default(signum, info);
        }
    } else {
        old->sa_handler(signum);
    }

    uct_varuna_fault_passed = NULL;
}

static void uct_varuna_fault_handler(int signum, siginfo_t *info, void *context)
{
    const ucontext_t *uc = context;
    sigjmp_buf *jump     = uct_varuna_fault_jump;

    if ((jump == NULL) || (info->si_code <= 0)) {
        uct_varuna_fault_pass(signum, info, context);
        return;
    }

    /* Our caller may have blocked the signal */
    uct_varuna_fault_jump = NULL;
    pthread_sigmask(SIG_SETMASK, &uc->uc_sigmask, NULL);
    siglongjmp(*jump, 1);
}

static int uct_varuna_fault_is_ours(const struct sigaction *act)
{
    return (act->sa_flags & SA_SIGINFO) &&
           (act->sa_sigaction == uct_varuna_fault_handler);
}

/* UCX's sigaction(), which comes before libc's, takes no handlers of signals that it
 * handles itself. */
static int uct_varuna_fault_libc_sigaction(int signum, const struct sigaction *act)
{
    uct_varuna_sigaction_func_t func;
    void *libc;

    libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (libc == NULL) {
        return -1;
    }

    func = (uct_varuna_sigaction_func_t)dlsym(libc, "sigaction");
    dlclose(libc); /* It stays loaded */
    return (func == NULL) ? -1 : func(signum, act, NULL);
}

/* A handler that saves and restores ours comes back: it is remembered already. */
static int uct_varuna_fault_remember(uct_varuna_fault_signal_t *signal,
                                     const struct sigaction *old)
{
    int i;

    for (i = 0; i < signal->num_old; ++i) {
        if (signal->old[i].sa_sigaction == old->sa_sigaction) {
            return 1;
        }
    }

    if (signal->num_old == UCT_VARUNA_FAULT_MAX_OLD) {
        return 0;
    }

    signal->old[signal->num_old] = *old;
    __atomic_store_n(&signal->num_old, signal->num_old + 1, __ATOMIC_RELEASE);
    return 1;
}

/* Lock held */
static ucs_status_t uct_varuna_fault_install(uct_varuna_fault_signal_t *signal)
{
    struct sigaction act, old;

    if ((sigaction(signal->signum, NULL, &old) != 0) ||
        uct_varuna_fault_is_ours(&old)) {
        return UCS_OK;
    }

    if (!uct_varuna_fault_remember(signal, &old)) {
        ucs_diag("other handlers of %s replace each other all the time",
                 (signal->signum == SIGBUS) ? "SIGBUS" : "SIGSEGV");
        return UCS_ERR_UNSUPPORTED;
    }

    act              = old;
    act.sa_sigaction = uct_varuna_fault_handler;
    act.sa_flags    |= SA_SIGINFO;
    act.sa_flags    &= ~SA_RESETHAND;
    if (!(old.sa_flags & SA_SIGINFO) && (old.sa_handler == SIG_DFL)) {
        act.sa_flags |= SA_ONSTACK | SA_RESTART;
    }

    if ((sigaction(signal->signum, &act, NULL) != 0) ||
        (sigaction(signal->signum, NULL, &old) != 0)) {
        return UCS_ERR_UNSUPPORTED;
    }

    if (!uct_varuna_fault_is_ours(&old) &&
        (uct_varuna_fault_libc_sigaction(signal->signum, &act) != 0)) {
        return UCS_ERR_UNSUPPORTED;
    }

    return UCS_OK;
}

/* The handler stays installed, so its code must not be unloaded. */
static void uct_varuna_fault_stay_loaded(void)
{
    static int is_done;
    Dl_info info;

    if (!is_done && (dladdr(uct_varuna_fault_handler, &info) != 0)) {
        is_done = 1;
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

ucs_status_t uct_varuna_fault_init(void)
{
    ucs_status_t status = UCS_OK;
    struct sigaction act;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(uct_varuna_fault_signals); ++i) {
        if ((sigaction(uct_varuna_fault_signals[i].signum, NULL, &act) == 0) &&
            uct_varuna_fault_is_ours(&act)) {
            continue;
        }

        pthread_mutex_lock(&uct_varuna_fault_lock);
        uct_varuna_fault_stay_loaded();
        status = uct_varuna_fault_install(&uct_varuna_fault_signals[i]);
        pthread_mutex_unlock(&uct_varuna_fault_lock);
        if (status != UCS_OK) {
            return status;
        }
    }

    return status;
}

int uct_varuna_fault_run(void (*func)(void *arg), void *arg)
{
    sigjmp_buf jump;

    if (sigsetjmp(jump, 0) != 0) {
        return 1;
    }

    uct_varuna_fault_jump = &jump;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    func(arg);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uct_varuna_fault_jump = NULL;
    return 0;
}
