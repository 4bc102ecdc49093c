/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The keeper of a fabric that has time: starts it, and ends it.
 */

#include "ctl.h"
#include "../core/emu_attach.h"
#include "../core/emu_map.h"
#include "../core/emu_proc.h"
#include "../proto/emu_engine.h"
#include "../wire/emu_keep.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CTL_KEEPER_START_MS 10000
#define CTL_KEEPER_STOP_MS  2000
#define CTL_KEEPER_POLL_MS  2
#define CTL_KEEPER_SLACK_NS 1000ul
#define CTL_KEEPER_PRIORITY 10
#define CTL_KEEPER_MAX_FD   1023


/* Wait until there is a keeper, or none. @return whether it is so */
static int ctl_keeper_wait(int is_there, uint64_t timeout_ms)
{
    struct timespec interval = {0, CTL_KEEPER_POLL_MS * 1000000l};
    uint64_t deadline        = emu_now_ns() + timeout_ms * 1000000ul;

    while ((emu_keep_proc() >= 0) != is_there) {
        if (emu_now_ns() >= deadline) {
            return 0;
        }
        nanosleep(&interval, NULL);
    }

    return 1;
}

/* It has to be in time whatever else runs. Where it may not, it does its best */
static void ctl_keeper_hurry(void)
{
    struct sched_param param = {.sched_priority = CTL_KEEPER_PRIORITY};

    (void)prctl(PR_SET_TIMERSLACK, CTL_KEEPER_SLACK_NS);
    (void)sched_setscheduler(0, SCHED_RR, &param);
}

/* A process of its own, which nobody waits for */
static void ctl_keeper_main(const char *name)
{
    int null = open("/dev/null", O_RDWR);
    char err[512];

    (void)setsid();
    (void)chdir("/");
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(null, STDOUT_FILENO);
    (void)dup2(null, STDERR_FILENO);
    emu_fabric_close();
    (void)close_range(STDERR_FILENO + 1, ~0u, 0);
    /* Descriptors of processes' memory have high numbers (core/emu_peer.c): the first
     * of them would make the kernel wait for milliseconds once there are several threads */
    (void)close(fcntl(STDIN_FILENO, F_DUPFD, CTL_KEEPER_MAX_FD));
    (void)prctl(PR_SET_NAME, "mlx5emu-keeper");
    ctl_keeper_hurry();
    if (emu_proc_attach(name, 0, err, sizeof(err)) == 0) {
        (void)emu_keeper_run();
        emu_proc_detach();
    }
}

int ctl_keeper_ensure(void)
{
    pid_t pid;

    if (!emu_pipe_is_on() || (emu_keep_proc() >= 0)) {
        return CTL_OK;
    }

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        if (fork() == 0) {
            ctl_keeper_main(ctl_fabric_name());
        }
        _exit(0);
    }

    if ((pid < 0) || (waitpid(pid, NULL, 0) != pid) ||
        !ctl_keeper_wait(1, CTL_KEEPER_START_MS)) {
        return ctl_fail("the keeper of the time of fabric \"%s\" does not start",
                        ctl_fabric_name());
    }

    return CTL_OK;
}

void ctl_keeper_end(void)
{
    int proc = emu_keep_proc();

    if (proc < 0) {
        return;
    }

    emu_keep_stop();
    if (!ctl_keeper_wait(0, CTL_KEEPER_STOP_MS)) {
        (void)kill(emu_fabric->procs[proc].pid, SIGKILL);
        (void)ctl_keeper_wait(0, CTL_KEEPER_STOP_MS);
    }
}
