/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * One client and several servers, each in its own process. A failure of some of them
 * must not affect the others. Started by test/e2e/peers/test_peers.sh.
 *
 *     ft_peers server              prints its address, "compute" on stdin makes it
 *                                  call nothing of UCX until the next line, the end
 *                                  of stdin ends it
 *     ft_peers client EPS FILE...  EPS endpoints to the server whose address is in
 *                                  each file, or to the client itself if that is
 *                                  called "self"; "open FILE" on stdin adds a server,
 *                                  "counters" prints some of rc_varuna's, the end of
 *                                  stdin ends the load
 *
 *     ft_peers writer EPS FILE...  the same, with puts only
 *
 * The load of an endpoint: messages with numbers, and puts of numbers with completions,
 * a few at a time. For each server, the client prints what was sent, completed and
 * failed, and the longest time between two completions of an endpoint. A server prints
 * which messages arrived, and what its memory contains.
 */
#include "ft_uct.h"
#include "ft_clock.h"
#include "ft_vfs.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_TL_NAME  "rc_varuna"
#define FT_AM_ID    3
#define FT_WINDOW   4       /* Puts in flight of an endpoint */
#define FT_MAX_EPS  4096    /* Of a client to one server */
#define FT_SLICE    64      /* Bytes of an endpoint in the server's memory */
#define FT_MAX_PEERS 64     /* Servers of a client */
#define FT_MAX_LINE  256    /* Of a command */

typedef struct ft_peer ft_peer_t;
typedef struct ft_link ft_link_t;

typedef struct {
    uct_completion_t uct;
    ft_link_t        *link;
    uint64_t         number;
    int              busy;
} ft_put_t;

/* One endpoint */
struct ft_link {
    uct_ep_h  ep;
    ft_peer_t *peer;
    uint64_t  sent, posted, completed; /* Messages, puts */
    double    completed_at;
    double    gap;
    ft_put_t  puts[FT_WINDOW];
    uint64_t  *buffer;                 /* FT_WINDOW numbers */
};

struct ft_peer {
    ft_address_t     address;
    uct_rkey_bundle_t rkey;
    uct_mem_h        memh;             /* Of our buffers */
    ft_link_t        *links;
    uint64_t         failed, twice;    /* Completions */
    uint64_t         refused;          /* Puts: no resources */
};

static void *ft_alloc(size_t count, size_t size)
{
    void *ptr = calloc(count, size);

    if (ptr == NULL) {
        ft_die("out of memory");
    }

    return ptr;
}

/* Read a command, which is written as a whole; wait for the given number of
 * milliseconds, -1: without a limit. @return 1 if there was one, 0 at the end of the
 * input, -1 at the time limit. */
static int ft_input(char *line, int timeout_ms)
{
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
    ssize_t ret;

    if (poll(&pfd, 1, timeout_ms) <= 0) {
        return -1;
    }

    ret = read(STDIN_FILENO, line, FT_MAX_LINE - 1);
    if (ret <= 0) {
        return 0;
    }

    line[ret] = '\0';
    return 1;
}

/* --- Server --- */

static struct {
    uint64_t next[FT_MAX_EPS];
    uint64_t received, wrong;
} ft_got;

static ucs_status_t ft_server_am(void *arg, void *data, size_t length,
                                 unsigned flags)
{
    uint64_t header;
    unsigned ep;

    memcpy(&header, data, sizeof(header));
    ep = header >> 40;
    ++ft_got.received;
    if ((length != sizeof(header)) || (ep >= FT_MAX_EPS) ||
        (ft_got.next[ep]++ != (header & ((1ul << 40) - 1)))) {
        ++ft_got.wrong;
    }

    return UCS_OK;
}

/* @return 0 at the end of the input */
static int ft_server_command(void)
{
    char line[FT_MAX_LINE];
    int ret;

    ret = ft_input(line, 0);
    if (ret <= 0) {
        return ret < 0;
    }

    if (strcmp(line, "compute\n")) {
        ft_die("unknown command: %s", line);
    }

    printf("ft: computes\n");
    ret = ft_input(line, -1);
    printf("ft: awake\n");
    return ret;
}

static int ft_server(void)
{
    char *memory = ft_alloc(FT_MAX_EPS, FT_SLICE);
    uint64_t sum = 0;
    unsigned i, j, idle = 0;
    uct_mem_h memh;
    ft_uct_t uct;

    ft_uct_open(&uct, FT_TL_NAME);
    if (uct_iface_set_am_handler(uct.iface, FT_AM_ID, ft_server_am, NULL, 0) !=
        UCS_OK) {
        ft_die("set_am_handler");
    }

    memh = ft_uct_reg(&uct, memory, FT_MAX_EPS * FT_SLICE);
    ft_uct_print_address(&uct, "ft: address", memh, memory);
    while (ft_server_command()) {
        for (i = 0; i < 8; ++i) {
            if (uct_worker_progress(uct.worker) > 0) {
                idle = 0;
            } else if (++idle > 16) {
                usleep(200);
            }
        }
    }

    /* Acknowledged messages are in the queues */
    for (idle = 0; idle < 1000; ++idle) {
        if (uct_worker_progress(uct.worker) > 0) {
            idle = 0;
        }
    }

    for (i = 0; i < FT_MAX_EPS; ++i) {
        for (j = 0; j < FT_WINDOW; ++j) {
            sum += ((uint64_t*)(memory + (i * FT_SLICE)))[j];
        }
    }

    printf("ft: received %lu wrong %lu memory %lu\n", ft_got.received,
           ft_got.wrong, sum);
    uct_md_mem_dereg(uct.md, memh);
    ft_uct_close(&uct);
    return 0;
}

/* --- Client --- */

static ft_uct_t ft_uct;

/* What the client sends to itself arrives here */
static struct {
    char      *memory;
    uct_mem_h memh;
} ft_self;

/* Longest time without a completion, in total and since the last report */
static void ft_link_waited(ft_link_t *link, double now)
{
    if ((link->completed_at != 0) && (now - link->completed_at > link->gap)) {
        link->gap = now - link->completed_at;
    }
}

static void ft_put_completed(uct_completion_t *comp)
{
    ft_put_t *put   = (ft_put_t*)comp;
    ft_link_t *link = put->link;
    double now      = ft_now();

    if (!put->busy) {
        ++link->peer->twice;
        return;
    }

    put->busy = 0;
    if (comp->status != UCS_OK) {
        ++link->peer->failed;
        return;
    }

    ++link->completed;
    ft_link_waited(link, now);
    link->completed_at = now;
}

/* Put the next number into the next slot. The last numbers remain there. */
static void ft_link_put(ft_link_t *link, unsigned index)
{
    unsigned slot     = link->posted % FT_WINDOW;
    ft_put_t *put     = &link->puts[slot];
    uint64_t *number  = &link->buffer[slot];
    uct_iov_t iov     = {.buffer = number, .length = sizeof(*number),
                         .memh = link->peer->memh, .stride = 0, .count = 1};
    ucs_status_t status;

    if (put->busy) {
        return;
    }

    if (link->completed_at == 0) {
        link->completed_at = ft_now(); /* Include the wait for the first turn */
    }

    *number         = link->posted + 1;
    put->link       = link;
    put->uct.func   = ft_put_completed;
    put->uct.count  = 1;
    put->uct.status = UCS_OK;
    put->busy       = 1;
    status = uct_ep_put_zcopy(link->ep, &iov, 1, link->peer->address.base +
                              (index * FT_SLICE) + (slot * sizeof(*number)),
                              link->peer->rkey.rkey, &put->uct);
    if (status == UCS_OK) {
        ft_put_completed(&put->uct);
    } else if (status != UCS_INPROGRESS) {
        link->peer->refused += (status == UCS_ERR_NO_RESOURCE);
        put->busy            = 0;
        return;
    }

    ++link->posted;
}

static void ft_link_send(ft_link_t *link, unsigned index)
{
    if (uct_ep_am_short(link->ep, FT_AM_ID, ((uint64_t)index << 40) | link->sent,
                        NULL, 0) == UCS_OK) {
        ++link->sent;
    }
}

static int ft_link_is_busy(const ft_link_t *link)
{
    unsigned i;

    for (i = 0; i < FT_WINDOW; ++i) {
        if (link->puts[i].busy) {
            return 1;
        }
    }

    return 0;
}

static void ft_peer_address(const char *path, ft_address_t *address)
{
    FILE *file = fopen(path, "r");
    char text[4096];

    if ((file == NULL) || (fgets(text, sizeof(text), file) == NULL) ||
        strncmp(text, "ft: address", 11) ||
        (ft_uct_parse_address(text + 11, address) != 0)) {
        ft_die("there is no address in %s", path);
    }

    fclose(file);
}

/* The client itself: its own memory, which no other process writes */
static void ft_peer_self(ft_address_t *address)
{
    if (ft_self.memory == NULL) {
        ft_self.memory = ft_alloc(FT_MAX_EPS, FT_SLICE);
        ft_self.memh   = ft_uct_reg(&ft_uct, ft_self.memory,
                                    FT_MAX_EPS * FT_SLICE);
        if (uct_iface_set_am_handler(ft_uct.iface, FT_AM_ID, ft_server_am, NULL,
                                     0) != UCS_OK) {
            ft_die("set_am_handler");
        }
    }

    ft_uct_own_address(&ft_uct, ft_self.memh, ft_self.memory, address);
}

static void ft_peer_open(ft_peer_t *peer, const char *path, unsigned num_eps)
{
    uint64_t *buffers;
    unsigned i;

    if (!strcmp(path, "self")) {
        ft_peer_self(&peer->address);
    } else {
        ft_peer_address(path, &peer->address);
    }

    if (uct_rkey_unpack(ft_uct.component, peer->address.rkey, &peer->rkey) !=
        UCS_OK) {
        ft_die("the key in %s can't be unpacked", path);
    }

    buffers     = ft_alloc(num_eps * FT_WINDOW, sizeof(*buffers));
    peer->links = ft_alloc(num_eps, sizeof(*peer->links));
    peer->memh  = ft_uct_reg(&ft_uct, buffers,
                             num_eps * FT_WINDOW * sizeof(*buffers));
    for (i = 0; i < num_eps; ++i) {
        peer->links[i].peer   = peer;
        peer->links[i].buffer = buffers + (i * FT_WINDOW);
        peer->links[i].ep     = ft_uct_connect(&ft_uct, &peer->address);
    }
}

/* @return The sum of the numbers that the posted puts leave in memory */
static uint64_t ft_link_sum(const ft_link_t *link)
{
    uint64_t sum = 0, slot;

    for (slot = 0; (slot < FT_WINDOW) && (slot < link->posted); ++slot) {
        sum += link->posted - slot;
    }

    return sum;
}

static void ft_peer_report(const ft_peer_t *peer, unsigned index,
                           unsigned num_eps)
{
    uint64_t sent = 0, posted = 0, completed = 0, memory = 0;
    double gap = 0;
    unsigned i;

    for (i = 0; i < num_eps; ++i) {
        sent      += peer->links[i].sent;
        posted    += peer->links[i].posted;
        completed += peer->links[i].completed;
        memory    += ft_link_sum(&peer->links[i]);
        gap        = (peer->links[i].gap > gap) ? peer->links[i].gap : gap;
    }

    printf("ft: peer %u sent %lu posted %lu completed %lu failed %lu twice %lu "
           "refused %lu memory %lu gap_ms %.1f\n", index, sent, posted, completed,
           peer->failed, peer->twice, peer->refused, memory, gap * 1e3);
}


/* Wait until all operations have completed or failed, and the last messages, which have
 * no completion, have arrived */
static void ft_client_finish(ft_peer_t *peers, unsigned num_peers,
                             unsigned num_eps)
{
    double now = ft_now();
    double end = now + 60;
    unsigned i, j, busy;
    ucs_status_t status;

    for (i = 0; i < num_peers; ++i) {
        for (j = 0; j < num_eps; ++j) {
            ft_link_waited(&peers[i].links[j], now);
        }
    }

    do {
        uct_worker_progress(ft_uct.worker);
        busy = 0;
        for (i = 0; i < num_peers; ++i) {
            for (j = 0; j < num_eps; ++j) {
                status = uct_ep_flush(peers[i].links[j].ep, 0, NULL);
                busy  += ft_link_is_busy(&peers[i].links[j]) ||
                         (status == UCS_INPROGRESS) ||
                         (status == UCS_ERR_NO_RESOURCE);
            }
        }
    } while ((busy > 0) && (ft_now() < end));

    if (busy > 0) {
        printf("ft: stuck %u endpoints\n", busy);
    }
}

/* Puts that the slowest endpoint to the peer has completed */
static uint64_t ft_peer_least(const ft_peer_t *peer, unsigned num_eps)
{
    uint64_t least = peer->links[0].completed;
    unsigned i;

    for (i = 1; i < num_eps; ++i) {
        least = (peer->links[i].completed < least) ? peer->links[i].completed :
                                                     least;
    }

    return least;
}

/* Add a peer, if there is a command for it. @return 0 at the end of the input. */
static int ft_client_command(ft_peer_t *peers, unsigned *num_peers,
                             unsigned num_eps)
{
    char line[FT_MAX_LINE], path[FT_MAX_LINE];
    int ret;

    ret = ft_input(line, 0);
    if (ret <= 0) {
        return ret < 0;
    }

    if (!strcmp(line, "counters\n")) {
        printf("ft: counters posted %lu slow %lu\n", ft_vfs_sum("posted"),
               ft_vfs_sum("slow"));
        return 1;
    }

    if ((sscanf(line, "open %s", path) != 1) || (*num_peers == FT_MAX_PEERS)) {
        ft_die("unknown command: %s", line);
    }

    ft_peer_open(&peers[(*num_peers)++], path, num_eps);
    return 1;
}

static int ft_client(int sends, unsigned num_eps, unsigned num_peers,
                     char **paths)
{
    ft_peer_t *peers = ft_alloc(FT_MAX_PEERS, sizeof(*peers));
    double report_at = 0;
    unsigned i, j;

    ft_uct_open(&ft_uct, FT_TL_NAME);
    for (i = 0; i < num_peers; ++i) {
        ft_peer_open(&peers[i], paths[i], num_eps);
    }

    while (ft_client_command(peers, &num_peers, num_eps)) {
        for (i = 0; i < num_peers; ++i) {
            for (j = 0; j < num_eps; ++j) {
                if (sends) {
                    ft_link_send(&peers[i].links[j], j);
                }
                ft_link_put(&peers[i].links[j], j);
                uct_worker_progress(ft_uct.worker);
            }
        }

        if ((report_at != 0) && (ft_now() < report_at)) {
            continue;
        }

        report_at = ft_now() + 0.5;
        for (i = 0; i < num_peers; ++i) {
            printf("ft: now %u completed %lu failed %lu first %lu\n", i,
                   ft_peer_least(&peers[i], num_eps), peers[i].failed,
                   peers[i].links[0].completed);
        }
    }

    ft_client_finish(peers, num_peers, num_eps);
    for (i = 0; i < num_peers; ++i) {
        ft_peer_report(&peers[i], i, num_eps);
        for (j = 0; j < num_eps; ++j) {
            uct_ep_destroy(peers[i].links[j].ep);
        }
        uct_rkey_release(ft_uct.component, &peers[i].rkey);
        uct_md_mem_dereg(ft_uct.md, peers[i].memh);
    }
    if (ft_self.memory != NULL) {
        uct_md_mem_dereg(ft_uct.md, ft_self.memh);
    }
    printf("ft: errors %d\n", ft_uct.ep_errors);
    fflush(stdout);
    ft_uct_close(&ft_uct);
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if ((argc == 2) && !strcmp(argv[1], "server")) {
        return ft_server();
    } else if ((argc > 3) &&
               (!strcmp(argv[1], "client") || !strcmp(argv[1], "writer")) &&
               (atoi(argv[2]) > 0) && (atoi(argv[2]) <= FT_MAX_EPS) &&
               (argc - 3 <= FT_MAX_PEERS)) {
        return ft_client(!strcmp(argv[1], "client"), atoi(argv[2]), argc - 3,
                         argv + 3);
    }

    ft_die("usage: ft_peers server, or: ft_peers client|writer ENDPOINTS FILE...");
}
