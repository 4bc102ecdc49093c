/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Text form of fault rules: words, units and the printer. Pure: see
 * emu_fault_rule.h.
 */

#include "emu_fault_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *emu_fault_point_names[EMU_FAULT_POINT_LAST] = {
    [EMU_FAULT_POINT_POST]   = "post",
    [EMU_FAULT_POINT_PACKET] = "packet",
    [EMU_FAULT_POINT_EXEC]   = "exec",
    [EMU_FAULT_POINT_ACK]    = "ack",
    [EMU_FAULT_POINT_RMW]    = "rmw",
    [EMU_FAULT_POINT_ERR]    = "err"
};

const char *emu_fault_op_names[EMU_FAULT_OP_LAST] = {
    [EMU_FAULT_OP_SEND]      = "send",
    [EMU_FAULT_OP_SEND_IMM]  = "send_imm",
    [EMU_FAULT_OP_WRITE]     = "write",
    [EMU_FAULT_OP_WRITE_IMM] = "write_imm",
    [EMU_FAULT_OP_READ]      = "read",
    [EMU_FAULT_OP_CAS]       = "cas",
    [EMU_FAULT_OP_FAA]       = "faa",
    [EMU_FAULT_OP_NOP]       = "nop"
};

const char *emu_fault_action_names[EMU_FAULT_ACTION_LAST] = {
    [EMU_FAULT_ACTION_NONE]   = "count",
    [EMU_FAULT_ACTION_DROP]   = "drop",
    [EMU_FAULT_ACTION_DELAY]  = "delay",
    [EMU_FAULT_ACTION_DUP]    = "dup",
    [EMU_FAULT_ACTION_DOWN]   = "down",
    [EMU_FAULT_ACTION_SILENT] = "silent",
    [EMU_FAULT_ACTION_UP]     = "up",
    [EMU_FAULT_ACTION_FLAP]   = "flap",
    [EMU_FAULT_ACTION_KILL]   = "kill",
    [EMU_FAULT_ACTION_KILL_SILENT] = "kill_silent",
    [EMU_FAULT_ACTION_HANG]   = "hang"
};

const char *emu_fault_qp_names[EMU_FAULT_QP_LAST] = {
    [EMU_FAULT_QP_RC] = "rc",
    [EMU_FAULT_QP_UD] = "ud",
    [EMU_FAULT_QP_DC] = "dc"
};

const char *emu_fault_try_names[EMU_FAULT_TRY_LAST] = {
    [EMU_FAULT_TRY_ANY]   = "any",
    [EMU_FAULT_TRY_FIRST] = "first",
    [EMU_FAULT_TRY_AGAIN] = "again"
};

const emu_fault_unit_t emu_fault_time_units[EMU_FAULT_NUM_TIMES] = {
    {"s", 1000000000ull}, {"ms", 1000000ull}, {"us", 1000ull}, {"ns", 1ull}
};

const emu_fault_unit_t emu_fault_size_units[EMU_FAULT_NUM_SIZES] = {
    {"g", 1ull << 30}, {"m", 1ull << 20}, {"k", 1ull << 10}, {"", 1ull}
};


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

    while (value % emu_fault_size_units[i].value) {
        ++i;
    }

    emu_fault_text_add(text, "%" PRIu64 "%s",
                       value / emu_fault_size_units[i].value,
                       emu_fault_size_units[i].name);
}

static void emu_fault_text_add_time(emu_fault_text_t *text, uint64_t value)
{
    unsigned i = 0;

    if (value == 0) {
        emu_fault_text_add(text, "=0ns");
        return;
    }

    while (value % emu_fault_time_units[i].value) {
        ++i;
    }

    emu_fault_text_add(text, "=%" PRIu64 "%s",
                       value / emu_fault_time_units[i].value,
                       emu_fault_time_units[i].name);
}

static void emu_fault_text_add_mask(emu_fault_text_t *text, const char *key,
                                    uint32_t mask, const char *const *names,
                                    unsigned num)
{
    const char *separator = key;
    unsigned i;

    for (i = 0; i < num; ++i) {
        if (mask & EMU_FAULT_BIT(i)) {
            emu_fault_text_add(text, "%s%s", separator, names[i]);
            separator = ",";
        }
    }
}

static void emu_fault_text_add_size(emu_fault_text_t *text, const char *key,
                                    uint64_t min, uint64_t max)
{
    if ((min == 0) && (max == UINT64_MAX)) {
        return;
    }

    emu_fault_text_add(text, " %s=", key);
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
        emu_fault_text_add(text, " prob=%.6g",
                           (double)rule->prob_ppm / EMU_FAULT_PPM_ONE);
        if (rule->have_seed) {
            emu_fault_text_add(text, " seed=%" PRIu32, rule->seed);
        }
    }
}

static void emu_fault_text_add_wait(emu_fault_text_t *text,
                                    const emu_fault_wait_t *wait)
{
    switch (wait->until) {
    case EMU_FAULT_UNTIL_RULE:
        emu_fault_text_add(text, "=until:%s", wait->name);
        break;
    case EMU_FAULT_UNTIL_LINK:
        emu_fault_text_add(text, "=until:%s=%u:%u",
                           emu_fault_action_names[wait->state], wait->host,
                           wait->link);
        break;
    default:
        emu_fault_text_add(text, "=until:post+%" PRIu32, wait->num);
        break;
    }
}

static void emu_fault_text_add_flap(emu_fault_text_t *text,
                                    const emu_fault_rule_t *rule)
{
    emu_fault_text_add_time(text, rule->value_ns);
    if (rule->flap_ppm != EMU_FAULT_PPM_ONE / 2) {
        emu_fault_text_add(text, ",%.6g",
                           (double)rule->flap_ppm / EMU_FAULT_PPM_ONE);
    }

    if (rule->at_host != EMU_FAULT_ANY) {
        emu_fault_text_add(text, "@%" PRIu32 ":%" PRIu32, rule->at_host,
                           rule->at_link);
    }
}

static void emu_fault_text_add_action(emu_fault_text_t *text,
                                      const emu_fault_rule_t *rule)
{
    emu_fault_text_add(text, " %s", emu_fault_action_names[rule->action]);
    if (rule->wait.until != EMU_FAULT_UNTIL_NONE) {
        emu_fault_text_add_wait(text, &rule->wait);
    } else if (rule->action == EMU_FAULT_ACTION_FLAP) {
        emu_fault_text_add_flap(text, rule);
    } else if ((rule->action == EMU_FAULT_ACTION_DELAY) ||
               ((rule->action == EMU_FAULT_ACTION_DUP) &&
                (rule->value_ns != 0))) {
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
    emu_fault_text_add_mask(&text, " op=", rule->op_mask, emu_fault_op_names,
                            EMU_FAULT_OP_LAST);
    emu_fault_text_add_mask(&text, " type=", rule->type_mask,
                            emu_fault_qp_names, EMU_FAULT_QP_LAST);
    emu_fault_text_add_u32(&text, "host", rule->host);
    emu_fault_text_add_u32(&text, "peer", rule->peer);
    emu_fault_text_add_u32(&text, "link", rule->link);
    emu_fault_text_add_u32(&text, "qp", rule->qpn);
    emu_fault_text_add_u32(&text, "wqe", rule->wqe);
    emu_fault_text_add_size(&text, "size", rule->size_min, rule->size_max);
    emu_fault_text_add_mask(&text, " prev=", rule->prev_mask,
                            emu_fault_op_names, EMU_FAULT_OP_LAST);
    emu_fault_text_add_size(&text, "prev_size", rule->prev_min,
                            rule->prev_max);
    emu_fault_text_add_pkt(&text, rule->pkt);
    if (rule->try_kind != EMU_FAULT_TRY_ANY) {
        emu_fault_text_add(&text, " try=%s",
                           emu_fault_try_names[rule->try_kind]);
    }

    emu_fault_text_add_times(&text, rule);
    if (rule->name[0] != '\0') {
        emu_fault_text_add(&text, " name=%s", rule->name);
    }

    emu_fault_text_add_action(&text, rule);
    return buf;
}
