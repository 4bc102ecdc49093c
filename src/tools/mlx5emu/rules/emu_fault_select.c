/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Selectors of fault rules: what a rule is about. See emu_fault_select.h.
 */

#include "emu_fault_select.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/** A selector: reads its value into the rule, returns 0 or -1. */
typedef struct emu_fault_key {
    const char *name;
    int        (*parse)(emu_fault_parser_t *p, const char *name, char *value);
} emu_fault_key_t;

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
    "send, send_imm, write, write_imm, read, cas, faa or nop"

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

int emu_fault_parse_selector(emu_fault_parser_t *p, const char *name,
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
