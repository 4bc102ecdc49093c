/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Quirks that are on: what each port has of them, in shared memory. The table
 * of all quirks is in rules/emu_quirk_rule.h.
 *
 * Called by: whatever a quirk changes (core/, proto/, wire/, verbs/, devx/), by
 * one call where it acts; ctl/ (add, remove, list, status). Ports are named by
 * their index (emu_port_t::index, emu_qp_t::port).
 */

#ifndef EMU_QUIRK_H_
#define EMU_QUIRK_H_

#include "emu_fabric.h"
#include "../rules/emu_quirk_rule.h"

/** Whether a port has a quirk: all that a run without quirks pays for. */
static inline int emu_quirk_on(uint32_t port, emu_quirk_t quirk)
{
    return emu_unlikely((__atomic_load_n(&emu_fabric->quirks[port].on,
                                         __ATOMIC_ACQUIRE) >> quirk) & 1);
}

/** A value of a quirk that is on, by its index in the table. */
static inline uint64_t emu_quirk_value(uint32_t port, emu_quirk_t quirk,
                                       unsigned index)
{
    return __atomic_load_n(&emu_fabric->quirks[port].values[quirk][index],
                           __ATOMIC_RELAXED);
}

/** A quirk acts: count it, and write it into the trace. @a qpn is the queue
 *  pair that it concerns, 0 for none; @a id the number of the request
 *  (emu_qp_t::ops), 0 for none; @a value whatever a reader of the trace should
 *  see. */
void emu_quirk_act(uint32_t port, emu_quirk_t quirk, uint32_t qpn, uint64_t id,
                   uint64_t value);

/** emu_quirk_act() if the port has the quirk. @return whether it has it. */
static inline int emu_quirk_hits(uint32_t port, emu_quirk_t quirk, uint32_t qpn,
                                 uint64_t id, uint64_t value)
{
    if (!emu_quirk_on(port, quirk)) {
        return 0;
    }

    emu_quirk_act(port, quirk, qpn, id, value);
    return 1;
}

/** The next random number of a quirk at a port. It depends on the seed of the
 *  fabric, the quirk, the port, and on how many were drawn before. */
uint64_t emu_quirk_draw(uint32_t port, emu_quirk_t quirk);

/** Switch a quirk on, or change its values. @return 0, or -EINVAL: there is no
 *  such place. */
int emu_quirk_add(const emu_quirk_rule_t *rule);

/** Switch it off. @return 0, -EINVAL, or -ENOENT: it is off there. */
int emu_quirk_remove(const emu_quirk_rule_t *rule);

/** How often a quirk has acted at a port. */
uint64_t emu_quirk_count(uint32_t port, emu_quirk_t quirk);

#endif
