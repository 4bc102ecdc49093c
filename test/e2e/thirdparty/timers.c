/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Preloaded into ucx_perftest by test_perftest.sh: counts the timers of UCS in the
 * process, and finally prints the maximum.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* The prototype of libucs in all series; UCS's enum types are ints here */
typedef int (*timers_add_t)(int mode, unsigned long interval, void *cb, void *arg,
                            void *async, int *timer_id_p);
typedef int (*timers_remove_t)(int id, int sync);

/* The first number of a timer (UCS_ASYNC_TIMER_ID_MIN); lower ones are files */
#define TIMERS_FIRST_ID 1000000

int ucs_async_add_timer(int mode, unsigned long interval, void *cb, void *arg,
                        void *async, int *timer_id_p);
int ucs_async_remove_handler(int id, int sync);

static int timers_now, timers_most;


static void *timers_next(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (function == NULL) {
        fprintf(stderr, "timers: there is no %s\n", name);
        abort();
    }
    return function;
}

int ucs_async_add_timer(int mode, unsigned long interval, void *cb, void *arg,
                        void *async, int *timer_id_p)
{
    timers_add_t add = (timers_add_t)timers_next("ucs_async_add_timer");
    int status       = add(mode, interval, cb, arg, async, timer_id_p);
    int now, most;

    if (status == 0) {
        now  = __atomic_add_fetch(&timers_now, 1, __ATOMIC_SEQ_CST);
        most = __atomic_load_n(&timers_most, __ATOMIC_SEQ_CST);
        while ((now > most) &&
               !__atomic_compare_exchange_n(&timers_most, &most, now, 0,
                                            __ATOMIC_SEQ_CST,
                                            __ATOMIC_SEQ_CST)) {
        }
    }
    return status;
}

int ucs_async_remove_handler(int id, int sync)
{
    timers_remove_t remove =
            (timers_remove_t)timers_next("ucs_async_remove_handler");

    if (id >= TIMERS_FIRST_ID) {
        __atomic_sub_fetch(&timers_now, 1, __ATOMIC_SEQ_CST);
    }
    return remove(id, sync);
}

__attribute__((destructor)) static void timers_end(void)
{
    if (timers_most > 0) {
        fprintf(stderr, "\ntimers: %d at a time\n", timers_most);
    }
}
