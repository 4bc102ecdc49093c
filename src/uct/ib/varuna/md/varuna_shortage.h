/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Something that a NIC has run out of: queue pairs, regions, address handles. A NIC that is
 * short of something is a slow one, not an error: others carry the traffic, and it is asked
 * again, less and less often (varuna_backoff.h). The user is told once.
 */
#ifndef UCT_VARUNA_SHORTAGE_H_
#define UCT_VARUNA_SHORTAGE_H_

#include <uct/ib/varuna/core/varuna_backoff.h>

/** All zeros: there is enough. No lock: callers bring one if they are several. */
typedef struct uct_varuna_shortage {
    uct_varuna_backoff_t       backoff;
} uct_varuna_shortage_t;

/** @return Whether the NIC is to be asked for one more at @a now. */
static inline int uct_varuna_shortage_may_ask(const uct_varuna_shortage_t *shortage,
                                              ucs_time_t now)
{
    return uct_varuna_backoff_is_due(&shortage->backoff, now);
}

/**
 * Note what it has answered.
 *
 * @param [in] what    What it was asked for, in the singular, for people.
 * @param [in] where   The NIC or port, for people.
 * @param [in] status  Of the try. What fails for the first time, or for another reason than
 *                     before, is a warning.
 * @param [in] now     The time.
 */
void uct_varuna_shortage_note(uct_varuna_shortage_t *shortage, const char *what,
                              const char *where, ucs_status_t status, ucs_time_t now);

#endif
