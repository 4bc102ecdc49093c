/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Common code of the fuzzing harnesses. Each is one file with LLVMFuzzerTestOneInput()
 * and fuzz_seeds(). test/fuzz/test_fuzz.sh compiles it with libFuzzer, and with
 * fuzz_seeds.c to write its seeds.
 */
#ifndef FUZZ_H_
#define FUZZ_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A condition that must be true for any input */
#define FUZZ_CHECK(_cond) \
    do { \
        if (!(_cond)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #_cond); \
            abort(); \
        } \
    } while (0)

/* Reads values from the input; zeros after its end */
typedef struct fuzz_input {
    const uint8_t *data;
    size_t        size;
} fuzz_input_t;

static inline void fuzz_take(fuzz_input_t *in, void *dst, size_t size)
{
    size_t n = (size < in->size) ? size : in->size;

    memset(dst, 0, size);
    if (n > 0) {
        memcpy(dst, in->data, n);
        in->data += n;
        in->size -= n;
    }
}

static inline uint64_t fuzz_u64(fuzz_input_t *in, unsigned bytes)
{
    uint64_t value = 0;

    fuzz_take(in, &value, bytes);
    return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Call @a add for each seed. */
void fuzz_seeds(void (*add)(const void *data, size_t size));

#endif
