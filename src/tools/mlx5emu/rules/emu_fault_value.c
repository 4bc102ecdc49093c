/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_fault_value.h.
 */

#include "emu_fault_value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int emu_fault_fail(emu_fault_parser_t *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p->err, p->err_max, fmt, ap);
    va_end(ap);
    return -1;
}

int emu_fault_name_find(const char *const *names, unsigned num,
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

int emu_fault_parse_u64(const char *text, uint64_t *value_p,
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

int emu_fault_parse_u32(emu_fault_parser_t *p, const char *name,
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

int emu_fault_copy_name(emu_fault_parser_t *p, const char *name,
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

int emu_fault_parse_ppm(const char *text, uint32_t *ppm_p)
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

int emu_fault_read_time(const char *text, uint64_t *ns_p)
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

int emu_fault_read_port(const char *text, uint32_t *host_p,
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
