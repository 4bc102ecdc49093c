/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_nic.h.
 */

#include "emu_nic.h"
#include "emu_ctx.h"
#include "emu_proc.h"
#include "emu_quirk.h"

#include <errno.h>
#include <time.h>

/* Values of fatal-writes, in the order of its row in the table of quirks */
enum {
    EMU_NIC_FATAL_TIME,
    EMU_NIC_FATAL_LIES
};

/* Signals of the program do not make a command shorter */
static void emu_nic_sleep(uint64_t ns)
{
    uint64_t end       = emu_now_ns() + ns;
    struct timespec ts = { .tv_sec  = end / 1000000000ul,
                           .tv_nsec = end % 1000000000ul };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR) {
    }
}

int emu_nic_command(uint32_t port, uint32_t gen)
{
    uint64_t ns;

    if (emu_likely(emu_nic_is(port, gen))) {
        return 0;
    }

    if (emu_quirk_on(port, EMU_QUIRK_SLOW_CMD)) {
        ns = emu_scaled_ns(emu_quirk_value(port, EMU_QUIRK_SLOW_CMD, 0));
        emu_quirk_act(port, EMU_QUIRK_SLOW_CMD, 0, 0, ns);
        emu_nic_sleep(ns);
    }

    return -EIO;
}

/* Whether this incarnation died with an event while the quirk was on */
static int emu_nic_is_fatal(const emu_port_t *port, uint32_t gen)
{
    return (__atomic_load_n(&port->fatal_until_ns, __ATOMIC_ACQUIRE) != 0) &&
           (port->fatal_gen == gen);
}

int emu_nic_lies(uint32_t port, uint32_t gen)
{
    return !emu_nic_is(port, gen) &&
           emu_nic_is_fatal(&emu_fabric->ports[port], gen) &&
           emu_quirk_on(port, EMU_QUIRK_FATAL_WRITES) &&
           emu_quirk_value(port, EMU_QUIRK_FATAL_WRITES, EMU_NIC_FATAL_LIES);
}

int emu_nic_command_end(uint32_t port, uint32_t gen, uint32_t qpn, int *is_done_p)
{
    int ret = emu_nic_command(port, gen);

    *is_done_p = 0;
    if ((ret == 0) || !emu_nic_is_fatal(&emu_fabric->ports[port], gen)) {
        return ret;
    }

    (void)emu_quirk_hits(port, EMU_QUIRK_FATAL_WRITES, qpn, 0, 0);
    *is_done_p = emu_nic_lies(port, gen);
    return *is_done_p ? 0 : ret;
}

/* The NIC raises DEVICE_FATAL: quirk fatal-writes has its data path go on for some
 * time */
static void emu_nic_begin_fatal(emu_port_t *port, uint32_t gen)
{
    uint64_t ns;

    if (!emu_quirk_on(port->index, EMU_QUIRK_FATAL_WRITES)) {
        __atomic_store_n(&port->fatal_until_ns, 0, __ATOMIC_RELEASE);
        return;
    }

    ns              = emu_scaled_ns(emu_quirk_value(port->index,
                                                    EMU_QUIRK_FATAL_WRITES,
                                                    EMU_NIC_FATAL_TIME));
    port->fatal_gen = gen;
    __atomic_store_n(&port->fatal_until_ns, emu_now_ns() + ns, __ATOMIC_RELEASE);
}

int emu_nic_lingers(uint32_t index, uint32_t gen)
{
    const emu_port_t *port = &emu_fabric->ports[index];

    /* The next incarnation begins with a reset of the device */
    return emu_nic_is_fatal(port, gen) && emu_nic_is(index, gen + 1) &&
           (emu_now_ns() < port->fatal_until_ns);
}

void emu_nic_count_fatal(uint32_t port, uint32_t qpn, uint64_t id, uint32_t psn)
{
    (void)emu_quirk_hits(port, EMU_QUIRK_FATAL_WRITES, qpn, id, psn);
}

/* A program meets addresses and a link layer that are not as usual */
static void emu_nic_show_addr_quirks(const emu_port_t *port)
{
    emu_quirk_hits(port->index, EMU_QUIRK_ROCE, 0, 0, port->link);
    emu_quirk_hits(port->index, EMU_QUIRK_SAME_GID, 0, 0, port->link);
    emu_quirk_hits(port->index, EMU_QUIRK_MISWIRED, 0, 0, emu_port_plane(port));
}

int emu_nic_open(unsigned link, emu_ctx_t **ctx_p)
{
    const emu_port_t *port = emu_port_get(emu_self->host, link);
    uint32_t nic_gen;

    if (port == NULL) {
        return -ENODEV;
    }

    nic_gen = __atomic_load_n(&port->nic_gen, __ATOMIC_ACQUIRE);
    if (nic_gen & 1) {
        return emu_nic_command(port->index, nic_gen - 1);
    }

    emu_nic_show_addr_quirks(port);
    return emu_ctx_open(port->index, nic_gen, ctx_p);
}

/* All ports of the NIC that a port belongs to. @return how many changed */
static unsigned emu_nic_change(const emu_port_t *one, int kill, int event)
{
    unsigned count = 0;
    emu_port_t *port;
    uint32_t gen;
    unsigned i;

    for (i = 0; i < emu_fabric->cfg.links; i++) {
        port = emu_port_get(one->host, i);
        gen  = __atomic_load_n(&port->nic_gen, __ATOMIC_ACQUIRE);
        if ((emu_port_device(port)->hca != emu_port_device(one)->hca) || ((gen & 1) == !!kill)) {
            continue;
        }

        if (kill) {
            __atomic_store_n(&port->nic_died_ns, emu_now_ns(), __ATOMIC_RELEASE);
        }
        if (kill && event) {
            emu_nic_begin_fatal(port, gen);
        }
        if (!__atomic_compare_exchange_n(&port->nic_gen, &gen, gen + 1, 0,
                                         __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            continue;
        }

        count++;
        if (kill && event) {
            emu_ctx_raise(port->index, gen, IBV_EVENT_DEVICE_FATAL);
        }
    }

    return count;
}

int emu_nic_kill(unsigned host, unsigned link, int event)
{
    const emu_port_t *port = emu_port_get(host, link);

    if (port == NULL) {
        return -EINVAL;
    }
    return emu_nic_change(port, 1, event) ? 0 : -EALREADY;
}

int emu_nic_revive(unsigned host, unsigned link)
{
    const emu_port_t *port = emu_port_get(host, link);

    if (port == NULL) {
        return -EINVAL;
    }
    return emu_nic_change(port, 0, 0) ? 0 : -EALREADY;
}
