/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * TCP between the two hosts, see check_oob.h.
 */
#include "check_oob.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>


static struct addrinfo *check_oob_resolve(const char *host, const char *port,
                                          int flags)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *list;
    int ret;

    ret = getaddrinfo(host, port, &hints, &list);
    if (ret != 0) {
        fprintf(stderr, "rc_varuna_check: %s port %s: %s\n",
                (host == NULL) ? "server" : host, port, gai_strerror(ret));
        return NULL;
    }

    return list;
}

int check_oob_listen(const char *host, const char *port)
{
    struct addrinfo *list = check_oob_resolve(host, port, AI_PASSIVE);
    struct addrinfo *ai;
    int one = 1;
    int fd  = -1;

    for (ai = list; ai != NULL; ai = ai->ai_next) {
        fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            continue;
        }

        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if ((bind(fd, ai->ai_addr, ai->ai_addrlen) == 0) &&
            (listen(fd, 1) == 0)) {
            break;
        }

        fprintf(stderr, "rc_varuna_check: cannot listen on port %s: %s\n", port,
                strerror(errno));
        close(fd);
        fd = -1;
    }

    if (list != NULL) {
        freeaddrinfo(list);
    }
    return fd;
}

int check_oob_connect(const char *host, const char *port)
{
    struct addrinfo *list = check_oob_resolve(host, port, 0);
    struct addrinfo *ai;
    int fd = -1;

    if (list == NULL) {
        return -1;
    }

    for (ai = list; ai != NULL; ai = ai->ai_next) {
        fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            continue;
        }

        check_oob_timeout(fd, 10);
        if (connect(fd, ai->ai_addr, ai->ai_addrlen) == 0) {
            break;
        }

        close(fd);
        fd = -1;
    }

    if (fd < 0) {
        fprintf(stderr, "rc_varuna_check: cannot connect to %s port %s: %s (is "
                "\"rc_varuna_check server\" running there?)\n", host, port,
                strerror(errno));
    }
    freeaddrinfo(list);
    return fd;
}

void check_oob_timeout(int fd, unsigned seconds)
{
    struct timeval timeout = {.tv_sec = seconds};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

static int check_oob_send_all(int fd, const void *data, size_t length)
{
    const char *next = data;
    ssize_t sent;

    while (length > 0) {
        sent = send(fd, next, length, MSG_NOSIGNAL);
        if (sent <= 0) {
            if ((sent < 0) && (errno == EINTR)) {
                continue;
            }

            fprintf(stderr, "rc_varuna_check: cannot send to the other host: %s\n",
                    strerror(errno));
            return -1;
        }

        next   += sent;
        length -= sent;
    }

    return 0;
}

int check_oob_send(int fd, check_msg_t type, int error, const void *body,
                   size_t length)
{
    check_head_t head = {
        .magic   = CHECK_MAGIC,
        .version = CHECK_VERSION,
        .type    = type,
        .length  = length,
        .error   = error
    };

    return (check_oob_send_all(fd, &head, sizeof(head)) == 0) ?
           check_oob_send_all(fd, body, length) : -1;
}

/* @return Bytes, fewer than requested if the other host closes the connection; or -1 */
static ssize_t check_oob_recv_all(int fd, void *data, size_t length)
{
    size_t total = 0;
    ssize_t got;

    while (total < length) {
        got = recv(fd, (char*)data + total, length - total, 0);
        if (got == 0) {
            break;
        } else if (got < 0) {
            if (errno == EINTR) {
                continue;
            }

            fprintf(stderr, "rc_varuna_check: the other host does not answer: "
                    "%s\n", strerror(errno));
            return -1;
        }

        total += got;
    }

    return total;
}

static int check_oob_head_ok(const check_head_t *head, size_t max)
{
    if (head->magic != CHECK_MAGIC) {
        fprintf(stderr, "rc_varuna_check: the other side is not rc_varuna_check, or "
                "has another byte order\n");
    } else if (head->version != CHECK_VERSION) {
        fprintf(stderr, "rc_varuna_check: the other host has version %u of the "
                "protocol, this one %u: install the same rc_varuna on both\n",
                head->version, CHECK_VERSION);
    } else if ((head->type >= CHECK_MSG_LAST) || (head->length > max) ||
               (head->error < 0) || ((head->error != 0) && (head->length != 0))) {
        fprintf(stderr, "rc_varuna_check: the other host sent a wrong message "
                "(type %u, %u bytes)\n", head->type, head->length);
    } else {
        return 1;
    }

    return 0;
}

int check_oob_recv(int fd, check_head_t *head, void *body, size_t max)
{
    ssize_t got = check_oob_recv_all(fd, head, sizeof(*head));

    if (got == 0) {
        return 1;
    } else if (got < 0) {
        return -1;
    }

    if ((size_t)got == sizeof(*head)) {
        if (!check_oob_head_ok(head, max)) {
            return -1;
        }

        got = check_oob_recv_all(fd, body, head->length);
        if ((got >= 0) && ((size_t)got == head->length)) {
            return 0;
        }
    }

    if (got >= 0) {
        fprintf(stderr, "rc_varuna_check: the other host closed the connection\n");
    }
    return -1;
}

int check_oob_call(int fd, check_msg_t type, const void *in, size_t in_length,
                   void *out, size_t out_length)
{
    check_head_t head;
    int ret;

    if (check_oob_send(fd, type, 0, in, in_length) != 0) {
        return -1;
    }

    ret = check_oob_recv(fd, &head, out, out_length);
    if (ret != 0) {
        if (ret > 0) {
            fprintf(stderr, "rc_varuna_check: the other host closed the connection\n");
        }
        return -1;
    }

    if (head.error != 0) {
        return head.error;
    }

    if ((head.type != type) || (head.length != out_length)) {
        fprintf(stderr, "rc_varuna_check: the other host's answer is wrong (type "
                "%u, %u bytes)\n", head.type, head.length);
        return -1;
    }

    return 0;
}

int check_oob_hello_ok(const check_hello_t *hello)
{
    const check_wire_port_t *port;
    uint32_t i;

    if (hello->num_ports > CHECK_MAX_PORTS) {
        return 0;
    }

    for (i = 0; i < hello->num_ports; ++i) {
        port = &hello->ports[i];
        if ((memchr(port->name, 0, sizeof(port->name)) == NULL) ||
            (port->mtu < IBV_MTU_256) || (port->mtu > IBV_MTU_4096) ||
            ((port->link_layer != IBV_LINK_LAYER_INFINIBAND) &&
             (port->link_layer != IBV_LINK_LAYER_ETHERNET))) {
            return 0;
        }
    }

    return 1;
}
