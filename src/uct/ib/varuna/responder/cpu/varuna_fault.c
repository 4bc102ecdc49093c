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
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* The smallest page: a fault in that of our word is ours */
#define UCT_VARUNA_FAULT_PAGE        4096ul

/* Known without a call: the first use of other kinds of thread-local variables
 * allocates, which no handler may do */
#define UCT_VARUNA_FAULT_TLS         __thread __attribute__((tls_model("initial-exec")))

typedef int (*uct_varuna_sigaction_func_t)(int signum,
                                           const struct sigaction *act,
                                           struct sigaction *oldact);

typedef struct uct_varuna_fault_signal {
    int                        signum;
    int                        is_tried;  /* Ours was installed, if it can be */
    struct sigaction           old;       /* The one before ours */
} uct_varuna_fault_signal_t;

/* An access that may fault */
typedef struct uct_varuna_fault_access {
    uint64_t                   addr;
    sigjmp_buf                 jump;
} uct_varuna_fault_access_t;

/* Protects installing. What is in use never changes */
static pthread_mutex_t uct_varuna_fault_lock = PTHREAD_MUTEX_INITIALIZER;
static uct_varuna_fault_signal_t uct_varuna_fault_signals[] = {
    {.signum = SIGSEGV},
    {.signum = SIGBUS}
};

/* Whether the kernel calls our handlers, as of the last uct_varuna_fault_init() */
static int uct_varuna_fault_is_first;

/* Of this thread; NULL: faults are not ours */
static UCT_VARUNA_FAULT_TLS uct_varuna_fault_access_t *volatile uct_varuna_fault_access;

/* The last fault that was passed on, and from which place on the stack. A handler that was
 * set again may call ours, which it has noted since: then we are deeper on the stack, with the
 * same fault. After a jump out of that handler, the next fault may have the same context. */
static UCT_VARUNA_FAULT_TLS const void *uct_varuna_fault_passed;
static UCT_VARUNA_FAULT_TLS const char *uct_varuna_fault_passed_from;


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

static void uct_varuna_fault_call(const struct sigaction *old, int signum,
                                  siginfo_t *info, void *context)
{
    struct sigaction act;

    if (old->sa_flags & SA_RESETHAND) {
        memset(&act, 0, sizeof(act));
        act.sa_handler = SIG_DFL;
        sigaction(signum, &act, NULL); /* As the kernel does */
    }

    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(signum, info, context);
    } else if ((old->sa_handler == SIG_DFL) || (old->sa_handler == SIG_IGN)) {
        if ((old->sa_handler == SIG_DFL) || (info->si_code > 0)) {
            uct_varuna_fault_default(signum, info);
        }
    } else {
        old->sa_handler(signum);
    }
}

/* Ours was installed with the mask and the flags of the old one, so the kernel has prepared
 * what that handler expects. It may never return. */
static void UCS_F_NOINLINE
uct_varuna_fault_pass(int signum, siginfo_t *info, void *context)
{
    const char *here = __builtin_frame_address(0);

    if ((context == uct_varuna_fault_passed) && (here < uct_varuna_fault_passed_from)) {
        uct_varuna_fault_default(signum, info);
        return;
    }

    uct_varuna_fault_passed      = context;
    uct_varuna_fault_passed_from = here;
    uct_varuna_fault_call(&uct_varuna_fault_signal(signum)->old, signum, info, context);
    uct_varuna_fault_passed      = NULL;
}

static int uct_varuna_fault_is_at(const siginfo_t *info, uint64_t addr)
{
    return (((uintptr_t)info->si_addr ^ addr) & ~(UCT_VARUNA_FAULT_PAGE - 1)) == 0;
}

static void uct_varuna_fault_handler(int signum, siginfo_t *info, void *context)
{
    const ucontext_t *uc              = context;
    uct_varuna_fault_access_t *access = uct_varuna_fault_access;

    if ((access == NULL) || (info->si_code <= 0) ||
        !uct_varuna_fault_is_at(info, access->addr)) {
        uct_varuna_fault_pass(signum, info, context);
        return;
    }

    /* Our caller may have blocked the signal */
    uct_varuna_fault_access = NULL;
    pthread_sigmask(SIG_SETMASK, &uc->uc_sigmask, NULL);
    siglongjmp(access->jump, 1);
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

/* The handler stays installed, so its code must not be unloaded. Lock held */
static void uct_varuna_fault_stay_loaded(void)
{
    static int is_done;
    Dl_info info;

    if (!is_done && (dladdr(uct_varuna_fault_handler, &info) != 0)) {
        is_done = 1;
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

/* Lock held. @return Whether it is ours now. */
static int uct_varuna_fault_replace(uct_varuna_fault_signal_t *signal,
                                    const struct sigaction *old)
{
    struct sigaction act = *old, now;

    uct_varuna_fault_stay_loaded();
    signal->old      = *old;
    act.sa_sigaction = uct_varuna_fault_handler;
    act.sa_flags    |= SA_SIGINFO;
    act.sa_flags    &= ~SA_RESETHAND;
    if (!(old->sa_flags & SA_SIGINFO) && (old->sa_handler == SIG_DFL)) {
        act.sa_flags |= SA_ONSTACK | SA_RESTART;
    }

    if ((sigaction(signal->signum, &act, NULL) != 0) ||
        (sigaction(signal->signum, NULL, &now) != 0)) {
        return 0;
    }

    return uct_varuna_fault_is_ours(&now) ||
           (uct_varuna_fault_libc_sigaction(signal->signum, &act) == 0);
}

/* @return Whether the kernel calls our handler. */
static int uct_varuna_fault_install(uct_varuna_fault_signal_t *signal)
{
    struct sigaction now;
    int is_ours;

    if (sigaction(signal->signum, NULL, &now) != 0) {
        return 0;
    } else if (uct_varuna_fault_is_ours(&now)) {
        return 1;
    }

    /* Another thread may just have installed it: then we look, this time */
    pthread_mutex_lock(&uct_varuna_fault_lock);
    is_ours          = !signal->is_tried && uct_varuna_fault_replace(signal, &now);
    signal->is_tried = 1;
    pthread_mutex_unlock(&uct_varuna_fault_lock);
    return is_ours;
}

void uct_varuna_fault_init(void)
{
    int is_first = 1;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(uct_varuna_fault_signals); ++i) {
        is_first &= uct_varuna_fault_install(&uct_varuna_fault_signals[i]);
    }

    __atomic_store_n(&uct_varuna_fault_is_first, is_first, __ATOMIC_RELAXED);
}

/* The kernel adds 0 to the word, without a signal. It may wake a thread that waits for the
 * word as a futex, which is allowed at any time. */
static int uct_varuna_fault_look(uint64_t addr)
{
    uint32_t nobody = 0;

    return (syscall(SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0ul, addr,
                    FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0x800)) >= 0) ||
           (errno != EFAULT);
}

int uct_varuna_fault_run(uint64_t addr, void (*func)(void *arg), void *arg)
{
    uct_varuna_fault_access_t access;

    if (ucs_unlikely(!__atomic_load_n(&uct_varuna_fault_is_first, __ATOMIC_RELAXED)) &&
        !uct_varuna_fault_look(addr)) {
        return 1;
    }

    access.addr = addr;
    if (sigsetjmp(access.jump, 0) != 0) {
        return 1;
    }

    uct_varuna_fault_access = &access;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    func(arg);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uct_varuna_fault_access = NULL;
    return 0;
}

void uct_varuna_fault_forked(void)
{
    pthread_mutex_init(&uct_varuna_fault_lock, NULL);
    uct_varuna_fault_access = NULL;
}
