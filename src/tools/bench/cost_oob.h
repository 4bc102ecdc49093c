/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A local socket on which the two processes exchange addresses and wait for each other.
 * Waiting is a blocking read, whose instructions do not grow with time.
 */
#ifndef COST_OOB_H
#define COST_OOB_H

#include <stddef.h>


/** Wait for the client on the socket @a path. @return Its descriptor, or -1. */
int cost_oob_accept(const char *path);

/** Connect to the server at @a path, which may not exist yet. @return Its descriptor,
 *  or -1. */
int cost_oob_connect(const char *path);

/** Send all of @a length bytes. @return 0, or -1 if the peer has exited. */
int cost_oob_send(int fd, const void *data, size_t length);

/** Wait for @a length bytes. @return 0, or -1 if the peer has exited. */
int cost_oob_recv(int fd, void *data, size_t length);

/** Send a length and the data. */
int cost_oob_send_blob(int fd, const void *data, size_t length);

/** Receive the data of cost_oob_send_blob(), at most @a max bytes. */
int cost_oob_recv_blob(int fd, void *data, size_t max);

#endif
