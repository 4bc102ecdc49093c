/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Text form of fault rules: parser and printer. The language is described in
 * mlx5emu(1); keep both alike. Pure: see emu_fault_rule.h.
 */

#include "emu_fault_rule.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMU_FAULT_BIT(_n)     (1u << (_n))
#define EMU_FAULT_PPM_ONE     1000000u
#define EMU_FAULT_ARRAY_LEN(_a) (sizeof(_a) / sizeof((_a)[0]))

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

const char *emu_fault_point_names[EMU_FAULT_POINT_LAST] = {
    [EMU_FAULT_POINT_POST]   = "post",
    [EMU_FAULT_POINT_PACKET] = "packet",
    [EMU_FAULT_POINT_EXEC]   = "exec",
    [EMU_FAULT_POINT_ACK]    = "ack"
};

const char *emu_fault_op_names[EMU_FAULT_OP_LAST] = {
    [EMU_FAULT_OP_SEND]      = "send",
    [EMU_FAULT_OP_SEND_IMM]  = "send_imm",
    [EMU_FAULT_OP_WRITE]     = "write",
    [EMU_FAULT_OP_WRITE_IMM] = "write_imm",
    [EMU_FAULT_OP_READ]      = "read",
    [EMU_FAULT_OP_CAS]       = "cas",
    [EMU_FAULT_OP_FAA]       = "faa"
};

const char *emu_fault_action_names[EMU_FAULT_ACTION_LAST] = {
    [EMU_FAULT_ACTION_NONE]   = "count",
    [EMU_FAULT_ACTION_DROP]   = "drop",
    [EMU_FAULT_ACTION_DELAY]  = "delay",
    [EMU_FAULT_ACTION_DUP]    = "dup",
    [EMU_FAULT_ACTION_DOWN]   = "down",
    [EMU_FAULT_ACTION_SILENT] = "silent",
    [EMU_FAULT_ACTION_UP]     = "up"
};

static const char *emu_fault_try_names[EMU_FAULT_TRY_LAST] = {
    [EMU_FAULT_TRY_ANY]   = "any",
    [EMU_FAULT_TRY_FIRST] = "first",
    [EMU_FAULT_TRY_AGAIN] = "again"
};

/** Units of time, largest first: how values are printed. */
static const struct {
    const char *name;
    uint64_t   ns;
} emu_fault_time_units[] = {
    {"s", 1000000000ull}, {"ms", 1000000ull}, {"us", 1000ull}, {"ns", 1ull}
};

static const struct {
    const char *name;
    uint64_t   bytes;
} emu_fault_size_units[] = {
    {"g", 1ull << 30}, {"m", 1ull << 20}, {"k", 1ull << 10}, {"", 1ull}
};


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
    return emu_fault_parse_u32(p, name, value, UINT32_MAX, &p->rule.seed);
}

static int emu_fault_parse_op(emu_fault_parser_t *p, const char *name,
                              char *value)
{
    char *save = NULL;
    char *word;
    int op;

    for (word = strtok_r(value, ",", &save); word != NULL;
         word = strtok_r(NULL, ",", &save)) {
        op = emu_fault_name_find(emu_fault_op_names, EMU_FAULT_OP_LAST, word);
        if (op < 0) {
            return emu_fault_fail(p, "%s=%s: unknown kind of operation, "
                                  "expected send, send_imm, write, write_imm, "
                                  "read, cas or faa, or several of them "
                                  "separated by commas", name, word);
        }

        p->rule.op_mask |= EMU_FAULT_BIT(op);
    }

    if (p->rule.op_mask == 0) {
        return emu_fault_fail(p, "%s= needs a kind of operation", name);
    }

    return 0;
}

static int emu_fault_parse_bytes(const char *text, uint64_t *value_p,
                                 const char **end_p)
{
    unsigned i;

    if (emu_fault_parse_u64(text, value_p, end_p)) {
        return -1;
    }

    for (i = 0; i < EMU_FAULT_ARRAY_LEN(emu_fault_size_units) - 1; ++i) {
        if (tolower((unsigned char)**end_p) ==
            emu_fault_size_units[i].name[0]) {
            ++*end_p;
            return __builtin_mul_overflow(*value_p,
                                          emu_fault_size_units[i].bytes,
                                          value_p) ? -1 : 0;
        }
    }

    return 0;
}

static int emu_fault_parse_size(emu_fault_parser_t *p, const char *name,
                                char *value)
{
    const char *text = value;

    p->rule.size_min = 0;
    p->rule.size_max = UINT64_MAX;
    if ((*text != '-') &&
        emu_fault_parse_bytes(text, &p->rule.size_min, &text)) {
        goto err;
    }

    if ((*text == '\0') && (text != value)) {
        p->rule.size_max = p->rule.size_min;
        return 0;
    }

    if (*text != '-') {
        goto err;
    }

    ++text;
    if ((*text == '\0') && (text != value + 1)) {
        return 0;
    }

    if (emu_fault_parse_bytes(text, &p->rule.size_max, &text) ||
        (*text != '\0')) {
        goto err;
    }

    if (p->rule.size_max < p->rule.size_min) {
        return emu_fault_fail(p, "%s=%s: the first number is larger than the "
                              "second", name, value);
    }

    return 0;

err:
    return emu_fault_fail(p, "%s=%s: expected N, MIN-MAX, MIN- or -MAX, in "
                          "bytes or with k, m or g", name, value);
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

static int emu_fault_parse_prob(emu_fault_parser_t *p, const char *name,
                                char *value)
{
    double prob;
    char *end;

    errno = 0;
    prob  = strtod(value, &end);
    if (!(isdigit((unsigned char)value[0]) || (value[0] == '.')) ||
        (errno != 0) || (end == value) || (*end != '\0') || !(prob >= 0) ||
        !(prob <= 1)) {
        return emu_fault_fail(p, "%s=%s: expected a number from 0 to 1", name,
                              value);
    }

    p->rule.prob_ppm = prob * EMU_FAULT_PPM_ONE + 0.5;
    return 0;
}

/* Order: as the printer writes them */
static const emu_fault_key_t emu_fault_keys[] = {
    {"op",    emu_fault_parse_op},
    {"host",  emu_fault_parse_host},
    {"peer",  emu_fault_parse_peer},
    {"link",  emu_fault_parse_link},
    {"qp",    emu_fault_parse_qp},
    {"wqe",   emu_fault_parse_wqe},
    {"size",  emu_fault_parse_size},
    {"pkt",   emu_fault_parse_pkt},
    {"try",   emu_fault_parse_try},
    {"nth",   emu_fault_parse_nth},
    {"count", emu_fault_parse_count},
    {"prob",  emu_fault_parse_prob},
    {"seed",  emu_fault_parse_seed}
};


static int emu_fault_parse_time(emu_fault_parser_t *p, const char *name,
                                const char *value)
{
    const char *end;
    unsigned i;

    if (emu_fault_parse_u64(value, &p->rule.value_ns, &end)) {
        goto err;
    }

    for (i = 0; i < EMU_FAULT_ARRAY_LEN(emu_fault_time_units); ++i) {
        if (!strcmp(end, emu_fault_time_units[i].name) &&
            !__builtin_mul_overflow(p->rule.value_ns,
                                    emu_fault_time_units[i].ns,
                                    &p->rule.value_ns)) {
            return 0;
        }
    }

err:
    return emu_fault_fail(p, "%s=%s: expected a time with its unit, such as "
                          "500us, 20ms or 1s", name, value);
}

static int emu_fault_parse_at(emu_fault_parser_t *p, const char *name,
                              const char *value)
{
    const char *end;
    uint64_t host, link;

    if (emu_fault_parse_u64(value, &host, &end) || (*end != ':') ||
        emu_fault_parse_u64(end + 1, &link, &end) || (*end != '\0') ||
        (host > 254) || (link > 254)) {
        return emu_fault_fail(p, "%s=%s: expected HOST:LINK, such as %s=1:0",
                              name, value, name);
    }

    p->rule.at_host = host;
    p->rule.at_link = link;
    return 0;
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
    case EMU_FAULT_ACTION_DOWN:
    case EMU_FAULT_ACTION_SILENT:
    case EMU_FAULT_ACTION_UP:
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

    for (i = 0; i < EMU_FAULT_ARRAY_LEN(emu_fault_keys); ++i) {
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

    return emu_fault_fail(p, "\"%s\" is neither a selector (op, host, peer, "
                          "link, qp, wqe, size, pkt, try, nth, count, prob, "
                          "seed) nor an action (drop, delay, dup, down, "
                          "silent, up, count)", name);
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
                                  "packet, exec or ack, not \"%s\"", word);
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

/* Combinations that no event could ever satisfy, or whose action means
 * nothing there */
static int emu_fault_check_rule(emu_fault_parser_t *p)
{
    const emu_fault_rule_t *rule = &p->rule;
    int has_packet               = (rule->point == EMU_FAULT_POINT_PACKET) ||
                                   (rule->point == EMU_FAULT_POINT_ACK);

    if (!p->have_point) {
        return emu_fault_fail(p, "the rule is empty: expected POINT "
                              "[SELECTOR=VALUE]... ACTION");
    }

    if (!p->have_action) {
        return emu_fault_fail(p, "the rule has no action: expected drop, "
                              "delay=TIME, dup[=TIME], down[=HOST:LINK], "
                              "silent[=HOST:LINK], up[=HOST:LINK] or count");
    }

    if (!has_packet && ((rule->action == EMU_FAULT_ACTION_DROP) ||
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

    return 0;
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


/** A buffer that text is appended to; what does not fit is cut. */
typedef struct emu_fault_text {
    char   *buf;
    size_t max;
    size_t len;
} emu_fault_text_t;

static void __attribute__((format(printf, 2, 3)))
emu_fault_text_add(emu_fault_text_t *text, const char *fmt, ...)
{
    va_list ap;
    int len;

    if (text->len >= text->max) {
        return;
    }

    va_start(ap, fmt);
    len = vsnprintf(text->buf + text->len, text->max - text->len, fmt, ap);
    va_end(ap);
    text->len += (len > 0) ? len : 0;
}

static void emu_fault_text_add_u32(emu_fault_text_t *text, const char *name,
                                   uint32_t value)
{
    if (value != EMU_FAULT_ANY) {
        emu_fault_text_add(text, " %s=%" PRIu32, name, value);
    }
}

static void emu_fault_text_add_bytes(emu_fault_text_t *text, uint64_t value)
{
    unsigned i = 0;

    if (value == 0) {
        emu_fault_text_add(text, "0");
        return;
    }

    while (value % emu_fault_size_units[i].bytes) {
        ++i;
    }

    emu_fault_text_add(text, "%" PRIu64 "%s",
                       value / emu_fault_size_units[i].bytes,
                       emu_fault_size_units[i].name);
}

static void emu_fault_text_add_time(emu_fault_text_t *text, uint64_t value)
{
    unsigned i = 0;

    if (value == 0) {
        emu_fault_text_add(text, "=0ns");
        return;
    }

    while (value % emu_fault_time_units[i].ns) {
        ++i;
    }

    emu_fault_text_add(text, "=%" PRIu64 "%s",
                       value / emu_fault_time_units[i].ns,
                       emu_fault_time_units[i].name);
}

static void emu_fault_text_add_op(emu_fault_text_t *text, uint32_t mask)
{
    const char *separator = " op=";
    unsigned op;

    for (op = 0; op < EMU_FAULT_OP_LAST; ++op) {
        if (mask & EMU_FAULT_BIT(op)) {
            emu_fault_text_add(text, "%s%s", separator,
                               emu_fault_op_names[op]);
            separator = ",";
        }
    }
}

static void emu_fault_text_add_size(emu_fault_text_t *text, uint64_t min,
                                    uint64_t max)
{
    if ((min == 0) && (max == UINT64_MAX)) {
        return;
    }

    emu_fault_text_add(text, " size=");
    if ((min != 0) || (max == 0)) {
        emu_fault_text_add_bytes(text, min);
    }

    if (min != max) {
        emu_fault_text_add(text, "-");
        if (max != UINT64_MAX) {
            emu_fault_text_add_bytes(text, max);
        }
    }
}

static void emu_fault_text_add_pkt(emu_fault_text_t *text, uint32_t pkt)
{
    if (pkt == EMU_FAULT_PKT_LAST) {
        emu_fault_text_add(text, " pkt=last");
    } else if (pkt == EMU_FAULT_PKT_MIDDLE) {
        emu_fault_text_add(text, " pkt=middle");
    } else {
        emu_fault_text_add_u32(text, "pkt", pkt);
    }
}

static void emu_fault_text_add_times(emu_fault_text_t *text,
                                     const emu_fault_rule_t *rule)
{
    if (rule->nth != 1) {
        emu_fault_text_add(text, " nth=%" PRIu64, rule->nth);
    }

    if (rule->count == UINT64_MAX) {
        emu_fault_text_add(text, " count=all");
    } else if (rule->count != 1) {
        emu_fault_text_add(text, " count=%" PRIu64, rule->count);
    }

    if (rule->prob_ppm != EMU_FAULT_PPM_ONE) {
        emu_fault_text_add(text, " prob=%.6g seed=%" PRIu32,
                           (double)rule->prob_ppm / EMU_FAULT_PPM_ONE,
                           rule->seed);
    }
}

static void emu_fault_text_add_action(emu_fault_text_t *text,
                                      const emu_fault_rule_t *rule)
{
    emu_fault_text_add(text, " %s", emu_fault_action_names[rule->action]);
    if ((rule->action == EMU_FAULT_ACTION_DELAY) ||
        ((rule->action == EMU_FAULT_ACTION_DUP) && (rule->value_ns != 0))) {
        emu_fault_text_add_time(text, rule->value_ns);
    } else if (rule->at_host != EMU_FAULT_ANY) {
        emu_fault_text_add(text, "=%" PRIu32 ":%" PRIu32, rule->at_host,
                           rule->at_link);
    }
}

char *emu_fault_rule_format(const emu_fault_rule_t *rule, char *buf, size_t max)
{
    emu_fault_text_t text = {.buf = buf, .max = max};

    buf[0] = '\0';
    emu_fault_text_add(&text, "%s", emu_fault_point_names[rule->point]);
    emu_fault_text_add_op(&text, rule->op_mask);
    emu_fault_text_add_u32(&text, "host", rule->host);
    emu_fault_text_add_u32(&text, "peer", rule->peer);
    emu_fault_text_add_u32(&text, "link", rule->link);
    emu_fault_text_add_u32(&text, "qp", rule->qpn);
    emu_fault_text_add_u32(&text, "wqe", rule->wqe);
    emu_fault_text_add_size(&text, rule->size_min, rule->size_max);
    emu_fault_text_add_pkt(&text, rule->pkt);
    if (rule->try_kind != EMU_FAULT_TRY_ANY) {
        emu_fault_text_add(&text, " try=%s",
                           emu_fault_try_names[rule->try_kind]);
    }

    emu_fault_text_add_times(&text, rule);
    emu_fault_text_add_action(&text, rule);
    return buf;
}
