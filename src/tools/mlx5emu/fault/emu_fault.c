/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The table of fault rules in shared memory. See emu_fault.h.
 */

#include "emu_fault.h"
#include "../core/emu_port.h"

#include <errno.h>
#include <string.h>

static void emu_fault_do_link(const emu_fault_verdict_t *verdict)
{
    static const emu_link_state_t states[EMU_FAULT_ACTION_LAST] = {
        [EMU_FAULT_ACTION_DOWN]   = EMU_LINK_DOWN,
        [EMU_FAULT_ACTION_SILENT] = EMU_LINK_SILENT,
        [EMU_FAULT_ACTION_UP]     = EMU_LINK_UP
    };

    emu_link_set(verdict->link_host, verdict->link_index,
                 states[verdict->link_op]);
}

void emu_fault_check(const emu_fault_event_t *event,
                     emu_fault_verdict_t *verdict_p)
{
    emu_fabric_t *f = emu_fabric;

    emu_lock(&f->fault_lock);
    emu_fault_rules_apply(f->fault_rules, EMU_FAULT_MAX_RULES, event,
                          verdict_p);
    emu_unlock(&f->fault_lock);

    if (verdict_p->link_op != EMU_FAULT_ACTION_NONE) {
        emu_fault_do_link(verdict_p);
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
