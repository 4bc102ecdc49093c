/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The NIC ports of this host which can be links: finding them through UCX's ib
 * component, and choosing among them by name.
 */
#ifndef UCT_VARUNA_NIC_H_
#define UCT_VARUNA_NIC_H_

#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/core/varuna_def.h>
#include <uct/ib/varuna/core/varuna_link.h>
#include <uct/ib/varuna/core/varuna_clock.h>

/* --- What a NIC is short of --- */

/* Something that a NIC has run out of: queue pairs, regions, address handles. A NIC that is
 * short of something is a slow one, not an error: others carry the traffic, and it is asked
 * again, less and less often (varuna_clock.h). The user is told once. */

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
 * @param [in] status  Of the try. The first refusal is a warning. Later ones are not, even with
 *                     another status: UCX's functions report one shortage in several ways.
 * @param [in] now     The time.
 */
void uct_varuna_shortage_note(uct_varuna_shortage_t *shortage, const char *what,
                              const char *where, ucs_status_t status, ucs_time_t now);

/* --- The NICs of this host --- */

/* In UCX_RC_VARUNA_LINKS: all ports that are not named */
#define UCT_VARUNA_LINKS_ALL         "all"

/* What a NIC may run out of. */
typedef enum {
    UCT_VARUNA_SHORT_QP,
    UCT_VARUNA_SHORT_MR,
    UCT_VARUNA_SHORT_AH,
    UCT_VARUNA_SHORT_LAST
} uct_varuna_short_t;

/* What is known of a NIC. */
typedef enum {
    UCT_VARUNA_NIC_WORKING,
    UCT_VARUNA_NIC_SHORT,      /* Of something; it is asked again */
    UCT_VARUNA_NIC_HUNG,       /* A command has been in progress for too long */
    UCT_VARUNA_NIC_DEAD,       /* The system has said so, or its commands fail */
    UCT_VARUNA_NIC_RESET,      /* It was dead, works again, and is about to be used again */
    UCT_VARUNA_NIC_LEAVING,    /* It is to be removed, and something uses it still */
    UCT_VARUNA_NIC_ABSENT,     /* It was removed: its device is closed */
    UCT_VARUNA_NIC_LAST
} uct_varuna_nic_state_t;

/* A life of a device begins when it is opened, see varuna_health.h. */
typedef enum {
    UCT_VARUNA_LIFE_OPEN,      /* Also if it is dead */
    UCT_VARUNA_LIFE_LEAVING,   /* It is to be removed: traffic leaves it */
    UCT_VARUNA_LIFE_ENDING,    /* Nothing begins to use it; it is closed when nothing does */
    UCT_VARUNA_LIFE_CLOSED,
    UCT_VARUNA_LIFE_BEGINNING  /* It is open again; existing regions are registered */
} uct_varuna_life_t;

/* Of the first port of a device. Lock of the memory domain. Owner: varuna_return.c */
typedef struct uct_varuna_nic_life {
    uint8_t                    state;     /* uct_varuna_life_t; atomic */
    uint8_t                    is_removed; /* By a command: it is not opened again before
                                             another one */
    uint8_t                    num_links; /* Open links of interfaces, and those of them that */
    uint8_t                    num_left;  /* no traffic uses any more, in this removal: */
    uint32_t                   removal;   /* its number, from 1 */
    unsigned                   users;     /* Open links, registrations of our own memory, and
                                             what is being done with regions */
} uct_varuna_nic_life_t;

/* A NIC port with all transports of a set. */
typedef struct uct_varuna_nic {
    const uct_varuna_set_t     *set;
    uct_md_h                   md;        /* Inner memory domain, shared by the
                                             ports of a device; NULL if this NIC
                                             is no link */
    uct_varuna_md_attr_t       md_attr;
    char                       md_name[UCT_MD_NAME_MAX];
    char                       dev_name[UCT_DEVICE_NAME_MAX]; /* "mlx5_0:1" */
    ucs_sys_device_t           sys_device;
    int                        is_link;   /* It was chosen */
    struct uct_varuna_cmds     *handles;  /* Address handles that may take a second, on
                                             Ethernet: no other command waits for them, and
                                             the NIC does not hang. Owner: varuna_health.c */
    int                        is_missing; /* Named, and not there: it keeps its place */
    int                        was_down;  /* When the memory domain was opened */
    uint8_t                    is_dead;   /* Atomic. Of the first port of a device.
                                             Owner: varuna_health.c */
    uct_mem_h                  spare;     /* Used in place of what a dead NIC could
                                             not register; NULL: not created yet */
    int                        is_barred; /* It has no spare, and regions exist without it.
                                             Of the first port of a device */
    uct_varuna_backoff_t       no_lanes;  /* Interfaces cannot be opened on it. Lock of
                                             the memory domain. Owner: varuna_lanes.c */
    uct_varuna_shortage_t      shortages[UCT_VARUNA_SHORT_LAST]; /* Of the first port of a
                                             device. Lock of the memory domain. Owner:
                                             varuna_health.c */
    uint8_t                    owner;     /* The first port of its device */
    uint16_t                   generation; /* How often its device was opened again. Lock of
                                             the memory domain; constant while a link is open.
                                             Owner of this and the next two: varuna_return.c */
    uct_varuna_nic_life_t      life;
    uint8_t                    is_told;   /* Atomic: that it works again, or why it is not
                                             used */
    int                        is_disabled; /* "all" does not mean it */
    int                        order_is_logged; /* Whether packets stay in order */
    int                        order_is_warned; /* ... and that they do not */
    int                        sl_move_is_logged;
    uint8_t                    no_device_is_logged; /* Atomic: it registers none of their
                                             memory. Owner: varuna_health.c */
} uct_varuna_nic_t;

/**
 * Open the memory domains of all devices which have ports that can be links, whether
 * they are up or not: the numbers of ports must not depend on that. A device which can't
 * be opened is left out, as UCX itself does.
 *
 * @param [in]  ib          Inner component.
 * @param [in]  lanes       Index in uct_varuna_lanes_names.
 * @param [out] nics_p      Ports by name in natural order. To be released by
 *                          ucs_free(), the memory domains by
 *                          uct_varuna_nics_close_unused().
 * @param [out] num_nics_p  Their number, may be 0.
 */
ucs_status_t uct_varuna_nics_open(uct_component_h ib, unsigned lanes,
                                  uct_varuna_nic_t **nics_p,
                                  unsigned *num_nics_p);

/**
 * Open one device anew. Any thread.
 *
 * @param [in]  set         Of its ports.
 * @param [in]  md_name     Of the device.
 * @param [out] nics_p      As for uct_varuna_nics_open(). There are none if it can't be opened.
 * @param [out] num_nics_p  Their number.
 */
ucs_status_t uct_varuna_nics_open_device(uct_component_h ib, const uct_varuna_set_t *set,
                                         const char *md_name, uct_varuna_nic_t **nics_p,
                                         unsigned *num_nics_p);

/**
 * Add a port that a name calls for and that is not there, so that the others have the
 * numbers that they have on other hosts. It can't be chosen.
 *
 * @param [in,out] nics_p      All NICs.
 * @param [in,out] num_nics_p  Their number.
 * @param [in]     name        As for uct_varuna_nics_select().
 */
ucs_status_t uct_varuna_nics_add_missing(uct_varuna_nic_t **nics_p,
                                         unsigned *num_nics_p, const char *name);

/**
 * Close the memory domains which no link uses.
 *
 * @param [in,out] nics      NICs. Those which aren't links have no memory domain
 *                           afterwards.
 * @param [in]     num_nics  Their number.
 */
void uct_varuna_nics_close_unused(uct_varuna_nic_t *nics, unsigned num_nics);

/** Leave the ports of this name out of "all". It need not exist. */
void uct_varuna_nics_disable(uct_varuna_nic_t *nics, unsigned num_nics,
                             const char *name);

/** @return How many ports these names mean, as for uct_varuna_nics_select(). */
unsigned uct_varuna_nics_count(const uct_varuna_nic_t *nics, unsigned num_nics,
                               char **names, unsigned num_names);

/**
 * Choose links by name, as in UCX_RC_VARUNA_LINKS. A name which is unknown is a warning,
 * once in a process; one that occurs twice, or if none is known, is an error. The message
 * lists what there is.
 *
 * @param [in,out] nics         All NICs; is_link is set for those chosen.
 * @param [in]     num_nics     Their number.
 * @param [in]     names        Device names ("mlx5_0:1", or "mlx5_0" for all
 *                              ports of it, our own prefix is allowed), or "all"
 *                              for all that are not named before, as far as
 *                              UCT_VARUNA_MAX_LINKS allows.
 * @param [in]     num_names    Their number.
 * @param [in]     wheres       Where each name was written, for errors; NULL: in
 *                              UCX_RC_VARUNA_LINKS.
 * @param [out]    links        NIC indices in the order of the names; room for
 *                              UCT_VARUNA_MAX_LINKS.
 * @param [out]    num_links_p  Their number. It is 0 only if there are no NICs
 *                              and none was asked for by name.
 */
ucs_status_t uct_varuna_nics_select(uct_varuna_nic_t *nics, unsigned num_nics,
                                    char **names, unsigned num_names,
                                    char **wheres,
                                    unsigned *links, unsigned *num_links_p);

/* --- Where NICs are --- */

/* Where NICs are in the host. */

/**
 * @return How far two NICs are from each other, as UCX estimates it: 0 at the same PCIe
 * switch, more at the same root complex, most at different ones. 0 if that is unknown.
 */
double uct_varuna_nic_distance(const uct_varuna_nic_t *nic1,
                               const uct_varuna_nic_t *nic2);

#endif
