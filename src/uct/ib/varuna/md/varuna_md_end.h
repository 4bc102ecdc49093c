/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Since when a NIC that is gone, or may be, does nothing more. The driver raises DEVICE_FATAL
 * *before* it resets the device, which may send and write until then. Commands of the context
 * that carries data fail once the driver has taken the device away, also if the event got lost
 * or nobody listens to it.
 */
#ifndef UCT_VARUNA_MD_END_H_
#define UCT_VARUNA_MD_END_H_

#include "varuna_md.h"

/**
 * Ask the NIC, on its own thread, unless it was found to have ended before.
 *
 * @return When a command failed, as far as is known by now; 0: none has. To be called until
 *         it returns something else. A NIC that has no memory domain here ended long ago. Never
 *         waits. Any thread.
 */
ucs_time_t uct_varuna_md_ended_at(uct_varuna_md_t *md, unsigned nic);

/** @return Whether it is known by now, without asking, that the NIC has ended. Any thread. */
int uct_varuna_md_has_ended(const uct_varuna_md_t *md, unsigned nic);

/** @return Whether all that it had sent and accepted has had a @a lifetime since then. */
static inline int uct_varuna_md_is_at_rest(uct_varuna_md_t *md, unsigned nic, ucs_time_t now,
                                           ucs_time_t lifetime)
{
    ucs_time_t ended_at = uct_varuna_md_ended_at(md, nic);

    return (ended_at != 0) && (now >= (ended_at + lifetime));
}

/** Release what was made for that. @param [in] is_left  The NIC's thread still
 *  uses it. */
void uct_varuna_md_end_release(uct_varuna_md_t *md, unsigned nic, int is_left);

#endif
