/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The link table of an interface: the state of each link (varuna_damp.h), and the
 * choice of the link to use. Pure: detectors report here, and the recovery reads here.
 * Endpoints compare a generation, so one store switches them all.
 */
#ifndef UCT_VARUNA_LINK_H_
#define UCT_VARUNA_LINK_H_

#include "varuna_damp.h"
#include "varuna_def.h"

#include <ucs/time/time.h>

/* Detectors that report a link as down. It is good if none does. */
enum {
    UCT_VARUNA_LINK_CAUSE_PORT      = 1 << 0, /* Port event */
    UCT_VARUNA_LINK_CAUSE_HEARTBEAT = 1 << 1, /* No peer answers on it */
    UCT_VARUNA_LINK_CAUSE_ADMIN     = 1 << 2, /* Marked from outside */
    UCT_VARUNA_LINK_CAUSE_FORCED    = 1 << 3, /* Failover forced from outside */
    UCT_VARUNA_LINK_CAUSE_ADDRESS   = 1 << 4, /* Its port has another address */
    UCT_VARUNA_LINK_CAUSE_LAST      = 1 << 5
};

/* Their names, by bit */
#define UCT_VARUNA_LINK_NUM_CAUSES   5
extern const char *uct_varuna_link_cause_names[];

typedef struct uct_varuna_link_entry {
    uct_varuna_damp_t          damp;
    uint8_t                    causes;      /* UCT_VARUNA_LINK_CAUSE_xx */
    uint8_t                    returnable;  /* Traffic may move back to it */
    uint8_t                    retired;     /* DOWN, but it works: what is on it may
                                               end there */
    const char                 *reason;     /* Of the last failure */
    uint32_t                   generation;  /* Bumped by each UP -> DOWN */
} uct_varuna_link_entry_t;

typedef struct uct_varuna_link_table {
    unsigned                   num_links;
    uct_varuna_damp_times_t    times;       /* Of paths, too */
    ucs_time_t                 return_delay;/* Link must be UP for so long before
                                               traffic returns to it;
                                               UCS_TIME_INFINITY: never */
    uct_varuna_link_entry_t    links[UCT_VARUNA_MAX_LINKS]; /* By priority */
} uct_varuna_link_table_t;

void uct_varuna_link_table_init(uct_varuna_link_table_t *table,
                                unsigned num_links, ucs_time_t return_delay,
                                ucs_time_t hold_min, ucs_time_t hold_max);

/** A link failed. One which had been UP for longer than hold_max starts with a
 *  clean record. @return nonzero if that was news (UP or HOLD -> DOWN). */
int uct_varuna_link_report_down(uct_varuna_link_table_t *table, unsigned link,
                                ucs_time_t now);

/** A link was seen to be good. It becomes usable after its hold-down, which
 *  doubles with each recent flap, and with the next tick at the earliest.
 *  @return nonzero if that was news (DOWN -> HOLD). */
int uct_varuna_link_report_up(uct_varuna_link_table_t *table, unsigned link,
                              ucs_time_t now);

/** @a cause says that a link is down. @return as uct_varuna_link_report_down(). */
int uct_varuna_link_add_cause(uct_varuna_link_table_t *table, unsigned link,
                              unsigned cause, ucs_time_t now);

/** The same as planned: the link is not used any more, but what is on it has not failed,
 *  as its generation shows. If another cause follows, it has. @return as
 *  uct_varuna_link_report_down(). */
int uct_varuna_link_retire(uct_varuna_link_table_t *table, unsigned link,
                           unsigned cause, ucs_time_t now);

/** @return Whether traffic has to leave a link that works. */
static inline int
uct_varuna_link_is_retired(const uct_varuna_link_table_t *table, unsigned link)
{
    return table->links[link].retired;
}

/** @a cause no longer says that a link is down; without any cause the link is good. One that
 *  was only retired is UP at once. @return as uct_varuna_link_report_up(). */
int uct_varuna_link_remove_cause(uct_varuna_link_table_t *table, unsigned link,
                                 unsigned cause, ucs_time_t now);

/** A failover was revoked: forget reports from outside, without a hold-down. @return
 * nonzero if the link has become UP. */
int uct_varuna_link_revoke(uct_varuna_link_table_t *table, unsigned link,
                           ucs_time_t now);

/** Let hold-downs end. @return bit map of links which have become UP. */
unsigned uct_varuna_link_tick(uct_varuna_link_table_t *table, ucs_time_t now);

/**
 * @return The link to use for new traffic: @a current while it is UP, usable,
 * and policy does not call for a better one, else the first UP link by priority
 * among @a usable (bit map), else one that is held down, the current one first, else
 * UCT_VARUNA_LINK_NONE.
 */
uint8_t uct_varuna_link_select(const uct_varuna_link_table_t *table,
                               uint8_t current, unsigned usable);

#endif
