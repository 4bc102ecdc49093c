/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Local socket between the two processes, see cost_oob.h.
 */
#include "cost_oob.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>


#define COST_OOB_ATTEMPTS    600
#define COST_OOB_INTERVAL_US 50000


static int cost_oob_socket(const char *path, struct sockaddr_un *addr)
{
    int fd;

    memset(addr, 0, sizeof(*addr));
    addr->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(addr->sun_path)) {
        fprintf(stderr, "%s: too long for the name of a socket\n", path);
        return -1;
    }

    strcpy(addr->sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0) {
        perror("socket");
    }

    return fd;
}

int cost_oob_accept(const char *path)
{
    struct sockaddr_un addr;
    int listener, fd = -1;

    listener = cost_oob_socket(path, &addr);
    if (listener < 0) {
        return -1;
    }

    unlink(path);
    if ((bind(listener, (struct sockaddr*)&addr, sizeof(addr)) != 0) ||
        (listen(listener, 1) != 0)) {
        perror(path);
    } else {
        fd = accept(listener, NULL, NULL);
        if (fd < 0) {
            perror(path);
        }
    }

    close(listener);
    return fd;
}

int cost_oob_connect(const char *path)
{
    struct sockaddr_un addr;
    int fd, i;

    fd = cost_oob_socket(path, &addr);
    if (fd < 0) {
        return -1;
    }

    for (i = 0; i < COST_OOB_ATTEMPTS; ++i) {
        if (connect(fd, (struct sockaddr*)&addr, sizeof(addr)) == 0) {
            return fd;
        }

        usleep(COST_OOB_INTERVAL_US);
    }

    perror(path);
    close(fd);
    return -1;
}

int cost_oob_send(int fd, const void *data, size_t length)
{
    const char *next = data;
    ssize_t sent;

    while (length > 0) {
        sent = send(fd, next, length, MSG_NOSIGNAL);
        if (sent <= 0) {
            if ((sent < 0) && (errno == EINTR)) {
                continue;
            }

            fprintf(stderr, "the other process is gone\n");
            return -1;
        }

        next   += sent;
        length -= sent;
    }

    return 0;
}

int cost_oob_recv(int fd, void *data, size_t length)
{
    char *next = data;
    ssize_t got;

    while (length > 0) {
        got = recv(fd, next, length, 0);
        if (got <= 0) {
            if ((got < 0) && (errno == EINTR)) {
                continue;
            }

            fprintf(stderr, "the other process is gone\n");
            return -1;
        }

        next   += got;
        length -= got;
    }

    return 0;
}

int cost_oob_send_blob(int fd, const void *data, size_t length)
{
    uint32_t size = length;

    return (cost_oob_send(fd, &size, sizeof(size)) == 0) ?
           cost_oob_send(fd, data, length) : -1;
}

int cost_oob_recv_blob(int fd, void *data, size_t max)
{
    uint32_t size;

    if (cost_oob_recv(fd, &size, sizeof(size)) != 0) {
        return -1;
    }

    if (size > max) {
        fprintf(stderr, "the other process sends %u bytes, expected at most "
                "%zu\n", size, max);
        return -1;
    }

    return cost_oob_recv(fd, data, size);
}
