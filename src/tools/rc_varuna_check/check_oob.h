/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * TCP between the two hosts. All functions print why they fail.
 */
#ifndef CHECK_OOB_H_
#define CHECK_OOB_H_

#include "check_proto.h"

#include <stddef.h>

/** @return A listening socket, or -1. */
int check_oob_listen(const char *host, const char *port);

/** @return A connection to a server, or -1. */
int check_oob_connect(const char *host, const char *port);

/** Limit the time in which the other host must send or receive. */
void check_oob_timeout(int fd, unsigned seconds);

int check_oob_send(int fd, check_msg_t type, int error, const void *body,
                   size_t length);

/** Receive a message, and check its header. @return 0; 1 if the other host has closed
 *  the connection before a message; -1 on an error. */
int check_oob_recv(int fd, check_head_t *head, void *body, size_t max);

/** Send a request. The answer must have exactly @a out_length bytes. @return 0, a
 *  positive errno of the server, or -1 without a valid answer. */
int check_oob_call(int fd, check_msg_t type, const void *in, size_t in_length,
                   void *out, size_t out_length);

/** @return Whether all values of a host's hello are valid. */
int check_oob_hello_ok(const check_hello_t *hello);

#endif
