/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A pool of pieces, all guarded by one lock, below which nothing but the trace and
 * processes' memory is touched. See emu_late.h.
 */

#include "emu_late.h"
#include "emu_mem.h"
#include "emu_nic.h"
#include "emu_proc.h"
#include "emu_quirk.h"
#include "emu_svc.h"

#include <errno.h>

/* Values of the quirk, by index */
enum {
    EMU_LATE_TIME,
    EMU_LATE_PASSED
};

static uint8_t *emu_late_payload(const emu_late_t *late)
{
    return emu_fabric->late_data +
           (late - emu_fabric->lates) * (size_t)EMU_LATE_BYTES;
}

/* Whether the memory is there and its NIC works. Commands of the emulator reap
 * dead processes, and have no process of their own. */
static int emu_late_has_target(const emu_late_t *late)
{
    const emu_proc_t *proc = &emu_fabric->procs[late->proc];

    return (emu_self != NULL) && (proc->gen == late->proc_gen) &&
           emu_proc_alive(proc) && emu_nic_works(late->port, late->nic_gen);
}

/* late_lock is held */
static void emu_late_place(emu_late_t *late)
{
    struct iovec src = { emu_late_payload(late), late->length };
    struct iovec dst = { (void*)(uintptr_t)late->addr, late->length };

    if (emu_late_has_target(late) &&
        (emu_mem_put(late->proc, &dst, 1, &src, 1, late->length) == 0)) {
        emu_quirk_act(late->port, EMU_QUIRK_LATE_WRITE, late->qpn, late->id,
                      emu_now_ns() - late->accepted_ns);
    }

    late->used = 0;
    __atomic_fetch_sub(&emu_fabric->num_late, 1, __ATOMIC_RELEASE);
}

/* Whom an entry concerns; which of them is the next */
typedef struct emu_late_filter {
    int      by_server;    /* those which this process serves, by time */
    int      by_port;
    uint32_t port;         /* or those of a port, ... */
    uint32_t qpn;          /* ... or of a queue pair, ... */
    int      by_device;    /* ... and for one device, ... */
    uint64_t device;
    uint32_t proc;         /* ... or of memory, if length is not 0 */
    uint64_t addr;
    uint64_t length;
} emu_late_filter_t;

static int emu_late_fits(const emu_late_t *late,
                         const emu_late_filter_t *filter)
{
    if (!late->used) {
        return 0;
    }
    if (filter->by_server) {
        return (late->proc == emu_self->index) ||
               (late->adder == emu_self->index);
    }
    if (filter->by_device && (late->device != filter->device)) {
        return 0;
    }
    if (filter->by_port) {
        return late->port == filter->port;
    }
    if (filter->length > 0) {
        return (late->proc == filter->proc) &&
               (late->addr < filter->addr + filter->length) &&
               (filter->addr < late->addr + late->length);
    }
    return late->qpn == filter->qpn;
}

/* late_lock is held. The first in time, and so the first of its queue pair */
static emu_late_t *emu_late_first(const emu_late_filter_t *filter)
{
    emu_late_t *first = NULL;
    emu_late_t *late;

    for (late = emu_fabric->lates; late < emu_fabric->lates + EMU_MAX_LATE;
         ++late) {
        if (emu_late_fits(late, filter) &&
            ((first == NULL) || (late->due_ns < first->due_ns) ||
             ((late->due_ns == first->due_ns) &&
              (late->order < first->order)))) {
            first = late;
        }
    }

    return first;
}

static void emu_late_flush(const emu_late_filter_t *filter)
{
    emu_late_t *late;

    emu_lock(&emu_fabric->late_lock);
    while ((late = emu_late_first(filter)) != NULL) {
        emu_late_place(late);
    }
    emu_unlock(&emu_fabric->late_lock);
}

void emu_late_flush_qp(uint32_t qpn)
{
    const emu_late_filter_t filter = { .qpn = qpn };

    if (emu_late_any()) {
        emu_late_flush(&filter);
    }
}

void emu_late_flush_qp_host(uint32_t qpn)
{
    const emu_late_filter_t filter = { .by_device = 1, .qpn = qpn };

    if (emu_late_any()) {
        emu_late_flush(&filter);
    }
}

void emu_late_flush_before(uint32_t port, uint32_t qpn, uint64_t device)
{
    emu_late_filter_t filter = { .by_device = 1, .device = device, .port = port,
                                 .qpn = qpn };

    if (emu_late_any()) {
        filter.by_port = !emu_quirk_value(port, EMU_QUIRK_LATE_WRITE, EMU_LATE_PASSED);
        emu_late_flush(&filter);
    }
}

void emu_late_flush_memory(uint32_t proc, uint64_t addr, uint64_t length)
{
    const emu_late_filter_t filter = { .proc = proc, .addr = addr,
                                       .length = length };

    if (emu_late_any() && (length > 0)) {
        emu_late_flush(&filter);
    }
}

static void emu_late_timer(void *arg, uint64_t cookie)
{
    (void)arg;
    (void)cookie;
    emu_late_serve();
}

void emu_late_serve(void)
{
    const emu_late_filter_t filter = { .by_server = 1 };
    uint64_t due_ns                = 0;
    emu_late_t *late;

    if (!emu_late_any()) {
        return;
    }

    do {
        emu_lock(&emu_fabric->late_lock);
        late = emu_late_first(&filter);
        if ((late != NULL) && (late->due_ns > emu_now_ns())) {
            due_ns = late->due_ns;
            late   = NULL;
        } else if (late != NULL) {
            emu_late_place(late);
        }
        emu_unlock(&emu_fabric->late_lock);
    } while (late != NULL);

    if (due_ns != 0) {
        (void)emu_svc_add(due_ns, emu_late_timer, NULL, 0);
    }
}

/* late_lock is held. @return A free entry, or NULL; when the queue pair's last one is
 * due; whether it will be handled anyway */
static emu_late_t *emu_late_find_room(uint32_t qpn, uint64_t *due_p,
                                      int *is_served_p)
{
    emu_late_t *room = NULL;
    emu_late_t *late;

    for (late = emu_fabric->lates; late < emu_fabric->lates + EMU_MAX_LATE;
         ++late) {
        if (!late->used) {
            room = (room == NULL) ? late : room;
        } else if ((late->qpn == qpn) && (late->adder == emu_self->index)) {
            *due_p       = emu_max(*due_p, late->due_ns);
            *is_served_p = 1;
        }
    }

    return room;
}

static uint64_t emu_late_delay_ns(uint32_t port)
{
    uint64_t max = emu_quirk_value(port, EMU_QUIRK_LATE_WRITE,
                                   EMU_LATE_TIME);

    return emu_scaled_ns(emu_quirk_draw(port, EMU_QUIRK_LATE_WRITE) %
                         (max + 1));
}

int emu_late_add(const emu_late_t *what, const struct iovec *src,
                 unsigned num_src)
{
    emu_fabric_t *f  = emu_fabric;
    uint64_t now_ns  = emu_now_ns();
    uint64_t due_ns  = now_ns + emu_late_delay_ns(what->port);
    int is_served    = 0;
    int ret          = -ENOSPC;
    struct iovec dst = { NULL, what->length };
    emu_late_t *late;

    emu_lock(&f->late_lock);
    late = emu_late_find_room(what->qpn, &due_ns, &is_served);
    if (late != NULL) {
        dst.iov_base = emu_late_payload(late);
        ret = emu_mem_put(emu_self->index, &dst, 1, src, num_src,
                          what->length);
    }
    if (ret == 0) {
        *late             = *what; /* used is 0 in it */
        late->proc_gen    = f->procs[what->proc].gen;
        late->adder       = emu_self->index;
        late->order       = f->late_order++;
        late->accepted_ns = now_ns;
        late->due_ns      = due_ns;
        __atomic_fetch_add(&f->num_late, 1, __ATOMIC_RELEASE);
        late->used        = 1;
    }
    emu_unlock(&f->late_lock);

    if ((ret == 0) && !is_served) {
        /* Both look for the next when they have placed this one */
        emu_svc_nudge(&f->procs[what->proc]);
        (void)emu_svc_add(due_ns, emu_late_timer, NULL, 0);
    }
    return ret;
}
