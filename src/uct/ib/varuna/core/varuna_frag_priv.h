/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What one fragment says, for varuna_frag.c, which puts them together. See varuna_frag.h.
 */
#ifndef UCT_VARUNA_FRAG_PRIV_H_
#define UCT_VARUNA_FRAG_PRIV_H_

#include "varuna_frag.h"

/** @return The size of all parts but the last, 0 if the part is at no multiple of it. The
 *  last part may come first: its offset is that of all others together. */
unsigned uct_varuna_frag_tile(const uct_varuna_frag_hdr_t *hdr);

/** @return Whether a datagram of @a size bytes is a part of a message. */
int uct_varuna_frag_is_valid(const uct_varuna_frag_hdr_t *hdr, size_t size);

/**
 * Check a complete message.
 *
 * @param [in]  hdr       Of any of its fragments.
 * @param [in]  data      The message, and its check.
 * @param [out] length_p  Its length without the check.
 *
 * @return UCS_ERR_IO_ERROR if it is not as it was sent, UCS_ERR_INVALID_PARAM if it is too
 *         short.
 */
ucs_status_t uct_varuna_frag_check(const uct_varuna_frag_hdr_t *hdr, const void *data,
                                   size_t *length_p);

#endif
