/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 */
#include "ft_quirk.h"

#include <stdlib.h>
#include <string.h>

#define FT_QUIRK_LATE_TIME 0.005 /* The emulator's default */


/* @return What follows the name in the list, or NULL. */
static const char *ft_quirk_find(const char *name)
{
    const char *at = getenv("RC_VARUNA_QUIRK");
    size_t length;

    while (at != NULL) {
        at     += strspn(at, ",;");
        length  = strcspn(at, ":,;");
        if (length == 0) {
            return NULL;
        }

        if ((length == strlen(name)) && !strncmp(at, name, length)) {
            return at + length;
        }

        at = strpbrk(at, ",;");
    }

    return NULL;
}

int ft_quirk_is_on(const char *name)
{
    return ft_quirk_find(name) != NULL;
}

int ft_quirk_has_no_psn(void)
{
    return ft_quirk_is_on("psn-lost") || ft_quirk_is_on("psn-stale");
}

int ft_quirk_has_no_order(void)
{
    /* Nor on the levels that are in order, if nothing arrives there */
    return ft_quirk_is_on("ooo-all") || ft_quirk_is_on("dead-sl");
}

double ft_quirk_late_time(void)
{
    const char *value = ft_quirk_find("late-write");
    char *unit;
    double time;

    if (value == NULL) {
        return 0;
    }

    if (value[0] != ':') {
        return FT_QUIRK_LATE_TIME;
    }

    time = strtod(value + 1, &unit);
    return !strncmp(unit, "ms", 2) ? time * 1e-3 :
           !strncmp(unit, "us", 2) ? time * 1e-6 : time;
}
