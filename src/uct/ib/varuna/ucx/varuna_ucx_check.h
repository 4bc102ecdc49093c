/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Is the UCX in this process the one that we were built for? Vendors build commits between
 * releases, build a version in several ways, and apply patches, so its number does not tell
 * how its structures look; and we write doorbells and credits into them.
 */
#ifndef UCT_VARUNA_UCX_CHECK_H_
#define UCT_VARUNA_UCX_CHECK_H_

#include <uct/base/uct_component.h>

/**
 * Compare libuct and libucs. Call it once, before anything is registered with them. The
 * option UCX_RC_VARUNA_UCX_CHECK is read here, from the environment, because UCX's parser
 * is a part of what is compared.
 *
 * @return Whether UCX may be used. Otherwise a message has told why not.
 */
int uct_varuna_ucx_check(void);

/**
 * Compare the libraries with the inner transports, which are loaded later.
 *
 * @param [in] ib  The inner component. The first call decides for all.
 *
 * @return Whether they may be used. Otherwise the first call has told why not.
 */
int uct_varuna_ucx_check_ib(uct_component_h ib);

#endif
