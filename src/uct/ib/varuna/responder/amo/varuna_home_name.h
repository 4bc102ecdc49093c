/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The name of this process's home NIC (docs/ATOMICS.md, rule 12): all of its interfaces
 * have the same one, because they share memory. It changes in two steps: while MOVING
 * there is none, until each interface has reported that the old NIC can execute nothing
 * of its own any more.
 *
 *   SETTLED(nic, epoch) -> MOVING(none, epoch + 1) -> SETTLED(other, epoch + 2)
 *
 * Used by varuna_home_nic.c and varuna_home_move.c, from the async contexts of several
 * interfaces. It knows nothing of queue pairs.
 */
#ifndef UCT_VARUNA_HOME_NAME_H_
#define UCT_VARUNA_HOME_NAME_H_

#include <uct/ib/varuna/core/varuna_wire.h>

#include <ucs/datastruct/list.h>
#include <ucs/time/time.h>

/* An interface. Fields are under the lock of varuna_home_name.c. */
typedef struct uct_varuna_home_member {
    ucs_list_link_t            list;
    int                        kick_fd;   /* Written to when it has to act */
    uint8_t                    nic_map;   /* NICs which it has */
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
 * @param [in] nic_map  NICs which it has.
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

#endif
