/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which memory this process has given keys of away: what it accesses at an address that
 * a peer names has to be there (docs/SECURITY.md). Any thread.
 */
#ifndef UCT_VARUNA_MD_SHARE_H_
#define UCT_VARUNA_MD_SHARE_H_

#include "varuna_md.h"

/** A key of the region is packed, for whomever. */
void uct_varuna_md_share(uct_varuna_md_t *md, uct_varuna_mem_t *mem);

/** The region is deregistered. @return Nonzero if it was shared. */
int uct_varuna_md_unshare(uct_varuna_md_t *md, uct_varuna_mem_t *mem);

/** @return Nonzero if a peer may have a key of all these bytes. */
int uct_varuna_md_is_shared(uct_varuna_md_t *md, uint64_t address,
                            size_t length);

/**
 * Find a key of ours by which a NIC may access what is shared.
 *
 * @param [in]  nic     NIC index, a link.
 * @param [out] rkey_p  Inner remote key.
 *
 * @return Nonzero if a region which is shared now covers it.
 */
int uct_varuna_md_find_rkey(uct_varuna_md_t *md, unsigned nic, uint64_t address,
                            size_t length, uct_rkey_t *rkey_p);

#endif
