/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What is done now and then in the main thread: link states, the background scan
 * over the endpoints, requests which hang; and the timer that wakes an application
 * which sleeps although something of that is due.
 */
#ifndef UCT_VARUNA_WATCH_H_
#define UCT_VARUNA_WATCH_H_

#include "varuna_iface.h"

/* Time between two scans, seconds; more if the application calls progress less often */
#define UCT_VARUNA_SCAN_PERIOD  1e-3

ucs_status_t uct_varuna_watch_init(uct_varuna_iface_t *iface,
                                   const uct_varuna_iface_config_t *config);

void uct_varuna_watch_cleanup(uct_varuna_iface_t *iface);

/** Listen to what is said from outside (rc_varuna.h). */
void uct_varuna_watch_start(uct_varuna_iface_t *iface,
                            const uct_varuna_iface_config_t *config);

void uct_varuna_watch_stop(uct_varuna_iface_t *iface);

/** Obey it. */
void uct_varuna_watch_outside(uct_varuna_iface_t *iface, ucs_time_t now);

/** Look at some endpoints, if it is time to. */
void uct_varuna_watch_scan(uct_varuna_iface_t *iface, ucs_time_t now);

/** The oldest request of an endpoint is watched from now on. */
void uct_varuna_watch_restart(uct_varuna_ep_t *ep);

/** The application is about to sleep: set the timer, if we need one. */
ucs_status_t uct_varuna_watch_arm(uct_varuna_iface_t *iface);

#endif
