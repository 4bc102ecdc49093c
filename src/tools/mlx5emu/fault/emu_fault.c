/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The fault rules of a fabric: the table in shared memory, and what is done
 * about an event. Called by proto/ and wire/ (check) and by the command.
 */

#include "emu_fault.h"

#include <errno.h>
#include <string.h>


void emu_fault_check(const emu_fault_event_t *event,
                     emu_fault_verdict_t *verdict_p)
{
    static const emu_link_state_t states[] = {
        [EMU_FAULT_ACTION_DOWN]   = EMU_LINK_DOWN,
        [EMU_FAULT_ACTION_SILENT] = EMU_LINK_SILENT,
        [EMU_FAULT_ACTION_UP]     = EMU_LINK_UP
    };

    emu_lock(&emu_fabric->fault_lock);
    emu_fault_rules_apply(emu_fabric->fault_rules, emu_fabric->fault_active,
                          event, verdict_p);
    emu_unlock(&emu_fabric->fault_lock);

    /* Out of the lock: raises events. Host and link were checked when the rule
     * was loaded. */
    if (verdict_p->link_op != EMU_FAULT_ACTION_NONE) {
        (void)emu_link_set(verdict_p->link_host, verdict_p->link_index,
                           states[verdict_p->link_op]);
    }
}

int emu_fault_need_split(unsigned host, unsigned link)
{
    int ret;

    emu_lock(&emu_fabric->fault_lock);
    ret = emu_fault_rules_need_split(emu_fabric->fault_rules,
                                     emu_fabric->fault_active, host, link);
    emu_unlock(&emu_fabric->fault_lock);
    return ret;
}

/* Rules lie at the start of the table, in the order of their ids: so is their
 * precedence. Called with the lock held, after a change. */
static void emu_fault_table_changed(unsigned num_rules)
{
    memset(&emu_fabric->fault_rules[num_rules], 0,
           (EMU_FAULT_MAX_RULES - num_rules) *
           sizeof(emu_fabric->fault_rules[0]));
    __atomic_store_n(&emu_fabric->fault_active, num_rules, __ATOMIC_RELEASE);
}

int emu_fault_add(const emu_fault_rule_t *rule)
{
    int ret = -ENOSPC;
    unsigned num_rules;

    emu_lock(&emu_fabric->fault_lock);
    num_rules = emu_fabric->fault_active;
    if (num_rules < EMU_FAULT_MAX_RULES) {
        ret                                   = ++emu_fabric->fault_next_id;
        emu_fabric->fault_rules[num_rules]    = *rule;
        emu_fabric->fault_rules[num_rules].id = ret;
        emu_fault_table_changed(num_rules + 1);
    }

    emu_unlock(&emu_fabric->fault_lock);
    return ret;
}

int emu_fault_clear(uint32_t id)
{
    unsigned num_kept    = 0;
    unsigned num_cleared = 0;
    unsigned i;

    emu_lock(&emu_fabric->fault_lock);
    for (i = 0; i < emu_fabric->fault_active; ++i) {
        if ((id == 0) || (emu_fabric->fault_rules[i].id == id)) {
            ++num_cleared;
        } else {
            emu_fabric->fault_rules[num_kept++] = emu_fabric->fault_rules[i];
        }
    }

    emu_fault_table_changed(num_kept);
    emu_unlock(&emu_fabric->fault_lock);
    return ((num_cleared == 0) && (id != 0)) ? -ENOENT : (int)num_cleared;
}

unsigned emu_fault_list(emu_fault_rule_t *rules, unsigned max)
{
    unsigned num_rules;

    emu_lock(&emu_fabric->fault_lock);
    num_rules = emu_min(emu_fabric->fault_active, max);
    memcpy(rules, emu_fabric->fault_rules, num_rules * sizeof(*rules));
    emu_unlock(&emu_fabric->fault_lock);
    return num_rules;
}
