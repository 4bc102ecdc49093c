/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Values in the text of fault rules: numbers, times, ports, names. All functions
 * return 0 or -1, unless they say otherwise; those that get the parser have written
 * its error then.
 */

#ifndef EMU_FAULT_VALUE_H_
#define EMU_FAULT_VALUE_H_

#include "emu_fault_text.h"

#include <stddef.h>
#include <stdint.h>

/** Everything that one parse works on. */
typedef struct emu_fault_parser {
    emu_fault_rule_t rule;
    int              have_point;
    int              have_action;
    unsigned         keys;       /* selectors seen, by index in the table */
    char             *err;
    size_t           err_max;
} emu_fault_parser_t;

/** Write the error. @return -1 */
int emu_fault_fail(emu_fault_parser_t *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** @return Index of a name in a table, or -1. */
int emu_fault_name_find(const char *const *names, unsigned num,
                        const char *name);

/** A decimal or 0x number that ends the string or is followed by a unit. */
int emu_fault_parse_u64(const char *text, uint64_t *value_p,
                        const char **end_p);

/** A number from 0 to @a max, and nothing else. */
int emu_fault_parse_u32(emu_fault_parser_t *p, const char *name,
                        const char *text, uint64_t max, uint32_t *value_p);

/** A word that a rule can be called by. @a buf: EMU_FAULT_NAME_MAX bytes. */
int emu_fault_copy_name(emu_fault_parser_t *p, const char *name,
                        const char *value, char *buf);

/** A part of one: 0 to 1. */
int emu_fault_parse_ppm(const char *text, uint32_t *ppm_p);

/** A number with its unit of time. */
int emu_fault_read_time(const char *text, uint64_t *ns_p);

/** HOST:LINK. */
int emu_fault_read_port(const char *text, uint32_t *host_p, uint32_t *link_p);

#endif
