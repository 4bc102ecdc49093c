/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Entries of the emulator's trace, as "mlx5emu trace --json" prints them.
 */
#ifndef FT_TRACE_H_
#define FT_TRACE_H_

#include <stdint.h>

typedef struct {
    uint64_t seq;
    unsigned host;
    unsigned link;
    unsigned src_host;
    uint32_t src_qpn;
    uint64_t qp_id;       /* Of the requester's queue pair, unique in the fabric */
    uint64_t request;     /* Number, unique for this queue pair; grows also at a reset */
    uint32_t psn;         /* Of its last packet */
    uint64_t addr;
    uint64_t length;
    uint64_t data;        /* Of an atomic: the previous value */
    uint64_t compare;
    uint64_t swap;
    int      is_write;
    int      is_cas;
    int      is_rc;
    int      duplicate;
    int      partial;
    int      last;
    int      is_quirk;    /* Nothing was executed: a quirk acted */
    int      is_early;    /* Placed before a predecessor, or after a successor */
    int      acked;       /* Its response was sent */
} ft_entry_t;

/** Read the next line. *text_p is first the begin of the text, which is modified. A
 *  trace that is damaged or incomplete ends the driver. @return 0 at the end. */
int ft_trace_next(char **text_p, ft_entry_t *entry);

#endif
