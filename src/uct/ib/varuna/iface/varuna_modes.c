/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The table of modes of atomics. See varuna_tl_iface.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_tl_iface.h"
#include <uct/ib/varuna/rc_varuna.h>
#include <uct/ib/varuna/requester/amo/varuna_amo_priv.h>
#include <uct/ib/varuna/responder/amo/varuna_home_nic.h>
#include <uct/ib/varuna/responder/cpu/varuna_cpu.h>
#if UCT_VARUNA_HAVE_EXTENDED
#include <uct/ib/varuna/requester/extended/varuna_amo_ext.h>
#include <uct/ib/varuna/responder/extended/varuna_home.h>
#endif

#include <errno.h>

static const uct_varuna_mode_t uct_varuna_mode_table[] = {
    [UCT_VARUNA_ATOMIC_NATIVE]   = {&uct_varuna_amo_native_ops, NULL},
    [UCT_VARUNA_ATOMIC_CPU]      = {&uct_varuna_amo_cpu_ops, &uct_varuna_cpu_ops},
#if UCT_VARUNA_HAVE_EXTENDED
    [UCT_VARUNA_ATOMIC_REREAD]   = {&uct_varuna_amo_reread_ops, NULL},
    [UCT_VARUNA_ATOMIC_EXTENDED] = {&uct_varuna_amo_extended_ops, &uct_varuna_home_ops},
#endif
    [UCT_VARUNA_ATOMIC_LAST]     = {NULL, NULL}
};

const uct_varuna_mode_t *uct_varuna_mode(const uct_varuna_md_t *md)
{
    return &uct_varuna_mode_table[md->atomic_mode];
}

#if !UCT_VARUNA_HAVE_EXTENDED
/* No other mode puts anything else into a word than its value */
int rc_varuna_atomic_read(const volatile void *address, unsigned width, uint64_t *value_p)
{
    if (((width != sizeof(uint32_t)) && (width != sizeof(uint64_t))) ||
        ((uintptr_t)address % width)) {
        return -EINVAL;
    }

    *value_p = (width == sizeof(uint64_t)) ? *(const volatile uint64_t*)address :
               *(const volatile uint32_t*)address;
    return 0;
}
#endif

void uct_varuna_modes_forked(void)
{
    unsigned mode;

    uct_varuna_home_name_forked();
    for (mode = 0; mode < UCT_VARUNA_ATOMIC_LAST; ++mode) {
        if (uct_varuna_mode_table[mode].responder != NULL) {
            uct_varuna_mode_table[mode].responder->forked();
        }
    }
}
