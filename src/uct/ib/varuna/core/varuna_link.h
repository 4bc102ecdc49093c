/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The link table of an interface: the state of each link (varuna_link.h), and the
 * choice of the link to use. Pure: detectors report here, and the recovery reads here.
 * Endpoints compare a generation, so one store switches them all.
 */
#ifndef UCT_VARUNA_LINK_H_
#define UCT_VARUNA_LINK_H_

#include "varuna_def.h"

#include <ucs/time/time.h>
#include <stdint.h>

/* --- Damping --- */

/* Damping of what fails and comes back: of a link, and of the path to a peer. Pure:
 * the caller serialises access and brings the time.
 *
 *             fail                 good                 hold-down is over
 *   UP -----------------> DOWN ------------> HOLD -----------------------> UP
 *                          ^      fail        | ^ again: it starts anew
 *                          +------------------+-+
 *
 * Each failure doubles the hold-down, also one during it. What has been up for longer
 * than the longest hold-down starts with a clean record. */

typedef enum {
    UCT_VARUNA_DAMP_UP,         /* Also what is all zeros */
    UCT_VARUNA_DAMP_DOWN,       /* Known to be bad: nothing new is posted */
    UCT_VARUNA_DAMP_HOLD,       /* Good again, and not yet used */
    UCT_VARUNA_DAMP_LAST
} uct_varuna_damp_state_t;

typedef struct uct_varuna_damp {
    uint8_t                    state;     /* uct_varuna_damp_state_t */
    unsigned                   flaps;     /* Recent failures */
    ucs_time_t                 changed;   /* Time of the last transition */
    ucs_time_t                 usable_at; /* In HOLD: end of the hold-down */
} uct_varuna_damp_t;

typedef struct uct_varuna_damp_times {
    ucs_time_t                 hold_min;  /* Hold-down after the first failure */
    ucs_time_t                 hold_max;  /* Its cap */
} uct_varuna_damp_times_t;

extern const char *uct_varuna_damp_state_names[];

/** It failed. @return Nonzero if that changes the state (UP or HOLD -> DOWN). */
int uct_varuna_damp_fail(uct_varuna_damp_t *damp,
                         const uct_varuna_damp_times_t *times, ucs_time_t now);

/** It was seen to be good. @return nonzero if that was news: the hold-down begins
 *  (DOWN -> HOLD). */
int uct_varuna_damp_good(uct_varuna_damp_t *damp,
                         const uct_varuna_damp_times_t *times, ucs_time_t now);

/** In HOLD: it is in doubt whether it is good. The hold-down begins anew, and is as
 *  long as it was. */
void uct_varuna_damp_again(uct_varuna_damp_t *damp,
                           const uct_varuna_damp_times_t *times,
                           ucs_time_t now);

/** @return nonzero in HOLD, if the hold-down is over. */
int uct_varuna_damp_is_over(const uct_varuna_damp_t *damp, ucs_time_t now);

/** Use it again: the hold-down is over. */
void uct_varuna_damp_up(uct_varuna_damp_t *damp, ucs_time_t now);

/** It was not a failure: use it at once, and do not count it. */
void uct_varuna_damp_revoke(uct_varuna_damp_t *damp, ucs_time_t now);

/** @return The hold-down which the failures so far call for. */
ucs_time_t uct_varuna_damp_hold_time(const uct_varuna_damp_t *damp,
                                     const uct_varuna_damp_times_t *times);

/* --- The table of links --- */

/* Detectors that report a link as down. It is good if none does. */
enum {
    UCT_VARUNA_LINK_CAUSE_PORT      = 1 << 0, /* Port event */
    UCT_VARUNA_LINK_CAUSE_HEARTBEAT = 1 << 1, /* No peer answers on it */
    UCT_VARUNA_LINK_CAUSE_ADMIN     = 1 << 2, /* Marked from outside */
    UCT_VARUNA_LINK_CAUSE_FORCED    = 1 << 3, /* Failover forced from outside */
    UCT_VARUNA_LINK_CAUSE_ADDRESS   = 1 << 4, /* Its port has another address */
    UCT_VARUNA_LINK_CAUSE_NIC       = 1 << 5, /* Its NIC is to be removed, or is */
    UCT_VARUNA_LINK_CAUSE_LAST      = 1 << 6
};

/* Their names, by bit */
#define UCT_VARUNA_LINK_NUM_CAUSES   6
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

/* --- Lane sets --- */

/* Lane sets: which inner transports a NIC's links consist of, by what they are for. All
 * else that differs between transports is in ucx/varuna_tl.h. */

typedef struct uct_varuna_set {
    const char                 *name;      /* NULL: there are no more */
    uint8_t                    fast;       /* Connected: the usual lane */
    uint8_t                    fallback;   /* Needs no connection; LANE_NONE: there is
                                              none, and another one is connected */
    uint8_t                    bus;        /* Control messages */
} uct_varuna_set_t;

/* The best one first */
extern const uct_varuna_set_t uct_varuna_sets[];

/* Values of UCX_RC_VARUNA_LANES: "auto", then the names of the sets */
extern const char *uct_varuna_lanes_names[];

/** @return Name of a transport, an uct_varuna_lane_kind_t, in UCX. */
const char *uct_varuna_tl_name(unsigned kind);

/* --- The nearest links --- */

/* Which links come next after the primary: the nearest. Pure: distances are the caller's. */

/**
 * Order links by their distance from one of them.
 *
 * Links of the same distance follow in the order of their numbers, beginning after the
 * primary's: where all distances are the same, rails do not all fall back to link 0.
 *
 * @param [in]  distances  Of each link from the primary.
 * @param [in]  num_links  Their number.
 * @param [in]  primary    Comes first, whatever its distance.
 * @param [out] order      All links, the nearest first.
 */
void uct_varuna_near_order(const double *distances, unsigned num_links,
                           unsigned primary, uint8_t *order);

/* --- The file of links --- */

/* The file which UCX_RC_VARUNA_LINKS=file:PATH names. One statement a line, '#'
 * starts a comment:
 *
 *     primary  mlx5_0:1             # carries traffic while it is up
 *     backup   mlx5_1:1 weight=2    # takes over; greater weights first
 *     backup   all                  # whatever else there is
 *     disabled mlx5_3:1             # never used
 *     return   5s                   # back to the primary: yes, no, or after 5 s
 *
 * The parser is pure: it gets text, and gives statements or one error by line. */

#define UCT_VARUNA_LINKS_FILE_PREFIX   "file:"
#define UCT_VARUNA_LINKS_FILE_MAX      64    /* Statements about ports */
#define UCT_VARUNA_LINKS_FILE_MAX_SIZE 65536 /* Bytes */
#define UCT_VARUNA_LINKS_FILE_MAX_NAME 48    /* Of a port */
#define UCT_VARUNA_LINKS_FILE_MAX_WHERE 256  /* "PATH:LINE" */

typedef enum {
    UCT_VARUNA_LINK_ROLE_PRIMARY,
    UCT_VARUNA_LINK_ROLE_BACKUP,
    UCT_VARUNA_LINK_ROLE_DISABLED,
    UCT_VARUNA_LINK_ROLE_LAST
} uct_varuna_link_role_t;

typedef struct uct_varuna_links_entry {
    uct_varuna_link_role_t     role;
    unsigned                   weight;
    unsigned                   line;
    char                       name[UCT_VARUNA_LINKS_FILE_MAX_NAME];
} uct_varuna_links_entry_t;

typedef struct uct_varuna_links_file {
    unsigned                   num_entries;
    uct_varuna_links_entry_t   entries[UCT_VARUNA_LINKS_FILE_MAX];
    uint8_t                    has_return;     /* There is a "return" */
    double                     return_delay;   /* Seconds; INFINITY: never */
} uct_varuna_links_file_t;

/**
 * Parse the text of a file. Afterwards entries are in order of preference:
 * primaries, backups, each by weight and then as they were written; disabled ones
 * last.
 *
 * @param [in]  text    Text, need not be terminated.
 * @param [in]  length  Its length.
 * @param [out] file_p  Filled if the text is right.
 * @param [out] line_p  Else filled with the line that is not (from 1; 0: the file
 *                      as a whole).
 * @param [out] error   Filled with what is wrong with it, and what to do.
 * @param [in]  size    Of error.
 *
 * @return UCS_OK or UCS_ERR_INVALID_PARAM.
 */
ucs_status_t uct_varuna_links_file_parse(const char *text, size_t length,
                                         uct_varuna_links_file_t *file_p,
                                         unsigned *line_p, char *error,
                                         size_t size);

#endif
