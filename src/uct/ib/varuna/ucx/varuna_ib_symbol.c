/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Finds functions in the library of an inner interface.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ib_symbol.h"

#include <dlfcn.h>

void *uct_varuna_ib_symbol(uct_iface_h iface, const char *name)
{
    void *symbol = NULL;
    Dl_info info;
    void *lib;

    if ((dladdr((void*)iface->ops.iface_progress, &info) != 0) &&
        ((lib = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) != NULL)) {
        symbol = dlsym(lib, name);
        dlclose(lib); /* It stays open: the interface is of it */
    }

    return symbol;
}
