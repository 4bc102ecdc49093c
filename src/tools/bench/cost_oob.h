/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The channel beside the measured one: a local socket on which the two
 * processes exchange addresses and wait for each other. Waiting is a blocking
 * read: it costs no instructions which grow with time.
 */
#ifndef COST_OOB_H
#define COST_OOB_H

#include <stddef.h>


/** Wait for the client on the socket @a path. @return descriptor, or -1 */
int cost_oob_accept(const char *path);

/** Connect to the server at @a path, once it is there. @return fd, or -1 */
int cost_oob_connect(const char *path);

/** Send all of @a length bytes. @return 0, or -1 if the peer is gone. */
int cost_oob_send(int fd, const void *data, size_t length);

/** Wait for @a length bytes. @return 0, or -1 if the peer is gone. */
int cost_oob_recv(int fd, void *data, size_t length);

/** Send a length and the data. */
int cost_oob_send_blob(int fd, const void *data, size_t length);

/** Receive what cost_oob_send_blob() sent, of at most @a max bytes. */
int cost_oob_recv_blob(int fd, void *data, size_t max);

#endif
