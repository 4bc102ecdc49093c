/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Modes of atomics (docs/ATOMICS.md): facts that memory domains, keys and lanes ask for, and
 * what a target keeps in mode proxy. iface/varuna_modes.c says which code serves a mode.
 */
#ifndef UCT_VARUNA_AMO_MODE_H_
#define UCT_VARUNA_AMO_MODE_H_

#include "varuna_wire.h"

typedef struct uct_varuna_atomic_mode_info {
    uint8_t                    by_cpu;    /* The target's CPU executes atomics, by
                                             tokens of regions */
    uint8_t                    by_home;   /* One NIC of the target executes them: it needs
                                             DC and host memory, and no NIC that was away
                                             is used again */
    uint8_t                    is_built;  /* 0: by configure's choice */
} uct_varuna_atomic_mode_info_t;

/* By uct_varuna_atomic_mode_t */
extern const uct_varuna_atomic_mode_info_t uct_varuna_atomic_modes[];
extern const char *uct_varuna_atomic_mode_names[];

/* --- Kept results of atomics --- */

/* What a target keeps of the atomics that one requester has asked for (mode proxy): the
 * number of the next one, and the results that the requester has not acknowledged. Pure;
 * test/models/proxy.pml has the same rules.
 *
 *      discarded | kept: executed, not acknowledged | next | later
 *     -----------+----------------------------------+------+----------->
 *                ^ acked                            ^ next      number
 *                +---------- at most WINDOW --------+ */

typedef enum {
    UCT_VARUNA_AMO_KEPT_RESULT,  /* It was executed, its result is kept */
    UCT_VARUNA_AMO_KEPT_NEXT,    /* It is to be executed now */
    UCT_VARUNA_AMO_KEPT_LATER,   /* Earlier ones have not arrived: it will be sent
                                    again */
    UCT_VARUNA_AMO_KEPT_REFUSE   /* Its result was discarded, or it is beyond the
                                    window: it is never executed */
} uct_varuna_amo_kept_verdict_t;

typedef struct uct_varuna_amo_kept {
    uint64_t                   next;      /* To be executed, from 1 */
    uint64_t                   acked;     /* Results before it were discarded */
    uct_varuna_ctl_atomic_result_t results[UCT_VARUNA_AMO_WINDOW];
} uct_varuna_amo_kept_t;

void uct_varuna_amo_kept_init(uct_varuna_amo_kept_t *kept);

/** The requester has all results before @a acked: discard them. A lower number than
 *  before comes from an old message. */
void uct_varuna_amo_kept_ack(uct_varuna_amo_kept_t *kept, uint64_t acked);

/** @return What to do with the request @a number. */
uct_varuna_amo_kept_verdict_t
uct_varuna_amo_kept_check(const uct_varuna_amo_kept_t *kept, uint64_t number);

/** The result of a number whose verdict is RESULT. */
static inline const uct_varuna_ctl_atomic_result_t *
uct_varuna_amo_kept_result(const uct_varuna_amo_kept_t *kept, uint64_t number)
{
    return &kept->results[number % UCT_VARUNA_AMO_WINDOW];
}

/** Keep the result of the request whose verdict is NEXT. */
void uct_varuna_amo_kept_add(uct_varuna_amo_kept_t *kept,
                             const uct_varuna_ctl_atomic_result_t *result);

#endif
