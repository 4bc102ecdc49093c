/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Thousands of endpoints to one server, whose link fails, and one endpoint to another
 * server, which the failure does not concern. Started by test/e2e/peers/test_many.sh;
 * servers are those of ft_peers.
 *
 *     ft_many EPS MANY-FILE OTHER-FILE    the servers' addresses are in the files
 *
 * Puts only. Each turn calls progress once, posts a put on one of the many endpoints if
 * its last one has completed, and as many as possible on the other endpoint. The output
 * counts turns, not seconds:
 *
 *     ft: rounds R     each of the many has completed at least R puts
 *     ft: gap T M      the other endpoint had unfinished puts and completed none
 *                      for at most T turns, in which M puts of the many completed
 *
 * Input: "mark" resets the gap; the end of the input ends the load.
 */
#include "ft_uct.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FT_MAX_EPS 4096
#define FT_WINDOW  4       /* Puts in flight on the other endpoint */
#define FT_SLICE   64      /* Bytes of an endpoint in the server's memory */

typedef struct ft_side ft_side_t;

typedef struct {
    uct_completion_t uct;
    ft_side_t        *side;
    uct_ep_h         ep;
    uint64_t         *number;   /* In registered memory */
    uint64_t         remote;
    uint64_t         completed;
    int              busy;
} ft_put_t;

/* One server and its endpoints */
struct ft_side {
    ft_address_t      address;
    uct_rkey_bundle_t rkey;
    uct_mem_h         memh;
    unsigned          count;    /* Number of puts */
    ft_put_t          *puts;
    uint64_t          completed, failed, busy;
};

static ft_uct_t ft_uct;
static ft_side_t ft_many, ft_other;

/* Of the other endpoint */
static struct {
    uint64_t turn, many;        /* At its last completion */
    uint64_t max_turns, max_many;
} ft_gap;
static uint64_t ft_turn;

static void *ft_alloc(size_t count, size_t size)
{
    void *ptr = calloc(count, size);

    if (ptr == NULL) {
        ft_die("out of memory");
    }

    return ptr;
}

static void ft_gap_restart(void)
{
    ft_gap.turn = ft_turn;
    ft_gap.many = ft_many.completed;
}

static void ft_gap_end(void)
{
    uint64_t turns = ft_turn - ft_gap.turn;

    if (turns > ft_gap.max_turns) {
        ft_gap.max_turns = turns;
        ft_gap.max_many  = ft_many.completed - ft_gap.many;
    }
    ft_gap_restart();
}

static void ft_put_completed(uct_completion_t *comp)
{
    ft_put_t *put   = (ft_put_t*)comp;
    ft_side_t *side = put->side;

    if (!put->busy) {
        ft_die("a completion came twice");
    }

    put->busy = 0;
    --side->busy;
    side->failed += (comp->status != UCS_OK);
    ++side->completed;
    ++put->completed;
    if (side == &ft_other) {
        ft_gap_end();
    }
}

static void ft_put(ft_put_t *put)
{
    uct_iov_t iov = {.buffer = put->number, .length = sizeof(*put->number),
                     .memh = put->side->memh, .stride = 0, .count = 1};
    ucs_status_t status;

    if (put->busy) {
        return;
    }

    if ((put->side == &ft_other) && (ft_other.busy == 0)) {
        ft_gap_restart(); /* No put was unfinished */
    }

    *put->number    = put->completed + 1;
    put->uct.func   = ft_put_completed;
    put->uct.count  = 1;
    put->uct.status = UCS_OK;
    put->busy       = 1;
    ++put->side->busy;
    status = uct_ep_put_zcopy(put->ep, &iov, 1, put->remote,
                              put->side->rkey.rkey, &put->uct);
    if (status == UCS_OK) {
        ft_put_completed(&put->uct);
    } else if (status != UCS_INPROGRESS) {
        put->busy = 0;
        --put->side->busy;
    }
}

/* @a num_puts puts, each on its own endpoint, or all on the same one */
static void ft_side_open(ft_side_t *side, const char *path, unsigned num_puts,
                         int is_one_ep)
{
    FILE *file = fopen(path, "r");
    uint64_t *numbers;
    char text[4096];
    unsigned i;

    if ((file == NULL) || (fgets(text, sizeof(text), file) == NULL) ||
        strncmp(text, "ft: address", 11) ||
        (ft_uct_parse_address(text + 11, &side->address) != 0) ||
        (uct_rkey_unpack(ft_uct.component, side->address.rkey, &side->rkey) !=
         UCS_OK)) {
        ft_die("there is no address in %s", path);
    }

    fclose(file);
    numbers     = ft_alloc(num_puts, sizeof(*numbers));
    side->puts  = ft_alloc(num_puts, sizeof(*side->puts));
    side->count = num_puts;
    side->memh  = ft_uct_reg(&ft_uct, numbers, num_puts * sizeof(*numbers));
    for (i = 0; i < num_puts; ++i) {
        side->puts[i].side   = side;
        side->puts[i].number = &numbers[i];
        side->puts[i].remote = side->address.base + (i * FT_SLICE);
        side->puts[i].ep     = ((i > 0) && is_one_ep) ? side->puts[0].ep :
                               ft_uct_connect(&ft_uct, &side->address);
    }
}

static void ft_side_close(ft_side_t *side, int is_one_ep)
{
    unsigned i;

    for (i = 0; i < (is_one_ep ? 1 : side->count); ++i) {
        uct_ep_destroy(side->puts[i].ep);
    }
    uct_rkey_release(ft_uct.component, &side->rkey);
    uct_md_mem_dereg(ft_uct.md, side->memh);
}

static void ft_do_turn(void)
{
    unsigned i;

    ++ft_turn;
    uct_worker_progress(ft_uct.worker);
    ft_put(&ft_many.puts[ft_turn % ft_many.count]);
    for (i = 0; i < ft_other.count; ++i) {
        ft_put(&ft_other.puts[i]);
    }
}

static void ft_report(void)
{
    uint64_t rounds = ~0ul;
    unsigned i;

    for (i = 0; i < ft_many.count; ++i) {
        if (ft_many.puts[i].completed < rounds) {
            rounds = ft_many.puts[i].completed;
        }
    }

    printf("ft: rounds %lu\n", rounds);
    printf("ft: gap %lu %lu\n", ft_gap.max_turns, ft_gap.max_many);
}

/* @return 0 at the end of the input */
static int ft_command(void)
{
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[64];

    if (poll(&pfd, 1, 0) <= 0) {
        return 1;
    }

    if (read(STDIN_FILENO, line, sizeof(line)) <= 0) {
        return 0;
    }

    ft_gap.max_turns = 0;
    ft_gap.max_many  = 0;
    printf("ft: marked\n");
    return 1;
}

static void ft_finish(void)
{
    time_t end = time(NULL) + 60;

    while (((ft_many.busy > 0) || (ft_other.busy > 0)) && (time(NULL) < end)) {
        uct_worker_progress(ft_uct.worker);
    }

    printf("ft: many %lu failed %lu stuck %lu other %lu failed %lu stuck %lu "
           "turns %lu\n", ft_many.completed, ft_many.failed, ft_many.busy,
           ft_other.completed, ft_other.failed, ft_other.busy, ft_turn);
}

int main(int argc, char **argv)
{
    unsigned num_eps = (argc == 4) ? atoi(argv[1]) : 0;
    time_t report_at = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if ((num_eps == 0) || (num_eps > FT_MAX_EPS)) {
        ft_die("usage: ft_many ENDPOINTS MANY-FILE OTHER-FILE");
    }

    ft_uct_open(&ft_uct, "rc_varuna");
    ft_side_open(&ft_other, argv[3], FT_WINDOW, 1);
    ft_side_open(&ft_many, argv[2], num_eps, 0);
    while (ft_command()) {
        ft_do_turn();
        if (time(NULL) != report_at) {
            report_at = time(NULL);
            ft_report();
        }
    }

    ft_finish();
    ft_report();
    ft_side_close(&ft_many, 0);
    ft_side_close(&ft_other, 1);
    printf("ft: errors %d\n", ft_uct.ep_errors);
    fflush(stdout);
    ft_uct_close(&ft_uct);
    return 0;
}
