/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The table of fault rules in shared memory, and what fires beyond the fate of
 * a packet. See emu_fault.h.
 */

#include "emu_fault.h"
#include "../core/emu_nic.h"
#include "../core/emu_port.h"
#include "../core/emu_qp.h"

#include <errno.h>
#include <string.h>

static const emu_link_state_t emu_fault_link_states[EMU_FAULT_ACTION_LAST] = {
    [EMU_FAULT_ACTION_DOWN]   = EMU_LINK_DOWN,
    [EMU_FAULT_ACTION_SILENT] = EMU_LINK_SILENT,
    [EMU_FAULT_ACTION_UP]     = EMU_LINK_UP
};

static void emu_fault_do_change(const emu_fault_change_t *change)
{
    emu_link_mark(change->host, change->index, change->op != EMU_FAULT_ACTION_UP);
    switch (change->op) {
    case EMU_FAULT_ACTION_KILL:
    case EMU_FAULT_ACTION_KILL_SILENT:
        (void)emu_nic_kill(change->host, change->index,
                           change->op == EMU_FAULT_ACTION_KILL);
        break;
    case EMU_FAULT_ACTION_FLAP:
        emu_link_flap(change->host, change->index, change->flap_ns,
                      change->flap_ppm);
        break;
    default:
        emu_link_set(change->host, change->index,
                     emu_fault_link_states[change->op]);
        break;
    }
}

static void emu_fault_do_hang(uint32_t qpn)
{
    emu_qp_t *qp = emu_qp_find(qpn);

    if (qp != NULL) {
        __atomic_store_n(&qp->req_hung, 1, __ATOMIC_RELEASE);
    }
}

void emu_fault_check(const emu_fault_event_t *event,
                     emu_fault_verdict_t *verdict_p)
{
    emu_fabric_t *f = emu_fabric;
    unsigned i;

    emu_lock(&f->fault_lock);
    emu_fault_rules_apply(f->fault_rules, EMU_FAULT_MAX_RULES, event,
                          verdict_p);
    emu_unlock(&f->fault_lock);

    for (i = 0; i < verdict_p->num_changes; ++i) {
        emu_fault_do_change(&verdict_p->changes[i]);
    }
    if (verdict_p->hang) {
        emu_fault_do_hang(event->qpn);
    }
}

/* How often rules of a name have fired */
static uint64_t emu_fault_fired(const char *name)
{
    emu_fabric_t *f = emu_fabric;
    uint64_t fired  = 0;
    unsigned i;

    emu_lock(&f->fault_lock);
    for (i = 0; i < EMU_FAULT_MAX_RULES; i++) {
        if ((f->fault_rules[i].id != 0) &&
            !strcmp(f->fault_rules[i].name, name)) {
            fired += f->fault_rules[i].fired;
        }
    }
    emu_unlock(&f->fault_lock);
    return fired;
}

uint64_t emu_fault_wait_begin(const emu_fault_wait_t *wait, uint32_t qpn)
{
    const emu_qp_t *qp = emu_qp_find(qpn);

    switch (wait->until) {
    case EMU_FAULT_UNTIL_RULE:
        return emu_fault_fired(wait->name);
    case EMU_FAULT_UNTIL_POST:
        return (qp == NULL) ? 0 : __atomic_load_n(&qp->ops, __ATOMIC_ACQUIRE);
    default:
        return 0;
    }
}

int emu_fault_wait_over(const emu_fault_wait_t *wait, uint32_t qpn,
                        uint64_t begin)
{
    const emu_qp_t *qp = emu_qp_find(qpn);
    emu_port_t *port;

    switch (wait->until) {
    case EMU_FAULT_UNTIL_RULE:
        return !emu_fault_active() || (emu_fault_fired(wait->name) > begin);
    case EMU_FAULT_UNTIL_LINK:
        port = emu_port_get(wait->host, wait->link);
        return (port == NULL) ||
               (__atomic_load_n(&port->link_state, __ATOMIC_ACQUIRE) ==
                emu_fault_link_states[wait->state]);
    case EMU_FAULT_UNTIL_POST:
        return (qp == NULL) || (__atomic_load_n(&qp->ops, __ATOMIC_ACQUIRE) >=
                                begin + wait->num);
    default:
        return 1;
    }
}

int emu_fault_need_split(unsigned host, unsigned link)
{
    emu_fabric_t *f = emu_fabric;
    int ret;

    emu_lock(&f->fault_lock);
    ret = emu_fault_rules_need_split(f->fault_rules, EMU_FAULT_MAX_RULES, host,
                                     link);
    emu_unlock(&f->fault_lock);
    return ret;
}

int emu_fault_add(const emu_fault_rule_t *rule)
{
    emu_fabric_t *f = emu_fabric;
    int ret         = -ENOSPC;
    unsigned i;

    emu_lock(&f->fault_lock);
    for (i = 0; i < EMU_FAULT_MAX_RULES; i++) {
        if (f->fault_rules[i].id == 0) {
            f->fault_rules[i]    = *rule;
            f->fault_rules[i].id = f->fault_next_id++;
            if (!rule->have_seed) {
                f->fault_rules[i].seed =
                        emu_fault_derive_seed(f->cfg.seed,
                                              f->fault_rules[i].id);
                f->fault_rules[i].have_seed = 1;
            }
            ret                  = f->fault_rules[i].id;
            __atomic_fetch_add(&f->fault_active, 1, __ATOMIC_SEQ_CST);
            break;
        }
    }
    emu_unlock(&f->fault_lock);
    return ret;
}

int emu_fault_clear(uint32_t id)
{
    emu_fabric_t *f = emu_fabric;
    int count       = 0;
    unsigned i;

    emu_lock(&f->fault_lock);
    for (i = 0; i < EMU_FAULT_MAX_RULES; i++) {
        if ((f->fault_rules[i].id != 0) &&
            ((id == 0) || (f->fault_rules[i].id == id))) {
            memset(&f->fault_rules[i], 0, sizeof(f->fault_rules[i]));
            __atomic_fetch_sub(&f->fault_active, 1, __ATOMIC_SEQ_CST);
            count++;
        }
    }
    emu_unlock(&f->fault_lock);
    return ((count == 0) && (id != 0)) ? -ENOENT : count;
}

unsigned emu_fault_list(emu_fault_rule_t *rules, unsigned max)
{
    emu_fabric_t *f = emu_fabric;
    unsigned count  = 0;
    unsigned i;

    emu_lock(&f->fault_lock);
    for (i = 0; (i < EMU_FAULT_MAX_RULES) && (count < max); i++) {
        if (f->fault_rules[i].id != 0) {
            rules[count++] = f->fault_rules[i];
        }
    }
    emu_unlock(&f->fault_lock);
    return count;
}
