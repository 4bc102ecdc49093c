/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * NICs that die, and what they still do then: their commands fail, possibly late, and
 * their data path may go on for a while.
 *
 * Called by: ctl/ and fault/ (kill, revive); whatever is a command to the device
 * (core/, proto/, verbs/, devx/); the data path (proto/, wire/, completion queues).
 */

#ifndef EMU_NIC_H_
#define EMU_NIC_H_

#include "emu_port.h"

/** Open the device of this process's host on a link.
 *  @return 0, -ENODEV, -EIO (the NIC is dead), ... */
int emu_nic_open(unsigned link, emu_ctx_t **ctx_p);

/**
 * Kill or revive the NIC that a port belongs to: all ports, if one NIC has all links of a
 * host. Objects that were made on it before never work again; devices that are opened
 * after a revival do.
 *
 * @param [in] event  Whether programs get IBV_EVENT_DEVICE_FATAL.
 * @return 0, or -EALREADY if it is dead (or alive) already.
 */
int emu_nic_kill(unsigned host, unsigned link, int event);
int emu_nic_revive(unsigned host, unsigned link);

/**
 * Ask a NIC to carry out a command. The calling thread may have to wait for the
 * failure, as long as quirk slow-cmd has it; no lock may be held.
 *
 * @param [in] gen  emu_port_t::nic_gen when the object was made.
 *
 * @return 0, or -EIO: it is dead, or another one by now.
 */
int emu_nic_command(uint32_t port, uint32_t gen);

/**
 * The same for a transition of a queue pair to RESET or ERR, which quirk
 * fatal-writes may answer for the device.
 *
 * @param [out] is_done_p  Nonzero if success is reported to the program, whatever the
 *                         device does.
 */
int emu_nic_command_end(uint32_t port, uint32_t gen, uint32_t qpn, int *is_done_p);

/** Whether such a transition seems to succeed though the NIC is dead. */
int emu_nic_lies(uint32_t port, uint32_t gen);

/** Whether the data path of a NIC that died goes on. */
int emu_nic_lingers(uint32_t port, uint32_t gen);

/** Whether the data path of a NIC works: it lives, or goes on for a while. */
static inline int emu_nic_works(uint32_t port, uint32_t gen)
{
    return emu_likely(emu_nic_is(port, gen)) || emu_nic_lingers(port, gen);
}

/** Count a packet that a NIC should not have handled any more. */
void emu_nic_count_fatal(uint32_t port, uint32_t qpn, uint64_t id, uint32_t psn);

#endif
