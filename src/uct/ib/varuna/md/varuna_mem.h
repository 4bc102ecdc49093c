/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory of the memory domain: UCT's operations on it.
 */
#ifndef UCT_VARUNA_MEM_H_
#define UCT_VARUNA_MEM_H_

#include "varuna_md.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>

/** As uct_md_ops_t::mem_reg. Memory that the CPU cannot access is refused. */
ucs_status_t uct_varuna_md_mem_reg(uct_md_h tl_md, void *address, size_t length,
                                   uct_varuna_reg_arg_t arg, uct_mem_h *memh_p);

/** As uct_md_ops_t::mem_dereg. */
ucs_status_t
uct_varuna_md_mem_dereg(uct_md_h tl_md, const uct_md_mem_dereg_params_t *params);

/** As uct_md_ops_t::mem_advise. Advice is a hint: all NICs get it, and the call only
 *  fails if none accepts it. */
ucs_status_t uct_varuna_md_mem_advise(uct_md_h tl_md, uct_mem_h memh, void *addr,
                                      size_t length, unsigned advice);

/** As uct_md_ops_t::mkey_pack. From now on peers may name this memory. */
ucs_status_t
uct_varuna_md_mkey_pack_common(uct_md_h tl_md, uct_mem_h memh, void *address,
                               size_t length,
                               const uct_md_mkey_pack_params_t *params,
                               void *buffer);

#endif
