/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_memtype.h"

#include <ucs/memory/memtype_cache.h>

int uct_varuna_mem_is_host(const void *address, size_t length)
{
    ucs_memory_info_t info;

    /* The cache has no host memory. What it has without a type is a GPU library's. */
    return ucs_memtype_cache_lookup(address, length, &info) != UCS_OK;
}
