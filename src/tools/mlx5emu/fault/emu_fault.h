/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The fault hook: where the engine shows events to the rules, and the table of
 * rules in shared memory.
 *
 * Called by: proto/ and wire/ (check), ctl/ (add, list, clear).
 */

#ifndef EMU_FAULT_H_
#define EMU_FAULT_H_

#include "../rules/emu_fault_rule.h"
#include "../core/emu_fabric.h"

/** Whether any rule is loaded: all that a run without faults pays for. */
static inline int emu_fault_active(void)
{
    return emu_unlikely(emu_fabric->fault_active != 0);
}

/** Show an event to the rules; carries out what is not about a packet: changes
 *  of links, deaths of NICs, queue pairs that hang. Call it only if
 *  emu_fault_active(). */
void emu_fault_check(const emu_fault_event_t *event,
                     emu_fault_verdict_t *verdict_p);

/** Where a wait begins: to be given to emu_fault_wait_over(). @a qpn is the
 *  requester's. */
uint64_t emu_fault_wait_begin(const emu_fault_wait_t *wait, uint32_t qpn);

/** Whether what is waited for has come, or never will. */
int emu_fault_wait_over(const emu_fault_wait_t *wait, uint32_t qpn,
                        uint64_t begin);

/** Whether packets from a host and link must travel one by one. */
int emu_fault_need_split(unsigned host, unsigned link);

/** Load a rule. @return its id, or -ENOSPC. */
int emu_fault_add(const emu_fault_rule_t *rule);

/** Unload rule @a id, or all of them (0). @return how many, or -ENOENT. */
int emu_fault_clear(uint32_t id);

/** Copy the loaded rules. @return how many. */
unsigned emu_fault_list(emu_fault_rule_t *rules, unsigned max);

#endif
