/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * For how long a fabric may delay a packet, as far as a port knows it. Pure.
 */
#ifndef UCT_VARUNA_LIFETIME_H_
#define UCT_VARUNA_LIFETIME_H_

#include "varuna_def.h"

#include <ucs/sys/math.h>

/* A subnet manager sets an exponent of 5 bits: the time is 4.096 us times a power of
 * two, and at most this one (seconds) */
#define UCT_VARUNA_LIFETIME_UNIT     4.096e-6
#define UCT_VARUNA_LIFETIME_MAX_EXP  31
#define UCT_VARUNA_LIFETIME_MAX \
    (UCT_VARUNA_LIFETIME_UNIT * UCS_BIT(UCT_VARUNA_LIFETIME_MAX_EXP))

/* If nothing is known: longer than a PFC watchdog of RoCE waits before it drops paused
 * packets */
#define UCT_VARUNA_LIFETIME_UNKNOWN  2.0

/**
 * @param [in] is_ib           The port's link layer is InfiniBand.
 * @param [in] subnet_timeout  Exponent from the port's attributes, which the subnet
 *                             manager sets: the longest delay to any port of the subnet.
 *                             0: it has set none.
 *
 * @return Seconds.
 */
static inline double uct_varuna_lifetime(int is_ib, unsigned subnet_timeout)
{
    return (!is_ib || (subnet_timeout == 0)) ? UCT_VARUNA_LIFETIME_UNKNOWN :
           (UCT_VARUNA_LIFETIME_UNIT *
            UCS_BIT(ucs_min(subnet_timeout, UCT_VARUNA_LIFETIME_MAX_EXP)));
}

#endif
