/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Messages on a lane that had no traffic for long: count the calls of progress until
 * they are found. Sender and receiver are two interfaces of this process. The
 * receiver's second link is the sender's first one. Run by
 * test/e2e/stories/test_standby.sh:
 *
 *     ft_standby polling DEVICE   the receiver calls progress all the time
 *     ft_standby sleeping DEVICE  the receiver sleeps until its descriptor is readable
 *     ft_standby late DEVICE      the same; each message comes after its last call of progress,
 *                                 and before it asks for an event
 *
 * DEVICE is the receiver's second link, of rc_varuna.
 */
#include "ft_uct.h"
#include "ft_vfs.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FT_AM_ID     3
#define FT_ROUNDS    40
#define FT_IDLE      333    /* Calls without a message, no multiple of a period */
#define FT_CONNECT   30000  /* Most calls in which the sender connects RC */
#define FT_QUIET     100    /* Then: calls in which the last lane becomes quiet */
#define FT_PAUSE_US  2000
#define FT_HANG_MS   120000

/* Two links have four lanes, and a lane without traffic is polled in every 32nd call */
#define FT_MAX_CALLS (4 * 32)

/* After waking up all lanes are polled; something else may have woken the receiver
 * first */
#define FT_MAX_WAKE_CALLS 8

static struct {
    ft_uct_t     sender;
    ft_uct_t     receiver;
    ft_address_t address;
    uct_ep_h     ep;
    uct_mem_h    memh;
    unsigned     received;
} ft;

static ucs_status_t ft_received(void *arg, void *data, size_t length, unsigned flags)
{
    ++ft.received;
    return UCS_OK;
}

static void ft_send(void)
{
    unsigned calls = 0;
    ucs_status_t status;

    while ((status = uct_ep_am_short(ft.ep, FT_AM_ID, 0, NULL, 0)) ==
           UCS_ERR_NO_RESOURCE) {
        uct_worker_progress(ft.sender.worker);
        if (++calls > 1000000) {
            ft_die("the message cannot be sent");
        }
    }

    if (status != UCS_OK) {
        ft_die("am_short: %s", ucs_status_string(status));
    }
}

static void ft_pause(void)
{
    uct_worker_progress(ft.sender.worker);
    uct_worker_progress(ft.receiver.worker);
    usleep(FT_PAUSE_US);
}

static void ft_open(const char *device)
{
    static char memory[4096];
    unsigned i;

    ft_uct_open(&ft.receiver, "rc_varuna");
    if (ft_uct_open_device(&ft.sender, "rc_varuna", device, NULL) != 0) {
        ft_die("there is no second link");
    }

    uct_iface_set_am_handler(ft.receiver.iface, FT_AM_ID, ft_received, NULL, 0);
    ft.memh = ft_uct_reg(&ft.receiver, memory, sizeof(memory));
    ft_uct_own_address(&ft.receiver, ft.memh, memory, &ft.address);
    ft.ep = ft_uct_connect(&ft.sender, &ft.address);
    ft_send();
    for (i = 0; (i < FT_CONNECT) && (ft_vfs_count_rc() == 0); ++i) {
        ft_pause();
    }

    if (i == FT_CONNECT) {
        ft_die("the sender does not get RC");
    }

    for (i = 0; i < FT_QUIET; ++i) {
        ft_pause();
    }

    if (ft.received != 1) {
        ft_die("the first message has not arrived");
    }
}

/* @return Calls of progress until the newest message has arrived */
static unsigned ft_find(unsigned received)
{
    unsigned calls = 0;

    while (ft.received < received) {
        if (++calls > 10000) {
            ft_die("message %u is not found", received);
        }
        uct_worker_progress(ft.receiver.worker);
    }

    return calls;
}

static void ft_idle(void)
{
    unsigned i;

    for (i = 0; i < FT_IDLE; ++i) {
        uct_worker_progress(ft.sender.worker);
        uct_worker_progress(ft.receiver.worker);
    }
}

static void ft_run_polling(void)
{
    unsigned worst = 0;
    unsigned round, calls;

    for (round = 0; round < FT_ROUNDS; ++round) {
        ft_idle();
        ft_send();
        calls = ft_find(round + 2);
        worst = (calls > worst) ? calls : worst;
    }

    printf("ft: found in %u calls at most\n", worst);
    if (worst > FT_MAX_CALLS) {
        ft_die("a message was found in call %u", worst);
    } else if (worst < 2) {
        ft_die("all messages were found in the first call");
    }
}

/* @return Calls of progress before it could sleep */
static unsigned ft_arm(void)
{
    unsigned calls = 0;

    while (uct_iface_event_arm(ft.receiver.iface, UCT_EVENT_RECV) != UCS_OK) {
        uct_worker_progress(ft.receiver.worker);
        if (++calls > 10000) {
            ft_die("the interface cannot be armed");
        }
    }

    return calls;
}

/* Sleep until the newest message has arrived. @return Calls of progress after waking
 * up */
static unsigned ft_sleep(int fd, unsigned received)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};
    unsigned calls       = 0;

    while (ft.received < received) {
        if (poll(&pollfd, 1, FT_HANG_MS) != 1) {
            ft_die("message %u does not wake the receiver", received);
        }

        uct_worker_progress(ft.receiver.worker);
        ++calls;
        if (ft.received < received) {
            calls += ft_arm();
        }
    }

    return calls;
}

/* Until the responder's NIC has acknowledged the message: it is in the receive queue */
static void ft_send_completely(void)
{
    unsigned calls = 0;

    ft_send();
    while (uct_ep_flush(ft.ep, 0, NULL) != UCS_OK) {
        uct_worker_progress(ft.sender.worker);
        if (++calls > 10000000) {
            ft_die("the message is not acknowledged");
        }
    }
}

static void ft_run_sleeping(int is_late)
{
    unsigned worst = 0;
    unsigned round, calls;
    int fd;

    if (uct_iface_event_fd_get(ft.receiver.iface, &fd) != UCS_OK) {
        ft_die("there is no descriptor");
    }

    for (round = 0; round < FT_ROUNDS; ++round) {
        ft_idle();
        if (is_late) {
            ft_send_completely();
            ft_arm();
        } else {
            ft_arm();
            ft_send();
        }
        calls = ft_sleep(fd, round + 2);
        worst = (calls > worst) ? calls : worst;
    }

    printf("ft: found in %u calls at most after waking up\n", worst);
    if (worst > FT_MAX_WAKE_CALLS) {
        ft_die("a message was found in call %u after waking up", worst);
    }
}

static void ft_close(void)
{
    uct_ep_destroy(ft.ep);
    uct_md_mem_dereg(ft.receiver.md, ft.memh);
    ft_uct_close(&ft.sender);
    ft_uct_close(&ft.receiver);
}

int main(int argc, char **argv)
{
    if ((argc != 3) || (strcmp(argv[1], "polling") && strcmp(argv[1], "sleeping") &&
                        strcmp(argv[1], "late"))) {
        ft_die("usage: ft_standby polling|sleeping|late DEVICE");
    }

    setvbuf(stdout, NULL, _IOLBF, 0);
    ft_open(argv[2]);
    if (strcmp(argv[1], "polling")) {
        ft_run_sleeping(!strcmp(argv[1], "late"));
    } else {
        ft_run_polling();
    }
    ft_close();
    return 0;
}
