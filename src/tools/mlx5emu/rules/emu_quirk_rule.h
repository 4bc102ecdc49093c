/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Quirks: ways in which a real NIC or fabric is less kind than the emulator is
 * by default. The table of all quirks, the text that switches them on, and what
 * each port keeps of them in shared memory.
 *
 *     [PLACE=]NAME[:VALUE]...[,NAME[:VALUE]...]...
 *
 *     psn-lost              everywhere
 *     0=psn-lost            on all links of host 0
 *     0:1=psn-lost          on link 1 of host 0
 *
 * A new quirk needs a number in emu_quirk_t, a row in emu_quirk_infos, and a
 * call of emu_quirk_on() or emu_quirk_hits() (core/emu_quirk.h) where it acts.
 * The table must not list a quirk that does not act.
 *
 * Called by: ctl/ (parses, prints), core/emu_quirk.c, the unit tests. Pure.
 */

#ifndef EMU_QUIRK_RULE_H_
#define EMU_QUIRK_RULE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMU_QUIRK_MAX_VALUES 4             /**< Of one quirk */
#define EMU_QUIRK_MAX_RULES  32            /**< In one text */
#define EMU_QUIRK_TEXT_MAX   128           /**< One quirk as text, with the NUL */
#define EMU_QUIRK_ANY        0xffffffffu   /**< All hosts, or all links */


typedef enum emu_quirk {
    EMU_QUIRK_OOO,
    EMU_QUIRK_OOO_ALL,
    EMU_QUIRK_LATE_WRITE,
    EMU_QUIRK_PSN_LOST,
    EMU_QUIRK_PSN_STALE,
    EMU_QUIRK_SLOW_CMD,
    EMU_QUIRK_FATAL_WRITES,
    EMU_QUIRK_NO_LAST_WQE,
    EMU_QUIRK_LATE_LAST_WQE,
    EMU_QUIRK_LATE_FLUSH,
    EMU_QUIRK_FIXED_PORT,
    EMU_QUIRK_NO_ROUTE,
    EMU_QUIRK_BLIND_ARM,
    EMU_QUIRK_SAME_KEY,
    EMU_QUIRK_DEAD_SL,
    EMU_QUIRK_LIMITED_PKEY,
    EMU_QUIRK_ROCE,
    EMU_QUIRK_SAME_GID,
    EMU_QUIRK_MISWIRED,
    EMU_QUIRK_GID_MOVES,
    EMU_QUIRK_NO_MLX5DV,
    EMU_QUIRK_BOND,
    EMU_QUIRK_LAST
} emu_quirk_t;


/** The smallest part of a fabric that can have a quirk of its own. */
typedef enum emu_quirk_scope {
    EMU_QUIRK_SCOPE_FABRIC,
    EMU_QUIRK_SCOPE_HOST,
    EMU_QUIRK_SCOPE_LINK,
    EMU_QUIRK_SCOPE_LAST
} emu_quirk_scope_t;


/** A number that goes with a quirk. No name: there is no such value. */
typedef struct emu_quirk_value {
    const char *name;
    int        is_time;       /**< In nanoseconds; its text has a unit */
    uint64_t   preset;        /**< If the text does not give it */
    uint64_t   min;
    uint64_t   max;
} emu_quirk_value_t;


/** What is known of a quirk. */
typedef struct emu_quirk_info {
    const char        *name;
    emu_quirk_scope_t scope;
    int               needs_place; /**< Everywhere, it would change nothing */
    int               is_random;  /**< It draws random numbers */
    int               is_fixed;   /**< It is chosen when the fabric is made: what
                                       programs have seen of it cannot change */
    emu_quirk_value_t values[EMU_QUIRK_MAX_VALUES];
    const char        *what;      /**< What it does, one line */
    const char        *real;      /**< Where reality does that */
    const char        *source;    /**< ... and its source */
} emu_quirk_info_t;


/** A quirk and its place. */
typedef struct emu_quirk_rule {
    emu_quirk_t quirk;
    uint32_t    host;         /**< Or EMU_QUIRK_ANY */
    uint32_t    link;         /**< Or EMU_QUIRK_ANY */
    int         has_values;   /**< The text gave some */
    uint64_t    values[EMU_QUIRK_MAX_VALUES];
} emu_quirk_rule_t;


/** The quirks of one port, in shared memory. */
typedef struct emu_quirk_port {
    uint64_t on;                      /**< BIT(emu_quirk_t); atomic */
    uint64_t counts[EMU_QUIRK_LAST];  /**< How often each acted; atomic */
    uint64_t draws[EMU_QUIRK_LAST];   /**< Random numbers drawn; atomic */
    uint64_t values[EMU_QUIRK_LAST][EMU_QUIRK_MAX_VALUES]; /**< Atomic */
} emu_quirk_port_t;


extern const emu_quirk_info_t emu_quirk_infos[EMU_QUIRK_LAST];
extern const char *emu_quirk_scope_names[EMU_QUIRK_SCOPE_LAST];


/**
 * Parse a text.
 *
 * @param [in]  text    See above.
 * @param [out] rules   EMU_QUIRK_MAX_RULES of them; all values are filled in.
 * @param [out] num_p   How many there are.
 * @param [out] err     On failure: a sentence saying what is wrong and what
 *                      would be right.
 *
 * @return 0, or -1.
 */
int emu_quirk_parse(const char *text, emu_quirk_rule_t *rules, unsigned *num_p,
                    char *err, size_t err_max);


/**
 * Write a quirk with the values that differ from the presets, without its
 * place.
 *
 * @return @a buf, which needs EMU_QUIRK_TEXT_MAX bytes.
 */
char *emu_quirk_format(emu_quirk_t quirk, const uint64_t *values, char *buf,
                       size_t max);


/** Write what may follow the name of a quirk, such as ":PACKETS:TIME". */
char *emu_quirk_format_usage(emu_quirk_t quirk, char *buf, size_t max);

#ifdef __cplusplus
}
#endif

#endif
