/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Rates, latencies and queues of links as words.
 */

#include "ctl.h"
#include "../rules/emu_fault_value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct ctl_unit {
    const char *name;
    double     value;
} ctl_unit_t;

static const ctl_unit_t ctl_rates[] = {
    {"bps", 1}, {"Kbps", 1e3}, {"Mbps", 1e6}, {"Gbps", 1e9}, {NULL, 0}
};

static const ctl_unit_t ctl_sizes[] = {
    {"", 1}, {"k", 1024}, {"m", 1048576}, {NULL, 0}
};


static int ctl_speed_number(const char *text, const ctl_unit_t *units,
                            uint64_t *value_p)
{
    double number;
    char *end;

    if ((text[0] < '0') || (text[0] > '9')) {
        return -1;
    }

    number = strtod(text, &end);
    for (; units->name != NULL; ++units) {
        if (!strcmp(end, units->name) && (number * units->value < 1e15)) {
            *value_p = number * units->value + 0.5;
            return (*value_p > 0) ? 0 : -1;
        }
    }

    return -1;
}

int ctl_speed_parse(const ctl_verb_t *verb, const char *name, const char *text,
                    emu_pipe_speed_t *speed)
{
    if (!strcmp(name, "rate")) {
        if (!strcmp(text, "any")) {
            speed->rate = 0;
            return CTL_OK;
        }
        return ctl_speed_number(text, ctl_rates, &speed->rate) ?
               ctl_usage_fail(verb, "a rate is a number with bps, Kbps, Mbps or"
                              " Gbps, such as 400Mbps, or \"any\", not \"%s\"",
                              text) : CTL_OK;
    } else if (!strcmp(name, "latency")) {
        return (emu_fault_read_time(text, &speed->latency_ns) ||
                (speed->latency_ns > CTL_SPEED_MAX_LATENCY_NS)) ?
               ctl_usage_fail(verb, "a latency is a time of at most 10s, such as"
                              " 5ms, not \"%s\"", text) : CTL_OK;
    } else if (!strcmp(name, "queue")) {
        return ctl_speed_number(text, ctl_sizes, &speed->queue) ?
               ctl_usage_fail(verb, "a queue is a number of bytes, such as 64k,"
                              " not \"%s\"", text) : CTL_OK;
    }

    return ctl_usage_fail(verb, "a link has a rate, a latency and a queue, no"
                          " \"%s\"", name);
}

void ctl_speed_print(const emu_pipe_speed_t *speed)
{
    if (speed->rate != 0) {
        printf("  %g Mbps", speed->rate / 1e6);
    }
    printf("  %g ms", speed->latency_ns / 1e6);
    if (speed->queue != 0) {
        printf("  queue %" PRIu64, speed->queue);
    }
}
