/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The server, see check_server.h. Checks all values from a client before it uses them.
 */
#include "check_server.h"
#include "check_oob.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK_SERVER_IDLE 300 /* Seconds without a request: the client may wait for a user
                                    to pull a cable */


typedef struct check_server {
    check_run_t  *run;
    check_qp_t   qp;
    int          has_hello;
    check_seen_t seen;
} check_server_t;

typedef union check_body {
    check_hello_t hello;
    check_open_t  open;
    check_scan_t  scan;
    char          bytes[CHECK_MAX_BODY];
} check_body_t;


static void check_server_describe(const check_run_t *run, check_hello_t *hello)
{
    unsigned i;

    memset(hello, 0, sizeof(*hello));
    hello->num_ports = run->nics.count;
    for (i = 0; i < run->nics.count; ++i) {
        hello->ports[i] = run->nics.nic[i].wire;
    }
}

static int check_server_hello(check_server_t *server, const check_hello_t *hello)
{
    check_run_t *run = server->run;
    check_hello_t reply;
    unsigned i;

    if (!check_oob_hello_ok(hello)) {
        fprintf(stderr, CHECK_PROGRAM ": the client's ports are invalid\n");
        return -1;
    }

    run->peer           = *hello;
    run->opts.is_quick  = !!hello->is_quick;
    server->has_hello   = 1;
    for (i = 0; i < run->nics.count; ++i) {
        check_nic_refresh(&run->nics.nic[i]);
    }

    check_server_describe(run, &reply);
    return check_oob_send(run->fd, CHECK_MSG_HELLO, 0, &reply, sizeof(reply));
}

static int check_server_rows(check_server_t *server)
{
    check_run_t *run = server->run;

    run->num_rows = 0;
    check_run_all(run, 1);
    return check_oob_send(run->fd, CHECK_MSG_ROWS, 0, run->rows,
                          run->num_rows * sizeof(run->rows[0]));
}

static int check_server_open(check_server_t *server, const check_open_t *in)
{
    check_run_t *run = server->run;
    check_opened_t out;
    check_nic_t *nic;
    int ret;

    if (!server->has_hello || (in->port >= run->nics.count) ||
        (in->peer_port >= run->peer.num_ports) || (in->qpn > 0xffffff) ||
        (in->psn > 0xffffff) ||
        (in->how & ~(CHECK_OPEN_VERBS | CHECK_OPEN_ORDERED))) {
        return check_oob_send(run->fd, CHECK_MSG_OPEN, EINVAL, NULL, 0);
    }

    check_qp_destroy(&server->qp);
    nic = &run->nics.nic[in->port];
    memset(nic->mem, 0, CHECK_MEM_SIZE);
    ret = check_nic_refresh(nic);
    if (ret == 0) {
        ret = check_qp_create(nic, (in->how & CHECK_OPEN_VERBS) ? CHECK_QP_SRQ :
                                                                  CHECK_QP_UCX,
                              &server->qp);
    }

    if (ret == 0) {
        ret = check_qp_connect(&server->qp, &run->peer.ports[in->peer_port],
                               in->qpn, in->psn, in->how & CHECK_OPEN_ORDERED);
    }

    if (ret != 0) {
        check_qp_destroy(&server->qp);
        return check_oob_send(run->fd, CHECK_MSG_OPEN, ret, NULL, 0);
    }

    memset(&out, 0, sizeof(out));
    out.addr = (uintptr_t)nic->mem;
    out.rkey = nic->mr->rkey;
    out.qpn  = server->qp.qpn;
    return check_oob_send(run->fd, CHECK_MSG_OPEN, 0, &out, sizeof(out));
}

static uint64_t check_server_hash(const check_server_t *server)
{
    const uint64_t *words = (const uint64_t*)server->qp.nic->mem;
    uint64_t hash         = 0xcbf29ce484222325ull;
    uint32_t i;

    for (i = 0; i < CHECK_MEM_SIZE / 8; ++i) {
        hash = (hash ^ words[i]) * 0x100000001b3ull;
    }

    return hash;
}

static int check_server_psn(check_server_t *server, check_msg_t type)
{
    uint64_t hash = 0;
    check_psn_t out;
    int ret = 0;

    if (type == CHECK_MSG_FENCE) {
        ret = check_qp_modify(&server->qp, IBV_QPS_ERR);
        hash = check_server_hash(server);
    }

    if (ret != 0) {
        return check_oob_send(server->run->fd, type, ret, NULL, 0);
    }

    check_qp_psn(&server->qp, &out);
    out.hash = hash;
    return check_oob_send(server->run->fd, type, 0, &out, sizeof(out));
}

/* @return Whether all words of a slot have the value */
static int check_server_is_whole(const check_server_t *server, uint32_t slot,
                                 const check_scan_t *scan)
{
    const volatile uint64_t *words =
        (const volatile uint64_t*)(server->qp.nic->mem +
                                   ((size_t)slot * scan->size));
    uint32_t k;

    for (k = 0; k < scan->size / 8; ++k) {
        if (words[k] != scan->base + slot) {
            return 0;
        }
    }

    return 1;
}

static int check_server_scan(check_server_t *server, const check_scan_t *scan)
{
    check_scanned_t out = {.hash = check_server_hash(server)};
    uint32_t i;

    for (i = 0; i < scan->count; ++i) {
        if (check_server_is_whole(server, i, scan)) {
            ++out.whole;
            out.prefix += (out.prefix == i);
        }
    }

    return check_oob_send(server->run->fd, CHECK_MSG_SCAN, 0, &out, sizeof(out));
}

/* Poll log entries, and check the data of each new entry, until the next request */
static int check_server_watch(check_server_t *server, const check_scan_t *scan)
{
    const volatile uint64_t *log =
        (const volatile uint64_t*)(server->qp.nic->mem + CHECK_LOG);
    char is_seen[CHECK_LOG_LEN]  = {0};
    struct pollfd pollfd         = {.fd = server->run->fd, .events = POLLIN};
    uint32_t i, first = 0;

    memset(&server->seen, 0, sizeof(server->seen));
    if (check_oob_send(server->run->fd, CHECK_MSG_WATCH, 0, NULL, 0) != 0) {
        return -1;
    }

    do {
        for (i = first; i < scan->count; ++i) {
            if (is_seen[i] || (log[i] != scan->base + i)) {
                continue;
            }

            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            is_seen[i] = 1;
            ++server->seen.entries;
            server->seen.early += !check_server_is_whole(server, i, scan);
        }

        while ((first < scan->count) && is_seen[first]) {
            ++first;
        }
    } while (poll(&pollfd, 1, 0) == 0);
    return 0;
}

static int check_server_scan_ok(const check_scan_t *scan, uint32_t max)
{
    return (scan->count > 0) && (scan->count <= max) && (scan->size >= 8) &&
           ((scan->size % 8) == 0) && (scan->size <= CHECK_LOG) &&
           ((uint64_t)scan->count * scan->size <= CHECK_LOG);
}

static int check_server_request(check_server_t *server, const check_head_t *head,
                                const check_body_t *body)
{
    static const uint32_t lengths[CHECK_MSG_LAST] = {
        [CHECK_MSG_HELLO] = sizeof(check_hello_t),
        [CHECK_MSG_OPEN]  = sizeof(check_open_t),
        [CHECK_MSG_SCAN]  = sizeof(check_scan_t),
        [CHECK_MSG_WATCH] = sizeof(check_scan_t)
    };
    int fd            = server->run->fd;
    check_reply_t out = {0};

    if (head->length != lengths[head->type]) {
        fprintf(stderr, CHECK_PROGRAM ": the client sent a wrong request\n");
        return -1;
    }

    if ((head->type > CHECK_MSG_OPEN) && (server->qp.nic == NULL)) {
        return check_oob_send(fd, head->type, ENOTCONN, NULL, 0);
    }

    switch (head->type) {
    case CHECK_MSG_HELLO:
        return check_server_hello(server, &body->hello);
    case CHECK_MSG_ROWS:
        return check_server_rows(server);
    case CHECK_MSG_OPEN:
        return check_server_open(server, &body->open);
    case CHECK_MSG_QUERY:
    case CHECK_MSG_FENCE:
        return check_server_psn(server, head->type);
    case CHECK_MSG_RESET:
        out.error = check_qp_modify(&server->qp, IBV_QPS_RESET);
        return check_oob_send(fd, head->type, 0, &out, sizeof(out));
    case CHECK_MSG_SEEN:
        return check_oob_send(fd, head->type, 0, &server->seen,
                              sizeof(server->seen));
    case CHECK_MSG_SCAN:
        return check_server_scan_ok(&body->scan, CHECK_MEM_SIZE) ?
               check_server_scan(server, &body->scan) :
               check_oob_send(fd, head->type, EINVAL, NULL, 0);
    default:
        return check_server_scan_ok(&body->scan, CHECK_LOG_LEN) ?
               check_server_watch(server, &body->scan) :
               check_oob_send(fd, head->type, EINVAL, NULL, 0);
    }
}

int check_server(check_run_t *run)
{
    check_server_t *server = calloc(1, sizeof(*server));
    check_body_t *body     = malloc(sizeof(*body));
    int listener           = -1;
    int ret                = -1;
    check_head_t head;

    if ((server != NULL) && (body != NULL)) {
        listener    = check_oob_listen(run->opts.bind, run->opts.tcp_port);
        server->run = run;
    }

    if (listener >= 0) {
        run->fd = accept(listener, NULL, NULL);
        close(listener);
        if (run->fd < 0) {
            perror(CHECK_PROGRAM ": accept");
        } else {
            check_oob_timeout(run->fd, CHECK_SERVER_IDLE);
            do {
                ret = check_oob_recv(run->fd, &head, body, sizeof(*body));
            } while ((ret == 0) &&
                     ((ret = check_server_request(server, &head, body)) == 0));

            check_qp_destroy(&server->qp);
            close(run->fd);
        }
    }

    free(server);
    free(body);
    return (ret == 1) ? CHECK_EXIT_OK : CHECK_EXIT_FAIL;
}
