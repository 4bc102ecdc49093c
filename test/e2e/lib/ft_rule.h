/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Templates of the emulator's fault rules. Pure.
 */
#ifndef FT_RULE_H_
#define FT_RULE_H_

/** Write the text for @a letter. @return The end of this text. */
typedef char *(*ft_rule_func_t)(const void *arg, char letter, char *text);

/** Replace "$N" in @a rule by the number of the event, @a n, "$M" by the next number,
 *  and each other letter after a "$" by the text of @a func. */
void ft_rule_format(const char *rule, unsigned n, ft_rule_func_t func, const void *arg,
                    char *text);

#endif
