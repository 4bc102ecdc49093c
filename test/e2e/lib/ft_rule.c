/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Templates of fault rules. See ft_rule.h.
 */
#include "ft_rule.h"

#include <stdio.h>

void ft_rule_format(const char *rule, unsigned n, ft_rule_func_t func, const void *arg,
                    char *text)
{
    for (; *rule != '\0'; ++rule) {
        if (*rule != '$') {
            *text++ = *rule;
            continue;
        }

        ++rule;
        if ((*rule == 'N') || (*rule == 'M')) {
            text += sprintf(text, "%u", n + (*rule == 'M'));
        } else {
            text = func(arg, *rule, text);
        }
    }

    *text = '\0';
}
