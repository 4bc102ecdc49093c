/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Link states and selection. The caller serialises access (it holds
 * the interface's async block) and brings the time.
 */
#include "varuna_link.h"

#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>

#include <assert.h>
#include <string.h>

static_assert(UCT_VARUNA_MAX_LINKS < UCT_VARUNA_LINK_NONE,
              "a link has the number of no link");

const char *uct_varuna_link_cause_names[] = {
    "port", "heartbeat", "admin", "forced", "address"
};

UCT_VARUNA_STATIC_ASSERT(ucs_static_array_size(uct_varuna_link_cause_names) ==
                         UCT_VARUNA_LINK_NUM_CAUSES);
UCT_VARUNA_STATIC_ASSERT(UCS_BIT(UCT_VARUNA_LINK_NUM_CAUSES) ==
                         UCT_VARUNA_LINK_CAUSE_LAST);

void uct_varuna_link_table_init(uct_varuna_link_table_t *table,
                                unsigned num_links, ucs_time_t return_delay,
                                ucs_time_t hold_min, ucs_time_t hold_max)
{
    unsigned link;

    ucs_assertv((num_links > 0) && (num_links <= UCT_VARUNA_MAX_LINKS),
                "num_links=%u", num_links);

    memset(table, 0, sizeof(*table));
    table->num_links      = num_links;
    table->return_delay   = return_delay;
    table->times.hold_min = hold_min;
    table->times.hold_max = hold_max;
    for (link = 0; link < num_links; ++link) {
        table->links[link].returnable = 1;
        table->links[link].reason     = "link down";
    }
}

static uct_varuna_link_entry_t *
uct_varuna_link_entry(uct_varuna_link_table_t *table, unsigned link)
{
    ucs_assertv(link < table->num_links, "link=%u num_links=%u", link,
                table->num_links);
    return &table->links[link];
}

int uct_varuna_link_report_down(uct_varuna_link_table_t *table, unsigned link,
                                ucs_time_t now)
{
    uct_varuna_link_entry_t *entry = uct_varuna_link_entry(table, link);

    if (!uct_varuna_damp_fail(&entry->damp, &table->times, now)) {
        return 0;
    }

    ++entry->generation; /* In its hold-down it may have been the last usable link as
                            well */
    entry->returnable  = 0;
    return 1;
}

int uct_varuna_link_report_up(uct_varuna_link_table_t *table, unsigned link,
                              ucs_time_t now)
{
    return uct_varuna_damp_good(&uct_varuna_link_entry(table, link)->damp,
                                &table->times, now);
}

int uct_varuna_link_add_cause(uct_varuna_link_table_t *table, unsigned link,
                              unsigned cause, ucs_time_t now)
{
    uct_varuna_link_entry_t *entry = uct_varuna_link_entry(table, link);

    entry->causes |= cause;
    if (entry->retired) {
        entry->retired = 0; /* What has not left it yet has failed */
        ++entry->generation;
        return 1;
    }

    return uct_varuna_link_report_down(table, link, now);
}

int uct_varuna_link_retire(uct_varuna_link_table_t *table, unsigned link,
                           unsigned cause, ucs_time_t now)
{
    uct_varuna_link_entry_t *entry = uct_varuna_link_entry(table, link);

    entry->causes |= cause;
    if (!uct_varuna_damp_fail(&entry->damp, &table->times, now)) {
        return 0;
    }

    entry->retired    = 1;
    entry->returnable = 0;
    return 1;
}

/* It has not failed while it was retired. But if it was in its hold-down before, that goes
 * on. */
static int uct_varuna_link_restore(uct_varuna_link_table_t *table,
                                   uct_varuna_link_entry_t *entry, ucs_time_t now)
{
    entry->retired = 0;
    if (entry->damp.usable_at > now) {
        return uct_varuna_damp_good(&entry->damp, &table->times, now);
    }

    uct_varuna_damp_revoke(&entry->damp, now);
    entry->returnable = 1;
    return 1;
}

int uct_varuna_link_remove_cause(uct_varuna_link_table_t *table, unsigned link,
                                 unsigned cause, ucs_time_t now)
{
    uct_varuna_link_entry_t *entry = uct_varuna_link_entry(table, link);

    if (!(entry->causes & cause)) {
        return 0;
    }

    entry->causes &= ~cause;
    if (entry->causes != 0) {
        return 0;
    }

    return entry->retired ? uct_varuna_link_restore(table, entry, now) :
           uct_varuna_link_report_up(table, link, now);
}

int uct_varuna_link_revoke(uct_varuna_link_table_t *table, unsigned link,
                           ucs_time_t now)
{
    uct_varuna_link_entry_t *entry = uct_varuna_link_entry(table, link);
    unsigned outside               = UCT_VARUNA_LINK_CAUSE_ADMIN |
                                     UCT_VARUNA_LINK_CAUSE_FORCED;

    if (!(entry->causes & outside)) {
        return 0;
    }

    entry->causes &= ~outside;
    if ((entry->causes != 0) || (entry->damp.state != UCT_VARUNA_DAMP_DOWN)) {
        return 0;
    }

    entry->retired = 0;
    uct_varuna_damp_revoke(&entry->damp, now);
    entry->returnable = 1;
    return 1;
}

unsigned uct_varuna_link_tick(uct_varuna_link_table_t *table, ucs_time_t now)
{
    unsigned became_up = 0;
    uct_varuna_link_entry_t *entry;
    unsigned link;

    for (link = 0; link < table->num_links; ++link) {
        entry = &table->links[link];
        if (uct_varuna_damp_is_over(&entry->damp, now)) {
            uct_varuna_damp_up(&entry->damp, now);
            became_up |= UCS_BIT(link);
        }

        if ((entry->damp.state == UCT_VARUNA_DAMP_UP) &&
            ((now - entry->damp.changed) >= table->return_delay)) {
            entry->returnable = 1;
        }
    }

    return became_up;
}

uint8_t uct_varuna_link_select(const uct_varuna_link_table_t *table,
                               uint8_t current, unsigned usable)
{
    unsigned good = 0;
    unsigned held = 0;
    unsigned back = 0;
    unsigned link;

    ucs_assertv((current < table->num_links) ||
                (current == UCT_VARUNA_LINK_NONE), "current=%u", current);

    for (link = 0; link < table->num_links; ++link) {
        if (table->links[link].damp.state == UCT_VARUNA_DAMP_UP) {
            good |= UCS_BIT(link) & usable;
            back |= table->links[link].returnable ? UCS_BIT(link) : 0;
        } else if (table->links[link].damp.state == UCT_VARUNA_DAMP_HOLD) {
            held |= UCS_BIT(link) & usable;
        }
    }

    /* A hold-down must not delay the last way that is left */
    if (good == 0) {
        if ((current != UCT_VARUNA_LINK_NONE) && (held & UCS_BIT(current))) {
            return current;
        }
        return (held == 0) ? UCT_VARUNA_LINK_NONE : ucs_ffs64(held);
    }

    if ((current == UCT_VARUNA_LINK_NONE) || !(good & UCS_BIT(current))) {
        return ucs_ffs64(good);
    }

    if (table->return_delay == UCS_TIME_INFINITY) {
        return current;
    }

    /* A better one must have been good for long enough */
    return ucs_ffs64(good & (back | UCS_BIT(current)));
}
