/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Addresses as their difference from another one. See varuna_delta.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_delta.h"

#include <stdint.h>
#include <string.h>

static uint8_t uct_varuna_delta_base(const void *base, size_t base_len,
                                     size_t index)
{
    return (index < base_len) ? ((const uint8_t*)base)[index] : 0;
}

size_t uct_varuna_delta_write(const void *base, size_t base_len,
                              const void *data, size_t length, void *buffer,
                              size_t max)
{
    const uint8_t *bytes = data;
    uint8_t *out         = buffer;
    size_t pos           = UCT_VARUNA_DELTA_MAP_SIZE(length);
    size_t i;

    if (pos > max) {
        return 0;
    }

    memset(out, 0, pos);
    for (i = 0; i < length; ++i) {
        if (bytes[i] == uct_varuna_delta_base(base, base_len, i)) {
            continue;
        }

        if (pos == max) {
            return 0;
        }

        out[i / 8] |= 1u << (i % 8);
        out[pos++]  = bytes[i];
    }

    return pos;
}

size_t uct_varuna_delta_read(const void *base, size_t base_len, void *data,
                             size_t length, const void *buffer, size_t max)
{
    const uint8_t *in = buffer;
    uint8_t *bytes    = data;
    size_t pos        = UCT_VARUNA_DELTA_MAP_SIZE(length);
    size_t i;

    if (pos > max) {
        return 0;
    }

    for (i = 0; i < length; ++i) {
        if (!(in[i / 8] & (1u << (i % 8)))) {
            bytes[i] = uct_varuna_delta_base(base, base_len, i);
        } else if (pos < max) {
            bytes[i] = in[pos++];
        } else {
            return 0;
        }
    }

    return pos;
}
