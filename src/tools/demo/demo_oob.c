/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Messages over a TCP connection, see demo_oob.h.
 */
#include "demo_oob.h"
#include "demo_ucp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>


#define DEMO_OOB_MAGIC    0x56444d31u
#define DEMO_OOB_ATTEMPTS 100


static int demo_oob_resolve(const char *host, const char *port, int flags,
                            struct addrinfo **info_p)
{
    struct addrinfo hints = {
        .ai_family   = AF_INET,
        .ai_socktype = SOCK_STREAM,
        .ai_flags    = flags
    };
    int ret;

    ret = getaddrinfo(host, port, &hints, info_p);
    if (ret != 0) {
        demo_error("%s:%s: %s", (host == NULL) ? "*" : host, port,
                   gai_strerror(ret));
        return -1;
    }

    return 0;
}

/* Written to a temporary file first, so that readers see a complete file */
static int demo_oob_write_port(const char *path, unsigned port)
{
    char temporary[4096];
    FILE *file;

    if (snprintf(temporary, sizeof(temporary), "%s.new", path) >=
        (int)sizeof(temporary)) {
        demo_error("%s: the name is too long", path);
        return -1;
    }

    file = fopen(temporary, "w");
    if (file == NULL) {
        demo_error("%s: %s", temporary, strerror(errno));
        return -1;
    }

    fprintf(file, "%u\n", port);
    if ((fclose(file) != 0) || (rename(temporary, path) != 0)) {
        demo_error("%s: %s", path, strerror(errno));
        return -1;
    }

    return 0;
}

static int demo_oob_listen(const char *port)
{
    struct addrinfo *info;
    int one = 1;
    int fd;

    if (demo_oob_resolve(NULL, port, AI_PASSIVE, &info) != 0) {
        return -1;
    }

    fd = socket(info->ai_family, info->ai_socktype, info->ai_protocol);
    if (fd < 0) {
        demo_error("socket: %s", strerror(errno));
    } else if ((setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) !=
                0) ||
               (bind(fd, info->ai_addr, info->ai_addrlen) != 0) ||
               (listen(fd, 1) != 0)) {
        demo_error("could not listen at port %s: %s", port, strerror(errno));
        close(fd);
        fd = -1;
    }

    freeaddrinfo(info);
    return fd;
}

int demo_oob_accept(demo_oob_t *oob, const char *port, const char *port_file)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);
    int ret          = -1;
    int fd;

    memset(oob, 0, sizeof(*oob));
    oob->fd = -1;
    fd      = demo_oob_listen(port);
    if (fd < 0) {
        return -1;
    }

    if (getsockname(fd, (struct sockaddr*)&address, &length) != 0) {
        demo_error("getsockname: %s", strerror(errno));
        goto out;
    }

    if ((port_file != NULL) &&
        (demo_oob_write_port(port_file, ntohs(address.sin_port)) != 0)) {
        goto out;
    }

    printf("server: waiting for a client at port %u\n",
           ntohs(address.sin_port));
    fflush(stdout);
    oob->fd = accept(fd, NULL, NULL);
    if (oob->fd < 0) {
        demo_error("accept: %s", strerror(errno));
        goto out;
    }

    ret = 0;
out:
    close(fd);
    return ret;
}

int demo_oob_connect(demo_oob_t *oob, const char *host, const char *port)
{
    static const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    struct addrinfo *info;
    int i, error = 0;

    memset(oob, 0, sizeof(*oob));
    oob->fd = -1;
    if (demo_oob_resolve(host, port, 0, &info) != 0) {
        return -1;
    }

    for (i = 0; (oob->fd < 0) && (i < DEMO_OOB_ATTEMPTS); ++i) {
        oob->fd = socket(info->ai_family, info->ai_socktype, 0);
        if (oob->fd < 0) {
            error = errno;
            break;
        }

        if (connect(oob->fd, info->ai_addr, info->ai_addrlen) != 0) {
            error = errno;
            close(oob->fd);
            oob->fd = -1;
            nanosleep(&pause, NULL);
        }
    }

    freeaddrinfo(info);
    if (oob->fd < 0) {
        demo_error("could not connect to %s:%s: %s", host, port,
                   strerror(error));
        return -1;
    }

    return 0;
}

void demo_oob_close(demo_oob_t *oob)
{
    if (oob->fd >= 0) {
        close(oob->fd);
        oob->fd = -1;
    }

    free(oob->payload);
    oob->payload = NULL;
}

static int demo_oob_send_all(int fd, const void *data, size_t length)
{
    const char *next = data;
    ssize_t ret;

    while (length > 0) {
        ret = send(fd, next, length, MSG_NOSIGNAL);
        if ((ret < 0) && (errno != EINTR)) {
            return -1;
        } else if (ret > 0) {
            next   += ret;
            length -= ret;
        }
    }

    return 0;
}

int demo_oob_send(demo_oob_t *oob, demo_oob_type_t type, const void *payload,
                  size_t length)
{
    demo_oob_hdr_t hdr = {
        .magic  = DEMO_OOB_MAGIC,
        .type   = type,
        .length = length
    };

    if ((demo_oob_send_all(oob->fd, &hdr, sizeof(hdr)) != 0) ||
        (demo_oob_send_all(oob->fd, payload, length) != 0)) {
        demo_error("the other side is gone: %s", strerror(errno));
        return -1;
    }

    return 0;
}

/* Read up to @a end bytes of the message; 1: complete, 0: not yet, -1: closed */
static int demo_oob_recv_until(demo_oob_t *oob, char *data, size_t start,
                               size_t end, char error_p[DEMO_TEXT_LEN])
{
    ssize_t ret;

    while (oob->got < end) {
        ret = recv(oob->fd, data + oob->got - start, end - oob->got,
                   MSG_DONTWAIT);
        if (ret > 0) {
            oob->got += ret;
        } else if (ret == 0) {
            snprintf(error_p, DEMO_TEXT_LEN, "the other side is gone");
            return -1;
        } else if ((errno == EAGAIN) || (errno == EINTR)) {
            return 0;
        } else {
            snprintf(error_p, DEMO_TEXT_LEN, "the other side is gone: %s",
                     strerror(errno));
            return -1;
        }
    }

    return 1;
}

static int demo_oob_begin(demo_oob_t *oob, char error_p[DEMO_TEXT_LEN])
{
    if ((oob->hdr.magic != DEMO_OOB_MAGIC) ||
        (oob->hdr.type >= DEMO_OOB_LAST) ||
        (oob->hdr.length > DEMO_OOB_MAX_LENGTH)) {
        snprintf(error_p, DEMO_TEXT_LEN,
                 "received something that is no message of " DEMO_PROGRAM);
        return -1;
    }

    free(oob->payload);
    oob->payload = calloc(1, oob->hdr.length + 1);
    if (oob->payload == NULL) {
        snprintf(error_p, DEMO_TEXT_LEN, "out of memory");
        return -1;
    }

    return 0;
}

int demo_oob_poll(demo_oob_t *oob, demo_oob_type_t *type_p, size_t *length_p,
                  char error_p[DEMO_TEXT_LEN])
{
    size_t end;
    int ret;

    if (oob->got < sizeof(oob->hdr)) {
        ret = demo_oob_recv_until(oob, (char*)&oob->hdr, 0, sizeof(oob->hdr),
                                  error_p);
        if (ret <= 0) {
            return ret;
        }

        if (demo_oob_begin(oob, error_p) != 0) {
            return -1;
        }
    }

    end = sizeof(oob->hdr) + oob->hdr.length;
    ret = demo_oob_recv_until(oob, oob->payload, sizeof(oob->hdr), end,
                              error_p);
    if (ret <= 0) {
        return ret;
    }

    *type_p   = oob->hdr.type;
    *length_p = oob->hdr.length;
    oob->got  = 0;
    return 1;
}
