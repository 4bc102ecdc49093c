/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Puts over rc_varuna. It does not judge the results: the emulator's trace and the
 * server's memory show them. Run by contrib/bench/recovery.sh,
 * test/e2e/stories/test_resend.sh and test_orphans.sh:
 *
 *     ft_load server BYTES               prints its address; ends when stdin does,
 *                                        and prints the first word of its memory.
 *                                        SIGUSR1: prints its counters
 *     ft_load quitter BYTES              the same, but exits without closing anything
 *     ft_load lone BYTES                 a server that never writes
 *     ft_load idle BYTES                 ... and makes no progress
 *     ft_load client EPS SIZE BATCH SEC  reads the address from stdin; batches of
 *                                        puts on all endpoints. The first words of
 *                                        all puts are different
 *     ft_load batches EPS SIZE BATCH N   reads the address, and connects RC; then, at
 *                                        the next line, N batches. Its operations do
 *                                        not depend on time
 *     ft_load one                        the same with one put of the word FT_A,
 *                                        FT_ONE_SIZE bytes, to the start
 *     ft_load first                      the same as the first operation, so on DC
 *     ft_load device                     the same from memory of a GPU (for UCX), which the
 *                                        CPU cannot access; then messages, puts and gets
 *     ft_load second                     the same after a short message
 *
 *     ft_load steps                      one put for each further line of stdin
 *
 * The server also writes: whenever its first word is FT_A, it replaces it by FT_B. If
 * the word is FT_A in the end, the put of FT_A was executed twice.
 */
#include "ft_uct.h"
#include "ft_clock.h"
#include "ft_vfs.h"

#include <uct/api/version.h>
#include <ucs/memory/memtype_cache.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FT_TL_NAME  "rc_varuna"
#define FT_MAX_EPS  64
#define FT_ONE_SIZE 264     /* Only "one" has this size; fault rules select it */
#define FT_OTHER    4096    /* Where "one" writes before that */
#define FT_AM_ID    3
#define FT_TIMEOUT  120     /* Seconds; it only ends a hang */
#define FT_A        0xaaaaaaaaaaaaaaaaul
#define FT_B        0xbbbbbbbbbbbbbbbbul


typedef struct {
    ft_uct_t      uct;
    ft_address_t  server;
    uct_rkey_bundle_t rkey;
    uct_mem_h     memh;
    char          *memory;
    uct_ep_h      eps[FT_MAX_EPS];
    unsigned      num_eps;
    uint64_t      puts;
    int           failed;
    uct_completion_t comp;
} ft_load_t;

static char *ft_alloc(size_t length)
{
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        ft_die("mmap of %zu bytes", length);
    }

    return memory;
}

/* --- Counters --- */

static void ft_print_counter(const char *path, const char *text, void *arg)
{
    (void)arg;
    if (strstr(path, "/vqp/") || strstr(path, "/link/") ||
        strstr(path, "/target/")) {
        printf("vfs: %s %s", path, text);
    }
}

static void ft_show_vfs(void)
{
    ft_vfs_read("/uct", ft_print_counter, NULL);
}

static void ft_count_rc(const char *path, const char *text, void *arg)
{
    if (strstr(path, "/vqp/") && strstr(path, "/lane") &&
        !strncmp(text, "rc ", 3)) {
        ++*(unsigned*)arg;
    }
}

/* --- Server --- */

static volatile sig_atomic_t ft_show_now;

static void ft_on_signal(int number)
{
    (void)number;
    ft_show_now = 1;
}

static ucs_status_t ft_on_message(void *arg, void *data, size_t length,
                                  unsigned flags)
{
    (void)arg;
    (void)data;
    (void)length;
    (void)flags;
    return UCS_OK;
}

static int ft_server(size_t length, int quits, int overwrites, int progresses)
{
    struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };
    volatile uint64_t *word;
    unsigned seen = 0;
    unsigned idle = 0;
    ft_uct_t uct;
    uct_mem_h memh;

    signal(SIGUSR1, ft_on_signal);
    ft_uct_open(&uct, FT_TL_NAME);
    uct_iface_set_am_handler(uct.iface, FT_AM_ID, ft_on_message, NULL, 0);
    word = (volatile uint64_t*)ft_alloc(length);
    memh = ft_uct_reg(&uct, (void*)word, length);
    ft_uct_print_address(&uct, "ft: address", memh, (void*)word);
    do {
        idle = (progresses && (uct_worker_progress(uct.worker) > 0)) ? 0 :
               idle + 1;
        if (overwrites && (*word == FT_A)) {
            *word = FT_B;
            printf("ft: overwritten %u times\n", ++seen);
        }

        if (ft_show_now) {
            ft_show_now = 0;
            ft_show_vfs();
            printf("ft: shown\n");
        }

        if (idle > 16) {
            usleep(100);
        }
    } while (((idle % 16) != 0) || (poll(&pfd, 1, 0) <= 0));

    /* The server does not write any more */
    printf("ft: final %s, seen %u times\n",
           (*word == FT_A) ? "A" : (*word == FT_B) ? "B" : "neither", seen);
    if (quits) {
        exit(0);
    }

    uct_md_mem_dereg(uct.md, memh);
    ft_uct_close(&uct);
    return 0;
}

/* --- Client --- */

/* Never called, because one count is ours */
static void ft_put_done(uct_completion_t *comp)
{
    (void)comp;
}

typedef enum {
    FT_OP_PUT,
    FT_OP_GET,
    FT_OP_AM
} ft_op_t;

static ucs_status_t ft_try(ft_load_t *load, unsigned ep, ft_op_t op,
                           const uct_iov_t *iov, uint64_t remote_addr)
{
    switch (op) {
    case FT_OP_PUT:
        return uct_ep_put_zcopy(load->eps[ep], iov, 1, remote_addr,
                                load->rkey.rkey, &load->comp);
    case FT_OP_GET:
        return uct_ep_get_zcopy(load->eps[ep], iov, 1, remote_addr,
                                load->rkey.rkey, &load->comp);
    default:
        return uct_ep_am_zcopy(load->eps[ep], FT_AM_ID, NULL, 0, iov, 1, 0,
                               &load->comp);
    }
}

/* From or to the same offset of our memory and the server's; we do not look at ours */
static void ft_post(ft_load_t *load, unsigned ep, ft_op_t op, size_t offset,
                    size_t length)
{
    uct_iov_t iov = {
        .buffer = load->memory + offset,
        .length = length,
        .memh   = load->memh,
        .count  = 1
    };
    ucs_status_t status;

    do {
        status = ft_try(load, ep, op, &iov, load->server.base + offset);
        if (status == UCS_ERR_NO_RESOURCE) {
            uct_worker_progress(load->uct.worker);
        }
    } while ((status == UCS_ERR_NO_RESOURCE) && (load->uct.ep_errors == 0));

    if (status == UCS_INPROGRESS) {
        ++load->comp.count;
        ++load->puts;
    } else if (status != UCS_OK) {
        load->failed = 1;
    }
}

static void ft_put(ft_load_t *load, unsigned ep, size_t offset, size_t length,
                   uint64_t word)
{
    *(uint64_t*)(load->memory + offset) = word;
    ft_post(load, ep, FT_OP_PUT, offset, length);
}

static void ft_wait(ft_load_t *load)
{
    while ((load->comp.count > 1) && !load->failed) {
        uct_worker_progress(load->uct.worker);
    }

    if (load->comp.status != UCS_OK) {
        load->failed = 1;
    }
}

static void ft_open(ft_load_t *load, unsigned num_eps, size_t length)
{
    unsigned i;

    memset(load, 0, sizeof(*load));
    load->num_eps     = num_eps;
    load->comp.func   = ft_put_done;
    load->comp.count  = 1;
    ft_uct_open(&load->uct, FT_TL_NAME);
    load->memory = ft_alloc(length);
    load->memh   = ft_uct_reg(&load->uct, load->memory, length);
    ft_uct_read_address(&load->uct, &load->server, &load->rkey);

    for (i = 0; i < num_eps; ++i) {
        load->eps[i] = ft_uct_connect(&load->uct, &load->server);
    }
}

static int ft_close(ft_load_t *load)
{
    unsigned i;

    ft_show_vfs();

    printf("ft: puts %lu%s\n", load->puts, load->failed ? ", failed" : "");
    for (i = 0; i < load->num_eps; ++i) {
        uct_ep_destroy(load->eps[i]);
    }

    uct_rkey_release(load->uct.component, &load->rkey);
    uct_md_mem_dereg(load->uct.md, load->memh);
    ft_uct_close(&load->uct);
    return load->failed;
}

static int ft_client(unsigned num_eps, size_t size, unsigned batch,
                     double seconds)
{
    uint64_t number = 0;
    ft_load_t load;
    double end;
    unsigned i, ep;

    ft_open(&load, num_eps, num_eps * batch * size);
    end = ft_now() + seconds;
    printf("ft: started\n");
    do {
        for (i = 0; (i < batch) && !load.failed; ++i) {
            for (ep = 0; ep < num_eps; ++ep) {
                ft_put(&load, ep, ((ep * batch) + i) * size, size, ++number);
            }
        }
        ft_wait(&load);
    } while ((ft_now() < end) && !load.failed);

    return ft_close(&load);
}

/* Put until all endpoints are on RC */
static void ft_warm_up(ft_load_t *load, size_t offset, size_t size)
{
    double end = ft_now() + FT_TIMEOUT;
    unsigned ep, count;

    do {
        for (ep = 0; ep < load->num_eps; ++ep) {
            ft_put(load, ep, offset + (ep * size), sizeof(uint64_t), 1);
        }
        ft_wait(load);
        count = 0;
        ft_vfs_read("/uct", ft_count_rc, &count);
    } while ((count < load->num_eps) && !load->failed && (ft_now() < end));

    if (count < load->num_eps) {
        ft_die("%u of %u endpoints are on RC", count, load->num_eps);
    }
}

/* Nothing is posted after this line before all endpoints are on RC */
static void ft_wait_for_rc(ft_load_t *load, unsigned batch, size_t size)
{
    char line[16];

    ft_warm_up(load, 0, batch * size);
    load->puts = 0;
    printf("ft: connected\n");
    if (fgets(line, sizeof(line), stdin) == NULL) {
        ft_die("standard input ended before the line that starts the batches");
    }
}

static int ft_batches(unsigned num_eps, size_t size, unsigned batch,
                      unsigned num_batches)
{
    uint64_t number = 0;
    unsigned i, ep, n;
    ft_load_t load;

    ft_open(&load, num_eps, num_eps * batch * size);
    ft_wait_for_rc(&load, batch, size);
    for (n = 0; (n < num_batches) && !load.failed; ++n) {
        for (i = 0; i < batch; ++i) {
            for (ep = 0; ep < num_eps; ++ep) {
                ft_put(&load, ep, ((ep * batch) + i) * size, size, ++number);
            }
        }
        ft_wait(&load);
    }

    return ft_close(&load);
}

/* Nothing is posted after the put, so only the put and the flush can request the
 * completion of the message. */
static int ft_second(void)
{
    uint64_t word = 0;
    ft_load_t load;
    ucs_status_t status;

    ft_open(&load, 1, FT_OTHER);
    while (uct_ep_am_short(load.eps[0], FT_AM_ID, 1, &word, sizeof(word)) ==
           UCS_ERR_NO_RESOURCE) {
        uct_worker_progress(load.uct.worker);
    }

    ft_put(&load, 0, 0, FT_ONE_SIZE, FT_A);
    ft_wait(&load);
    do {
        uct_worker_progress(load.uct.worker);
        status = uct_ep_flush(load.eps[0], 0, NULL);
    } while ((status == UCS_INPROGRESS) || (status == UCS_ERR_NO_RESOURCE));

    load.failed |= (status != UCS_OK);
    return ft_close(&load);
}

/* From now on, our memory is a GPU's for UCX, and the CPU's accesses fault. NICs access it
 * as before. */
static void ft_become_device(ft_load_t *load, size_t length)
{
    uct_mem_h memh;

#if (UCT_VERNO_MAJOR > 1) || (UCT_VERNO_MINOR >= 22)
    ucs_memtype_cache_update(load->memory, length, UCS_MEMORY_TYPE_CUDA,
                             UCS_SYS_DEVICE_ID_UNKNOWN, UCS_MEM_FLAG_REGISTRABLE);
#else
    ucs_memtype_cache_update(load->memory, length, UCS_MEMORY_TYPE_CUDA,
                             UCS_SYS_DEVICE_ID_UNKNOWN);
#endif
    if (uct_md_mem_reg(load->uct.md, load->memory, FT_OTHER,
                       UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS,
                       &memh) != UCS_ERR_UNSUPPORTED) {
        ft_die("a GPU's memory is registered");
    }

    if (mprotect(load->memory, length, PROT_NONE) != 0) {
        ft_die("mprotect");
    }
}

/* Each operation without a copy, of short lengths too. The first one may fail on its
 * lane. */
static int ft_device(void)
{
    static const size_t lengths[] = {sizeof(uint64_t), 64, FT_ONE_SIZE, 2048};
    const size_t length           = 2 * FT_OTHER;
    ft_load_t load;
    unsigned i;

    ft_open(&load, 1, length);
    *(uint64_t*)load.memory              = FT_A;
    *(uint64_t*)(load.memory + 1024)     = FT_B; /* The server has 0 there */
    *(uint64_t*)(load.memory + FT_OTHER) = FT_B;
    ft_become_device(&load, length);
    ft_post(&load, 0, FT_OP_PUT, 0, FT_ONE_SIZE);
    ft_wait(&load);
    for (i = 0; (i < ucs_static_array_size(lengths)) && !load.failed; ++i) {
        ft_post(&load, 0, FT_OP_PUT, FT_OTHER + (i * 8), lengths[i]);
        ft_post(&load, 0, FT_OP_AM, FT_OTHER, lengths[i]);
        ft_wait(&load);
        if (lengths[i] >= FT_ONE_SIZE) { /* UCX has a shortest one */
            ft_post(&load, 0, FT_OP_GET, 0, lengths[i]);
            ft_wait(&load);
        }
    }

    if (mprotect(load.memory, length, PROT_READ) != 0) {
        ft_die("mprotect");
    }

    if (!load.failed && ((*(uint64_t*)load.memory != FT_A) ||
        (*(uint64_t*)(load.memory + 1024) != 0))) {
        ft_die("the gets brought 0x%lx and 0x%lx", *(uint64_t*)load.memory,
               *(uint64_t*)(load.memory + 1024));
    }
    return ft_close(&load);
}

static int ft_one(int is_first)
{
    ft_load_t load;

    ft_open(&load, 1, 2 * FT_OTHER);
    if (!is_first) {
        ft_warm_up(&load, FT_OTHER, 0);
    }

    ft_put(&load, 0, 0, FT_ONE_SIZE, FT_A);
    ft_wait(&load);
    return ft_close(&load);
}

static int ft_steps(void)
{
    struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };
    unsigned step     = 0;
    char line[16];
    ft_load_t load;

    ft_open(&load, 1, FT_OTHER);
    do {
        ft_put(&load, 0, 0, sizeof(uint64_t), ++step);
        ft_wait(&load);
        printf("ft: step %u%s\n", step, load.failed ? " failed" : "");
        while (poll(&pfd, 1, 1) == 0) {
            uct_worker_progress(load.uct.worker);
        }
    } while (!load.failed && (fgets(line, sizeof(line), stdin) != NULL));

    return ft_close(&load);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0); /* We poll it */
    if ((argc == 3) && !strcmp(argv[1], "server")) {
        return ft_server(strtoul(argv[2], NULL, 0), 0, 1, 1);
    } else if ((argc == 3) && !strcmp(argv[1], "quitter")) {
        return ft_server(strtoul(argv[2], NULL, 0), 1, 1, 1);
    } else if ((argc == 3) && !strcmp(argv[1], "lone")) {
        return ft_server(strtoul(argv[2], NULL, 0), 0, 0, 1);
    } else if ((argc == 3) && !strcmp(argv[1], "idle")) {
        return ft_server(strtoul(argv[2], NULL, 0), 0, 0, 0);
    } else if ((argc == 2) && !strcmp(argv[1], "steps")) {
        return ft_steps();
    } else if ((argc == 2) && !strcmp(argv[1], "second")) {
        return ft_second();
    } else if ((argc == 6) && !strcmp(argv[1], "client") &&
               (atoi(argv[2]) > 0) && (atoi(argv[2]) <= FT_MAX_EPS)) {
        return ft_client(atoi(argv[2]), strtoul(argv[3], NULL, 0),
                         atoi(argv[4]), atof(argv[5]));
    } else if ((argc == 6) && !strcmp(argv[1], "batches") &&
               (atoi(argv[2]) > 0) && (atoi(argv[2]) <= FT_MAX_EPS)) {
        return ft_batches(atoi(argv[2]), strtoul(argv[3], NULL, 0),
                          atoi(argv[4]), atoi(argv[5]));
    } else if ((argc == 2) && !strcmp(argv[1], "one")) {
        return ft_one(0);
    } else if ((argc == 2) && !strcmp(argv[1], "first")) {
        return ft_one(1);
    } else if ((argc == 2) && !strcmp(argv[1], "device")) {
        return ft_device();
    }

    ft_die("usage: ft_load server BYTES | quitter BYTES | lone BYTES | "
           "idle BYTES | client EPS SIZE BATCH SECONDS | "
           "batches EPS SIZE BATCH N | device | one | first | second | steps");
}
