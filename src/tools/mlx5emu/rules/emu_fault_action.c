/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Actions of fault rules: what a rule does. See emu_fault_action.h.
 */

#include "emu_fault_action.h"

#include <stdio.h>
#include <string.h>

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
            return emu_fault_fail(p, "%s=%s: expected HOST:LINK after the @",
                                  name, value);
        }
    }

    return emu_fault_parse_flap(text, &p->rule.value_ns, &p->rule.flap_ppm,
                                p->err, p->err_max);
}

int emu_fault_parse_action(emu_fault_parser_t *p, unsigned action,
                           const char *name, const char *value)
{
    if (p->have_action) {
        return emu_fault_fail(p, "a rule has one action, and \"%s\" is a "
                              "second one: put it into its own rule", name);
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
