/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_refuse.h. Programs try features that they can do without, so a refusal is
 * printed on request only.
 */

#include "emu_refuse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int emu_refuse(const char *func, const char *what)
{
    if (getenv("MLX5EMU_EXPLAIN") != NULL) {
        fprintf(stderr, "mlx5emu: %s: %s not modelled\n", func,
                (what != NULL) ? what : "it is");
    }

    errno = EOPNOTSUPP;
    return EOPNOTSUPP;
}

void *emu_refuse_object(const char *func, const char *what)
{
    emu_refuse(func, what);
    return NULL;
}
