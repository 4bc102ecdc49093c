/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Hashes for UCS's tables.
 */
#ifndef UCT_VARUNA_HASH_H_
#define UCT_VARUNA_HASH_H_

#include <ucs/datastruct/khash.h>
#include <stdint.h>

/** Of a pointer. The low bits of pointers are alike, and those are what a table with
 *  khash's own function uses: thousands of endpoints meet in few of its places. */
static inline khint_t uct_varuna_hash_pointer(uint64_t key)
{
    return (key * 0x9e3779b97f4a7c15ul) >> 32;
}

/** A table by pointers, as KHASH_MAP_INIT_INT64(). */
#define UCT_VARUNA_HASH_MAP_INIT_POINTER(_name, _value) \
    KHASH_INIT(_name, uint64_t, _value, 1, uct_varuna_hash_pointer, \
               kh_int64_hash_equal)

#endif
