/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * This process's home NIC, for the modes of atomics that have one: its name, and an interface's
 * part in it, which takes part in the choice, and reaches the NIC by a loopback.
 */
#ifndef UCT_VARUNA_HOME_NIC_H_
#define UCT_VARUNA_HOME_NIC_H_

#include <uct/ib/varuna/core/varuna_wire.h>

#include <ucs/datastruct/list.h>
#include <ucs/time/time.h>

/* --- The name of the home NIC --- */

/* All interfaces of this process have the same one (docs/ATOMICS.md, rule 12), because they
 * share memory. It changes in two steps: while MOVING
 * there is none, until each interface has reported that the old NIC can execute nothing
 * of its own any more.
 *
 *   SETTLED(nic, epoch) -> MOVING(none, epoch + 1) -> SETTLED(other, epoch + 2)
 *
 * Used by varuna_home_nic.c and varuna_home_move.c, from the async contexts of several
 * interfaces. It knows nothing of queue pairs. */

/* An interface. Fields are under a lock of all interfaces. */
typedef struct uct_varuna_home_member {
    ucs_list_link_t            list;
    int                        kick_fd;   /* Written to when it has to act */
    uint8_t                    nic_map;   /* NICs which it can use as the home */
    uint8_t                    at_rest;   /* Has left the old NIC */
    unsigned                   in_use;    /* Connections which use the home NIC */
} uct_varuna_home_member_t;

typedef struct uct_varuna_home_name {
    uint8_t                    nic;       /* HOME_NONE: moving */
    uint8_t                    from;      /* Moving: the old one, */
    uint8_t                    to;        /* ... and the next one */
    uint8_t                    first;     /* To which it returns */
    uint32_t                   epoch;     /* Goes up with each change */
} uct_varuna_home_name_t;

/**
 * Begin to take part.
 *
 * @param [in] nic      The home NIC that it proposes; only the first member's proposal
 *                      counts.
 * @param [in] nic_map  NICs which it can use as the home.
 * @param [in] kick_fd  Event file descriptor.
 */
void uct_varuna_home_name_join(uct_varuna_home_member_t *member, uint8_t nic,
                               uint8_t nic_map, int kick_fd);

/** Leave: its queue pairs are gone, or will not be used any more. */
void uct_varuna_home_name_leave(uct_varuna_home_member_t *member);

/** The name as it is now. */
void uct_varuna_home_name_get(uct_varuna_home_name_t *name);

/** The same, for peers. */
void uct_varuna_home_name_tell(uint8_t *nic_p, uint32_t *epoch_p);

/**
 * Report what @a member has seen. The home NIC begins to move if it has to, or if it may
 * return to the first one.
 *
 * @param [in] good_map  NICs that work.
 * @param [in] in_use    Connections that a return would end.
 * @param [in] now       The time.
 * @param [in] delay     Return after the first NIC has worked for so long; 0: never.
 *
 * @return Nonzero if it has begun to move.
 */
int uct_varuna_home_name_report(uct_varuna_home_member_t *member, uint8_t good_map,
                                unsigned in_use, ucs_time_t now, ucs_time_t delay);

/** Moving: nothing of @a member can be executed on the old NIC any more.
 *  @return Nonzero if it was the last one, so that there is a new name. */
int uct_varuna_home_name_rest(uct_varuna_home_member_t *member);

/** In a new child: the members are the parent's. */
void uct_varuna_home_name_forked(void);

/** @return Zero while it must leave a NIC. Without the lock, so for a look only. */
static inline int
uct_varuna_home_name_is_at_rest(const uct_varuna_home_member_t *member)
{
    return __atomic_load_n(&member->at_rest, __ATOMIC_RELAXED);
}

/* --- The part of an interface --- */

/* Lock held. */

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

/** Take part in the choice of this process's home NIC, unless that is done.
 *  @param [in] nics  Which may be it. */
void uct_varuna_home_nic_join(uct_varuna_home_nic_t *nic, uint8_t nics);

/** Destroy the loopback of @a link if it has failed, as soon as that is possible. */
void uct_varuna_home_nic_reap(uct_varuna_home_nic_t *nic, unsigned link);

/** Destroy it at once: the interface of @a link is about to be closed. */
void uct_varuna_home_nic_drop_loopback(uct_varuna_home_nic_t *nic, unsigned link);

/** @return Nonzero if the loopback of @a link can be used: it is opened if there is none. */
int uct_varuna_home_nic_use_loopback(uct_varuna_home_nic_t *nic, unsigned link);

/** Local index of the link whose NIC is @a index, UCT_VARUNA_LINK_NONE if it is none
 *  of ours. */
uint8_t uct_varuna_home_nic_find_link(const uct_varuna_home_nic_t *nic, uint8_t index);

#endif
