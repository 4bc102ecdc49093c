/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the NICs of a test's fabric do differently: RC_VARUNA_QUIRK, a list as
 * "mlx5emu up --quirk" takes it. Jobs and judges expect no more than such NICs promise,
 * and no less.
 */
#ifndef FT_QUIRK_H_
#define FT_QUIRK_H_

/** @return Whether the fabric has this quirk. */
int ft_quirk_is_on(const char *name);

/** @return Whether PSNs cannot be queried, or are old: psn-lost, psn-stale. */
int ft_quirk_has_no_psn(void);

/** @return Whether the packets of all queue pairs may be placed in another order:
 *  ooo-all. With ooo rc_varuna can choose a service level that keeps the order, unless dead-sl
 *  loses what is sent there. */
int ft_quirk_has_no_order(void);

/** @return How many seconds after its acknowledgement a write may reach memory, on a
 *  machine that is not busy; 0 without late-write. */
double ft_quirk_late_time(void);

#endif
