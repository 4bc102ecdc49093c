/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Looking for a function in the plugin.
 */
#include "ft_symbol.h"

#include <dlfcn.h>
#include <stddef.h>

void *ft_symbol(const char *name)
{
    void *plugin = dlopen("libuct_varuna.so.0", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = NULL;

    if (plugin != NULL) {
        symbol = dlsym(plugin, name);
        dlclose(plugin); /* UCX keeps it */
    }

    return symbol;
}
