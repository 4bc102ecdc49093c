/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory that is not the host's: a GPU's, or a NIC's own. rc_varuna reads the user's
 * buffers with the CPU when it compares a put with its target, and a log entry in host
 * memory proves the arrival of earlier writes to host memory only.
 */
#ifndef UCT_VARUNA_MEMTYPE_H_
#define UCT_VARUNA_MEMTYPE_H_

#include <ucs/memory/memory_type.h>
#include <stddef.h>

/* What may be registered, and what the CPU may access. */
#define UCT_VARUNA_MEM_TYPES         UCS_BIT(UCS_MEMORY_TYPE_HOST)

/**
 * Ask UCX's cache of memory types, which knows what GPU libraries have allocated.
 *
 * @return Nonzero if all of it is host memory, as far as UCX knows. Any thread.
 */
int uct_varuna_mem_is_host(const void *address, size_t length);

#endif
