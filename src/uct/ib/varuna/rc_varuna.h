/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The interface of the transport rc_varuna for an outside detector, such as a subnet
 * manager, a switch or an operator, which can report faults that the transport cannot
 * see. The last function is for applications.
 *
 * The functions are in libuct_varuna.so.0. A program that is not linked with it calls
 * dlopen("libuct_varuna.so.0", RTLD_LAZY | RTLD_NOLOAD) after UCX has been initialized,
 * and finds them with dlsym(): UCX keeps its plugins out of the global scope. The
 * command rc_varuna_ctl does the same to other processes.
 *
 * All functions may be called from any thread. They return at once; interfaces act
 * on them in their next progress call, and those that sleep on their event descriptor
 * are woken. An interface that is opened later obeys them too.
 */
#ifndef RC_VARUNA_H_
#define RC_VARUNA_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rc_varuna_link_state {
    RC_VARUNA_LINK_DOWN, /**< Do not use it: traffic on it moves elsewhere as planned,
                              and none is repeated */
    RC_VARUNA_LINK_UP,   /**< Use it, if nobody else knows that it is down */
    RC_VARUNA_LINK_FAILED /**< Do not use it: it has failed, and traffic on it recovers
                               elsewhere, also that of peers to this process */
} rc_varuna_link_state_t;

typedef enum rc_varuna_failover {
    RC_VARUNA_FAILOVER_FORCE, /**< Leave the best link that is up, now, as if it
                                   had failed; each further call, the next one */
    RC_VARUNA_FAILOVER_REVOKE /**< Take back all reports from outside,
                                   without a hold-down */
} rc_varuna_failover_t;

/**
 * Mark a link of this process down, failed or up. The last mark counts.
 *
 * @param [in] name   A port such as "mlx5_0:1".
 * @param [in] state  What it is from now on.
 *
 * @return 0, -EINVAL if an argument makes no sense, -ENODEV if interfaces are
 *         open and none has such a link, -ENOSPC after 64 links.
 */
int rc_varuna_link_set(const char *name, rc_varuna_link_state_t state);

/**
 * Force or revoke a failover in all interfaces of this process. Where no other
 * link is left, nothing is forced.
 *
 * @return 0, or -EINVAL.
 */
int rc_varuna_failover(rc_varuna_failover_t action);

/**
 * Describe the links of all interfaces, a line each, and their peers: a line for each peer that
 * some link does not lead to, with whose fault it is as far as is known. Peers are those of
 * workers that have an asynchronous thread, as UCP's do.
 *
 * @param [out] buffer  Filled with the text, cut off and terminated.
 * @param [in]  size    Of the buffer.
 *
 * @return Length of the whole text, without the terminating zero.
 */
size_t rc_varuna_status(char *buffer, size_t size);

/**
 * Read a word of this process on which peers run atomics of mode 'extended', when
 * nothing synchronizes with them: it may hold a UID, which represents a value
 * (docs/ATOMICS.md). In other modes this is a plain load. A peer reads such a word
 * of ours by an atomic that changes nothing, as fetch-and-add of 0.
 *
 * @param [in]  address  The word, aligned to its width.
 * @param [in]  width    4 or 8.
 * @param [out] value_p  Its value; left alone in case of an error.
 *
 * @return 0, -EAGAIN if an atomic is just being decided (call again), or
 *         -EINVAL.
 */
int rc_varuna_atomic_read(const volatile void *address, unsigned width,
                          uint64_t *value_p);

#ifdef __cplusplus
}
#endif

#endif
