/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * GNU build-ids of libraries in this process. The linker makes one from all that it links,
 * so two builds of the same version differ in it.
 */
#ifndef UCT_VARUNA_BUILD_ID_H_
#define UCT_VARUNA_BUILD_ID_H_

#include <limits.h>

#define UCT_VARUNA_UCX_CHECK_VAR    "UCX_RC_VARUNA_UCX_CHECK"

/* What to do if a build-id differs */
#define UCT_VARUNA_UCX_CHECK_ADVICE \
    "Rebuild rc_varuna for this UCX, or set " UCT_VARUNA_UCX_CHECK_VAR \
    "=version if you know that its structures are the same"

/* Usually 20 bytes (SHA1), as hexadecimal digits */
#define UCT_VARUNA_BUILD_ID_MAX    (2 * 64 + 1)

/* What is known of a library in this process */
typedef struct {
    char path[PATH_MAX];
    char build_id[UCT_VARUNA_BUILD_ID_MAX]; /* In hexadecimal digits; "" if it has none */
} uct_varuna_build_id_t;

/**
 * Find the library, or program, with an address.
 *
 * @param [in]  address  Of one of its functions or objects.
 * @param [out] found_p  The library. With an empty path if there is none.
 */
void uct_varuna_build_id_find(const void *address, uct_varuna_build_id_t *found_p);

/** @return Whether the library has this @a build_id; any has "". */
int uct_varuna_build_id_equals(const uct_varuna_build_id_t *found, const char *build_id);

#endif
