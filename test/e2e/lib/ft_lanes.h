/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The lanes of a trace, and what their responders have accepted. A lane is a requester's
 * queue pair from one reset to the next: DC initiators are reset and used again, with
 * the same number and the same PSNs. The trace does not contain resets. But it has the
 * number of each request, which never returns, and between two resets a later request
 * has later PSNs.
 *
 *     ft_lanes_learn(trace, 0);
 *     lane = ft_lanes_find(&entry);        for an entry of the trace
 *     ft_lanes_forget();
 */
#ifndef FT_LANES_H_
#define FT_LANES_H_

#include "ft_trace.h"

typedef struct ft_lane ft_lane_t;

/** Learn the lanes to this host from a trace, which is not modified. */
void ft_lanes_learn(const char *trace, unsigned host);

/** Free the memory. */
void ft_lanes_forget(void);

/** @return The lane of an entry, or NULL if the entry executed nothing. */
const ft_lane_t *ft_lanes_find(const ft_entry_t *entry);

/** @return Whether the responder has certainly accepted this PSN at the end of the trace:
 *  all packets before it came, too. */
int ft_lane_has_accepted(const ft_lane_t *lane, uint32_t psn);

/** @return The difference of two PSNs. */
static inline int32_t ft_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

#endif
