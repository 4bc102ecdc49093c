/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_quirk.h.
 */

#include "emu_quirk.h"
#include "../rules/emu_fault_rule.h"
#include "../trace/emu_trace.h"

#include <errno.h>
#include <string.h>

/* Seeds of quirks are those of fault rules with ids that no rule has */
#define EMU_QUIRK_FIRST_SEED 0x80000000u

static uint64_t emu_quirk_bit(emu_quirk_t quirk)
{
    return 1ul << quirk;
}

void emu_quirk_act(uint32_t port, emu_quirk_t quirk, uint32_t qpn, uint64_t id,
                   uint64_t value)
{
    emu_fabric_t *f = emu_fabric;
    emu_trace_entry_t entry;

    __atomic_fetch_add(&f->quirks[port].counts[quirk], 1, __ATOMIC_RELAXED);
    if (f->cfg.trace_entries == 0) {
        return;
    }

    memset(&entry, 0, sizeof(entry));
    entry.op       = EMU_TRACE_QUIRK;
    entry.host     = port / f->cfg.links;
    entry.link     = port % f->cfg.links;
    entry.src_host = entry.host;
    entry.qpn      = qpn;
    entry.src_qpn  = qpn;
    entry.id       = id;
    entry.data     = value;
    entry.arg[0]   = quirk;
    entry.time_ns  = emu_now_ns() - f->start_ns;
    emu_trace_add(f->trace, &entry);
}

uint64_t emu_quirk_draw(uint32_t port, emu_quirk_t quirk)
{
    emu_fabric_t *f = emu_fabric;
    uint32_t id     = EMU_QUIRK_FIRST_SEED + quirk * EMU_MAX_PORTS + port;
    uint64_t number = __atomic_add_fetch(&f->quirks[port].draws[quirk], 1,
                                         __ATOMIC_RELAXED);

    return emu_fault_random(emu_fault_derive_seed(f->cfg.seed, id), number);
}

uint64_t emu_quirk_count(uint32_t port, emu_quirk_t quirk)
{
    return __atomic_load_n(&emu_fabric->quirks[port].counts[quirk],
                           __ATOMIC_RELAXED);
}

static int emu_quirk_has_place(const emu_quirk_rule_t *rule)
{
    return ((rule->host == EMU_QUIRK_ANY) ||
            (rule->host < emu_fabric->cfg.hosts)) &&
           ((rule->link == EMU_QUIRK_ANY) ||
            (rule->link < emu_fabric->cfg.links));
}

static int emu_quirk_selects(const emu_quirk_rule_t *rule, uint32_t port)
{
    uint32_t links = emu_fabric->cfg.links;

    return ((rule->host == EMU_QUIRK_ANY) || (rule->host == port / links)) &&
           ((rule->link == EMU_QUIRK_ANY) || (rule->link == port % links));
}

/* quirk_lock is held. Values first: a reader that finds the quirk on reads them. */
static void emu_quirk_set_port(emu_quirk_port_t *port,
                               const emu_quirk_rule_t *rule)
{
    unsigned i;

    for (i = 0; i < EMU_QUIRK_MAX_VALUES; ++i) {
        __atomic_store_n(&port->values[rule->quirk][i], rule->values[i],
                         __ATOMIC_RELAXED);
    }
    __atomic_fetch_or(&port->on, emu_quirk_bit(rule->quirk), __ATOMIC_SEQ_CST);
}

int emu_quirk_add(const emu_quirk_rule_t *rule)
{
    emu_fabric_t *f = emu_fabric;
    uint32_t port;

    if (!emu_quirk_has_place(rule)) {
        return -EINVAL;
    }

    emu_lock(&f->quirk_lock);
    for (port = 0; port < f->cfg.hosts * f->cfg.links; ++port) {
        if (emu_quirk_selects(rule, port)) {
            emu_quirk_set_port(&f->quirks[port], rule);
        }
    }
    emu_unlock(&f->quirk_lock);
    return 0;
}

int emu_quirk_remove(const emu_quirk_rule_t *rule)
{
    emu_fabric_t *f = emu_fabric;
    uint64_t bit    = emu_quirk_bit(rule->quirk);
    uint64_t was_on = 0;
    uint32_t port;

    if (!emu_quirk_has_place(rule)) {
        return -EINVAL;
    }

    emu_lock(&f->quirk_lock);
    for (port = 0; port < f->cfg.hosts * f->cfg.links; ++port) {
        if (emu_quirk_selects(rule, port)) {
            was_on |= __atomic_fetch_and(&f->quirks[port].on, ~bit,
                                         __ATOMIC_SEQ_CST) & bit;
        }
    }
    emu_unlock(&f->quirk_lock);
    return (was_on != 0) ? 0 : -ENOENT;
}
