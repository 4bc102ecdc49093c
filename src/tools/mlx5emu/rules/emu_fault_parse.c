/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Text form of fault rules: the parser. The printer is in emu_fault_text.c. The
 * language is described in mlx5emu(1); keep all alike. Pure: see
 * emu_fault_rule.h.
 */

#include "emu_fault_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Everything that one parse works on. */
typedef struct emu_fault_parser {
    emu_fault_rule_t rule;
    int              have_point;
    int              have_action;
    unsigned         keys;       /* selectors seen, by index in the table */
    char             *err;
    size_t           err_max;
} emu_fault_parser_t;

/** A selector: reads its value into the rule, returns 0 or -1. */
typedef struct emu_fault_key {
    const char *name;
    int        (*parse)(emu_fault_parser_t *p, const char *name, char *value);
} emu_fault_key_t;

static int __attribute__((format(printf, 2, 3)))
emu_fault_fail(emu_fault_parser_t *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->err, p->err_max, fmt, ap);
    va_end(ap);
    return -1;
}

/* @return Index of a name in a table, or -1 */
static int emu_fault_name_find(const char *const *names, unsigned num,
                               const char *name)
{
    unsigned i;

    for (i = 0; i < num; ++i) {
        if (!strcmp(names[i], name)) {
            return i;
        }
    }

    return -1;
}

/* A decimal or 0x number that ends the string or is followed by a unit */
static int emu_fault_parse_u64(const char *text, uint64_t *value_p,
                               const char **end_p)
{
    char *end;

    if (!isdigit((unsigned char)text[0])) {
        return -1;
    }

    errno    = 0;
    *value_p = strtoull(text, &end,
                        (text[0] == '0') && (text[1] == 'x') ? 16 : 10);
    *end_p   = end;
    return (errno == 0) ? 0 : -1;
}

static int emu_fault_parse_u32(emu_fault_parser_t *p, const char *name,
                               const char *text, uint64_t max,
                               uint32_t *value_p)
{
    const char *end;
    uint64_t value;

    if (emu_fault_parse_u64(text, &value, &end) || (*end != '\0') ||
        (value > max)) {
        return emu_fault_fail(p, "%s=%s: expected a number from 0 to %" PRIu64,
                              name, text, max);
    }

    *value_p = value;
    return 0;
}

static int emu_fault_parse_host(emu_fault_parser_t *p, const char *name,
                                char *value)
{
    return emu_fault_parse_u32(p, name, value, 254, &p->rule.host);
}

static int emu_fault_parse_peer(emu_fault_parser_t *p, const char *name,
                                char *value)
{
    return emu_fault_parse_u32(p, name, value, 254, &p->rule.peer);
}

static int emu_fault_parse_link(emu_fault_parser_t *p, const char *name,
                                char *value)
{
    return emu_fault_parse_u32(p, name, value, 254, &p->rule.link);
}

static int emu_fault_parse_qp(emu_fault_parser_t *p, const char *name,
                              char *value)
{
    return emu_fault_parse_u32(p, name, value, 0xffffff, &p->rule.qpn);
}

static int emu_fault_parse_wqe(emu_fault_parser_t *p, const char *name,
                               char *value)
{
    return emu_fault_parse_u32(p, name, value, 0xffff, &p->rule.wqe);
}

static int emu_fault_parse_seed(emu_fault_parser_t *p, const char *name,
                                char *value)
{
    p->rule.have_seed = 1;
    return emu_fault_parse_u32(p, name, value, UINT32_MAX, &p->rule.seed);
}

/* Words separated by commas -> bits of a mask */
static int emu_fault_parse_mask(emu_fault_parser_t *p, const char *name,
                                char *value, const char *const *names,
                                unsigned num, const char *expected,
                                uint32_t *mask_p)
{
    char *save = NULL;
    char *word;
    int bit;

    for (word = strtok_r(value, ",", &save); word != NULL;
         word = strtok_r(NULL, ",", &save)) {
        bit = emu_fault_name_find(names, num, word);
        if (bit < 0) {
            return emu_fault_fail(p, "%s=%s: unknown kind, expected %s, or "
                                  "several of them separated by commas", name,
                                  word, expected);
        }

        *mask_p |= EMU_FAULT_BIT(bit);
    }

    if (*mask_p == 0) {
        return emu_fault_fail(p, "%s= needs a kind: %s", name, expected);
    }

    return 0;
}

#define EMU_FAULT_OP_WORDS \
    "send, send_imm, write, write_imm, read, cas or faa"

static int emu_fault_parse_op(emu_fault_parser_t *p, const char *name,
                              char *value)
{
    return emu_fault_parse_mask(p, name, value, emu_fault_op_names,
                                EMU_FAULT_OP_LAST, EMU_FAULT_OP_WORDS,
                                &p->rule.op_mask);
}

static int emu_fault_parse_prev(emu_fault_parser_t *p, const char *name,
                                char *value)
{
    return emu_fault_parse_mask(p, name, value, emu_fault_op_names,
                                EMU_FAULT_OP_LAST, EMU_FAULT_OP_WORDS,
                                &p->rule.prev_mask);
}

static int emu_fault_parse_type(emu_fault_parser_t *p, const char *name,
                                char *value)
{
    return emu_fault_parse_mask(p, name, value, emu_fault_qp_names,
                                EMU_FAULT_QP_LAST, "rc, ud or dc",
                                &p->rule.type_mask);
}

/* A word that a rule can be called by */
static int emu_fault_copy_name(emu_fault_parser_t *p, const char *name,
                               const char *value, char *buf)
{
    size_t i;

    for (i = 0; isalnum((unsigned char)value[i]) || (value[i] == '_') ||
                (value[i] == '-'); ++i) {
    }

    if ((i == 0) || (value[i] != '\0') || (i >= EMU_FAULT_NAME_MAX)) {
        return emu_fault_fail(p, "%s=%s: expected a word of at most %d "
                              "letters, digits, '_' and '-'", name, value,
                              EMU_FAULT_NAME_MAX - 1);
    }

    strcpy(buf, value);
    return 0;
}

static int emu_fault_parse_name(emu_fault_parser_t *p, const char *name,
                                char *value)
{
    return emu_fault_copy_name(p, name, value, p->rule.name);
}

static int emu_fault_parse_bytes(const char *text, uint64_t *value_p,
                                 const char **end_p)
{
    unsigned i;

    if (emu_fault_parse_u64(text, value_p, end_p)) {
        return -1;
    }

    for (i = 0; i < EMU_FAULT_NUM_SIZES - 1; ++i) {
        if (tolower((unsigned char)**end_p) ==
            emu_fault_size_units[i].name[0]) {
            ++*end_p;
            return __builtin_mul_overflow(*value_p,
                                          emu_fault_size_units[i].value,
                                          value_p) ? -1 : 0;
        }
    }

    return 0;
}

/* N, MIN-MAX, MIN- or -MAX */
static int emu_fault_parse_range(emu_fault_parser_t *p, const char *name,
                                 const char *value, uint64_t *min_p,
                                 uint64_t *max_p)
{
    const char *text = value;

    *min_p = 0;
    *max_p = UINT64_MAX;
    if ((*text != '-') && emu_fault_parse_bytes(text, min_p, &text)) {
        goto err;
    }

    if ((*text == '\0') && (text != value)) {
        *max_p = *min_p;
        return 0;
    }

    if (*text != '-') {
        goto err;
    }

    ++text;
    if ((*text == '\0') && (text != value + 1)) {
        return 0;
    }

    if (emu_fault_parse_bytes(text, max_p, &text) || (*text != '\0')) {
        goto err;
    }

    if (*max_p < *min_p) {
        return emu_fault_fail(p, "%s=%s: the first number is larger than the "
                              "second", name, value);
    }

    return 0;

err:
    return emu_fault_fail(p, "%s=%s: expected N, MIN-MAX, MIN- or -MAX, in "
                          "bytes or with k, m or g", name, value);
}

static int emu_fault_parse_size(emu_fault_parser_t *p, const char *name,
                                char *value)
{
    return emu_fault_parse_range(p, name, value, &p->rule.size_min,
                                 &p->rule.size_max);
}

static int emu_fault_parse_prev_size(emu_fault_parser_t *p, const char *name,
                                     char *value)
{
    return emu_fault_parse_range(p, name, value, &p->rule.prev_min,
                                 &p->rule.prev_max);
}

static int emu_fault_parse_pkt(emu_fault_parser_t *p, const char *name,
                               char *value)
{
    if (!strcmp(value, "first")) {
        p->rule.pkt = 1;
        return 0;
    } else if (!strcmp(value, "last")) {
        p->rule.pkt = EMU_FAULT_PKT_LAST;
        return 0;
    } else if (!strcmp(value, "middle")) {
        p->rule.pkt = EMU_FAULT_PKT_MIDDLE;
        return 0;
    } else if (emu_fault_parse_u32(p, name, value, 0xffffff, &p->rule.pkt) ||
               (p->rule.pkt == 0)) {
        return emu_fault_fail(p, "%s=%s: expected 1, 2, 3, ..., first, middle "
                              "or last", name, value);
    }

    return 0;
}

static int emu_fault_parse_try(emu_fault_parser_t *p, const char *name,
                               char *value)
{
    int kind = emu_fault_name_find(emu_fault_try_names, EMU_FAULT_TRY_LAST,
                                   value);

    if (kind < 0) {
        return emu_fault_fail(p, "%s=%s: expected first (never a "
                              "retransmission), again (retransmissions only) "
                              "or any", name, value);
    }

    p->rule.try_kind = kind;
    return 0;
}

static int emu_fault_parse_nth(emu_fault_parser_t *p, const char *name,
                               char *value)
{
    const char *end;

    if (emu_fault_parse_u64(value, &p->rule.nth, &end) || (*end != '\0') ||
        (p->rule.nth == 0)) {
        return emu_fault_fail(p, "%s=%s: expected 1, 2, 3, ...", name, value);
    }

    return 0;
}

static int emu_fault_parse_count(emu_fault_parser_t *p, const char *name,
                                 char *value)
{
    const char *end;

    if (!strcmp(value, "all")) {
        p->rule.count = UINT64_MAX;
        return 0;
    }

    if (emu_fault_parse_u64(value, &p->rule.count, &end) || (*end != '\0') ||
        (p->rule.count == 0)) {
        return emu_fault_fail(p, "%s=%s: expected 1, 2, 3, ... or all", name,
                              value);
    }

    return 0;
}

/* A part of one: 0 to 1 */
static int emu_fault_parse_ppm(const char *text, uint32_t *ppm_p)
{
    double part;
    char *end;

    errno = 0;
    part  = strtod(text, &end);
    if (!(isdigit((unsigned char)text[0]) || (text[0] == '.')) ||
        (errno != 0) || (end == text) || (*end != '\0') || !(part >= 0) ||
        !(part <= 1)) {
        return -1;
    }

    *ppm_p = part * EMU_FAULT_PPM_ONE + 0.5;
    return 0;
}

static int emu_fault_parse_prob(emu_fault_parser_t *p, const char *name,
                                char *value)
{
    return emu_fault_parse_ppm(value, &p->rule.prob_ppm) ?
           emu_fault_fail(p, "%s=%s: expected a number from 0 to 1", name,
                          value) : 0;
}

/* Order: as the printer writes them */
static const emu_fault_key_t emu_fault_keys[] = {
    {"op",        emu_fault_parse_op},
    {"type",      emu_fault_parse_type},
    {"host",      emu_fault_parse_host},
    {"peer",      emu_fault_parse_peer},
    {"link",      emu_fault_parse_link},
    {"qp",        emu_fault_parse_qp},
    {"wqe",       emu_fault_parse_wqe},
    {"size",      emu_fault_parse_size},
    {"prev",      emu_fault_parse_prev},
    {"prev_size", emu_fault_parse_prev_size},
    {"pkt",       emu_fault_parse_pkt},
    {"try",       emu_fault_parse_try},
    {"nth",       emu_fault_parse_nth},
    {"count",     emu_fault_parse_count},
    {"prob",      emu_fault_parse_prob},
    {"seed",      emu_fault_parse_seed},
    {"name",      emu_fault_parse_name}
};

#define EMU_FAULT_NUM_KEYS (sizeof(emu_fault_keys) / sizeof(emu_fault_keys[0]))


/* A number with its unit */
static int emu_fault_read_time(const char *text, uint64_t *ns_p)
{
    const char *end;
    unsigned i;

    if (emu_fault_parse_u64(text, ns_p, &end)) {
        return -1;
    }

    for (i = 0; i < EMU_FAULT_NUM_TIMES; ++i) {
        if (!strcmp(end, emu_fault_time_units[i].name)) {
            return __builtin_mul_overflow(*ns_p, emu_fault_time_units[i].value,
                                          ns_p) ? -1 : 0;
        }
    }

    return -1;
}

static int emu_fault_read_port(const char *text, uint32_t *host_p,
                               uint32_t *link_p)
{
    const char *end;
    uint64_t host, link;

    if (emu_fault_parse_u64(text, &host, &end) || (*end != ':') ||
        emu_fault_parse_u64(end + 1, &link, &end) || (*end != '\0') ||
        (host > 254) || (link > 254)) {
        return -1;
    }

    *host_p = host;
    *link_p = link;
    return 0;
}

/* until:NAME, until:post+N, until:STATE=HOST:LINK */
static int emu_fault_parse_until(emu_fault_parser_t *p, const char *name,
                                 const char *text)
{
    emu_fault_wait_t *wait = &p->rule.wait;
    uint32_t host, link;
    const char *port;
    uint64_t num;

    if (!strncmp(text, "post+", 5)) {
        if (emu_fault_parse_u64(text + 5, &num, &port) || (*port != '\0') ||
            (num < 1) || (num > UINT32_MAX)) {
            return emu_fault_fail(p, "%s=until:%s: expected post+1, post+2, "
                                  "...", name, text);
        }
        wait->until = EMU_FAULT_UNTIL_POST;
        wait->num   = num;
        return 0;
    }

    port = strchr(text, '=');
    if (port == NULL) {
        wait->until = EMU_FAULT_UNTIL_RULE;
        return emu_fault_copy_name(p, "until", text, wait->name);
    }

    wait->until = EMU_FAULT_UNTIL_LINK;
    if (!strncmp(text, "up=", 3)) {
        wait->state = EMU_FAULT_ACTION_UP;
    } else if (!strncmp(text, "down=", 5)) {
        wait->state = EMU_FAULT_ACTION_DOWN;
    } else if (!strncmp(text, "silent=", 7)) {
        wait->state = EMU_FAULT_ACTION_SILENT;
    }

    if ((wait->state == EMU_FAULT_ACTION_NONE) ||
        emu_fault_read_port(port + 1, &host, &link)) {
        return emu_fault_fail(p, "%s=until:%s: expected until:NAME of a rule, "
                              "until:post+N, or until:up=HOST:LINK, down or "
                              "silent", name, text);
    }

    wait->host = host;
    wait->link = link;
    return 0;
}

/* Of delay and dup */
static int emu_fault_parse_time(emu_fault_parser_t *p, const char *name,
                                const char *value)
{
    if (!strncmp(value, "until:", 6)) {
        return emu_fault_parse_until(p, name, value + 6);
    }

    return emu_fault_read_time(value, &p->rule.value_ns) ?
           emu_fault_fail(p, "%s=%s: expected a time with its unit, such as "
                          "500us, 20ms or 1s, or until:...", name, value) : 0;
}

static int emu_fault_parse_at(emu_fault_parser_t *p, const char *name,
                              const char *value)
{
    return emu_fault_read_port(value, &p->rule.at_host, &p->rule.at_link) ?
           emu_fault_fail(p, "%s=%s: expected HOST:LINK, such as %s=1:0",
                          name, value, name) : 0;
}

int emu_fault_parse_flap(const char *text, uint64_t *period_p,
                         uint32_t *up_ppm_p, char *err, size_t err_max)
{
    const char *comma = strchr(text, ',');
    uint32_t up_ppm   = EMU_FAULT_PPM_ONE / 2;
    char period[32];
    size_t len;

    len = (comma != NULL) ? (size_t)(comma - text) : strlen(text);
    snprintf(period, sizeof(period), "%.*s", (int)len, text);
    if ((len >= sizeof(period)) || emu_fault_read_time(period, period_p) ||
        (*period_p < 1000) ||
        ((comma != NULL) && emu_fault_parse_ppm(comma + 1, &up_ppm)) ||
        (up_ppm == 0) || (up_ppm == EMU_FAULT_PPM_ONE)) {
        snprintf(err, err_max, "flap=%s: expected PERIOD or PERIOD,DUTY: a "
                 "time of at least 1us, such as 20ms, and the part of it "
                 "during which the link is up, between 0 and 1 (0.5)", text);
        return -1;
    }

    *up_ppm_p = up_ppm;
    return 0;
}

/* flap=PERIOD[,DUTY][@HOST:LINK] */
static int emu_fault_parse_flap_value(emu_fault_parser_t *p, const char *name,
                                      const char *value)
{
    char text[EMU_FAULT_LINE_MAX];
    char *at;

    snprintf(text, sizeof(text), "%s", value);
    at = strchr(text, '@');
    if (at != NULL) {
        *at++ = '\0';
        if (emu_fault_read_port(at, &p->rule.at_host, &p->rule.at_link)) {
            return emu_fault_fail(p, "%s=%s: expected HOST:LINK behind the @",
                                  name, value);
        }
    }

    return emu_fault_parse_flap(text, &p->rule.value_ns, &p->rule.flap_ppm,
                                p->err, p->err_max);
}

static int emu_fault_parse_action(emu_fault_parser_t *p, unsigned action,
                                  const char *name, const char *value)
{
    if (p->have_action) {
        return emu_fault_fail(p, "a rule has one action, and \"%s\" is a "
                              "second one: make it a rule of its own", name);
    }

    p->have_action = 1;
    p->rule.action = action;
    switch (action) {
    case EMU_FAULT_ACTION_DELAY:
        if (value == NULL) {
            return emu_fault_fail(p, "delay needs a time, such as delay=20ms");
        }
        return emu_fault_parse_time(p, name, value);
    case EMU_FAULT_ACTION_DUP:
        return (value == NULL) ? 0 : emu_fault_parse_time(p, name, value);
    case EMU_FAULT_ACTION_FLAP:
        if (value == NULL) {
            return emu_fault_fail(p, "flap needs a period, such as flap=20ms");
        }
        return emu_fault_parse_flap_value(p, name, value);
    case EMU_FAULT_ACTION_DOWN:
    case EMU_FAULT_ACTION_SILENT:
    case EMU_FAULT_ACTION_UP:
    case EMU_FAULT_ACTION_KILL:
    case EMU_FAULT_ACTION_KILL_SILENT:
        return (value == NULL) ? 0 : emu_fault_parse_at(p, name, value);
    default:
        return (value == NULL) ? 0 :
               emu_fault_fail(p, "%s takes no value", name);
    }
}

static int emu_fault_parse_selector(emu_fault_parser_t *p, const char *name,
                                    char *value)
{
    unsigned i;

    for (i = 0; i < EMU_FAULT_NUM_KEYS; ++i) {
        if (strcmp(emu_fault_keys[i].name, name)) {
            continue;
        }

        if (value == NULL) {
            return emu_fault_fail(p, "%s needs a value: %s=...", name, name);
        }

        if (p->keys & EMU_FAULT_BIT(i)) {
            return emu_fault_fail(p, "%s= is given twice", name);
        }

        p->keys |= EMU_FAULT_BIT(i);
        return emu_fault_keys[i].parse(p, name, value);
    }

    return emu_fault_fail(p, "\"%s\" is neither a selector (op, type, host, "
                          "peer, link, qp, wqe, size, prev, prev_size, pkt, "
                          "try, nth, count, prob, seed, name) nor an action "
                          "(drop, delay, dup, down, silent, up, flap, kill, "
                          "kill_silent, hang, count)", name);
}

static int emu_fault_parse_word(emu_fault_parser_t *p, char *word)
{
    char *value = strchr(word, '=');
    int index;

    if (!p->have_point) {
        index = emu_fault_name_find(emu_fault_point_names,
                                    EMU_FAULT_POINT_LAST, word);
        if (index < 0) {
            return emu_fault_fail(p, "a rule starts with a point: post, "
                                  "packet, exec, ack, rmw or err, not \"%s\"",
                                  word);
        }

        p->have_point = 1;
        p->rule.point = index;
        return 0;
    }

    if (value != NULL) {
        *value++ = '\0';
    }

    index = emu_fault_name_find(emu_fault_action_names, EMU_FAULT_ACTION_LAST,
                                word);
    /* "count" is an action when bare and a selector when it has a value */
    if ((index < 0) ||
        ((index == EMU_FAULT_ACTION_NONE) && (value != NULL))) {
        return emu_fault_parse_selector(p, word, value);
    }

    return emu_fault_parse_action(p, index, word, value);
}

/* At point err there is a queue pair, and no request */
static int emu_fault_check_err(emu_fault_parser_t *p)
{
    const emu_fault_rule_t *rule = &p->rule;

    if ((rule->op_mask != 0) || (rule->prev_mask != 0) ||
        (rule->peer != EMU_FAULT_ANY) || (rule->wqe != EMU_FAULT_ANY) ||
        (rule->size_min != 0) || (rule->size_max != UINT64_MAX) ||
        (rule->prev_min != 0) || (rule->prev_max != UINT64_MAX)) {
        return emu_fault_fail(p, "at point err there is no request: only host=, "
                              "link=, qp= and type= select");
    }

    if (rule->action == EMU_FAULT_ACTION_HANG) {
        return emu_fault_fail(p, "a queue pair in ERR cannot hang: use post or "
                              "exec");
    }

    return 0;
}

/* Combinations that no event could ever satisfy, or whose action means
 * nothing there */
static int emu_fault_check_rule(emu_fault_parser_t *p)
{
    const emu_fault_rule_t *rule = &p->rule;
    int has_packet               = (rule->point == EMU_FAULT_POINT_PACKET) ||
                                   (rule->point == EMU_FAULT_POINT_ACK);
    int waits_inside             = (rule->point == EMU_FAULT_POINT_RMW) &&
                                   (rule->action == EMU_FAULT_ACTION_DELAY);

    if (!p->have_point) {
        return emu_fault_fail(p, "the rule is empty: expected POINT "
                              "[SELECTOR=VALUE]... ACTION");
    }

    if (!p->have_action) {
        return emu_fault_fail(p, "the rule has no action: expected drop, "
                              "delay=TIME, dup[=TIME], down[=HOST:LINK], "
                              "silent[=HOST:LINK], up[=HOST:LINK], "
                              "flap=PERIOD, kill[=HOST:LINK], hang or count");
    }

    if (waits_inside && (rule->wait.until == EMU_FAULT_UNTIL_POST)) {
        return emu_fault_fail(p, "at point rmw nothing can be posted to the "
                              "queue pair meanwhile: wait for a time, a rule "
                              "or a link");
    }

    if (!has_packet && !waits_inside &&
        ((rule->action == EMU_FAULT_ACTION_DROP) ||
         (rule->action == EMU_FAULT_ACTION_DELAY) ||
         (rule->action == EMU_FAULT_ACTION_DUP))) {
        return emu_fault_fail(p, "at point %s there is no packet to %s: use "
                              "packet (towards the responder) or ack "
                              "(back from it)",
                              emu_fault_point_names[rule->point],
                              emu_fault_action_names[rule->action]);
    }

    if (!has_packet && (rule->pkt != EMU_FAULT_ANY)) {
        return emu_fault_fail(p, "pkt= needs point packet or ack");
    }

    if (!has_packet && (rule->try_kind != EMU_FAULT_TRY_ANY)) {
        return emu_fault_fail(p, "try= needs point packet or ack");
    }

    return (rule->point == EMU_FAULT_POINT_ERR) ? emu_fault_check_err(p) : 0;
}

static void emu_fault_rule_default(emu_fault_rule_t *rule)
{
    memset(rule, 0, sizeof(*rule));
    rule->host     = EMU_FAULT_ANY;
    rule->peer     = EMU_FAULT_ANY;
    rule->link     = EMU_FAULT_ANY;
    rule->qpn      = EMU_FAULT_ANY;
    rule->wqe      = EMU_FAULT_ANY;
    rule->pkt      = EMU_FAULT_ANY;
    rule->at_host  = EMU_FAULT_ANY;
    rule->at_link  = EMU_FAULT_ANY;
    rule->size_max = UINT64_MAX;
    rule->prev_max = UINT64_MAX;
    rule->nth      = 1;
    rule->count    = 1;
    rule->prob_ppm = EMU_FAULT_PPM_ONE;
}

int emu_fault_rule_parse(const char *line, emu_fault_rule_t *rule_p, char *err,
                         size_t err_max)
{
    static const char *space = " \t\r\n";
    emu_fault_parser_t p     = {.err = err, .err_max = err_max};
    char *save               = NULL;
    char text[EMU_FAULT_LINE_MAX];
    char *word;

    if (strlen(line) >= sizeof(text)) {
        return emu_fault_fail(&p, "the rule is longer than %zu characters",
                              sizeof(text) - 1);
    }

    strcpy(text, line);
    emu_fault_rule_default(&p.rule);
    for (word = strtok_r(text, space, &save); word != NULL;
         word = strtok_r(NULL, space, &save)) {
        if (emu_fault_parse_word(&p, word)) {
            return -1;
        }
    }

    if (emu_fault_check_rule(&p)) {
        return -1;
    }

    *rule_p = p.rule;
    return 0;
}
