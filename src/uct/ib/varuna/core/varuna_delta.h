/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Addresses that differ little from another one: only the bytes which differ are
 * written, after a bit map of them. So the links of a host, whose addresses are
 * similar, fit into the few bytes that UCP has for an address. Pure; varuna_addr.c
 * writes, varuna_parse.c reads.
 *
 *     base     02 31 00 fe 80 00 01
 *     new      02 34 00 fe 80 00 02
 *     written  42 34 02                  (bits 1 and 6)
 */
#ifndef UCT_VARUNA_DELTA_H_
#define UCT_VARUNA_DELTA_H_

#include <stddef.h>

/* Bytes of the bit map */
#define UCT_VARUNA_DELTA_MAP_SIZE(_length)    (((_length) + 7) / 8)

/**
 * Write what makes @a base into @a data.
 *
 * @param [in]  base      What the reader knows.
 * @param [in]  base_len  Its length; bytes after it count as zero.
 * @param [in]  data      What the reader will get.
 * @param [in]  length    Its length, which the reader must know.
 * @param [out] buffer    Where to write.
 * @param [in]  max       Its size.
 *
 * @return Bytes written; 0 if there is not enough room.
 */
size_t uct_varuna_delta_write(const void *base, size_t base_len,
                              const void *data, size_t length, void *buffer,
                              size_t max);

/**
 * Read the output of a peer's uct_varuna_delta_write(), which is not trusted.
 *
 * @param [in]  base      What the writer called so.
 * @param [in]  base_len  Its length.
 * @param [out] data      What was meant, @a length bytes.
 * @param [in]  length    Of @a data.
 * @param [in]  buffer    What was written.
 * @param [in]  max       Its size; no more is read.
 *
 * @return Bytes read; 0 if it is cut off.
 */
size_t uct_varuna_delta_read(const void *base, size_t base_len, void *data,
                             size_t length, const void *buffer, size_t max);

#endif
