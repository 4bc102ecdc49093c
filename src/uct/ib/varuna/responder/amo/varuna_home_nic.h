/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An interface's part in this process's home NIC, for the modes of atomics that have one: it
 * takes part in the choice, and reaches the NIC by a loopback. Lock held.
 */
#ifndef UCT_VARUNA_HOME_NIC_H_
#define UCT_VARUNA_HOME_NIC_H_

#include "varuna_home_name.h"

/* A loopback: endpoint of a control interface to itself. */
typedef struct uct_varuna_loopback {
    struct uct_varuna_ctl_ep   *ep;       /* NULL: to be made */
    struct uct_varuna_ctl_ep   *dead;     /* Failed, to be destroyed */
    uint8_t                    in_err;    /* ep was moved to ERR */
    ucs_time_t                 gone_at;   /* When its NIC was gone; 0: it is not */
    ucs_time_t                 bad_until; /* It fails although the port is up */
    unsigned                   fails;     /* In a row */
} uct_varuna_loopback_t;

typedef struct uct_varuna_home_nic {
    uct_varuna_ctl_t           *ctl;
    int                        joined;    /* member is valid */
    uct_varuna_home_member_t   member;
    uct_varuna_loopback_t      loopbacks[UCT_VARUNA_MAX_LINKS]; /* By link */
} uct_varuna_home_nic_t;

void uct_varuna_home_nic_init(uct_varuna_home_nic_t *nic, uct_varuna_ctl_t *ctl);

/** Destroy the loopbacks, then leave. */
void uct_varuna_home_nic_cleanup(uct_varuna_home_nic_t *nic);

/** Take part in the choice of this process's home NIC, unless that is done. */
void uct_varuna_home_nic_join(uct_varuna_home_nic_t *nic);

/** @return Nonzero if the loopback of @a link can be used: it is opened if there is none. */
int uct_varuna_home_nic_use_loopback(uct_varuna_home_nic_t *nic, unsigned link);

/** Local index of the link whose NIC is @a index, UCT_VARUNA_LINK_NONE if it is none
 *  of ours. */
uint8_t uct_varuna_home_nic_find_link(const uct_varuna_home_nic_t *nic, uint8_t index);

#endif
