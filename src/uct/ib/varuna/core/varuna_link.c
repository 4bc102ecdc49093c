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
#include <limits.h>
#include <stddef.h>
#include <ucs/sys/compiler.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static_assert(UCT_VARUNA_MAX_LINKS < UCT_VARUNA_LINK_NONE,
              "a link has the number of no link");

const char *uct_varuna_link_cause_names[] = {
    "port", "heartbeat", "admin", "forced", "address", "nic"
};

UCT_VARUNA_STATIC_ASSERT(ucs_static_array_size(uct_varuna_link_cause_names) ==
                         UCT_VARUNA_LINK_NUM_CAUSES);
UCT_VARUNA_STATIC_ASSERT(UCS_BIT(UCT_VARUNA_LINK_NUM_CAUSES) ==
                         UCT_VARUNA_LINK_CAUSE_LAST);

static void uct_varuna_link_entry_init(uct_varuna_link_entry_t *entry)
{
    entry->returnable = 1;
    entry->reason     = "link down";
}

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
        uct_varuna_link_entry_init(&table->links[link]);
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

/* --- Damping --- */

/* Hold-down of what fails and comes back. */

const char *uct_varuna_damp_state_names[] = {
    [UCT_VARUNA_DAMP_UP]   = "up",
    [UCT_VARUNA_DAMP_DOWN] = "down",
    [UCT_VARUNA_DAMP_HOLD] = "hold",
    [UCT_VARUNA_DAMP_LAST] = NULL
};

static void uct_varuna_damp_set_state(uct_varuna_damp_t *damp,
                                      uct_varuna_damp_state_t state,
                                      ucs_time_t now)
{
    damp->state   = state;
    damp->changed = now;
}

int uct_varuna_damp_fail(uct_varuna_damp_t *damp,
                         const uct_varuna_damp_times_t *times, ucs_time_t now)
{
    if (damp->state == UCT_VARUNA_DAMP_DOWN) {
        return 0;
    }

    if ((damp->state == UCT_VARUNA_DAMP_UP) &&
        ((now - damp->changed) > times->hold_max)) {
        damp->flaps = 0; /* It had been good for long */
    }

    if (damp->flaps < UINT_MAX) {
        ++damp->flaps;
    }

    uct_varuna_damp_set_state(damp, UCT_VARUNA_DAMP_DOWN, now);
    return 1;
}

/* hold_min * 2^(flaps - 1), not above hold_max */
ucs_time_t uct_varuna_damp_hold_time(const uct_varuna_damp_t *damp,
                                     const uct_varuna_damp_times_t *times)
{
    ucs_time_t hold = ucs_min(times->hold_min, times->hold_max);
    unsigned flaps  = damp->flaps;

    while ((flaps > 1) && (hold > 0) && (hold < times->hold_max)) {
        hold = (hold > (times->hold_max / 2)) ? times->hold_max : (hold * 2);
        --flaps;
    }

    return hold;
}

int uct_varuna_damp_good(uct_varuna_damp_t *damp,
                         const uct_varuna_damp_times_t *times, ucs_time_t now)
{
    if (damp->state != UCT_VARUNA_DAMP_DOWN) {
        return 0;
    }

    uct_varuna_damp_set_state(damp, UCT_VARUNA_DAMP_HOLD, now);
    damp->usable_at = now + uct_varuna_damp_hold_time(damp, times);
    return 1;
}

void uct_varuna_damp_again(uct_varuna_damp_t *damp,
                           const uct_varuna_damp_times_t *times, ucs_time_t now)
{
    ucs_assert(damp->state == UCT_VARUNA_DAMP_HOLD);
    damp->changed   = now;
    damp->usable_at = now + uct_varuna_damp_hold_time(damp, times);
}

int uct_varuna_damp_is_over(const uct_varuna_damp_t *damp, ucs_time_t now)
{
    return (damp->state == UCT_VARUNA_DAMP_HOLD) && (now >= damp->usable_at);
}

void uct_varuna_damp_up(uct_varuna_damp_t *damp, ucs_time_t now)
{
    uct_varuna_damp_set_state(damp, UCT_VARUNA_DAMP_UP, now);
}

void uct_varuna_damp_revoke(uct_varuna_damp_t *damp, ucs_time_t now)
{
    damp->flaps -= (damp->flaps > 0);
    uct_varuna_damp_set_state(damp, UCT_VARUNA_DAMP_UP, now);
}

/* --- Lane sets --- */

/* The lane sets. */

const uct_varuna_set_t uct_varuna_sets[] = {
    {"mlx5", UCT_VARUNA_LANE_RC, UCT_VARUNA_LANE_DC, UCT_VARUNA_LANE_DC},
    {"verbs", UCT_VARUNA_LANE_VERBS, UCT_VARUNA_LANE_NONE, UCT_VARUNA_LANE_UD},
    {NULL}
};

const char *uct_varuna_lanes_names[] = {"auto", "mlx5", "verbs", NULL};

const char *uct_varuna_tl_name(unsigned kind)
{
    static const char *names[] = {
        [UCT_VARUNA_LANE_RC]    = UCT_VARUNA_RC_TL,
        [UCT_VARUNA_LANE_DC]    = UCT_VARUNA_DC_TL,
        [UCT_VARUNA_LANE_VERBS] = UCT_VARUNA_VERBS_TL,
        [UCT_VARUNA_LANE_UD]    = "datagrams",
        [UCT_VARUNA_LANE_NONE]  = "none"
    };

    return names[kind];
}

/* --- The nearest links --- */

void uct_varuna_near_order(const double *distances, unsigned num_links,
                           unsigned primary, uint8_t *order)
{
    unsigned num_ordered = 1;
    unsigned step, link, i;

    order[0] = primary;
    for (step = 1; step < num_links; ++step) {
        link = (primary + step) % num_links;
        for (i = num_ordered++; (i > 1) &&
                                (distances[order[i - 1]] > distances[link]); --i) {
            order[i] = order[i - 1];
        }
        order[i] = link;
    }
}

/* --- The file of links --- */

/* Parser of the file of links, whose text varuna_md_open.c reads. */

#define UCT_VARUNA_LINKS_FILE_MAX_WORDS  3
#define UCT_VARUNA_LINKS_FILE_MAX_LINE   256
#define UCT_VARUNA_LINKS_FILE_MAX_WEIGHT 1000
#define UCT_VARUNA_LINKS_FILE_MAX_DELAY  86400.0 /* seconds: one day */

static const char *uct_varuna_link_role_names[] = {
    [UCT_VARUNA_LINK_ROLE_PRIMARY]  = "primary",
    [UCT_VARUNA_LINK_ROLE_BACKUP]   = "backup",
    [UCT_VARUNA_LINK_ROLE_DISABLED] = "disabled",
    [UCT_VARUNA_LINK_ROLE_LAST]     = NULL
};

typedef struct uct_varuna_links_parser {
    uct_varuna_links_file_t    *file;
    unsigned                   line;
    char                       *error;
    size_t                     size;
} uct_varuna_links_parser_t;

static ucs_status_t UCS_F_PRINTF(2, 3)
uct_varuna_links_error(uct_varuna_links_parser_t *parser, const char *format,
                       ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(parser->error, parser->size, format, args);
    va_end(args);
    return UCS_ERR_INVALID_PARAM;
}

/* "yes", "no", or a time such as "5", "5s", "200ms", "1m" */
static ucs_status_t uct_varuna_links_parse_return(
        uct_varuna_links_parser_t *parser, char **words, unsigned num_words)
{
    static const struct {
        const char *suffix;
        double     factor;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}};
    uct_varuna_links_file_t *file = parser->file;
    double value;
    char *end;
    size_t i;

    if (file->has_return) {
        return uct_varuna_links_error(parser, "a second 'return': remove one");
    }

    file->has_return   = 1;
    file->return_delay = 0;
    if ((num_words == 2) && !strcmp(words[1], "yes")) {
        return UCS_OK;
    } else if ((num_words == 2) && !strcmp(words[1], "no")) {
        file->return_delay = INFINITY;
        return UCS_OK;
    } else if ((num_words == 2) && isdigit((unsigned char)words[1][0])) {
        value = strtod(words[1], &end);
        for (i = 0; i < ucs_static_array_size(units); ++i) {
            file->return_delay = value * units[i].factor;
            if (!strcmp(end, units[i].suffix) && isfinite(value) &&
                (file->return_delay <= UCT_VARUNA_LINKS_FILE_MAX_DELAY)) {
                return UCS_OK;
            }
        }
    }

    return uct_varuna_links_error(parser, "'return' takes yes, no, or a time of a "
                                  "day at most, such as 500ms, 5s or 1m");
}

static ucs_status_t
uct_varuna_links_parse_weight(uct_varuna_links_parser_t *parser,
                              const char *word, unsigned *weight_p)
{
    static const char key[] = "weight=";
    unsigned long weight;
    char *end;

    if (!strncmp(word, key, sizeof(key) - 1) &&
        isdigit((unsigned char)word[sizeof(key) - 1])) {
        weight = strtoul(word + sizeof(key) - 1, &end, 10);
        if ((*end == '\0') && (weight <= UCT_VARUNA_LINKS_FILE_MAX_WEIGHT)) {
            *weight_p = weight;
            return UCS_OK;
        }
    }

    return uct_varuna_links_error(parser, "'%s' after the port: it can be "
                                  "weight=N, with N from 0 to %d", word,
                                  UCT_VARUNA_LINKS_FILE_MAX_WEIGHT);
}

static ucs_status_t uct_varuna_links_parse_port(
        uct_varuna_links_parser_t *parser, uct_varuna_link_role_t role,
        char **words, unsigned num_words)
{
    uct_varuna_links_file_t *file = parser->file;
    uct_varuna_links_entry_t *entry;
    unsigned i;

    if (num_words < 2) {
        return uct_varuna_links_error(parser, "'%s' needs a port, such as "
                                      "mlx5_0:1", words[0]);
    }

    if (strlen(words[1]) >= sizeof(entry->name)) {
        return uct_varuna_links_error(parser, "the name of the port is longer "
                                      "than %zu characters",
                                      sizeof(entry->name) - 1);
    }

    for (i = 0; i < file->num_entries; ++i) {
        if (!strcmp(file->entries[i].name, words[1])) {
            return uct_varuna_links_error(parser, "%s has a role already, in "
                                          "line %u: remove one of the two",
                                          words[1], file->entries[i].line);
        }
    }

    if (file->num_entries == UCT_VARUNA_LINKS_FILE_MAX) {
        return uct_varuna_links_error(parser, "more than %d ports",
                                      UCT_VARUNA_LINKS_FILE_MAX);
    }

    entry         = &file->entries[file->num_entries];
    entry->role   = role;
    entry->line   = parser->line;
    entry->weight = 1;
    strcpy(entry->name, words[1]);
    if ((num_words > 2) &&
        (uct_varuna_links_parse_weight(parser, words[2], &entry->weight) !=
         UCS_OK)) {
        return UCS_ERR_INVALID_PARAM;
    }

    ++file->num_entries;
    return UCS_OK;
}

/* @return Number of words; one more than fit, if there are more. */
static unsigned uct_varuna_links_split(char *line, char **words)
{
    unsigned num_words = 0;
    char *word, *rest;

    line[strcspn(line, "#")] = '\0';
    for (word = strtok_r(line, " \t\r", &rest); word != NULL;
         word = strtok_r(NULL, " \t\r", &rest)) {
        if (num_words == UCT_VARUNA_LINKS_FILE_MAX_WORDS) {
            return num_words + 1;
        }
        words[num_words++] = word;
    }

    return num_words;
}

static ucs_status_t
uct_varuna_links_parse_line(uct_varuna_links_parser_t *parser, char *line)
{
    char *words[UCT_VARUNA_LINKS_FILE_MAX_WORDS];
    unsigned num_words = uct_varuna_links_split(line, words);
    unsigned role;

    if (num_words == 0) {
        return UCS_OK;
    }

    if (num_words > UCT_VARUNA_LINKS_FILE_MAX_WORDS) {
        return uct_varuna_links_error(parser, "too many words: one statement per "
                                      "line, and a comment begins with '#'");
    }

    if (!strcmp(words[0], "return")) {
        return uct_varuna_links_parse_return(parser, words, num_words);
    }

    for (role = 0; role < UCT_VARUNA_LINK_ROLE_LAST; ++role) {
        if (!strcmp(words[0], uct_varuna_link_role_names[role])) {
            return uct_varuna_links_parse_port(parser, role, words, num_words);
        }
    }

    return uct_varuna_links_error(parser, "'%s' is not a statement: expected "
                                  "primary, backup, disabled or return",
                                  words[0]);
}

static int uct_varuna_links_compare(const void *a, const void *b)
{
    const uct_varuna_links_entry_t *entry_a = a;
    const uct_varuna_links_entry_t *entry_b = b;

    if (entry_a->role != entry_b->role) {
        return (entry_a->role < entry_b->role) ? -1 : 1;
    } else if (entry_a->weight != entry_b->weight) {
        return (entry_a->weight > entry_b->weight) ? -1 : 1;
    }

    return (entry_a->line < entry_b->line) ? -1 :
           (entry_a->line > entry_b->line);
}

static ucs_status_t uct_varuna_links_finish(uct_varuna_links_parser_t *parser)
{
    uct_varuna_links_file_t *file = parser->file;

    parser->line = 0;
    qsort(file->entries, file->num_entries, sizeof(*file->entries),
          uct_varuna_links_compare);
    if ((file->num_entries == 0) ||
        (file->entries[0].role == UCT_VARUNA_LINK_ROLE_DISABLED)) {
        return uct_varuna_links_error(parser, "it names no link: add lines such as"
                                      " 'primary mlx5_0:1' and 'backup all'");
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_links_file_parse(const char *text, size_t length,
                                         uct_varuna_links_file_t *file,
                                         unsigned *line_p, char *error,
                                         size_t size)
{
    uct_varuna_links_parser_t parser = {file, 0, error, size};
    const char *end                  = text + length;
    ucs_status_t status              = UCS_OK;
    char line[UCT_VARUNA_LINKS_FILE_MAX_LINE];
    const char *eol;

    memset(file, 0, sizeof(*file));
    while ((text < end) && (status == UCS_OK)) {
        ++parser.line;
        eol = memchr(text, '\n', end - text);
        eol = (eol == NULL) ? end : eol;
        if ((size_t)(eol - text) >= sizeof(line)) {
            status = uct_varuna_links_error(&parser, "it is longer than %zu "
                                            "characters", sizeof(line) - 1);
        } else if (memchr(text, '\0', eol - text) != NULL) {
            status = uct_varuna_links_error(&parser, "it is not a text file");
        } else {
            memcpy(line, text, eol - text);
            line[eol - text] = '\0';
            status = uct_varuna_links_parse_line(&parser, line);
        }
        text = eol + 1;
    }

    if (status == UCS_OK) {
        status = uct_varuna_links_finish(&parser);
    }

    *line_p = parser.line;
    return status;
}
